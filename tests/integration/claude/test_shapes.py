"""What a tool of Claude Code says, and the same in its own shape with another text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.heavy import heavy, is_there

if is_there("claude"):
    from pagefile.integrations.claude_code.shapes import result_text, retold

pytestmark = heavy("claude")

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
ANSWERS = [
    ("plain", "第八十五页", "new"),
    ("Bash", {"stdout": "1\n2", "stderr": "", "interrupted": False, "isImage": False}, None),
    ("MCP", [{"type": "text", "text": "目录", "annotations": {"a": 1}}, IMAGE], None),
    ("Read", {"type": "text", "file": {"filePath": "/a", "content": "x = 1", "numLines": 1}}, None),
    ("Grep", {"mode": "content", "numFiles": 2, "content": "a:1\nb:2", "filenames": []}, None),
    ("WebFetch", {"bytes": 9, "code": 200, "result": "page", "url": "http://example.invalid"}, None),
    ("agent", {"content": [{"type": "text", "text": "found"}], "totalTokens": 3}, None),
]


@pytest.mark.parametrize(("tool", "answer", "_"), ANSWERS, ids=[name for name, *_ in ANSWERS])
def test_only_the_text_is_exchanged(tool, answer, _):
    """Every key, every flag and every image stays; told again, the answer says the new text."""
    changed = retold(answer, "占位符")
    assert result_text(changed) == "占位符"
    assert type(changed) is type(answer)
    if isinstance(answer, dict):
        assert list(changed) == list(answer)
    if tool == "MCP":
        assert changed == [{"type": "text", "text": "占位符", "annotations": {"a": 1}}, IMAGE]
    if tool == "Bash":
        assert changed == {**answer, "stdout": "占位符"}
    if tool == "Read":
        assert changed["file"] == {**answer["file"], "content": "占位符"}


@pytest.mark.parametrize(
    "answer", [None, 3, [], [IMAGE], {}, {"stdout": ""}, {"filenames": ["a"]}, {"file": 1}]
)
def test_what_says_nothing_is_left_alone(answer):
    """An answer without a text we know of is neither read nor changed."""
    assert result_text(answer) is None or result_text(answer) == ""
    assert retold(answer, "x") == answer


def test_several_texts_become_one():
    """The first block has the new text, the others are gone, images stay where they were."""
    blocks = [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]
    assert result_text(blocks) == "a\nb"
    assert retold(blocks, "c") == [{"type": "text", "text": "c"}, IMAGE]


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "file", "stdout", "result", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(json_like, st.text(min_size=1))
def test_anything_goes_in(answer, text):
    """Whatever a tool answers: no error, the shape stays, and what is told again is the new text or nothing."""
    before = result_text(answer)
    changed = retold(answer, text)
    if before is None:
        assert changed == answer
    elif before:
        assert result_text(changed) == text
    if isinstance(answer, dict):
        assert list(changed) == list(answer)
