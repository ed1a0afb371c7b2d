"""Findings F2, F6, F21 and F24: what an agent's working memory keeps of searches, pages and tables of contents."""

import json

import pytest

from pagefile import Memory
from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.standalone import AgentMemory, AgentWithMemory
from tests.findings.marks import finding
from tests.integration.pydantic_ai.agents import Script

HITS = [
    {"content": "母线失压后应立即检查保护动作情况", "reg_id": "angui_2024", "page_num": 85, "score": 0.92},
    {"content": "母线失压时应先断开断路器", "reg_id": "angui_2024", "page_num": 86, "score": 0.88},
]
SAID = [hit["content"] for hit in HITS]

#: The same two hits as lists, which are remembered, and as mappings.
LISTS = {"a list": HITS, "a list as JSON text": json.dumps(HITS)}
MAPPINGS = {
    "results": {"results": HITS},
    "result": {"result": HITS},
    "results as JSON text": json.dumps({"results": HITS}),
    "result in an MCP block": [{"type": "text", "text": json.dumps({"result": HITS})}],
    "data with items": {"data": {"items": HITS}},
    "results beside a count": {"query": "母线", "total": 2, "results": HITS},
}
#: What well-known search tools return for them.
PRODUCTS = {
    "Tavily": {
        "query": "母线失压",
        "images": [],
        "results": [
            {"title": f"规程 {n}", "url": f"https://example.org/{n}", "content": text, "score": 0.93}
            for n, text in enumerate(SAID)
        ],
    },
    "Elasticsearch": {
        "took": 3,
        "hits": {
            "max_score": 12.4,
            "hits": [
                {"_id": str(n), "_score": 12.4, "_source": {"title": f"第 {n} 节", "content": text}}
                for n, text in enumerate(SAID)
            ],
        },
    },
    "Qdrant": {
        "status": "ok",
        "result": [
            {"id": n, "version": 2, "score": 0.88, "payload": {"text": text, "doc": "angui", "page": 85 + n}}
            for n, text in enumerate(SAID)
        ],
    },
    "Qdrant's client": [
        {"id": n, "version": 2, "score": 0.88, "payload": {"text": text, "doc": "angui", "page": 85 + n}}
        for n, text in enumerate(SAID)
    ],
    "Milvus": [
        [{"id": n, "distance": 0.91, "entity": {"text": text, "page": 85 + n}} for n, text in enumerate(SAID)]
    ],
    "Chroma": {
        "ids": [["a", "b"]],
        "documents": [SAID],
        "metadatas": [[{"source": "a.pdf"}, {"source": "b.pdf"}]],
        "distances": [[0.21, 0.25]],
    },
    "Bing": {
        "webPages": {
            "value": [
                {"name": f"规程 {n}", "url": f"https://example.org/{n}", "snippet": text}
                for n, text in enumerate(SAID)
            ]
        }
    },
}


def prompt_after(tool: str, result: object, question: str = "母线失压怎么办？", **given: object) -> str:
    """The system prompt of the run after one in which a tool returned something."""
    agent = AgentWithMemory("你是助手。")
    agent.ask(question)
    agent.wrap(lambda **_: result, name=tool)(**given)
    return agent.ask("再说一遍")


def named(shapes):
    return pytest.mark.parametrize("result", list(shapes.values()), ids=list(shapes))


# -- F2: search results that are mappings --------------------------------------------------------------------------------


@finding("tool-results-F2")
@named(LISTS)
def test_search_hits_in_a_list_stand_in_the_next_prompt(result):
    """What a search found as a list is in the prompt of the next run."""
    prompt = prompt_after("smart_search", result, query="母线")
    assert [] == [text for text in SAID if text not in prompt]


@finding("tool-results-F2")
@named(MAPPINGS)
def test_search_hits_in_a_mapping_stand_in_the_next_prompt(result):
    """What a search found is in the prompt of the next run, whatever mapping its list is wrapped in."""
    prompt = prompt_after("smart_search", result, query="母线")
    assert [] == [text for text in SAID if text not in prompt]


@finding("tool-results-F2")
@named(PRODUCTS)
def test_hits_of_well_known_search_tools_stand_in_the_next_prompt(result):
    """The answers of the search tools that people use are remembered without any converting."""
    prompt = prompt_after("smart_search", result, query="母线")
    assert [] == [text for text in SAID if text not in prompt]


@finding("tool-results-F2")
@named(MAPPINGS)
async def test_a_workspace_absorbs_hits_in_a_mapping(result):
    """The workspace of a conversation takes every hit of a search whose result is a mapping."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        absorbed = await chat.workspace().absorb("smart_search", {"query": "母线"}, result)
        assert len(HITS) == absorbed.chunks


@finding("tool-results-F2")
@named(MAPPINGS)
async def test_recorded_steps_leave_hits_of_a_mapping_in_the_workspace(result):
    """A recorded turn leaves the hits of its search in the conversation's working memory, mapping or list."""
    async with Memory.open("memory://") as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("q", "a", steps=[{"tool": "smart_search", "input": {}, "result": result}])
        known = chat.workspace().notes.get_memory_context()
        assert [] == [text for text in SAID if text not in known]


@finding("tool-results-F2")
def test_hits_in_a_mapping_can_be_added_by_hand():
    """`AgentMemory.add_search_results` takes the hits out of a mapping."""
    memory = AgentMemory()
    memory.add_search_results({"results": HITS})
    assert SAID == [chunk.content for chunk in memory.relevant_chunks]


# -- F6: one table of contents, spelled in several ways -------------------------------------------------------------------

CHAPTERS = [{"title": "1 总则", "page": 1}, {"title": "2 母线", "page": 9}]


class Library:
    """A backend that counts how often it is asked for a table of contents."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_toc(self, reg_id: str, max_depth: int | None = None) -> list[dict]:
        self.asked.append(reg_id)
        return CHAPTERS


@finding("tool-results-F6")
def test_an_equal_call_spares_the_backend():
    """A table of contents that was fetched is not fetched again by the very same call, and others are fetched."""
    library = Library()
    get_toc = AgentWithMemory().wrap(library.get_toc)
    answers = [get_toc(reg_id="angui_2024"), get_toc(reg_id="angui_2024"), get_toc(reg_id="other")]
    assert [CHAPTERS] * 3 == answers
    assert ["angui_2024", "other"] == library.asked


@finding("tool-results-F6")
def test_four_spellings_of_one_call_reach_the_backend_once():
    """By position or by name, with or without a default spelled out: it is one call, and the backend sees it once."""
    library = Library()
    get_toc = AgentWithMemory().wrap(library.get_toc)
    get_toc("angui_2024")
    get_toc(reg_id="angui_2024")
    get_toc("angui_2024", None)
    get_toc(reg_id="angui_2024", max_depth=None)
    get_toc("other")
    assert ["angui_2024", "other"] == library.asked


@finding("tool-results-F6")
def test_a_table_of_contents_is_known_by_its_document():
    """A call by position names its document in the cache and in the hint, not the tool."""
    agent = AgentWithMemory()
    agent.wrap(Library().get_toc)("angui_2024")
    assert ["angui_2024"] == list(agent.memory.toc_cache)
    assert "angui_2024" in agent.memory.get_toc_cache_hint()


@finding("tool-results-F6")
def test_a_table_of_contents_put_in_by_hand_is_served():
    """What `cache_toc` was given answers the call; the backend is spared."""
    library, agent = Library(), AgentWithMemory()
    agent.memory.cache_toc("angui_2024", {"items": [{"title": "第一章 总则"}]})
    answer = agent.wrap(library.get_toc)(reg_id="angui_2024")
    assert [] == library.asked
    assert "第一章 总则" in str(answer)


@finding("tool-results-F6")
async def test_pydantic_ai_takes_a_default_spelled_out_for_the_same_call():
    """A model that writes `max_depth: null` the second time gets the table of contents that was fetched before."""
    library = Library()
    script = Script(
        ("get_toc", {"reg_id": "angui_2024"}),
        ("get_toc", {"reg_id": "angui_2024", "max_depth": None}),
        "ok",
    )
    async with Memory.open("memory://") as memory:
        agent = script.agent(PagefileMemory(memory, user_id="u", conversation_id="c"))
        agent.tool_plain(library.get_toc)
        await agent.run("母线失压怎么办？")
    assert "2 母线" in script.sent[-1].returned[-1]
    assert ["angui_2024"] == library.asked


# -- F21: what is remembered of a page that was read ----------------------------------------------------------------------

PAGE = {"reg_id": "angui_2024", "start_page": 85, "end_page": 85}


@finding("tool-results-F21")
def test_a_page_is_remembered_by_what_answers_the_question():
    """Of a page that was read, the next prompt has the sentence that answers the question, wherever it stands."""
    page = "一般规定。" * 200 + "母线失压的处理编号为 4711。" + "附则。" * 300
    assert "4711" in prompt_after("read_page_range", page, "母线失压的处理编号是多少", **PAGE)


@finding("tool-results-F21")
def test_an_html_page_is_remembered_by_its_text():
    """Of an HTML page, the next prompt has text that answers the question, and no markup."""
    filler = "".join(f"<p>第{n}段：产品保修期为购买之日起一年，电池除外。</p>" for n in range(1, 120))
    page = (
        '<!DOCTYPE html><html lang="zh"><head><meta charset="utf-8"><title>售后服务政策</title>'
        f"<style>body{{color:#333}}</style></head><body><h1>售后服务政策</h1>{filler}"
        "<ol><li>寄回后 3 个工作日退款，运费险最高赔 12 元</li></ol></body></html>"
    )
    prompt = prompt_after("read_page_range", page, "运费险最高赔多少", **PAGE)
    assert "<!DOCTYPE" not in prompt
    assert "最高赔 12 元" in prompt


@finding("tool-results-F21")
def test_an_error_is_no_knowledge():
    """A tool that answers with an error in words leaves nothing to know; a page beside it is remembered."""
    agent = AgentWithMemory()
    agent.ask("第 9999 页写了什么？")
    answers = {85: "母线失压的处理编号为 4711。", 9999: "Error: page 9999 does not exist"}
    read = agent.wrap(lambda reg_id, start_page, end_page: answers[start_page], name="read_page_range")
    read(**PAGE)
    read(reg_id="angui_2024", start_page=9999, end_page=9999)
    assert ["母线失压的处理编号为 4711。"] == [chunk.content for chunk in agent.memory.relevant_chunks]


# -- F24: several hits of one source --------------------------------------------------------------------------------------


@finding("tool-results-F24")
def test_hits_of_one_source_without_pages_are_all_remembered():
    """Five different passages of one PDF are five things to know, although no page number tells them apart."""
    hits = [
        {"content": f"规定{n}：接地线应先接接地端。", "source": "handbook.pdf", "score": 0.9 - n / 50}
        for n in range(5)
    ]
    prompt = prompt_after("smart_search", hits, "接地线怎么接", query="接地线")
    assert [] == [hit["content"] for hit in hits if hit["content"] not in prompt]
