"""Archived tool results: listed, searched, read by slice or by passage, pinned.

Viewing a page here is not a page fault and does not count as a load: loads record what the model needed.
"""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.engine.ownership import looked_up
from pagefile.errors import InvalidArgumentError, PagePurgedError
from pagefile.inspector import ui, urls
from pagefile.inspector.conversations import chat_in
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.records import Page, PageHit

PER_PAGE = 40
#: Characters of an archived page shown at once: on its own view, and expanded in place.
SLICE, IN_PLACE = 6_000, 12_000
_HITS = 20
_EXCERPT_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class Archive:
    """A slice of the archive, or the results of a search in it."""

    pages: tuple[Page, ...]
    next: str | None
    search: str | None
    hits: tuple[PageHit, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A page and part of its text; None if the text was purged."""

    page: Page
    text: str | None
    offset: int
    end: int
    query: str | None


async def gather(memory: Memory, asked: PageRequest) -> Archive:
    search, after, everywhere = asked.text("q"), asked.text("after"), asked.conversation_id is None
    if search is not None:
        if everywhere:
            hits = await memory.search_tool_history(search, **asked.owner, limit=_HITS)
        else:
            hits = await chat_of(memory, asked).search_tool_history(search, _HITS, here=True)
        return Archive((), None, search, tuple(hits))
    if everywhere:
        pages = await memory.pages(**asked.owner, limit=PER_PAGE, after=after)
    else:
        pages = await chat_of(memory, asked).pages(limit=PER_PAGE, after=after)
    return Archive(tuple(pages), pages.next, None, ())


async def gather_page(memory: Memory, asked: PageRequest) -> Opened:
    uuid = asked.text("uuid")
    if uuid is None:
        raise InvalidArgumentError("Which page? Give the uuid from its placeholder.")
    limit = asked.whole("limit", SLICE, least=1, most=200_000)
    return await opened(memory, asked, uuid, asked.text("q"), asked.whole("offset", 0), limit)


async def opened(
    memory: Memory,
    asked: PageRequest,
    uuid: str,
    query: str | None = None,
    offset: int = 0,
    limit: int = IN_PLACE,
) -> Opened:
    page = await _page(memory, asked, uuid)
    start = 0 if query is not None else min(offset, page.length)
    most = limit if query is None else _EXCERPT_CHARS
    whose = {"user_id": page.scope.user, "tenant": page.scope.tenant}
    try:
        text = await memory.peek(page.uuid, query=query, offset=start, limit=most, **whose)
    except PagePurgedError:
        return Opened(page, None, 0, 0, query)
    return Opened(page, text, start, start + len(text) if query is None else page.length, query)


async def _page(memory: Memory, asked: PageRequest, uuid: str) -> Page:
    if asked.conversation_id is not None:
        return await chat_of(memory, asked).page(uuid)
    return await memory.page(uuid, **asked.owner)


async def pin(memory: Memory, asked: PageRequest) -> str:
    uuid, pinned = asked.text("uuid") or "", asked.choice("pinned", "yes", "no") == "yes"
    page = await _page(memory, asked, uuid)
    if page.scope.conversation is None:
        raise InvalidArgumentError("This page is in no conversation: there is no window to keep it in.")
    await chat_in(memory, await looked_up(memory, page.scope)).pin(uuid, pinned=pinned)
    return asked.here(urls.PAGE, uuid=uuid, done="pinned" if pinned else "unpinned")


# -- the pages ---------------------------------------------------------------------------------------------------------


def show(data: Archive, reader: Reader) -> ui.View:
    say, lead = reader.say, reader.say("archive.about")
    if data.search is not None:
        found = _hits(data, reader)
    elif data.pages:
        more = reader.asked.here(urls.ARCHIVE, after=data.next) if data.next else None
        found = ui.card(None, _table(data.pages, reader), ui.older(reader, more))
        kept = sum(page.stored_bytes for page in data.pages if page.purged is None)
        lead = say("archive.lead", n=reader.number(len(data.pages)), size=reader.size(kept))
    else:
        found = ui.empty(say("archive.none"), say("archive.none_about"))
    user, go = ui.user_field(reader), ui.button(reader, "ask.search")
    field = ui.search_field(reader, "archive.search", data.search)
    search = ui.asking_form(reader, "archive.search", field, user, button=go, **ui.scope_of(reader, user))
    return ui.View(say("nav.archive"), [search, found], lead=lead)


def _table(pages: tuple[Page, ...], reader: Reader) -> Element:
    sizes = ui.numbers(*_sizes(pages[0], reader))
    columns = {"archive.result": "row", "archive.state": "", **sizes, "archive.when": "when"}

    def row(page: Page) -> tuple[ui.Value, ...]:
        result = [_link(page, reader), el("p", page.result_summary[:160], class_="snippet")]
        return result, _state(page, reader), *_sizes(page, reader).values(), page.created

    return ui.table(reader, reader.say("nav.archive"), columns, map(row, pages), class_="roomy")


def _sizes(page: Page, reader: Reader) -> dict[str, ui.Value]:
    lengths: dict[str, ui.Value] = {"archive.chars": page.length, "archive.tokens": page.tokens}
    return {**lengths, "archive.bytes": reader.size(page.stored_bytes), "archive.loads": page.loads}


def _link(page: Page, reader: Reader, **more: object) -> Element:
    tool, scope = el("code", page.tool, class_="tool"), page.scope
    about = {"uuid": page.uuid, "conversation_id": scope.conversation, "user_id": scope.user, **more}
    return reader.link(urls.PAGE, tool, " ", page.query_summary[:120], **about)


def _state(page: Page, reader: Reader) -> Content:
    if page.purged is not None:
        return ui.badge(reader.say("page.purged"), "gone")
    pinned = [" ", ui.badge(reader.say("page.pinned"), "pin")] if page.pinned else None
    return [ui.badge(reader.say("page.archived"), "kept"), pinned]


def _hits(data: Archive, reader: Reader) -> Element:
    say, number = reader.say, reader.number
    if not data.hits:
        return ui.empty(say("archive.no_match", q=data.search))

    def item(hit: PageHit) -> Element:
        score = ui.badge(say("score", score=f"{hit.score:.3f}"), "soft")
        title = el("p", _link(hit.page, reader, q=data.search), " ", score)
        at = ui.soft(say("archive.at", start=number(hit.start), length=number(hit.page.length)))
        return el("li", title, el("blockquote", hit.passage[:600]), at)

    return ui.card(None, el("ol", [item(hit) for hit in data.hits], class_="hits"))


def show_page(data: Opened, reader: Reader) -> ui.View:
    say, page, scope = reader.say, data.page, data.page.scope
    crumbs: tuple[tuple[str, str], ...] = (reader.crumb(urls.ARCHIVE, say("nav.archive")),)
    if scope.conversation is not None:
        conversation = {"conversation_id": scope.conversation, "user_id": scope.user}
        crumbs = ((reader.asked.to(urls.CONVERSATION, **conversation), scope.conversation), *crumbs)
    values = {**_sizes(page, reader), "archive.when": reader.time(page.created, exact=True)}
    sources = el("ul", [el("li", one) for one in page.sources]) if page.sources else None
    summaries = {"page.query": [page.query_summary], "page.summary": [page.result_summary]}
    known = [(say(key), value) for key, value in {**summaries, "page.sources": sources}.items()]
    about = ui.definitions(("uuid", el("code", page.uuid)), *known)
    body: list[Content] = [
        ui.confirmation(reader),
        ui.figures(reader, values),
        ui.card(None, el("p", _state(page, reader)), about, _pin(page, reader)),
        _text(data, reader),
        ui.card(say("step.input"), ui.code(page.input)),
    ]
    return ui.View(f"{page.tool}: {page.query_summary[:80]}", body, crumbs=crumbs)


def _pin(page: Page, reader: Reader) -> Element | None:
    if page.purged is not None or page.scope.conversation is None:
        return None
    pin = ui.button(reader, "page.unpin" if page.pinned else "page.pin", None)
    hint = ui.soft(reader.say("page.pin_about"), "span")
    place = reader.asked.here(urls.PAGE, uuid=page.uuid)
    return ui.form(reader, place, pin, " ", hint, pinned="no" if page.pinned else "yes")


def _text(data: Opened, reader: Reader) -> Element:
    say, page = reader.say, data.page
    if data.text is None:
        return ui.card(say("page.text"), ui.notice(say("page.purged_about")))
    all_of_it = reader.here(urls.PAGE, say("page.whole"), uuid=page.uuid) if data.query else None
    find, sent = [ui.button(reader, "page.find"), all_of_it], {"uuid": page.uuid, **ui.scope_of(reader)}
    passage = ui.search_field(reader, "page.passage", data.query)
    search = ui.asking_form(reader, "page.passage", passage, button=find, **sent)
    where = _where(data, reader) if data.query is None else None
    again = _where(data, reader, below=True) if where is not None and len(data.text) > 3000 else None
    return ui.card(say("page.text"), search, where, ui.whole(data.text), again)


def _where(data: Opened, reader: Reader, *, below: bool = False) -> Element:
    """Which part of the text is shown, and the ways to the parts before and after."""
    say, number, page = reader.say, reader.number, data.page

    def to(offset: int) -> str:
        return reader.asked.here(urls.PAGE, uuid=page.uuid, offset=offset or None)

    shown = say("page.place", start=number(data.offset), end=number(data.end), length=number(page.length))
    before = ui.step_to(say("pager.before"), to(max(0, data.offset - SLICE)) if data.offset else None)
    after = ui.step_to(say("pager.next"), to(data.end) if data.end < page.length else None)
    return ui.pager(reader, before, el("span", shown), after, below=below)
