"""Strands Agents: memory as one plug-in.

```python
agent = Agent(model, tools=tools, plugins=[PagefilePlugin(memory, "conv-1", user_id="ada")])
await agent.invoke_async("What am I allergic to?")
```
"""

import base64
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.engine.arguments import result_text
from pagefile.errors import MissingExtraError, SettingsError
from pagefile.gateway.exchanges import Json
from pagefile.gateway.sse import object_of
from pagefile.integrations.door import (
    IN_TOOL,
    Door,
    Shown,
    assistant,
    calls_of,
    image,
    plain,
    result,
    user,
    whose,
)

try:
    from strands import Agent
    from strands.hooks import (
        AfterInvocationEvent,
        AfterToolCallEvent,
        BeforeInvocationEvent,
        BeforeToolCallEvent,
    )
    from strands.middleware import InvokeModelContext, InvokeModelStage
    from strands.plugins import Plugin
    from strands.types.tools import AgentTool
except ImportError as error:
    raise MissingExtraError.of("strands", "The Strands integration") from error

#: What a swarm puts before and after the user's words when it tells an agent of a task that another one handed over.
_OF_SWARM, _HANDED, _ASKED = "Context:\n", "\n\nHandoff Message: ", "\n\nUser Request: "
_AFTER_ASKED = (
    "\n\nPrevious agents who",
    "\n\nShared knowledge from",
    "\n\nOther agents available",
    "\n\nYou have access to swarm",
)


class PagefilePlugin(Plugin):
    """The memory of one conversation: every model call gets its window, every request to the agent becomes a turn.

    Nothing of memory is in `agent.messages`. An agent without earlier messages sees those of the log.

    Args:
        conversation_id: which conversation the agent leads.
        user_id: whose memory it is; without one, nothing is shared between conversations.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False offers none of our tools: then tool results stay in requests.
        timeout_s: how long a hook waits for the memory before the run continues without it.
    """

    @property
    def name(self) -> str:
        return "pagefile"

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
        super().__init__()
        self._door = Door(memory, "strands", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools)
        self._who, self._offers = whose(user_id, conversation_id, tenant), tools
        self._agent: Agent | None = None
        #: Whether the agent runs as a tool of another one: then it is asked by a model.
        self._within = False

    def init_agent(self, agent: Agent) -> None:
        if self._agent is not None:
            raise SettingsError(
                "A PagefilePlugin is the memory of one agent's conversation: make another one, with a conversation_id "
                "of its own, for this agent."
            )
        self._agent = agent
        agent.add_middleware(InvokeModelStage.Input, self._prepared)
        agent.add_hook(self._begun, BeforeInvocationEvent)
        agent.add_hook(self._ended, AfterInvocationEvent)
        agent.add_hook(self._in_tool, BeforeToolCallEvent)
        agent.add_hook(self._after_tool, AfterToolCallEvent)
        if self._offers:
            taken = set(agent.tool_names)
            schemas = self._door.tool_schemas(self._who)
            own = [_Tool(self, schema) for name, schema in schemas.items() if name not in taken]
            agent.tool_registry.process_tools(cast("list[Any]", own))

    async def answer(self, tool: str, arguments: dict[str, Any]) -> str:
        """What the model reads for its call of one of our tools."""
        return await self._door.answer(tool, arguments, self._who)

    def _begun(self, event: BeforeInvocationEvent) -> None:
        self._within = IN_TOOL.get()

    def _in_tool(self, event: BeforeToolCallEvent) -> None:
        IN_TOOL.set(True)

    def _after_tool(self, event: AfterToolCallEvent) -> None:
        IN_TOOL.set(self._within)

    async def _prepared(self, context: InvokeModelContext) -> InvokeModelContext:
        if self._within:
            return context
        own = cast("list[Json]", list(context.messages))
        system = context.system_prompt
        given = (
            system if isinstance(system, str) else "\n".join(str(one.get("text", "")) for one in system or ())
        )
        request = await self._door.request(self._who, [_told(message) for message in own], given)
        if request is None:
            return context
        messages: Any = _merged([_sent(shown, own) for shown in request.shown])
        if not request.system:
            return context.replace(messages=messages)
        more: Any = f"{given}\n\n{request.system}" if given else request.system
        if isinstance(system, list):
            more = [*system, {"text": request.system}]
        return context.replace(messages=messages, system_prompt=more)

    async def _ended(self, event: AfterInvocationEvent) -> None:
        ended = event.result
        if self._within or ended is None or ended.stop_reason == "interrupt":
            # It failed, and its turn stays open for another attempt; or it waits for an approval.
            return
        told = [_told(cast("Json", message)) for message in event.agent.messages]
        structured = ended.structured_output
        answer = None if structured is None else structured.model_dump_json()
        await self._door.finish(self._who, told, answer)


class _Tool(AgentTool):
    def __init__(self, plugin: PagefilePlugin, schema: dict[str, Any]) -> None:
        super().__init__()
        self._plugin, self._schema = plugin, schema

    @property
    def tool_name(self) -> str:
        return self._schema["name"]

    @property
    def tool_spec(self) -> Any:
        described = {name: self._schema[name] for name in ("name", "description")}
        return {**described, "inputSchema": {"json": self._schema["parameters"]}}

    @property
    def tool_type(self) -> str:
        return "python"

    async def stream(
        self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any
    ) -> AsyncGenerator[Any, None]:
        given = cast("Any", tool_use["input"])
        text = await self._plugin.answer(self.tool_name, given if isinstance(given, dict) else {})
        yield {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": text}]}


def _told(message: Json) -> list[Json]:
    blocks: list[Json] = message["content"]
    texts = [block["text"] for block in blocks if "text" in block]
    if message["role"] == "assistant":
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        thoughts = [
            block["reasoningContent"].get("reasoningText", {}).get("text", "")
            for block in blocks
            if "reasoningContent" in block
        ]
        made = assistant("\n".join(texts), [(one["toolUseId"], one["name"], one["input"]) for one in uses])
        return [{**made, "reasoning_content": "\n".join(thoughts)} if any(thoughts) else made]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    told = [result(one["toolUseId"], _result_text(one["content"])) for one in results]
    texts = [_users(text) for text in texts]
    pictures = [_picture(block["image"]) for block in blocks if "image" in block]
    if pictures:
        told.append(user([*({"type": "text", "text": text} for text in texts), *pictures]))
    elif texts:
        told.append(user("\n".join(texts)))
    return told


def _users(text: str) -> str:
    if not text.startswith(_OF_SWARM):
        return text
    handed, _, rest = text.replace(_OF_SWARM, "\n\n", 1).partition(_ASKED)
    ends = [at for after in _AFTER_ASKED if (at := rest.find(after)) >= 0]
    if not ends or (handed and not handed.startswith(_HANDED)):
        return text
    return rest[: min(ends)]


def _picture(given: Json) -> Json:
    data = given.get("source", {}).get("bytes") or b""
    return image(f"image/{given.get('format', 'png')}", base64.b64encode(data).decode())


def _result_text(blocks: Sequence[Json]) -> str:
    return "\n".join(block["text"] if "text" in block else result_text(block.get("json")) for block in blocks)


def _sent(shown: Shown, own: Sequence[Json]) -> Json:
    """A message as memory shows it; the agent's own are never changed, only copied."""
    if shown.at is None:
        return _of_log(shown.message)
    message = own[shown.at]
    if shown.memory:
        return {**message, "content": [{"text": shown.memory}, *message["content"]]}
    if shown.results:
        return {**message, "content": [_with_result(block, shown) for block in message["content"]]}
    return message


def _with_result(block: Json, shown: Shown) -> Json:
    given = block.get("toolResult")
    text = None if given is None else shown.results.get(given["toolUseId"])
    return block if text is None else {"toolResult": {**cast("Json", given), "content": [{"text": text}]}}


def _of_log(message: Json) -> Json:
    text = plain(message)
    if message["role"] == "tool":
        given = {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": text}]}
        return {"role": "user", "content": [{"toolResult": given}]}
    uses = [
        {"toolUse": {"toolUseId": call_id, "name": name, "input": object_of(given) or {}}}
        for call_id, name, given in calls_of(message)
    ]
    return {"role": message["role"], "content": [*([{"text": text}] if text else []), *uses]}


def _merged(messages: Sequence[Json]) -> list[Json]:
    """The messages in turns of user and assistant, as Bedrock wants them: results of one round are one message."""
    found: list[Json] = []
    for message in messages:
        if found and found[-1]["role"] == message["role"]:
            found[-1] = {**found[-1], "content": [*found[-1]["content"], *message["content"]]}
        else:
            found.append(message)
    return found


__all__ = ["PagefilePlugin"]
