"""Facts in the window: sets of sixty with 150 tokens for them, what the rules extract, and what must never be kept."""

from collections.abc import Iterable

from benchmarks import everyday
from benchmarks.everyday import FactRules, FactSet
from benchmarks.window_data import plain
from benchmarks.window_parts import WINDOW, Bench, Line, pieces, precision, recall_tokens, seen
from pagefile.engine import Memory
from pagefile.errors import FactRejectedError
from pagefile.settings import FactSettings

BUDGET = 4_000
#: Tokens for facts.
FACT_TOKENS = 150
_BY_MEANING = "window, by meaning"
#: A sample takes one sentence in this many.
_QUICK_STEP = 5


async def fact_sets(bench: Bench) -> list[Line]:
    """Every set with the defaults, and with facts compared by meaning."""
    lines: list[Line] = []
    ways = {
        WINDOW: FactSettings(max_injection_tokens=FACT_TOKENS),
        _BY_MEANING: FactSettings(max_injection_tokens=FACT_TOKENS, embeddings=True),
    }
    if ways[WINDOW] == ways[_BY_MEANING]:
        del ways[_BY_MEANING]
    for way, facts in ways.items():
        for one in everyday.fact_sets()[: 1 if bench.quick else None]:
            bench.tell(f"facts of {one.name}, {way}")
            async with bench.memory(facts) as memory:
                lines += await _fact_set(memory, way, one)
    return lines


async def _fact_set(memory: Memory, way: str, one: FactSet) -> list[Line]:
    for fact in one.facts:
        await memory.remember(fact, user_id=one.name)
    await memory.settle()
    asked = [await _fact_line(memory, way, one, number, "fresh") for number in range(len(one.asks))]
    asked += [
        await _quiet_line(memory, way, one.name, number, message.text)
        for number, message in enumerate(everyday.quiet())
        if not message.recent
    ]
    # The conversation about something else comes second: it is past for whoever asks after it.
    return asked + [await _fact_line(memory, way, one, number, "away") for number in range(len(one.asks))]


async def _quiet_line(memory: Memory, way: str, user: str, number: int, text: str) -> Line:
    """A message that needs no fact, asked of somebody who has sixty."""
    window = await memory.conversation(f"quiet-{number}", user_id=user).context(text, window_tokens=BUDGET)
    figures = {
        "nothing": float("facts" not in window.parts.memory.sections),
        "recall tokens": float(recall_tokens(window)),
    }
    return Line("facts", way, f"{user}-quiet-{number}", "quiet", text, FACT_TOKENS, figures)


async def _fact_line(memory: Memory, way: str, one: FactSet, number: int, kind: str) -> Line:
    question, numbers = one.asks[number]
    # Another user with the same facts would cost more: the turns of these conversations are about other things.
    chat = memory.conversation(f"{kind}-{number}", user_id=one.name)
    if kind == "away":
        for said, answer in one.away:
            await chat.record(said, answer)
    window = await chat.context(question, window_tokens=BUDGET)
    wanted = [plain(one.facts[at]) for at in numbers]
    text = seen(window)
    figures = {
        "all there": float(all(fact in text for fact in wanted)),
        "recall tokens": float(recall_tokens(window)),
    }
    figures |= precision(pieces(window), wanted)
    return Line("facts", way, f"{one.name}-{number}", kind, question, FACT_TOKENS, figures)


async def rules(bench: Bench) -> list[Line]:
    """What the rules make of single messages; a secret must not be kept, whoever extracts it."""
    lines: list[Line] = []
    async with bench.memory(FactSettings(extract="rules")) as memory:
        for name, suffix in (("fact_rules", ""), ("fact_rules_more", ", more")):
            lines += await _messages(
                memory, everyday.fact_rules(name), suffix, _QUICK_STEP if bench.quick else 1
            )
    return lines


async def _messages(memory: Memory, told: FactRules, suffix: str, step: int) -> list[Line]:
    lines: list[Line] = []
    for number, sentence in enumerate(told.secrets[::step]):
        kept = await _extracted(memory, f"secret-{number}{suffix}", sentence)
        by_hand = await _remembered(memory, f"by-hand-{number}{suffix}", sentence)
        figures = {"kept by the rules": float(bool(kept)), "kept by remember()": float(by_hand)}
        lines.append(_sentence(f"secret{suffix}", number, sentence, figures))
    for number, (sentence, phrase) in enumerate(told.plain[::step]):
        kept = await _extracted(memory, f"plain-{number}{suffix}", sentence)
        figures = {"extracted": float(any(phrase in fact for fact in kept))}
        lines.append(_sentence(f"plain{suffix}", number, sentence, figures))
    for number, sentence in enumerate(told.decoys[::step]):
        kept = await _extracted(memory, f"decoy-{number}{suffix}", sentence)
        lines.append(_sentence(f"decoy{suffix}", number, sentence, {"extracted": float(bool(kept))}))
    return lines


def _sentence(kind: str, number: int, sentence: str, figures: dict[str, float]) -> Line:
    return Line("rules", "rules", f"{kind}-{number}", kind, sentence, 0, figures)


async def _extracted(memory: Memory, user: str, sentence: str) -> Iterable[str]:
    await memory.conversation(user, user_id=user).record(sentence, "OK.")
    await memory.settle()
    return [fact.text for fact in await memory.facts(user)]


async def _remembered(memory: Memory, user: str, sentence: str) -> bool:
    try:
        await memory.remember(sentence, user_id=user)
    except FactRejectedError:
        return False
    return True
