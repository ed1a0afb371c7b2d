"""`record` and `show`: writing turns, and reading what was written."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.measures import when
from pagefile.cli.opening import existing, whose
from pagefile.cli.options import Full, UserId
from pagefile.cli.output import (
    clipped,
    moment,
    number,
    plural,
    print_table,
    say,
    table,
    visible,
)
from pagefile.engine import Memory
from pagefile.records import Checkpoint, Head, Listing, Turn

_LIMIT = 20


@command()
def record(
    cli: Invocation,
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
) -> None:
    """Write one turn; when this returns, it is on disk."""

    async def work(memory: Memory) -> Turn:
        chat = await whose(memory, conversation, user_id, cli.tenant)
        return await chat.record(user, assistant, id=turn_id, at=at)

    turn = cli.run(work, must_exist=False)
    cli.answer(
        turn,
        f"Recorded turn {turn.seq} of {clipped(conversation)}: {plural(turn.tokens, 'token')}, id {visible(turn.id)}",
    )


@command()
def show(
    cli: Invocation,
    conversation: Annotated[
        str | None, typer.Argument(help="A conversation; without one, all are listed.")
    ] = None,
    *,
    user_id: UserId = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = _LIMIT,
    full: Full = False,
) -> None:
    """List the conversations, or show one: its turns and its checkpoints."""
    if conversation is None:
        heads = cli.run(lambda memory: memory.conversations(user_id=user_id, tenant=cli.tenant, limit=limit))
        missing = "There are no conversations here yet: `pagefile record` writes a turn."
        cli.answer(heads, lambda: _show_heads(heads), found=heads, missing=missing)
        return

    async def work(memory: Memory) -> tuple[Listing[Turn], Listing[Checkpoint], bool]:
        chat = await existing(memory, conversation, user_id, cli.tenant)
        turns = await chat.turns(limit=limit + 1, newest=True)
        return Listing(turns[-limit:]), await chat.checkpoints(), len(turns) > limit

    turns, checkpoints, more = cli.run(work)

    def shown() -> None:
        _show_turns(conversation, turns, full=full)
        if more:
            say(f"\nEarlier turns are there: --limit {limit * 10} shows more.")
        if checkpoints:
            _show_checkpoints(checkpoints, full=full)

    value = {"conversation": conversation, "turns": turns, "more": more, "checkpoints": checkpoints}
    cli.answer(value, shown)


def _show_heads(heads: Listing[Head]) -> None:
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
