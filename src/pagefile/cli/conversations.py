"""`record` and `show`: turns in, and what was written so far."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer

from pagefile.cli.measures import when
from pagefile.cli.opening import existing, loaded, run, whose
from pagefile.cli.options import AsJson, ConfigFile, Db, Full, Tenant, UserId
from pagefile.cli.output import (
    clipped,
    moment,
    nothing,
    number,
    plural,
    print_json,
    print_table,
    say,
    table,
    visible,
)
from pagefile.engine import Memory
from pagefile.records import Checkpoint, Head, Listing, Turn

_LIMIT = 20


def record(
    ctx: typer.Context,
    conversation: Annotated[
        str, typer.Argument(help="The conversation's id; it begins with its first turn.")
    ],
    *,
    user: Annotated[str | None, typer.Option(help="What the user said.")] = None,
    assistant: Annotated[str | None, typer.Option(help="What the assistant answered.")] = None,
    user_id: UserId = None,
    turn_id: Annotated[
        str | None, typer.Option("--id", help="The turn's id: writing it again changes nothing.")
    ] = None,
    at: Annotated[
        datetime | None,
        typer.Option(
            parser=when,
            metavar="2026-01-31T09:30",
            help="When it was said, now unless given (UTC unless it says otherwise).",
        ),
    ] = None,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Write one turn; when this returns, it is on disk."""

    async def work(memory: Memory) -> Turn:
        chat = await whose(memory, conversation, user_id, tenant)
        return await chat.record(user, assistant, id=turn_id, at=at)

    turn = run(loaded(ctx, db, config).settings, work, must_exist=False)
    if as_json:
        print_json(turn)
    else:
        say(
            f"Recorded turn {turn.seq} of {clipped(conversation)}: {plural(turn.tokens, 'token')}, id {visible(turn.id)}"
        )


def show(
    ctx: typer.Context,
    conversation: Annotated[
        str | None, typer.Argument(help="A conversation; without one, all are listed.")
    ] = None,
    *,
    user_id: UserId = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = _LIMIT,
    full: Full = False,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """List the conversations, or show one: its turns and its checkpoints."""
    settings = loaded(ctx, db, config).settings
    if conversation is None:
        heads = run(
            settings, lambda memory: memory.conversations(user_id=user_id, tenant=tenant, limit=limit)
        )
        _show_heads(heads, as_json=as_json)
        return

    async def work(memory: Memory) -> tuple[Listing[Turn], Listing[Checkpoint], bool]:
        chat = await existing(memory, conversation, user_id, tenant)
        turns = await chat.turns(limit=limit + 1, newest=True)
        return Listing(turns[-limit:]), await chat.checkpoints(), len(turns) > limit

    turns, checkpoints, more = run(settings, work)
    if as_json:
        print_json({"conversation": conversation, "turns": turns, "more": more, "checkpoints": checkpoints})
        return
    _show_turns(conversation, turns, full=full)
    if more:
        say(f"\nEarlier turns are there: --limit {limit * 10} shows more.")
    if checkpoints:
        _show_checkpoints(checkpoints, full=full)


def _show_heads(heads: Listing[Head], *, as_json: bool) -> None:
    if not heads:
        raise nothing(
            "There are no conversations here yet: `pagefile record` writes a turn.", as_json=as_json
        )
    if as_json:
        print_json(heads)
        return
    made = table(
        "turns",
        "live tokens",
        "last written",
        "user",
        "conversation",
        right=("turns", "live tokens"),
        wraps=("user",),
    )
    for head in heads:
        made.add_row(
            number(head.turns),
            number(head.live_tokens),
            moment(head.updated),
            visible(head.scope.user or "–"),
            visible(head.scope.conversation or ""),
        )
    print_table(made)
    if heads.next:
        say(f"\nThere are more: --limit {len(heads) * 10} shows them.")


def _show_turns(conversation: str, turns: Sequence[Turn], *, full: bool) -> None:
    owner = turns[-1].scope.user
    say(f"Conversation {clipped(conversation)}" + (f" of {clipped(owner)}" if owner else "") + "\n")
    made = table("seq", "status", "said", "tokens", "who", "text", right=("seq", "tokens"))
    for turn in turns:
        seq = "" if turn.seq is None else str(turn.seq)
        left = (seq, turn.status, moment(turn.at), number(turn.tokens))
        for who, text in _sides(turn):
            made.add_row(*left, who, visible(text, lines=True) if full else clipped(text))
            left = ("", "", "", "")
    print_table(made)


def _sides(turn: Turn) -> Iterator[tuple[str, str]]:
    if turn.user:
        yield "user", turn.user
    for step in turn.steps:
        yield clipped(step.tool, 12), step.result
    if turn.assistant:
        yield "assistant", turn.assistant


def _show_checkpoints(checkpoints: Sequence[Checkpoint], *, full: bool) -> None:
    say("\nCheckpoints\n")
    made = table("version", "seq", "covers", "tokens", "summary", right=("version", "seq", "tokens"))
    for checkpoint in checkpoints:
        summary = visible(checkpoint.summary, lines=True) if full else clipped(checkpoint.summary, 120)
        covers = f"…{checkpoint.covered_through_seq} ({plural(checkpoint.covered_turns, 'turn')})"
        made.add_row(str(checkpoint.version), str(checkpoint.seq), covers, number(checkpoint.tokens), summary)
    print_table(made)
