"""A chat to try out: the answer streams, and page-outs and page-ins are shown as they happen."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pagefile.engine import Memory
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, words
from pagefile.records import Step, Turn
from pagefile.tiers.page_in import LOADING_TOOLS

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


async def gather(memory: Memory, asked: PageRequest) -> Playground:
    """The conversation so far; a new one unless one is named."""
    name = asked.conversation_id or f"playground-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    chat = memory.conversation(name, **asked.owner)
    turns = await chat.turns(limit=_TURNS, newest=True) if asked.conversation_id else ()
    return Playground(name, asked.user_id, tuple(turns), memory.settings.model.name)


def show(data: Playground, reader: Reader) -> ui.View:
    """The page. Without JavaScript the form is posted, and the answer is on the page that comes back."""
    say = reader.say
    who = say("chat.model", name=data.model) if data.model else say("chat.scripted")
    turns = [_turn(turn, reader) for turn in data.turns]
    live = {"role": "log", "aria_live": "polite", "aria_label": say("chat.events")}
    named = ui.field_of(reader, "conv.conversation", "conversation_id"), ui.user_field(reader)
    other = ui.asking_form(reader, "chat.other", *named, button=ui.button(reader, "chat.begin", None))
    body: list[Content] = [
        ui.confirmation(reader),
        ui.notice(who),
        None if turns else ui.empty(say("chat.empty"), say("chat.empty_about")),
        el("ol", turns, class_="chat", id="chat-log", aria_label=say("chat.log")),
        el("div", class_="events", id="chat-events", **live),
        ui.card(None, _form(data, reader)),
        el("details", el("summary", say("chat.other")), other),
    ]
    lead = [el("code", data.conversation_id), el("span", f" · {data.user_id}") if data.user_id else None]
    return ui.View(say("nav.chat"), body, lead=lead, script=True)


def _turn(turn: Turn, reader: Reader) -> Element:
    def bubble(text: str | None, who: str) -> Content:
        return el("div", ui.said(text, reader), class_=f"bubble {who}") if text else None

    def event(step: Step) -> Element:
        key, kind = ("event.loaded", "in") if step.tool in LOADING_TOOLS else ("event.archived", "kept")
        size = reader.count("count.chars", step.page_chars or len(step.result))
        badge = ui.badge(reader.say(key), kind)
        return el("p", badge, " ", el("code", step.tool), " ", size, class_="event")

    shown = [step for step in turn.steps if step.page is not None or step.tool in LOADING_TOOLS]
    events = [event(step) for step in shown]
    aborted = ui.badge(reader.say("entry.aborted"), "bad") if turn.status == "aborted" else None
    return el("li", bubble(turn.user, "user"), events, bubble(turn.assistant, "assistant"), aborted)


def _form(data: Playground, reader: Reader) -> Element:
    chat = {"conversation_id": data.conversation_id, "user_id": data.user_id}
    place = reader.asked.to(urls.CHAT, **chat)
    windows = [(one, reader.count("count.tokens", int(one))) for one in _WINDOWS]
    window = ui.choice_of(reader, "chat.window", "window_tokens", "4000", windows)
    message = ui.text_field(reader, "chat.message", "message", rows=3, id="chat-message")
    options = el("div", window, ui.tick(reader, "chat.sample", "sample"), class_="grid")
    send = ui.button(reader, "chat.send")
    made = ui.form(reader, place, message, options, send, class_="stacked-form")
    # What the script shows while an answer streams.
    events = [key for key in words() if key.startswith("event.")]
    texts = {f"data_{key.removeprefix('event.')}": reader.say(key) for key in events}
    stream = reader.asked.to(urls.STREAM, **chat)
    return el("div", made, id="chat", data_stream=stream, data_place=place, **texts)
