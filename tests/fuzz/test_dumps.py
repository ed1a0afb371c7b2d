"""Dumps of other memories, whole, damaged and made up: taken over, or refused with an error of ours."""

import json
import re
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import Memory, PagefileError, TransferError
from pagefile.integrations.imports import FORMATS, Brought, read_dump, take_over

from .values import FOREIGN, JSONISH, PIECES, TEXT

KEYS = st.sampled_from(
    [
        "results", "memory", "memories", "messages", "role", "type", "content", "data", "id", "created_at", "updated_at", "user_id",
        "session_id", "text", "tool_calls", "function", "arguments", "args", "name", "kwargs", "lc", "metadata", "topics",
        "memory_type", "additional_kwargs", "tool_call_id", "categories",
    ]
)  # fmt: skip
VALUES = st.one_of(JSONISH, st.sampled_from(["user", "human", "ai", "assistant", "tool", "HumanMessage", "2026-13-45", 1e300, -1]), PIECES)  # fmt: skip
DUMPS = st.recursive(
    VALUES, lambda inner: st.one_of(st.dictionaries(KEYS, inner, max_size=5), st.lists(inner, max_size=4)), max_leaves=16
)  # fmt: skip
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
DEEP = [
    {
        "type": "ai",
        "content": "x",
        "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": "[" * 5_000}}],
    }
]


async def taken(kind: str, data: object) -> None:
    try:
        brought = FORMATS[kind](data)
    except TransferError:
        return
    assert isinstance(brought, Brought)
    async with Memory.open("memory://", embedder="none") as memory:
        try:
            counts = await take_over(memory, brought, user_id="u", conversation_id="c")
        except PagefileError:
            return
        assert min(counts.values()) >= 0


@settings(max_examples=60)
@given(st.sampled_from(sorted(FORMATS)), DUMPS)
@example("langchain", DEEP)
@example("langchain", [{"role": "user", "content": "\0\ud800"}, {"role": "assistant", "content": "a"}])
def test_a_dump_of_any_shape_is_taken_over_or_refused(kind, data):
    """Nothing raises but our own errors; counts are counts."""
    anyio.run(taken, kind, data)


EXPORTS = Path(__file__).parents[1] / "fixtures" / "exports"
#: Exports as they come, by what reads them.
WHOLE = [
    (kind, json.loads((EXPORTS / name).read_text("utf-8")))
    for name, kind in [
        ("chatgpt.json", "chatgpt"),
        ("claude.json", "claude"),
        ("gemini.json", "gemini"),
        ("gemini-conversation.json", "gemini"),
        ("letta.af", "letta"),
        ("zep-edges.json", "zep"),
        ("zep-thread.json", "zep"),
    ]
]


def damaged(data, chosen, put):
    """The same with another value at one place."""
    if not isinstance(data, dict | list) or not data or chosen.draw(st.integers(0, 5)) == 0:
        return put
    copy = dict(data) if isinstance(data, dict) else list(data)
    place = chosen.draw(st.sampled_from(sorted(copy) if isinstance(copy, dict) else range(len(copy))))
    copy[place] = damaged(copy[place], chosen, put)
    return copy


@settings(max_examples=150)
@given(st.sampled_from(WHOLE), VALUES, st.data())
def test_an_export_with_another_value_somewhere_is_taken_over_or_refused(whole, put, chosen):
    kind, data = whole
    anyio.run(taken, kind, damaged(data, chosen, put))


def test_half_a_surrogate_pair_names_something_too():
    """It is no text that could be encoded, and ids are made of it."""
    data = {
        **dict(json.loads((EXPORTS / "gemini-conversation.json").read_text("utf-8"))),
        "creation_time": "\ud800",
    }
    anyio.run(taken, "gemini", data)


@pytest.mark.parametrize("kind", sorted(FORMATS))
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_objects_are_no_dump(kind, name):
    """A caller may hand over what they have in memory."""
    anyio.run(taken, kind, FOREIGN[name])


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 5_000, b"9" * 5_000, "[]".encode("utf-16")])
def test_a_file_that_is_no_json_is_named(tmp_path, content):
    """Whatever it is."""
    file = tmp_path / "dump.json"
    file.write_bytes(content)
    with pytest.raises(TransferError, match=r"dump\.json"):
        anyio.run(read_dump, file, "mem0")


@given(TEXT.filter(str.strip).filter(lambda text: not SURROGATE_PAIR.search(text)))
def test_words_of_a_dump_come_back(text):
    """Exactly, where a database can hold them; JSON itself makes one character of a pair of surrogates."""
    data = json.loads(json.dumps([{"type": "human", "content": text}, {"type": "ai", "content": "好"}]))
    brought = FORMATS["langchain"](data)
    # Two halves of a character are one when JSON was read.
    assert [data[0]["content"]] == [turn.user for turn in brought.turns]
