"""What every connection to an agent framework promises, whatever the framework: one suite, one small driver each.

A driver runs an agent of its framework with a scripted model. It says what each model call was sent, what the run answered, and what
the framework itself saved. A point that a framework cannot express is in the driver's `cannot`, with the reason.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeAlias

import anyio
import anyio.to_thread
import pytest

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.records import Turn
from pagefile.settings import ArchiveSettings, Settings

# -- what a driver is given -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """The model calls tools, all at once."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Give:
    """The model answers with the structure that it was asked for."""

    value: dict[str, Any]


class ModelBrokeError(RuntimeError):
    """The scripted model fails."""


@dataclass(frozen=True, slots=True)
class Break:
    """The model fails."""


Step: TypeAlias = Say | Use | Give | Break
#: A step, or a function of what the model was sent, as text.
Scripted: TypeAlias = Step | Callable[[str], Step]


@dataclass(slots=True)
class Player:
    """Plays a script; a driver's model asks it for each answer."""

    script: Sequence[Scripted]
    #: What each model call was sent: instructions, messages and results, as text.
    requests: list[str] = field(default_factory=list[str])

    def next(self, request: str) -> Say | Use | Give:
        """The next step; raises `ModelBrokeError` if that is to fail."""
        step = self.script[len(self.requests)]
        self.requests.append(request)
        step = step(request) if callable(step) else step
        if isinstance(step, Break):
            raise ModelBrokeError
        return step


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    answer: str
    #: The pieces of a stream, in order; empty for a run that was not streamed.
    pieces: Sequence[str] = ()
    #: Whether it waits for an approval.
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """One run of an agent."""

    prompt: str
    player: Player
    user: str = "ada"
    conversation: str = "c1"
    #: Plain functions with type hints and docstrings, for the framework's own way to make tools of them.
    tools: Sequence[Callable[..., str]] = ()
    stream: bool = False
    #: The answer has the fields `city` (text) and `days` (a number).
    structured: bool = False
    #: The tools whose calls wait for an approval.
    approved: frozenset[str] = frozenset()


class AdapterDriver(ABC):
    """Runs agents of one framework over one memory; the framework keeps its histories here from run to run."""

    framework: ClassVar[str]
    #: The distribution whose version is told.
    package: ClassVar[str]
    #: Whether the framework waits in threads: its memory is a `BlockingMemory`.
    blocking: ClassVar[bool] = False
    #: Points that the framework cannot express, with the reason.
    cannot: ClassVar[Mapping[str, str]] = {}

    #: What the framework puts before the names of tools.
    prefix: ClassVar[str] = ""

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @abstractmethod
    async def run(self, task: Task) -> Outcome:
        """Run an agent until it answers, waits for an approval, or its model breaks (`ModelBrokeError`, however wrapped)."""

    async def retry(self, task: Task) -> Outcome:
        """Run a task again whose model broke, as the framework's users do."""
        return await self.run(task)

    async def resume(self, task: Task) -> Outcome:
        """Approve the call that a run waits with, and go on."""
        raise NotImplementedError

    @abstractmethod
    async def saved(self, task: Task) -> str:
        """Everything that the framework saved of a conversation, as text."""

    async def close(self) -> None:
        """Let go of what was started."""


# -- the tools of the suite -------------------------------------------------------------------------------------------------

#: A result that is long enough to be archived, with one line worth asking for.
REPORT = "\n".join(
    [
        *(f"Line {number} of the report tells nothing new." for number in range(300)),
        "The vault code word is HELIOTROPE.",
        *(f"Appendix {number} is empty." for number in range(100)),
    ]
)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def report(topic: str) -> str:
    """The whole report on a topic.

    Args:
        topic: what it is about.
    """
    return f"Report on {topic}\n{REPORT}"


def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: the name of the city.
    """
    return f"In {city} it is {'raining' if city == 'Bergen' else 'sunny'}."


def send(text: str) -> str:
    """Send a message.

    Args:
        text: what to send.
    """
    return f"sent: {text}"


# -- the contract -------------------------------------------------------------------------------------------------------------


class AdapterContract(ABC):
    """Subclass it with a `driver` class; every test is one point."""

    driver: ClassVar[type[AdapterDriver]]

    @pytest.fixture
    async def agent(self, request: pytest.FixtureRequest, tmp_path: Any) -> AsyncGenerator[AdapterDriver]:
        point = request.node.name.removeprefix("test_")
        if point in self.driver.cannot:
            pytest.skip(f"not applicable: {self.driver.cannot[point]}")
        archive = ArchiveSettings(threshold=1000, page_from=1000)
        settings = Settings(language="en", archive=archive)
        url = f"sqlite:///{tmp_path}/memory.db"
        async with AsyncExitStack() as stack:
            if self.driver.blocking:
                opened = BlockingMemory.open(url, settings=settings, embedder="none")
                memory = await anyio.to_thread.run_sync(opened.__enter__)
                stack.push_async_callback(
                    anyio.to_thread.run_sync, partial(opened.__exit__, None, None, None)
                )
            else:
                memory = await stack.enter_async_context(Memory.open(url, settings=settings, embedder="none"))
            agent = self.driver(memory)
            stack.push_async_callback(agent.close)
            yield agent

    async def test_turn_once(self, agent: AdapterDriver) -> None:
        """Each run is one turn in the log, with its question and its answer, and stays one when the next is run."""
        for number, prompt in enumerate(("My cat is called Momo.", "She is three.", "She is three.")):
            await agent.run(_task(prompt, Say(f"Answer {number}.")))
        assert [
            ("My cat is called Momo.", "Answer 0.", "done"),
            ("She is three.", "Answer 1.", "done"),
            ("She is three.", "Answer 2.", "done"),
        ] == [(turn.user, turn.assistant, turn.status) for turn in await _logged(agent)]

    async def test_history(self, agent: AdapterDriver) -> None:
        """A run sees what was said before in its conversation, once."""
        await agent.run(_task("My cat is called Momo.", Say("A fine name.")))
        second = _task("What did I just say?", Say("That your cat is called Momo."))
        await agent.run(second)
        (request,) = second.player.requests
        assert 1 == request.count("My cat is called Momo.")
        assert "A fine name." in request
        assert 1 == request.count("What did I just say?")

    async def test_results_page_out(self, agent: AdapterDriver) -> None:
        """A bulky result is seen by the run that fetched it, leaves later requests, and can be loaded there."""
        first = _task(
            "Get the report on vaults.", _use("report", topic="vaults"), Say("I have it."), tools=[report]
        )
        await agent.run(first)
        assert "HELIOTROPE" in first.player.requests[1] or _UUID.search(first.player.requests[1])
        (turn,) = await _logged(agent)
        assert [f"{agent.prefix}report"] == [step.tool for step in turn.steps]
        page = turn.steps[0].page
        assert page is not None

        load = partial(_loading, page)
        second = _task("What was the code word in it?", load, Say("HELIOTROPE."), tools=[report])
        await agent.run(second)
        assert "Line 200 of the report" not in second.player.requests[0]
        assert "HELIOTROPE" in second.player.requests[1]

    async def test_memory_in_requests_only(self, agent: AdapterDriver) -> None:
        """What memory knows is in the request, and in nothing that the framework saves."""
        await _remember(agent, "The user is allergic to hazelnuts.", "ada")
        task = _task("Which nuts must I not eat? Hazelnuts?", Say("Careful."))
        await agent.run(task)
        assert "allergic to hazelnuts" in task.player.requests[0]
        again = _task(
            "Am I allergic to hazelnuts?", _use("weather", city="Oslo"), Say("You are."), tools=[weather]
        )
        await agent.run(again)
        assert [1, 1] == [request.count("allergic to hazelnuts.") for request in again.player.requests]
        assert "allergic to hazelnuts." not in await agent.saved(again)

    async def test_streaming(self, agent: AdapterDriver) -> None:
        """A streamed run has its window, arrives in pieces and is one turn."""
        await _remember(agent, "The user is allergic to hazelnuts.", "ada")
        task = _task("Which nuts must I not eat? Hazelnuts?", Say("Hazelnuts, as you know."), stream=True)
        outcome = await agent.run(task)
        assert "Hazelnuts, as you know." == "".join(outcome.pieces)
        assert len(outcome.pieces) > 1
        assert "allergic to hazelnuts" in task.player.requests[0]
        assert [("Hazelnuts, as you know.", "done")] == [
            (turn.assistant, turn.status) for turn in await _logged(agent)
        ]

    async def test_parallel_calls(self, agent: AdapterDriver) -> None:
        """Calls made at once are the steps of one turn, each with its own result."""
        both = Use((("weather", {"city": "Bergen"}), ("weather", {"city": "Rome"})))
        task = _task("How is the weather in Bergen and Rome?", both, Say("Wet and dry."), tools=[weather])
        await agent.run(task)
        assert "In Bergen it is raining." in task.player.requests[1]
        assert "In Rome it is sunny." in task.player.requests[1]
        (turn,) = await _logged(agent)
        assert {("Bergen", "In Bergen it is raining."), ("Rome", "In Rome it is sunny.")} == {
            (_city(step.input), step.result) for step in turn.steps
        }
        assert 2 == len(turn.steps)

    async def test_text_beside_calls(self, agent: AdapterDriver) -> None:
        """What the model said beside its calls is in the log."""
        use = Use((("weather", {"city": "Rome"}),), "I will look outside.")
        await agent.run(_task("How is the weather in Rome?", use, Say("Dry."), tools=[weather]))
        (turn,) = await _logged(agent)
        assert any("I will look outside." in message.text for message in turn.messages)
        assert "Dry." == turn.assistant

    async def test_retries(self, agent: AdapterDriver) -> None:
        """A run whose model failed and that is run again is one answered turn."""
        broken = _task("Book the train.", Break())
        with pytest.raises(BaseException) as raised:
            await agent.run(broken)
        assert _is_caused(raised.value), raised.value
        await agent.retry(_task("Book the train.", Say("Booked.")))
        answered = [turn for turn in await _logged(agent) if turn.status == "done"]
        assert [("Book the train.", "Booked.")] == [(turn.user, turn.assistant) for turn in answered]

    async def test_interrupts(self, agent: AdapterDriver) -> None:
        """A run that waits for an approval and goes on afterwards is one turn, with the approved call as its step."""
        script = _use("send", text="on my way"), Say("It is sent.")
        task = _task("Tell them.", *script, tools=[send], approved=frozenset({"send"}))
        waiting = await agent.run(task)
        assert waiting.waits
        assert [] == [turn for turn in await _logged(agent) if turn.status == "done"]
        await agent.resume(task)
        (turn,) = await _logged(agent)
        assert ("Tell them.", "It is sent.", "done") == (turn.user, turn.assistant, turn.status)
        assert [(f"{agent.prefix}send", "sent: on my way")] == [
            (step.tool, step.result) for step in turn.steps
        ]

    async def test_structured_output(self, agent: AdapterDriver) -> None:
        """An answer that is a structure is in the log as JSON."""
        task = _task("Where to, and for how long?", Give({"city": "Kyoto", "days": 3}), structured=True)
        await agent.run(task)
        (turn,) = await _logged(agent)
        assert "done" == turn.status
        assert {"Kyoto", "3"} <= set(re.findall(r"\w+", turn.assistant or ""))

    async def test_failing_memory(self, agent: AdapterDriver) -> None:
        """With a memory that is closed, runs answer as they would without one."""
        await agent.run(_task("Hello.", Say("Hello to you.")))
        await _closed(agent)
        task = _task("Still there?", _use("weather", city="Rome"), Say("Of course."), tools=[weather])
        outcome = await agent.run(task)
        assert "Of course." == outcome.answer
        assert "In Rome it is sunny." in task.player.requests[1]

    async def test_two_users(self, agent: AdapterDriver) -> None:
        """Runs of two users at once see each their own memory, and are recorded each in their own log."""
        secrets = {"ada": "The user is allergic to hazelnuts.", "bob": "The user is allergic to shellfish."}
        for user, fact in secrets.items():
            await _remember(agent, fact, user)
        tasks = [
            _task("What am I allergic to?", _use("weather", city="Oslo"), Say(f"Only {user} knows."), tools=[weather],
                  user=user, conversation=f"talk-{user}")
            for user in secrets for _ in range(1)
        ]  # fmt: skip
        async with anyio.create_task_group() as group:
            for task in tasks:
                group.start_soon(agent.run, task)
        for task in tasks:
            other = next(fact for user, fact in secrets.items() if user != task.user)
            assert all(secrets[task.user] in request for request in task.player.requests)
            assert all(other not in request for request in task.player.requests)
            turns = await _logged(agent, task.user, task.conversation)
            assert [f"Only {task.user} knows."] == [turn.assistant for turn in turns]


#: The names of the points, in order.
POINTS = tuple(name.removeprefix("test_") for name in vars(AdapterContract) if name.startswith("test_"))


def _task(prompt: str, *script: Scripted, **more: Any) -> Task:
    return Task(prompt, Player(script), **more)


def _use(tool: str, **arguments: Any) -> Use:
    return Use(((tool, arguments),))


def _loading(page: str, request: str) -> Use:
    """The model loads the page that the request names."""
    assert page in request, "the request says nothing of the archived result"
    return _use("load_tool_history", uuid=page, query="vault code word")


def _city(given: object) -> object:
    return given.get("city") if isinstance(given, Mapping) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


def _is_caused(error: BaseException) -> bool:
    """Whether the model's failure is behind an error."""
    causes = (error.__cause__, error.__context__, *getattr(error, "exceptions", ()))
    return (
        isinstance(error, ModelBrokeError)
        or "ModelBrokeError" in repr(error)
        or any(_is_caused(one) for one in causes if one is not None)
    )


async def _logged(agent: AdapterDriver, user: str = "ada", conversation: str = "c1") -> list[Turn]:
    memory = agent.memory
    chat = memory.conversation(conversation, user_id=user)
    listing = await anyio.to_thread.run_sync(chat.turns) if agent.blocking else await chat.turns()
    return [*listing]


async def _remember(agent: AdapterDriver, text: str, user: str) -> None:
    remember = partial(agent.memory.remember, text, user_id=user)
    await (anyio.to_thread.run_sync(remember) if agent.blocking else remember())


async def _closed(agent: AdapterDriver) -> None:
    memory = agent.memory
    await (anyio.to_thread.run_sync(memory.close) if agent.blocking else memory.close())
