"""Trains the encoder on a GPU: python train.py PACKED OUT [--leave SETS] [--layers 0,3,7,11] ...

First the base model, twelve layers deep, learns to find what answers a question (the teacher); then some or all of its layers learn to say the same
(the student), which is written with 8 bits a weight. Where second.py has worked out what another encoder makes of the texts, a head that is thrown away
afterwards says that, too: it keeps what the student knows of the world. A set that is left out is left out of all. Needs torch and numpy alone.
"""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention.varlen import varlen_attn

DEVICE = "cuda"
HEADS, WIDTH = 12, 384
#: The time of these steps says how many fit into the seconds given.
WARM = 40
#: More than fit into the seconds given.
MOST_STEPS = 100_000
#: How many texts say which inner units are active.
ACTIVE = 20_000
TEMPERATURE = 0.04
#: Directions in which languages differ, which are taken out of every vector; how much of the mean; and from how many pairs they are known.
DIRECTIONS, CENTRED, PAIRS_FOR_DIRECTIONS = 2, 0.7, 1200
#: The second encoder's similarities lie wider apart than ours; how many texts and words of a step it teaches.
SECOND_TEMPERATURE, SECOND_TEXTS, SECOND_WORDS = 0.08, 1400, 700
#: Pieces of the shortest part of a text that the student learns beside whole ones.
SHORTEST = 5
#: The base model was trained with this one: its similarities lie close together.
BASE_TEMPERATURE = 0.01
MEASURED = ("locomo", "realtalk", "beam", "longmemeval", "realmem", "lifebench")
#: How often a question is of each set.
ASKED = {"friendsqa": 0.42, "molweni": 0.2, "longmemeval": 0.03, "realmem": 0.12, "lifebench": 0.23}
PAIRED = {
    "longmemeval": 0.28,
    "realmem": 0.14,
    "lifebench": 0.22,
    "coding": 0.1,
    "runs": 0.16,
    "bilingual": 0.14,
}
#: Pairs of single words and short terms, of which each step has some: known translations, words and their stems, and words that
#: the base model itself takes for each other's translation.
TERMS = {"terms": 160, "stems": 48, "mined": 64}
#: How many pairs of words are mined, and how many neighbours say how crowded a word's surroundings are.
MINED, CROWD = 8000, 10
MATRICES = ("q.w", "k.w", "v.w", "ao.w", "fi.w", "fo.w")


def base_model(path):
    raw, out = np.load(path), {}
    for name in raw.files:
        if name.endswith(".q"):
            numbers, scale = raw[name].astype(np.float32), raw[name[:-2] + ".d"].astype(np.float32)
            out[name[:-2]] = (numbers.reshape(len(numbers), -1, 32) * scale[..., None]).reshape(numbers.shape)
        elif not name.endswith(".d") and name != "used":
            out[name] = raw[name].astype(np.float32)
    return {name: torch.tensor(value, device=DEVICE) for name, value in out.items()}


def on_device(array):
    """Without waiting for what the device is doing."""
    given = torch.from_numpy(np.ascontiguousarray(array))
    return given.pin_memory().to(DEVICE, non_blocking=True) if DEVICE == "cuda" else given


def encoded(p, ids, sizes, layers):
    """A vector of unit length for each text."""
    return F.normalize(summed(p, ids, sizes, layers)[1], dim=-1)


def summed(p, ids, sizes, layers, active=None):
    """BERT in half precision over texts one after the other: the sums of what goes into its first layer, and of its last, for each.

    `active` takes how active the inner units of each layer are.
    """
    norm = lambda x, name: F.layer_norm(x, (WIDTH,), p[name + ".w"], p[name + ".b"], 1e-12)
    linear = lambda x, name: F.linear(x, p[name + ".w"], p[name + ".b"])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    place, owner = (
        np.arange(starts[-1]) - np.repeat(starts[:-1], sizes),
        np.repeat(np.arange(len(sizes)), sizes),
    )
    place, owner, bounds = on_device(place), on_device(owner), on_device(starts.astype(np.int32))
    each = lambda x: torch.zeros(len(sizes), WIDTH, device=DEVICE).index_add(0, owner, x.float())
    x = norm(F.embedding(ids, p["word"]) + F.embedding(place, p["pos"]) + p["type"], "emb.ln")
    first = each(x)
    for n in range(layers):
        q, k, v = linear(x, f"l{n}.qkv").view(len(x), 3, HEADS, -1).unbind(1)
        a = attention(q, k, v, bounds, sizes).reshape(x.shape)
        x = norm(x + linear(a, f"l{n}.ao"), f"l{n}.aln")
        inner = F.gelu(linear(x, f"l{n}.fi"))
        if active is not None:
            active[n] += inner.float().square().sum(0)
        x = norm(x + linear(inner, f"l{n}.fo"), f"l{n}.oln")
    return first, each(x)


def attention(q, k, v, bounds, sizes):
    """Each text to itself; a plain loop where there is no kernel for it."""
    longest = int(sizes.max())
    if DEVICE == "cuda":
        return varlen_attn(q, k, v, bounds, bounds, longest, longest)
    parts = [y.split(sizes.tolist()) for y in (q, k, v)]
    heads = lambda y: y.transpose(0, 1)[None]
    return torch.cat(
        [
            F.scaled_dot_product_attention(*map(heads, three))[0].transpose(0, 1)
            for three in zip(*parts, strict=True)
        ]
    )


class Model:
    def __init__(self, p, layers):
        self.p, self.layers = p, layers

    def half(self):
        """In half precision, the three projections of a layer side by side; gradients flow through."""
        p = {name: value.bfloat16() for name, value in self.p.items() if name != "word"}
        p["word"] = self.p["word"]
        for n in range(self.layers):
            for part in "wb":
                p[f"l{n}.qkv.{part}"] = torch.cat([p[f"l{n}.{one}.{part}"] for one in "qkv"])
        return p

    def trainable(self):
        return [value for name, value in self.p.items() if name.startswith(("l", "emb.ln", "pos", "head"))]


class Texts:
    def __init__(self, data):
        self.lengths = data["lengths"].astype(np.int64)
        self.ends = np.cumsum(self.lengths)
        self.flat, self.prefix = data["texts"].astype(np.int64), data["prefix"].astype(np.int64)

    def cropped(self, rows, rng):
        """Texts with a part of each of these added, which says again what a text is about, or only some of it; and the rows of the parts."""
        more = Texts.__new__(Texts)
        rows = rows[self.lengths[rows] >= SHORTEST + 6]
        sizes = rng.integers(SHORTEST, self.lengths[rows] - 2, endpoint=True)
        at = (
            self.ends[rows]
            - self.lengths[rows]
            + 1
            + rng.integers(0, self.lengths[rows] - 2 - sizes, endpoint=True)
        )
        begin, end = self.flat[0], self.flat[self.ends[0] - 1]
        parts = [
            np.concatenate([[begin], self.flat[a : a + n], [end]]) for a, n in zip(at, sizes, strict=True)
        ]
        more.flat, more.prefix = np.concatenate([self.flat, *parts]), self.prefix
        more.lengths = np.concatenate([self.lengths, sizes + 2])
        more.ends = np.cumsum(more.lengths)
        return more, len(self.lengths) + np.arange(len(parts))

    def pieces(self, rows):
        sizes = self.lengths[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        at = np.arange(sizes.sum()) + np.repeat(self.ends[rows] - sizes - starts, sizes)
        return self.flat[at], sizes, starts

    def vectors(self, model, rows, prefixed=False):
        ids, sizes, starts = self.pieces(rows)
        if prefixed:
            ids = np.insert(ids, np.repeat(starts + 1, len(self.prefix)), np.tile(self.prefix, len(rows)))
            sizes = sizes + len(self.prefix)
        return encoded(model.half(), on_device(ids), sizes, model.layers)

    def lookup(self, model, *rows):
        """A function from rows to vectors; all of these are worked out at once, each text once."""
        every = np.unique(np.concatenate([np.ravel(some) for some in rows]))
        vectors, place = self.vectors(model, every), np.full(len(self.lengths), -1)
        place[every] = np.arange(len(every))
        return lambda some: F.embedding(on_device(place[some]), vectors)

    @torch.no_grad()
    def all(self, model, rows, prefixed=False):
        """A table over all texts in which only these rows are filled."""
        out = torch.zeros(len(self.lengths), WIDTH, device=DEVICE)
        for start in range(0, len(rows), 4096):
            part = rows[start : start + 4096]
            out[on_device(part)] = self.vectors(model, part, prefixed)
        return out


class Set:
    def __init__(self, data, name, texts):
        self.name, self.texts = name, texts
        for part in ("said", "answered", "session", "asked", "spans", "hard"):
            setattr(self, part, data[f"{name}.{part}"])
        ends = np.cumsum(data[f"{name}.golds"])
        self.gold = [
            data[f"{name}.gold"][b - n : b] for b, n in zip(ends, data[f"{name}.golds"], strict=True)
        ]

    def rows(self):
        every = np.concatenate([self.said, self.answered, self.asked])
        return np.unique(every[every >= 0])

    def turns(self, lookup, at):
        """Vectors of turns; `lookup` gives those of texts."""
        both = np.stack([self.said[at], self.answered[at]])
        vectors = lookup(np.maximum(both.ravel(), 0)).view(2, len(at), WIDTH)
        there = on_device(both >= 0)[..., None]
        return F.normalize((vectors * there).sum(0), dim=-1)

    @torch.no_grad()
    def measured(self, model):
        table = self.texts.all(model, self.rows())
        lookup = lambda rows: table[on_device(rows)]
        turns, asked, figures = self.turns(lookup, np.arange(len(self.said))), lookup(self.asked), []
        for n, gold in enumerate(self.gold):
            a, b = self.spans[n]
            order = a + torch.argsort(turns[a:b] @ asked[n], descending=True)[:1500].cpu().numpy()
            if self.name in ("longmemeval", "realmem"):
                ranked = list(dict.fromkeys(self.session[order].tolist()))
                right = set(self.session[gold].tolist())
                figures.append(
                    right <= set(ranked[:5])
                    if self.name == "longmemeval"
                    else len(right & set(ranked[:10])) / len(right)
                )
            else:
                figures.append(np.isin(gold, order[: 20 if self.name == "lifebench" else 10]).mean())
        return round(float(np.mean(figures)), 4)

    def drawn(self, count, negatives, rng):
        """Questions, a turn that answers each, and turns that do not."""
        which = rng.choice(len(self.asked), min(count, len(self.asked)), replace=False)
        right = np.array(
            [rng.choice(self.gold[n][:4] if self.name != "lifebench" else self.gold[n]) for n in which]
        )
        wrong = []
        for n in which:
            hard = self.hard[n][self.hard[n] >= 0]
            if not len(hard):
                hard = np.array([right[0]])
            near = np.exp(-np.arange(len(hard)) / 25)
            wrong.append(rng.choice(hard, negatives, p=near / near.sum()))
        return which, right, np.array(wrong)

    def rows_of(self, which, right, wrong):
        at = np.concatenate([right, wrong.ravel()])
        return np.concatenate(
            [self.asked[which], np.maximum(self.said[at], 0), np.maximum(self.answered[at], 0)]
        )

    def lists(self, lookup, which, right, wrong):
        """Similarities of each question to its own turns and to the others' right ones, and which of those count."""
        turns = self.turns(lookup, np.concatenate([right, wrong.ravel()]))
        asked = lookup(self.asked[which])
        count, own = len(which), turns[len(which) :].view(len(which), -1, WIDTH)
        scores = torch.cat([asked @ turns[:count].T, torch.einsum("qd,qnd->qn", asked, own)], 1)
        allowed = np.ones(scores.shape, bool)
        for row, n in enumerate(which):
            allowed[row, :count] = ~np.isin(right, self.gold[n])
            allowed[row, row] = True
            allowed[row, count:] = wrong[row] != right[row]
        return scores, on_device(allowed)


def softly(scores, allowed, temperature):
    return (scores / temperature).masked_fill(~allowed, -1e4)


def agreement(theirs, ours, allowed=None, temperature=TEMPERATURE):
    """How far one distribution is from the other: the Kullback-Leibler divergence of the rows."""
    if allowed is None:
        allowed = ~torch.eye(len(ours), dtype=torch.bool, device=DEVICE)
    aim = F.softmax(softly(theirs, allowed, temperature), -1)
    return F.kl_div(F.log_softmax(softly(ours, allowed, TEMPERATURE), -1), aim, reduction="batchmean")


class Lessons:
    def __init__(self, data, texts, leave, rng):
        self.texts, self.rng = texts, rng
        self.asked = {n: w for n, w in ASKED.items() if n != leave}
        self.paired = {n: w for n, w in PAIRED.items() if n != leave}
        self.sets = {name: Set(data, name, texts) for name in {*self.asked, *MEASURED}}
        self.pairs = {name: data[f"pairs.{name}"] for name in self.paired}
        # A seventh of all translations is kept back to be measured: by the Chinese text, so that a word and its stem go together.
        self.held = {}
        for name in ("bilingual", "terms"):
            some = data[f"pairs.{name}"]
            held = some[:, 1] % 7 == 0
            self.held[name], self.pairs[name] = some[held], some[~held]
        self.pairs["stems"] = data["pairs.stems"]
        self.words, self.english = data["words"], int(data["words.english"])
        taught = [self.sets[n].rows() for n in self.asked] + [p.ravel() for p in self.pairs.values()]
        self.pool = np.unique(np.concatenate(taught))
        self.parts = np.zeros(0, int)

    def crop(self):
        """Beside the whole texts, parts of them."""
        self.texts, self.parts = self.texts.cropped(np.repeat(self.pool, 2), self.rng)

    def every(self):
        return np.unique(np.concatenate([self.pool, self.words, self.parts]))

    def pick(self, weights):
        names = list(weights)
        share = np.array([weights[n] for n in names])
        return names[self.rng.choice(len(names), p=share / share.sum())]

    def pair(self, count):
        some = self.pairs[self.pick(self.paired)]
        return some[self.rng.choice(len(some), min(count, len(some)), replace=False)]

    def terms(self):
        return np.concatenate(
            [
                self.pairs[name][self.rng.choice(len(self.pairs[name]), n, replace=False)]
                for name, n in TERMS.items()
            ]
        )

    def mine(self, base):
        """English and Chinese words that are each other's nearest, by the base model, its mean of each language taken out."""
        sides = [self.words[: self.english], self.words[self.english :]]
        a, b = (
            F.normalize(rows - rows.mean(0), dim=-1) for rows in (base[on_device(side)] for side in sides)
        )
        near = a @ b.T
        score = 2 * near - near.topk(CROWD, 1).values.mean(1, True) - near.topk(CROWD, 0).values.mean(0, True)
        theirs, ours = score.argmax(1), score.argmax(0)
        mutual = ours[theirs] == torch.arange(len(theirs), device=DEVICE)
        margin = torch.where(mutual, score[torch.arange(len(theirs), device=DEVICE), theirs], -9.0)
        best = margin.topk(min(MINED, int(mutual.sum()))).indices.cpu().numpy()
        self.pairs["mined"] = np.stack([sides[0][best], sides[1][theirs.cpu().numpy()[best]]], 1)
        print(
            f"mined {len(best)} pairs, margins {float(margin.max()):.3f} to {float(margin[best[-1]]):.3f}",
            flush=True,
        )

    def general(self, count):
        words = self.rng.choice(self.words, count // 4, replace=False)
        both = self.pairs["bilingual"][
            self.rng.choice(len(self.pairs["bilingual"]), count // 16, replace=False)
        ].ravel()
        left = count - len(words) - len(both)
        parts = self.rng.choice(self.parts, left // 2, replace=False) if len(self.parts) else self.parts
        whole = self.rng.choice(self.pool, left - len(parts), replace=False)
        return np.unique(np.concatenate([words, both, parts, whole]))

    @torch.no_grad()
    def translated(self, model):
        """How often a text's nearest in the other language is its translation, the mean of each language taken out."""
        found = {}
        for name, held in self.held.items():
            lookup = self.texts.lookup(model, held)
            sides = [lookup(held[:, n]) for n in (0, 1)]
            a, b = (F.normalize(rows - rows.mean(0), dim=-1) for rows in sides)
            for way, (one, other, n) in {"": (a, b, 1), " back": (b, a, 0)}.items():
                best = (one @ other.T).argmax(1).cpu().numpy()
                right = {(x, y) for x, y in held.tolist()}
                pair = np.stack([held[:, 1 - n], held[best, n]], 1)[:, :: 1 if n else -1]
                found[name + way] = round(float(np.mean([tuple(one) in right for one in pair.tolist()])), 4)
        return found


def in_batch(a, b, pairs):
    same = (pairs[:, 1][:, None] == pairs[:, 1][None]) | (pairs[:, 0][:, None] == pairs[:, 0][None])
    same &= ~np.eye(len(pairs), dtype=bool)
    scores = (a @ b.T / TEMPERATURE).masked_fill(on_device(same), -1e4)
    aim = torch.arange(len(a), device=DEVICE)
    return (F.cross_entropy(scores, aim) + F.cross_entropy(scores.T, aim)) / 2


def teacher_loss(model, lessons, base, args):
    one, pairs, some = lessons.sets[lessons.pick(lessons.asked)], lessons.pair(128), lessons.general(256)
    drawn, words = one.drawn(32, 9, lessons.rng), lessons.terms()
    lookup = lessons.texts.lookup(model, one.rows_of(*drawn), pairs, some, words)
    scores, allowed = one.lists(lookup, *drawn)
    loss = F.cross_entropy(softly(scores, allowed, TEMPERATURE), torch.arange(len(scores), device=DEVICE))
    loss = loss + args.pairs * in_batch(lookup(pairs[:, 0]), lookup(pairs[:, 1]), pairs)
    loss = loss + args.terms * in_batch(lookup(words[:, 0]), lookup(words[:, 1]), words)
    theirs, ours = base[on_device(some)], lookup(some)
    return loss + args.keep * agreement(theirs @ theirs.T, ours @ ours.T, temperature=BASE_TEMPERATURE)


def student_loss(model, lessons, table, args):
    known = lambda rows: table[on_device(rows)]
    one, pairs, some = (
        lessons.sets[lessons.pick(lessons.asked)],
        lessons.pair(192),
        lessons.general(args.general),
    )
    drawn, words = one.drawn(32, 9, lessons.rng), lessons.terms()
    lookup = lessons.texts.lookup(model, one.rows_of(*drawn), pairs, some, words)
    scores, allowed = one.lists(lookup, *drawn)
    theirs, _ = one.lists(known, *drawn)
    aim = torch.arange(len(scores), device=DEVICE)
    loss = args.hard * F.cross_entropy(softly(scores, allowed, TEMPERATURE), aim) + agreement(
        theirs, scores, allowed
    )
    ours, told = ([look(pairs[:, 0]), look(pairs[:, 1]), look(some)] for look in (lookup, known))
    every = torch.ones(len(pairs), len(pairs), dtype=torch.bool, device=DEVICE)
    loss = loss + args.pairs * agreement(told[0] @ told[1].T, ours[0] @ ours[1].T, every)
    loss = loss + agreement(told[2] @ told[2].T, ours[2] @ ours[2].T)
    loss = loss + args.terms * in_batch(lookup(words[:, 0]), lookup(words[:, 1]), words)
    return loss + args.same * (1 - (torch.cat(ours) * torch.cat(told)).sum(-1)).mean()


def with_head(model, size):
    """Beside its vector a student says that of another encoder, of this size."""
    drawn = lambda out, into: torch.randn(out, into, device=DEVICE) / into**0.5
    model.p["head.wide"] = drawn(2 * WIDTH, 2 * WIDTH)
    model.p["head.bias"] = torch.zeros(2 * WIDTH, device=DEVICE)
    model.p["head.narrow"], model.p["head.straight"] = (
        drawn(size, 2 * WIDTH) * 0.5,
        drawn(size, 2 * WIDTH) * 0.5,
    )
    return model


class Second:
    """What another encoder makes of some of the texts: of those that are taught, and of words."""

    def __init__(self, path, texts, lessons):
        given = np.load(path)
        self.texts, self.rows, self.rng = texts, given["rows"], lessons.rng
        self.vectors = F.normalize(torch.tensor(given["numbers"], device=DEVICE).float(), dim=-1)
        word = np.isin(self.rows, lessons.words)
        self.parts = np.flatnonzero(np.isin(self.rows, lessons.pool) & ~word), np.flatnonzero(word)

    def drawn(self):
        """Rows of texts, and what that encoder makes of them."""
        counts = (SECOND_TEXTS, SECOND_WORDS)
        at = [self.rng.choice(part, n, replace=False) for part, n in zip(self.parts, counts, strict=True)]
        at = np.concatenate(at)
        return self.rows[at], self.vectors[on_device(at)]


def second_loss(model, second):
    texts, (rows, theirs) = second.texts, second.drawn()
    ids, sizes, _ = texts.pieces(rows)
    sums = torch.cat(summed(model.half(), on_device(ids), sizes, model.layers), 1)
    x, p = sums / on_device(sizes).float()[:, None].sqrt(), model.p
    wide = F.relu(F.linear(x, p["head.wide"], p["head.bias"]))
    ours = F.normalize(F.linear(wide, p["head.narrow"]) + F.linear(x, p["head.straight"]), dim=-1)
    apart = agreement(theirs @ theirs.T, ours @ ours.T, temperature=SECOND_TEMPERATURE)
    return 3 * (1 - (ours * theirs).sum(-1)).mean() + 0.5 * apart


@torch.no_grad()
def directions(model, lessons, texts):
    """In which the same text differs most between English and Chinese: without them a text is nearest to what means the same, not to what is in its
    language. And where most texts lie: without that, texts that have nothing in common are hardly alike."""
    pairs = np.concatenate([lessons.pairs["bilingual"], lessons.held["bilingual"]])
    pairs = pairs[np.random.default_rng(7).permutation(len(pairs))[:PAIRS_FOR_DIRECTIONS]]
    english, chinese = (
        np.concatenate(
            [
                texts.vectors(model, pairs[n : n + 256, side]).float().cpu().numpy()
                for n in range(0, len(pairs), 256)
            ]
        )
        for side in (0, 1)
    )
    language = np.linalg.svd(chinese - english, full_matrices=False)[2][:DIRECTIONS]
    both = np.concatenate([english, chinese])
    both -= both @ language.T @ language
    centre = (both / np.linalg.norm(both, axis=1, keepdims=True)).mean(0)
    return {"language": language.astype(np.float32), "centre": (CENTRED * centre).astype(np.float32)}


def trained(model, loss_of, steps, rate, most, said):
    params = model.trainable()
    for value in params:
        value.requires_grad_(True)
    optimizer = torch.optim.AdamW(params, lr=rate, weight_decay=0.01, fused=True)
    began, total = time.time(), 0.0
    for step in range(steps):
        if step == WARM:
            torch.cuda.synchronize()
            began = time.time()
        if step == 2 * WARM:
            torch.cuda.synchronize()
            steps = min(steps, int(most / (time.time() - began) * WARM))
            print(f"{said}: {steps} steps", flush=True)
        if step == steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 100) * max(0.02, 1 - step / steps)
        loss = loss_of()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        total += loss.detach()
        if (step + 1) % 300 == 0:
            print(f"{said} {step + 1}: {float(total) / 300:.3f}, {time.time() - began:.0f} s", flush=True)
            total = 0.0
    for value in params:
        value.requires_grad_(False)


@torch.no_grad()
def narrowed(teacher, texts, rows, units):
    """A student as deep as its teacher, with those inner units of each layer that put most into its output."""
    p = {name: value.clone() if name != "word" else value for name, value in teacher.p.items()}
    active = [torch.zeros(len(p[f"l{n}.fi.b"]), device=DEVICE) for n in range(teacher.layers)]
    for start in range(0, len(rows), 2048):
        ids, sizes, _ = texts.pieces(rows[start : start + 2048])
        summed(teacher.half(), on_device(ids), sizes, teacher.layers, active)
    for n, seen in enumerate(active):
        kept = (seen * p[f"l{n}.fo.w"].square().sum(0)).topk(units).indices.sort().values
        p[f"l{n}.fi.w"], p[f"l{n}.fi.b"] = p[f"l{n}.fi.w"][kept], p[f"l{n}.fi.b"][kept]
        p[f"l{n}.fo.w"] = p[f"l{n}.fo.w"][:, kept].contiguous()
    return Model(p, teacher.layers)


def eight_bits(model):
    """What is written: matrices in 8 bits with a scale for each output, the rest as it is; the model then has just that."""
    out = {}
    for name, value in model.p.items():
        if name == "word" or name.startswith("head"):
            continue
        if name.startswith("l") and name.split(".", 1)[1] in MATRICES:
            scale = value.abs().amax(1, keepdim=True) / 127 + 1e-12
            numbers = (value / scale).round()
            out[name + ".q"], out[name + ".d"] = (
                numbers.to(torch.int8).cpu().numpy(),
                scale[:, 0].cpu().numpy(),
            )
            model.p[name] = numbers * scale
        else:
            out[name] = value.cpu().numpy().astype(np.float16 if name == "pos" else np.float32)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("out", help="a folder")
    parser.add_argument(
        "--leave", default="nothing", help="sets, one after the other: longmemeval,realmem,..."
    )
    parser.add_argument("--units", type=int, default=640, help="inner units of each layer of the student")
    parser.add_argument("--teacher-steps", type=int, default=450)
    parser.add_argument("--rate", type=float, default=8e-5)
    parser.add_argument("--student-rate", type=float, default=3e-4)
    parser.add_argument("--pairs", type=float, default=0.5)
    parser.add_argument("--terms", type=float, default=0.5)
    parser.add_argument("--keep", type=float, default=0.5)
    parser.add_argument("--hard", type=float, default=0.03)
    parser.add_argument("--crop", type=int, default=1, help="0: the student learns whole texts only")
    parser.add_argument("--general", type=int, default=1024)
    parser.add_argument("--same", type=float, default=3.0)
    parser.add_argument("--seconds", default="45,420", help="for the teacher and for the student")
    parser.add_argument("--all", type=float, default=1e9, help="seconds after which no further set is begun")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    began, data = time.time(), dict(np.load(args.folder + "/data.npz"))
    base, texts = Model(base_model(args.folder + "/weights.npz"), 12), Texts(data)
    base.p["word"] = base.p["word"].bfloat16()
    seconds = [float(n) for n in args.seconds.split(",")]
    kept = None
    for leave in args.leave.split(","):
        if time.time() - began > args.all:
            break
        torch.manual_seed(0)
        lessons = Lessons(data, texts, leave, np.random.default_rng(0))

        def tell(what, model, tag=f"[without {leave}]", lessons=lessons):
            found = {name: lessons.sets[name].measured(model) for name in MEASURED}
            print(
                f"{tag} {what}: {found} translated {lessons.translated(model)} at {time.time() - began:.0f} s",
                flush=True,
            )

        if kept is None or leave != "nothing":
            kept = texts.all(base, lessons.every(), prefixed=True)
        lessons.mine(kept)
        teacher = Model(
            {name: value if name == "word" else value.clone() for name, value in base.p.items()}, 12
        )
        trained(
            teacher,
            lambda: teacher_loss(teacher, lessons, kept, args),
            args.teacher_steps,
            args.rate,
            seconds[0],
            "teacher",
        )
        if leave == "nothing":
            print("base", lessons.translated(base), flush=True)
            tell("teacher", teacher)
        if args.crop:
            lessons.crop()
        second = Second(args.folder + "/second.npz", texts, lessons)
        table = lessons.texts.all(teacher, lessons.every())
        student = with_head(
            narrowed(teacher, texts, lessons.rng.choice(lessons.pool, ACTIVE, replace=False), args.units),
            second.vectors.shape[1],
        )
        loss = lambda student=student, lessons=lessons, table=table, second=second: (
            student_loss(student, lessons, table, args) + second_loss(student, second)
        )
        trained(student, loss, MOST_STEPS, args.student_rate, seconds[1], "student")
        tell("student", student)
        made = eight_bits(student)
        np.savez(f"{args.out}/without-{leave}.npz", **made, **directions(student, lessons, texts))
        tell("in 8 bits", student)


if __name__ == "__main__":
    main()
