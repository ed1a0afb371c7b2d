"""A chat to try out: the answer streams, and page-outs and page-ins are shown as they happen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pagefile.engine import Memory
from pagefile.engine.standard_tiers import chat_model
from pagefile.errors import InvalidArgumentError
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, words
from pagefile.records import Step, Turn, WindowRecord
from pagefile.settings import ModelSettings
from pagefile.tiers.page_in import LOADING_TOOLS

_TURNS, _CALLS = 12, 50
_WINDOWS = ("1500", "4000", "16000")


@dataclass(frozen=True, slots=True)
class Playground:
    """The end of a conversation, and which model answers in it."""

    conversation_id: str
    user_id: str | None
    turns: tuple[Turn, ...]
    #: The configured model; None if the scripted one answers.
    model: str | None
    #: The newest window of each turn.
    calls: Mapping[str, WindowRecord]
    #: Whether the model was set for this process only, and whether this reader may set it.
    is_chosen: bool = False
    may_set: bool = False


class Chosen:
    """The model that was set for the chat, until the process ends. Its key is in nothing but the client that uses it."""

    def __init__(self) -> None:
        #: None without a name.
        self.model = chat_model(ModelSettings())
        self.name: str | None = None

    async def set(self, given: ModelSettings | None) -> None:
        """Another one, or none: the configured one answers again."""
        before, self.model, self.name = self.model, None, None
        if given is not None:
            self.model, self.name = chat_model(given), given.name
        if before is not None:
            await before.close()

    def told(self, found: Playground, *, may_set: bool) -> Playground:
        model = self.name or found.model
        return replace(found, model=model, is_chosen=self.model is not None, may_set=may_set)


def model_settings(asked: PageRequest) -> ModelSettings | None:
    """What a form says; None if it names no model."""
    name, url, key = asked.text("name"), asked.text("base_url"), asked.text("api_key")
    if name is None:
        return None
    if url is not None and not url.startswith(("http://", "https://")):
        raise InvalidArgumentError(
            f"The address of a model begins with http:// or https://, not {url[:40]!r}."
        )
    return ModelSettings(name=name, base_url=url, api_key=key)


async def gather(memory: Memory, asked: PageRequest) -> Playground:
    """The conversation so far; a new one unless one is named."""
    name = asked.conversation_id or f"playground-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    chat = memory.conversation(name, **asked.owner)
    turns = await chat.turns(limit=_TURNS, newest=True) if asked.conversation_id else ()
    calls = await chat.calls(limit=_CALLS) if asked.conversation_id else ()
    newest = {call.turn_id: call for call in reversed(calls) if call.turn_id is not None}
    return Playground(name, asked.user_id, tuple(turns), memory.settings.model.name, newest)


def show(data: Playground, reader: Reader) -> ui.View:
    """The page. Without JavaScript the form is posted, and the answer is on the page that comes back."""
    say = reader.say
    who = say("chat.model", name=data.model) if data.model else say("chat.scripted")
    turns = [_turn(turn, data, reader) for turn in data.turns]
    live = {"role": "log", "aria_live": "polite", "aria_label": say("chat.events")}
    named = ui.field_of(reader, "conv.conversation", "conversation_id"), ui.user_field(reader)
    other = ui.asking_form(reader, "chat.other", *named, button=ui.button(reader, "chat.begin", None))
    body: list[Content] = [
        ui.confirmation(reader),
        ui.notice(who),
        None if turns else ui.empty(say("chat.empty"), say("chat.empty_about")),
        ui.scrolling(
            el("ol", turns, class_="chat", id="chat-log", aria_label=say("chat.log")),
            say("chat.log"),
            class_="chat-box",
        ),
        el("div", class_="events", id="chat-events", **live),
        ui.card(None, _form(data, reader)),
        el("details", el("summary", say("chat.other")), other),
        _model_form(data, reader) if data.may_set else None,
    ]
    lead = [el("code", data.conversation_id), el("span", f" · {data.user_id}") if data.user_id else None]
    return ui.View(say("nav.chat"), body, lead=lead, script=True)


def _model_form(data: Playground, reader: Reader) -> Element:
    """Which model answers, for as long as the process runs."""
    hidden: dict[str, Any] = {"kind": "password", "autocomplete": "off", "spellcheck": "false"}
    name = data.model if data.is_chosen else None
    inside = [
        el("p", reader.say("model.about"), class_="soft"),
        ui.field_of(reader, "model.name", "name", name, hint=reader.say("model.name_about")),
        ui.field_of(reader, "model.url", "base_url", hint=reader.say("model.url_about"), autocomplete="off"),
        ui.field_of(reader, "model.key", "api_key", hint=reader.say("model.key_about"), **hidden),
        ui.button(reader, "model.set", None),
    ]
    place = reader.asked.here(urls.MODEL)
    made = ui.form(reader, place, *inside, class_="stacked-form")
    return el("details", el("summary", reader.say("model.title")), ui.card(None, made))


def _turn(turn: Turn, data: Playground, reader: Reader) -> Element:
    def bubble(text: str | None, who: str) -> Content:
        return el("div", ui.said(text, reader), class_=f"bubble {who}") if text else None

    def event(step: Step) -> Element:
        key, kind = ("event.loaded", "in") if step.tool in LOADING_TOOLS else ("event.archived", "kept")
        size = reader.count("count.chars", step.page_chars or len(step.result))
        badge = ui.badge(reader.say(key), kind)
        return el("p", badge, " ", el("code", step.tool), " ", size, class_="event")

    shown = [step for step in turn.steps if step.page is not None or step.tool in LOADING_TOOLS]
    events: list[Content] = [event(step) for step in shown]
    if (call := data.calls.get(turn.id)) is not None:
        size = reader.say("event.of", tokens=reader.number(call.tokens), budget=reader.number(_budget(call)))
        link = reader.link(urls.CALL, reader.say("event.window"), ": ", size, call_id=call.id)
        events.append(el("p", link, class_="event"))
    aborted = ui.badge(reader.say("entry.aborted"), "bad") if turn.status == "aborted" else None
    return el(
        "li", bubble(turn.user, "user"), events, bubble(turn.assistant or turn.answered, "assistant"), aborted
    )


def _budget(call: WindowRecord) -> int:
    budget = call.receipt.get("budget")
    return budget if isinstance(budget, int) else 0


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
    bill = reader.asked.to(urls.CALL, call_id="")
    bill = f"{bill}{'&' if '?' in bill else '?'}call_id="
    return el("div", made, id="chat", data_stream=stream, data_place=place, data_bill=bill, **texts)
