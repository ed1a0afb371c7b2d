"""Archived tool results: listed, searched, read by slice or by passage, pinned.

Viewing a page here is not a page fault and does not count as a load: loads record what the model needed.
"""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.engine.owning import looked_up
from pagefile.errors import InvalidTurnError, PagePurgedError
from pagefile.inspector import places
from pagefile.inspector.asking import Asked, chat_of
from pagefile.inspector.frame import (
    View,
    asking_form,
    card,
    columns,
    empty,
    field_of,
    figures,
    form,
    notice,
    num,
    numbers,
    table,
)
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge, code, page_state
from pagefile.inspector.reader import Reader
from pagefile.records import Page, PageHit

PER_PAGE = 40
#: Characters of an archived page shown at once: on its own view, and expanded in place.
SLICE, IN_PLACE = 6_000, 12_000
_HITS = 20
_EXCERPT_TOKENS = 1_500


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


async def gather(memory: Memory, asked: Asked) -> Archive:
    """Pages of the tenant, of a user, or of a conversation."""
    search = asked.text("q")
    if search is not None:
        return Archive((), None, search, tuple(await _found(memory, asked, search)))
    after = asked.text("after")
    if asked.conversation_id is not None:
        pages = await chat_of(memory, asked).pages(limit=PER_PAGE, after=after)
    else:
        pages = await memory.pages(user_id=asked.user_id, tenant=asked.tenant, limit=PER_PAGE, after=after)
    return Archive(tuple(pages), pages.next, None, ())


async def _found(memory: Memory, asked: Asked, search: str) -> list[PageHit]:
    if asked.conversation_id is not None:
        return await chat_of(memory, asked).search_tool_history(search, _HITS, here=True)
    return await memory.search_tool_history(search, user_id=asked.user_id, tenant=asked.tenant, limit=_HITS)


async def gather_page(memory: Memory, asked: Asked) -> Opened:
    """One page, by slice or by passage."""
    uuid = asked.text("uuid")
    if uuid is None:
        raise InvalidTurnError("Which page? Give its uuid, as it stands in the placeholder.")
    return await opened(
        memory,
        asked,
        uuid,
        query=asked.text("q"),
        offset=asked.whole("offset", 0),
        limit=asked.whole("limit", SLICE, least=1, most=200_000),
    )


async def opened(
    memory: Memory,
    asked: Asked,
    uuid: str,
    *,
    query: str | None = None,
    offset: int = 0,
    limit: int = IN_PLACE,
) -> Opened:
    """A page with part of its text. Does not count as a load."""
    page = await _page(memory, asked, uuid)
    start = 0 if query is not None else min(offset, page.length)
    most = limit if query is None else _EXCERPT_TOKENS
    whose = {"user_id": page.scope.user, "tenant": page.scope.tenant}
    try:
        text = await memory.peek(page.uuid, query=query, offset=start, limit=most, **whose)
    except PagePurgedError:
        return Opened(page, None, 0, 0, query)
    return Opened(page, text, start, start + len(text) if query is None else page.length, query)


async def _page(memory: Memory, asked: Asked, uuid: str) -> Page:
    if asked.conversation_id is not None:
        return await chat_of(memory, asked).page(uuid)
    return await memory.page(uuid, user_id=asked.user_id, tenant=asked.tenant)


async def pin(memory: Memory, asked: Asked) -> str:
    """Pin or unpin a page; returns the URL to continue at."""
    uuid, pinned = asked.text("uuid") or "", asked.choice("pinned", "yes", "no") == "yes"
    page = await _page(memory, asked, uuid)
    if page.scope.conversation is None:
        raise InvalidTurnError("This page is in no conversation: there is no window to keep it in.")
    scope = await looked_up(memory, page.scope)
    chat = memory.conversation(page.scope.conversation, user_id=scope.user, tenant=scope.tenant)
    await chat.pin(uuid, pinned=pinned)
    return asked.here(places.PAGE, uuid=uuid, done="pinned" if pinned else "unpinned")


# -- the pages ---------------------------------------------------------------------------------------------------------


def show(data: Archive, reader: Reader) -> View:
    """The list."""
    say, asked = reader.say, reader.asked
    body: list[Content] = [_search(data, reader)]
    if data.search is not None:
        body.append(_hits(data, reader))
    elif data.pages:
        more = asked.here(places.ARCHIVE, after=data.next) if data.next else None
        link = el("p", el("a", say("slice.older"), href=more), class_="more") if more else None
        body.append(card(_table(data.pages, reader), link))
    else:
        body.append(empty(say("archive.none"), el("p", say("archive.none_about"))))
    kept = sum(page.stored_bytes for page in data.pages if page.purged is None)
    lead = (
        say("archive.lead", n=reader.number(len(data.pages)), size=reader.size(kept))
        if data.pages
        else say("archive.about")
    )
    query = {"q": data.search or "", "after": asked.text("after") or ""}
    return View(say("nav.archive"), body, lead=lead, tabs=asked.conversation_id is not None, query=query)


def _search(data: Archive, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    who: Content = None
    if "user_id" not in asked.bound:
        who = field_of(say("field.user"), "user_id", asked.user_id)
    return asking_form(
        places.ARCHIVE,
        field_of(say("archive.search"), "q", data.search, kind="search"),
        who,
        el("button", say("ask.search"), class_="primary"),
        hidden={
            "conversation_id": asked.conversation_id,
            "tenant": asked.tenant,
            "user_id": asked.user_id if "user_id" in asked.bound else None,
        },
        label=say("archive.search"),
    )


def _table(pages: tuple[Page, ...], reader: Reader) -> Element:
    say = reader.say
    head = columns(
        reader,
        "archive.result",
        "archive.state",
        *numbers("archive.chars", "archive.tokens", "archive.bytes", "archive.loads"),
        "archive.when",
    )
    return table(head, [_row(page, reader) for page in pages], caption=say("nav.archive"), class_="roomy")


def _row(page: Page, reader: Reader) -> Element:
    return el(
        "tr",
        el(
            "th",
            el(
                "a",
                el("code", page.tool, class_="tool"),
                " ",
                page.query_summary[:120],
                href=place_of(page, reader),
            ),
            el("p", page.result_summary[:160], class_="snippet"),
            scope="row",
        ),
        el("td", page_state(page, reader)),
        num(reader.number(page.length)),
        num(reader.number(page.tokens)),
        num(reader.size(page.stored_bytes)),
        num(reader.number(page.loads)),
        el("td", reader.time(page.created), class_="when"),
    )


def place_of(page: Page, reader: Reader, **more: object) -> str:
    """The URL of a page."""
    return reader.asked.to(
        places.PAGE, uuid=page.uuid, conversation_id=page.scope.conversation, user_id=page.scope.user, **more
    )


def _hits(data: Archive, reader: Reader) -> Element:
    say = reader.say
    if not data.hits:
        return empty(say("archive.no_match", q=data.search))
    items = [
        el(
            "li",
            el(
                "p",
                el(
                    "a",
                    el("code", hit.page.tool, class_="tool"),
                    " ",
                    hit.page.query_summary[:120],
                    href=place_of(hit.page, reader, q=data.search),
                ),
                " ",
                badge(say("score", score=f"{hit.score:.3f}"), "soft"),
            ),
            el("blockquote", hit.passage[:600]),
            el(
                "p",
                say("archive.at", start=reader.number(hit.start), length=reader.number(hit.page.length)),
                class_="soft",
            ),
        )
        for hit in data.hits
    ]
    return card(el("ol", items, class_="hits"))


def show_page(data: Opened, reader: Reader) -> View:
    """One page."""
    say, asked, page = reader.say, reader.asked, data.page
    conversation = asked.to(
        places.CONVERSATION, conversation_id=page.scope.conversation, user_id=page.scope.user
    )
    crumbs: tuple[tuple[str, str], ...] = ((asked.here(places.ARCHIVE), say("nav.archive")),)
    if page.scope.conversation is not None:
        crumbs = ((conversation, page.scope.conversation), *crumbs)
    facts = figures(
        (say("archive.chars"), reader.number(page.length)),
        (say("archive.tokens"), reader.number(page.tokens)),
        (say("archive.bytes"), reader.size(page.stored_bytes)),
        (say("archive.loads"), reader.number(page.loads)),
        (say("archive.when"), reader.time(page.created, exact=True)),
    )
    about = el(
        "dl",
        el("div", el("dt", "uuid"), el("dd", el("code", page.uuid))),
        el("div", el("dt", say("page.query")), el("dd", page.query_summary)),
        el("div", el("dt", say("page.summary")), el("dd", page.result_summary)),
        el("div", el("dt", say("page.sources")), el("dd", el("ul", [el("li", one) for one in page.sources])))
        if page.sources
        else None,
        class_="about",
    )
    return View(
        f"{page.tool}: {page.query_summary[:80]}",
        [
            done(reader),
            facts,
            card(el("p", page_state(page, reader)), about, _pin(page, reader)),
            _text(data, reader),
            _input(page, reader),
        ],
        crumbs=crumbs,
        tabs=asked.conversation_id is not None,
        query={"uuid": page.uuid, "q": data.query or "", "offset": str(data.offset or "")},
    )


def done(reader: Reader) -> Content:
    """A confirmation of the action that led here, if there was one."""
    known = (
        "pinned",
        "unpinned",
        "stored",
        "duplicate",
        "superseded",
        "retracted",
        "undone",
        "recorded",
        "failed",
    )
    word = reader.asked.text("done")
    return (
        notice(reader.say(f"done.{word}"), "bad" if word == "failed" else "good") if word in known else None
    )


def _pin(page: Page, reader: Reader) -> Element | None:
    if page.purged is not None or page.scope.conversation is None:
        return None
    pinned = el("input", type="hidden", name="pinned", value="no" if page.pinned else "yes")
    button = el("button", reader.say("page.unpin" if page.pinned else "page.pin"))
    hint = el("span", reader.say("page.pin_about"), class_="soft")
    return form(reader, reader.asked.here(places.PAGE, uuid=page.uuid), pinned, button, " ", hint)


def _text(data: Opened, reader: Reader) -> Element:
    say, asked, page = reader.say, reader.asked, data.page
    if data.text is None:
        return card(notice(say("page.purged_about")), title=say("page.text"))
    hidden = {
        "uuid": page.uuid,
        "conversation_id": asked.conversation_id,
        "user_id": asked.user_id,
        "tenant": asked.tenant,
    }
    search = asking_form(
        places.PAGE,
        field_of(say("page.passage"), "q", data.query, kind="search"),
        el("button", say("page.find"), class_="primary"),
        el("a", say("page.whole"), href=asked.here(places.PAGE, uuid=page.uuid)) if data.query else None,
        hidden=hidden,
        label=say("page.passage"),
    )
    where = None
    if data.query is None:
        before, behind = max(0, data.offset - SLICE), data.end
        where = el(
            "nav",
            el("a", say("pager.before"), href=asked.here(places.PAGE, uuid=page.uuid, offset=before or None))
            if data.offset
            else el("span", say("pager.before"), class_="soft"),
            el(
                "span",
                say(
                    "page.place",
                    start=reader.number(data.offset),
                    end=reader.number(data.end),
                    length=reader.number(page.length),
                ),
            ),
            el("a", say("pager.next"), href=asked.here(places.PAGE, uuid=page.uuid, offset=behind))
            if behind < page.length
            else el("span", say("pager.next"), class_="soft"),
            class_="pager",
            aria_label=say("pager.label"),
        )
    return card(
        search,
        where,
        el("div", data.text, class_="text whole", tabindex="0"),
        where if data.text and len(data.text) > 3000 else None,
        title=say("page.text"),
    )


def _input(page: Page, reader: Reader) -> Element:
    return card(code(page.input), title=reader.say("step.input"))
