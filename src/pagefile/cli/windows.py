"""`context`, `calls`, `explain` and `replay`: windows, why they were built as they were, and how other settings would change them."""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, cast

from rich.text import Text
from typer import Argument, Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.measures import LEAST_CHARS, bar, moment, number, plural, telling_chars
from pagefile.cli.options import Full, Named, Newest, UserId
from pagefile.cli.output import Cell, clipped, say, shortened, show_table, warn
from pagefile.engine import Conversation, Memory, arguments
from pagefile.engine.replay import CHANGEABLE, Explanation, Replay, change_of
from pagefile.errors import NotFoundError, SettingsError
from pagefile.records import JsonValue, Listing, Scope, WindowRecord
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.text.visible import visible
from pagefile.window.candidates import Message
from pagefile.window.comparison import CandidateChange, DiffLine
from pagefile.window.receipt import Receipt, Verdict, Window

#: Longer runs of turns with the same outcome are shown by their first and last.
_RUN = 6
#: Diff lines shown unless all are requested.
_DIFF_LINES = 60
#: Calls held in memory at a time.
_SLICE = 200
#: What the names of the modes mean.
_MODES = {"FULL_HISTORY": "full history", "SUMMARY_N": "summary and recent turns"}
_STYLES = {"-": "red", "+": "green", "=": "", "…": "dim"}

CallId = Annotated[
    str | None,
    Argument(
        help="A recorded call, or the beginning of its id; `pagefile calls` lists them. By default, the newest."
    ),
]


@command()
def context(
    cli: Invocation,
    conversation: Named,
    query: Annotated[str | None, Argument(help="What the user says next.")] = None,
    *,
    window_tokens: Annotated[
        int | None,
        Option(help="The budget of the window; by default that of the last recorded call, else the setting."),
    ] = None,
    window_for: Annotated[
        str | None,
        Option(metavar="MODEL", help="Use this model's context size as the budget, such as gpt-5."),
    ] = None,
    answer_tokens: Annotated[int | None, Option(help="Room left free for the answer.")] = None,
    threshold: Annotated[
        float | None, Option(help="The share of the window at which a checkpoint is due.")
    ] = None,
    recent_turns: Annotated[int | None, Option(help="How many turns count as recent.")] = None,
    placement: Annotated[str | None, Option(metavar="tail|head", help="Where memory is placed.")] = None,
    instructions: Annotated[str | None, Option(help="The system prompt; never cut.")] = None,
    language: Annotated[
        str | None,
        Option(metavar="auto|zh|en", help="The language of what Pagefile adds to the conversation."),
    ] = None,
    timezone: Annotated[str | None, Option(help="The user's time zone, such as Asia/Shanghai.")] = None,
    load: Annotated[
        list[str] | None, Option(metavar="UUID", help="Show this archived page in full; can be repeated.")
    ] = None,
    user_id: UserId = None,
    full: Full = False,
) -> None:
    """Print the window for the next model call and its receipt. Nothing is written.

    Examples:
        pagefile context support-42 "Where is my order?"
        pagefile context support-42 "And now?" --window-tokens 2000 --full
    """
    said: dict[str, object] = {
        "window_tokens": window_tokens,
        "threshold": threshold,
        "recent_turns": recent_turns,
        "placement": placement,
        "calls_kept": 0,  # an inspection is not recorded as a call, and has no id
    }

    async def work(memory: Memory) -> Window:
        chat = await cli.chat(memory, conversation, user_id)
        size = window_tokens
        if size is None and window_for is None:
            # The agent may have settings of its own, or a model that decides.
            size = next((_size_of(call) for call in await chat.calls(limit=1)), None)
        return await chat.context(
            query,
            window_tokens=size,
            window_for=window_for,
            answer_tokens=answer_tokens,
            instructions=instructions,
            load=load or (),
            language=arguments.one_of(language, arguments.LANGUAGES, "language"),
            timezone=timezone,
        )

    window = cli.run(work, settings=cli.loaded(said).settings)

    def shown() -> None:
        _show_messages(window.messages, full=full)
        _show_receipt(window.receipt, full=full)
        _show_totals(window)

    cli.answer(window, shown)


def _size_of(call: WindowRecord) -> int | None:
    return cast("int | None", call.options.get("window_tokens"))


def _show_totals(window: Window) -> None:
    receipt, share = window.receipt, window.tokens / window.budget
    parts = [f"{block} {number(tokens)}" for block, tokens in receipt.tokens_by_block().items()]
    say()
    say(f"{bar(share)} {share:.0%}")
    say(f"{number(window.tokens)} of {number(window.budget)} tokens ({_counter(receipt)})")
    say(" · ".join([*parts, f"framing {number(receipt.framing)}"]))
    if reserved := " · ".join(f"{kind} {number(tokens)}" for kind, tokens in receipt.reserved.items()):
        say(f"reserved: {reserved}")
    due = ", a checkpoint is due" if window.should_checkpoint else ""
    say(f"{_MODES[window.mode]} · ratio {window.ratio:.2f}{due} · prefix {window.prefix_hash[:12]}")
    say(f"kept {len(receipt.kept)}, left out {len(receipt.dropped)}")


def _counter(receipt: Receipt) -> str:
    return receipt.counter if receipt.exact else f"{receipt.counter}, not exact"


def _show_messages(messages: Sequence[Message], *, full: bool) -> None:
    def text(message: Message) -> str:
        calls = "\n".join(f"[calls {call}]" for call in _calls_in(message))
        return "\n".join(part for part in (_words(message.get("content")), calls) if part)

    rows = [(str(one["role"]), shortened(text(one), 200, full=full)) for one in messages]
    show_table(("role", "content"), rows)
    say()


def _words(content: JsonValue) -> str:
    """The text of a message; other parts are named."""
    if not isinstance(content, list):
        return str(content or "")
    parts = [part if isinstance(part, dict) else {"text": part} for part in content]
    return "\n".join(str(part.get("text") or f"[{part.get('type')}]") for part in parts)


def _calls_in(message: Message) -> Iterator[str]:
    """The tool calls of a message as one would write them: `search(query="refunds")`."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        named = cast("dict[str, JsonValue]", call).get("function", call)
        function = cast("dict[str, JsonValue]", named)
        given, _ = read_arguments(str(function.get("arguments") or "{}"))
        shown = str(function.get("arguments"))
        if isinstance(given, dict):
            shown = ", ".join(
                f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items()
            )
        yield f"{function.get('name')}({shown})"


def _show_receipt(receipt: Receipt, *, full: bool) -> None:
    columns = ("block", "id", "kept", "form", ">tokens", ">score", "reason")
    show_table(columns, _rows(receipt.verdicts, full=full))
    for note in receipt.degraded:
        warn(note)


def _rows(verdicts: Sequence[Verdict], *, full: bool) -> Iterator[tuple[Cell, ...]]:
    for _, group in groupby(verdicts, key=lambda one: (one.block, one.kept, one.form, one.reason)):
        alike = list(group)
        if full or len(alike) <= _RUN:
            yield from map(_row, alike)
            continue
        first, *between, last = alike
        yield _row(first)
        yield ("", f"… {len(between)} more", "", "", sum(verdict.tokens for verdict in between), "", "")
        yield _row(last)


def _row(verdict: Verdict) -> tuple[Cell, ...]:
    return (
        verdict.block,
        clipped(verdict.id, 14),
        "yes" if verdict.kept else "no",
        verdict.form,
        verdict.tokens,
        None if verdict.score is None else f"{verdict.score:.2f}",
        visible(f"{verdict.reason} ({verdict.note})" if verdict.note else verdict.reason),
    )


# -- recorded calls ------------------------------------------------------------------------------------------------------


@command()
def calls(
    cli: Invocation,
    conversation: Annotated[
        str | None, Argument(help="A conversation, or the beginning of its id. By default, all.")
    ] = None,
    *,
    user_id: UserId = None,
    limit: Newest = 20,
) -> None:
    """List recorded model calls, newest first.

    Examples:
        pagefile calls
        pagefile calls support-42
    """

    async def work(memory: Memory) -> Listing[WindowRecord]:
        if conversation is None:
            listed = await memory.engine.store.calls.list(Scope(cli.scope.tenant, user_id), limit=limit + 1)
            more = listed[limit - 1].id if len(listed) > limit else None
            return Listing(listed[:limit], next=more)
        # A window may be requested before anything is written: then there are calls, but no conversation.
        chat = await cli.chat(memory, conversation, user_id, must_exist=False)
        listed = await chat.calls(limit=limit)
        if not listed:
            listed = await (await cli.chat(memory, conversation, user_id)).calls(limit=limit)
        return listed

    found = cli.run(work)
    chars = telling_chars([call.id for call in found])
    newest = visible(found[0].id[:chars]) if found else ""
    cli.list(
        found,
        {
            "call": lambda call: visible(call.id[:chars]),
            "made": lambda call: call.at,
            ">tokens": lambda call: call.tokens,
            ">of": _size_of,
            **(
                {}
                if conversation
                else {"conversation": lambda call: clipped(call.scope.conversation or "", 14)}
            ),
            "question": lambda call: clipped(call.query or "", 80),
        },
        missing=f"No model call {f'of {conversation!r} ' if conversation else ''}is recorded: `chat.context()` records one, unless calls_kept is 0.",
        hint=f"{visible(cli.place.command)} explain {newest}  shows what the model saw.",
    )


@command()
def explain(
    cli: Invocation,
    call: CallId = None,
    *,
    messages: Annotated[bool, Option("--messages", help="Print the messages as they were sent.")] = False,
    full: Full = False,
) -> None:
    """Show what the model saw in a recorded call, and why. Nothing is written.

    Examples:
        pagefile explain
        pagefile explain 3f2a91bc --messages --full
    """

    async def work(memory: Memory) -> Explanation:
        chat, call_id = await _called(cli, memory, call)
        return await chat.explain(call_id)

    found = cli.run(work)

    cli.answer(found, lambda: show_bill(found, messages=messages, full=full))


def show_bill(found: Explanation, *, messages: bool = False, full: bool = False) -> None:
    """A recorded call: its messages if asked for, every candidate, the tokens by block."""
    _show_call(found.call)
    if messages:
        _show_messages(found.messages, full=full)
    _show_receipt(found.receipt, full=full)
    _show_bill(found)


@command()
def replay(
    cli: Invocation,
    call: CallId = None,
    *,
    changes: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="A setting to change; can be repeated."),
    ] = None,
    full: Full = False,
) -> None:
    """Rebuild the window of a recorded call with other settings, and show the difference. Nothing is written.

    For instance: --set window_tokens=4000 --set recall=never --set archive.threshold=50000

    Examples:
        pagefile replay 3f2a91bc --set window_tokens=4000 --set recall=never
    """
    wanted = dict(_change(change) for change in changes or ())

    async def work(memory: Memory) -> Replay:
        chat, call_id = await _called(cli, memory, call)
        return await chat.replay(call_id, **wanted)

    found = cli.run(work)
    cli.answer(found, lambda: _show_replay(found, full=full))


async def _called(cli: Invocation, memory: Memory, name: str | None) -> tuple[Conversation, str]:
    """The conversation and the id of a recorded call, from its id or from a prefix as listed by `calls`; the newest by default."""
    if name is None:
        newest = await memory.engine.store.calls.list(cli.scope, limit=1)
        if not newest:
            raise NotFoundError(
                "No model call is recorded: `chat.context()` records one, unless calls_kept is 0."
            )
        name = newest[0].id
    try:
        call = await memory.call(name, tenant=cli.tenant)
    except NotFoundError:
        found = await _beginning(memory, name, cli.scope) if len(name) >= LEAST_CHARS else []
        if not found:
            raise
        if len(found) > 1:
            told = " and ".join(call.id for call in found)
            raise SettingsError(f"{name!r} is the beginning of more than one call: {told}.") from None
        call = found[0]
    chat = await cli.chat(memory, call.scope.conversation or "", call.scope.user, must_exist=False)
    return chat, call.id


async def _beginning(memory: Memory, name: str, tenant: Scope) -> list[WindowRecord]:
    """At most two calls whose ids have this prefix."""
    found: list[WindowRecord] = []
    after: str | None = None
    listed = memory.engine.store.calls.list
    while len(found) < 2 and (calls := await listed(tenant, limit=_SLICE, after=after)):
        found += [call for call in calls if call.id.startswith(name)]
        after = calls[-1].id
    return found[:2]


def _change(given: str) -> tuple[str, JsonValue]:
    name, equals, value = given.partition("=")
    name = name.strip()
    if not equals or not name:
        raise SettingsError(
            f"--set {given!r} is not NAME=VALUE: write for instance --set window_tokens=4000. "
            f"What can be set: {', '.join(CHANGEABLE)}."
        )
    return name, change_of(name, value.strip())


def _show_call(call: WindowRecord) -> None:
    say(f"Call {call.id} of {clipped(call.scope.conversation or '')}, {moment(call.at)}")
    if call.query:
        say(f"Question: {clipped(call.query, 200)}")
    say()


def _show_bill(found: Explanation) -> None:
    call, receipt = found.call, found.receipt

    def share(tokens: int) -> str:
        return f"{tokens / receipt.budget:.1%}"

    def filled(tokens: int) -> str:
        return bar(tokens / receipt.budget, 20) if tokens else ""

    rows: list[tuple[Cell, ...]] = [
        (one.block, one.tokens, share(one.tokens), one.kept, one.dropped, filled(one.tokens))
        for one in found.blocks
    ]
    framing = ("framing", receipt.framing, share(receipt.framing), "", "", "")
    say()
    show_table(("block", ">tokens", ">share", ">kept", ">left out", ""), [*rows, framing])
    of = f"{number(call.tokens)} of {number(receipt.budget)} tokens ({_counter(receipt)})"
    say(f"\n{of} · {_MODES[call.mode]} · ratio {call.ratio:.2f}")
    if found.tokens_without is not None:
        say(
            f"without Pagefile: {plural(found.tokens_without, 'token')}{_saved(call.tokens, found.tokens_without)}"
        )
    shared = "the first recorded call"
    if found.previous is not None:
        same = f"{number(found.shared_messages)} messages, {number(found.shared_tokens)} tokens"
        shared = f"unchanged since call {found.previous}: {same}"
    say(f"prefix {call.prefix_hash[:12]} · {shared}")
    _show_exactness(exact=found.exact, why=found.why)


def _saved(tokens: int, without: int) -> str:
    """While a conversation fits, what memory adds to it is all that can be told."""
    if tokens < without:
        return f", {1 - tokens / without:.0%} saved"
    return f"; everything still fits, and Pagefile added {plural(tokens - without, 'token')}"


def _show_exactness(*, exact: bool, why: Sequence[str]) -> None:
    if exact:
        say("Rebuilt from the log, byte for byte the same.")
        return
    for reason in why:
        warn(f"not what was sent: {reason}")


# -- replays -------------------------------------------------------------------------------------------------------------


def _show_replay(replayed: Replay, *, full: bool) -> None:
    _show_call(replayed.call)
    _show_exactness(exact=replayed.exact, why=replayed.why)
    changes = ", ".join(f"{name}={value}" for name, value in replayed.changes.items())
    say(f"changed: {changes or 'nothing'}\n")
    found = replayed.comparison
    rows = [(one.block, one.before, one.after, _signed(one.difference)) for one in found.blocks]
    total = ("in all", found.tokens_before, found.tokens_after, _signed(found.difference))
    show_table(("block", ">before", ">after", ">difference"), rows, total=total)
    if found.same:
        say("\nBoth windows are the same.")
        return
    say()
    show_table(("change", "block", "id", ">tokens", "why"), map(_changed, found.changed))
    say()
    lines = found.diff if full else found.diff[:_DIFF_LINES]
    for line in lines:
        _show_line(line, full=full)
    if len(lines) < len(found.diff):
        say(f"\n{number(len(found.diff) - len(lines))} more lines differ or are nearby: --full shows them.")


def _changed(one: CandidateChange) -> tuple[Cell, ...]:
    forms = " → ".join(found.form for found in (one.before, one.after) if found and found.form)
    return (
        one.change if one.change != "form" else forms,
        one.block,
        clipped(one.id, 20),
        _signed(one.difference),
        "no longer offered" if one.after is None else visible(one.after.reason),
    )


def _show_line(line: DiffLine, *, full: bool) -> None:
    text = f"  … {line.text} lines that are the same" if line.sign == "…" else f"{line.sign} {line.text}"
    shown = visible(text) if full else clipped(text, 160)
    say(Text(shown.replace("= ", "  ", 1) if line.sign == "=" else shown, style=_STYLES[line.sign]))


def _signed(value: int) -> str:
    return f"{value:+,}" if value else "="
