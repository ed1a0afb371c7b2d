"""The context bill: what was in the window of each call, what it cost, and why."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from pagefile.engine import Conversation, Memory
from pagefile.engine.annotations import ModelCall, Note, model_calls, notes_of
from pagefile.engine.ownership import looked_up
from pagefile.engine.replay import Cost, Explanation
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.inspector import ui, urls
from pagefile.inspector.charts import Part, Point, costs, stacked
from pagefile.inspector.conversations import chat_in
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.inspector.prompt import LOOKED_UP, Sources, candidate, prompt, sources_of
from pagefile.inspector.search import labels_of, note_form
from pagefile.inspector.trace import calls_for, duration, mode_name, steps_after, turn_of
from pagefile.records import SNAPSHOT_KEY, Step, Turn, WindowRecord
from pagefile.window.comparison import BlockBill
from pagefile.window.receipt import Receipt, Verdict

_CALLS = 50
#: A window this many times as large as the largest call in it is no measure for calls.
_FAR = 2
_VERDICTS_SHOWN = LOOKED_UP
#: Characters of a question above its bill, and of a tool's arguments.
_QUESTION, _INPUT = 300, 2_000


@dataclass(frozen=True, slots=True)
class Calls:
    """The windows of a conversation, oldest first, each with its cost without Pagefile."""

    conversation: str
    costs: tuple[Cost, ...]
    queries: Mapping[str, str | None]
    modes: Mapping[str, str]


async def gather_calls(memory: Memory, asked: PageRequest) -> Calls:
    chat = chat_of(memory, asked)
    found, calls = await chat.costs(limit=_CALLS), await chat.calls(limit=_CALLS)
    queries, modes = {call.id: call.query for call in calls}, {call.id: call.mode for call in calls}
    return Calls(chat.id, tuple(found), queries, modes)


@dataclass(frozen=True, slots=True)
class Bill:
    """A call, what it was made of, and what came of it."""

    explanation: Explanation
    #: The turn it was made for, and the tool calls that the model answered with; None if the turn is not recorded.
    turn: Turn | None
    steps: tuple[Step, ...]
    sources: Sources
    model: ModelCall | None
    note: Note | None

    @property
    def call(self) -> WindowRecord:
        return self.explanation.call


async def gather_call(memory: Memory, asked: PageRequest) -> Bill:
    call, chat = await called(memory, asked)
    explanation = await chat.explain(call.id)
    turn, steps = await turn_of(chat, call), ()
    if turn is not None and call.turn_id is not None:
        steps = tuple(steps_after(call, turn, await calls_for(chat, turn)))
    models = await model_calls(memory, chat.scope, [call.id])
    notes = await notes_of(memory, chat.scope)
    sources = await sources_of(memory, chat.scope, explanation.receipt)
    return Bill(explanation, turn, steps, sources, models.get(call.id), notes.get(("call", call.id)))


async def called(memory: Memory, asked: PageRequest) -> tuple[WindowRecord, Conversation]:
    """The requested call; a key bound to one user cannot see another user's."""
    call_id = asked.text("call_id")
    if call_id is None:
        raise InvalidArgumentError("Which call? Choose one from the calls of a conversation.")
    call = await memory.call(call_id, tenant=asked.tenant)
    if "user_id" in asked.bound and call.scope.user != asked.user_id:
        raise NotFoundError(f"There is no call {call_id!r}.")
    return call, chat_in(memory, await looked_up(memory, call.scope))


def about(call: WindowRecord, asked: PageRequest) -> PageRequest:
    """The same request with the call's own scope, for tabs and links."""
    scope = call.scope
    return replace(asked, tenant=scope.tenant, user_id=scope.user, conversation_id=scope.conversation)


# -- the calls of a conversation ---------------------------------------------------------------------------------------


def show_calls(data: Calls, reader: Reader) -> ui.View:
    say = reader.say
    if data.costs:
        body: Content = [_chart(data, reader), ui.card(say("calls.list"), _calls_table(data, reader))]
    else:
        body = ui.empty(say("calls.none"), say("calls.none_about"))
    crumbs = crumbs_of(data.conversation, reader)[:2]
    return ui.View(say("tab.calls"), body, lead=say("calls.lead"), crumbs=crumbs)


def _chart(data: Calls, reader: Reader) -> Element:
    say, number = reader.say, reader.number

    def point(index: int, cost: Cost) -> Point:
        without = _known(cost.tokens_without, reader)
        label = say("chart.point", n=index + 1, tokens=number(cost.tokens), without=without)
        place = reader.asked.to(urls.CALL, call_id=cost.call_id)
        return Point(cost.tokens, cost.tokens_without, place, label, str(index + 1))

    points = [point(index, cost) for index, cost in enumerate(data.costs)]
    known = [(cost.tokens, cost.tokens_without) for cost in data.costs if cost.tokens_without is not None]
    spent, without = (sum(tokens) for tokens in zip(*known, strict=True)) if known else (0, 0)
    saved = _saved(without - spent, without, reader)
    lines = {"with": "chart.with", "without": "chart.without", "budget": "chart.budget"}
    budget = data.costs[-1].budget
    most = max(max(cost.tokens, cost.tokens_without or 0) for cost in data.costs)
    if budget > _FAR * most:
        # Beside a window that is far from full every call would be a flat line.
        budget, lines = 0, {name: key for name, key in lines.items() if name != "budget"}
    legend = [el("li", el("span", class_=f"key {name}"), say(key)) for name, key in lines.items()]
    chart = costs(points, budget, say("chart.label"))
    sums = [
        ui.figures(reader, {"chart.spent": spent, "chart.instead": without, "chart.saved": saved}),
        _not_yet(without - spent, reader),
    ]
    scrolled = ui.scrolling(chart, say("chart.label"), class_="scroll")
    return ui.card(say("chart.title"), *sums, scrolled, el("ul", legend, class_="legend"))


def _known(tokens: int | None, reader: Reader) -> str:
    return "?" if tokens is None else reader.number(tokens)


def _saved(saved: int | None, without: int | None, reader: Reader) -> str:
    """What Pagefile saved. While a conversation is shorter than its window there is nothing to save."""
    if saved is None or not without:
        return "–"
    if saved < 0:
        return reader.say("chart.nothing_yet")
    return f"{reader.number(saved)} ({reader.percent(saved / without)})"


def _not_yet(saved: int | None, reader: Reader) -> Content:
    """Why a short conversation has saved nothing."""
    if saved is None or saved >= 0:
        return None
    return ui.soft(reader.say("bill.not_yet", n=reader.number(-saved)))


def _calls_table(data: Calls, reader: Reader) -> Element:
    costs = {"calls.bill": "barcell", **ui.numbers("calls.tokens", "calls.without")}
    columns = {"calls.call": "row clip", **costs, "calls.mode": "", "archive.when": "when"}
    rows: list[tuple[ui.Value, ...]] = []
    most = max(cost.tokens for cost in data.costs)
    for cost in reversed(data.costs):
        call_id, total = cost.call_id, sum(one.tokens for one in cost.blocks)
        name = data.queries.get(call_id) or reader.say("calls.turn")
        link = reader.link(urls.CALL, name, call_id=call_id)
        # As long as the call was large beside the others: beside a window that is far from full it could not be seen.
        whole = cost.budget if cost.budget <= _FAR * most else most
        bar = stacked(_parts(cost.blocks, reader), whole, _label(total, cost.budget, reader))
        without = _known(cost.tokens_without, reader)
        mode = mode_name(data.modes.get(call_id, ""), reader)
        rows.append((link, bar, cost.tokens, without, mode, cost.at))
    return ui.table(reader, reader.say("calls.list"), columns, rows)


def _parts(blocks: tuple[BlockBill, ...], reader: Reader, framing: int | None = None) -> list[Part]:
    tokens: dict[str, int] = {one.block: one.tokens for one in blocks}
    if framing is not None:
        tokens["framing"] = framing
    names = {name: reader.say(f"block.{name}") for name in tokens}
    return [Part(name, count, f"{names[name]}: {reader.number(count)}") for name, count in tokens.items()]


def _label(tokens: int, budget: int, reader: Reader) -> str:
    return reader.say("bill.label", tokens=reader.number(tokens), budget=reader.number(budget))


# -- one call ----------------------------------------------------------------------------------------------------------


def show_call(bill: Bill, reader: Reader) -> ui.View:
    data = bill.explanation
    say, call, receipt = reader.say, data.call, data.receipt
    given = {key: value for key, value in call.options.items() if key != SNAPSHOT_KEY}
    bar = bill_bar(receipt, data.blocks, call.tokens, reader)
    body: list[Content] = [
        ui.confirmation(reader),
        inexact(data.exact, data.why, reader),
        [ui.notice(reader.reason(one), "bad") for one in receipt.degraded],
        _numbers(bill, reader),
        ui.card(None, bar),
        _prompt(bill, reader),
        _answer(bill, reader),
        note_form(reader, bill.note, "call", call.id),
        ui.card(say("bill.title"), bill_table(receipt, data.blocks, reader)),
        _verdicts(bill, reader),
        _prefix(data, reader),
        _as_sent(data, reader),
        ui.card(say("options.title"), el("details", el("summary", say("options.open")), ui.code(given))),
    ]
    crumbs = crumbs_of(call.scope.conversation or "", reader)
    lead = [question(call, reader, bill.turn), " ", labels_of(bill.note)]
    return ui.View(say("bill.heading"), body, lead=lead, crumbs=crumbs)


def crumbs_of(name: str, reader: Reader) -> tuple[tuple[str, str], ...]:
    return (
        (reader.asked.to(urls.CONVERSATIONS), reader.say("nav.conversations")),
        reader.crumb(urls.CONVERSATION, ui.short(name)),
        reader.crumb(urls.CALLS, reader.say("tab.calls")),
    )


def question(call: WindowRecord, reader: Reader, turn: Turn | None = None) -> Content:
    asked = call.query or (turn.user if turn else None)
    return ui.some("q", (asked or "")[:_QUESTION]) or reader.say("calls.turn")


def inexact(exact: bool, why: tuple[str, ...], reader: Reader) -> Content:
    """A notice if the window could not be rebuilt byte for byte."""
    return None if exact else ui.notice([reader.say("bill.inexact"), " ", " ".join(why)])


def _numbers(bill: Bill, reader: Reader) -> Element:
    say, data, model = reader.say, bill.explanation, bill.model
    call, without = data.call, data.tokens_without
    values: dict[str, ui.Value] = {"bill.tokens": call.tokens, "bill.budget": data.receipt.budget}
    if model is not None:
        values |= {"traffic.model": el("code", model.model)}
        values |= {"traffic.latency": duration(timedelta(seconds=model.seconds))}
        counted = {"traffic.in": model.tokens_in, "traffic.out": model.tokens_out}
        values |= {key: count for key, count in counted.items() if count is not None}
        if model.price is not None:
            values["traffic.price"] = ui.price(model.price, model.currency)
    values |= {"chart.instead": _known(without, reader), "chart.saved": _saved(data.saved, without, reader)}
    values |= {"calls.mode": mode_name(call.mode, reader), "archive.when": reader.time(call.at, exact=True)}
    replay = reader.asked.to(urls.REPLAY, call_id=call.id)
    exact = ui.badge(say("bill.exact"), "in") if data.exact else None
    links: list[Content] = [el("a", say("bill.replay"), href=replay, class_="button"), " "]
    if bill.turn is not None:
        turn = bill.turn
        place = {"conversation_id": turn.scope.conversation, "user_id": turn.scope.user}
        links += [reader.turn(say("bill.turn"), turn.id, turn.scope), " · "]
        links += [reader.link(urls.TRACE, say("entry.trace"), turn=turn.id, **place), " "]
    return el("div", ui.figures(reader, values), _not_yet(data.saved, reader), el("p", links, exact))


def bill_bar(receipt: Receipt, blocks: tuple[BlockBill, ...], tokens: int, reader: Reader) -> Element:
    label = _label(tokens, receipt.budget, reader)
    share = reader.percent(tokens / receipt.budget) if receipt.budget else "–"
    bar = stacked(_parts(blocks, reader, receipt.framing), receipt.budget, label)
    return el("figure", bar, el("figcaption", label, " · ", share))


def bill_table(receipt: Receipt, blocks: tuple[BlockBill, ...], reader: Reader) -> Element:
    def row(name: str, tokens: int, *counts: Content) -> tuple[ui.Value, ...]:
        share = reader.percent(tokens / receipt.budget) if receipt.budget and tokens > 0 else "–"
        block = [*ui.key_of(name, reader), el("small", reader.say(f"block.{name}.about"))]
        return block, tokens, share, *counts

    columns = {"bill.block": "row", **ui.numbers("calls.tokens", "bill.share", "bill.kept", "bill.dropped")}
    rows = [row(one.block, one.tokens, str(one.kept), str(one.dropped or "–")) for one in blocks]
    rows.append(row("framing", receipt.framing, "–", "–"))
    return ui.table(reader, reader.say("bill.title"), columns, rows, class_="bill")


def _prefix(data: Explanation, reader: Reader) -> Element:
    say, call = reader.say, data.call
    prefix = data.window and say("prefix.messages", n=data.window.prefix_messages, all=len(data.messages))
    shared: Content = say("prefix.first")
    if data.previous is not None:
        tokens = data.shared_tokens
        share = reader.percent(tokens / call.tokens) if call.tokens else "–"
        same = say("prefix.shared", n=data.shared_messages, tokens=reader.number(tokens), share=share)
        shared = [same, " ", reader.link(urls.CALL, say("prefix.before"), call_id=data.previous)]
    known = {"prefix.hash": el("code", call.prefix_hash), "prefix.length": prefix, "prefix.unchanged": shared}
    return ui.card(say("prefix.title"), ui.definitions(*((say(key), one) for key, one in known.items())))


def _verdicts(bill: Bill, reader: Reader) -> Element:
    say, asked, receipt = reader.say, reader.asked, bill.explanation.receipt
    wanted = asked.choice("show", "all", "kept", "dropped")
    found = [one for one in receipt if wanted == "all" or one.kept == (wanted == "kept")]
    options = [("all", say("verdict.all")), ("kept", say("bill.kept")), ("dropped", say("bill.dropped"))]
    show = ui.choice_of(reader, "verdict.show", "show", wanted, options)
    apply = ui.button(reader, "verdict.apply", None)
    choose = ui.asking_form(reader, "verdict.show", show, button=apply, call_id=asked.text("call_id"))
    about = {"bill.block": "when", "verdict.candidate": "row clip", "verdict.verdict": ""}
    columns = {**about, **ui.numbers("calls.tokens", "verdict.score"), "verdict.reason": "reason"}
    shown, left = found[:_VERDICTS_SHOWN], left_out(len(found[_VERDICTS_SHOWN:]), reader)
    rows, marks = (
        [_verdict(one, bill.sources, reader) for one in shown],
        [None if one.kept else "dropped" for one in shown],
    )
    made = ui.table(reader, say("verdict.title"), columns, rows, class_="verdicts", row_classes=marks)
    counts = {"kept": len(receipt.kept), "dropped": len(receipt.dropped)}
    summary = el("summary", say("verdict.open", **{name: reader.number(n) for name, n in counts.items()}))
    folded = el("details", summary, choose, made, left, open=asked.text("show") is not None)
    return ui.card(say("verdict.title"), folded, id="verdicts")


def left_out(count: int, reader: Reader) -> Content:
    return ui.soft(reader.say("verdict.more", n=reader.number(count))) if count else None


def _verdict(one: Verdict, sources: Sources, reader: Reader) -> tuple[ui.Value, ...]:
    kept, dropped = (
        reader.say("verdict.kept", form=reader.form(one.form or "")),
        reader.say("verdict.dropped"),
    )
    state = ui.badge(kept, "in") if one.kept else ui.badge(dropped, "gone")
    score = "–" if one.score is None else f"{one.score:.3f}"
    why = [reader.reason(one.reason), el("small", reader.reason(one.note)) if one.note else None]
    return ui.key_of(one.block, reader), candidate(one, sources, reader), state, one.tokens, score, why


# -- the prompt and the answer -----------------------------------------------------------------------------------------


def _prompt(bill: Bill, reader: Reader) -> Element:
    say, data = reader.say, bill.explanation
    if data.window is None:
        return ui.card(say("prompt.title"), ui.notice(" ".join(data.why)))
    made = prompt(data.window.parts, data.receipt, bill.sources, reader)
    return ui.card(say("prompt.title"), made, class_="prompt", id="prompt")


def _answer(bill: Bill, reader: Reader) -> Element:
    """What the model answered: tools that it called, or words."""
    say, turn = reader.say, bill.turn
    if turn is None:
        return ui.card(say("answer.title"), ui.soft(say("answer.unknown")))
    if bill.steps:
        calls = [
            el("p", el("code", f"{step.tool}({json.dumps(step.input, ensure_ascii=False)[:_INPUT]})"))
            for step in bill.steps
        ]
        return ui.card(say("answer.title"), ui.soft(say("answer.tools")), calls, class_="answer")
    # Of an answer that broke off, what there was of it.
    heard = turn.assistant or (turn.answered if turn.status == "aborted" else "")
    said = ui.said(heard, reader) if heard else None
    state = None if turn.assistant else ui.soft(say(f"answer.{turn.status}"))
    return ui.card(say("answer.title"), said, state, class_="answer" if heard else "")


def _as_sent(data: Explanation, reader: Reader) -> Content:
    """The messages as they were sent, byte for byte, with what a prompt cache had already seen."""
    say = reader.say
    if data.window is None:
        return None
    messages: list[Content] = [ui.message(one, reader) for one in data.messages]
    if 0 < data.shared_messages < len(messages):
        messages.insert(data.shared_messages, el("p", say("prompt.new_from_here"), class_="seam"))
    label = el("summary", say("prompt.open", n=len(data.messages)))
    return ui.card(say("prompt.as_sent"), el("details", label, messages))
