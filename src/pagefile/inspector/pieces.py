"""How records look on pages: tables of conversations, spoken text, JSON, prompt messages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.charts import level
from pagefile.inspector.frame import columns, num, numbers, table
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.reader import Reader
from pagefile.plain import plain
from pagefile.records import Head, Page

#: Characters of a message shown at once, and how many more can be expanded.
_SHOWN, _MORE = 2_000, 60_000
#: How many of a conversation's archived results are counted for a list.
_COUNTED = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation in a list: its state, its first words, and the size of its archive."""

    head: Head
    began_with: str
    pages: int
    #: Whether there are more pages than were counted.
    more_pages: bool
    stored_bytes: int


async def rows_of(memory: Memory, heads: Sequence[Head]) -> tuple[Row, ...]:
    """The rows for a list of conversations."""
    return tuple([await _row(memory, head) for head in heads])


async def _row(memory: Memory, head: Head) -> Row:
    scope = head.scope
    chat = memory.conversation(scope.conversation or "", user_id=scope.user, tenant=scope.tenant)
    first = await chat.turns(limit=1)
    pages = await chat.pages(limit=_COUNTED)
    kept = sum(page.stored_bytes for page in pages if page.purged is None)
    text = next((turn.text for turn in first), "")
    return Row(head, " ".join(text.split())[:160], len(pages), pages.next is not None, kept)


def conversations_table(rows: Sequence[Row], reader: Reader) -> Element:
    """A table with one row per conversation."""
    say = reader.say
    head = columns(
        reader, "conv.conversation", *numbers("conv.turns", "conv.live", "conv.archived"), "conv.written"
    )
    return table(
        head, [_conversation(row, reader) for row in rows], caption=say("nav.conversations"), class_="roomy"
    )


def _conversation(row: Row, reader: Reader) -> Element:
    head, say = row.head, reader.say
    name = head.scope.conversation or ""
    owner = (
        el("span", head.scope.user, class_="who")
        if head.scope.user
        else el("span", say("conv.nobody"), class_="who soft")
    )
    link = reader.link(places.CONVERSATION, name, conversation_id=name, user_id=head.scope.user)
    agent = el("span", head.agent, class_="tag") if head.agent else None
    archived: Content = "–"
    if row.pages:
        more = "+" if row.more_pages else ""
        archived = [f"{row.pages}{more}", el("small", reader.size(row.stored_bytes) + more)]
    return el(
        "tr",
        el("th", link, " ", owner, agent, el("p", row.began_with, class_="snippet"), scope="row"),
        num(reader.number(head.turns)),
        num([reader.number(head.live_tokens), el("small", reader.count("count.turns", head.live_turns))]),
        num(archived),
        el("td", reader.time(head.updated), class_="when"),
    )


def said(text: str, reader: Reader) -> Content:
    """Spoken text, line by line; long texts can be expanded."""
    if len(text) <= _SHOWN + 200:
        return el("div", text, class_="text")
    rest = text[_SHOWN : _SHOWN + _MORE]
    left = len(text) - _SHOWN - len(rest)
    return [
        el("div", text[:_SHOWN], class_="text"),
        el(
            "details",
            el("summary", reader.say("text.more", n=reader.number(len(text) - _SHOWN))),
            el("div", rest, class_="text"),
            el("p", reader.say("text.cut", n=reader.number(left)), class_="soft") if left else None,
        ),
    ]


def code(value: object) -> Element:
    """JSON, indented."""
    return el("pre", json.dumps(plain(value), ensure_ascii=False, indent=2), tabindex="0")


def message(given: Mapping[str, object], reader: Reader) -> Element:
    """A prompt message as it was sent."""
    role = str(given.get("role", ""))
    content = given.get("content")
    calls = given.get("tool_calls")
    label = f"{role} · {given['name']}" if given.get("name") else role
    return el(
        "article",
        el("h3", label, class_="role"),
        said(content, reader) if isinstance(content, str) and content else None,
        code(content) if content and not isinstance(content, str) else None,
        code(calls) if calls else None,
        class_=f"message m-{role if role in {'system', 'user', 'assistant', 'tool'} else 'other'}",
    )


def badge(text: str, kind: str = "") -> Element:
    """A label for a state."""
    return el("span", text, class_=f"badge {kind}".strip())


def page_state(page: Page, reader: Reader) -> Content:
    """Archived, pinned, or purged."""
    if page.purged is not None:
        return badge(reader.say("page.purged"), "gone")
    pinned = [" ", badge(reader.say("page.pinned"), "pin")] if page.pinned else None
    return [badge(reader.say("page.archived"), "kept"), pinned]


def fill_level(head: Head, window: int, reader: Reader) -> Element:
    """How full a window is with live turns."""
    label = reader.say("conv.fill", part=reader.percent(head.live_tokens / window))
    return level(head.live_tokens, window, label)
