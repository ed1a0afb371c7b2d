"""The agents: a plain loop that trims, LangChain with its own middlewares, and a loop over Pagefile's windows."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import httpx

from benchmarks.agents.world import SYSTEM, Json, Task, Tool, World
from benchmarks.gateway_model import trimmed
from pagefile import Memory
from pagefile.shapes.skeleton import as_object
from pagefile.standalone import tool_schemas
from pagefile.text.tokens import TokenCounter, open_counter

BUDGET = 2_000
_ANSWER_TOKENS = 120
#: More calls than these for one message are a model that goes in circles.
_ROUNDS = 5


class Model:
    """An OpenAI-compatible endpoint, asked without chance; counts what it is asked."""

    def __init__(self, url: str, name: str) -> None:
        self._http = httpx.AsyncClient(base_url=url.rstrip("/"), timeout=3600, trust_env=False)
        self.url, self.name, self.prompt_tokens, self.requests = url, name, 0, 0

    async def close(self) -> None:
        await self._http.aclose()

    async def answer(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Json]) -> Json:
        body = {
            "model": self.name,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": _ANSWER_TOKENS,
            **({"tools": [{"type": "function", "function": one} for one in tools]} if tools else {}),
        }
        response = (await self._http.post("/chat/completions", json=body)).raise_for_status().json()
        usage: Json = response.get("usage") or {}
        self.prompt_tokens += usage.get("prompt_tokens", 0)
        self.requests += 1
        return response["choices"][0]["message"]


class ScriptedCalls(Model):
    """Makes the calls that a task asks for by script, and leaves the rest to the model, without tools: what its loop kept is measured.

    A small model does not get as far by itself: after its first result it calls again, or talks about a tool.
    """

    def __init__(self, url: str, name: str, task: Task) -> None:
        super().__init__(url, name)
        self._task = task

    async def answer(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Json]) -> Json:
        place = max(at for at, one in enumerate(messages) if one["role"] == "user")
        said, ask = str(messages[place]["content"]), None
        if tools:
            ask = next((one for one in self._task.asks if said.endswith(one["say"])), None)
        if ask is None:
            return await super().answer(messages, ())
        if len(messages) > place + 1:
            # Not the same each time: a small model repeats an answer that it has seen often.
            seen = "{} 我看过了。" if self._task.language == "zh" else "I have looked at {}."
            return {"role": "assistant", "content": seen.format(ask["key"])}
        tool = next(one for one in self._task.tools if one.name == ask["tool"])
        arguments = json.dumps({tool.argument: ask["key"]}, ensure_ascii=False)
        function = {"name": tool.name, "arguments": arguments}
        call = {"id": f"call_{self._task.asks.index(ask)}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


def functions(tools: Sequence[Tool]) -> list[Json]:
    return [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in tools]


def calls_of(message: Mapping[str, Any]) -> list[tuple[str, str, Json]]:
    """Id, name and arguments of each call; arguments that are not JSON are none."""
    return [
        (call["id"], call["function"]["name"], _arguments(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]


def _arguments(text: str) -> Json:
    try:
        return dict(as_object(json.loads(text)) or {})
    except ValueError:
        return {}


class Agent(ABC):
    """Answers one message after the other in one conversation."""

    name: str

    def __init__(self, model: Model, world: World) -> None:
        self.model, self.world = model, world
        self.language = world.task.language
        self.counter: TokenCounter = open_counter()

    @abstractmethod
    async def say(self, text: str) -> str:
        """What it answers, after all tool calls it makes."""


class Trimmed(Agent):
    """The newest messages that fit."""

    name = "trimming"

    def __init__(self, model: Model, world: World) -> None:
        super().__init__(model, world)
        self._history: list[Json] = [{"role": "system", "content": SYSTEM[self.language]}]
        self._tools = functions(world.task.tools)

    async def say(self, text: str) -> str:
        self._history.append({"role": "user", "content": text})
        for _ in range(_ROUNDS):
            said = await self.model.answer(self._fitting(), self._tools)
            self._history.append(
                {key: said.get(key) for key in ("role", "content", "tool_calls") if said.get(key)}
            )
            calls = calls_of(said)
            if not calls:
                return said.get("content") or ""
            for call_id, name, arguments in calls:
                result = self.world.call(name, arguments)
                self._history.append({"role": "tool", "tool_call_id": call_id, "content": result})
        return ""

    def _fitting(self) -> list[Json]:
        tools = self.counter.count(json.dumps(self._tools, ensure_ascii=False))
        return list(trimmed(self._history, BUDGET - _ANSWER_TOKENS - tools, self.counter))


class Pagefile(Agent):
    """Windows of Pagefile's, with its two tools beside the task's."""

    name = "Pagefile"

    def __init__(self, model: Model, world: World, memory: Memory) -> None:
        super().__init__(model, world)
        self._chat = memory.conversation(world.task.name, user_id="bench")
        shown = "zh" if self.language == "zh" else "en"
        self._tools = [*functions(world.task.tools), *tool_schemas(shown)]
        self._own = {one.name for one in world.task.tools}

    async def say(self, text: str) -> str:
        turn = await self._chat.begin(text)
        for _ in range(_ROUNDS):
            window = await self._chat.context(
                turn=turn,
                window_tokens=BUDGET,
                tools=self._tools,
                answer_tokens=_ANSWER_TOKENS,
                instructions=SYSTEM[self.language],
            )
            said = await self.model.answer(window.messages, self._tools)
            calls = calls_of(said)
            if not calls:
                answer = said.get("content") or ""
                await self._chat.complete(turn, answer)
                return answer
            for call_id, name, arguments in calls:
                own = name in self._own
                result = (
                    self.world.call(name, arguments)
                    if own
                    else await self._chat.call_tool(name, arguments, turn=turn)
                )
                turn = await self._chat.step(turn, tool=name, input=arguments, result=result, call_id=call_id)
        await self._chat.abort(turn)
        return ""


class LangChain(Agent):
    """`create_agent` with context editing and summarization, as its documentation combines them."""

    name = "LangChain"

    def __init__(self, model: Model, world: World) -> None:
        super().__init__(model, world)
        agents, middleware = import_module("langchain.agents"), import_module("langchain.agents.middleware")
        chat = import_module("benchmarks.agents.chat_model").AskedModel(asked=model)
        count = self._tokens
        self._agent = agents.create_agent(
            chat,
            [self._tool(one) for one in world.task.tools],
            system_prompt=SYSTEM[self.language],
            middleware=[
                middleware.SummarizationMiddleware(
                    chat, trigger=("tokens", BUDGET * 3 // 4), keep=("messages", 4), token_counter=count
                ),
                middleware.ContextEditingMiddleware(
                    edits=[middleware.ClearToolUsesEdit(trigger=BUDGET // 2, keep=1)]
                ),
            ],
            checkpointer=import_module("langgraph.checkpoint.memory").InMemorySaver(),
        )

    def _tool(self, tool: Tool) -> Any:
        structured = import_module("langchain_core.tools").StructuredTool

        def call(**arguments: Any) -> str:
            return self.world.call(tool.name, arguments)

        return structured.from_function(
            call, name=tool.name, description=tool.description, args_schema=tool.parameters
        )

    def _tokens(self, messages: Sequence[Any]) -> int:
        return sum(self.counter.count(str(one.content)) for one in messages)

    async def say(self, text: str) -> str:
        config = {"configurable": {"thread_id": self.world.task.name}, "recursion_limit": 8 * _ROUNDS}
        errors: Any = import_module("langgraph.errors").GraphRecursionError
        try:
            done = await self._agent.ainvoke({"messages": [{"role": "user", "content": text}]}, config)
        except errors:
            return ""
        return str(done["messages"][-1].content)


AGENTS = (Trimmed.name, LangChain.name, Pagefile.name)


@asynccontextmanager
async def agent(name: str, model: Model, world: World, folder: str) -> AsyncGenerator[Agent]:
    if name == Trimmed.name:
        yield Trimmed(model, world)
    elif name == LangChain.name:
        yield LangChain(model, world)
    else:
        async with Memory.open(f"sqlite:///{folder}/memory.db") as memory:
            yield Pagefile(model, world, memory)
