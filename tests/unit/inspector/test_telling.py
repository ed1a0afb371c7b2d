"""How things are told to people: reasons, sizes, anchors, the scripted model."""

import json
from datetime import UTC, datetime

import pytest

from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.scripted import ScriptedModel, sample_result
from pagefile.inspector.timeline import Anchors
from pagefile.records import Checkpoint, Scope
from pagefile.standalone import tool_schemas
from pagefile.window.placeholder import LOAD_TOOL

NOW = datetime(2026, 11, 15, tzinfo=UTC)
UUID = "00000000-0000-4000-8000-000000000000"


def reader(language):
    return Reader(PageRequest(), NOW, language)


@pytest.mark.parametrize(
    ("text", "english", "chinese"),
    [
        ("never cut", "always included", "从不舍弃"),
        ("fits", "fits", "放得下"),
        (
            "past turns were searched by word only: the encoder is still being loaded",
            "past turns were searched by word only: the encoder is still being loaded",
            "向量模型仍在加载，这次只按字词查找了往期对话",
        ),
        ("fits as notes", "fits with tools as notes", "放得下：工具简记"),
        (
            "over its own budget of 300 tokens",
            "over its own limit of 300 tokens",
            "超出该部分 300 个 token 的限额",
        ),
        (
            "fits, worth 0.651 for 18 tokens",
            "fits: value 0.651 for 18 tokens",
            "放得下：18 个 token，得分 0.651",
        ),
        (
            "not worth its tokens: worth 0.00103 for 50 tokens",
            "not worth its 50 tokens: value 0.00103",
            "得分 0.00103，不值得占用 50 个 token",
        ),
        (
            "covers 3 turns up to 7; 2 of 5 anchors survive, 1 of them beside the summary",
            "covers 3 turns up to #7; 2 of 5 exact values preserved, 1 of them next to the summary",
            "覆盖 #7 及之前的 3 轮；5 处关键信息保留 2 处，其中 1 处列在摘要之外",
        ),
        ("a reason of tomorrow", "a reason of tomorrow", "a reason of tomorrow"),
    ],
)
def test_reasons_are_translated(text, english, chinese):
    """Those that are known; the others are told as the engine says them."""
    assert chinese == reader("zh").reason(text)
    assert english == reader("en").reason(text)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_600, "100 kB"),
        (1_500_000, "1.5 MB"),
        (2_000_000_000, "2.0 GB"),
    ],
)
def test_sizes_for_people(size, told):
    """Three digits are enough."""
    assert told == reader("en").size(size)


def checkpoint(name, summary, *anchors):
    scope = Scope(conversation="c")
    return Checkpoint(name, scope, int(name), int(name), summary, 1, 1, NOW, 1, "o200k_base", anchors)


def test_what_became_of_anchors():
    """In the summary word for word, beside it, or let go since the checkpoint before."""
    first = checkpoint("1", "血压 140/90", "140/90", "5毫克", "V-42")
    second = checkpoint("2", "每天 5毫克", "5毫克", "6月3日")
    assert Anchors(("5毫克",), ("6月3日",), ("140/90", "V-42")) == Anchors.of(first, second)


async def spoken(messages, tools):
    pieces = [piece async for piece in ScriptedModel(pause_s=0).stream(messages, tools=tools)]
    return (
        "".join(piece.text for piece in pieces),
        [call for piece in pieces for call in piece.calls],
        pieces[-1].finish,
    )


@pytest.mark.anyio
async def test_the_scripted_model_loads_what_it_is_asked_for():
    """Once; then it answers with the line that the question is about, and always says what it is."""
    note = {"role": "assistant", "content": f"📎 [存档:{UUID}] inspect_site"}
    asked = {"role": "user", "content": "打开存档，看看 V-42"}
    text, calls, finish = await spoken([note, asked], tool_schemas("zh"))
    assert ("", "tool_calls", LOAD_TOOL) == (text, finish, calls[0].name)
    assert UUID == json.loads(calls[0].arguments)["uuid"]
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": LOAD_TOOL}}]}
    result = {"role": "tool", "content": sample_result(9000, chinese=True)}
    text, calls, finish = await spoken([note, asked, call, result], tool_schemas("zh"))
    assert ([], "stop") == (calls, finish)
    assert "脚本模型" in text
    assert "SP-7731" in text


@pytest.mark.anyio
async def test_the_scripted_model_does_not_take_a_result_for_a_page():
    """What the question brought along did not come back from anywhere; and without tools it calls none."""
    asked = {"role": "user", "content": "open it"}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "inspect_site"}}]}
    text, _, _ = await spoken([asked, call, {"role": "tool", "content": "a long list"}], ())
    assert "scripted model" in text
    assert "paged in" not in text
    _, calls, _ = await spoken([{"role": "assistant", "content": f"📎 [archived:{UUID}]"}, asked], ())
    assert [] == calls


@pytest.mark.parametrize("chinese", [True, False])
def test_the_sample_is_long_enough(chinese):
    """However high the threshold is set."""
    assert len(sample_result(25_000, chinese=chinese)) >= 24_999
