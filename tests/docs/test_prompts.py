"""docs/benchmarks/model.md lists every text that a model reads, with a version and a digest: whoever changes one measures it again."""

import json
import re
from dataclasses import asdict
from hashlib import sha256

import pytest

from pagefile.models.prompts import prompt
from pagefile.standalone import tool_schemas
from pagefile.window.parts import HEADINGS, MemoryPart
from pagefile.window.wording import WORDINGS
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "benchmarks" / "model.md"
LANGUAGES = ("en", "zh")
#: Of `wording.toml`, what is not in a placeholder.
APART = {
    "guide": ("guide", "guide_more"),
    "summary, shown": ("so_far", "anchors", "pages", "more_pages", "safety", "semicolon"),
    "workspace": ("toc_title", "toc_known", "toc_again", "toc_more", "toc_page", "chapters", "notes_title", "notes_page", "cached", "cached_part", "ages"),
    "tools' answers": ("answers",),
    "day": ("today", "days"),
    "nothing then": ("nothing_then", "on_day", "in_period"),
    "long turns": ("named", "left_speech"),
}  # fmt: skip


def texts():
    wordings = {language: asdict(WORDINGS[language]) for language in LANGUAGES}
    elsewhere = {name for names in APART.values() for name in names}
    apart = {"placeholder": [name for name in wordings["en"] if name not in elsewhere], **APART}
    shown = {
        what: [wordings[one][name] for one in LANGUAGES for name in names] for what, names in apart.items()
    }
    notes = [MemoryPart({"extra": ("x",)}, language=one).text for one in LANGUAGES]
    return {
        **shown,
        "memory block": [*notes, {block: dict(names) for block, names in HEADINGS.items()}],
        "tools": [tool_schemas(one, facts=True) for one in LANGUAGES],
        **{name: [prompt(name, one) for one in LANGUAGES] for name in ("facts", "summarize", "synopsis")},
    }


def digest(text):
    return sha256(json.dumps(text, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:8]


def listed():
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \| `([0-9a-f]{8})` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return {name: (int(version), mark) for name, version, mark in rows}


@pytest.mark.parametrize("name", texts())
def test_a_text_is_the_one_that_was_measured(name):
    """If not: measure it, raise its version by one, and put its new digest and what was measured into the table."""
    _version, mark = listed()[name]
    assert digest(texts()[name]) == mark


def test_nothing_else_is_listed():
    assert set(texts()) == set(listed())
