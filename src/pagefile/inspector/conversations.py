"""The list of conversations: searchable, sortable, paginated."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.asking import Asked
from pagefile.inspector.frame import View, asking_form, card, choice_of, empty, field_of, notice
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import Row, conversations_table, rows_of
from pagefile.inspector.reader import Reader
from pagefile.records import Head

#: Conversations per page, and how many are scanned for a search or another order.
PER_PAGE = 25
LOOKED_AT = 2_000

_ORDERS: dict[str, Callable[[Head], Any]] = {
    "written": lambda head: head.updated,
    "begun": lambda head: head.created,
    "turns": lambda head: head.turns,
    "tokens": lambda head: head.live_tokens,
}


@dataclass(frozen=True, slots=True)
class Conversations:
    """One page of the list."""

    rows: tuple[Row, ...]
    #: How many match the search, and the page shown, counted from 1.
    found: int
    page: int
    pages: int
    search: str | None
    order: str
    #: Set when older conversations were not scanned; the list continues after this one.
    older: str | None


async def gather(memory: Memory, asked: Asked) -> Conversations:
    """The conversations that match."""
    listing = await memory.conversations(
        user_id=asked.user_id, tenant=asked.tenant, limit=LOOKED_AT, after=asked.text("after")
    )
    search, order = asked.text("q"), asked.choice("sort", *_ORDERS)
    found = [head for head in listing if search is None or _fits(head, search.casefold())]
    if order != "written":
        found.sort(key=_ORDERS[order], reverse=True)
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(asked.whole("page", 1, least=1), pages)
    rows = await rows_of(memory, found[(page - 1) * PER_PAGE : page * PER_PAGE])
    return Conversations(rows, len(found), page, pages, search, order, listing.next)


def show(data: Conversations, reader: Reader) -> View:
    """The page."""
    say, asked = reader.say, reader.asked
    body: list[Content] = [_search(data, reader)]
    if data.rows:
        body.append(
            card(
                conversations_table(data.rows, reader),
                pager(data.page, data.pages, _query(data, reader), reader),
            )
        )
    elif data.search is None:
        body.append(empty(say("conv.none"), el("p", el("a", say("conv.begin"), href=asked.to(places.HOME)))))
    else:
        body.append(empty(say("conv.no_match", q=data.search)))
    if data.older is not None:
        behind = asked.to(places.CONVERSATIONS, **{**_query(data, reader), "after": data.older})
        told = say("conv.looked_at", n=reader.number(LOOKED_AT))
        body.append(notice([told, " ", el("a", say("conv.older"), href=behind)]))
    return View(
        say("nav.conversations"),
        body,
        lead=reader.count("count.conversations", data.found),
        query={
            key: value for key, value in {**_query(data, reader), "page": str(data.page)}.items() if value
        },
    )


def _fits(head: Head, search: str) -> bool:
    names = (head.scope.conversation, head.scope.user, head.agent)
    return any(search in name.casefold() for name in names if name)


def _query(data: Conversations, reader: Reader) -> dict[str, str]:
    asked = reader.asked
    sort = "" if data.order == "written" else data.order
    return {
        "q": data.search or "",
        "sort": sort,
        "user_id": asked.user_id or "",
        "after": asked.text("after") or "",
    }


def _search(data: Conversations, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    orders = [(name, say(f"sort.{name}")) for name in _ORDERS]
    who: Content = None
    if "user_id" not in asked.bound:
        who = field_of(say("field.user"), "user_id", asked.user_id)
    tenant: Content = None
    if "tenant" not in asked.bound:
        tenant = field_of(say("field.tenant"), "tenant", asked.tenant, placeholder="default")
    return asking_form(
        places.CONVERSATIONS,
        field_of(say("conv.search"), "q", data.search, kind="search"),
        who,
        tenant,
        choice_of(say("sort.label"), "sort", data.order, orders),
        el("button", say("ask.search"), class_="primary"),
        label=say("conv.search"),
    )


def pager(page: int, pages: int, query: dict[str, str], reader: Reader) -> Element | None:
    """Links to the previous and next page."""
    if pages < 2:
        return None
    say = reader.say

    def to(number: int, key: str, rel: str) -> Element:
        if not 1 <= number <= pages:
            return el("span", say(key), class_="soft")
        return el("a", say(key), href=reader.asked.to(reader.path, **{**query, "page": str(number)}), rel=rel)

    place = el("span", say("pager.place", page=reader.number(page), pages=reader.number(pages)))
    return el(
        "nav",
        to(page - 1, "pager.before", "prev"),
        place,
        to(page + 1, "pager.next", "next"),
        aria_label=say("pager.label"),
        class_="pager",
    )
