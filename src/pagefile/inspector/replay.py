"""Compare and replay: a recorded call under other settings, side by side with the original."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pagefile.engine import Memory
from pagefile.engine.replay import Replay, change_of, checked_from_afar
from pagefile.engine.snapshots import present_names
from pagefile.errors import BudgetError, SettingsError
from pagefile.inspector import ui, urls
from pagefile.inspector.bill import bill_bar, called, crumbs_of, inexact, left_out, question
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.prompt import Sources, candidate, sources_of
from pagefile.records import SNAPSHOT_KEY, JsonValue, WindowRecord
from pagefile.window.comparison import CandidateChange, DiffLine, bill

#: What the form offers; every other name that can be changed works in the query string.
OFFERED = (
    "window_tokens",
    "recent_turns",
    "threshold",
    "recall_max_share",
    "archive.threshold",
    "facts.max_injection_tokens",
    "facts.similarity_weight",
    "facts.confidence_weight",
)
CHOICES: Mapping[str, tuple[str, ...]] = {
    "placement": ("tail", "head"),
    "recall": ("auto", "always", "never"),
    "archive.strategy": ("model", "keyword", "similarity", "hybrid"),
    "facts.enabled": ("true", "false"),
}
_CHANGES_SHOWN = 200
_KINDS = {"entered": "in", "left": "gone", "form": "open", "block": "soft", "same": "soft"}
_SIGNS = {"=": "same", "-": "out", "+": "in", "…": "skip"}


@dataclass(frozen=True, slots=True)
class Compared:
    call: WindowRecord
    recorded: Mapping[str, JsonValue]
    changes: Mapping[str, str]
    replay: Replay | None
    #: Why there is no replay.
    refused: str | None
    sources: Sources = field(default_factory=Sources)


async def gather(memory: Memory, asked: PageRequest) -> Compared:
    call, chat = await called(memory, asked)
    moment = call.options.get(SNAPSHOT_KEY)
    settings = moment.get("settings") if isinstance(moment, Mapping) else None
    recorded = {name: value for name, value in call.options.items() if name != SNAPSHOT_KEY}
    recorded |= present_names(settings) if isinstance(settings, Mapping) else {}
    names = [name.removeprefix("set.") for name in asked.values if name.startswith("set.")]
    given = {name: text for name in names if (text := asked.text(f"set.{name}")) is not None}
    changes = {name: text for name, text in given.items() if text != _value_text(recorded.get(name))}
    if not given:
        return Compared(call, recorded, {}, None, None)
    try:
        values = {name: change_of(name, text) for name, text in changes.items()}
        replay = await chat.replay(call.id, **checked_from_afar(values))
    except (SettingsError, BudgetError) as error:
        return Compared(call, recorded, changes, None, str(error))
    sources = await sources_of(memory, chat.scope, replay.after.receipt, replay.before.receipt)
    return Compared(call, recorded, changes, replay, None, sources)


def _value_text(value: JsonValue) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value)


def show(data: Compared, reader: Reader) -> ui.View:
    say, call = reader.say, data.call
    if data.refused is not None:
        outcome: Content = ui.notice(data.refused, "bad")
    elif data.replay is not None:
        outcome = _comparison(data.replay, data.sources, reader)
    else:
        outcome = ui.soft(say("replay.hint"))
    above = reader.asked.to(urls.CALL, call_id=call.id), say("bill.heading")
    crumbs = *crumbs_of(call.scope.conversation or "", reader)[1:], above
    body = [ui.card(say("replay.change"), _form(data, reader)), outcome]
    return ui.View(say("replay.title"), body, lead=question(call, reader), crumbs=crumbs)


def _form(data: Compared, reader: Reader) -> Element:
    def number(name: str) -> Element:
        was, key = _value_text(data.recorded.get(name)), f"set.{name}"
        more = {"hint": reader.say("replay.was", was=was or "–"), "inputmode": "decimal"}
        return ui.field_of(reader, key, key, data.changes.get(name, was), **more, autocomplete="off")

    def choice(name: str, known: tuple[str, ...]) -> Element:
        now, key = data.changes.get(name, _value_text(data.recorded.get(name))), f"set.{name}"
        return ui.choice_of(reader, key, key, now, [(one, reader.say(f"{key}.{one}")) for one in known])

    choices = [choice(name, known) for name, known in CHOICES.items()]
    fields = el("div", [*map(number, OFFERED)], choices, class_="grid")
    reset = reader.link(urls.REPLAY, reader.say("replay.reset"), call_id=data.call.id)
    buttons = [ui.button(reader, "replay.go"), reset]
    return ui.asking_form(reader, "replay.change", fields, button=buttons, call_id=data.call.id)


def _comparison(replay: Replay, sources: Sources, reader: Reader) -> list[Content]:
    say, compared = reader.say, replay.comparison
    tokens = {"replay.before": compared.tokens_before, "replay.after": compared.tokens_after}
    difference = {"replay.difference": reader.signed(compared.difference)}
    values = {**tokens, **difference, "replay.changed": len(compared.changed)}
    sides = [
        el("div", el("h3", say(key)), bill_bar(window.receipt, bill(window.receipt), window.tokens, reader))
        for key, window in (("replay.before", replay.before), ("replay.after", replay.after))
    ]
    both = el("div", sides, class_="two")
    columns = {"bill.block": "row", **ui.numbers("replay.before", "replay.after", "replay.difference")}
    rows = [
        (ui.key_of(one.block, reader), one.before, one.after, reader.signed(one.difference))
        for one in compared.blocks
    ]
    blocks = ui.table(reader, say("replay.windows"), columns, rows, class_="bill")
    candidates = ui.card(say("replay.candidates"), _candidates(compared.changed, sources, reader))
    lines = [_line(line, reader) for line in compared.diff]
    diff = ui.scrolling(lines, say("replay.diff"), class_="diff")
    return [
        inexact(replay.exact, replay.why, reader),
        ui.notice(say("replay.same"), "good") if compared.same else None,
        ui.figures(reader, values),
        ui.card(say("replay.windows"), both, blocks),
        candidates if compared.changed else None,
        ui.card(say("replay.diff"), diff) if compared.diff else None,
    ]


def _candidates(changes: tuple[CandidateChange, ...], sources: Sources, reader: Reader) -> Element:
    about = {"bill.block": "when", "verdict.candidate": "row clip", "replay.what": ""}
    columns = {**about, **ui.numbers("replay.difference"), "verdict.reason": "reason"}

    def row(one: CandidateChange) -> tuple[ui.Value, ...]:
        kind = ui.badge(reader.say(f"change.{one.change}"), _KINDS[one.change])
        reason = reader.reason(one.after.reason) if one.after else reader.say("replay.not_offered")
        name = candidate(one.verdict, sources, reader)
        return ui.key_of(one.block, reader), name, kind, reader.signed(one.difference), reason

    rows = [row(one) for one in changes[:_CHANGES_SHOWN]]
    made = ui.table(reader, reader.say("replay.candidates"), columns, rows, class_="verdicts")
    return el("div", made, left_out(len(changes) - len(rows), reader))


def _line(line: DiffLine, reader: Reader) -> Element:
    kind = _SIGNS[line.sign]
    sign = el("span", {"=": " ", "…": "⋯"}.get(line.sign, line.sign), aria_hidden="true", class_="sign")
    spoken = el("span", reader.say(f"diff.{kind}"), class_="unseen") if line.sign in "+-" else None
    text = reader.say("diff.left_out", n=line.text) if line.sign == "…" else line.text
    return el("div", sign, spoken, text, class_=f"d-{kind}")
