"""No text, however hostile, makes a reader of text take time that grows with its square.

Nothing here measures how fast something is: the same work is done with two sizes in one process, and only their ratio counts.
A text of four times the size takes four times as long where the work is linear, sixteen times where it is not.
"""

import json
import re
from collections.abc import Callable
from datetime import date
from functools import partial
from time import thread_time

import pytest

from pagefile.stores.key_secrets import presented
from pagefile.text.extract import anchors, summarize
from pagefile.text.fact_ranking import fact_key, features
from pagefile.text.fact_rules import own_words, secret_in, stated
from pagefile.text.passages import selected, split
from pagefile.text.reading import Frame, pieces
from pagefile.text.recall_gate import asking
from pagefile.text.redaction import KINDS, Redaction
from pagefile.text.sentences import sentences
from pagefile.text.sources import sources
from pagefile.text.speech import in_first_person, said_terms
from pagefile.text.synopsis import synopsis
from pagefile.text.times import periods
from pagefile.text.words import terms
from pagefile.window.placeholder import RULE, placeholder_uuid, reworded
from pagefile.window.wording import EN

from .patterns import attacks, patterns

UUID = "11111111-2222-4333-8444-555555555555"
#: Runs of these make a careless expression try again and again.
ATOMS = [
    *' \n\t.a1中我<[("#|-`*+_&=:/\\“「？。，、年月😀\u200b',
    *(
        "\r\n",
        "a-",
        "-1",
        "+1",
        "a.",
        "1.",
        "1,",
        "a@",
        "a'",
        "<a ",
        "[a](",
        "![",
        "|-",
        "> ",
        "- ",
        "A. ",
        "A ",
    ),
    *(
        "我是",
        "我叫",
        "我有什么",
        "不对。",
        "吗 ",
        "1月",
        "十年前",
        "Mia: ",
        "what is ",
        "what my ",
        "my name is ",
    ),
    *(
        "https://",
        "a://a:",
        "eyJ-",
        "sk-",
        "password ",
        "密码",
        "login,",
        "登录,",
        "username:",
        "token=",
        "account ",
        "📎 [",
        "📎 [a]\n━x",
        "━",
        "<memory>",
        "```",
        "AI: ",
        "def a(",
        "key: ",
    ),
    *('{"a":', "[1,", "a,b\n", "<p>", "</", "<!--", "2020-", "19", "INFO "),
]
READERS: dict[str, Callable[[str], object]] = {
    "anchors": anchors,
    "asking": asking,
    "fact_key": fact_key,
    "features": features,
    "reworded": lambda text: reworded(f"📎 [工具结果存档: {UUID}]\n{RULE}\n{text}", EN),
    "in_first_person": lambda text: in_first_person(text, ["mia", "我"]),
    "own_words": own_words,
    "periods": lambda text: periods(text, date(2026, 5, 6)),
    "pieces": lambda text: pieces(Frame(text)),
    "pieces of JSON": lambda text: pieces(Frame(json.dumps({"content": text}))),
    "pieces of a page": lambda text: pieces(Frame(f"<!doctype html><html><body>{text}")),
    "placeholder_uuid": placeholder_uuid,
    "presented": presented,
    "redacted": lambda text: Redaction(KINDS).text(text),
    "said_terms": said_terms,
    "secret_in": secret_in,
    "selected": lambda text: selected(text, "what is my name", budget=200, cost=len),
    "sentences": sentences,
    "sources": sources,
    "split": split,
    "stated": stated,
    "summarize": lambda text: summarize([("user", text)], limit=500),
    "synopsis": synopsis,
    "terms": terms,
}
#: Characters to begin with, and to end with; and the share of a second below which nothing is worth looking at.
SMALL, LARGE = 500, 4_000
SOON_S = 0.03
#: Eight times the text; 8 where time is linear, 64 where it is quadratic.
MOST = 24


def seconds(work: Callable[[str], object], text: str, runs: int = 1) -> float:
    """The least of this many runs: a collection of garbage in one of them is no property of the work."""
    return min(_once(work, text) for _ in range(runs))


def _once(work: Callable[[str], object], text: str) -> float:
    began = thread_time()
    work(text)
    return thread_time() - began


def grows(
    work: Callable[[str], object], atom: str, end: str, sizes: tuple[int, int] = (SMALL, LARGE)
) -> float:
    """How many times longer the large text takes; 0 where it is done in no time."""
    small, large = (atom * (size // len(atom)) + end for size in sizes)
    if seconds(work, large) < SOON_S or (slow := seconds(work, large, runs=2)) < SOON_S:
        return 0.0
    return slow / max(seconds(work, small, runs=3), 1e-9)


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text_and_no_faster(name):
    """Runs of one thing, open at the end and closed by something else."""
    found = {
        (atom, end): grown
        for atom in ATOMS
        for end in ("", "x\n")
        if (grown := grows(READERS[name], atom, end)) > MOST
    }
    assert {} == found


@pytest.mark.parametrize(
    ("begins", "atom"),
    [
        ("@article{a,\n title = {T}", "\n"),
        ("\\title{T}\n", "\\begin{abstract}"),
        ("\\title{T}\n", "\\title["),
        ("\\title{T}\n", "\\title{"),
    ],
)
def test_a_paper_takes_time_that_grows_with_it(begins: str, atom: str):
    """What shows a text's form, and behind it a run of what opens and is never closed."""
    assert grows(lambda text: synopsis(begins + text), atom, "x", (4_000, 32_000)) <= MOST


def _all(pattern: re.Pattern[str], text: str) -> list[object]:
    return list(pattern.finditer(text))


def test_no_expression_explodes():
    """Every expression there is, against runs of what it is made of: none takes more than quadratic time.

    Where it may see a long text, the test above looks; here a text is short, and a cubic search of it would be seen.
    """
    found = patterns()
    assert len(found) > 150
    cubic = {}
    for name, pattern in found.items():
        for short, long in zip(attacks(pattern, 60), attacks(pattern, 240), strict=True):
            search = partial(_all, pattern)
            if seconds(search, long) < SOON_S / 3:
                continue
            few = max(seconds(search, short, runs=3), 1e-6)
            if seconds(search, long, runs=3) / few > 48:  # 16 for a square, 64 for a cube
                cubic[name] = long[:40]
    assert {} == cubic
