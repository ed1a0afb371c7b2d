"""Whatever a tool returned becomes plain JSON, hits, pages and tables of contents; nothing raises (extra test 11)."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from pagefile.tiers.workspace.found import document_of, hits, page_source, page_text
from pagefile.tiers.workspace.outline import Entry, chapters, compact, entries, left_out, outline
from pagefile.tiers.workspace.results import as_text, canonical, failed, to_json

HIT = {"content": "母线失压后应立即检查。", "reg_id": "angui_2024", "page_num": 85, "score": 0.9}


class Found(BaseModel):
    content: str
    source: str
    score: float


@dataclass
class Row:
    text: str
    source: str
    score: float


class Hostile:
    """Raises whenever it is looked at."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __str__(self):
        raise ValueError


def ring() -> list:
    """A list that holds itself, twice."""
    made: list = []
    made += [made, made]
    return made


@pytest.mark.parametrize(
    "result",
    [
        [HIT],
        (HIT,),
        {"results": [HIT]},
        {"result": [HIT]},
        {"data": {"hits": [HIT]}},
        {"result": json.dumps([HIT])},
        json.dumps([HIT], ensure_ascii=False),
        json.dumps({"results": [HIT]}),
        json.dumps([HIT]).encode(),
        HIT,
        [{"type": "text", "text": json.dumps([HIT])}],
        {"content": [{"type": "text", "text": json.dumps([HIT])}], "isError": False},
        {"content": [], "structuredContent": {"result": [HIT]}},
        SimpleNamespace(content=[{"type": "text", "text": json.dumps({"results": [HIT]})}]),
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": json.dumps([HIT])}]},
    ],
)
def test_hits_are_found_in_every_shape(result):
    """List, mapping, JSON text, bytes, MCP and Anthropic content blocks, a framework's object."""
    (found,) = hits(to_json(result))
    assert ("母线失压后应立即检查。", "angui_2024 P85", 0.9) == (found.content, found.source, found.score)


@pytest.mark.parametrize(
    "result", [[Found(content="c", source="s", score=0.7)], [Row("c", "s", 0.7)], Row("c", "s", 0.7)]
)
def test_objects_are_read_by_their_fields(result):
    """Pydantic models and dataclasses."""
    (found,) = hits(to_json(result))
    assert ("c", "s", 0.7) == (found.content, found.source, found.score)


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: "",
        lambda: b"\x89PNG\r\n\x1a\n\xff",
        lambda: 7,
        lambda: True,
        lambda: 1.5,
        Hostile,
        lambda: [Hostile()],
        lambda: object,
        ring,
        lambda: {1: {2: [None]}},
        lambda: "{broken",
        lambda: "[" * 5000,
    ],
)
def test_garbage_gives_no_hits_and_no_error(make):
    """There is nothing in it that could be remembered as a search result; an object that raises is no exception."""
    assert [] == [hit for hit in hits(to_json(make())) if hit.score is not None]


@pytest.mark.parametrize(
    ("item", "source"),
    [
        ({"source": "angui_2024 P85"}, "angui_2024 P85"),
        ({"reg_id": "angui_2024", "page_num": 85}, "angui_2024 P85"),
        ({"doc_id": 7, "page": "P3"}, "7 P3"),
        ({"metadata": {"source": "a.pdf", "page": 3}}, "a.pdf"),
        ({"title": "总则"}, "总则"),
        ({"url": "https://e.com/a"}, "https://e.com/a"),
        ({}, "smart_search: 这是内容"),
    ],
)
def test_where_a_hit_stands(item, source):
    """The document's `angui_2024 P85`, from whatever the tool calls it."""
    (found,) = hits(to_json([{"content": "这是内容", **item}]), "smart_search")
    assert source == found.source


def test_tables_are_told_from_text():
    """A hit that says it is a table is one."""
    found = hits(
        to_json(
            [
                {"content": "|a|b|", "block_type": "table"},
                {"content": "x", "table_id": "t1"},
                {"content": "y"},
            ]
        )
    )
    assert [True, True, False] == [hit.table for hit in found]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("页面内容", "页面内容"),
        ({"content_markdown": "页面"}, "页面"),
        ({"pages": [{"content": "一"}, {"content": "二"}]}, "一\n\n二"),
        (
            [{"type": "text", "text": "一"}, {"type": "image", "data": "x"}, {"type": "text", "text": "二"}],
            "一\n二",
        ),
        ({"nothing": 1}, ""),
        (None, ""),
    ],
)
def test_the_text_of_a_page(result, text):
    """Markdown, several pages, content blocks."""
    assert text == page_text(to_json(result))


@pytest.mark.parametrize(
    ("value", "given", "source"),
    [
        ({"source": "angui_2024 P85-86"}, None, "angui_2024 P85-86"),
        ({"content": "x"}, {"reg_id": "angui_2024", "start_page": 85, "end_page": 86}, "angui_2024 P85-86"),
        ({"reg_id": "a", "page_start": 3}, None, "a P3"),
        ("x", {"reg_id": "a", "section_number": "2.1.4"}, "a 2.1.4"),
        ("x", None, ""),
    ],
)
def test_where_a_page_stands(value, given, source):
    """What the tool says comes before what it was asked."""
    assert source == page_source(to_json(value), to_json(given))


def test_failures_are_not_results():
    """Nothing at all, an error and an MCP error are not remembered; an empty error beside results is no failure."""
    assert [True] * 5 == [
        failed(to_json(r)) for r in (None, "", [], {"error": "boom"}, {"content": [], "isError": True})
    ]
    assert [False] * 2 == [failed(to_json(r)) for r in ({"error": None, "results": [HIT]}, "text")]


def test_equal_inputs_are_equal_whatever_their_order():
    """Keys in any order, objects as their fields; nothing is the same as an empty mapping."""
    assert canonical({"a": 1, "b": [2]}) == canonical({"b": (2,), "a": 1})
    assert canonical(None) == canonical({}) == canonical("")
    assert canonical({"a": 1}) != canonical({"a": 2})
    assert canonical('{"a": 1}') == canonical({"a": 1})


def test_results_as_a_model_reads_them():
    """Text as it came, anything else as JSON; what no store can hold is replaced."""
    assert ' {"a": 1}' == as_text(' {"a": 1}', to_json(' {"a": 1}'))
    assert '{"a": "中"}' == as_text({"a": "中"}, to_json({"a": "中"}))
    assert "a␀b?" == as_text("a\0b\ud800", None)
    assert "" == as_text(None, None)


# -- tables of contents -------------------------------------------------------------------------------------------------

TREE = {
    "reg_id": "angui_2024",
    "title": "安全规程",
    "items": [
        {
            "title": "第一章 总则",
            "level": 1,
            "page_start": 1,
            "page_end": 4,
            "children": [{"title": "1.1 目的", "page_start": 1}],
        },
        {"title": "第二章 运行", "level": 1, "page_start": 5, "children": []},
    ],
}


@pytest.mark.parametrize(
    "toc",
    [
        TREE,
        {"items": TREE["items"]},
        {"toc": {"chapters": TREE["items"]}},
        {
            "items": [
                {"title": "第一章 总则", "level": 1, "page": 1},
                {"title": "1.1 目的", "level": 2},
                {"title": "第二章 运行", "level": 1},
            ]
        },
        {"text": "# 第一章 总则\n## 1.1 目的\n# 第二章 运行"},
        {"text": "第一章 总则 ........ 1\n  1.1 目的 ........ 1\n第二章 运行 ...... 5"},
        {"第一章 总则": ["1.1 目的"], "第二章 运行": []},
    ],
)
def test_chapters_are_found_in_every_shape(toc):
    """Trees, flat lists with levels, headings, dotted lines, titles as keys."""
    lines = entries(toc)
    assert ["第一章 总则", "第二章 运行"] == chapters(lines)
    assert 3 == len(lines)


def test_pages_are_beside_their_titles():
    """As P1-4, also where dots lead to them."""
    assert ["P1-4", "P1", "P5"] == [entry.pages for entry in entries(TREE)]
    assert [Entry(0, "Chapter 1"), Entry(0, "Safety", "P12")] == entries(
        {"text": "Chapter 1\nSafety ..... 12"}
    )


def test_an_outline_gives_up_the_lowest_levels_first():
    """All of it, the chapters alone, the first chapters, nothing."""
    lines = entries(TREE)
    more = "- …（另有 {count} 项）"
    assert "- 第一章 总则 P1-4\n  - 1.1 目的 P1\n- 第二章 运行 P5" == outline(lines, 100, more)
    assert "- 第一章 总则 P1-4\n- 第二章 运行 P5\n- …（另有 1 项）" == outline(lines, 38, more)
    assert "- 第一章 总则 P1-4\n- …（另有 2 项）" == outline(lines, 28, more)
    assert "" == outline(lines, 5, more) == outline([], 100, more)


def test_a_compact_one_keeps_every_chapter_and_counts_the_rest():
    """What is left of 188,000 characters when the archive has the whole."""
    many = {
        "items": [
            {"title": f"第{n}章", "children": [{"title": f"{n}.{m}"} for m in range(90)]} for n in range(12)
        ]
    }
    lines = entries(many)
    kept = compact(lines, 500)
    assert chapters(lines) == chapters(entries(kept))
    assert 12 * 90 == left_out(kept)
    assert lines == entries(compact(lines, 5000))


def test_a_table_of_contents_without_end_is_cut():
    """Too many lines, too deep, blank ones: what can be read is read."""
    assert 5_000 == len(entries({"text": "第一章\n\n" * 6_000}))
    deep: dict = {"title": "底"}
    for level in range(30):
        deep = {"title": f"{level}", "children": [deep]}
    assert 0 < len(entries(deep)) < 30


def test_bytes_and_single_blocks_are_text():
    """As a model reads them."""
    assert "中" == as_text("中".encode(), "中")
    assert "页面" == to_json({"type": "text", "text": "页面"})
    assert ["只有文字"] == [hit.content for hit in hits(to_json(["只有文字", None, 3]))]
    assert [] == hits(to_json({"results": [{"no": "text"}, 7]}))
    assert "" == page_text(to_json([[[[[["too deep"]]]]]]))


def test_documents_are_named_by_what_was_asked_for():
    """Then by what came back; then nobody knows."""
    assert "a" == document_of({"reg_id": "b"}, {"reg_id": "a"})
    assert "b" == document_of({"reg_id": "b"}, {})
    assert "" == document_of([], None)
