"""`pagefile bench beside-rules`: what a model's facts and summaries are worth beside the rules, on judged texts in two languages.

Everything is read through a memory, as it is for a user. A model's answers are kept by the prompt that they answer, so that they are
judged again without it when what reads them changes; a prompt that changes has no answer until a model is named.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import httpx

from benchmarks import everyday
from benchmarks.dialogues import FITTED_TO_NONE, Dialogue, Language, dialogues
from benchmarks.report import Report, Row, machine_facts
from benchmarks.summaries import Figures, Summarised, summarised
from pagefile.engine import Memory
from pagefile.errors import ModelUnavailableError, NotFoundError
from pagefile.ports import ChatModel
from pagefile.records import JsonValue
from pagefile.settings import FactSettings, Settings
from pagefile.text.sentences import language
from pagefile.text.tokens import open_counter

ANSWERS = Path(__file__).parent / "model" / "beside_rules.jsonl"
WINDOW_TOKENS = 4_000
#: Messages of one session, which a model reads together.
TOGETHER = 10
LANGUAGES: tuple[Language, ...] = ("en", "zh")
KINDS = ("lasting", "not lasting", "secrets")
_DIGEST_CHARS, _TIMEOUT_S, _AT_ONCE = 16, 7_200, 8
#: A summary follows from the one before it, so that its prompt is known only when that one is.
_ROUNDS = 12

Asked = tuple[Sequence[Mapping[str, JsonValue]], int]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Message:
    """What a user writes, and what a fact of it has to say, if there is one."""

    kind: str
    text: str
    phrase: str = ""


class Kept(ChatModel):
    """A model that knows what is in the file, and remembers what else it was asked."""

    def __init__(self, name: str, path: Path = ANSWERS) -> None:
        self.name, self.path = name, path
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        rows: list[dict[str, str]] = [json.loads(line) for line in lines]
        self.answers = {row["prompt"]: row["answer"] for row in rows if row["model"] == name}
        self.waiting: dict[str, Asked] = {}
        self._lacks = False

    def begin(self) -> None:
        """Another text begins. Of each, only the first prompt that has no answer waits for one: later ones follow from it."""
        self._lacks = False

    async def complete(self, messages: Sequence[Mapping[str, JsonValue]], *, max_tokens: int) -> str:
        asked = json.dumps([[dict(one) for one in messages], max_tokens], ensure_ascii=False)
        prompt = sha256(asked.encode()).hexdigest()[:_DIGEST_CHARS]
        if prompt not in self.answers:
            if not self._lacks:
                self.waiting[prompt] = (messages, max_tokens)
            self._lacks = True
            raise ModelUnavailableError("Nothing is kept for this prompt.")
        return self.answers[prompt]

    def keep(self, prompt: str, answer: str) -> None:
        self.answers[prompt] = answer
        line = json.dumps({"model": self.name, "prompt": prompt, "answer": answer}, ensure_ascii=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def run(url: str | None, name: str, *, path: Path = ANSWERS, tell: Tell = print) -> Report:
    """Read and summarise everything by the rules alone, and with the model beside them."""
    kept = Kept(name, path)
    if url is None and not kept.answers:
        raise NotFoundError(f"No answers of {name!r} are kept: name a server with --url.")
    return anyio.run(_run, url, kept, tell)


async def _run(url: str | None, kept: Kept, tell: Tell) -> Report:
    rows = await _judged(kept)
    for _ in range(_ROUNDS):
        if url is None or not kept.waiting:
            break
        await _ask(url, kept, tell)
        rows = await _judged(kept)
    if kept.waiting:
        rows.append(
            Row("prompts without an answer", len(kept.waiting), "", note="what they ask is not judged yet")
        )
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


async def _judged(kept: Kept) -> list[Row]:
    """What is made of everything with the answers that there are; what has none waits for it."""
    kept.waiting.clear()
    facts = _fact_rows(await _facts(None), await _facts(kept))
    return [*facts, *_summary_rows(await _summaries(None), await _summaries(kept))]


async def _ask(url: str, kept: Kept, tell: Tell) -> None:
    """Ask what is waiting: without the time limits of a memory, since a small machine takes minutes."""
    limit = anyio.CapacityLimiter(_AT_ONCE)
    async with httpx.AsyncClient(base_url=url.rstrip("/"), timeout=_TIMEOUT_S, trust_env=False) as http:

        async def ask(prompt: str, messages: Sequence[Mapping[str, JsonValue]], most: int) -> None:
            body = {"model": kept.name, "messages": list(messages), "temperature": 0, "max_tokens": most}
            async with limit:
                response = (await http.post("/chat/completions", json=body)).raise_for_status()
            answer: dict[str, Any] = response.json()
            kept.keep(prompt, str(answer["choices"][0]["message"].get("content") or ""))
            tell(f"{prompt}: {answer.get('usage')}")

        async with anyio.create_task_group() as tasks:
            for prompt, (messages, most) in kept.waiting.items():
                tasks.start_soon(ask, prompt, messages, most)


# -- facts --------------------------------------------------------------------------------------------------------------


def messages(tongue: Language) -> list[Message]:
    """What was written apart from the rules, in an order that nobody chose."""
    told = everyday.fact_rules("fact_rules_more")
    every = [
        *(Message("lasting", text, phrase) for text, phrase in told.plain),
        *(Message("not lasting", text) for text in told.decoys),
        *(Message("secrets", text) for text in told.secrets),
    ]
    mine = [one for one in every if language(one.text) == tongue]
    random.Random(0).shuffle(mine)
    return mine


async def _facts(model: Kept | None) -> dict[Message, list[str]]:
    """What is kept of each message."""
    found: dict[Message, list[str]] = {}
    for tongue in LANGUAGES:
        mine = messages(tongue)
        for at in range(0, len(mine), TOGETHER):
            await _session(model, mine[at : at + TOGETHER], found)
    return found


async def _session(model: Kept | None, said: Sequence[Message], found: dict[Message, list[str]]) -> None:
    """In a memory of its own: one whose model did not answer waits before it asks again."""
    if model is not None:
        model.begin()
    facts = FactSettings(extract="rules" if model is None else "model")
    async with Memory.open(
        "memory://", settings=Settings(facts=facts), embedder="none", model=model
    ) as memory:
        chat = memory.conversation("session", user_id="user")
        for place, one in enumerate(said):
            found[one] = []
            await chat.record(one.text, "OK.", id=str(place))
        await memory.settle()
        for fact in await memory.facts("user"):
            found[said[int(str(fact.source_turn))]].append(fact.text)


def _fact_rows(
    by_rules: Mapping[Message, Sequence[str]], beside: Mapping[Message, Sequence[str]]
) -> Iterator[Row]:
    for tongue in LANGUAGES:
        for kind in KINDS:
            mine = [one for one in messages(tongue) if one.kind == kind]
            alone, both = (sum(_kept(one, found[one]) for one in mine) for found in (by_rules, beside))
            note = f"of {len(mine)}; {alone} by the rules alone"
            yield Row(f"facts, {tongue}, {kind}: kept with a model", both, "", note=note)


def _kept(one: Message, facts: Sequence[str]) -> bool:
    return any(one.phrase in fact for fact in facts)


# -- summaries ----------------------------------------------------------------------------------------------------------


def judged() -> list[Dialogue]:
    """Conversations that no weights are fitted to."""
    return [one for one in dialogues() if one.part in FITTED_TO_NONE]


async def _summaries(model: Kept | None) -> list[Summarised]:
    settings = Settings(window_tokens=WINDOW_TOKENS)
    async with Memory.open("memory://", settings=settings, embedder="none", model=model) as memory:
        made: list[Summarised] = []
        for one in judged():
            if model is not None:
                model.begin()
            made.append(await summarised(memory, one, WINDOW_TOKENS))
        return made


def _summary_rows(by_rules: Sequence[Summarised], beside: Sequence[Summarised]) -> Iterator[Row]:
    for tongue in LANGUAGES:
        alone, both = (
            Figures.of([one for one in made if one.dialogue.language == tongue])
            for made in (by_rules, beside)
        )
        note = f"of {alone.holds}; {alone.told} by the rules alone"
        yield Row(f"summaries, {tongue}: told of what holds, with a model", both.told, "", note=note)
        note = f"of {alone.gone}; {alone.stale} by the rules alone"
        yield Row(f"summaries, {tongue}: still told of what does not", both.stale, "", note=note)
        changed = sum(
            a.summary != b.summary
            for a, b in zip(by_rules, beside, strict=True)
            if a.dialogue.language == tongue
        )
        note = f"of {sum(one.dialogue.language == tongue for one in beside)}; {both.tokens:.0f} tokens, {alone.tokens:.0f} by the rules alone"
        yield Row(f"summaries, {tongue}: in a model's words at least in part", changed, "", note=note)
