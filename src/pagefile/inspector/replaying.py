"""Compare and replay: a recorded call under other settings, side by side with the original."""

from collections.abc import Mapping
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.engine.replaying import Replay, change_of, checked_from_afar
from pagefile.errors import BudgetError, SettingsError
from pagefile.inspector import places
from pagefile.inspector.asking import Asked
from pagefile.inspector.bill import bill_bar, called
from pagefile.inspector.frame import (
    View,
    asking_form,
    card,
    choice_of,
    columns,
    field_of,
    figures,
    notice,
    num,
    numbers,
    table,
)
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge
from pagefile.inspector.reader import Reader
from pagefile.inspector.reasons import reason
from pagefile.records import Call, JsonValue
from pagefile.window.comparing import BlockChange, CandidateChange, DiffLine, bill

#: What the form offers; every other name that can be changed works in the query string.
_OFFERED = (
    "window_tokens",
    "recent_turns",
    "threshold",
    "recall_turns",
    "archive.threshold",
    "memory.max_injection_tokens",
    "memory.similarity_weight",
    "memory.confidence_weight",
)
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "placement": ("tail", "head"),
    "recall": ("auto", "always", "never"),
    "archive.strategy": ("model", "keyword", "similarity", "hybrid"),
    "memory.enabled": ("true", "false"),
}
_CHANGES_SHOWN = 200
_SIGNS = {"=": "same", "-": "out", "+": "in", "…": "skip"}


@dataclass(frozen=True, slots=True)
class Compared:
    """A call, its options and settings, and the replay if anything was changed."""

    call: Call
    recorded: Mapping[str, JsonValue]
    changes: Mapping[str, str]
    replay: Replay | None
    #: Why there is no replay.
    refused: str | None


async def gather(memory: Memory, asked: Asked) -> Compared:
    """Replay the call with the settings of the query string."""
    call, chat = await called(memory, asked)
    recorded = _recorded(call)
    names = [name.removeprefix("set.") for name in asked.values if name.startswith("set.")]
    given = {name: text for name in names if (text := asked.text(f"set.{name}")) is not None}
    changes = {name: text for name, text in given.items() if text != _shown(recorded.get(name))}
    if not changes and not given:
        return Compared(call, recorded, {}, None, None)
    try:
        values = {name: change_of(name, text) for name, text in changes.items()}
        replay = await chat.replay(call.id, **checked_from_afar(values))
    except (SettingsError, BudgetError) as error:
        return Compared(call, recorded, changes, None, str(error))
    return Compared(call, recorded, changes, replay, None)


def _recorded(call: Call) -> dict[str, JsonValue]:
    moment = call.options.get("moment")
    settings = moment.get("settings") if isinstance(moment, Mapping) else None
    plain = {name: value for name, value in call.options.items() if name != "moment"}
    return {**plain, **settings} if isinstance(settings, Mapping) else plain


def _shown(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value)) if abs(value) > 1 else f"{value:g}"
        case _:
            return str(value)


def show(data: Compared, reader: Reader) -> View:
    """The form, and both windows side by side."""
    say, asked = reader.say, reader.asked
    body: list[Content] = [card(_form(data, reader), title=say("replay.change"))]
    if data.refused is not None:
        body.append(notice(data.refused, "bad"))
    if data.replay is not None:
        body += _comparison(data.replay, reader)
    elif data.refused is None:
        body.append(el("p", say("replay.hint"), class_="soft"))
    name = data.call.scope.conversation or ""
    crumbs = (
        (asked.here(places.CONVERSATION), name),
        (asked.here(places.CALLS), say("tab.calls")),
        (asked.to(places.CALL, call_id=data.call.id), say("bill.heading")),
    )
    query = {"call_id": data.call.id, **{f"set.{name}": text for name, text in data.changes.items()}}
    lead = el("q", data.call.query) if data.call.query else say("calls.turn")
    return View(say("replay.title"), body, lead=lead, crumbs=crumbs, tabs=True, query=query)


def _form(data: Compared, reader: Reader) -> Element:
    say = reader.say

    def now(name: str) -> str:
        return data.changes.get(name, _shown(data.recorded.get(name)))

    numbers = [
        field_of(
            say(f"set.{name}"),
            f"set.{name}",
            now(name),
            inputmode="decimal",
            autocomplete="off",
            hint=say("replay.was", was=_shown(data.recorded.get(name)) or "–"),
        )
        for name in _OFFERED
    ]
    choices = [
        choice_of(
            say(f"set.{name}"), f"set.{name}", now(name), [(one, say(f"set.{name}.{one}")) for one in known]
        )
        for name, known in _CHOICES.items()
    ]
    return asking_form(
        places.REPLAY,
        el("div", numbers, choices, class_="grid"),
        el("button", say("replay.go"), class_="primary"),
        el("a", say("replay.reset"), href=reader.asked.to(places.REPLAY, call_id=data.call.id)),
        hidden={"call_id": data.call.id, "tenant": reader.asked.tenant},
        label=say("replay.change"),
    )


def _comparison(replay: Replay, reader: Reader) -> list[Content]:
    say, number, compared = reader.say, reader.number, replay.comparison
    told = figures(
        (say("replay.before"), number(compared.tokens_before)),
        (say("replay.after"), number(compared.tokens_after)),
        (say("replay.difference"), reader.signed(compared.difference)),
        (say("replay.changed"), number(len(compared.changed))),
    )
    sides = [
        el("div", el("h3", say(key)), bill_bar(window.receipt, bill(window.receipt), window.tokens, reader))
        for key, window in (("replay.before", replay.before), ("replay.after", replay.after))
    ]
    inexact = None if replay.exact else notice([say("bill.inexact"), " ", " ".join(replay.why)])
    same = notice(say("replay.same"), "good") if compared.same else None
    return [
        inexact,
        same,
        told,
        card(el("div", sides, class_="two"), _blocks(compared.blocks, reader), title=say("replay.windows")),
        card(_candidates(compared.changed, reader), title=say("replay.candidates"))
        if compared.changed
        else None,
        card(_diff(compared.diff, reader), title=say("replay.diff")) if compared.diff else None,
    ]


def _blocks(changes: tuple[BlockChange, ...], reader: Reader) -> Element:
    say, number = reader.say, reader.number
    head = columns(reader, "bill.block", *numbers("replay.before", "replay.after", "replay.difference"))
    rows: list[Content] = [
        el(
            "tr",
            el("th", el("span", class_=f"key b-{one.block}"), say(f"block.{one.block}"), scope="row"),
            num(number(one.before)),
            num(number(one.after)),
            num(reader.signed(one.difference)),
        )
        for one in changes
    ]
    return table(head, rows, caption=say("replay.windows"), class_="bill")


def _candidates(changes: tuple[CandidateChange, ...], reader: Reader) -> Element:
    say = reader.say
    kinds = {"entered": "in", "left": "gone", "form": "open", "block": "soft", "same": "soft"}
    head = columns(
        reader,
        "bill.block",
        "verdict.candidate",
        "replay.what",
        *numbers("replay.difference"),
        "verdict.reason",
    )
    rows: list[Content] = [
        el(
            "tr",
            el("td", el("span", class_=f"key b-{one.block}"), say(f"block.{one.block}"), class_="when"),
            el("th", el("code", one.id), scope="row", class_="clip"),
            el("td", badge(say(f"change.{one.change}"), kinds[one.change])),
            num(reader.signed(one.difference)),
            el(
                "td",
                reason(one.after.reason, reader) if one.after is not None else say("replay.not_offered"),
                class_="reason",
            ),
        )
        for one in changes[:_CHANGES_SHOWN]
    ]
    more = (
        el("p", say("verdict.more", n=len(changes) - _CHANGES_SHOWN), class_="soft")
        if len(changes) > _CHANGES_SHOWN
        else None
    )
    return el("div", table(head, rows, caption=say("replay.candidates"), class_="verdicts"), more)


def _diff(lines: tuple[DiffLine, ...], reader: Reader) -> Element:
    shown = [
        el(
            "div",
            el("span", {"=": " ", "…": "⋯"}.get(line.sign, line.sign), aria_hidden="true", class_="sign"),
            el("span", reader.say(f"diff.{_SIGNS[line.sign]}"), class_="unseen")
            if line.sign in "+-"
            else None,
            reader.say("diff.left_out", n=line.text) if line.sign == "…" else line.text,
            class_=f"d-{_SIGNS[line.sign]}",
        )
        for line in lines
    ]
    return el("div", shown, class_="diff", tabindex="0", role="region", aria_label=reader.say("replay.diff"))
