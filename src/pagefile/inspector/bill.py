"""The context bill: what was in the window of each call, what it cost, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

from pagefile.engine import Conversation, Memory
from pagefile.engine.explaining import Cost, Explanation
from pagefile.engine.owning import looked_up
from pagefile.errors import InvalidTurnError, NotFoundError
from pagefile.inspector import places
from pagefile.inspector.asking import Asked, chat_of
from pagefile.inspector.charts import Part, Point, costs, stacked
from pagefile.inspector.frame import (
    View,
    asking_form,
    card,
    choice_of,
    columns,
    empty,
    figures,
    notice,
    num,
    numbers,
    table,
)
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge, code, message
from pagefile.inspector.reader import Reader
from pagefile.inspector.reasons import reason
from pagefile.records import Call
from pagefile.window.comparing import BlockBill
from pagefile.window.receipt import Receipt, Verdict

_CALLS = 50
_VERDICTS_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Calls:
    """The windows of a conversation, oldest first, each with its cost without Pagefile."""

    conversation: str
    costs: tuple[Cost, ...]
    queries: Mapping[str, str | None]
    modes: Mapping[str, str]


async def gather_calls(memory: Memory, asked: Asked) -> Calls:
    """The newest calls of a conversation."""
    chat = chat_of(memory, asked)
    found = await chat.costs(limit=_CALLS)
    calls = await chat.calls(limit=_CALLS)
    return Calls(
        chat.id, tuple(found), {call.id: call.query for call in calls}, {call.id: call.mode for call in calls}
    )


async def gather_call(memory: Memory, asked: Asked) -> Explanation:
    """One call."""
    call, chat = await called(memory, asked)
    return await chat.explain(call.id)


async def called(memory: Memory, asked: Asked) -> tuple[Call, Conversation]:
    """The requested call; a key bound to one user cannot see another user's."""
    call_id = asked.text("call_id")
    if call_id is None:
        raise InvalidTurnError("Which call? Choose one from the calls of a conversation.")
    call = await memory.call(call_id, tenant=asked.tenant)
    scope = call.scope
    if "user_id" in asked.bound and scope.user != asked.user_id:
        raise NotFoundError(f"There is no call {call_id!r}.")
    scope = await looked_up(memory, scope)
    return call, memory.conversation(scope.conversation or "", user_id=scope.user, tenant=scope.tenant)


def about(call: Call, asked: Asked) -> Asked:
    """The same request with the call's own scope, for tabs and links."""
    return Asked(call.scope.tenant, call.scope.user, call.scope.conversation, asked.values, asked.bound)


# -- the calls of a conversation ---------------------------------------------------------------------------------------


def show_calls(data: Calls, reader: Reader) -> View:
    """The chart and the list."""
    say = reader.say
    body: list[Content]
    if not data.costs:
        body = [empty(say("calls.none"), el("p", say("calls.none_about")))]
    else:
        body = [_chart(data, reader), card(_calls_table(data, reader), title=say("calls.list"))]
    crumbs = (
        (reader.asked.to(places.CONVERSATIONS), say("nav.conversations")),
        (reader.asked.here(places.CONVERSATION), data.conversation),
    )
    return View(say("tab.calls"), body, lead=say("calls.lead"), crumbs=crumbs, tabs=True)


def _chart(data: Calls, reader: Reader) -> Element:
    say, number = reader.say, reader.number
    points = [
        Point(
            cost.tokens,
            cost.tokens_without,
            reader.asked.to(places.CALL, call_id=cost.call_id),
            say(
                "chart.point",
                n=index + 1,
                tokens=number(cost.tokens),
                without=number(cost.tokens_without) if cost.tokens_without is not None else "?",
            ),
        )
        for index, cost in enumerate(data.costs)
    ]
    known = [cost for cost in data.costs if cost.tokens_without is not None]
    spent = sum(cost.tokens for cost in known)
    without = sum(cost.tokens_without or 0 for cost in known)
    saved = without - spent
    legend = el(
        "ul",
        el("li", el("span", class_="key with"), say("chart.with")),
        el("li", el("span", class_="key without"), say("chart.without")),
        el("li", el("span", class_="key budget"), say("chart.budget")),
        class_="legend",
    )
    numbers = figures(
        (say("chart.spent"), number(spent)),
        (say("chart.instead"), number(without)),
        (say("chart.saved"), f"{number(saved)} ({reader.percent(saved / without)})" if without else "–"),
    )
    picture = el(
        "div",
        costs(points, data.costs[-1].budget, say("chart.label")),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=say("chart.label"),
    )
    return card(numbers, picture, legend, title=say("chart.title"))


def _calls_table(data: Calls, reader: Reader) -> Element:
    say = reader.say
    head = columns(
        reader,
        "calls.call",
        "calls.bill",
        *numbers("calls.tokens", "calls.without"),
        "calls.mode",
        "archive.when",
    )
    rows: list[Content] = [
        el(
            "tr",
            el(
                "th",
                reader.link(
                    places.CALL, data.queries.get(cost.call_id) or say("calls.turn"), call_id=cost.call_id
                ),
                scope="row",
                class_="clip",
            ),
            el("td", _bar(cost.blocks, cost.budget, reader), class_="barcell"),
            num(reader.number(cost.tokens)),
            num("?" if cost.tokens_without is None else reader.number(cost.tokens_without)),
            el("td", data.modes.get(cost.call_id, "")),
            el("td", reader.time(cost.at), class_="when"),
        )
        for cost in reversed(data.costs)
    ]
    return table(head, rows, caption=say("calls.list"))


def _bar(blocks: tuple[BlockBill, ...], budget: int, reader: Reader) -> Element:
    parts = [
        Part(one.block, one.tokens, f"{reader.say(f'block.{one.block}')}: {reader.number(one.tokens)}")
        for one in blocks
    ]
    total = sum(one.tokens for one in blocks)
    return stacked(
        parts, budget, reader.say("bill.label", tokens=reader.number(total), budget=reader.number(budget))
    )


# -- one call ----------------------------------------------------------------------------------------------------------


def show_call(data: Explanation, reader: Reader) -> View:
    """The bill of one call."""
    say, call = reader.say, data.call
    name = call.scope.conversation or ""
    body: list[Content] = [
        None if data.exact else notice([say("bill.inexact"), " ", " ".join(data.why)]),
        [notice(one, "bad") for one in data.receipt.degraded],
        _numbers(data, reader),
        card(
            bill_bar(data.receipt, data.blocks, call.tokens, reader),
            bill_table(data.receipt, data.blocks, reader),
            title=say("bill.title"),
        ),
        _prefix(data, reader),
        _verdicts(data.receipt, reader),
        _prompt(data, reader),
        _options(call, reader),
    ]
    return View(
        say("bill.heading"),
        body,
        lead=el("q", call.query) if call.query else say("calls.turn"),
        crumbs=_crumbs(name, reader),
        tabs=True,
        query={"call_id": call.id},
    )


def _crumbs(name: str, reader: Reader) -> tuple[tuple[str, str], ...]:
    say = reader.say
    return (
        (reader.asked.to(places.CONVERSATIONS), say("nav.conversations")),
        (reader.asked.here(places.CONVERSATION), name),
        (reader.asked.here(places.CALLS), say("tab.calls")),
    )


def _numbers(data: Explanation, reader: Reader) -> Element:
    say, number, call = reader.say, reader.number, data.call
    without = "?" if data.tokens_without is None else number(data.tokens_without)
    saved = "–"
    if data.saved is not None and data.tokens_without:
        saved = f"{number(data.saved)} ({reader.percent(data.saved / data.tokens_without)})"
    replay = el(
        "a", say("bill.replay"), href=reader.asked.to(places.REPLAY, call_id=call.id), class_="button"
    )
    return el(
        "div",
        figures(
            (say("bill.tokens"), number(call.tokens)),
            (say("bill.budget"), number(data.receipt.budget)),
            (say("chart.instead"), without),
            (say("chart.saved"), saved),
            (say("calls.mode"), el("code", call.mode)),
            (say("archive.when"), reader.time(call.at, exact=True)),
        ),
        el("p", replay, " ", badge(say("bill.exact"), "in") if data.exact else None),
    )


def bill_bar(receipt: Receipt, blocks: tuple[BlockBill, ...], tokens: int, reader: Reader) -> Element:
    """Tokens by block against the window."""
    say, number = reader.say, reader.number
    parts = [
        Part(one.block, one.tokens, f"{say(f'block.{one.block}')}: {number(one.tokens)}") for one in blocks
    ]
    parts.append(Part("framing", receipt.framing, f"{say('block.framing')}: {number(receipt.framing)}"))
    label = say("bill.label", tokens=number(tokens), budget=number(receipt.budget))
    share = reader.percent(tokens / receipt.budget) if receipt.budget else "–"
    return el("figure", stacked(parts, receipt.budget, label), el("figcaption", label, " · ", share))


def bill_table(receipt: Receipt, blocks: tuple[BlockBill, ...], reader: Reader) -> Element:
    """The bill as a table."""
    say, number = reader.say, reader.number

    def row(name: str, tokens: int, kept: Content, dropped: Content) -> Element:
        key = el("span", class_=f"key b-{name}")
        share = reader.percent(tokens / receipt.budget) if receipt.budget and tokens > 0 else "–"
        return el(
            "tr",
            el("th", key, say(f"block.{name}"), el("small", say(f"block.{name}.about")), scope="row"),
            num(number(tokens)),
            num(share),
            num(kept),
            num(dropped),
        )

    head = columns(reader, "bill.block", *numbers("calls.tokens", "bill.share", "bill.kept", "bill.dropped"))
    rows: list[Content] = [row(one.block, one.tokens, one.kept, one.dropped or "–") for one in blocks]
    rows.append(row("framing", receipt.framing, "–", "–"))
    return table(head, rows, caption=say("bill.title"), class_="bill")


def _prefix(data: Explanation, reader: Reader) -> Element:
    say, number, call = reader.say, reader.number, data.call
    lines: list[Content] = [el("div", el("dt", say("prefix.hash")), el("dd", el("code", call.prefix_hash)))]
    if data.window is not None:
        held = say("prefix.messages", n=data.window.prefix_messages, all=len(data.messages))
        lines.append(el("div", el("dt", say("prefix.length")), el("dd", held)))
    shared: Content = say("prefix.first")
    if data.previous is not None:
        same = say(
            "prefix.shared",
            n=data.shared_messages,
            tokens=number(data.shared_tokens),
            share=reader.percent(data.shared_tokens / call.tokens) if call.tokens else "–",
        )
        before = el("a", say("prefix.before"), href=reader.asked.to(places.CALL, call_id=data.previous))
        shared = [same, " ", before]
    lines.append(el("div", el("dt", say("prefix.unchanged")), el("dd", shared)))
    return card(el("dl", lines, class_="about"), title=say("prefix.title"))


def _verdicts(receipt: Receipt, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    wanted = asked.choice("show", "all", "kept", "dropped")
    found = [one for one in receipt if wanted == "all" or one.kept == (wanted == "kept")]
    options = [("all", say("verdict.all")), ("kept", say("bill.kept")), ("dropped", say("bill.dropped"))]
    choose = asking_form(
        places.CALL,
        choice_of(say("verdict.show"), "show", wanted, options),
        el("button", say("verdict.apply")),
        hidden={"call_id": asked.text("call_id"), "tenant": asked.tenant},
        label=say("verdict.show"),
    )
    head = columns(
        reader,
        "bill.block",
        "verdict.candidate",
        "verdict.verdict",
        *numbers("calls.tokens", "verdict.score"),
        "verdict.reason",
    )
    more = (
        el("p", say("verdict.more", n=reader.number(len(found) - _VERDICTS_SHOWN)), class_="soft")
        if len(found) > _VERDICTS_SHOWN
        else None
    )
    rows: list[Content] = [_verdict(one, reader) for one in found[:_VERDICTS_SHOWN]]
    return card(
        choose,
        table(head, rows, caption=say("verdict.title"), class_="verdicts"),
        more,
        title=say("verdict.title"),
        id="verdicts",
    )


def _verdict(one: Verdict, reader: Reader) -> Element:
    say = reader.say
    state = (
        badge(say("verdict.kept", form=one.form or ""), "in")
        if one.kept
        else badge(say("verdict.dropped"), "gone")
    )
    return el(
        "tr",
        el("td", el("span", class_=f"key b-{one.block}"), say(f"block.{one.block}"), class_="when"),
        el("th", el("code", one.id), scope="row", class_="clip"),
        el("td", state),
        num(reader.number(one.tokens)),
        num("–" if one.score is None else f"{one.score:.3f}"),
        el(
            "td",
            reason(one.reason, reader),
            el("small", reason(one.note, reader)) if one.note else None,
            class_="reason",
        ),
        class_=None if one.kept else "dropped",
    )


def _prompt(data: Explanation, reader: Reader) -> Element:
    say = reader.say
    if data.window is None:
        return card(notice(" ".join(data.why)), title=say("prompt.title"))
    messages: list[Content] = []
    for place, one in enumerate(data.messages):
        if place == data.shared_messages and place:
            messages.append(el("p", say("prompt.new_from_here"), class_="seam"))
        messages.append(message(one, reader))
    label = say("prompt.open", n=len(data.messages))
    return card(
        el("details", el("summary", label), messages, class_="prompt"), title=say("prompt.title"), id="prompt"
    )


def _options(call: Call, reader: Reader) -> Element:
    given = {key: value for key, value in call.options.items() if key != "moment"}
    return card(
        el("details", el("summary", reader.say("options.open")), code(given)),
        title=reader.say("options.title"),
    )
