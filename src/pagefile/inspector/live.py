"""A live tail: the newest turns, windows and checkpoints of every conversation, as they come."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from pagefile.engine import Memory
from pagefile.inspector import ui, urls
from pagefile.inspector.conversations import chat_in, link_to
from pagefile.inspector.markup import Content, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.trace import mode_name
from pagefile.records import Checkpoint, Reset, Scope, Turn, WindowRecord

#: Conversations that are followed, entries and windows of each, and how many are shown in all.
_FOLLOWED, _ENTRIES, _CALLS, _SHOWN = 12, 8, 8, 60
_REFRESH_S = 3
_SNIPPET = 160

Kind: TypeAlias = Literal["turn", "window", "checkpoint", "reset"]


@dataclass(frozen=True, slots=True)
class Event:
    at: datetime
    kind: Kind
    #: The conversation, with its owner.
    scope: Scope
    #: The id of the turn, the call, the checkpoint or the reset.
    id: str
    status: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Live:
    events: tuple[Event, ...]


async def gather(memory: Memory, asked: PageRequest) -> Live:
    found: list[Event] = []
    for head in await memory.conversations(**asked.owner, limit=_FOLLOWED):
        chat = chat_in(memory, head.scope)
        found += [_entry(entry, head.scope) for entry in await chat.log(limit=_ENTRIES, newest=True)]
        found += [_window(call, head.scope) for call in await chat.calls(limit=_CALLS)]
    return Live(tuple(sorted(found, key=lambda event: event.at, reverse=True)[:_SHOWN]))


def _entry(entry: Turn | Checkpoint | Reset, scope: Scope) -> Event:
    match entry:
        case Turn():
            text = " ".join((entry.user or entry.assistant or "").split())[:_SNIPPET]
            return Event(entry.created, "turn", scope, entry.id, entry.status, text, entry.tokens)
        case Checkpoint():
            text = " ".join(entry.summary.split())[:_SNIPPET]
            return Event(entry.created, "checkpoint", scope, entry.id, "done", text, entry.tokens)
        case Reset():
            return Event(entry.created, "reset", scope, entry.id, "done", "", 0)


def _window(call: WindowRecord, scope: Scope) -> Event:
    text = " ".join((call.query or "").split())[:_SNIPPET]
    return Event(call.at, "window", scope, call.id, call.mode, text, call.tokens)


def show(data: Live, reader: Reader) -> ui.View:
    say, asked, paused = reader.say, reader.asked, reader.asked.flag("paused")
    other = asked.here(reader.path, **{**asked.query, "paused": None if paused else "yes"})
    switch = el("a", say("traffic.resume" if paused else "traffic.pause"), href=other)
    user = ui.user_field(reader)
    choose = None
    if user is not None:
        choose = ui.asking_form(reader, "nav.live", user, button=ui.button(reader, "ask.show", None))
    columns = {"archive.when": "when", "live.what": "when", "live.text": "row", "conv.conversation": "reason"}
    rows = [_row(event, reader) for event in data.events]
    columns |= ui.numbers("calls.tokens")
    table = ui.table(reader, say("nav.live"), columns, rows, class_="roomy")
    found = ui.card(None, table) if rows else ui.empty(say("conv.none"))
    lead = [say("live.paused" if paused else "live.lead"), " ", switch]
    return ui.View(say("nav.live"), [choose, found], lead=lead, refresh_s=None if paused else _REFRESH_S)


def _row(event: Event, reader: Reader) -> tuple[ui.Value, ...]:
    kind: Content = ui.badge(
        reader.say(f"live.{event.kind}"), {"window": "in", "turn": "kept"}.get(event.kind, "open")
    )
    if event.kind == "turn" and event.status != "done":
        kind = [kind, " ", ui.badge(reader.say(f"live.{event.status}"), "open")]
    text: Content = event.text or "–"
    if event.kind == "turn":
        text = reader.turn(text, event.id, event.scope)
    elif event.kind == "window":
        words = event.text or mode_name(event.status, reader)
        text = reader.link(urls.CALL, words, call_id=event.id)
    name = [
        link_to(urls.CONVERSATION, event.scope, reader),
        " ",
        ui.some("span", event.scope.user, class_="who"),
    ]
    return event.at, kind, text, name, event.tokens or "–"
