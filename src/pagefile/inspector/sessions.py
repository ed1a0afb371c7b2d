"""Session values: the state an agent keeps for a conversation."""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.asking import Asked, head_of
from pagefile.inspector.frame import View, card, columns, empty, field_of, table
from pagefile.inspector.frame import asking_form as asking
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import code
from pagefile.inspector.reader import Reader
from pagefile.records import Head, JsonObject, JsonValue

_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation and its session value, if it has one."""

    head: Head
    value: JsonObject | None


@dataclass(frozen=True, slots=True)
class Sessions:
    """Sessions of the latest conversations, or of one."""

    sessions: tuple[Session, ...]
    next: str | None
    #: Whether a single conversation was requested.
    one: bool


async def gather(memory: Memory, asked: Asked) -> Sessions:
    """Session values as stored in the database."""
    if asked.conversation_id is not None:
        head = await head_of(memory, asked)
        return Sessions((await _session(memory, head),), None, one=True)
    heads = await memory.conversations(
        user_id=asked.user_id, tenant=asked.tenant, limit=_SHOWN, after=asked.text("after")
    )
    return Sessions(tuple([await _session(memory, head) for head in heads]), heads.next, one=False)


async def _session(memory: Memory, head: Head) -> Session:
    scope = head.scope
    chat = memory.conversation(scope.conversation or "", user_id=scope.user, tenant=scope.tenant)
    return Session(head, await chat.session())


def show(data: Sessions, reader: Reader) -> View:
    """The page."""
    say, asked = reader.say, reader.asked
    body: list[Content]
    if data.one:
        body = [_one(session, reader) for session in data.sessions] or [empty(say("session.none"))]
    else:
        more = asked.to(places.SESSIONS, user_id=asked.user_id, after=data.next)
        link = el("p", el("a", say("slice.older"), href=more), class_="more") if data.next else None
        body = [
            _search(reader),
            card(_table(data, reader), link) if data.sessions else empty(say("conv.none")),
        ]
    return View(
        say("nav.sessions"),
        body,
        lead=say("session.lead"),
        tabs=data.one,
        query={"after": asked.text("after") or ""},
    )


def _search(reader: Reader) -> Content:
    say, asked = reader.say, reader.asked
    if "user_id" in asked.bound:
        return None
    user = field_of(say("field.user"), "user_id", asked.user_id)
    return asking(
        places.SESSIONS,
        user,
        el("button", say("ask.show"), class_="primary"),
        hidden={"tenant": asked.tenant},
        label=say("nav.sessions"),
    )


def _table(data: Sessions, reader: Reader) -> Element:
    say = reader.say
    head = columns(reader, "conv.conversation", "calls.mode", "session.last", "conv.written")
    rows: list[Content] = []
    for session in data.sessions:
        scope, context = session.head.scope, _inner(session.value, "message_context")
        last = str(_inner(session.value, "flow_context").get("last_bot_message") or "–")
        link = reader.link(
            places.SESSIONS, scope.conversation or "", conversation_id=scope.conversation, user_id=scope.user
        )
        owner = el("span", scope.user, class_="who") if scope.user else None
        rows.append(
            el(
                "tr",
                el("th", link, " ", owner, scope="row"),
                el("td", el("code", str(context.get("mode") or "–"))),
                el("td", last[:160], class_="reason"),
                el("td", reader.time(session.head.updated), class_="when"),
            )
        )
    return table(head, rows, caption=say("nav.sessions"), class_="roomy")


def _inner(value: JsonObject | None, name: str) -> JsonObject:
    inner: JsonValue = None if value is None else value.get(name)
    return inner if isinstance(inner, dict) else {}


def _one(session: Session, reader: Reader) -> Element:
    say = reader.say
    if session.value is None:
        return empty(say("session.none"))
    sections = [
        el("section", el("h3", name), code(value), class_="part")
        if isinstance(value, dict | list)
        else el("p", el("strong", name), " ", str(value))
        for name, value in session.value.items()
    ]
    return card(sections, title=say("session.value"))
