"""Windows of everyday messages: those that need the past, and those that do not."""

from collections.abc import Collection, Mapping
from itertools import groupby

from benchmarks import everyday
from benchmarks.everyday import Needed, Quiet
from benchmarks.window_data import plain
from benchmarks.window_parts import WINDOW, Bench, Line, pieces, precision, recall_tokens, seen
from pagefile.engine import Memory
from pagefile.window.receipt import Window

BUDGET = 4_000
#: This many finds stand for what could have been brought.
FIRST = 5
#: A sample takes one message in this many.
_QUICK_STEP = 6


#: Each set: the folder of its users, and what is asked of them.
SETS = {
    f"{kind}{end}": (folder, kind)
    for end, folder in (("", everyday.FIRST), ("-2", everyday.SECOND), ("-3", everyday.THIRD))
    for kind in ("quiet", "needed", "results")
}


async def measured(bench: Bench, sets: Collection[str]) -> list[Line]:
    """The sets that are named, those of the same users in the same memory."""
    lines: list[Line] = []
    for folder in dict.fromkeys(folder for name, (folder, _) in SETS.items() if name in sets):
        names = {kind: name for name, (of, kind) in SETS.items() if of == folder and name in sets}
        lines += await _measured(bench, folder, names)
    return lines


async def _measured(bench: Bench, folder: str, names: Mapping[str, str]) -> list[Line]:
    """What is asked of some users, under the names of their sets."""
    step = _QUICK_STEP if bench.quick else 1
    asked = {
        "needed": everyday.needed(folder)[::step] if "needed" in names else [],
        "results": _results(folder)[::step] if "results" in names else [],
    }
    # Those that come with turns of their own are last: their turns are past for whoever comes after them.
    quiet = sorted(
        everyday.quiet(folder)[::step] if "quiet" in names else [], key=lambda one: len(one.recent)
    )
    lines: list[Line] = []
    async with bench.memory() as memory:
        bench.tell("recording the users' pasts")
        await _record(bench, memory, folder)
        bench.clock.set(everyday.NOW)
        for number, one in enumerate(quiet):
            bench.tell(f"quiet: {number + 1} of {len(quiet)}")
            lines.append(await _quiet(memory, names["quiet"], one, number))
        for name, messages in asked.items():
            for number, one in enumerate(messages):
                bench.tell(f"{name}: {number + 1} of {len(messages)}")
                lines += await _needed(memory, names[name], one, number)
    return lines


async def _record(bench: Bench, memory: Memory, folder: str) -> None:
    """All turns, each user's results among them, in order of time."""
    fetched = {
        user: list(those) for user, those in groupby(everyday.fetched(folder), key=lambda one: one.user)
    }
    for user, turns in everyday.pasts(folder).items():
        for turn in turns:
            bench.clock.set(turn.at)
            chat = memory.conversation(f"{user}/{turn.conversation}", user_id=user)
            await chat.record(turn.user, turn.assistant, id=f"{user}/{turn.id}", at=turn.at)
        for number, one in enumerate(fetched.get(user, ())):
            bench.clock.set(one.at)
            chat = memory.conversation(f"{user}/fetched-{number}", user_id=user)
            step = {"tool": one.tool, "input": {"query": one.ask}, "result": one.result}
            await chat.record(one.ask, one.said, steps=[step], at=one.at)
    await memory.settle()


def _results(folder: str) -> list[Needed]:
    return [
        Needed(one.user, "result", question, (), (answer,))
        for one in everyday.fetched(folder)
        for question, answer in one.asks
    ]


async def _quiet(memory: Memory, name: str, one: Quiet, number: int) -> Line:
    chat = memory.conversation(f"{one.user}/quiet-{number}", user_id=one.user)
    for said, answer in one.recent:
        await chat.record(said, answer, at=everyday.NOW)
    window = await chat.context(one.text, window_tokens=BUDGET)
    tokens = recall_tokens(window)
    figures = {"recall tokens": float(tokens), "nothing": float(not tokens), "tokens": float(window.tokens)}
    return Line(name, WINDOW, f"{one.user}-{number}", one.kind, one.text, BUDGET, figures)


async def _needed(memory: Memory, name: str, one: Needed, number: int) -> list[Line]:
    chat = memory.conversation(f"{one.user}/{name}-{number}", user_id=one.user)
    window = await chat.context(one.text, window_tokens=BUDGET)
    found = plain(await _first(memory, one))
    said = f"{one.user}-{number}"
    first = {"there": float(all(phrase in found for phrase in one.says))}
    return [
        Line(name, WINDOW, said, one.kind, one.text, BUDGET, _figures(one, window)),
        Line(name, f"first {FIRST} found", said, one.kind, one.text, BUDGET, first),
    ]


async def _first(memory: Memory, one: Needed) -> str:
    """What was there to be shown: the first turns that recall finds, or the passages of the first pages."""
    if not one.turns:
        pages = await memory.search_tool_history(one.text, user_id=one.user, limit=FIRST)
        return "\n".join(page.passage for page in pages)
    hits = await memory.recall(one.text, user_id=one.user, limit=FIRST, at=everyday.NOW)
    return "\n".join(hit.text for hit in hits)


def _figures(one: Needed, window: Window) -> dict[str, float]:
    text = seen(window)
    there = all(phrase in text for phrase in one.says)
    figures = {"there": float(there), "recall tokens": float(recall_tokens(window))}
    if one.overruled:
        old = any(phrase in text for phrase in one.overruled)
        figures |= {"overruled alone": float(old and not there), "current alone": float(there and not old)}
    return {**figures, **precision(pieces(window), one.says)}
