"""One conversation from beginning to end: turns, tool results, checkpoints, resets, aborted turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import cast

from pagefile.engine import Conversation, Memory
from pagefile.inspector import ui, urls
from pagefile.inspector.archive import Opened, opened
from pagefile.inspector.charts import level
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.records import Checkpoint, ConversationInfo, Entry, Reset, Step, Turn, WindowRecord
from pagefile.text.extract import says_anchors
from pagefile.text.sentences import cut
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.placeholder import loaded_chars

#: Log entries per page.
PER_PAGE = 40
#: How many entries back to search for the checkpoint before a slice.
LOOK_BACK = 400
_ANCHORS_SHOWN = 60
#: How much of what was said first is the title of a conversation that nobody named.
_TITLE_CHARS = 80
_STATES = {"aborted": ("entry.aborted", "bad"), "open": ("entry.open", "open")}


@dataclass(frozen=True, slots=True)
class Anchors:
    """What became of the exact strings that a checkpoint must preserve."""

    in_summary: tuple[str, ...] = ()
    #: Missing from the summary's text: carried alongside it.
    beside: tuple[str, ...] = ()
    #: Carried by the previous checkpoint but not by this one.
    gone: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Checkpoint | None, one: Checkpoint) -> "Anchors":
        carried = frozenset(one.anchors)
        return cls(
            tuple(anchor for anchor in one.anchors if says_anchors(one.summary, anchor)),
            tuple(anchor for anchor in one.anchors if not says_anchors(one.summary, anchor)),
            () if before is None else tuple(anchor for anchor in before.anchors if anchor not in carried),
        )


@dataclass(frozen=True, slots=True)
class Timeline:
    head: ConversationInfo
    entries: tuple[Entry, ...]
    anchors: Mapping[str, Anchors]
    #: The newest recorded call of each turn.
    calls: Mapping[str, str]
    #: The archived page that is expanded in place.
    opened: Opened | None
    #: Where the previous and next slice begin; None at the ends.
    older: int | None
    newer: int | None
    #: The size of the newest recorded window, or of those to come if none is recorded.
    window_tokens: int
    #: What was said first, where the id tells nothing.
    began_with: str
    #: The turn that the link led to.
    sought: str | None = None


async def gather(memory: Memory, asked: PageRequest) -> Timeline:
    """The newest slice, the one after a position, or the one around a turn."""
    chat = chat_of(memory, asked)
    head = await chat.head()
    after = asked.whole("after", -1, least=-1) if asked.text("after") else None
    sought = asked.text("turn")
    if sought is not None:
        seq = (await found_turn(chat, sought)).seq
        after = None if seq is None else max(0, seq - 1 - PER_PAGE // 4)
    entries = await chat.log(after=after or 0, limit=PER_PAGE, newest=after is None)
    numbers = [entry.seq for entry in entries if entry.seq is not None]
    first, last = (numbers[0], numbers[-1]) if numbers else (1, head.last_seq)
    wanted = asked.text("open")
    calls = await chat.calls(limit=200)
    named = not ui.is_made(chat.id)
    began = () if named else await chat.turns(limit=1)
    marks = [entry for entry in entries if isinstance(entry, Checkpoint)]
    pairs = pairwise([await _before(chat, marks), *marks])
    return Timeline(
        head,
        tuple(entries),
        {one.id: Anchors.of(before, one) for before, one in pairs if one},
        {call.turn_id: call.id for call in reversed(calls) if call.turn_id is not None},
        None if wanted is None else await opened(memory, asked, wanted),
        max(0, first - 1 - PER_PAGE) if first > 1 else None,
        last if last < head.last_seq else None,
        _budget(calls[0]) if calls else memory.settings.window_tokens,
        cut(" ".join((began[0].user or "").split()), _TITLE_CHARS) if began else "",
        sought,
    )


def _budget(call: WindowRecord) -> int:
    return cast("int", call.receipt["budget"])


async def found_turn(chat: Conversation, turn_id: str) -> Turn:
    """A turn by its id: adding nothing to it returns it as it is."""
    return await chat.extend(turn_id, ())


async def _before(chat: Conversation, marks: Sequence[Checkpoint]) -> Checkpoint | None:
    """The checkpoint before those of a slice, unless it is too far back."""
    before: Checkpoint | None = None
    after = max(0, marks[0].seq - 1 - LOOK_BACK) if marks else 0
    while marks:
        # One at a time, so that the store reads no further than the slice's first.
        log = await chat.log(kind="checkpoint", after=after, limit=1)
        found = [one for one in log if isinstance(one, Checkpoint)]
        if not found or found[0].seq >= marks[0].seq:
            break
        before, after = found[0], found[0].seq
    return before


# -- the page ----------------------------------------------------------------------------------------------------------


def show(data: Timeline, reader: Reader) -> ui.View:
    say, head = reader.say, data.head
    covered = head.covered_through_seq
    counts = {"conv.turns": head.turns, "conv.live": head.live_tokens}
    times = {"conv.begun": head.created, "conv.written": head.updated}
    figures = {**counts, "conv.covered": f"#{covered}" if covered else "–", **times}
    fill = say("conv.fill", part=reader.percent(head.live_tokens / data.window_tokens))
    bar = level(head.live_tokens, data.window_tokens, fill), el("p", fill, class_="soft under")
    entries = [_entry(entry, data, reader) for entry in data.entries]
    log = el("ol", entries, class_="timeline") if entries else ui.empty(say("time.nothing"))
    lead = ui.some("span", head.scope.user, class_="who") or say("conv.nobody")
    crumbs = ((reader.asked.to(urls.CONVERSATIONS), say("nav.conversations")),)
    above, below = _slices(data, reader), _slices(data, reader, below=True)
    body = [ui.figures(reader, figures), bar, above, log, below]
    name = head.scope.conversation or ""
    if data.began_with:
        lead = [lead, " ", el("code", name, class_="soft made")]
    return ui.View(data.began_with or ui.short(name), body, lead, crumbs, script=True)


def _slices(data: Timeline, reader: Reader, *, below: bool = False) -> Element | None:
    if data.older is None and data.newer is None:
        return None

    def step(key: str, after: int | None) -> Element:
        place = None if after is None else reader.asked.here(urls.CONVERSATION, after=after)
        return ui.step_to(reader.say(key), place)

    steps = step("slice.first", 0), step("slice.older", data.older), step("slice.newer", data.newer)
    last = reader.here(urls.CONVERSATION, reader.say("slice.last"))
    return ui.pager(reader, *steps, last, below=below)


def _entry(entry: Entry, data: Timeline, reader: Reader) -> Element:
    match entry:
        case Turn():
            return _turn(entry, data, reader)
        case Checkpoint():
            return _checkpoint(entry, data, reader)
        case Reset():
            told = el("strong", reader.say("entry.reset")), " ", reader.say("entry.reset_about"), " "
            line = el("p", told, reader.time(entry.created))
            return el("li", line, class_="entry reset", id=f"seq-{entry.seq}")


def _turn(turn: Turn, data: Timeline, reader: Reader) -> Element:
    say, through = reader.say, max(data.head.covered_through_seq, data.head.reset_seq)
    covered = turn.status == "done" and turn.seq is not None and turn.seq <= through
    call, state, bill = data.calls.get(turn.id), None, None
    if turn.status in _STATES or covered:
        key, kind = _STATES.get(turn.status, ("entry.covered", "soft"))
        state = ui.badge(say(key), kind)
    if call:
        bill = reader.link(urls.CALL, say("entry.bill"), call_id=call, user_id=reader.asked.user_id)
    title, name = f"#{turn.seq}", f"seq-{turn.seq}"
    if turn.seq is None:
        title, name = say("entry.running"), f"turn-{turn.id}"
    said: list[Content] = [
        _side("user", "role.user", turn.user, reader),
        [_step(step, data, reader) for step in turn.steps],
        _side("assistant", "role.assistant", turn.assistant or turn.answered, reader),
    ]
    sought = turn.id == data.sought
    kind = f"entry turn {turn.status}{' covered' if covered else ''}{' sought' if sought else ''}"
    here = el("span", id="here") if sought else None
    links = [reader.here(urls.TRACE, say("entry.trace"), turn=turn.id), bill]
    line = _line(title, state, turn.tokens, turn.at, reader, links)
    return el("li", here, line, said, class_=kind, id=name)


def _line(title: str, state: Content, tokens: int, at: datetime, reader: Reader, link: Content) -> Element:
    size = ui.soft(reader.count("count.tokens", tokens), "span")
    links = ui.some("span", link, class_="links")
    return el("header", el("h2", title), state, size, reader.time(at, exact=True), links)


def _side(kind: str, key: str, text: str | None, reader: Reader) -> Content:
    title = el("h3", reader.say(key), class_="role")
    return el("div", title, ui.said(text, reader), class_=f"side m-{kind}") if text else None


def _step(step: Step, data: Timeline, reader: Reader) -> Element:
    """A tool call. An archived result expands in place: first what the model sees, then the full text."""
    say, loads = reader.say, step.tool in LOADING_TOOLS
    page = None if loads else step.page
    is_open = data.opened is not None and page is not None and data.opened.page.uuid == page
    state: Content = None
    if loads:
        state = ui.badge(say("step.loaded"), "in")
    elif page is not None:
        state = ui.badge(say("page.archived"), "kept")
    elif step.lost_chars:
        state = ui.badge(say("step.cut", n=reader.number(step.lost_chars)), "bad")
    head = el("summary", el("code", step.tool, class_="tool"), " ", state, " ", _size(step, reader))
    given = el("h4", say("step.input")), ui.code(step.input)
    seen = say("step.placeholder" if step.page is not None and not step.whole else "step.result")
    result = el("h4", seen), ui.said(step.result, reader)
    full = None if page is None else _whole(page, data.opened if is_open else None, reader)
    name = f"p-{page}" if page else None
    return el("details", head, given, result, full, class_="step", open=is_open, id=name)


def _size(step: Step, reader: Reader) -> Element:
    loaded = loaded_chars(step.result) if step.tool in LOADING_TOOLS else None
    if loaded is not None:
        # Its page is what it was loaded from. Of what came back, only the characters are known.
        return ui.soft(reader.count("count.chars", loaded), "span")
    chars = reader.count("count.chars", step.page_chars or len(step.result))
    tokens = reader.count("count.tokens", step.page_tokens or step.result_tokens)
    return ui.soft([chars, " · ", tokens], "span")


def _whole(uuid: str, page: Opened | None, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    if page is not None:
        text = ui.notice(say("page.purged_about")) if page.text is None else ui.whole(page.text)
        on = el("p", reader.here(urls.PAGE, say("step.read_on"), uuid=uuid))
        return el("div", el("h4", say("step.whole")), text, on)
    # The same slice of the conversation, whichever way it was asked for.
    slice_ = {"after": asked.text("after"), "turn": asked.text("turn")}
    place = asked.here(urls.CONVERSATION, **slice_, open=uuid) + f"#p-{uuid}"
    twin = asked.here(urls.twin(urls.PAGE), uuid=uuid)
    in_place = el("a", say("step.open"), href=place, class_="button", data_open=twin)
    return el("p", in_place, " ", reader.here(urls.PAGE, say("step.page"), uuid=uuid))


def _checkpoint(one: Checkpoint, data: Timeline, reader: Reader) -> Element:
    say, found = reader.say, data.anchors.get(one.id, Anchors())
    turns = reader.count("count.turns", one.covered_turns)
    state = ui.badge(say("entry.covers", seq=one.covered_through_seq, turns=turns), "check")
    title = say("entry.checkpoint", version=one.version)
    survived = say("anchor.survived", n=len(found.in_summary) + len(found.beside), beside=len(found.beside))
    anchors = [
        _anchors(say("anchor.in_summary"), found.in_summary, "in"),
        _anchors(say("anchor.beside"), found.beside, "beside"),
        _anchors(say("anchor.gone"), found.gone, "gone"),
    ]
    links = [reader.here(urls.PAGE, el("code", uuid[:8]), uuid=uuid) for uuid in one.archive_refs[-12:]]
    pages = [el("li", link) for link in links]
    refs = el("div", el("h3", say("entry.refs"), class_="role"), el("ul", pages, class_="chips"))
    line = _line(title, state, one.tokens, one.created, reader, None)
    summary = _side("summary", "entry.summary", one.summary, reader)
    kept = el("details", el("summary", survived), anchors, class_="step")
    ids = {"class_": "entry checkpoint", "id": f"seq-{one.seq}"}
    return el("li", line, summary, kept, refs if pages else None, **ids)


def _anchors(title: str, anchors: Sequence[str], kind: str) -> Content:
    more = len(anchors) - _ANCHORS_SHOWN
    items = [el("li", anchor) for anchor in anchors[-_ANCHORS_SHOWN:]]
    rest = ui.soft(f"+{more}", "li") if more > 0 else None
    shown = [el("h4", f"{title} ({len(anchors)})"), el("ul", items, rest, class_=f"chips {kind}")]
    return shown if anchors else None
