"""Quiet, exact and current, on others' labels: PrecisionMemBench and PersistBench, whose memories are facts here.

How PrecisionMemBench maps onto Pagefile:

- An active belief is a fact: its name and aliases in front of its content, since a fact has no aliases beside its text.
- A superseded one is remembered first under the attribute of its successor, which then replaces it.
- A domain is the project of the fact and of the conversation; beliefs for every domain are part of the persona.
- Pinned beliefs, open questions and the persona are in every request: they are the `instructions` of the call.
- A question that was resolved is remembered and retracted.
- Other users' beliefs are another user's facts.

Not mapped, and counted as failed: cases over several domains at once (a conversation has one project), a maximum number of
beliefs (budgets are tokens), and the cases of whole sessions, which change beliefs on the way.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import everyday
from benchmarks.window_data import lines as read
from benchmarks.window_data import plain
from benchmarks.window_parts import WINDOW, Bench, Line, pieces, recall_tokens, recalled
from pagefile.engine import Memory

BUDGET = 4_000
_EVERYWHERE = "user:universal"
#: A sample takes one case in this many.
_QUICK_STEP = 10


async def precision_bench(bench: Bench, data: Path) -> list[Line]:
    """Each case: whether exactly the beliefs that are wanted are in the window."""
    beliefs = read(data, "precision-beliefs*.json.gz")
    cases = read(data, "precision-retrieval*.json.gz")[:: _QUICK_STEP if bench.quick else 1]
    lines: list[Line] = []
    async with bench.memory() as memory:
        await _remember(memory, beliefs)
        for number, case in enumerate(cases):
            bench.tell(f"PrecisionMemBench: {number + 1} of {len(cases)}")
            if (line := await _case(memory, case, beliefs, number)) is not None:
                lines.append(line)
    sessions = [] if bench.quick else read(data, "precision-session*.json.gz")
    failed = {"exact": 0.0, "mapped": 0.0}
    return lines + [
        Line("PrecisionMemBench", WINDOW, one["caseId"], "session", "", BUDGET, failed) for one in sessions
    ]


def belief_text(belief: Any) -> str:
    """A belief as a fact."""
    names = ", ".join((belief["canonical_name"].replace("_", " "), *belief["aliases"]))
    return f"{names}: {belief['content']}"


def standing(belief: Any) -> bool:
    """Whether it is in every request, and so no matter of recall."""
    return belief["pinned"] or _EVERYWHERE in belief["scope"] or belief["type"] == "open_question"


async def _remember(memory: Memory, beliefs: Sequence[Any]) -> None:
    """Oldest first, so that what replaces another comes after it."""
    by_id = {belief["_id"]: belief for belief in beliefs}
    for belief in sorted(beliefs, key=lambda one: one["created_at"]):
        if standing(belief) and not belief["resolved_at"]:
            continue
        last = belief
        while last["superseded_by"]:
            last = by_id[last["superseded_by"]]
        fact = await memory.remember(
            belief_text(belief),
            user_id=belief["user_id"],
            attribute=last["_id"] if last is not belief else None,
            project=belief["scope"][0].partition(":")[2],
        )
        # What replaces it may be in every request, where it is not a fact.
        if belief["resolved_at"] or (last is not belief and standing(last)):
            await memory.retract(fact.id, user_id=belief["user_id"])
    await memory.settle()


async def _case(memory: Memory, case: Any, beliefs: Sequence[Any], number: int) -> Line | None:
    expected = case["expect"].get("relevantBeliefs", {})
    if "shouldOnlyInclude" not in expected:
        return None
    user = case.get("userId", "test-user")
    domains = [one.partition(":")[2] for one in case["scope"]]
    wanted = set(expected["shouldOnlyInclude"])
    kind = "some" if wanted else "none"
    mapped = len(domains) == 1 and "budget" not in case
    figures = {"exact": 0.0, "mapped": float(mapped)}
    if mapped:
        chat = memory.conversation(f"case-{number}", user_id=user, project=domains[0])
        texts = [belief_text(one) for one in beliefs if standing(one) and case["scope"][0] in one["scope"]]
        query = case["query"] if case["query"].strip() else None
        window = await chat.context(query, window_tokens=BUDGET, instructions="\n".join(texts) or None)
        text = recalled(window)
        shown = {one["_id"] for one in beliefs if plain(one["content"]) in text}
        figures |= {"exact": float(shown == wanted), "recall tokens": float(recall_tokens(window))}
        figures |= {"share": len(shown & wanted) / len(wanted)} if wanted else {}
        figures |= {"precision": len(shown & wanted) / len(shown)} if shown else {}
    return Line("PrecisionMemBench", WINDOW, case["caseId"], kind, case["query"], BUDGET, figures)


async def persist_bench(bench: Bench, data: Path) -> list[Line]:
    """Memories of another domain, which must stay away, and memories that help."""
    step = _QUICK_STEP if bench.quick else 1
    away = read(data, "persist-cross-domain*.jsonl.gz")
    helping = read(data, "persist-beneficial*.jsonl.gz")
    labels = everyday.helpful()
    lines: list[Line] = []
    async with bench.memory() as memory:
        for number, row in enumerate(away[::step]):
            bench.tell(f"PersistBench, cross-domain: {number + 1} of {len(away[::step])}")
            shown, tokens = await _shown(memory, f"away-{number}", row)
            figures = {"shown": len(shown) / len(row["memories"]), "recall tokens": tokens}
            lines.append(_persist("cross-domain", number * step, row, figures))
        for number, row in enumerate(helping[::step]):
            bench.tell(f"PersistBench, beneficial: {number + 1} of {len(helping[::step])}")
            shown, tokens = await _shown(memory, f"helping-{number}", row)
            label = labels[number * step + 1]
            figures = {"share": len(shown & label.helps) / len(label.helps), "recall tokens": tokens}
            if judged := shown - label.may:
                figures["precision"] = len(judged & label.helps) / len(judged)
            lines.append(_persist("beneficial", number * step, row, figures))
    return lines


async def _shown(memory: Memory, user: str, row: Any) -> tuple[set[int], float]:
    """Which of the memories are in the window, and what they cost."""
    for text in row["memories"]:
        await memory.remember(text, user_id=user)
    window = await memory.conversation(user, user_id=user).context(row["query"], window_tokens=BUDGET)
    text = "\n".join(pieces(window))
    shown = {number for number, one in enumerate(row["memories"]) if plain(one) in text}
    return shown, float(recall_tokens(window))


def _persist(kind: str, number: int, row: Any, figures: dict[str, float]) -> Line:
    return Line("PersistBench", WINDOW, f"{kind}-{number + 1}", kind, row["query"], BUDGET, figures)
