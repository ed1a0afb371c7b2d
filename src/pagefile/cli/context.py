"""`context`: the window a model would get now, with the receipt that explains it."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Annotated

import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.opening import existing, run
from pagefile.cli.options import Full, UserId
from pagefile.cli.output import bar, clipped, number, print_table, say, table, visible, warn
from pagefile.engine import Memory
from pagefile.window.candidates import Message
from pagefile.window.parts import parts_json
from pagefile.window.receipt import Receipt, Verdict, Window

#: Longer runs of turns with the same outcome are shown by their first and last.
_RUN = 6


@command()
def context(
    cli: Invocation,
    conversation: Annotated[str, typer.Argument(help="The conversation.")],
    query: Annotated[str | None, typer.Argument(help="What the user says next.")] = None,
    *,
    window_tokens: Annotated[int | None, typer.Option(help="The budget of the window.")] = None,
    window_for: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Whose context size is the budget, such as gpt-5.")
    ] = None,
    answer_tokens: Annotated[int | None, typer.Option(help="Room left free for the answer.")] = None,
    threshold: Annotated[float | None, typer.Option(help="From which share on a checkpoint is due.")] = None,
    recent_turns: Annotated[int | None, typer.Option(help="How many turns count as recent.")] = None,
    placement: Annotated[str | None, typer.Option(metavar="tail|head", help="Where memory stands.")] = None,
    instructions: Annotated[str | None, typer.Option(help="The system prompt; never cut.")] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(metavar="UUID", help="Show this archived page in full; may be given again."),
    ] = None,
    user_id: UserId = None,
    full: Full = False,
) -> None:
    """Print the window for the next model call and its receipt. Nothing is written."""
    said: dict[str, object] = {
        "window_tokens": window_tokens,
        "threshold": threshold,
        "recent_turns": recent_turns,
        "placement": placement,
        "calls_kept": 0,  # an inspection is not recorded as a call
    }

    async def work(memory: Memory) -> Window:
        chat = await existing(memory, conversation, user_id, cli.tenant)
        return await chat.context(
            query,
            window_tokens=window_tokens,
            window_for=window_for,
            answer_tokens=answer_tokens,
            instructions=instructions,
            load=load or (),
        )

    window = run(cli.loaded(said).settings, work)
    cli.answer(_window_json(window), lambda: _show(window, full=full))


def _show(window: Window, *, full: bool) -> None:
    show_messages(window.messages, full=full)
    show_receipt(window.receipt, full=full)
    _show_totals(window)


def _window_json(window: Window) -> dict[str, object]:
    # Nothing is recorded, so it has no id.
    known = {one.name: getattr(window, one.name) for one in fields(window) if one.name != "id"}
    return {**known, "parts": parts_json(window.parts), "receipt": window.receipt.to_json()}


def show_messages(messages: Sequence[Message], *, full: bool) -> None:
    """The messages a model gets, one row each."""
    made = table("role", "content")
    for message in messages:
        content = str(message.get("content") or "")
        calls = "" if not message.get("tool_calls") else f"[calls tools] {message['tool_calls']}"
        text = " ".join(part for part in (content, calls) if part)
        made.add_row(str(message["role"]), visible(text, lines=True) if full else clipped(text, 200))
    print_table(made)
    say()


def show_receipt(receipt: Receipt, *, full: bool) -> None:
    """Every candidate, kept or dropped, and why."""
    made = table("block", "id", "kept", "form", "tokens", "score", "reason", right=("tokens", "score"))
    for row in _rows(receipt.verdicts, full=full):
        made.add_row(*row)
    print_table(made)
    for note in receipt.degraded:
        warn(note)


def _rows(verdicts: Sequence[Verdict], *, full: bool) -> Iterator[tuple[str, ...]]:
    for _, group in groupby(
        verdicts, key=lambda verdict: (verdict.block, verdict.kept, verdict.form, verdict.reason)
    ):
        alike = list(group)
        if full or len(alike) <= _RUN:
            yield from (_row(verdict) for verdict in alike)
            continue
        yield _row(alike[0])
        between = alike[1:-1]
        tokens = sum(verdict.tokens for verdict in between)
        yield ("", f"… {len(between)} more", "", "", number(tokens), "", "")
        yield _row(alike[-1])


def _row(verdict: Verdict) -> tuple[str, ...]:
    score = "" if verdict.score is None else f"{verdict.score:.2f}"
    kept = "yes" if verdict.kept else "no"
    name = clipped(verdict.id, 14)
    return (
        verdict.block,
        name,
        kept,
        verdict.form or "",
        number(verdict.tokens),
        score,
        visible(f"{verdict.reason} ({verdict.note})" if verdict.note else verdict.reason),
    )


def _show_totals(window: Window) -> None:
    receipt, share = window.receipt, window.tokens / window.budget
    parts = [f"{block} {number(tokens)}" for block, tokens in receipt.tokens_by_block().items()]
    counted = receipt.counter if receipt.exact else f"{receipt.counter}, not exact"
    say()
    say(f"{bar(share)} {share:.0%}")
    say(f"{number(window.tokens)} of {number(window.budget)} tokens ({counted})")
    say(" · ".join([*parts, f"framing {number(receipt.framing)}"]))
    if receipt.reserved:
        kept = " · ".join(f"{kind} {number(tokens)}" for kind, tokens in receipt.reserved.items())
        say(f"reserved: {kept}")
    due = ", a checkpoint is due" if window.should_checkpoint else ""
    say(f"mode {window.mode} · ratio {window.ratio:.2f}{due} · prefix {window.prefix_hash[:12]}")
    say(f"kept {len(receipt.kept)}, left out {len(receipt.dropped)}")
