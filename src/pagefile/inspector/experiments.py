"""Batch replay: choose recorded calls, change settings, and see tokens, evidence and prefix reuse before and after."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import anyio
from anyio.abc import TaskGroup

from pagefile.engine import Memory
from pagefile.engine import experiments as engine
from pagefile.engine.experiments import Choice, Experiment, Measured, Side, Totals
from pagefile.engine.replay import change_of
from pagefile.errors import ConflictError, InvalidArgumentError, PagefileError
from pagefile.inspector import ui, urls
from pagefile.inspector.charts import Point, costs
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.recall import known_users
from pagefile.inspector.replay import CHOICES, OFFERED
from pagefile.records import DEFAULT_TENANT, JsonValue, Scope, WindowRecord
from pagefile.tiers.base import guarded

logger = logging.getLogger("pagefile")

#: How often results are saved while an experiment runs, in calls.
_SAVED_EVERY = 10
#: Experiments that run at once in a process.
_AT_ONCE = 2
_REFRESH_S = 2
_SHOWN_IN_CHART = 100


def scope_of(asked: PageRequest) -> Scope:
    """Whose experiments: the tenant's, or those of the user that the reader's key is bound to."""
    return Scope(asked.tenant or DEFAULT_TENANT, asked.user_id if "user_id" in asked.bound else None)


# -- running -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Batches:
    """The experiments that this process is running."""

    tasks: TaskGroup
    #: Why those failed that did, by id.
    failed: dict[str, str] = field(default_factory=dict[str, str])
    running: set[str] = field(default_factory=set[str])

    async def start(self, memory: Memory, asked: PageRequest) -> str:
        """Begin an experiment, and return where to watch it."""
        if len(self.running) >= _AT_ONCE:
            raise ConflictError("Other experiments are running: wait until one of them has ended.")
        changes = engine.checked_settings(_changes(asked))
        calls = await engine.chosen_calls(memory, _choice(asked))
        if not calls:
            raise InvalidArgumentError(
                "No recorded call was chosen: name another user, another conversation or another time."
            )
        await engine.check_replayable(memory, calls[0], changes)
        name = asked.text("name") or ", ".join(f"{key} = {value}" for key, value in changes.items())
        one = engine.new_experiment(name[:200], changes, datetime.now(UTC), total=len(calls))
        scope = scope_of(asked)
        await engine.save_experiment(memory, scope, one)
        self.running.add(one.id)
        self.tasks.start_soon(self._run, memory, scope, one, calls)
        return asked.to(urls.EXPERIMENT, id=one.id)

    async def _run(self, memory: Memory, scope: Scope, one: Experiment, calls: list[WindowRecord]) -> None:
        # A task that raises would end the service.
        with guarded(partial(self._ended_early, one.id)):
            await engine.run_experiment(memory, scope, one, calls, save_every=_SAVED_EVERY)
        self.running.discard(one.id)

    def _ended_early(self, experiment_id: str, error: Exception) -> None:
        known = isinstance(error, PagefileError)
        logger.warning("an experiment ended early", exc_info=None if known else error)
        self.failed[experiment_id] = (
            str(error) if known else "It broke off; the log of the service says where."
        )


@asynccontextmanager
async def batches() -> AsyncGenerator[Batches]:
    """Runs for as long as the service does; what was measured by then is kept."""
    async with anyio.create_task_group() as tasks:
        try:
            yield Batches(tasks)
        finally:
            tasks.cancel_scope.cancel()


def _choice(asked: PageRequest) -> Choice:
    return Choice(
        asked.tenant or DEFAULT_TENANT,
        asked.user_id,
        asked.conversation_id,
        asked.day("since"),
        asked.day("until", after=True),
        asked.whole("limit", 50, least=1, most=engine.MOST_CALLS),
    )


def _changes(asked: PageRequest) -> dict[str, JsonValue]:
    names = [name.removeprefix("set.") for name in asked.values if name.startswith("set.")]
    given = {name: text for name in names if (text := asked.text(f"set.{name}")) is not None}
    return {name: change_of(name, text) for name, text in given.items()}


# -- the list ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    name: str
    created: datetime
    calls: int
    total: int
    totals: Totals


@dataclass(frozen=True, slots=True)
class Experiments:
    rows: tuple[Row, ...]
    users: tuple[str, ...]


async def gather(memory: Memory, asked: PageRequest) -> Experiments:
    found = await engine.experiments(memory, scope_of(asked))
    rows = [
        Row(one.id, one.name, one.created, len(one.rows), one.total, engine.totals(one.rows)) for one in found
    ]
    return Experiments(tuple(rows), await known_users(memory, asked))


def show(data: Experiments, reader: Reader) -> ui.View:
    say = reader.say
    listed = _list(data, reader) if data.rows else ui.empty(say("batch.none"), say("batch.none_about"))
    body = [ui.confirmation(reader), _form(data, reader), listed]
    return ui.View(say("nav.experiments"), body, lead=say("batch.lead"))


def _form(data: Experiments, reader: Reader) -> Element:
    asked = reader.asked

    def number(name: str) -> Element:
        return ui.field_of(reader, f"set.{name}", f"set.{name}", inputmode="decimal", autocomplete="off")

    def choice(name: str, known: tuple[str, ...]) -> Element:
        key = f"set.{name}"
        options = [
            ("", reader.say("batch.as_recorded")),
            *((one, reader.say(f"{key}.{one}")) for one in known),
        ]
        return ui.choice_of(reader, key, key, "", options)

    users = ui.user_field(reader, data.users)
    chosen = [
        users,
        ui.field_of(reader, "conv.conversation", "conversation_id", asked.conversation_id),
        ui.field_of(reader, "search.since", "since", kind="date"),
        ui.field_of(reader, "search.until", "until", kind="date"),
        ui.field_of(
            reader,
            "batch.limit",
            "limit",
            "50",
            kind="number",
            min=1,
            max=engine.MOST_CALLS,
        ),
    ]
    inside = [
        ui.field_of(reader, "batch.name", "name", hint=reader.say("batch.name_about"), maxlength=200),
        el("fieldset", el("legend", reader.say("batch.which")), el("div", chosen, class_="grid")),
        el(
            "fieldset",
            el("legend", reader.say("batch.change")),
            el("div", [*map(number, OFFERED)], [choice(*one) for one in CHOICES.items()], class_="grid"),
        ),
        ui.button(reader, "batch.go"),
    ]
    made = ui.form(reader, asked.to(urls.EXPERIMENTS), *inside, class_="stacked-form")
    opened = not data.rows or asked.conversation_id is not None
    return ui.card(
        reader.say("batch.new"), el("details", el("summary", reader.say("batch.open")), made, open=opened)
    )


def _list(data: Experiments, reader: Reader) -> Element:
    say = reader.say
    numbers = ui.numbers("batch.calls", "calls.tokens", "batch.evidence", "batch.reuse")
    columns = {"batch.experiment": "row", **numbers, "archive.when": "when"}

    def row(one: Row) -> tuple[ui.Value, ...]:
        link = reader.link(urls.EXPERIMENT, one.name, id=one.id)
        calls = reader.number(one.calls) if one.calls == one.total else f"{one.calls} / {one.total}"
        return link, calls, *_outcome(one.totals, reader), one.created

    return ui.card(say("batch.list"), ui.table(reader, say("batch.list"), columns, map(row, data.rows)))


def _outcome(total: Totals, reader: Reader) -> tuple[str, str, str]:
    before, after = total.tokens
    change = f"{(after - before) / before:+.0%}".replace("-", "−") if before else "–"
    kept = reader.percent(total.kept / total.evidence[0]) if total.evidence[0] else "–"
    return change, kept, _shares(total, reader)


def _shares(total: Totals, reader: Reader) -> str:
    shares = [
        reader.percent(reused / tokens) if tokens else "–"
        for reused, tokens in zip(total.reused, total.tokens, strict=True)
    ]
    return " → ".join(shares)


# -- one experiment --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    experiment: Experiment
    totals: Totals
    running: bool
    failed: str | None


async def gather_one(memory: Memory, asked: PageRequest) -> Opened:
    experiment_id = asked.text("id")
    if experiment_id is None:
        raise InvalidArgumentError("Which experiment? Choose one from the list.")
    one = await engine.experiment(memory, scope_of(asked), experiment_id)
    return Opened(one, engine.totals(one.rows), False, None)


def with_state(data: Opened, running: Batches) -> Opened:
    one = data.experiment.id
    return replace(data, running=one in running.running, failed=running.failed.get(one))


async def remove(memory: Memory, asked: PageRequest) -> str:
    await engine.remove_experiment(memory, scope_of(asked), asked.text("id") or "")
    return asked.to(urls.EXPERIMENTS, done="removed")


def show_one(data: Opened, reader: Reader) -> ui.View:
    say, one = reader.say, data.experiment
    left = one.total - len(one.rows)
    progress = say("batch.progress", done=reader.number(len(one.rows)), total=reader.number(one.total))
    state: Content = None
    if data.failed is not None:
        state = ui.notice(data.failed, "bad")
    elif data.running:
        bar = el("progress", progress, value=len(one.rows), max=one.total, aria_label=progress)
        state = ui.card(None, el("p", progress), bar, role="status")
    elif left:
        state = ui.notice(say("batch.unfinished", done=reader.number(len(one.rows)), total=one.total))
    changes = [el("li", el("code", f"{name} = {value}")) for name, value in one.changes.items()]
    removed = ui.form(
        reader, reader.asked.to(urls.EXPERIMENT), ui.button(reader, "batch.remove", None), id=one.id
    )
    body: list[Content] = [
        state,
        ui.card(say("batch.changed"), el("ul", changes, class_="chips")),
        _summary(data.totals, reader) if one.rows else None,
        _chart(one, reader) if data.totals.calls else None,
        ui.card(say("batch.each"), _rows(one, reader)) if one.rows else None,
        removed,
    ]
    crumbs = ((reader.asked.to(urls.EXPERIMENTS), say("nav.experiments")),)
    lead = [say("batch.made"), " ", reader.time(one.created, exact=True)]
    return ui.View(one.name, body, lead=lead, crumbs=crumbs, refresh_s=_REFRESH_S if data.running else None)


def _summary(total: Totals, reader: Reader) -> Element:
    say, number = reader.say, reader.number
    calls = (
        number(total.calls)
        if not total.failed
        else say("batch.failed", n=number(total.calls), failed=total.failed)
    )
    change, kept, _ = _outcome(total, reader)
    rows: list[tuple[ui.Value, ...]] = [
        (say("calls.tokens"), *map(number, total.tokens), change),
        (
            [say("batch.reuse"), el("small", say("batch.reuse_about"))],
            *map(number, total.reused),
            _shares(total, reader),
        ),
        (
            [say("batch.evidence"), el("small", say("batch.evidence_about"))],
            *map(number, total.evidence),
            kept,
        ),
    ]
    columns = {"batch.measure": "row", **ui.numbers("replay.before", "replay.after", "batch.outcome")}
    table = ui.table(reader, say("batch.summary"), columns, rows, class_="bill")
    return ui.card(say("batch.summary"), ui.figures(reader, {"batch.calls": calls}), table)


def _chart(one: Experiment, reader: Reader) -> Element:
    say, number = reader.say, reader.number

    def point(row: Measured, before: Side, after: Side) -> Point:
        label = say("batch.point", before=number(before.tokens), after=number(after.tokens))
        return Point(after.tokens, before.tokens, _replay(row, one.changes, reader), label)

    points = [point(row, row.before, row.after) for row in one.rows if row.before and row.after]
    legend = [
        el("li", el("span", class_="key with"), say("replay.after")),
        el("li", el("span", class_="key without"), say("replay.before")),
    ]
    chart = costs(points[-_SHOWN_IN_CHART:], 0, say("batch.chart"))
    scrolled = ui.scrolling(chart, say("batch.chart"), class_="scroll")
    return ui.card(say("batch.chart"), scrolled, el("ul", legend, class_="legend"))


def _rows(one: Experiment, reader: Reader) -> Element:
    numbers = ui.numbers("calls.tokens", "replay.difference", "batch.evidence", "batch.reuse")
    columns = {"conv.conversation": "row", "archive.when": "when", **numbers, "batch.look": ""}

    def row(measured: Measured) -> tuple[ui.Value, ...]:
        name = measured.conversation_id
        chat = reader.link(urls.CONVERSATION, name, conversation_id=name, user_id=measured.user_id)
        link = el("a", reader.say("batch.compare"), href=_replay(measured, one.changes, reader))
        before, after = measured.before, measured.after
        if before is None or after is None:
            return chat, measured.at, "–", "–", "–", "–", measured.failed or "–"
        kept = f"{measured.kept} / {before.evidence}"
        reuse = f"{reader.number(before.reused)} → {reader.number(after.reused)}"
        tokens = f"{reader.number(before.tokens)} → {reader.number(after.tokens)}"
        return chat, measured.at, tokens, reader.signed(after.tokens - before.tokens), kept, reuse, link

    return ui.table(reader, reader.say("batch.each"), columns, map(row, one.rows))


def _replay(row: Measured, changes: Mapping[str, JsonValue], reader: Reader) -> str:
    given = {
        f"set.{name}": str(value).lower() if isinstance(value, bool) else value
        for name, value in changes.items()
    }
    return reader.asked.to(urls.REPLAY, call_id=row.call_id, **given)
