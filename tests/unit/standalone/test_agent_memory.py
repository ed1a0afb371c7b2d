"""Document 003's own API: names, defaults, texts and log lines (S3-08 to S3-33, S3-38 to S3-50)."""

import json
import logging
from dataclasses import fields
from types import SimpleNamespace

import pytest

from pagefile.errors import InvalidArgumentError
from pagefile.standalone import AgentMemory, AgentMemoryConfig, AgentWithMemory, ContentChunk, ToolRule

TOC = {
    "reg_id": "angui_2024",
    "items": [{"title": "第一章 总则", "page_start": 1}, {"title": "第二章 运行", "page_start": 5}],
}


def chunk(
    score: float, source: str = "angui_2024 P85", kind: str = "search_result", content: str = "内容"
) -> ContentChunk:
    return ContentChunk(content, source, score, kind)


def scores(memory: AgentMemory) -> list[float]:
    return [held.relevance_score for held in memory.relevant_chunks]


# -- the data --------------------------------------------------------------------------------------------------------


def test_the_fields_of_a_chunk():
    """S3-10, S3-11."""
    assert ["content", "source", "relevance_score", "chunk_type", "metadata"] == [
        f.name for f in fields(ContentChunk)
    ]
    assert {} == chunk(0.5).metadata
    assert chunk(0.5).metadata is not chunk(0.5).metadata


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), True])
def test_a_score_is_between_0_and_1(score):
    """S3-12."""
    with pytest.raises(InvalidArgumentError, match="relevance_score"):
        chunk(score)


def test_a_chunk_has_one_of_three_types():
    """S3-13."""
    for kind in ("search_result", "page_content", "table"):
        assert kind == chunk(0.5, kind=kind).chunk_type
    with pytest.raises(ValueError, match="chunk_type"):
        chunk(0.5, kind="picture")


def test_the_fields_and_defaults_of_a_memory():
    """S3-14: the document's six come first, and instances share nothing."""
    memory = AgentMemory()
    names = ["toc_cache", "known_chapters", "relevant_chunks", "current_query", "max_chunks", "min_relevance"]
    assert names == [f.name for f in fields(AgentMemory)][:6]
    assert ({}, [], [], "", 10, 0.5) == tuple(getattr(memory, name) for name in names)
    memory.cache_toc("a", {"items": [{"title": "一"}]})
    memory.add_chunk(chunk(1.0))
    assert AgentMemory() == AgentMemory(toc_cache={}, known_chapters=[], relevant_chunks=[])


# -- tables of contents ----------------------------------------------------------------------------------------------


def test_tables_of_contents_are_cached():
    """S3-15, S3-16, S3-17, S3-50: and the chapters are known."""
    memory = AgentMemory()
    assert (None, False) == (memory.get_cached_toc("angui_2024"), memory.has_cached_toc("angui_2024"))
    memory.cache_toc("angui_2024", TOC)
    assert (TOC, True) == (memory.get_cached_toc("angui_2024"), memory.has_cached_toc("angui_2024"))
    assert ["第一章 总则", "第二章 运行"] == memory.known_chapters


def test_the_hint_is_the_documents():
    """S3-23, S3-24: nothing, one, and several joined by commas."""
    memory = AgentMemory()
    assert "" == memory.get_toc_cache_hint()
    memory.cache_toc("angui_2024", {})
    assert (
        "# 已缓存目录\n以下规程目录已获取: angui_2024\n无需再次调用 get_toc()" == memory.get_toc_cache_hint()
    )
    memory.cache_toc("yunxing_2023", {})
    assert "以下规程目录已获取: angui_2024, yunxing_2023" in memory.get_toc_cache_hint().splitlines()


def test_the_hint_says_what_there_is_no_need_to_ask_for():
    """C3-1: the chapters are in it, within their room."""
    memory = AgentMemory()
    memory.cache_toc("angui_2024", TOC)
    assert (
        "# 已缓存目录\n以下规程目录已获取: angui_2024\n无需再次调用 get_toc()\n- 第一章 总则 P1\n- 第二章 运行 P5"
        == memory.get_toc_cache_hint()
    )
    memory.cache_toc("长", {"items": [{"title": f"第{n}章 {'很长的标题' * 5}"} for n in range(500)]})
    assert len(memory.get_toc_cache_hint()) < 1_400
    memory.outline_chars = 0
    assert 3 == len(memory.get_toc_cache_hint().splitlines())


def test_chapters_that_somebody_named_are_told():
    """For a table of contents in which none can be made out."""
    memory = AgentMemory(toc_cache={"a": {}}, known_chapters=["第一章", "第二章"])
    assert "已知章节: 第一章、第二章" == memory.get_toc_cache_hint().splitlines()[-1]


# -- chunks ----------------------------------------------------------------------------------------------------------


def test_chunks_are_sorted_whatever_the_order():
    """S3-18."""
    memory = AgentMemory()
    for number, score in enumerate([0.3, 0.9, 0.1, 0.5]):
        memory.add_chunk(chunk(score, f"P{number}"))
    assert [0.9, 0.5, 0.3, 0.1] == scores(memory)


def test_the_eleventh_pushes_out_the_lowest():
    """S3-19; and `add_chunk` never asks for a minimum."""
    memory = AgentMemory()
    for number in range(11):
        memory.add_chunk(chunk((number + 1) / 20, f"P{number}"))
    assert 10 == len(memory.relevant_chunks)
    assert 0.1 == scores(memory)[-1]
    memory.add_chunk(chunk(0.01, "P99"))
    assert 0.1 == scores(memory)[-1]


def test_equals_stand_newest_first():
    """C3-6: ties by recency."""
    memory = AgentMemory(max_chunks=2)
    for source in ("P1", "P2", "P3"):
        memory.add_chunk(chunk(0.8, source))
    assert ["P3", "P2"] == [held.source for held in memory.relevant_chunks]


def test_the_better_of_two_is_kept():
    """S3-48: same source and type; another type is another chunk."""
    memory = AgentMemory()
    memory.add_chunk(chunk(0.6, content="old"))
    memory.add_chunk(chunk(0.9, content="better"))
    memory.add_chunk(chunk(0.7, content="worse"))
    memory.add_chunk(chunk(0.7, kind="table"))
    assert ["better", "内容"] == [held.content for held in memory.relevant_chunks]


def test_passages_of_one_source_are_side_by_side():
    """S3-48: what two searches found of one page is kept; the same passage found again is one chunk, with the better score."""
    memory = AgentMemory(search_chars=40)
    first, second = "母线失压时应先断开断路器。" * 3, "接地线应先接接地端。" * 3
    memory.add_search_results(
        [
            {"content": first, "source": "angui_2024 P85", "score": 0.6},
            {"content": second, "source": "angui_2024 P85", "score": 0.9},
        ]
    )
    memory.current_query = "断路器"
    memory.add_search_results({"results": [{"text": f" {first}", "source": "angui_2024 P85", "score": 0.8}]})
    assert [("angui_2024 P85", 0.9), ("angui_2024 P85", 0.8)] == [
        (held.source, held.relevance_score) for held in memory.relevant_chunks
    ]
    assert 2 == memory.get_memory_context().count("angui_2024 P85")


def test_old_pages_give_way_to_better_hits():
    """C3-6: ten pages of 0.8 do not keep out a hit of 0.7, neither of the memory nor of the prompt."""
    memory = AgentMemory()
    for number in range(10):
        memory.add_page_content("页面", f"P{number}")
    for number in range(3):
        memory.add_chunk(chunk(0.7, f"hit {number}"))
    kinds = [held.chunk_type for held in memory.relevant_chunks]
    assert (7, 3) == (kinds.count("page_content"), kinds.count("search_result"))
    assert ["P9", "P8", "hit 2", "hit 1", "hit 0"] == [held.source for held in memory.shown()]
    memory.add_chunk(chunk(0.2, "weak"))
    assert "weak" not in {held.source for held in memory.relevant_chunks}


def test_search_results_of_half_a_point_and_more_are_added():
    """S3-20, S3-46: 0.49 out, 0.5 in, whatever field has the text."""
    memory = AgentMemory()
    memory.add_search_results(
        [
            {"content": "低", "source": "P1", "score": 0.49},
            {"text": "中", "source": "P2", "score": 0.5},
            {"snippet": "高", "source": "P3", "score": 0.9},
        ]
    )
    assert [("高", 0.9), ("中", 0.5)] == [
        (held.content, held.relevance_score) for held in memory.relevant_chunks
    ]


@pytest.mark.parametrize("raw", [[0.4 / 61 + 0.6 / 61, 0.4 / 62 + 0.6 / 63], [17.3, 12.1], [-9.1, -8.0]])
def test_fused_ranks_and_raw_bm25_are_remembered(raw):
    """C3-2, extra test 12: the memory is not empty, and the raw score is kept."""
    memory = AgentMemory()
    memory.add_search_results(
        [{"content": "c", "source": f"P{n}", "score": score} for n, score in enumerate(raw)]
    )
    assert ["P0", "P1"] == [held.source for held in memory.relevant_chunks]
    assert raw == [held.metadata["raw_score"] for held in memory.relevant_chunks]
    assert 1.0 == scores(memory)[0]


def test_texts_are_cut_to_their_settings():
    """S3-49: 300 of a search result, 500 of a page, five in the prompt; all can be set."""
    memory = AgentMemory()
    memory.add_search_results([{"content": "字" * 900, "source": f"P{n}", "score": 0.9} for n in range(9)])
    memory.add_page_content("页" * 900, "P99", relevance=1.0)
    assert [500, *[300] * 9] == [len(held.content) for held in memory.relevant_chunks]
    assert 5 == memory.get_memory_context().count("## [")
    small = AgentMemory(search_chars=3, page_chars=4, max_injected=1)
    small.add_search_results([{"content": "字" * 9, "source": "P1", "score": 0.9}])
    small.add_page_content("页" * 9, "P2")
    assert "# 已获取的相关信息\n## [1] P1\n字字字" == small.get_memory_context()


def test_nothing_is_said_twice():
    """A snippet is in no prompt beside the page that holds it; both are remembered."""
    memory = AgentMemory()
    memory.add_search_results([{"content": "母线检查", "source": "angui_2024 P85", "score": 0.9}])
    memory.add_page_content("先停电，母线检查，再送电。", "angui_2024 P85")
    memory.add_page_content("母线检查", "angui_2024 P99")
    assert 3 == len(memory.relevant_chunks)
    assert [("angui_2024 P99", "母线检查"), ("angui_2024 P85", "先停电，母线检查，再送电。")] == [
        (held.source, held.content) for held in memory.shown()
    ]
    same = AgentMemory()
    same.add_chunk(chunk(0.9, "P1"))
    same.add_chunk(chunk(0.8, "P1", kind="table"))
    assert [0.9] == [held.relevance_score for held in same.shown()]


def test_a_page_counts_eight_tenths():
    """S3-21."""
    memory = AgentMemory()
    memory.add_page_content("页面内容", "angui_2024 P85")
    (held,) = memory.relevant_chunks
    assert (0.8, "page_content", "angui_2024 P85") == (held.relevance_score, held.chunk_type, held.source)


def test_the_context_is_the_documents():
    """S3-22, S3-24, S3-42."""
    memory = AgentMemory()
    assert "" == memory.get_memory_context()
    memory.add_page_content("内容摘要...", "angui_2024 P85")
    assert "# 已获取的相关信息\n## [1] angui_2024 P85\n内容摘要..." == memory.get_memory_context()
    memory.add_chunk(chunk(0.6, "yunxing P2", content="其他"))
    assert memory.get_memory_context().endswith("\n## [2] yunxing P2\n其他")


def test_both_resets():
    """S3-25, S3-26: one keeps the tables of contents, the other nothing."""
    memory = AgentMemory()
    memory.cache_toc("angui_2024", TOC)
    memory.add_chunk(chunk(0.9))
    memory.current_query = "母线失压"
    memory.clear_query_context()
    assert ([], "", True, 2) == (
        memory.relevant_chunks,
        memory.current_query,
        memory.has_cached_toc("angui_2024"),
        len(memory.known_chapters),
    )
    memory.reset()
    assert AgentMemory() == memory
    assert ("", "") == (memory.get_toc_cache_hint(), memory.get_memory_context())


def test_the_log_lines_are_the_documents(caplog):
    """S3-38, S3-39, S3-40: at debug."""
    memory = AgentMemory()
    with caplog.at_level(logging.DEBUG, logger="pagefile"):
        memory.cache_toc("angui_2024", TOC)
        memory.add_search_results([{"content": "a", "score": 0.9}, {"content": "b", "score": 0.1}])
        memory.add_page_content("页面", "angui_2024 P85")
    assert [
        "[Memory] 缓存目录: angui_2024",
        "[Memory] 添加搜索结果: 2 条",
        "[Memory] 添加页面内容: angui_2024 P85",
    ] == [record.getMessage() for record in caplog.records]
    assert {logging.DEBUG} == {record.levelno for record in caplog.records}


def test_a_disabled_memory_remembers_nothing(caplog):
    """S3-43: no memory, no hint, and no log line that says otherwise."""
    memory = AgentMemoryConfig(memory_enabled=False).memory()
    with caplog.at_level(logging.DEBUG, logger="pagefile"):
        memory.cache_toc("a", TOC)
        memory.add_chunk(chunk(0.9))
        memory.add_search_results([{"content": "a", "score": 0.9}])
        memory.add_page_content("页面", "P1")
    assert ({}, [], "", "") == (
        memory.toc_cache,
        memory.relevant_chunks,
        memory.get_toc_cache_hint(),
        memory.get_memory_context(),
    )
    assert [] == caplog.records


def test_the_settings_of_the_document():
    """S3-43, S3-44, S3-45: names, defaults and descriptions, and they do what they say."""
    assert [
        ("memory_enabled", True, "是否启用 Agent 记忆系统"),
        ("memory_max_chunks", 10, "最大记忆内容片段数"),
        ("memory_min_relevance", 0.5, "最小相关性阈值（低于此值的内容不记忆）"),
    ] == [(f.name, f.default, f.metadata["description"]) for f in fields(AgentMemoryConfig)]
    memory = AgentMemoryConfig(memory_max_chunks=1, memory_min_relevance=0.8).memory()
    memory.add_search_results(
        [{"content": "a", "source": s, "score": v} for s, v in (("P1", 0.79), ("P2", 0.8), ("P3", 0.9))]
    )
    assert ["P3"] == [held.source for held in memory.relevant_chunks]


def test_an_english_memory_speaks_english():
    """The same texts for agents that speak English."""
    memory = AgentMemory(language="en")
    memory.cache_toc("manual", {"items": [{"title": "Safety"}]})
    memory.add_page_content("Wear gloves.", "manual P3")
    assert "# Tables of contents at hand\nFetched already: manual\n" in memory.get_toc_cache_hint()
    assert "# What was found so far\n## [1] manual P3\nWear gloves." == memory.get_memory_context()


def test_stats_count_what_is_held():
    """For whoever wants to look."""
    memory = AgentMemory()
    memory.cache_toc("angui_2024", TOC)
    memory.add_chunk(chunk(0.9))
    assert {"toc_count": 1, "known_chapters": 2, "chunk_count": 1} == memory.get_stats()


# -- an agent ----------------------------------------------------------------------------------------------------------

HITS = [{"content": "母线失压后应立即检查。", "reg_id": "angui_2024", "page_num": 85, "score": 0.0164}]


@pytest.mark.parametrize("prefix", ["", "mcp__gridcode__"])
@pytest.mark.parametrize(
    "shape", [lambda value: value, json.dumps, lambda value: [{"type": "text", "text": json.dumps(value)}]]
)
@pytest.mark.parametrize("around", ["", "result", "results", "data"])
def test_results_are_remembered_by_their_tool(prefix, shape, around):
    """S3-03, S3-08: three tools, three kinds of memory, whatever shape the results have."""
    agent = AgentWithMemory()
    agent._update_memory(f"{prefix}get_toc", shape(TOC))
    agent._update_memory(f"{prefix}smart_search", shape({around: HITS, "total": 1} if around else HITS))
    agent._update_memory(
        f"{prefix}read_page_range", shape({"reg_id": "angui_2024", "start_page": 3, "content": "页面"})
    )
    agent._update_memory(f"{prefix}something_else", shape(HITS))
    assert ["angui_2024"] == list(agent.memory.toc_cache)
    assert [("angui_2024 P85", 1.0), ("angui_2024 P3", 0.8)] == [
        (held.source, held.relevance_score) for held in agent.memory.relevant_chunks
    ]


def test_a_chapter_counts_a_little_more_than_a_page():
    """As the project that the document describes has it."""
    agent = AgentWithMemory()
    agent._update_memory(
        "read_chapter_content", {"reg_id": "a", "section_number": "2.1.4", "content": "章节"}
    )
    assert [0.85] == scores(agent.memory)


def test_the_prompt_is_built_again_for_every_run():
    """S3-09, S3-27, S3-30: base, hint, context, in this order; what came in between shows up."""
    agent = AgentWithMemory("你是规程助手。")
    assert "你是规程助手。" == agent.ask("母线失压怎么办")
    agent._update_memory("get_toc", {"reg_id": "angui_2024"})
    agent._update_memory("read_page_range", "页面", {"reg_id": "angui_2024", "start_page": 85})
    assert (
        "你是规程助手。\n\n# 已缓存目录\n以下规程目录已获取: angui_2024\n无需再次调用 get_toc()"
        "\n\n# 已获取的相关信息\n## [1] angui_2024 P85\n页面" == agent.ask("第二个问题")
    )
    assert "第二个问题" == agent.memory.current_query


def test_events_name_their_tool_by_the_call():
    """S3-28, S3-31: a result has only the id of its call; mappings and objects alike."""
    agent = AgentWithMemory()
    agent._process_event(
        {"type": "tool_use", "id": "t1", "name": "mcp__x__get_toc", "input": {"reg_id": "angui_2024"}}
    )
    agent._process_event(SimpleNamespace(type="tool_result", tool_use_id="t1", content=json.dumps(TOC)))
    agent._process_event(
        SimpleNamespace(content=[SimpleNamespace(id="t2", name="smart_search", input={"query": "q"})])
    )
    agent._process_event(
        SimpleNamespace(content=[SimpleNamespace(tool_use_id="t2", content=HITS, is_error=False)])
    )
    agent._process_event({"type": "tool_result", "tool_use_id": "t9", "content": HITS})
    agent._process_event({"type": "tool_use", "id": "t3", "name": "get_toc", "input": {}})
    agent._process_event({"type": "tool_result", "tool_use_id": "t3", "content": "boom", "is_error": True})
    agent._process_event("text")
    assert ({"toc_count": 1, "known_chapters": 2, "chunk_count": 1}) == agent.memory.get_stats()


def test_a_repeated_call_is_answered_also_after_a_reset():
    """S3-01, S3-29, S3-32, S3-33, S3-34, extra test 25: the backend is asked once; a full reset asks again."""
    agent, asked = AgentWithMemory(), []

    def get_toc(reg_id: str) -> dict:
        asked.append(reg_id)
        return TOC

    tool = agent.wrap(get_toc)
    assert TOC == tool(reg_id="angui_2024") == tool(reg_id="angui_2024")
    agent.reset()
    assert TOC == tool(reg_id="angui_2024")
    assert ["angui_2024"] == asked
    tool(reg_id="b")
    agent.reset_all()
    tool(reg_id="angui_2024")
    assert ["angui_2024", "b", "angui_2024"] == asked


async def test_tools_that_wait_are_wrapped_too():
    """And what is not cacheable, or failed, reaches the backend every time."""
    rules = [ToolRule("list_files", "toc", cacheable=True), ToolRule("smart_search", "search")]
    agent, asked = AgentWithMemory(rules=rules), []

    async def list_files(path: str) -> object:
        asked.append(path)
        return None if len(asked) == 1 else [{"title": "a.py"}]

    async def smart_search(query: str) -> list:
        asked.append(query)
        return HITS

    files, search = agent.wrap(list_files), agent.wrap(smart_search)
    for _ in range(3):
        await files("src")
        await search(query="q")
    assert ["src", "q", "src", "q", "q"] == asked
    assert ["src"] == list(agent.memory.toc_cache)
