"""Recall to try out: what a question brings back and why, beside plain BM25 over the same turns."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.asking import Asked
from pagefile.inspector.frame import View, asking_form, card, empty, field_of, notice
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge
from pagefile.inspector.reader import Reader
from pagefile.records import Hit, Turn
from pagefile.text.ranking import WordIndex
from pagefile.text.words import terms

_HITS = 10
#: How many turns plain BM25 searches.
LOOKED_AT = 3_000
_SHOWN = 700


@dataclass(frozen=True, slots=True)
class WordHit:
    """A turn that shares words with the question."""

    id: str
    conversation_id: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a question brings back, both ways."""

    query: str | None
    hits: tuple[Hit, ...]
    plain: tuple[WordHit, ...]
    #: How many turns plain BM25 searched, and whether there were more.
    looked_at: int
    more: bool
    #: Users to choose from, taken from the latest conversations.
    users: tuple[str, ...]


async def gather(memory: Memory, asked: Asked) -> Recalled:
    """Search both ways."""
    query = asked.text("q")
    users = await known_users(memory, asked)
    if query is None or (asked.user_id is None and asked.conversation_id is None):
        return Recalled(query, (), (), 0, more=False, users=users)
    if asked.conversation_id is not None:
        chat = memory.conversation(asked.conversation_id, user_id=asked.user_id, tenant=asked.tenant)
        hits = await chat.recall(query, _HITS)
    else:
        hits = await memory.recall(query, user_id=asked.user_id or "", tenant=asked.tenant, limit=_HITS)
    turns = await memory.turns(
        user_id=asked.user_id,
        conversation_id=asked.conversation_id,
        tenant=asked.tenant,
        limit=LOOKED_AT,
    )
    found = await anyio.to_thread.run_sync(_by_words, turns, query)
    more = turns.next is not None
    return Recalled(query, tuple(hits), tuple(found), len(turns), more=more, users=users)


async def known_users(memory: Memory, asked: Asked) -> tuple[str, ...]:
    """The users of the latest conversations; only the key's own if it is bound to one."""
    if "user_id" in asked.bound:
        return (asked.user_id,) if asked.user_id else ()
    heads = await memory.conversations(tenant=asked.tenant, limit=200)
    return tuple(dict.fromkeys(head.scope.user for head in heads if head.scope.user))[:50]


def _by_words(turns: Sequence[Turn], query: str) -> list[WordHit]:
    index: WordIndex[int] = WordIndex()
    for place, turn in enumerate(turns):
        index.add(place, terms(turn.text))
    found = index.search(terms(query), _HITS)
    return [
        WordHit(turns[one.key].id, turns[one.key].scope.conversation or "", turns[one.key].text, one.score)
        for one in found
    ]


def show(data: Recalled, reader: Reader) -> View:
    """The page."""
    say, asked = reader.say, reader.asked
    body: list[Content] = [_form(data, reader)]
    if data.query is None:
        body.append(empty(say("recall.ask"), el("p", say("recall.ask_about"))))
    elif asked.user_id is None and asked.conversation_id is None:
        body.append(notice(say("recall.whose")))
    else:
        both = frozenset(one.id for one in data.hits) & frozenset(one.id for one in data.plain)
        more = (
            el("p", say("recall.more", n=reader.number(data.looked_at)), class_="soft") if data.more else None
        )
        body.append(
            el(
                "div",
                card(_hits(data, both, reader), title=say("recall.ours")),
                card(_plain(data, both, reader), more, title=say("recall.plain")),
                class_="two",
            )
        )
    return View(
        say("nav.recall"),
        body,
        lead=say("recall.lead"),
        tabs=asked.conversation_id is not None,
        query={"q": data.query or ""},
    )


def user_list(users: Sequence[str]) -> Element:
    """Suggestions for the user field."""
    return el("datalist", [el("option", value=user) for user in users], id="users")


def _form(data: Recalled, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    who: Content = None
    if "user_id" not in asked.bound and asked.conversation_id is None:
        only = data.users[0] if len(data.users) == 1 else None
        who = [
            field_of(say("field.user"), "user_id", asked.user_id or only, list="users"),
            user_list(data.users),
        ]
    return asking_form(
        places.RECALL,
        field_of(say("recall.query"), "q", data.query, kind="search", required=True),
        who,
        el("button", say("recall.go"), class_="primary"),
        hidden={
            "conversation_id": asked.conversation_id,
            "tenant": asked.tenant,
            "user_id": asked.user_id if who is None else None,
        },
        label=say("nav.recall"),
    )


def _hits(data: Recalled, both: frozenset[str], reader: Reader) -> Content:
    if not data.hits:
        return empty(reader.say("recall.nothing"))
    most = (
        max(
            [abs(part) for hit in data.hits for name, part in hit.parts.items() if name not in _BESIDE] or [0]
        )
        or 1.0
    )
    return el(
        "ol", [_hit(hit, most, both, reader, first=hit is data.hits[0]) for hit in data.hits], class_="hits"
    )


def _hit(hit: Hit, most: float, both: frozenset[str], reader: Reader, *, first: bool) -> Element:
    say = reader.say
    parts = [
        el(
            "tr",
            el("th", _part(name, reader), scope="row"),
            el("td", _level(value, most)),
            num_cell(f"{value:.3f}"),
        )
        for name, value in sorted(hit.parts.items(), key=lambda one: -abs(one[1]))
        if value and name not in _BESIDE
    ]
    beside = [f"{_part(name, reader)} {hit.parts[name]:.2f}" for name in _BESIDE if name in hit.parts]
    return el(
        "li",
        el(
            "p",
            _conversation(hit.conversation_id, reader),
            " ",
            reader.time(hit.at),
            " ",
            badge(say("score", score=f"{hit.score:.3f}"), "in"),
            None if hit.id in both else badge(say("recall.only_here"), "open"),
        ),
        el("blockquote", hit.text[:_SHOWN]),
        el(
            "details",
            el("summary", say("recall.parts")),
            el(
                "table",
                el("caption", say("recall.parts"), class_="unseen"),
                el("tbody", parts),
                class_="parts",
            ),
            el("p", " · ".join(beside), class_="soft under") if beside else None,
            open=first,
        ),
    )


def _part(name: str, reader: Reader) -> str:
    key = f"part.{name}"
    return reader.say(key) if key in _PARTS else name


#: Parts that rate a turn on its own; they are not added to the score.
_BESIDE = ("coverage", "likeness")
_PARTS = frozenset(
    f"part.{name}" for name in ("words", "neighbours", "sitting", "meaning", "time", "coverage", "likeness")
)


def num_cell(text: str) -> Element:
    """A numeric cell."""
    return el("td", text, class_="num")


def _level(value: float, most: float) -> Element:
    width = min(100.0, abs(value) / most * 100)
    bar = el("rect", x=0, y=0, width=f"{width:.1f}", height=6, class_="fill" if value >= 0 else "against")
    return el("svg", bar, viewBox="0 0 100 6", preserveAspectRatio="none", aria_hidden="true", class_="level")


def _conversation(name: str, reader: Reader) -> Element:
    return reader.link(places.CONVERSATION, name, conversation_id=name, user_id=reader.asked.user_id)


def _plain(data: Recalled, both: frozenset[str], reader: Reader) -> Content:
    say = reader.say
    if not data.plain:
        return empty(say("recall.nothing"))
    items = [
        el(
            "li",
            el(
                "p",
                _conversation(one.conversation_id, reader),
                " ",
                badge(say("score", score=f"{one.score:.3f}"), "soft"),
                None if one.id in both else badge(say("recall.only_here"), "open"),
            ),
            el("blockquote", one.text[:_SHOWN]),
        )
        for one in data.plain
    ]
    return el("ol", items, class_="hits")
