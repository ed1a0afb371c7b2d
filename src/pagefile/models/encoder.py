"""The trained encoder, run by numpy: a small BERT for English and Chinese, trained to find what answers a question."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

from pagefile.models.pieces import Pieces

Floats = npt.NDArray[np.float32]

WIDTH: Final = 384
_HEADS: Final = 12
_HEAD: Final = WIDTH // _HEADS
#: A text's pieces, its beginning and end included; what is longer is cut.
LONGEST: Final = 128
_BEGIN, _END, _UNKNOWN, _FIRST = 0, 2, 3, 4
_TINY: Final = np.float32(1e-12)


def bundled_weights() -> Mapping[str, npt.NDArray[np.generic]]:
    """Those that come with Pagefile; `training/` makes them."""
    with files("pagefile.models").joinpath("weights", "pagefile-memory-1.npz").open("rb") as file:
        return dict(np.load(file))


class Encoder:
    """Loaded weights. Not thread-safe, and meant for one thread: with more, they wait for each other by spinning."""

    def __init__(self, weights: Mapping[str, npt.NDArray[np.generic]]) -> None:
        pieces = weights["pieces"].tobytes().decode().split("\n")
        scores = weights["scores"].tolist()
        self._pieces = Pieces(dict(zip(pieces, scores, strict=True)), first=_FIRST, unknown=_UNKNOWN)
        self._word, self._scale = weights["word.q"].view(np.uint8), weights["word.d"]
        self._place = weights["pos"].astype(np.float32)
        self._start = _vector(weights, "emb.ln.w"), _vector(weights, "emb.ln.b")
        count = sum(name.endswith(".fi.b") for name in weights)
        self._layers = [_Layer(weights, f"l{number}") for number in range(count)]
        # In which the same text differs between languages, a row each; and where most texts lie.
        none = np.zeros((0, WIDTH), np.float32)
        self._language = _vector(weights, "language") if "language" in weights else none
        self._centre = _vector(weights, "centre") if "centre" in weights else none.sum(0)
        self._threads: Any = ThreadpoolController()  # it has no types

    def encode(self, texts: Sequence[str]) -> Floats:
        """A row of unit length for each text."""
        ids = [[_BEGIN, *self._pieces.ids(text, LONGEST - 2), _END] for text in texts]
        if not ids:
            return np.zeros((0, WIDTH), np.float32)
        bounds = np.cumsum([0, *map(len, ids)])
        with self._threads.limit(limits=1, user_api="blas"):
            x = self._words(np.concatenate([np.array(row) for row in ids]))
            x += np.concatenate([self._place[: len(row)] for row in ids])
            x = _normalised(x, *self._start)
            for layer in self._layers:
                x = layer(x, bounds)
        mean = np.add.reduceat(x, bounds[:-1], axis=0)
        mean -= (mean @ self._language.T) @ self._language
        return _unit(_unit(mean) - self._centre)

    def forget(self) -> None:
        """Discard the words of texts that were read."""
        self._pieces.forget()

    def _words(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Rows of the word table: two numbers a byte, a scale for each 32 of them."""
        packed = self._word[ids]
        numbers = np.empty((len(ids), WIDTH), np.float32)
        numbers[:, 0::2], numbers[:, 1::2] = packed & 15, packed >> 4
        numbers -= 8
        blocks = numbers.reshape(len(ids), -1, 32)
        blocks *= self._scale[ids].astype(np.float32)[:, :, None]
        return numbers


class _Layer:
    def __init__(self, weights: Mapping[str, npt.NDArray[np.generic]], name: str) -> None:
        parts = [_matrix(weights, f"{name}.{part}.w") for part in "qkv"]
        self._qkv = np.ascontiguousarray(np.concatenate(parts, axis=1))
        self._qkv_bias = np.concatenate([_vector(weights, f"{name}.{part}.b") for part in "qkv"])
        # The attention's scale is a part of the question's weights.
        self._qkv[:, :WIDTH] *= _HEAD**-0.5
        self._qkv_bias[:WIDTH] *= _HEAD**-0.5
        self._out, self._wide, self._narrow = (
            _matrix(weights, f"{name}.{part}.w") for part in ("ao", "fi", "fo")
        )
        self._biases = [_vector(weights, f"{name}.{part}.b") for part in ("ao", "fi", "fo")]
        self._norms = [[_vector(weights, f"{name}.{part}.{one}") for one in "wb"] for part in ("aln", "oln")]

    def __call__(self, x: Floats, bounds: npt.NDArray[np.int64]) -> Floats:
        qkv = x @ self._qkv
        qkv += self._qkv_bias
        seen = np.empty_like(x)
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            seen[start:end] = _attended(qkv[start:end])
        y = seen @ self._out
        y += self._biases[0]
        y += x
        x = _normalised(y, *self._norms[0])
        wide = x @ self._wide
        wide += self._biases[1]
        y = _gelu(wide) @ self._narrow
        y += self._biases[2]
        y += x
        return _normalised(y, *self._norms[1])


def _unit(rows: Floats) -> Floats:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _attended(qkv: Floats) -> Floats:
    """What the pieces of one text see of each other."""
    size = len(qkv)
    q, k, v = qkv.reshape(size, 3, _HEADS, _HEAD).transpose(1, 2, 0, 3)
    weights = q @ k.transpose(0, 2, 1)
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(1, 0, 2).reshape(size, WIDTH)


def _gelu(x: Floats) -> Floats:
    """By the hyperbolic tangent: numpy has no error function."""
    y = x * x
    y *= np.float32(0.044715)
    y += np.float32(1)
    y *= x
    y *= np.float32(0.7978845608028654)
    np.tanh(y, out=y)
    y += np.float32(1)
    y *= x
    y *= np.float32(0.5)
    return y


def _normalised(x: Floats, weight: Floats, bias: Floats) -> Floats:
    x -= x.mean(1, keepdims=True)
    spread = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
    x *= (1 / np.sqrt(spread + _TINY))[:, None]
    x *= weight
    x += bias
    return x


def _vector(weights: Mapping[str, npt.NDArray[np.generic]], name: str) -> Floats:
    return weights[name].astype(np.float32)


def _matrix(weights: Mapping[str, npt.NDArray[np.generic]], name: str) -> Floats:
    """Inputs by outputs, from 8 bits with a scale for each output."""
    rows = weights[f"{name}.q"].astype(np.float32) * _vector(weights, f"{name}.d")[:, None]
    return np.ascontiguousarray(rows.T)
