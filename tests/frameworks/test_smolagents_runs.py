"""Runs of smolagents beyond the contract: managed agents, agents that write code, pictures, faults, fresh starts."""

import threading

import PIL.Image
import pytest
from smolagents import CodeAgent, ToolCallingAgent, tool
from smolagents.models import ChatMessage, Model
from smolagents.monitoring import LogLevel

from pagefile.integrations.smolagents import PagefileMemory
from pagefile.testing.contracts.adapters import Break, Player, Say

from .attacked import bill, broken, call, done, known
from .smolagents_model import Scripted


class Coder(Model):
    """Answers with code."""

    def __init__(self, player):
        super().__init__()
        self.player = player

    def generate(self, messages, **more):
        step = self.player.next("\n".join(f"{one.role}: {one.content}" for one in messages))
        return ChatMessage("assistant", f"Thought: well.\n<code>\n{step.text}\n</code>")


@pytest.fixture
def made(blocking):
    """Makes agents with a memory."""

    def make(player, *tools, conversation="c1", kind=ToolCallingAgent, **more):
        agent = kind(
            [tool(one) for one in tools],
            (Scripted if kind is ToolCallingAgent else Coder)(player),
            verbosity_level=LogLevel.OFF,
            **more,
        )
        return PagefileMemory(blocking, conversation, user_id="ada").attach(agent)

    return make


@pytest.fixture
def logged(blocking):
    return lambda conversation="c1": [*blocking.conversation(conversation, user_id="ada").turns()]


@pytest.mark.parametrize("own", [False, True])
def test_a_managed_agent_is_asked_by_a_model(blocking, made, logged, own):
    """Whether it has a conversation of its own or that of its manager."""
    inner = Player([call("bill", month="May"), Say("Hazelnuts, walnuts.")])
    helper = made(inner, bill, conversation="helper" if own else "c1", name="helper", description="Helps.")
    outer = Player([call("helper", task="List the nuts."), Say("Hazelnuts and walnuts.")])
    made(outer, managed_agents=[helper]).run("Which nuts?", reset=False)
    assert [[1, 1], [0, 0]] == [known(outer), known(inner)]
    assert [("Which nuts?", "Hazelnuts and walnuts.")] == done(logged())
    assert ["c1"] == [head.scope.conversation for head in blocking.conversations(user_id="ada")]


def test_an_agent_that_writes_code_has_memory(made, logged):
    player = Player([Say("print(bill(month='May'))"), Say("final_answer('40 euros.')")])
    made(player, bill, kind=CodeAgent).run("What do I owe for hazelnuts?", reset=False)
    assert [1, 1] == known(player)
    assert [("What do I owe for hazelnuts?", "40 euros.")] == done(logged())
    (turn,) = logged()
    assert ["python_interpreter"] == [step.tool for step in turn.steps][:1]
    assert "40 euros" in turn.steps[0].result


def test_a_picture_is_named_in_the_log(made, logged):
    picture = PIL.Image.new("RGB", (2, 2))
    made(Player([Say("A dot.")])).run("What is this?", images=[picture], reset=False)
    (turn,) = logged()
    assert turn.user.startswith("What is this?")
    assert "[image" in turn.user
    assert "A dot." == turn.assistant


def test_a_tool_that_breaks_is_a_step(made, logged):
    player = Player([call("broken", month="May"), Say("I could not find it.")])
    made(player, broken).run("What do I owe?", reset=False)
    (turn,) = logged()
    assert "I could not find it." == turn.assistant
    assert [("broken", True)] == [(step.tool, "no bill of May" in step.result) for step in turn.steps]


def test_a_run_that_broke_off_does_not_spoil_the_next(made, logged):
    agent = made(Player([call("bill", month="May"), Break()]), bill)
    with pytest.raises(Exception, match=r""):
        agent.run("What do I owe?", reset=False)
    player = Player([Say("Hello.")])
    made(player).run("Good morning, hazelnut.", reset=False)
    assert [1] == known(player)
    assert ["Hello."] == [answer for _, answer in done(logged())]


def test_an_agent_that_begins_anew_sees_the_log(made, logged):
    made(Player([Say("A fine name.")])).run("My cat is called Momo.")
    player = Player([Say("Momo.")])
    made(player).run("What is my cat called?")
    assert "My cat is called Momo." in player.requests[0]
    assert ["A fine name.", "Momo."] == [answer for _, answer in done(logged())]


def test_agents_in_threads_do_not_mix(made, logged):
    players = [Player([call("bill", month="May"), Say(f"Answer {number}.")]) for number in range(4)]
    agents = [made(one, bill, conversation=f"s{number}") for number, one in enumerate(players)]
    threads = [
        threading.Thread(target=agent.run, args=(f"Hazelnuts {number}?",))
        for number, agent in enumerate(agents)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, player in enumerate(players):
        assert [1, 1] == known(player)
        assert [(f"Hazelnuts {number}?", f"Answer {number}.")] == done(logged(f"s{number}"))


def test_plans_are_no_answers(made, logged):
    player = Player([Say("1. Answer."), Say("Hello.")])
    model = made(player, planning_interval=5)
    model.run("Good morning, hazelnut.", reset=False)
    assert [("Good morning, hazelnut.", "Hello.")] == done(logged())
