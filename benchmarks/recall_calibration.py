"""Fits the weights of `text/recall_weights.toml`, and prints how well they are calibrated on a set that is left out.

    .venv/bin/python -m benchmarks.recall_calibration DATA VECTORS ENCODERS [LEFT-OUT]

A set that the encoder was trained on is read with one that was not: ENCODERS has longmemeval.npz and lifebench.npz, made as
`training/README.md` says with `train.py --leave`.

What helps is labelled in the public sets; that nothing helps is known of the quiet messages, of everyday messages asked of somebody
else's past, and of LoCoMo's questions asked of other people. Weights of words alone are fitted on the same without vectors.
"""

import asyncio
import random
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from benchmarks import everyday
from benchmarks.recall_vectors import OnDisk
from benchmarks.window_data import lines, people, plain
from pagefile.models.embedders import MemoryEncoder
from pagefile.models.encoder import Encoder
from pagefile.ports import Embedder
from pagefile.text.recall_gate import LITTLE_SIMILARITY, answers
from pagefile.text.relevance import FEATURES, FEW, MESSAGE, message_features, turn_features
from pagefile.text.speech import blended, embedded_texts, in_first_person, question_text, said_terms
from pagefile.text.turn_ranking import Placed, TurnIndex
from pagefile.text.words import is_trivial, terms
from pagefile.window.value import OPENING

Floats = npt.NDArray[np.float64]
DEPTH, NEAREST = 200, 1000
#: Sets with labelled turns, and the weight of one such set beside the everyday messages.
LABELLED = ("LoCoMo", "REALTALK", "LongMemEval-S", "LifeBench-zh", "beam100k")
LABELLED_WEIGHT = 30.0
#: The weights of all messages to somebody else's past: quiet ones, needed ones, LoCoMo's.
ELSEWHERE = {"quiet": 100.0, "needed": 40.0, "LoCoMo": 20.0}
NEEDED_WEIGHT = 1.5
#: The encoder that has not seen a set, by its file; and how many people of a large set are asked.
UNSEEN = {"LongMemEval-S": "longmemeval", "LifeBench-zh": "lifebench"}
PEOPLE = {"LongMemEval-S": 24, "LifeBench-zh": 2}
#: A memory may have a few turns only: everyday messages are asked of parts of a past as well.
PARTS = (3, 6, 12, 24)
_FEW_RIDGE = 0.003
#: In a small memory a message that gets nothing costs more than one that gets a few lines too many.
QUIET_WEIGHT = 0.7
#: Questions in another language have no words in common with the past, and there are few of them.
FOREIGN_WEIGHT = 2.0


class Row(NamedTuple):
    """A question that was asked of a memory: its features, those of the turns found, and which of them help."""

    message: Floats
    turns: Floats
    helps: Floats


@dataclass(eq=False)
class Past:
    """Somebody's turns, with or without their vectors."""

    embedder: Embedder | None

    def __post_init__(self) -> None:
        self.index: TurnIndex[int] = TurnIndex()
        self.texts: list[tuple[str | None, str | None]] = []
        self.placed: list[Placed[int]] = []
        self.vectors: list[npt.NDArray[np.float32]] = []

    async def add(self, conversation: str, at: datetime, user: str | None, assistant: str | None) -> None:
        said, answered = " ".join(said_terms(user or "")), " ".join(terms(assistant or ""))
        placed = Placed(len(self.texts), conversation, at, said or answered, answered if said else "")
        self.index.add(placed)
        self.texts.append((user, assistant))
        self.placed.append(placed)
        if self.embedder is not None:
            self.vectors.append(await _vector(self.embedder, embedded_texts(user, assistant)))

    def part(self, size: int, gold: set[int], dice: random.Random) -> tuple["Past", set[int]]:
        """As if only this many turns had been recorded, those of `gold` among them; and their numbers there."""
        others = [n for n in range(len(self.texts)) if n not in gold]
        numbers = sorted([*gold, *dice.sample(others, max(0, min(size - len(gold), len(others))))])
        part = Past(self.embedder)
        for place, number in enumerate(numbers):
            part.index.add(self.placed[number]._replace(key=place))
            part.texts.append(self.texts[number])
            part.vectors += self.vectors[number : number + 1]
        return part, {numbers.index(n) for n in gold}

    async def ask(self, question: str, at: datetime, gold: set[int]) -> Row | None:
        """None if nothing was found: then nothing is shown."""
        near: dict[int, float] = {}
        if self.embedder is not None:
            meant = in_first_person(question, self.index.speakers)
            cosines = np.array(self.vectors) @ await _vector(self.embedder, [question_text(meant)])
            near = {int(n): float(cosines[n]) for n in np.argsort(-cosines)[:NEAREST]}
        known = self.index.familiarity(question)
        found = self.index.search(question, DEPTH, meaning=near, today=at.date(), zone=UTC)
        found = [one for one in found if answers(one.parts, foreign=known.foreign, least=LITTLE_SIMILARITY)]
        if not found or is_trivial(question):
            return None
        features = message_features(question, found, known)
        return Row(features, turn_features(found), np.array([float(one.key in gold) for one in found]))


async def _vector(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    return blended(list(await embedder.embed(list(texts) or [""])))


class Logistic(NamedTuple):
    weights: Floats
    bias: float

    def __call__(self, features: Floats) -> Floats:
        return 1 / (1 + np.exp(-(features @ self.weights + self.bias)))


def fitted(features: Floats, helps: Floats, weights: Floats, ridge: float) -> Logistic:
    """Logistic regression on standardised features."""
    mean, spread = features.mean(0), features.std(0) + 1e-9
    rows = np.c_[(features - mean) / spread, np.ones(len(features))]
    weights = weights / weights.sum()

    def loss(b: Floats) -> tuple[float, Floats]:
        p = 1 / (1 + np.exp(-(rows @ b)))
        bits = helps * np.log(p + 1e-12) + (1 - helps) * np.log(1 - p + 1e-12)
        slope = rows.T @ (weights * (p - helps)) + np.r_[2 * ridge * b[:-1], 0]
        return float(ridge * (b[:-1] ** 2).sum() - (weights * bits).sum()), slope

    found: Floats = cast("Any", minimize)(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    own = found[:-1] / spread
    return Logistic(own, float(found[-1] - (own * mean).sum()))


# -- rows ----------------------------------------------------------------------------------------------------------------


async def labelled(name: str, data: Path, embedder: Embedder | None) -> tuple[list[Row], list[Row]]:
    """The questions of a set; and those of LoCoMo asked of the next person."""
    rows: list[Row | None] = []
    elsewhere: list[Row | None] = []
    pasts: list[tuple[Past, list[tuple[str, datetime]]]] = []
    async for past, questions in _people(name, data, embedder):
        rows += [await past.ask(*question) for question in questions]
        if name == "LoCoMo":
            pasts.append((past, [(text, at) for text, at, _ in questions[::4]]))
    for number, (_, questions) in enumerate(pasts):
        other = pasts[(number + 1) % len(pasts)][0]
        elsewhere += [await other.ask(text, at, set()) for text, at in questions]
    return [row for row in rows if row], [row for row in elsewhere if row]


async def _people(
    name: str, data: Path, embedder: Embedder | None
) -> AsyncIterator[tuple[Past, list[tuple[str, datetime, set[int]]]]]:
    """Everybody's past, and the questions with the numbers of the turns that help."""
    if name == "beam100k":
        for person in lines(data, "beam100k*.json.gz"):
            past = Past(embedder)
            ids, at = dict[str, int](), datetime.min.replace(tzinfo=UTC)
            for number, turn in enumerate(person["turns"]):
                at = datetime.fromisoformat(turn["at"]).astimezone(UTC)
                await past.add(turn["conversation"], at, turn["user"], turn["assistant"])
                ids[turn["id"]] = number
            last = at + timedelta(hours=1)
            yield past, [(one["question"], last, {ids[g] for g in one["gold"]}) for one in person["queries"]]
        return
    for person in islice(people(name, data), PEOPLE.get(name)):
        past, places = Past(embedder), dict[str, list[int]]()
        for number, one in enumerate(person.corpus.said):
            await past.add(one.conversation, one.at, one.user, one.assistant)
            for text in filter(None, {one.text, one.user, one.assistant}):
                places.setdefault(text, []).append(number)
        asked = person.questions
        yield past, [(q.asked.text, q.asked.at, {n for e in q.evidence for n in places[e]}) for q in asked]


class Everyday(NamedTuple):
    """An everyday message that was asked of a past: what was found, whether anything helps, its weight, and of how many turns."""

    row: Row
    helps: float
    weight: float
    size: int

    @property
    def is_part(self) -> bool:
        return self.size in PARTS


async def at_home_and_elsewhere(embedder: Embedder | None, of: str = everyday.FIRST) -> list[Everyday]:
    """Everyday messages: asked of their own user's past, of parts of it, and of the pasts of others."""
    pasts: dict[str, Past] = {}
    for user, turns in everyday.pasts(of).items():
        past = pasts[user] = Past(embedder)
        for turn in turns:
            await past.add(turn.conversation, turn.at, turn.user, turn.assistant)
    rows: list[Everyday] = []
    for kind, messages in (("needed", everyday.needed(of)), ("quiet", everyday.quiet(of))):
        others = ELSEWHERE[kind] / (len(messages) * (len(pasts) - 1))
        for one in messages:
            says = [plain(text) for text in getattr(one, "says", ())]
            for user, past in pasts.items():
                if user == one.user or not getattr(one, "recent", ()):
                    weight = None if user == one.user else others
                    rows += await _asked_of(past, one.text, says, kind, weight)
    return rows


async def _asked_of(
    past: Past, text: str, says: Sequence[str], kind: str, others: float | None
) -> list[Everyday]:
    """A message asked of all of a past, and of parts of it; `others` is the weight if it is somebody else's."""
    gold = {n for n, t in enumerate(past.texts) if any(s in plain(f"{t[0]}\n{t[1]}") for s in says)}
    helps = float(kind == "needed" and others is None)
    dice = random.Random(text)
    parts = [(past, gold), *(past.part(size, gold, dice) for size in PARTS)]
    rows: list[Everyday] = []
    for number, (part, there) in enumerate(parts):
        row = await part.ask(text, everyday.NOW, there)
        if row is not None:
            own = NEEDED_WEIGHT if helps else 1.0
            own *= FOREIGN_WEIGHT if helps and row.message[MESSAGE.index("foreign")] else 1.0
            weight = own if others is None else others
            size = PARTS[number - 1] if number else len(past.texts)
            rows.append(Everyday(row, helps, weight, size))
    return rows


# -- fitting -------------------------------------------------------------------------------------------------------------


class Unseen(MemoryEncoder):
    """The bundled encoder with weights that were trained without a set."""

    def __init__(self, file: Path) -> None:
        self.version = f"{MemoryEncoder.version} without {file.stem}"
        self._encoder = Encoder(dict(np.load(file)))

    def _loaded(self) -> Encoder:
        return self._encoder


async def main(data: Path, cache: Path, encoders: Path, left_out: str | None) -> None:
    for kind, embedder in (("meaning", OnDisk(MemoryEncoder(), cache)), ("words", None)):
        home = await at_home_and_elsewhere(embedder)
        sets: dict[str, tuple[list[Row], list[Row]]] = {}
        for name in LABELLED:
            file = UNSEEN.get(name) if embedder else None
            reader = OnDisk(Unseen(encoders / f"{file}.npz"), cache) if file else embedder
            sets[name] = await labelled(name, data, reader)
        learnt = {name: rows for name, (rows, _) in sets.items() if name != left_out}
        turns = np.concatenate([row.turns for rows in learnt.values() for row in rows])
        helps = np.concatenate([row.helps for rows in learnt.values() for row in rows])
        each = [np.full(len(row.helps), 1 / len(rows)) for rows in learnt.values() for row in rows]
        of_turns = fitted(turns, helps, np.concatenate(each), 1e-5)
        shown = [(row, 1.0, LABELLED_WEIGHT / len(rows)) for rows in learnt.values() for row in rows]
        others = sets["LoCoMo"][1]
        shown += [
            *(one[:3] for one in home if not one.is_part),
            *((row, 0.0, ELSEWHERE["LoCoMo"] / len(others)) for row in others),
        ]
        messages = np.array([row.message[: -len(FEW)] for row, _, _ in shown])
        of_messages = fitted(
            messages, np.array([y for _, y, _ in shown]), np.array([w for *_, w in shown]), 0.03
        )
        of_messages = _of_few(of_messages, home)
        _print(kind, "turn", of_turns)
        _print(kind, "message", of_messages)
        for of in (everyday.FIRST, everyday.SECOND):
            _openings(of_messages, await at_home_and_elsewhere(embedder, of), of or "first")
        if left_out is not None:
            _reliability(of_turns, sets[left_out][0], left_out)


def _of_few(model: Logistic, home: Sequence[Everyday]) -> Logistic:
    """The same with weights for the features of small memories, from parts of the everyday pasts; the others stay as they are.

    What needs memory and what does not weigh the same there.
    """
    parts = [one for one in home if one.is_part]
    rows: Floats = np.array([one.row.message for one in parts])
    helps: Floats = np.array([one.helps for one in parts])
    weights: Floats = np.array([one.weight for one in parts])
    weights = weights / np.where(helps == 1, helps @ weights, (1 - helps) @ weights / QUIET_WEIGHT)
    features, known = rows[:, -len(FEW) :], rows[:, : -len(FEW)] @ model.weights + model.bias

    def loss(b: Floats) -> float:
        p = 1 / (1 + np.exp(-(features @ b + known)))
        bits = helps * np.log(p + 1e-12) + (1 - helps) * np.log(1 - p + 1e-12)
        return float(_FEW_RIDGE * (b**2).sum() - (weights * bits).sum() / weights.sum())

    found: Floats = cast("Any", minimize)(loss, np.zeros(len(FEW))).x
    return Logistic(np.r_[model.weights, found], model.bias)


def _print(kind: str, what: str, model: Logistic) -> None:
    print(f"[{kind}.{what}]\nbias = {model.bias:.4f}")
    print("\n".join(f"{name} = {w:.4f}" for name, w in zip(FEATURES[what], model.weights, strict=True)), "\n")


def _openings(model: Logistic, rows: Sequence[Everyday], name: str) -> None:
    """How often memory is opened, by the size of the memory: for messages that need it, for quiet ones, for all to others' pasts."""
    print(f"# {name}: turns, opened where needed, where not")
    for size in sorted({min(one.size, PARTS[-1] + 1) for one in rows}):
        some = [one for one in rows if min(one.size, PARTS[-1] + 1) == size]
        opened = {
            helps: float(np.mean([model(one.row.message) >= OPENING for one in some if one.helps == helps]))
            for helps in (1.0, 0.0)
        }
        print(f"# {'all' if size > PARTS[-1] else size} {opened[1.0]:.3f} {opened[0.0]:.3f}")


def _reliability(model: Logistic, rows: Sequence[Row], name: str) -> None:
    """Predicted beside observed, by deciles of what is predicted."""
    chances, helps = (
        model(np.concatenate([row.turns for row in rows])),
        np.concatenate([row.helps for row in rows]),
    )
    print(f"# {name}, left out: predicted, observed, turns")
    for part in np.array_split(np.argsort(chances), 10):
        print(f"# {chances[part].mean():.4f} {helps[part].mean():.4f} {len(part)}")
    for least, most in ((0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.4, 1.0)):
        part = (chances >= least) & (chances < most)
        if part.any():
            print(f"# {chances[part].mean():.4f} {helps[part].mean():.4f} {part.sum()}")


if __name__ == "__main__":
    places = [Path(one) for one in sys.argv[1:4]]
    asyncio.run(main(places[0], places[1], places[2], sys.argv[4] if len(sys.argv) > 4 else None))
