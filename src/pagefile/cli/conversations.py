"""`record`, `show`, `recall` and `forget`: turns are written, read, found again and erased."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import anyio
from typer import Argument, BadParameter, Option

from pagefile.cli.invocation import Invocation, check_search, command, confirm
from pagefile.cli.measures import plural
from pagefile.cli.options import (
    Full,
    Limit,
    Newest,
    Query,
    User,
    UserId,
    Yes,
    at_time,
    in_conversation,
    of_user,
)
from pagefile.cli.output import Cell, clipped, say, shortened, show_counts, show_records, show_table
from pagefile.engine import Memory
from pagefile.engine.arguments import check_erased
from pagefile.errors import PagefileError
from pagefile.records import (
    DEFAULT_TENANT,
    Checkpoint,
    ConversationInfo,
    Hit,
    Listing,
    Scope,
    Turn,
    within_time,
)
from pagefile.text.visible import visible

#: How much of its first turn a list shows of a conversation.
_OPENING_CELLS = 36


@command()
def record(
    cli: Invocation,
    conversation: Annotated[str, Argument(help="The conversation's id; the first turn creates it.")],
    *,
    user: Annotated[str | None, Option(help="What the user said.")] = None,
    assistant: Annotated[str | None, Option(help="What the assistant answered.")] = None,
    # `--user` is what the user said.
    user_id: Annotated[str | None, Option("--user-id", help="The user it belongs to.")] = None,
    turn_id: Annotated[
        str | None, Option("--id", help="The turn's id: writing it again changes nothing.")
    ] = None,
    at: Annotated[
        datetime | None, at_time(help="When it was said; by default now (UTC unless it has an offset).")
    ] = None,
) -> None:
    """Write one turn; when this returns, it is on disk.

    Examples:
        pagefile record support-42 --user "Where is it?" --assistant "On its way."
        pagefile record support-42 --user-id ada --id mail-17 --user "Thanks!"
    """

    async def work(memory: Memory) -> Turn:
        chat = await cli.chat(memory, conversation, user_id, must_exist=False)
        return await chat.record(user, assistant, id=turn_id, at=at)

    turn = cli.run(work, must_exist=False)
    size = plural(turn.tokens, "token")
    cli.answer(turn, f"Recorded turn {turn.seq} of {clipped(conversation)}: {size}, id {visible(turn.id)}")


@command()
def show(
    cli: Invocation,
    conversation: Annotated[
        str | None, Argument(help="A conversation, or the beginning of its id. Without one, all are listed.")
    ] = None,
    *,
    user_id: UserId = None,
    limit: Newest = 20,
    full: Full = False,
) -> None:
    """List the conversations, or show one: its turns and its checkpoints.

    Examples:
        pagefile show
        pagefile show support-42 --limit 5 --full
        pagefile show --user ada --json
    """
    if conversation is None:
        _list(cli, user_id, limit)
        return

    async def work(memory: Memory) -> tuple[Listing[Turn], Listing[Checkpoint], bool]:
        chat = await cli.chat(memory, conversation, user_id)
        turns = await chat.turns(limit=limit + 1, newest=True)
        return Listing(turns[-limit:]), await chat.checkpoints(), len(turns) > limit

    turns, checkpoints, more = cli.run(work)

    def shown() -> None:
        owner, named = turns[-1].scope.user, turns[-1].scope.conversation
        say(f"Conversation {clipped(named or '')}" + (f" of {clipped(owner)}" if owner else "") + "\n")
        columns = (">seq", "status", "said", ">tokens", "who", "text")
        show_table(columns, [row for turn in turns for row in _rows(turn, full=full)])
        if more:
            say(f"\nThere are earlier turns: --limit {limit * 10} shows more.")
        if checkpoints:
            _show_checkpoints(checkpoints, full=full)

    value = {
        "conversation": turns[-1].scope.conversation,
        "turns": turns,
        "more": more,
        "checkpoints": checkpoints,
    }
    cli.answer(value, shown)


def _list(cli: Invocation, user_id: str | None, limit: int) -> None:
    missing = f"User {user_id!r} has no conversations here: `pagefile show` lists those of all users."

    async def work(memory: Memory) -> tuple[Listing[ConversationInfo], dict[Scope, str], str]:
        heads = await memory.conversations(user_id=user_id, tenant=cli.tenant, limit=limit)
        openings = {} if cli.as_json else {head.scope: await _opening(memory, head.scope) for head in heads}
        return heads, openings, missing if heads or user_id is not None else await cli.nothing_here(memory)

    found, openings, missing = cli.run(work)
    cli.list(
        found,
        {
            ">turns": lambda head: head.turns,
            ">tokens": lambda head: head.live_tokens,
            "last written": lambda head: head.updated,
            "~user": lambda head: visible(head.scope.user or "–"),
            # An id that nobody chose tells nothing: below it, what was said first.
            "conversation": lambda head: "\n".join(
                filter(None, (visible(head.scope.conversation or ""), openings[head.scope]))
            ),
        },
        missing=missing,
    )


async def _opening(memory: Memory, scope: Scope) -> str:
    chat = memory.conversation(scope.conversation or "", user_id=scope.user, tenant=scope.tenant)
    first = await chat.turns(limit=1)
    return clipped(" ".join((first[0].user or first[0].answered).split()), _OPENING_CELLS) if first else ""


def _rows(turn: Turn, *, full: bool) -> Iterator[tuple[Cell, ...]]:
    # Of an answer that broke off, what there was of it.
    answer = turn.assistant or turn.answered
    said = [
        *([("user", turn.user)] if turn.user else ()),
        *((clipped(step.tool, 12), step.result) for step in turn.steps),
        *([("assistant", answer)] if answer else ()),
    ]
    seq = None if turn.seq is None else str(turn.seq)
    left: tuple[Cell, ...] = (seq, turn.status, turn.at, turn.tokens)
    for who, text in said:
        yield (*left, who, shortened(text, 60, full=full))
        left = (None,) * len(left)


def _show_checkpoints(checkpoints: Sequence[Checkpoint], *, full: bool) -> None:
    say("\nCheckpoints\n")
    show_records(
        checkpoints,
        {
            ">version": lambda one: str(one.version),
            ">seq": lambda one: str(one.seq),
            "covers": lambda one: f"…{one.covered_through_seq} ({plural(one.covered_turns, 'turn')})",
            ">tokens": lambda one: one.tokens,
            "summary": lambda one: shortened(one.summary, 120, full=full),
        },
    )


# -- recall --------------------------------------------------------------------------------------------------------------


@command()
def recall(
    cli: Invocation,
    query: Query,
    user: User = None,
    *,
    conversation: Annotated[str | None, in_conversation(help="Search one conversation.")] = None,
    user_id: Annotated[str | None, of_user(help="Search all conversations of a user.")] = None,
    limit: Limit = 10,
    scores: Annotated[bool, Option("--scores", help="Show the parts of each score.")] = False,
    full: Full = False,
) -> None:
    """Find past turns, best first, with the score of each.

    Examples:
        pagefile recall "which port does the database use" --user ada
        pagefile recall refund -c support-42 --scores
    """
    if user is not None and user_id is not None:
        raise BadParameter("name one user: `pagefile recall QUERY USER`, or --user USER")
    user_id = user or user_id
    check_search(query, conversation, user_id, "--user ID or --conversation ID")

    async def work(memory: Memory) -> list[Hit]:
        # This process may be the first to see what others wrote: a short wait lets it be found by meaning too.
        with anyio.move_on_after(5):
            await memory.settle()
        if conversation is None:
            return await memory.recall(query, user_id=user_id or "", tenant=cli.tenant, limit=limit)
        chat = await cli.chat(memory, conversation, user_id)
        return await chat.recall(query, limit)

    found = cli.run(work)
    missing = f"Nothing recorded here answers {query!r}."
    if not found and conversation is None and not cli.run(lambda memory: _has_any(cli, memory, user_id)):
        missing = f"Nothing is recorded for user {user_id!r}: `pagefile show` lists the conversations and their users."
    cli.list(
        found,
        {
            ">score": lambda hit: f"{hit.score:.2f}",
            **({"parts": _parts} if scores else {}),
            "said": lambda hit: f"{within_time(hit.at).astimezone():%Y-%m-%d}",
            "~conversation": lambda hit: visible(hit.conversation_id),
            "text": lambda hit: shortened(hit.text, 160, full=full) + _NO_ANSWER[hit.status],
        },
        missing=missing,
    )


#: What is added to a text that was found.
_NO_ANSWER = {"open": "", "done": "", "aborted": " [not answered]"}


async def _has_any(cli: Invocation, memory: Memory, user_id: str | None) -> bool:
    return bool(await memory.conversations(user_id=user_id, tenant=cli.tenant, limit=1))


def _parts(hit: Hit) -> str:
    told = {name: f"{value:.2f}" for name, value in hit.parts.items()}
    return "\n".join(f"{name} {value}" for name, value in told.items() if float(value))


# -- forget --------------------------------------------------------------------------------------------------------------


@command(tenant=False)
def forget(
    cli: Invocation,
    conversation: Annotated[str | None, Argument(help="A conversation.")] = None,
    *,
    user_id: Annotated[str | None, of_user(help="A user: all conversations, facts and pages.")] = None,
    tenant: Annotated[str | None, Option(help="A tenant; on its own, everything in it.")] = None,
    turn: Annotated[str | None, Option(help="Only this turn of the conversation, by its id.")] = None,
    page: Annotated[str | None, Option(help="Only this archived page, by its uuid.")] = None,
    scrub: Annotated[bool, Option(help="Rewrite the database's files too: takes a while.")] = False,
    yes: Yes = False,
) -> None:
    """Erase a conversation, a user or a whole tenant, or one turn or page alone, for good.

    Examples:
        pagefile forget support-42
        pagefile forget --user ada --yes
        pagefile forget support-42 --turn mail-17
    """
    named = {"turn": turn, "page": page, "conversation": conversation, "user": user_id, "tenant": tenant}
    what = " of ".join(f"{kind} {name!r}" for kind, name in named.items() if name is not None)
    if not what:
        raise BadParameter("say what to forget: a conversation, --user, --page or --tenant")
    try:
        uuid = check_erased(user_id, conversation, tenant, turn_id=turn, page=page)
    except PagefileError as error:
        raise BadParameter(str(error)) from error
    # Wrong settings are reported before the question.
    _ = cli.settings
    if not yes:
        confirm(f"erase {what} for good", otherwise="nothing was erased.")
    scope = Scope(tenant or DEFAULT_TENANT, user_id, conversation)
    receipt = cli.run(lambda memory: memory.engine.erase(scope, turn_id=turn, page=uuid, scrub=scrub))

    def shown() -> None:
        show_counts(receipt.counts, f"Erased {visible(what)}")
        for pending in receipt.pending:
            say(f"\nStill to be erased: {visible(pending)}")

    cli.answer(
        receipt,
        shown,
        # Files are rewritten even if the rows were erased earlier.
        found=receipt.total or scrub,
        missing=f"There was nothing to forget: {what}.",
    )
