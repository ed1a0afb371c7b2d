"""Whether recall got better or worse from one version to another, question by question, and by how much more than chance.

pagefile bench recall --data DIR --out before.jsonl     # in a checkout of the one
pagefile bench recall --data DIR --out after.jsonl      # in a checkout of the other
python -m benchmarks.recall_paired before.jsonl after.jsonl
"""

import json
import sys
from pathlib import Path

from benchmarks.recall import OURS
from benchmarks.recall_scores import FIGURES, difference

#: The figures of a question, by set and question.
Answers = dict[str, dict[str, dict[str, float]]]


def main(before: Path, after: Path) -> None:
    """Print a line for each figure of each set that both have."""
    one, other = read(before), read(after)
    print(
        "| set | figure | before | after | difference, with the bounds of 95 % of resamples |\n|---|---|---|---|---|"
    )
    for name in one.keys() & other.keys():
        print(*lines(name, one[name], other[name]), sep="\n")


def read(path: Path) -> Answers:
    """What Pagefile found, of a file that `--out` wrote; a question that is asked of several users counts for each."""
    found: Answers = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["ranker"] == OURS:
            answers = found.setdefault(row["set"], {})
            answers[f"{row['id']} {row['question']} {row['gold']}"] = row["figures"]
    return found


def lines(name: str, before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]) -> list[str]:
    """A row for each figure of a set, over the questions that both have."""
    both = sorted(before.keys() & after.keys())
    rows: list[str] = []
    for figure in FIGURES[name]:
        old, new = ([side[one][figure] for one in both] for side in (before, after))
        gain = difference(new, old)
        told = f"{gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})"
        mean_old, mean_new = sum(old) / len(both), sum(new) / len(both)
        rows.append(
            f"| {name}, {len(both)} questions | {figure} | {mean_old:.3f} | {mean_new:.3f} | {told} |"
        )
    return rows


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
