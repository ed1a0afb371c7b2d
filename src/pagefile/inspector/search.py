"""Search over everything that was said, and over the notes about it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.engine.annotations import Note, search_notes
from pagefile.engine.turn_search import FoundTurn, FoundTurns, TurnQuery, search_turns
from pagefile.inspector import ui, urls
from pagefile.inspector.conversations import link_to
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.recall import known_users
from pagefile.records import DEFAULT_TENANT, Turn

_PER_PAGE, _NOTES = 20, 20
#: Characters of a snippet, and how many of them come before the first match.
_SNIPPET, _LEAD = 360, 90
_FILTERS = ("q", "agent", "tool", "label", "since", "until")


@dataclass(frozen=True, slots=True)
class Searched:
    #: None if nothing was asked for.
    found: FoundTurns | None
    notes: tuple[Note, ...]
    users: tuple[str, ...]


async def gather(memory: Memory, asked: PageRequest) -> Searched:
    users = await known_users(memory, asked)
    if not any(asked.text(name) for name in _FILTERS) and asked.user_id is None:
        return Searched(None, (), users)
    words, label = asked.text("q") or "", asked.text("label")
    notes: list[Note] = []
    if (label or words) and asked.text("after") is None:
        notes = await search_notes(
            memory,
            tenant=asked.tenant or DEFAULT_TENANT,
            user_id=asked.user_id,
            words=words.split(),
            label=label,
            limit=_NOTES,
        )
    # A label is on a note, not in what was said.
    if label:
        return Searched(FoundTurns((), 0, None), tuple(notes), users)
    query = TurnQuery(
        words,
        asked.user_id,
        asked.conversation_id,
        asked.text("agent"),
        asked.text("tool"),
        asked.day("since"),
        asked.day("until", after=True),
    )
    found = await search_turns(memory, query, tenant=asked.tenant, limit=_PER_PAGE, after=asked.text("after"))
    return Searched(found, tuple(notes), users)


def show(data: Searched, reader: Reader) -> ui.View:
    say = reader.say
    body: list[Content] = [_form(data, reader)]
    if data.found is None:
        body.append(ui.empty(say("search.ask"), say("search.ask_about")))
    else:
        body += [_notes(data, reader), _found(data.found, reader, alone=not data.notes)]
    return ui.View(say("nav.search"), body, lead=say("search.lead"))


def _form(data: Searched, reader: Reader) -> Element:
    asked = reader.asked
    fields = [
        ui.search_field(reader, "search.words", asked.text("q")),
        ui.user_field(reader, data.users),
        ui.field_of(reader, "search.agent", "agent", asked.text("agent")),
        ui.field_of(reader, "search.tool", "tool", asked.text("tool")),
        ui.field_of(reader, "search.label", "label", asked.text("label")),
        ui.field_of(reader, "search.since", "since", asked.text("since"), kind="date"),
        ui.field_of(reader, "search.until", "until", asked.text("until"), kind="date"),
    ]
    sent = {"conversation_id": asked.conversation_id}
    return ui.asking_form(reader, "nav.search", *fields, button=ui.button(reader, "ask.search"), **sent)


def _found(found: FoundTurns, reader: Reader, *, alone: bool) -> Content:
    say, asked = reader.say, reader.asked
    if not found.turns and not found.searched:
        return ui.empty(say("search.nothing")) if alone else None
    looked = ui.soft(say("search.looked_at", n=reader.number(found.searched)))
    onward = None
    if found.next is not None:
        place = asked.here(urls.SEARCH, **{**asked.query, "after": found.next})
        onward = el("p", el("a", say("search.continue"), href=place, rel="next"), class_="more")
    words = (asked.text("q") or "").split()
    hits = [_hit(one, words, reader) for one in found.turns]
    listed = el("ol", hits, class_="hits plain") if hits else ui.empty(say("search.nothing"))
    return ui.card(say("search.said"), listed, looked, onward)


def _hit(one: FoundTurn, words: Sequence[str], reader: Reader) -> Element:
    turn, head = one.turn, one.head
    link = reader.turn(f"{ui.short(turn.scope.conversation or '')} #{turn.seq}", turn.id, turn.scope)
    who = ui.some("span", turn.scope.user, class_="who")
    agent = ui.some("span", head.agent, class_="tag")
    tools = [el("code", tool, class_="tag") for tool in dict.fromkeys(step.tool for step in turn.steps)]
    line = el("p", link, " ", who, agent, tools[:6], " ", reader.time(turn.at, exact=True))
    return el("li", line, el("blockquote", marked(_said(turn, words), words)))


def _said(turn: Turn, words: Sequence[str]) -> str:
    """The side of a turn in which most of the words are."""
    # A snippet has few lines: a result that is indented over many, such as JSON, would hide its match.
    results = (" ".join(f"{step.tool}: {step.result}".split()) for step in turn.steps)
    return max([turn.text, *results], key=lambda side: sum(word.lower() in side.lower() for word in words))


def marked(text: str, words: Sequence[str]) -> list[Content]:
    """The part of a text around the first match, with every match marked."""
    pattern = "|".join(re.escape(word) for word in words)
    first = re.search(pattern, text, re.IGNORECASE) if words else None
    start = 0 if first is None else max(0, first.start() - _LEAD)
    part = text[start : start + _SNIPPET]
    made: list[Content] = ["…"] if start else []
    at = 0
    for match in re.finditer(pattern, part, re.IGNORECASE) if words else ():
        made += [part[at : match.start()], el("mark", match.group())]
        at = match.end()
    made.append(part[at:])
    return [*made, "…"] if len(text) > start + _SNIPPET else made


# -- notes -----------------------------------------------------------------------------------------------------------------


def _notes(data: Searched, reader: Reader) -> Content:
    if not data.notes:
        return None
    items = [_note(note, reader) for note in data.notes]
    return ui.card(reader.say("search.notes"), el("ul", items, class_="hits plain"))


def _note(note: Note, reader: Reader) -> Element:
    if note.subject == "turn":
        link = reader.turn(reader.say("note.of_turn"), note.id, note.scope)
    else:
        link = reader.link(urls.CALL, reader.say("note.of_call"), call_id=note.id)
    chat = link_to(urls.CONVERSATION, note.scope, reader)
    line = el("p", link, " · ", chat, " ", labels_of(note), " ", reader.time(note.at))
    return el("li", line, ui.some("blockquote", note.text))


def labels_of(note: Note | None) -> Content:
    return None if note is None else [ui.badge(label, "label") for label in note.labels]


def note_form(reader: Reader, note: Note | None, subject: str, subject_id: str) -> Element:
    """What somebody thinks of a turn or a call; sending it empty removes it."""
    labels, text = (", ".join(note.labels), note.text) if note else ("", "")
    inside = [
        ui.field_of(reader, "note.labels", "labels", labels, hint=reader.say("note.labels_about")),
        ui.text_field(reader, "note.text", "text", text, required=False, maxlength=4000),
        ui.button(reader, "note.save", None),
    ]
    place = reader.asked.here(urls.NOTE)
    made = ui.form(reader, place, *inside, class_="stacked-form", subject=subject, id=subject_id)
    opened = note is not None
    return ui.card(
        reader.say("note.title"),
        el("details", el("summary", reader.say("note.open" if opened else "note.add")), made, open=opened),
    )
