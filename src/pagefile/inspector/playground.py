"""A chat to try out: the answer streams, and page-outs and page-ins are shown as they happen."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pagefile.engine import Memory
from pagefile.inspector import places
from pagefile.inspector.archive import done
from pagefile.inspector.asking import Asked
from pagefile.inspector.frame import View, asking_form, card, choice_of, empty, field_of, form, notice
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge, said
from pagefile.inspector.reader import Reader
from pagefile.records import Turn
from pagefile.tiers.page_text import LOADING_TOOLS

_TURNS = 12
_WINDOWS = ("1500", "4000", "16000")


@dataclass(frozen=True, slots=True)
class Playground:
    """The end of a conversation, and which model answers in it."""

    conversation_id: str
    user_id: str | None
    turns: tuple[Turn, ...]
    #: The configured model; None if the scripted one answers.
    model: str | None


async def gather(memory: Memory, asked: Asked) -> Playground:
    """The conversation so far; a new one unless one is named."""
    name = asked.conversation_id or f"playground-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    chat = memory.conversation(name, user_id=asked.user_id, tenant=asked.tenant)
    turns = await chat.turns(limit=_TURNS, newest=True) if asked.conversation_id else ()
    return Playground(name, asked.user_id, tuple(turns), memory.settings.model.name)


def show(data: Playground, reader: Reader) -> View:
    """The page. Without JavaScript the form is posted, and the answer is on the page that comes back."""
    say = reader.say
    who = say("chat.model", name=data.model) if data.model else say("chat.scripted")
    turns: Content = [_turn(turn, reader) for turn in data.turns]
    log = el("ol", turns, class_="chat", id="chat-log", aria_label=say("chat.log"))
    body: list[Content] = [
        done(reader),
        notice(who, "note"),
        None if data.turns else empty(say("chat.empty"), el("p", say("chat.empty_about"))),
        log,
        el(
            "div",
            class_="events",
            id="chat-events",
            role="log",
            aria_live="polite",
            aria_label=say("chat.events"),
        ),
        card(_form(data, reader)),
        _other(reader),
    ]
    lead = [el("code", data.conversation_id), el("span", f" · {data.user_id}") if data.user_id else None]
    return View(say("nav.chat"), body, lead=lead, script=True, tabs=reader.asked.conversation_id is not None)


def _other(reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    who: Content = None
    if "user_id" not in asked.bound:
        who = field_of(say("field.user"), "user_id", asked.user_id)
    choose = asking_form(
        places.CHAT,
        field_of(say("conv.conversation"), "conversation_id"),
        who,
        el("button", say("chat.begin")),
        hidden={"tenant": asked.tenant},
        label=say("chat.other"),
    )
    return el("details", el("summary", say("chat.other")), choose)


def _turn(turn: Turn, reader: Reader) -> Element:
    say = reader.say
    events = [
        el(
            "p",
            badge(say("event.loaded"), "in")
            if step.tool in LOADING_TOOLS
            else badge(say("event.archived"), "kept"),
            " ",
            el("code", step.tool),
            " ",
            reader.count("count.chars", step.page_chars or len(step.result)),
            class_="event",
        )
        for step in turn.steps
        if step.page is not None or step.tool in LOADING_TOOLS
    ]
    aborted = badge(say("entry.aborted"), "bad") if turn.status == "aborted" else None
    return el(
        "li",
        el("div", said(turn.user, reader), class_="bubble user") if turn.user else None,
        events,
        el("div", said(turn.assistant, reader), class_="bubble assistant") if turn.assistant else None,
        aborted,
    )


def _form(data: Playground, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    place = asked.to(places.CHAT, conversation_id=data.conversation_id, user_id=data.user_id)
    stream = asked.to(places.STREAM, conversation_id=data.conversation_id, user_id=data.user_id)
    windows = [(one, reader.count("count.tokens", int(one))) for one in _WINDOWS]
    made = form(
        reader,
        place,
        el(
            "label",
            el("span", say("chat.message")),
            el("textarea", name="message", rows=3, required=True, id="chat-message"),
            class_="field",
        ),
        el(
            "div",
            choice_of(say("chat.window"), "window_tokens", "4000", windows),
            el(
                "label",
                el("input", type="checkbox", name="sample", value="yes"),
                say("chat.sample"),
                class_="tick",
            ),
            class_="grid",
        ),
        el("button", say("chat.send"), class_="primary"),
        class_="stacked-form",
    )
    words = {
        "archived": say("event.archived"),
        "loaded": say("event.loaded"),
        "checkpoint": say("event.checkpoint"),
        "window": say("event.window"),
        "failed": say("event.failed"),
        "thinking": say("event.thinking"),
        "chars": say("event.chars"),
    }
    return el(
        "div",
        made,
        id="chat",
        data_stream=stream,
        data_place=place,
        **{f"data_{key}": text for key, text in words.items()},
    )
