"""LangChain's own suites (`langchain-tests`) for the retriever and the tools, and its documented histories case by case."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from pagefile import BlockingMemory
from pagefile.integrations.langchain import PagefileChatMessageHistory, PagefileRetriever, memory_tools

CALLS = {
    "recall": {"query": "teapot"},
    "remember": {"text": "The user likes tea."},
    "correct": {"fact": "The user likes tea.", "text": "The user likes coffee."},
    "retract": {"fact": "The user likes tea."},
    "load_tool_history": {"uuid": "00000000-0000-4000-8000-000000000000"},
    "search_tool_history": {"query": "teapot"},
}


@pytest.fixture(scope="module", autouse=True)
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("langchain")
    with BlockingMemory.open(f"sqlite:///{folder}/l.db", embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        for number in range(6):
            chat.record(user=f"My teapot number {number} is green.", assistant=f"Noted, teapot {number}.")
        _OPENED.append(memory)
        yield memory
        _OPENED.clear()


_OPENED = []


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return PagefileRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": _OPENED[0], "user_id": "ada"}

    @property
    def retriever_query_example(self):
        return "Which teapot is green?"


def _tool(name):
    tools = {tool.name: tool for tool in memory_tools(_OPENED[0], user_id="ada", conversation_id="c")}
    return tools[name]


def _suites(name):
    class Named:
        @property
        def tool_constructor(self):
            return _tool(name)

        @property
        def tool_invoke_params_example(self):
            return CALLS[name]

    class Unit(Named, ToolsUnitTests):
        pass

    class Integration(Named, ToolsIntegrationTests):
        pass

    return Unit, Integration


TestRecallUnit, TestRecall = _suites("recall")
TestRememberUnit, TestRemember = _suites("remember")
TestCorrectUnit, TestCorrect = _suites("correct")
TestRetractUnit, TestRetract = _suites("retract")
TestLoadUnit, TestLoad = _suites("load_tool_history")
TestSearchUnit, TestSearch = _suites("search_tool_history")


# -- histories ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def history(opened, request):
    return PagefileChatMessageHistory(opened, request.node.name, user_id="ada")


def test_a_new_history_is_empty(history):
    assert [] == history.messages


def test_messages_come_back_as_they_were_added(history):
    added = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "What is this?"}], id="h1"),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}]),
        ToolMessage("a cat", tool_call_id="c1", artifact={"raw": [1, 2]}),
        AIMessage("A cat.", additional_kwargs={"k": "v"}, response_metadata={"model": "m"}),
    ]
    history.add_messages(added)
    assert added == history.messages


def test_short_forms_work(history):
    history.add_user_message("Hello")
    history.add_ai_message("Hi")
    assert [HumanMessage("Hello"), AIMessage("Hi")] == history.messages
    assert "Human: Hello\nAI: Hi" == str(history)


def test_clear_empties(history):
    history.add_messages([HumanMessage("Hello"), AIMessage("Hi")])
    history.clear()
    assert [] == history.messages


async def test_the_asynchronous_ones_do_the_same(history):
    await history.aadd_messages([HumanMessage("Hello"), AIMessage("Hi")])
    assert [HumanMessage("Hello"), AIMessage("Hi")] == await history.aget_messages()
    await history.aclear()
    assert [] == await history.aget_messages()


def test_histories_are_apart(opened, history):
    history.add_messages([HumanMessage("mine")])
    assert [] == PagefileChatMessageHistory(opened, "another", user_id="ada").messages
    assert [] == PagefileChatMessageHistory(opened, "test_histories_are_apart", user_id="bob").messages


def test_a_runnable_with_history_remembers_and_is_recorded(opened):
    def get(session_id):
        return PagefileChatMessageHistory(opened, session_id, user_id="ada")

    seen = []

    def model(messages):
        seen.append([message.content for message in messages])
        return AIMessage(f"answer {len(seen)}")

    chain = RunnableWithMessageHistory(RunnableLambda(model), get)
    config = {"configurable": {"session_id": "runnable"}}
    chain.invoke([HumanMessage("one")], config)
    chain.invoke([HumanMessage("two")], config)
    assert [["one"], ["one", "answer 1", "two"]] == seen
    turns = opened.conversation("runnable", user_id="ada").turns()
    assert [("one", "answer 1", "done"), ("two", "answer 2", "done")] == [
        (turn.user, turn.assistant, turn.status) for turn in turns
    ]
