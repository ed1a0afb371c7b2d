"""The people of the demo and their conversations: the sentences are data, and the random choices are the same every time.

In the data a pair such as `[3, 1]` names every third turn, those with remainder 1: when a tool is called (`every`) and
when a window is requested (`windows`). `exchange` says in the same way which exchange a turn uses.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

from pagefile.inspector.demo.results import RESULTS, Data, Picks, read
from pagefile.records import JsonValue

#: A shop, a clinic, a research desk, a programmer and a traveller, each with an agent.
_PEOPLE = ("marta", "lin", "okafor", "jonas", "wei")
_ABOUT = ("id", "agent", "began", "days", "window_tokens", "instructions")


@dataclass(frozen=True, slots=True)
class Said:
    user: str
    assistant: str = ""
    #: The calls of tools, as `chat.step` takes them.
    tools: Sequence[Data] = ()
    #: The agent reloads this tool's newest archived result before it answers.
    loads: str | None = None
    #: The user gave up waiting: there is no answer.
    aborted: bool = False
    #: Whether a window is requested; if tools are called, another follows each call.
    window: bool = False
    #: Facts about the user, as `memory.remember` takes them; one of the kind "wrong" is retracted instead.
    learnt: Sequence[Data] = ()
    #: The conversation is reset after this turn.
    resets: bool = False
    #: Safety data of the session, such as allergies, from this turn on.
    snapshot: Mapping[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Talk:
    id: str
    agent: str
    began: datetime
    #: Days from the first turn to the last.
    days: int
    window_tokens: int
    instructions: str
    turns: Callable[[], Sequence[Said]]


@dataclass(frozen=True, slots=True)
class Person:
    user_id: str
    language: Literal["zh", "en"]
    talks: tuple[Talk, ...]


def _played(person: Data, talk: Data) -> Iterator[Said]:
    """The turns of a conversation: scenes at their fixed places, and small exchanges in rotation everywhere else."""
    picks = Picks(talk["seed"])
    scenes = {scene["turn"]: scene for scene in talk["scenes"]}
    step, first = talk.get("exchange", (1, 0))
    for number in range(talk["turns"]):
        scene = scenes.get(number)
        slots = {} if scene and not talk.get("scenes_draw") else picks.slots(person["slots"])
        if scene is not None:
            given = {name: value for name, value in scene.items() if name not in {"turn", "tools"}}
            tools = [_tool(one, one["result"]["seed"], {}, Picks(0)) for one in scene.get("tools", ())]
            yield Said(**given, tools=tuple(tools))
            continue
        exchange = person["exchanges"][(number * step + first) % len(person["exchanges"])]
        called = [tool for tool in talk.get("tools", ()) if _is_due(tool["every"], number)]
        said = _filled(exchange["user"], slots), _filled(exchange["assistant"], slots)
        tools = tuple(_tool(tool, number, slots, picks) for tool in called)
        yield Said(*said, tools, window=_is_due(talk["windows"], number))


def _is_due(every: Sequence[int], number: int) -> bool:
    divisor, remainder = every
    return number % divisor == remainder


def _tool(tool: Data, seed: int, slots: Data, picks: Picks) -> Data:
    given = {name: value for name, value in tool["result"].items() if name not in {"make", "seed"}}
    ranges: dict[str, list[int]] = {name: value for name, value in given.items() if type(value) is list}
    wanted = _filled(given, slots) | {name: picks.number(*ends) for name, ends in ranges.items()}
    result = RESULTS[tool["result"]["make"]](Picks(seed), **wanted)
    return {"tool": tool["name"], "input": _filled(tool["input"], slots), "result": result}


def _filled(value: Any, slots: Data) -> Any:
    match value:
        case str():
            return value.format(**slots)
        case {**fields}:
            return {name: _filled(inner, slots) for name, inner in fields.items()}
        case _:
            return value


def _person(name: str) -> Person:
    person = read(name)

    def talk(given: Data) -> Talk:
        turns = cache(lambda: tuple(_played(person, given)))
        return Talk(**{field: given[field] for field in _ABOUT}, turns=turns)

    return Person(person["user_id"], person["language"], tuple(map(talk, person["talks"])))


#: The people of the demo.
PEOPLE: tuple[Person, ...] = tuple(map(_person, _PEOPLE))
