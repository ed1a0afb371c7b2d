"""Fits the weights of `text/recall_weights.toml`, and prints how well they are calibrated on a set that is left out.

    .venv/bin/python -m benchmarks.recall_calibration DATA VECTORS [LEFT-OUT]

What helps is labelled in the public sets; that nothing helps is known of the quiet messages, of everyday messages asked of somebody
else's past, and of LoCoMo's questions asked of other people. Weights of words alone are fitted on the same without vectors.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from benchmarks import everyday
from benchmarks.recall_vectors import OnDisk
from benchmarks.window_data import lines, people, plain
from pagefile.models.embedders import UniversalSentenceEncoder
from pagefile.ports import Embedder
from pagefile.text.recall_gate import answers
from pagefile.text.relevance import FEATURES, MESSAGE, message_features, turn_features
from pagefile.text.speech import blended, embedded_texts, in_first_person, question_texts, said_terms
from pagefile.text.turn_ranking import Placed, TurnIndex
from pagefile.text.words import is_trivial, terms

Floats = npt.NDArray[np.float64]
DEPTH, NEAREST = 200, 1000
#: Sets with labelled turns, and the weight of one such set beside the everyday messages.
LABELLED = ("LoCoMo", "REALTALK", "LongMemEval-S", "LifeBench-zh", "beam100k")
LABELLED_WEIGHT = 30.0
#: The weights of all messages to somebody else's past: quiet ones, needed ones, LoCoMo's.
ELSEWHERE = {"quiet": 100.0, "needed": 40.0, "LoCoMo": 20.0}
NEEDED_WEIGHT = 1.5
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
        self.vectors: list[npt.NDArray[np.float32]] = []

    async def add(self, conversation: str, at: datetime, user: str | None, assistant: str | None) -> None:
        said, answered = said_terms(user or ""), terms(assistant or "")
        placed = Placed(len(self.texts), conversation, at, said or answered, answered if said else ())
        self.index.add(placed)
        self.texts.append((user, assistant))
        if self.embedder is not None:
            self.vectors.append(await _vector(self.embedder, embedded_texts(user, assistant)))

    async def ask(self, question: str, at: datetime, gold: set[int]) -> Row | None:
        """None if nothing was found: then nothing is shown."""
        near: dict[int, float] = {}
        if self.embedder is not None:
            meant = in_first_person(question, self.index.speakers)
            cosines = np.array(self.vectors) @ await _vector(self.embedder, question_texts(meant))
            near = {int(n): float(cosines[n]) for n in np.argsort(-cosines)[:NEAREST]}
        known = self.index.familiarity(question)
        found = self.index.search(question, DEPTH, meaning=near, today=at.date(), zone=UTC)
        found = [one for one in found if answers(one.parts, foreign=known.foreign)]
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
    for person in people(name, data):
        past, places = Past(embedder), dict[str, list[int]]()
        for number, one in enumerate(person.corpus.said):
            await past.add(one.conversation, one.at, one.user, one.assistant)
            for text in filter(None, {one.text, one.user, one.assistant}):
                places.setdefault(text, []).append(number)
        asked = person.questions
        yield past, [(q.asked.text, q.asked.at, {n for e in q.evidence for n in places[e]}) for q in asked]


async def at_home_and_elsewhere(embedder: Embedder | None) -> Iterator[tuple[Row, float, float]]:
    """Everyday messages: the row, whether anything helps, and its weight."""
    pasts: dict[str, Past] = {}
    for user, turns in everyday.pasts().items():
        past = pasts[user] = Past(embedder)
        for turn in turns:
            await past.add(turn.conversation, turn.at, turn.user, turn.assistant)
    rows: list[tuple[Row, float, float]] = []
    for kind, messages in (("needed", everyday.needed()), ("quiet", everyday.quiet())):
        others = ELSEWHERE[kind] / (len(messages) * (len(pasts) - 1))
        for one in messages:
            for user, past in pasts.items():
                says = [plain(text) for text in getattr(one, "says", ())]
                gold = {
                    n for n, t in enumerate(past.texts) if any(s in plain(f"{t[0]}\n{t[1]}") for s in says)
                }
                row = await past.ask(one.text, everyday.NOW, gold)
                if row is not None and (user == one.user or not getattr(one, "recent", ())):
                    helps = float(kind == "needed" and user == one.user)
                    own = NEEDED_WEIGHT if helps else 1.0
                    own *= FOREIGN_WEIGHT if helps and row.message[MESSAGE.index("foreign")] else 1.0
                    rows.append((row, helps, own if user == one.user else others))
    return iter(rows)


# -- fitting -------------------------------------------------------------------------------------------------------------


async def main(data: Path, cache: Path, left_out: str | None) -> None:
    for kind, embedder in (("meaning", OnDisk(UniversalSentenceEncoder(), cache)), ("words", None)):
        home = list(await at_home_and_elsewhere(embedder))
        sets = {name: await labelled(name, data, embedder) for name in LABELLED}
        learnt = {name: rows for name, (rows, _) in sets.items() if name != left_out}
        turns = np.concatenate([row.turns for rows in learnt.values() for row in rows])
        helps = np.concatenate([row.helps for rows in learnt.values() for row in rows])
        each = [np.full(len(row.helps), 1 / len(rows)) for rows in learnt.values() for row in rows]
        of_turns = fitted(turns, helps, np.concatenate(each), 1e-5)
        shown = [(row, 1.0, LABELLED_WEIGHT / len(rows)) for rows in learnt.values() for row in rows]
        others = sets["LoCoMo"][1]
        shown += [*home, *((row, 0.0, ELSEWHERE["LoCoMo"] / len(others)) for row in others)]
        messages = np.array([row.message for row, _, _ in shown])
        of_messages = fitted(
            messages, np.array([y for _, y, _ in shown]), np.array([w for *_, w in shown]), 0.03
        )
        _print(kind, "turn", of_turns)
        _print(kind, "message", of_messages)
        if left_out is not None:
            _reliability(of_turns, sets[left_out][0], left_out)


def _print(kind: str, what: str, model: Logistic) -> None:
    print(f"[{kind}.{what}]\nbias = {model.bias:.4f}")
    print("\n".join(f"{name} = {w:.4f}" for name, w in zip(FEATURES[what], model.weights, strict=True)), "\n")


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
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
