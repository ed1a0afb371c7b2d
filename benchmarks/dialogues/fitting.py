"""`python -m benchmarks.dialogues.fitting`: fits the weights by which `pagefile.text.corrections` finds what was overruled.

Logistic regression over all pairs of an earlier and a later statement of the judged conversations. It prints the weights for
`corrections.toml`, and how well conversations are judged by weights that were fitted without them. With `--first` it leaves
out the conversations that were written later (`kept`), to see what weights do on conversations they have not seen.
"""

import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.dialogues import Dialogue, dialogues, says, tells
from pagefile.text.corrections import Statement, comparisons
from pagefile.text.sentences import sentences

_PENALTY = 0.3
_STEPS = 60


def statements(dialogue: Dialogue) -> list[Statement]:
    """Each sentence that a user says."""
    return [
        Statement(sentence.strip(), turn, answer)
        for turn, (said, answer) in enumerate(dialogue.turns)
        for sentence in sentences(said)
        if sentence.strip()
    ]


def overruled_pairs(dialogue: Dialogue, said: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """By judgement: a statement that no longer holds, and the turn that says so first."""
    for gone in dialogue.gone:
        for at, one in enumerate(said):
            if not tells(one.text, gone.parts) or any(says(one.text, words) for words in gone.corrected_by):
                continue
            later = (turn for turn in range(one.turn + 1, len(dialogue.turns)))
            by = (turn for turn in later if any(says(dialogue.turns[turn][0], w) for w in gone.corrected_by))
            if (turn := next(by, None)) is not None:
                yield at, turn


def examples(dialogue: Dialogue) -> Iterator[tuple[dict[str, float], bool]]:
    """The features of each pair that is compared, and whether the earlier one no longer holds."""
    said = statements(dialogue)
    true = set(overruled_pairs(dialogue, said))
    for old, new, features in comparisons(said):
        yield features, (old, said[new].turn) in true


def fit(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression, by Newton's method."""
    weights = np.zeros(found.shape[1])
    for _ in range(_STEPS):
        chance = _chance(found, weights)
        curve = found.T @ (found * (chance * (1 - chance))[:, None]) + _PENALTY * np.eye(len(weights))
        weights -= np.linalg.solve(curve, found.T @ (chance - true) + _PENALTY * weights)
    return weights


def _chance(found: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-found @ weights))


def main(chosen: Sequence[Dialogue]) -> None:
    """Fit, leave each conversation out once, and print."""
    rows = [(number, *row) for number, dialogue in enumerate(chosen) for row in examples(dialogue)]
    names = sorted({name for _, features, _ in rows for name in features})
    found = np.array([[features.get(name, 0.0) for name in names] for _, features, _ in rows])
    true = np.array([float(holds) for _, _, holds in rows])
    home = np.array([number for number, _, _ in rows])
    left_out = np.zeros(len(rows))
    for number in set(home):
        left_out[home == number] = _chance(
            found[home == number], fit(found[home != number], true[home != number])
        )
    for least in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7):
        chosen_ones = left_out >= least
        hits = float((chosen_ones & (true == 1)).sum())
        print(
            f"# from {least}: {hits:.0f} of {true.sum():.0f} found, precision {hits / chosen_ones.sum():.2f}"
        )
    for name, weight in zip(names, fit(found, true), strict=True):
        print(f'"{name}" = {weight:.2f}')


if __name__ == "__main__":
    main([one for one in dialogues() if not one.blind and not (one.kept and "--first" in sys.argv)])
