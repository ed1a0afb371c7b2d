"""Conversations and their sessions: searchable lists, and the state an agent keeps for a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from pagefile.engine import Conversation, Memory
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.records import ConversationInfo, JsonObject, JsonValue, Scope

#: Conversations per page, and how many are scanned for a search or another order.
PER_PAGE = 25
LOOKED_AT = 2_000
#: How many of a conversation's archived results are counted for a list.
_COUNTED = 200
#: Characters of a conversation's first turn in a list.
_BEGINNING = 160
_SESSIONS_SHOWN = 30

#: The orders of the list, and the attributes that they sort by.
_ORDERS = {"written": "updated", "begun": "created", "turns": "turns", "tokens": "live_tokens"}


def chat_in(memory: Memory, scope: Scope) -> Conversation:
    return memory.conversation(scope.conversation or "", user_id=scope.user, tenant=scope.tenant)


# -- a table with one row per conversation -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    head: ConversationInfo
    began_with: str
    pages: int
    #: Whether there are more pages than were counted.
    more_pages: bool
    stored_bytes: int


async def rows_of(memory: Memory, heads: Sequence[ConversationInfo]) -> tuple[Row, ...]:
    async def row(head: ConversationInfo) -> Row:
        chat = chat_in(memory, head.scope)
        first, pages = await chat.turns(limit=1), await chat.pages(limit=_COUNTED)
        kept = sum(page.stored_bytes for page in pages if page.purged is None)
        said = " ".join(first[0].text.split()) if first else ""
        began_with = said if len(said) <= _BEGINNING else said[: _BEGINNING - 1].rstrip() + "…"
        return Row(head, began_with, len(pages), pages.next is not None, kept)

    return tuple([await row(head) for head in heads])


def conversations_table(rows: Sequence[Row], reader: Reader) -> Element:
    def cells(row: Row) -> tuple[ui.Value, ...]:
        head, user, more = row.head, row.head.scope.user, "+" if row.more_pages else ""
        about: list[Content] = [
            link_to(urls.CONVERSATION, head.scope, reader),
            " ",
            el("span", user or reader.say("conv.nobody"), class_="who" if user else "who soft"),
            ui.some("span", head.agent, class_="tag"),
            el("p", row.began_with, class_="snippet"),
        ]
        # Where all turns are in context, their number is beside it already.
        fewer = None if head.live_turns == head.turns else reader.count("count.turns", head.live_turns)
        live = [reader.number(head.live_tokens), ui.some("small", fewer)]
        archived = [f"{row.pages}{more}", el("small", reader.size(row.stored_bytes) + more)]
        return about, head.turns, live, archived if row.pages else "–", head.updated

    counts = ui.numbers("conv.turns", "conv.live", "conv.archived")
    columns = {"conv.conversation": "row", **counts, "conv.written": "when"}
    return ui.table(reader, reader.say("nav.conversations"), columns, map(cells, rows), class_="roomy")


def link_to(path: str, scope: Scope, reader: Reader) -> Element:
    name = scope.conversation or ""
    place = reader.asked.to(path, conversation_id=scope.conversation, user_id=scope.user)
    return el("a", ui.short(name), href=place, title=name if ui.is_made(name) else None)


# -- the list ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conversations:
    rows: tuple[Row, ...]
    #: How many match the search, and the page shown, counted from 1.
    found: int
    page: int
    pages: int
    search: str | None
    order: str
    #: Set when older conversations were not scanned; the list continues after this one.
    older: str | None


async def gather(memory: Memory, asked: PageRequest) -> Conversations:
    listing = await memory.conversations(**asked.owner, limit=LOOKED_AT, after=asked.text("after"))
    search, order = asked.text("q"), asked.choice("sort", *_ORDERS)
    found = [head for head in listing if search is None or search.casefold() in _names(head)]
    if order != "written":
        found.sort(key=attrgetter(_ORDERS[order]), reverse=True)
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(asked.whole("page", 1, least=1), pages)
    rows = await rows_of(memory, found[(page - 1) * PER_PAGE : page * PER_PAGE])
    return Conversations(rows, len(found), page, pages, search, order, listing.next)


def _names(head: ConversationInfo) -> str:
    return "\n".join(filter(None, (head.scope.conversation, head.scope.user, head.agent))).casefold()


def show(data: Conversations, reader: Reader) -> ui.View:
    say, asked = reader.say, reader.asked
    if data.rows:
        found = ui.card(None, conversations_table(data.rows, reader), _pager(data, reader))
    elif data.search is None:
        found = ui.empty(say("conv.none"), el("a", say("conv.begin"), href=asked.to(urls.HOME)))
    else:
        found = ui.empty(say("conv.no_match", q=data.search))
    rest = None
    if data.older is not None:
        older = {**asked.query, "after": data.older, "page": None}
        link = reader.here(urls.CONVERSATIONS, say("conv.older"), **older)
        rest = ui.notice([say("conv.looked_at", n=reader.number(LOOKED_AT)), " ", link])
    lead = reader.count("count.conversations", data.found)
    return ui.View(say("nav.conversations"), [_search(data, reader), found, rest], lead=lead)


def _search(data: Conversations, reader: Reader) -> Element:
    asked, tenant = reader.asked, None
    if "tenant" not in asked.bound:
        tenant = ui.field_of(reader, "field.tenant", "tenant", asked.tenant, placeholder="default")
    search, go = ui.search_field(reader, "conv.search", data.search), ui.button(reader, "ask.search")
    orders = [(name, reader.say(f"sort.{name}")) for name in _ORDERS]
    order = ui.choice_of(reader, "sort.label", "sort", data.order, orders)
    fields = search, ui.user_field(reader), tenant, order
    return ui.asking_form(reader, "conv.search", *fields, button=go, tenant=None)


def _pager(data: Conversations, reader: Reader) -> Element | None:
    if data.pages < 2:
        return None

    def step(key: str, number: int, rel: str) -> Element:
        there = reader.asked.here(reader.path, **{**reader.asked.query, "page": number})
        return ui.step_to(reader.say(key), there if 1 <= number <= data.pages else None, rel=rel)

    numbers = {"page": reader.number(data.page), "pages": reader.number(data.pages)}
    place = el("span", reader.say("pager.place", **numbers))
    before, after = step("pager.before", data.page - 1, "prev"), step("pager.next", data.page + 1, "next")
    return ui.pager(reader, before, place, after)


# -- sessions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    head: ConversationInfo
    value: JsonObject | None


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of the latest conversations, or of one."""

    sessions: tuple[Session, ...]
    next: str | None
    #: Whether a single conversation was requested.
    one: bool


async def gather_sessions(memory: Memory, asked: PageRequest) -> Sessions:
    async def session(head: ConversationInfo) -> Session:
        return Session(head, await chat_in(memory, head.scope).session())

    if asked.conversation_id is not None:
        return Sessions((await session(await chat_of(memory, asked).head()),), None, one=True)
    heads = await memory.conversations(**asked.owner, limit=_SESSIONS_SHOWN, after=asked.text("after"))
    return Sessions(tuple([await session(head) for head in heads]), heads.next, one=False)


def show_sessions(data: Sessions, reader: Reader) -> ui.View:
    say, asked = reader.say, reader.asked
    if data.one:
        body: list[Content] = [_session(session, reader) for session in data.sessions]
    else:
        user, go = ui.user_field(reader), ui.button(reader, "ask.show")
        choose = None if user is None else ui.asking_form(reader, "nav.sessions", user, button=go)
        more = asked.to(urls.SESSIONS, user_id=asked.user_id, after=data.next) if data.next else None
        found = ui.card(None, _sessions_table(data, reader), ui.older(reader, more))
        body = [choose, found if data.sessions else ui.empty(say("conv.none"))]
    return ui.View(say("nav.sessions"), body, lead=say("session.lead"))


def _sessions_table(data: Sessions, reader: Reader) -> Element:
    columns = {"conv.conversation": "row", "calls.mode": "", "session.last": "reason", "conv.written": "when"}

    def row(session: Session) -> tuple[ui.Value, ...]:
        scope = session.head.scope
        mode = _inner(session.value, "message_context").get("mode")
        last = _inner(session.value, "flow_context").get("last_bot_message")
        name = [link_to(urls.SESSIONS, scope, reader), " ", ui.some("span", scope.user, class_="who")]
        shown = reader.known(f"mode.{mode}", str(mode)) if mode else "–"
        return name, shown, str(last or "–")[:160], session.head.updated

    return ui.table(reader, reader.say("nav.sessions"), columns, map(row, data.sessions), class_="roomy")


def _inner(value: JsonObject | None, name: str) -> JsonObject:
    inner: JsonValue = None if value is None else value.get(name)
    return inner if isinstance(inner, dict) else {}


def _filled(value: JsonValue) -> JsonValue:
    """A value without what is empty in it: a session has only the fields that somebody filled in."""
    if isinstance(value, dict):
        inner = {name: one for name, given in value.items() if (one := _filled(given)) is not None}
        return inner or None
    if isinstance(value, list):
        return value or None
    return None if value in ("", 0) else value


def _session(session: Session, reader: Reader) -> Element:
    if session.value is None:
        return ui.empty(reader.say("session.none"))

    def section(name: str, value: JsonValue) -> Element:
        if isinstance(value, dict | list):
            return el("section", el("h3", name), ui.code(value), class_="part")
        return el("p", el("strong", name), " ", str(value))

    known = [
        section(name, value) for name, given in session.value.items() if (value := _filled(given)) is not None
    ]
    return ui.card(reader.say("session.value"), known or ui.empty(reader.say("session.none")))
