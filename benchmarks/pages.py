"""`pagefile bench pages`: what a model learns of archived tool results, by the judged set in `benchmarks.judged`.

Every result is recorded and asked about as an agent would: what its synopsis says, what the window of the turn that fetched it
shows, what the model's tools load and find.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from benchmarks.corpus import url_of
from benchmarks.judged import Case, cases
from benchmarks.judged.score import holds, lacking, language_of, misleading, own_share
from benchmarks.report import Report, Row, machine_facts
from pagefile.engine import Conversation, Memory
from pagefile.engine.page_tools import load_text
from pagefile.records import JsonObject
from pagefile.settings import ArchiveSettings, Settings
from pagefile.text.tokens import CachedCounter, TokenCounter, open_counter
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL

#: The windows of the turn that fetches a result.
WINDOWS = (8_000, 16_000)
#: Tokens of passages that `load_tool_history` may return.
LOADS = (400, 1_500)
#: How many of a result's own tokens the smallest of these loads must be able to show.
OWN_TOKENS = 250
#: A load ends with a line that says how to read on; that line is not part of its budget.
_NOTE_TOKENS = 90
#: A load may take half of the window: one twice as large bounds it, as it would bound a model's call.
_WINDOW_OF_LOAD = 2
#: Short names of the figures, for a table.
COLUMNS = ("told", "8k", "16k", "400", "1,500", "first", "250", "own")
_USER = "bench"
#: Everything becomes a page, however short it is.
_ALL_PAGES = ArchiveSettings(threshold=1, page_from=1)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """Whether the answer to one question was there."""

    ask: str
    answer: str
    there: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one case."""

    case: Case
    tokens: int
    synopsis: str
    sources: tuple[str, ...]
    #: By window; nothing for a window that the result fits into.
    window: dict[int, tuple[Answered, ...]]
    #: By tokens.
    loaded: dict[int, tuple[Answered, ...]]
    found: tuple[Answered, ...]
    #: Tokens of its own text that a small load showed.
    own_tokens: int

    @property
    def lacks(self) -> list[tuple[str, ...]]:
        """What a reader needs and the synopsis does not say."""
        return lacking(self.synopsis, self.case)

    @property
    def misleads(self) -> list[str]:
        """What the synopsis says and must not."""
        return misleading(self.synopsis, self.sources, self.case)

    @property
    def told(self) -> bool:
        """Whether the synopsis is good."""
        return not self.lacks and not self.misleads

    @property
    def showable(self) -> int:
        """Tokens of its own text that a small load could show at best."""
        return min(LOADS[0], self.tokens)

    @property
    def shows_enough(self) -> bool:
        """Whether a small load shows enough of the result; of a shorter one, all of it but a line's end."""
        return self.own_tokens >= min(OWN_TOKENS, int(0.9 * self.tokens))

    def to_json(self) -> JsonObject:
        """The case as plain JSON."""
        return {
            "name": self.case.name,
            "language": self.case.language,
            "chars": len(self.case.result),
            "tokens": self.tokens,
            "synopsis": self.synopsis,
            "told": self.told,
            "window": {str(size): [one.there for one in answers] for size, answers in self.window.items()},
            "loaded": {str(size): [one.there for one in answers] for size, answers in self.loaded.items()},
            "found_first": [one.there for one in self.found],
            "own_tokens": self.own_tokens,
        }


@dataclass(frozen=True, slots=True)
class Score:
    """How many of how many."""

    name: str
    hits: float
    of: int

    @property
    def share(self) -> float:
        """1.0 when there was nothing to miss."""
        return self.hits / self.of if self.of else 1.0


def scores(judged: Sequence[Judged]) -> list[Score]:
    """All figures of some cases."""

    def answered(name: str, lists: Sequence[Sequence[Answered]]) -> Score:
        flat = [one.there for answers in lists for one in answers]
        return Score(name, sum(flat), len(flat))

    shares = sum(one.own_tokens / one.showable for one in judged)
    return [
        Score("synopses with the key fact", sum(one.told for one in judged), len(judged)),
        *(
            answered(f"answers in a window of {size:,}", [one.window.get(size, ()) for one in judged])
            for size in WINDOWS
        ),
        *(answered(f"answers loaded in {size:,}", [one.loaded[size] for one in judged]) for size in LOADS),
        answered("pages found first", [one.found for one in judged]),
        Score(f"{OWN_TOKENS} own tokens in {LOADS[0]}", sum(one.shows_enough for one in judged), len(judged)),
        Score(f"share of own text in {LOADS[0]}", shares, len(judged)),
    ]


def across(judged: Sequence[Judged]) -> list[Score]:
    """The figures of the questions that are not in the language of the result; no others are kept."""

    def foreign(one: Judged, answers: tuple[Answered, ...]) -> tuple[Answered, ...]:
        return tuple(answer for answer in answers if language_of(answer.ask) != one.case.language)

    asked = [
        replace(
            one,
            window={size: foreign(one, answers) for size, answers in one.window.items()},
            loaded={size: foreign(one, answers) for size, answers in one.loaded.items()},
            found=foreign(one, one.found),
        )
        for one in judged
        if one.case.language != "mixed"
    ]
    told, *questions, enough, own = scores(asked)
    return [Score(told.name, 0, 0), *questions, Score(enough.name, 0, 0), Score(own.name, 0, 0)]


@dataclass(frozen=True, slots=True)
class PagesReport:
    """All cases, and the figures of each kind."""

    report: Report
    judged: Sequence[Judged]

    @property
    def ok(self) -> bool:
        """Whether every limit was kept."""
        return self.report.ok

    @property
    def kinds(self) -> dict[str, list[Score]]:
        """The figures by kind of result, then by language, then of the questions in the other one."""
        groups: dict[str, list[Judged]] = {}
        for one in self.judged:
            groups.setdefault(one.case.kind, []).append(one)
        for one in self.judged:
            groups.setdefault(f"({one.case.language})", []).append(one)
        return {**{kind: scores(group) for kind, group in groups.items()}, "(across)": across(self.judged)}

    def failures(self) -> list[str]:
        """A line for everything that was missed."""
        return [line for one in self.judged for line in _failures(one)]

    def to_json(self) -> JsonObject:
        """The report as plain JSON."""
        return {
            **self.report.to_json(),
            "kinds": {
                kind: {score.name: [round(score.hits, 3), score.of] for score in figures}
                for kind, figures in self.kinds.items()
            },
            "cases": [one.to_json() for one in self.judged],
        }


def run(progress: Progress | None = None, judging: Sequence[Case] | None = None) -> PagesReport:
    """Judge every case; nothing stays on disk."""
    began = time.perf_counter()
    counter = CachedCounter(open_counter())
    chosen = cases() if judging is None else judging
    judged = anyio.run(_judged, chosen, counter, progress or _noop)
    rows = [
        Row(
            score.name,
            100 * score.share,
            "%",
            score.share,
            note=f"{score.hits:g} of {score.of}" if score.hits == int(score.hits) else "on average",
        )
        for score in scores(judged)
    ]
    seconds = time.perf_counter() - began
    return PagesReport(Report(rows, machine_facts(counter.name), quick=False, seconds=seconds), judged)


def show(name: str) -> str:
    """One case as a model would see it; raises `LookupError` if there is none of that name."""
    case = next((one for one in cases() if one.name == name), None)
    if case is None:
        raise LookupError(f"No case is named {name!r}; `--failing` and `--json` name them.")
    return anyio.run(_shown, case)


async def _judged(chosen: Sequence[Case], counter: TokenCounter, tell: Progress) -> list[Judged]:
    with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
        url = url_of(Path(folder) / "pages.db")
        tell("archiving")
        async with Memory.open(url, settings=Settings(archive=_ALL_PAGES)) as memory:
            uuids = {case.name: await _archived(memory, case) for case in chosen}
            await memory.settle()
            pages = {case.name: await memory.page(uuids[case.name]) for case in chosen}
            tell("searching")
            found = {case.name: await _found(memory, case, uuids[case.name]) for case in chosen}
        loaded = {size: await _loaded(url, size, chosen, uuids, counter, tell) for size in LOADS}
    windows = await _windows(chosen, counter, tell)
    return [
        Judged(
            case,
            tokens := counter.count(case.result),
            pages[case.name].result_summary[:200],
            pages[case.name].sources[:3],
            windows[case.name],
            {size: loaded[size][case.name][0] for size in LOADS},
            found[case.name],
            min(tokens, LOADS[0], loaded[LOADS[0]][case.name][1]),
        )
        for case in chosen
    ]


async def _archived(memory: Memory, case: Case) -> str:
    """The uuid of the result's page, recorded in a conversation of its own."""
    chat = _chat(memory, case)
    step = {"tool": case.tool, "input": case.input, "result": case.result}
    turn = await chat.record(user=f"{case.tool}?", assistant="OK.", steps=[step], id=case.name)
    assert turn.steps[0].page is not None, f"{case.name} has no page"
    return turn.steps[0].page


async def _found(memory: Memory, case: Case, uuid: str) -> tuple[Answered, ...]:
    """Whether the page comes first when the archive is searched with the question."""
    made: list[Answered] = []
    for ask, answer in case.questions:
        hits = await memory.search_tool_history(ask, user_id=_USER, limit=5)
        made.append(Answered(ask, answer, bool(hits) and hits[0].page.uuid == uuid))
    return tuple(made)


async def _loaded(
    url: str, size: int, chosen: Sequence[Case], uuids: dict[str, str], counter: TokenCounter, tell: Progress
) -> dict[str, tuple[tuple[Answered, ...], int]]:
    """What the model's tool returns for a question within a budget; and the tokens of own text in the first of it."""
    tell(f"loading in {size:,} tokens")
    made: dict[str, tuple[tuple[Answered, ...], int]] = {}
    settings = Settings(window_tokens=_WINDOW_OF_LOAD * size, archive=_ALL_PAGES)
    async with Memory.open(url, settings=settings) as memory:
        for case in chosen:
            chat, answers, own = _chat(memory, case), list[Answered](), 0
            for ask, answer in case.questions or ((case.key[0][0], case.result),):
                text = await chat.call_tool(LOAD_TOOL, {"uuid": uuids[case.name], "query": ask})
                tokens = counter.count(text)
                fits = tokens <= size + _NOTE_TOKENS
                own = own or round(tokens * own_share(text, case))
                answers.append(Answered(ask, answer, fits and holds(text, answer)))
            made[case.name] = (tuple(answers) if case.questions else (), own)
    return made


async def _windows(
    chosen: Sequence[Case], counter: TokenCounter, tell: Progress
) -> dict[str, dict[int, tuple[Answered, ...]]]:
    """What the window of the fetching turn holds, for results that are longer than the window."""
    made: dict[str, dict[int, tuple[Answered, ...]]] = {}
    async with Memory.open("memory://") as memory:
        for case in chosen:
            tell(f"fetching {case.name}")
            sizes = [size for size in WINDOWS if counter.count(case.result) > size]
            answers: dict[int, list[Answered]] = {size: [] for size in sizes}
            for number, (ask, answer) in enumerate(case.questions if sizes else ()):
                chat = await _fetching(memory, case, ask, number)
                for size in sizes:
                    window = await chat.context(window_tokens=size)
                    answers[size].append(Answered(ask, answer, holds(window.as_text(), answer)))
            made[case.name] = {size: tuple(told) for size, told in answers.items()}
    return made


async def _fetching(memory: Memory, case: Case, ask: str, number: int) -> Conversation:
    """A conversation in whose open turn the result was just fetched."""
    chat = memory.conversation(f"{case.name}-{number}", user_id=f"{_USER}-{case.name}-{number}")
    turn = await chat.begin(ask, id=f"{case.name}-{number}")
    await chat.step(turn, tool=case.tool, input=case.input, result=case.result)
    return chat


def _chat(memory: Memory, case: Case) -> Conversation:
    return memory.conversation(case.name, user_id=_USER)


def _failures(one: Judged) -> list[str]:
    name = one.case.name
    made = [f"{name}: synopsis lacks {' / '.join(group)}: {one.synopsis!r}" for group in one.lacks]
    made += [f"{name}: synopsis misleads with {words!r}: {one.synopsis!r}" for words in one.misleads]
    places = [
        *((f"not in a window of {size:,}", answers) for size, answers in one.window.items()),
        *((f"not loaded in {size:,}", answers) for size, answers in one.loaded.items()),
        ("not found first", one.found),
    ]
    made += [
        f"{name}: {place}: {miss.ask} → {miss.answer}"
        for place, answers in places
        for miss in answers
        if not miss.there
    ]
    if not one.shows_enough:
        made.append(f"{name}: {one.own_tokens} of {one.showable} tokens of its own shown in {LOADS[0]}")
    return made


async def _shown(case: Case) -> str:
    """The windows, the placeholder and the loads of one case."""
    parts = [f"{case.name} ({case.language}), {len(case.result):,} characters", case.result[:600] + " …"]
    async with Memory.open("memory://", settings=Settings(archive=_ALL_PAGES)) as memory:
        uuid = await _archived(memory, case)
        await memory.settle()
        page, chat = await memory.page(uuid), _chat(memory, case)
        parts += ["== synopsis and sources", page.result_summary[:200], "\n".join(page.sources[:3])]
        parts += ["== the next turn", (await chat.context("…")).as_text()]
        for number, (ask, answer) in enumerate(case.questions):
            fetching = await _fetching(memory, case, ask, number)
            window = await fetching.context(window_tokens=WINDOWS[0])
            parts += [f"== {ask} → {answer}", f"-- window of {WINDOWS[0]:,}", window.as_text()]
            for size in LOADS:
                text = await load_text(
                    memory.engine, chat.scope, uuid, query=ask, offset=0, limit=None, budget_tokens=size
                )
                parts += [f"-- {LOAD_TOOL} in {size:,}", text]
            parts += [f"-- {SEARCH_TOOL}", await chat.call_tool(SEARCH_TOOL, {"query": ask})]
    return "\n\n".join(parts)


def _noop(_: str) -> None:
    """Nobody listens."""
