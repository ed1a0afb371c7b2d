"""Recall to try out: what a question brings back and why, beside plain BM25 over the same turns."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from pagefile.engine import Memory
from pagefile.inspector import ui, urls
from pagefile.inspector.charts import gauge
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.records import DEFAULT_TENANT, Hit, Scope, Turn
from pagefile.text.bm25 import WordIndex
from pagefile.text.words import terms

_HITS = 10
#: How many turns plain BM25 searches.
LOOKED_AT = 3_000
_SHOWN = 700
#: Parts that rate a turn on its own; they are not added to the score.
_BESIDE = ("coverage", "similarity")


@dataclass(frozen=True, slots=True)
class WordHit:
    id: str
    conversation_id: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Recalled:
    query: str | None
    hits: tuple[Hit, ...]
    plain: tuple[WordHit, ...]
    #: How many turns plain BM25 searched, and whether there were more.
    looked_at: int
    more: bool
    #: Users to choose from, taken from the latest conversations.
    users: tuple[str, ...]
    #: Whether the user that was named has no conversation.
    unknown: bool = False


async def gather(memory: Memory, asked: PageRequest) -> Recalled:
    query = asked.text("q") or asked.text("query")
    users = await known_users(memory, asked)
    if asked.user_id is not None and asked.user_id not in users:
        unknown = not await memory.conversations(**asked.owner, limit=1)
    else:
        unknown = False
    if unknown or query is None or (asked.user_id is None and asked.conversation_id is None):
        return Recalled(query, (), (), 0, more=False, users=users, unknown=unknown)
    if asked.conversation_id is not None:
        hits = await chat_of(memory, asked).recall(query, _HITS)
    else:
        hits = await memory.recall(query, user_id=asked.user_id or "", tenant=asked.tenant, limit=_HITS)
    turns = await memory.turns(conversation_id=asked.conversation_id, **asked.owner, limit=LOOKED_AT)
    found = await anyio.to_thread.run_sync(_by_words, turns, query)
    return Recalled(query, tuple(hits), tuple(found), len(turns), turns.next is not None, users)


async def known_users(memory: Memory, asked: PageRequest) -> tuple[str, ...]:
    """The users of the latest conversations; only the key's own if it is bound to one."""
    if "user_id" in asked.bound:
        return (asked.user_id,) if asked.user_id else ()
    heads = await memory.conversations(tenant=asked.tenant, limit=200)
    return tuple(dict.fromkeys(head.scope.user for head in heads if head.scope.user))[:50]


def _by_words(turns: Sequence[Turn], query: str) -> list[WordHit]:
    index: WordIndex[int] = WordIndex()
    for place, turn in enumerate(turns):
        index.add(place, terms(turn.text))
    found = [(turns[one.key], one.score) for one in index.search(terms(query), _HITS)]
    return [WordHit(turn.id, turn.scope.conversation or "", turn.text, score) for turn, score in found]


def show(data: Recalled, reader: Reader) -> ui.View:
    say, asked = reader.say, reader.asked
    if data.unknown:
        found: Content = [ui.notice(say("recall.no_user", name=asked.user_id), "bad"), _users(data, reader)]
    elif asked.user_id is None and asked.conversation_id is None:
        found = _users(data, reader)
    elif data.query is None:
        found = ui.empty(say("recall.ask"), say("recall.ask_about"))
    else:
        found = _both(data, reader)
    who = None
    if asked.conversation_id is None:
        alone = data.users[0] if len(data.users) == 1 else None
        who = ui.user_field(reader, data.users, alone, required=True)
    query = ui.search_field(reader, "recall.query", data.query, required=True)
    go = ui.button(reader, "recall.go")
    form = ui.asking_form(reader, "nav.recall", query, who, button=go, **ui.scope_of(reader, who))
    return ui.View(say("nav.recall"), [form, found], lead=say("recall.lead"))


def _users(data: Recalled, reader: Reader) -> Content:
    """Whose turns to recall: recall looks through the conversations of one user."""
    links = [el("li", reader.link(urls.RECALL, user, user_id=user, q=data.query)) for user in data.users]
    if not links:
        return ui.empty(reader.say("facts.nobody"))
    return ui.card(reader.say("recall.whose"), el("ul", links, class_="chips"))


def _both(data: Recalled, reader: Reader) -> Element:
    say = reader.say
    parts = [abs(part) for hit in data.hits for name, part in hit.parts.items() if name not in _BESIDE]
    most = max(parts, default=0) or 1.0
    both = frozenset(one.id for one in data.hits) & frozenset(one.id for one in data.plain)

    def item(hit: Hit | WordHit, kind: str, when: Content = None, parts: Content = None) -> Element:
        name = hit.conversation_id
        scope = Scope(reader.asked.tenant or DEFAULT_TENANT, reader.asked.user_id, name)
        link = reader.turn(name, hit.id, scope)
        score = ui.badge(say("score", score=f"{hit.score:.3f}"), kind)
        alone = None if hit.id in both else ui.badge(say("recall.only_here"), "open")
        return el("li", el("p", link, " ", when, score, alone), el("blockquote", hit.text[:_SHOWN]), parts)

    ours = [
        item(hit, "in", [reader.time(hit.at), " "], _parts(hit, most, reader, first=hit is data.hits[0]))
        for hit in data.hits
    ]
    plain = [item(hit, "soft") for hit in data.plain]
    more = ui.soft(say("recall.more", n=reader.number(data.looked_at))) if data.more else None

    def column(key: str, items: list[Element], more: Content = None) -> Element:
        found = ui.some("ol", items, class_="hits") or ui.empty(say("recall.nothing"))
        return ui.card(say(key), found, more)

    return el("div", column("recall.ours", ours), column("recall.plain", plain, more), class_="two")


def _parts(hit: Hit, most: float, reader: Reader, *, first: bool) -> Element:
    def name_of(part: str) -> str:
        return reader.known(f"part.{part}", part)

    def row(name: str, value: float) -> Element:
        bar = gauge(min(1.0, abs(value) / most), "fill" if value >= 0 else "against", aria_hidden="true")
        head = el("th", name_of(name), scope="row")
        return el("tr", head, el("td", bar), el("td", f"{value:.3f}", class_="num"))

    parts = sorted(hit.parts.items(), key=lambda one: -abs(one[1]))
    rows = [row(name, value) for name, value in parts if value and name not in _BESIDE]
    beside = [f"{name_of(name)} {hit.parts[name]:.2f}" for name in _BESIDE if name in hit.parts]
    title = reader.say("recall.parts")
    table = el("table", el("caption", title, class_="unseen"), el("tbody", rows), class_="parts")
    others = ui.some("p", " · ".join(beside), class_="soft under")
    return el("details", el("summary", title), table, others, open=first)
