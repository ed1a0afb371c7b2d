"""One turn from the question to the answer as a tree: the windows that were made, the model calls, the tools, the pages."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pagefile.engine import Conversation, Memory
from pagefile.engine.annotations import ModelCall, Note, Subject, model_calls, notes_of, write_note
from pagefile.engine.ownership import looked_up
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.inspector import ui, urls
from pagefile.inspector.charts import span
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.inspector.search import labels_of, note_form
from pagefile.inspector.timeline import found_turn
from pagefile.records import SNAPSHOT_KEY, Step, Turn, WindowRecord
from pagefile.tiers.page_in import LOADING_TOOLS

#: Calls of the conversation that are looked at for those of the turn.
_CALLS = 200
_SNIPPET = 200


@dataclass(frozen=True, slots=True)
class Trace:
    turn: Turn
    #: Its windows, oldest first.
    calls: tuple[WindowRecord, ...]
    #: How the model answered them, where that is known.
    models: Mapping[str, ModelCall]
    note: Note | None


async def gather(memory: Memory, asked: PageRequest) -> Trace:
    turn_id = asked.text("turn")
    if turn_id is None:
        raise InvalidArgumentError("Which turn? Open its trace from the timeline of a conversation.")
    chat = chat_of(memory, asked)
    turn = await found_turn(chat, turn_id)
    calls = await calls_for(chat, turn)
    models = await model_calls(memory, turn.scope, [call.id for call in calls])
    notes = await notes_of(memory, turn.scope)
    return Trace(turn, tuple(calls), models, notes.get(("turn", turn.id)))


async def calls_for(chat: Conversation, turn: Turn) -> list[WindowRecord]:
    """The windows that were made for a turn, or for its question before it was recorded, oldest first."""
    calls = await chat.calls(limit=_CALLS)
    own = [call for call in calls if call.turn_id == turn.id]
    if not own:
        asked = (call for call in calls if call.turn_id is None and call.query == turn.user)
        own = [call for call in asked if turn.seq is None or last_seq(call) < turn.seq][:1]
    return own[::-1]


def last_seq(call: WindowRecord) -> int:
    return _moment(call, "last_seq")


def _moment(call: WindowRecord, name: str) -> int:
    moment = call.options.get(SNAPSHOT_KEY)
    found = moment.get(name) if isinstance(moment, Mapping) else None
    return found if isinstance(found, int) else 0


async def turn_of(chat: Conversation, call: WindowRecord) -> Turn | None:
    """The turn that a window was made for; None if it was erased or never recorded."""
    if call.turn_id is not None:
        with suppress(NotFoundError):
            return await found_turn(chat, call.turn_id)
        return None
    later = await chat.turns(after=last_seq(call), limit=3)
    return next((turn for turn in later if turn.user == call.query), None)


def steps_after(call: WindowRecord, turn: Turn, calls: Sequence[WindowRecord]) -> Sequence[Step]:
    """The tool calls with which the model answered a window; none if it answered in words."""
    first = _moment(call, "steps") if call.turn_id is not None else 0
    later = [_moment(one, "steps") for one in calls if one.at > call.at]
    return turn.steps[first : min(later, default=len(turn.steps))]


async def note(memory: Memory, asked: PageRequest) -> str:
    """Write down a note on a turn or a call, and lead back to it."""
    subject, subject_id = asked.choice("subject", "turn", "call"), asked.text("id")
    if subject_id is None:
        raise InvalidArgumentError("Nothing was saved: which turn or call is the note about?")
    if subject == "call":
        call = await memory.call(subject_id, tenant=asked.tenant)
        scope = await looked_up(memory, call.scope)
        back = asked.to(urls.CALL, call_id=subject_id, done="noted")
        if "user_id" in asked.bound and scope.user != asked.user_id:
            raise NotFoundError(f"There is no call {subject_id!r}.")
    else:
        scope = (await found_turn(chat_of(memory, asked), subject_id)).scope
        scope = await looked_up(memory, scope)
        back = asked.here(urls.TRACE, turn=subject_id, done="noted")
    labels = (asked.text("labels") or "").replace("，", ",").split(",")
    about: Subject = "call" if subject == "call" else "turn"
    await write_note(memory, scope, about, subject_id, labels=labels, text=asked.text("text") or "")
    return back


# -- the page ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Times:
    """When a turn began and ended, to draw what happened in it."""

    began: datetime
    ended: datetime

    @property
    def known(self) -> bool:
        return self.ended > self.began

    def bar(self, start: datetime, end: datetime, label: str) -> Element | None:
        if not self.known:
            return None
        whole = (self.ended - self.began).total_seconds()
        at = min(1.0, max(0.0, (start - self.began).total_seconds() / whole))
        width = min(1.0 - at, max(0.0, (end - start).total_seconds() / whole))
        return span(at, width, label)


def show(data: Trace, reader: Reader) -> ui.View:
    say, turn = reader.say, data.turn
    ends = [turn.created, *(call.at for call in data.calls)] if turn.status != "open" else [turn.at]
    times = _Times(min([turn.at, *(call.at for call in data.calls)]), max(ends))
    known = {
        "trace.duration": duration(times.ended - times.began) if times.known else "–",
        "trace.windows": len(data.calls),
        "trace.tools": len(turn.steps),
        "calls.tokens": turn.tokens,
        "archive.when": reader.time(turn.at, exact=True),
    }
    place = f"#{turn.seq}" if turn.seq is not None else say("entry.running")
    back = reader.turn(say("trace.timeline"), turn.id, turn.scope)
    body: list[Content] = [
        ui.confirmation(reader),
        ui.figures(reader, known),
        ui.card(say("trace.tree"), el("ol", _nodes(data, times, reader), class_="tree")),
        note_form(reader, data.note, "turn", turn.id),
        el("p", back),
    ]
    crumbs = (
        (reader.asked.to(urls.CONVERSATIONS), say("nav.conversations")),
        reader.crumb(urls.CONVERSATION, ui.short(turn.scope.conversation or "")),
    )
    lead = [ui.some("q", (turn.user or "")[:_SNIPPET]), " ", labels_of(data.note)]
    return ui.View(say("trace.title", place=place), body, lead=lead, crumbs=crumbs)


def _nodes(data: Trace, times: _Times, reader: Reader) -> list[Element]:
    say, turn, calls = reader.say, data.turn, data.calls
    question = _node(say("trace.question"), ui.said(turn.said or turn.user or "–", reader))
    first = _moment(calls[0], "steps") if calls and calls[0].turn_id is not None else 0
    before = turn.steps[: first if calls else len(turn.steps)]
    nodes = [question, *(_step(step, turn, reader) for step in before)]
    for number, call in enumerate(calls):
        end = calls[number + 1].at if number + 1 < len(calls) else times.ended
        nodes.append(_call(call, data, times, end, reader))
    if answer := turn.answered or turn.assistant:
        nodes.append(_node(say("trace.answer"), ui.said(answer, reader)))
    if turn.status != "done":
        nodes.append(_node(say("entry.aborted" if turn.status == "aborted" else "entry.open"), None))
    return nodes


def _node(title: Content, *inside: Content) -> Element:
    return el("li", el("p", el("strong", title)), *inside)


def _call(call: WindowRecord, data: Trace, times: _Times, end: datetime, reader: Reader) -> Element:
    say, model = reader.say, data.models.get(call.id)
    took = timedelta(seconds=model.seconds) if model else end - call.at
    link = reader.link(urls.CALL, say("trace.window"), call_id=call.id)
    size = say("trace.tokens", tokens=reader.number(call.tokens), mode=mode_name(call.mode, reader))
    told = ui.soft(model_words(model, reader), "span") if model else None
    long = ui.soft(duration(took), "span") if times.known and took > timedelta() else None
    line = el("p", el("strong", link), " ", ui.soft(size, "span"), " ", told, " ", long)
    steps = [_step(step, data.turn, reader) for step in steps_after(call, data.turn, data.calls)]
    bar = times.bar(call.at, call.at + took, duration(took))
    return el("li", line, bar, ui.some("ol", steps, class_="tree"))


def _step(step: Step, turn: Turn, reader: Reader) -> Element:
    say, loads = reader.say, step.tool in LOADING_TOOLS
    scope = {"conversation_id": turn.scope.conversation, "user_id": turn.scope.user}
    state: Content = None
    if loads:
        state = ui.badge(say("step.loaded"), "in")
    elif step.page is not None:
        state = ui.badge(say("page.archived"), "kept")
    page = None
    if step.page is not None and not loads:
        page = reader.link(urls.PAGE, say("trace.page"), uuid=step.page, **scope)
    size = ui.soft(reader.count("count.tokens", step.page_tokens or step.result_tokens), "span")
    line = el("p", el("code", step.tool, class_="tool"), " ", state, " ", size, " ", page)
    given = el("h3", say("step.input"), class_="role"), ui.code(step.input)
    result = el("h3", say("step.result"), class_="role"), ui.said(step.result, reader)
    return el("li", line, el("details", el("summary", say("trace.details")), given, result))


def duration(taken: timedelta) -> str:
    seconds = taken.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def mode_name(mode: str, reader: Reader) -> str:
    return reader.known(f"mode.{mode}", mode)


def model_words(model: ModelCall, reader: Reader) -> list[Content]:
    """Which model answered, how long it took, what it counted and what that costs."""
    parts: list[Content] = [el("code", model.model), f" · {duration(timedelta(seconds=model.seconds))}"]
    if model.tokens_in is not None or model.tokens_out is not None:
        tokens = (("–" if n is None else reader.number(n)) for n in (model.tokens_in, model.tokens_out))
        parts.append(" · " + reader.say("trace.counted", tokens=" → ".join(tokens)))
    if model.price is not None:
        parts.append(f" · {ui.price(model.price, model.currency)}")
    return parts
