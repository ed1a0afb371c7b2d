"""`calls`, `explain` and `replay`: recorded windows, why they were built as they were, and how other settings would change them."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from pagefile.cli.context import show_messages, show_receipt
from pagefile.cli.ids import LEAST_CHARS, telling_chars
from pagefile.cli.invocation import Invocation, command
from pagefile.cli.opening import existing, whose
from pagefile.cli.options import Full, UserId
from pagefile.cli.output import (
    bar,
    clipped,
    moment,
    number,
    print_table,
    say,
    table,
    visible,
    warn,
)
from pagefile.engine import Conversation, Memory
from pagefile.engine.explaining import Explanation
from pagefile.engine.replaying import CHANGEABLE, Replay, change_of
from pagefile.errors import NotFoundError, SettingsError
from pagefile.plain import plain
from pagefile.records import Call, JsonValue, Listing, Scope
from pagefile.window.comparing import CandidateChange, Comparison, DiffLine

#: Diff lines shown unless all are requested.
_DIFF_LINES = 60
#: Calls held in memory at a time.
_SLICE = 200
_STYLES = {"-": "red", "+": "green", "=": "", "…": "dim"}

CallId = Annotated[
    str,
    typer.Argument(
        help="A recorded call, or the beginning of its id; `pagefile calls CONVERSATION` lists them."
    ),
]


@command()
def calls(
    cli: Invocation,
    conversation: Annotated[str, typer.Argument(help="The conversation.")],
    *,
    user_id: UserId = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = 20,
) -> None:
    """List the windows that were handed out lately, newest first."""

    async def work(memory: Memory) -> Listing[Call]:
        # A window may be requested before anything is written: then there are calls, but no conversation.
        listed = await (await whose(memory, conversation, user_id, cli.tenant)).calls(limit=limit)
        if not listed:
            await existing(memory, conversation, user_id, cli.tenant)
        return listed

    found = cli.run(work)
    cli.answer(
        found,
        lambda: _show_calls(found, limit),
        found=found,
        missing=f"No window of {conversation!r} was recorded: `chat.context()` records one, unless calls_kept is 0.",
    )


def _show_calls(found: Listing[Call], limit: int) -> None:
    made = table("call", "made", "tokens", "of", "question", right=("tokens", "of"))
    chars = telling_chars([call.id for call in found])
    for call in found:
        budget = call.options.get("window_tokens")
        made.add_row(
            visible(call.id[:chars]),
            moment(call.at),
            number(call.tokens),
            number(budget) if isinstance(budget, int) else "",
            clipped(call.query or "", 80),
        )
    print_table(made)
    if found.next:
        say(f"\nThere are more: --limit {limit * 10} shows them.")
    say(f"\npagefile explain {visible(found[0].id[:chars])}  shows what the model saw.")


@command()
def explain(
    cli: Invocation,
    call: CallId,
    *,
    messages: Annotated[
        bool, typer.Option("--messages", help="Print the messages as they were sent.")
    ] = False,
    full: Full = False,
) -> None:
    """Show what the model saw in a recorded call, and why. Nothing is written."""

    async def work(memory: Memory) -> Explanation:
        one = await _named(memory, call, cli.tenant)
        return await (await _chat(memory, one)).explain(one.id)

    found = cli.run(work)

    def shown() -> None:
        _show_call(found.call)
        if messages:
            show_messages(found.messages, full=full)
        show_receipt(found.receipt, full=full)
        _show_bill(found)

    cli.answer(_explanation_json(found), shown)


@command()
def replay(
    cli: Invocation,
    call: CallId,
    *,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="What is changed; may be given again."),
    ] = None,
    full: Full = False,
) -> None:
    """Make the window of a recorded call again with other settings, and show the difference. Nothing is written.

    For instance: --set window_tokens=4000 --set recall=never --set archive.threshold=50000
    """
    wanted = dict(_change(change) for change in changes or ())

    async def work(memory: Memory) -> Replay:
        one = await _named(memory, call, cli.tenant)
        return await (await _chat(memory, one)).replay(one.id, **wanted)

    found = cli.run(work)
    cli.answer(_replay_json(found), lambda: _show_replay(found, full=full))


async def _named(memory: Memory, name: str, tenant: str | None) -> Call:
    """A recorded call by its id, or by a prefix as listed by `calls`."""
    try:
        return await memory.call(name, tenant=tenant)
    except NotFoundError:
        found = await _beginning(memory, name, tenant) if len(name) >= LEAST_CHARS else []
        if len(found) > 1:
            told = " and ".join(call.id for call in found)
            raise SettingsError(f"{name!r} is the beginning of more than one call: {told}.") from None
        if not found:
            raise
        return found[0]


async def _beginning(memory: Memory, name: str, tenant: str | None) -> list[Call]:
    """At most two calls whose ids have this prefix."""
    found: list[Call] = []
    scope = Scope() if tenant is None else Scope(tenant)
    after: str | None = None
    while len(found) < 2 and (
        calls := await memory.engine.store.calls.list(scope, limit=_SLICE, after=after)
    ):
        found += [call for call in calls if call.id.startswith(name)]
        after = calls[-1].id
    return found[:2]


async def _chat(memory: Memory, call: Call) -> Conversation:
    return await whose(memory, call.scope.conversation or "", call.scope.user, call.scope.tenant)


def _change(given: str) -> tuple[str, JsonValue]:
    name, equals, value = given.partition("=")
    name = name.strip()
    if not equals or not name:
        raise SettingsError(
            f"--set {given!r} is not NAME=VALUE: write for instance --set window_tokens=4000. "
            f"What can be set: {', '.join(CHANGEABLE)}."
        )
    return name, change_of(name, value.strip())


# -- for people ------------------------------------------------------------------------------------------------------------


def _show_call(call: Call) -> None:
    say(f"Call {call.id} of {clipped(call.scope.conversation or '')}, {moment(call.at)}")
    if call.query:
        say(f"Question: {clipped(call.query, 200)}")
    say()


def _show_replay(found: Replay, *, full: bool) -> None:
    _show_call(found.call)
    _show_exactness(exact=found.exact, why=found.why)
    changes = ", ".join(f"{name}={value}" for name, value in found.changes.items())
    say(f"changed: {changes or 'nothing'}\n")
    _show_comparison(found.comparison, full=full)


def _show_bill(found: Explanation) -> None:
    call, receipt = found.call, found.receipt
    made = table(
        "block", "tokens", "share", "kept", "left out", "", right=("tokens", "share", "kept", "left out")
    )
    for block in found.blocks:
        share = block.tokens / receipt.budget
        made.add_row(
            block.block,
            number(block.tokens),
            f"{share:.1%}",
            number(block.kept),
            number(block.dropped),
            bar(share, 20) if block.tokens else "",
        )
    made.add_row("framing", number(receipt.framing), f"{receipt.framing / receipt.budget:.1%}", "", "", "")
    say()
    print_table(made)
    counted = receipt.counter if receipt.exact else f"{receipt.counter}, not exact"
    say(
        f"\n{number(call.tokens)} of {number(receipt.budget)} tokens ({counted}) · mode {call.mode} · ratio {call.ratio:.2f}"
    )
    if found.tokens_without is not None:
        saved = 1 - call.tokens / found.tokens_without if found.tokens_without else 0.0
        told = f", {saved:.0%} saved" if saved > 0 else ""
        say(f"without Pagefile: {number(found.tokens_without)} tokens{told}")
    if found.previous is None:
        say(f"prefix {call.prefix_hash[:12]} · the first call that is kept")
    else:
        say(
            f"prefix {call.prefix_hash[:12]} · unchanged since call {found.previous}: "
            f"{number(found.shared_messages)} messages, {number(found.shared_tokens)} tokens"
        )
    _show_exactness(exact=found.exact, why=found.why)


def _show_exactness(*, exact: bool, why: Sequence[str]) -> None:
    if exact:
        say("made again from the log, byte for byte")
        return
    for reason in why:
        warn(f"not what was sent: {reason}")


def _show_comparison(found: Comparison, *, full: bool) -> None:
    made = table("block", "before", "after", "difference", right=("before", "after", "difference"))
    for block in found.blocks:
        made.add_row(block.block, number(block.before), number(block.after), _signed(block.difference))
    made.add_section()
    made.add_row("in all", number(found.tokens_before), number(found.tokens_after), _signed(found.difference))
    print_table(made)
    if found.same:
        say("\nBoth windows are the same.")
        return
    say()
    _show_changes(found.changed)
    say()
    lines = found.diff if full else found.diff[:_DIFF_LINES]
    for line in lines:
        _show_line(line, full=full)
    if len(lines) < len(found.diff):
        say(f"\n{number(len(found.diff) - len(lines))} more lines differ or stand near: --full shows them.")


def _show_changes(changes: Sequence[CandidateChange]) -> None:
    made = table("change", "block", "id", "tokens", "why", right=("tokens",))
    for one in changes:
        verdict = one.after or one.before
        forms = " → ".join(found.form for found in (one.before, one.after) if found and found.form)
        why = "no longer offered" if one.after is None else verdict.reason if verdict else ""
        made.add_row(
            one.change if one.change != "form" else forms,
            one.block,
            clipped(one.id, 20),
            _signed(one.difference),
            visible(why),
        )
    print_table(made)


def _show_line(line: DiffLine, *, full: bool) -> None:
    text = f"  … {line.text} lines that are the same" if line.sign == "…" else f"{line.sign} {line.text}"
    shown = visible(text) if full else clipped(text, 160)
    say(Text(shown.replace("= ", "  ", 1) if line.sign == "=" else shown, style=_STYLES[line.sign]))


def _signed(value: int) -> str:
    return f"{value:+,}" if value else "="


# -- for scripts -----------------------------------------------------------------------------------------------------------


def _explanation_json(found: Explanation) -> dict[str, object]:
    return {
        "call": found.call,
        "blocks": found.blocks,
        "framing": found.receipt.framing,
        "verdicts": found.receipt.verdicts,
        "degraded": found.receipt.degraded,
        "messages": found.messages,
        "exact": found.exact,
        "why": found.why,
        "previous": found.previous,
        "shared_messages": found.shared_messages,
        "shared_tokens": found.shared_tokens,
        "tokens_without": found.tokens_without,
    }


def _replay_json(found: Replay) -> dict[str, object]:
    return {
        "call": found.call,
        "changes": found.changes,
        "exact": found.exact,
        "why": found.why,
        "before": found.before,
        "after": found.after,
        "tokens": {"before": found.before.tokens, "after": found.after.tokens},
        "blocks": [
            {"block": one.block, "before": one.before, "after": one.after, "difference": one.difference}
            for one in found.comparison.blocks
        ],
        "changed": [
            {
                "id": one.id,
                "change": one.change,
                "block": one.block,
                "before": plain(one.before),
                "after": plain(one.after),
            }
            for one in found.comparison.changed
        ],
        "diff": found.comparison.diff,
    }
