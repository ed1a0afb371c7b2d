"""One conversation from beginning to end: turns, tool results, checkpoints, resets, aborted turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagefile.engine import Conversation, Memory
from pagefile.inspector import places
from pagefile.inspector.archive import Opened, opened
from pagefile.inspector.asking import Asked, chat_of, head_of
from pagefile.inspector.frame import View, empty, figures, notice
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge, code, fill_level, said
from pagefile.inspector.reader import Reader
from pagefile.records import Checkpoint, Entry, Head, Reset, Step, Turn
from pagefile.tiers.page_text import LOADING_TOOLS, loaded_uuid

#: Log entries per page.
PER_PAGE = 40
#: How many entries back to search for the checkpoint before a slice.
LOOK_BACK = 400
_ANCHORS_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Anchors:
    """What became of the exact strings that a checkpoint must preserve."""

    in_summary: tuple[str, ...]
    #: Missing from the summary's text: carried alongside it.
    beside: tuple[str, ...]
    #: Carried by the previous checkpoint but not by this one.
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """One slice of a conversation's log."""

    head: Head
    entries: tuple[Entry, ...]
    anchors: Mapping[str, Anchors]
    #: The newest recorded call of each turn.
    calls: Mapping[str, str]
    #: The archived page that is expanded in place.
    opened: Opened | None
    #: Where the previous and next slice begin; None at the ends.
    older: int | None
    newer: int | None
    window_tokens: int


async def gather(memory: Memory, asked: Asked) -> Timeline:
    """The newest slice, or the one after a position."""
    head, chat = await head_of(memory, asked), chat_of(memory, asked)
    after = asked.whole("after", -1, least=-1) if asked.text("after") else None
    entries = await chat.log(after=after or 0, limit=PER_PAGE, newest=after is None)
    places_ = [entry.seq for entry in entries if entry.seq is not None]
    first, last = (places_[0], places_[-1]) if places_ else (1, head.last_seq)
    wanted = asked.text("open")
    calls = await chat.calls(limit=200)
    marks = [entry for entry in entries if isinstance(entry, Checkpoint)]
    return Timeline(
        head,
        tuple(entries),
        _anchors(await _with_before(chat, marks), frozenset(mark.id for mark in marks)),
        {call.turn_id: call.id for call in reversed(calls) if call.turn_id is not None},
        None if wanted is None else await opened(memory, asked, wanted),
        max(0, first - 1 - PER_PAGE) if first > 1 else None,
        last if last < head.last_seq else None,
        memory.settings.window_tokens,
    )


async def _with_before(chat: Conversation, marks: Sequence[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints of a slice and the one before them, unless it is too far back."""
    before: list[Checkpoint] = []
    after = max(0, marks[0].seq - 1 - LOOK_BACK) if marks else 0
    while marks:
        # One at a time, so that the store reads no further than the slice's first.
        log = await chat.log(kind="checkpoint", after=after, limit=1)
        found = [one for one in log if isinstance(one, Checkpoint)]
        if not found or found[0].seq >= marks[0].seq:
            break
        before, after = found, found[0].seq
    return [*before, *marks]


def _anchors(checkpoints: Sequence[Checkpoint], shown: frozenset[str]) -> dict[str, Anchors]:
    made: dict[str, Anchors] = {}
    before: Checkpoint | None = None
    for one in checkpoints:
        before, earlier = one, before
        if one.id not in shown:
            continue
        carried = frozenset(one.anchors)
        said_in = tuple(anchor for anchor in one.anchors if anchor in one.summary)
        beside = tuple(anchor for anchor in one.anchors if anchor not in one.summary)
        gone = () if earlier is None else tuple(a for a in earlier.anchors if a not in carried)
        made[one.id] = Anchors(said_in, beside, gone)
    return made


# -- the page ----------------------------------------------------------------------------------------------------------


def show(data: Timeline, reader: Reader) -> View:
    """The page."""
    say, head = reader.say, data.head
    facts = figures(
        (say("conv.turns"), reader.number(head.turns)),
        (say("conv.live"), reader.number(head.live_tokens)),
        (say("conv.covered"), f"#{head.covered_through_seq}" if head.covered_through_seq else "–"),
        (say("conv.begun"), reader.time(head.created)),
        (say("conv.written"), reader.time(head.updated)),
    )
    slices = _slices(data, reader)
    entries = [_entry(entry, data, reader) for entry in data.entries]
    log: Content = el("ol", entries, class_="timeline") if entries else empty(say("time.nothing"))
    return View(
        head.scope.conversation or "",
        [
            facts,
            fill_level(head, data.window_tokens, reader),
            el(
                "p",
                say("conv.fill", part=reader.percent(head.live_tokens / data.window_tokens)),
                class_="soft under",
            ),
            slices,
            log,
            slices,
        ],
        lead=el("span", head.scope.user, class_="who") if head.scope.user else say("conv.nobody"),
        crumbs=((reader.asked.to(places.CONVERSATIONS), say("nav.conversations")),),
        script=True,
        tabs=True,
        query={"after": reader.asked.text("after") or ""},
    )


def _slices(data: Timeline, reader: Reader) -> Element | None:
    if data.older is None and data.newer is None:
        return None
    say, here = reader.say, reader.asked.here

    def to(after: int | None, key: str) -> Element:
        if after is None:
            return el("span", say(key), class_="soft")
        return el("a", say(key), href=here(places.CONVERSATION, after=after))

    ends = [
        el("a", say("slice.first"), href=here(places.CONVERSATION, after=0)),
        el("a", say("slice.last"), href=here(places.CONVERSATION)),
    ]
    return el(
        "nav",
        ends[0],
        to(data.older, "slice.older"),
        to(data.newer, "slice.newer"),
        ends[1],
        aria_label=say("pager.label"),
        class_="pager",
    )


def _entry(entry: Entry, data: Timeline, reader: Reader) -> Element:
    match entry:
        case Turn():
            return _turn(entry, data, reader)
        case Checkpoint():
            return _checkpoint(entry, data, reader)
        case Reset():
            told = [
                el("strong", reader.say("entry.reset")),
                " ",
                reader.say("entry.reset_about"),
                " ",
                reader.time(entry.created),
            ]
            return el("li", el("p", told), class_="entry reset", id=f"seq-{entry.seq}")


def _turn(turn: Turn, data: Timeline, reader: Reader) -> Element:
    say, head = reader.say, data.head
    covered = (
        turn.status == "done"
        and turn.seq is not None
        and turn.seq <= max(head.covered_through_seq, head.reset_seq)
    )
    call = data.calls.get(turn.id)
    bill = (
        reader.link(places.CALL, say("entry.bill"), call_id=call, user_id=reader.asked.user_id)
        if call
        else None
    )
    state: Content = None
    if turn.status == "aborted":
        state = badge(say("entry.aborted"), "bad")
    elif turn.status == "open":
        state = badge(say("entry.open"), "open")
    elif covered:
        state = badge(say("entry.covered"), "soft")
    line = el(
        "header",
        el("h2", f"#{turn.seq}" if turn.seq is not None else say("entry.running")),
        state,
        el("span", reader.count("count.tokens", turn.tokens), class_="soft"),
        reader.time(turn.at, exact=True),
        bill,
    )
    return el(
        "li",
        line,
        _side("user", turn.user, reader),
        [_step(step, data, reader) for step in turn.steps],
        _side("assistant", turn.assistant, reader),
        class_=f"entry turn {turn.status}{' covered' if covered else ''}",
        id=f"seq-{turn.seq}" if turn.seq is not None else f"turn-{turn.id}",
    )


def _side(role: str, text: str | None, reader: Reader) -> Element | None:
    if not text:
        return None
    return el(
        "div",
        el("h3", reader.say(f"role.{role}"), class_="role"),
        said(text, reader),
        class_=f"side m-{role}",
    )


def _step(step: Step, data: Timeline, reader: Reader) -> Element:
    """A tool call. An archived result expands in place: first what the model sees, then the full text."""
    say = reader.say
    uuid = loaded_uuid(step) if step.tool in LOADING_TOOLS else step.page
    is_open = data.opened is not None and data.opened.page.uuid == uuid and step.tool not in LOADING_TOOLS
    state: Content = None
    if step.tool in LOADING_TOOLS:
        state = badge(say("step.loaded"), "in")
    elif step.page is not None:
        state = badge(say("page.archived"), "kept")
    elif step.lost_chars:
        state = badge(say("step.cut", n=reader.number(step.lost_chars)), "bad")
    chars = step.page_chars or len(step.result)
    size = el(
        "span",
        reader.count("count.chars", chars),
        " · ",
        reader.count("count.tokens", step.page_tokens or step.result_tokens),
        class_="soft",
    )
    whole = (
        _whole(step, data, reader, is_open=is_open)
        if step.page is not None and step.tool not in LOADING_TOOLS
        else None
    )
    heading = say("step.placeholder") if step.page is not None and not step.whole else say("step.result")
    return el(
        "details",
        el("summary", el("code", step.tool, class_="tool"), " ", state, " ", size),
        el("h4", say("step.input")),
        code(step.input),
        el("h4", heading),
        said(step.result, reader),
        whole,
        class_="step",
        open=is_open,
        id=f"p-{step.page}" if step.page and step.tool not in LOADING_TOOLS else None,
    )


def _whole(step: Step, data: Timeline, reader: Reader, *, is_open: bool) -> Element:
    say, asked = reader.say, reader.asked
    place = asked.here(places.CONVERSATION, after=asked.text("after"), open=step.page) + f"#p-{step.page}"
    by_part = asked.here(places.PAGE, uuid=step.page)
    if is_open and data.opened is not None:
        return el(
            "div",
            el("h4", say("step.whole")),
            _opened(data.opened, reader),
            el("p", el("a", say("step.read_on"), href=by_part)),
        )
    links = [
        el(
            "a",
            say("step.open"),
            href=place,
            class_="button",
            data_open=asked.here(places.twin(places.PAGE), uuid=step.page),
        ),
        " ",
        el("a", say("step.page"), href=by_part),
    ]
    return el("p", links)


def _opened(page: Opened, reader: Reader) -> Content:
    if page.text is None:
        return notice(reader.say("page.purged_about"), "note")
    return el("div", page.text, class_="text whole", tabindex="0")


def _checkpoint(one: Checkpoint, data: Timeline, reader: Reader) -> Element:
    say, found = reader.say, data.anchors.get(one.id, Anchors((), (), ()))
    survived = say("anchor.survived", n=len(found.in_summary) + len(found.beside), beside=len(found.beside))
    lists = [
        (say("anchor.in_summary"), found.in_summary, "in"),
        (say("anchor.beside"), found.beside, "beside"),
        (say("anchor.gone"), found.gone, "gone"),
    ]
    pages = [
        el("li", el("a", el("code", uuid[:8]), href=reader.asked.here(places.PAGE, uuid=uuid)))
        for uuid in one.archive_refs[-12:]
    ]
    return el(
        "li",
        el(
            "header",
            el("h2", say("entry.checkpoint", version=one.version)),
            badge(
                say(
                    "entry.covers",
                    seq=one.covered_through_seq,
                    turns=reader.count("count.turns", one.covered_turns),
                ),
                "check",
            ),
            el("span", reader.count("count.tokens", one.tokens), class_="soft"),
            reader.time(one.created, exact=True),
        ),
        el(
            "div",
            el("h3", say("entry.summary"), class_="role"),
            said(one.summary, reader),
            class_="side m-summary",
        ),
        el(
            "details",
            el("summary", survived),
            [_anchor_list(title, anchors, kind) for title, anchors, kind in lists if anchors],
            class_="step",
        ),
        el("div", el("h3", say("entry.refs"), class_="role"), el("ul", pages, class_="chips"))
        if pages
        else None,
        class_="entry checkpoint",
        id=f"seq-{one.seq}",
    )


def _anchor_list(title: str, anchors: tuple[str, ...], kind: str) -> Content:
    shown = [el("li", anchor) for anchor in anchors[-_ANCHORS_SHOWN:]]
    more = (
        el("li", f"+{len(anchors) - _ANCHORS_SHOWN}", class_="soft")
        if len(anchors) > _ANCHORS_SHOWN
        else None
    )
    return [el("h4", f"{title} ({len(anchors)})"), el("ul", shown, more, class_=f"chips {kind}")]
