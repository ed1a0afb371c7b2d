"""The tasks, and the tools that they need: each result is given once, so that what was fetched early has to be remembered."""

import json
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TASKS = Path(__file__).parent / "tasks.toml"
_NAMES = ("Linde", "Krone", "Adler", "Sonne", "Schwan", "Hirsch", "Rose", "Engel")
_AGAIN = {
    "en": "Fetched before in this session; the service answers each request once.",
    "zh": "本次会话中已经取过；该服务对每个请求只回答一次。",
}
_UNKNOWN = {"en": "Nothing found for {value!r}.", "zh": "没有找到 {value!r}。"}
SYSTEM = {
    "en": "You are an assistant with tools. Call a tool when one is needed; else answer in one short sentence from what you know.",
    "zh": "你是带工具的助手。需要时调用工具；否则根据已知内容用一句话回答。",
}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the file describes it."""

    name: str
    argument: str
    description: str
    rows: int
    filler: str

    @property
    def parameters(self) -> Json:
        text = {self.argument: {"type": "string"}}
        return {"type": "object", "properties": text, "required": [self.argument]}

    def result(self, key: str, found: str) -> str:
        """What it returns: filler with what is sought somewhere in its second half."""
        chosen = random.Random(f"{self.name} {key}")
        lines = [
            self.filler.format(
                n=chosen.randrange(100, 9900),
                name=chosen.choice(_NAMES),
                day=chosen.randrange(1, 29),
                hour=chosen.randrange(24),
                minute=chosen.randrange(60),
                **{letter: chosen.randrange(1, 10) for letter in "abc"},
            )
            for _ in range(self.rows)
        ]
        lines.insert(chosen.randrange(len(lines) // 2, len(lines)), found)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of the agent, and what its tools hold."""

    name: str
    language: str
    asks: Sequence[Mapping[str, str]]
    questions: Sequence[Mapping[str, Any]]
    tools: Sequence[Tool]


def tasks() -> list[Task]:
    read = tomllib.loads(TASKS.read_text("utf-8"))
    return [
        Task(one["name"], one["language"], one["ask"], one["question"], _tools(read, one))
        for one in read["task"]
    ]


def _tools(read: Mapping[str, Any], task: Mapping[str, Any]) -> list[Tool]:
    used, language = {ask["tool"] for ask in task["ask"]}, task["language"]
    return [
        Tool(one["name"], one["argument"], one[language], filler["rows"], filler[language])
        for one in read["tool"]
        if one["name"] in used
        for filler in [read["filler"][one["filler"]]]
    ]


@dataclass(slots=True)
class World:
    """Answers the calls of one run of a task, and counts them."""

    task: Task
    calls: int = 0
    #: Calls for what was fetched before.
    repeated: int = 0
    _fetched: set[str] = field(default_factory=set[str])

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.calls += 1
        said = json.dumps(arguments, ensure_ascii=False).casefold()
        for ask in self.task.asks:
            if ask["tool"] == name and ask["key"].casefold() in said:
                if f"{name} {ask['key']}" in self._fetched:
                    self.repeated += 1
                    return _AGAIN[self.task.language]
                self._fetched.add(f"{name} {ask['key']}")
                tool = next(one for one in self.task.tools if one.name == name)
                return tool.result(ask["key"], ask["found"])
        return _UNKNOWN[self.task.language].format(value=next(iter(arguments.values()), ""))


def is_right(question: Mapping[str, Any], answer: str) -> bool:
    said = answer.casefold()
    return any(one.casefold() in said for one in question["accept"])
