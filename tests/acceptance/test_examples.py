"""Every example runs, and says what it promises."""

import re
import runpy
from pathlib import Path

import pytest

from tests.gateway.upstream import Said, Upstream

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def told(capsys):
    """Runs an example and returns what it printed, a list of lines for every question."""

    def run(name: str) -> list[list[str]]:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return [part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n")]

    return run


#: Those that need more than this file: run in tests/integration/claude, and in tests/frameworks by `make frameworks`.
ELSEWHERE = [
    "adk_agent.py",
    "agent_framework_agent.py",
    "agno_agent.py",
    "claude_agent.py",
    "crewai_agent.py",
    "llama_index_agent.py",
    "openai_agents_agent.py",
    "smolagents_agent.py",
    "strands_agent.py",
]
ENGLISH = [
    "agent_loop.py",
    "conversation_graph.py",
    "fact_memory.py",
    "langchain_agent.py",
    "openai_client.py",
    "pydantic_ai_agent.py",
    "workspace.py",
]
CHINESE = [
    "conversation_graph.py",
    "conversation_history.py",
    "fact_memory.py",
    "langchain_agent.py",
    "pydantic_ai_agent.py",
    "short_term_memory.py",
    "workspace.py",
    "yongce_dialogue.py",
]


def test_every_example_is_run_here():
    """An example nobody runs is wrong before long; the list of them has each."""
    for folder, names in ((EXAMPLES, ENGLISH), (EXAMPLES / "zh", CHINESE)):
        assert names == sorted(path.name for path in folder.glob("*.py") if path.name not in ELSEWHERE)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w/]+(?:\.py)?)\)", listed)
    assert all((EXAMPLES / link).exists() for link in links)
    assert {path.name for path in EXAMPLES.glob("*.py")} <= set(links)


@pytest.mark.parametrize("name", [*ENGLISH, *ELSEWHERE])
def test_english_examples_are_english(name):
    """Dialogues, comments and what they print."""
    assert not re.search(r"[\u4e00-\u9fff]", (EXAMPLES / name).read_text(encoding="utf-8"))


def test_a_graph_that_loops(told):
    """Tools, a second look at the answer, and the next turn knows whom it is about."""
    ((*lines,),) = told("zh/conversation_graph.py")
    nodes = [line.strip() for line in lines if line.startswith("  ") and ":" not in line]
    assert ["recall", "generate", "generate", "generate", "persist", "recall", "generate", "generate", "persist"] == nodes  # fmt: skip
    assert "  反思: 他导演了盗梦空间等。 → 请注明年份" in lines
    assert (
        "1. 诺兰导演过什么？ [search_films, reflect] 他导演了盗梦空间（2010）、星际穿越（2014）。"
        == lines[-2]
    )
    assert (
        "2. 你还记得他导演过什么吗？ [search_films] 他导演了盗梦空间（2010）、星际穿越（2014）。" == lines[-1]
    )


def test_the_conversation_of_document_004(told, monkeypatch):
    """What the conversation is about is shown, Docker is not; a change is kept, undone, and a secret refused."""
    monkeypatch.setattr("sys.argv", ["fact_memory.py"])
    (taken,), first, second, third, end = told("zh/fact_memory.py")
    assert "taken over: {'stored': 4, 'duplicate': 0, 'superseded': 0, 'rejected': 0}" == taken
    assert "用户: 怎么写测试？" == third[0]
    for turn in (second, third):
        assert "- Expert in Python and FastAPI" in turn
        assert "- Uses Docker for containerization" not in turn
        assert "- 用户住在杭州" in turn
    assert "- 用户住在杭州" not in first
    assert [
        "superseded: 用户住在上海",
        "记录: ['用户住在杭州（已过去）', '用户住在上海']",
        "撤销后: ['用户住在杭州']",
    ] == end[:3]
    assert "a password" in end[3]


def test_the_dialogue_of_document_000(told):
    """Fetched in full, a placeholder, loaded by its uuid, and slim again byte for byte."""
    first, second, third, end = told("zh/yongce_dialogue.py")
    assert "用户: 永策Pro的权限管理怎么配置？" == first[0]
    assert ["全文, 52,000 字"] == results(first)
    assert tokens(first)[1] > 30_000

    assert "用户: 你之前说的配置步骤再详细说一下第三步" == second[0]
    placeholder, *loaded = results(second)
    assert placeholder.startswith("占位符")
    assert [placeholder, "全文, 52,000 字"] == loaded
    (uuid,) = re.findall(r"调用 load_tool_history\(\{'uuid': '([0-9a-f-]{36})'\}\)", "\n".join(second))
    assert f"📎 [工具结果存档: {uuid}]" in "\n".join(second)
    assert "助手: 第三步：设置数据范围" in second[-1]

    assert placeholder == results(third)[0]
    assert all(result.startswith("占位符") for result in results(third))
    assert tokens(second)[0] < 1000
    assert tokens(third)[0] < 1000
    assert "第三轮中第一轮的内容与加载之前逐字节相同: 是" == end[0]
    assert end[1].startswith(f"存档: {uuid}, 52,000 字, 加载 1 次")


def results(lines: list[str]) -> list[str]:
    return [line.partition("工具结果: ")[2].partition(" | ")[0] for line in lines if "工具结果: " in line]


def tokens(lines: list[str]) -> list[int]:
    return [int(line.split()[1].replace(",", "")) for line in lines if "窗口: " in line]


def test_an_agent_loop_in_english(told):
    """The log is in the window once; later the model pages in the lines it needs."""
    lines = told("agent_loop.py")[0]
    sizes = [int(line.split()[0]) for line in lines if line.endswith("tokens in the window")]
    assert sizes[1] > 30_000
    assert max(sizes[2:]) < 1_500
    assert any("load_tool_history(" in line for line in lines)
    assert "  What did the log say before? It says: 12:59:59 ERROR disk full" == lines[-1]


def test_a_long_conversation_about_films(told, monkeypatch):
    """The director of ten turns ago, back to a topic, the first turn at turn 120; and nothing where nothing is asked for."""
    monkeypatch.setattr("sys.argv", ["conversation_history.py"])
    director, topic, unrelated, first, end = told("zh/conversation_history.py")
    assert "  最近6条: 抱歉，我不记得您说的是哪位导演。 （召回 0 轮）" == director[1]
    assert director[3].startswith("  加上摘要和召回: 是克里斯托弗·诺兰。 （召回 ")
    assert "  最近6条: 抱歉，请再说一遍想看什么。 （召回 0 轮）" == topic[1]
    assert topic[3].startswith("  加上摘要和召回: 好的，我们刚才说到《黑客帝国》和《十二猴子》。 （召回 ")
    assert unrelated[3].endswith("（召回 0 轮）")
    assert "  最近6条: 抱歉，我不知道。 （召回 0 轮）" == first[1]
    assert first[3].startswith("  加上摘要和召回: 您叫王芳，只看有中文字幕的电影。 （召回 ")
    assert "消息: 240 条" == end[0]
    assert "覆盖 232 条" in end[1]


def test_an_agent_that_does_not_look_twice(told):
    """Every question asks for the table of contents, the backend sees one call; after a reset the hint still holds."""
    first, second, third, end = told("zh/workspace.py")
    assert first[1].startswith("  get_toc: 已存档")
    assert ["  get_toc: 缓存, 刚刚"] * 2 == [second[1], third[1]]
    for lines in (first, second, third):
        assert "    - 第3章 变压器 P80" in lines
    assert "    # 已获取的相关信息" in second
    assert "    # 已获取的相关信息" not in third
    assert ["到达后端的调用: get_toc, smart_search, read_page_range"] == end


def test_an_agent_in_pydantic_ai(told):
    """The second question's call is answered without its tool being reached, and the saved history holds no memory and no long result."""
    lines = told("zh/pydantic_ai_agent.py")[0]
    assert ["  先接接地端，后接导体端。"] * 2 == [line for line in lines if "先接接地端" in line]
    assert "tools reached: get_toc, read_page_range" == lines[-2]
    assert "turns in the log: done with 2 steps, done with 1 steps" == lines[-1]
    saved = [line for line in lines if "saved history" in line]
    assert all(line.endswith("memory in it: 0") for line in saved)
    assert all(int(line.split()[2].replace(",", "")) < 15_000 for line in saved)


def test_a_langchain_agent_remembers_across_conversations(told):
    """An allergy told on Monday is known on Friday, in another thread, and in no thread's state."""
    monday, friday, facts = told("zh/langchain_agent.py")
    assert "周一 助手: 好的，已记住。" == monday[1]
    assert "周五 助手: 小林，您对青霉素过敏，不要吃阿莫西林。" == friday[1]
    assert ["周一 状态: 4 条消息", "周五 状态: 2 条消息"] == [monday[2], friday[2]]
    assert ["事实: 小林对青霉素过敏"] == facts
    source = (EXAMPLES / "zh" / "langchain_agent.py").read_text(encoding="utf-8")
    body = source.partition("def main")[2].partition("\n\n\n")[0]
    assert len(body.splitlines()) < 20


# -- the same in English ----------------------------------------------------------------------------------------------


def test_openais_client_remembers(tmp_path, monkeypatch, told):
    """What was said in one run is sent with a question of the next."""
    monkeypatch.chdir(tmp_path)
    with Upstream(lambda body: Said("Porto." if "I live in Porto" in str(body) else "Hm.")) as upstream:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{upstream.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setattr("sys.argv", ["openai_client.py", "My name is Ada and I live in Porto."])
        told("openai_client.py")
        monkeypatch.setattr("sys.argv", ["openai_client.py", "Where do I live?"])
        ((question, answer, cost),) = told("openai_client.py")
    assert ("> Where do I live?", "Porto.") == (question, answer)
    assert re.fullmatch(r"  \d+ tokens, memory", cost)


def test_a_langchain_agent_in_english(told):
    """An allergy told on Monday is known on Friday."""
    monday, friday, facts = told("langchain_agent.py")
    assert "Monday assistant: I will remember that." == monday[1]
    assert "Friday assistant: No: you are allergic to penicillin, so do not take amoxicillin." == friday[1]
    assert ["Friday state: 2 messages", "Facts: Ada is allergic to penicillin"] == [friday[2], *facts]


def test_a_graph_in_english(told):
    """Tools, a second look at the answer, and the next turn knows whom it is about."""
    ((*lines,),) = told("conversation_graph.py")
    answer = "He directed Inception (2010) and Interstellar (2014)."
    assert f"1. What has Nolan directed? [search_films, reflect] {answer}" == lines[-2]
    assert f"2. Do you remember what he directed? [search_films] {answer}" == lines[-1]


def test_pydantic_ai_in_english(told):
    """The second question's call is answered without its tool being reached."""
    lines = told("pydantic_ai_agent.py")[0]
    assert 2 == lines.count("  The earth end first, then the conductor.")
    assert "tools reached: get_toc, read_page_range" == lines[-2]


def test_a_workspace_in_english(told):
    """Equal calls are answered from the cache, and nothing that the model is shown is in another language."""
    first, second, third, end = told("workspace.py")
    assert ["  get_toc: from cache, just now"] * 2 == [second[1], third[1]]
    assert ["Calls that reached the backend: get_toc, smart_search, read_page_range"] == end
    assert not re.search(r"[\u4e00-\u9fff]", "".join((*first, *second, *third)))


def test_facts_in_english(told, monkeypatch):
    """What the conversation is about is shown; a change is kept, undone, and a secret refused."""
    monkeypatch.setattr("sys.argv", ["fact_memory.py"])
    *_, third, end = told("fact_memory.py")
    assert {"- Prefers pytest for testing", "- The user lives in Porto"} < set(third)
    assert "- Uses Docker for containerization" not in third
    assert [
        "superseded: The user lives in Lisbon",
        "On record: ['The user lives in Porto (past)', 'The user lives in Lisbon']",
        "After undo: ['The user lives in Porto']",
    ] == end[:3]
    assert "a password" in end[3]
