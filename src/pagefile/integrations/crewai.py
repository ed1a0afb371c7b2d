"""CrewAI: memory for the LLM of an agent.

```python
remembered = PagefileMemory(memory, "conv-1", user_id="ada")
agent = Agent(role="waiter", goal="help", backstory="…", llm=remembered.llm(llm), tools=[*tools, *remembered.tools()])
agent.kickoff("What am I allergic to?")
```

CrewAI waits in threads: give it a `BlockingMemory`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar, cast

from pydantic import BaseModel, Field, PrivateAttr, create_model

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.engine.arguments import result_text
from pagefile.errors import MissingExtraError
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import Door, Request, Shown, Who, assistant, whose

try:
    from crewai import BaseLLM
    from crewai.tools import BaseTool
except ImportError as error:
    raise MissingExtraError.of("crewai", "The CrewAI integration") from error

L = TypeVar("L", bound=BaseLLM)

#: What CrewAI puts before a task.
_TASK = "Current Task: "
#: How agents without function calling answer, and how they call tools.
_FINAL, _ACTION = "Final Answer:", "Action:"
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool}


class PagefileMemory:
    """The memory of one conversation: every call of the LLM gets its window, every task becomes a turn.

    CrewAI begins each task without a history; the model sees the earlier turns of the log. Nothing of memory is in what an agent
    or a crew keeps. What an agent asks a coworker is asked by a model, and has no memory.

    Args:
        conversation_id: which conversation the agent leads.
        user_id: whose memory it is; without one, nothing is shared between conversations.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False if the agent is not given `tools()`: then tool results stay in requests.
        timeout_s: how long a call waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        conversation_id: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> None:
        self._door = Door(memory, "crewai", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools)
        self._who = whose(user_id, conversation_id, tenant)

    def llm(self, llm: L) -> L:
        """A copy of the LLM whose calls have memory."""
        made = llm.model_copy()
        # Instance attributes, so that the copy keeps the class that CrewAI looks at.
        object.__setattr__(made, "call", partial(self._call, llm.call))
        object.__setattr__(made, "acall", partial(self._acall, llm.acall))
        return made

    def tools(self) -> list[BaseTool]:
        """`recall`, `remember`, `load_tool_history` and so on, for this conversation."""
        return [
            _made(self._door, self._who, schema) for schema in self._door.tool_schemas(self._who).values()
        ]

    def _call(self, inner: Any, messages: Any, *given: Any, **more: Any) -> Any:
        if _is_delegated(more.get("from_task")):
            return inner(messages, *given, **more)
        own, told = _read(messages, more.get("from_task"))
        request = self._door.request_blocking(self._who, told)
        said = inner(_sent(request, own), *given, **more)
        if (answer := _answer(said)) is not None:
            self._door.finish_blocking(self._who, [*told, [assistant(answer)]])
        return said

    async def _acall(self, inner: Any, messages: Any, *given: Any, **more: Any) -> Any:
        if _is_delegated(more.get("from_task")):
            return await inner(messages, *given, **more)
        own, told = _read(messages, more.get("from_task"))
        request = await self._door.request(self._who, told)
        said = await inner(_sent(request, own), *given, **more)
        if (answer := _answer(said)) is not None:
            await self._door.finish(self._who, [*told, [assistant(answer)]])
        return said


def _is_delegated(task: Any) -> bool:
    """Whether an agent asks: what it asks a coworker is a task, but none of the crew's."""
    crew = getattr(getattr(task, "agent", None), "crew", None)
    tasks: Sequence[Any] = getattr(crew, "tasks", None) or ()
    return bool(tasks) and all(one.id != task.id for one in tasks)


def _read(messages: Any, task: Any) -> tuple[list[Json], list[list[Json]]]:
    """The messages as they are, and what was said in them."""
    own = (
        [{"role": "user", "content": messages}]
        if isinstance(messages, str)
        else [dict(one) for one in messages]
    )
    told = [_told(message) for message in own]
    asked = [message for message in told if message["role"] == "user"]
    if asked and task is not None and getattr(task, "description", None):
        # CrewAI writes more into it: what it expects of the answer, and what other tasks found.
        asked[-1]["content"] = task.description
    return own, [[message] for message in told]


def _told(message: Json) -> Json:
    kept = {
        name: message[name] for name in ("role", "content", "tool_calls", "tool_call_id") if message.get(name)
    }
    content = kept.get("content") or ""
    if message["role"] == "user" and isinstance(content, str):
        content = content.strip().removeprefix(_TASK)
    return {**kept, "content": content}


def _answer(said: Any) -> str | None:
    """The answer; None if the model called tools."""
    if isinstance(said, BaseModel):
        return said.model_dump_json()
    if not isinstance(said, str):
        return None if isinstance(said, list) else result_text(said)
    if _FINAL in said:
        return said.rpartition(_FINAL)[2].strip()
    return None if _ACTION in said else said


def _sent(request: Request | None, own: Sequence[Json]) -> list[Json]:
    """The messages as memory shows them; CrewAI's own are never changed, only copied."""
    if request is None:
        return list(own)
    found = [_shown(shown, own) for shown in request.shown]
    if not request.system:
        return found
    first = found[0] if found and found[0]["role"] == "system" else None
    if first is None:
        return [{"role": "system", "content": request.system}, *found]
    return [{**first, "content": f"{first['content']}\n\n{request.system}"}, *found[1:]]


def _shown(shown: Shown, own: Sequence[Json]) -> Json:
    if shown.at is None:
        return shown.message
    message = own[shown.at]
    if shown.memory:
        return {**message, "content": f"{shown.memory}\n\n{message['content']}"}
    if shown.results:
        return {**message, "content": next(iter(shown.results.values()))}
    return message


class _Tool(BaseTool):
    _door: Door = PrivateAttr()
    _who: Who = PrivateAttr()

    def _run(self, **arguments: Any) -> str:
        given = {name: value for name, value in arguments.items() if value is not None}
        return self._door.answer_blocking(self.name, given, self._who)


def _made(door: Door, who: Who, schema: dict[str, Any]) -> BaseTool:
    parameters = schema["parameters"]
    required = set(parameters.get("required", ()))
    fields: dict[str, Any] = {}
    for name, given in parameters["properties"].items():
        kind: Any = _TYPES.get(given.get("type"), Any)
        told = {"description": given.get("description", name)}
        fields[name] = (kind, Field(**told)) if name in required else (kind | None, Field(None, **told))
    arguments = cast("type[BaseModel]", create_model(f"{schema['name']}_arguments", **fields))
    made = _Tool(name=schema["name"], description=schema["description"], args_schema=arguments)
    made._door, made._who = door, who  # noqa: SLF001 - its own maker
    return made


__all__ = ["PagefileMemory"]
