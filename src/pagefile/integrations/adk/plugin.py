"""`PagefilePlugin`: memory for every agent of a runner."""

from dataclasses import dataclass
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.integrations.adk.contents import Reading, written
from pagefile.integrations.door import IN_TOOL, Door, Who, whose
from pagefile.lru import Lru

#: How many runs' requests are known until they end.
_RUNS = 1_000


@dataclass(slots=True)
class _Run:
    reading: Reading
    said: types.Content | None = None


class PagefilePlugin(BasePlugin):
    """Every model call gets its window, every run becomes a turn; nothing of memory is in a session.

    Args:
        tenant: whose users they are; by default each app is a tenant of its own.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False offers none of our tools: then tool results stay in requests.
        timeout_s: how long a callback waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        *,
        name: str = "pagefile",
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> None:
        super().__init__(name)
        self._door = Door(memory, "adk", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools)
        self._tenant, self._offers = tenant, tools
        self._runs: Lru[str, _Run] = Lru(_RUNS)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        if IN_TOOL.get():
            return None
        who = self._who(
            callback_context.session.app_name, callback_context.user_id, callback_context.session.id
        )
        own = list(llm_request.contents)
        reading = Reading.of(own)
        self._runs[callback_context.invocation_id] = _Run(reading)
        given = llm_request.config.system_instruction
        request = await self._door.request(who, reading.told, given if isinstance(given, str) else "")
        if request is None:
            return None
        names: dict[str, str] = {}
        llm_request.contents = [written(shown, own, reading.ids, names) for shown in request.shown]
        if request.system:
            llm_request.append_instructions([request.system])
        if self._offers:
            llm_request.append_tools(
                [tool for tool in self._tools(who) if tool.name not in llm_request.tools_dict]
            )
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        run = self._runs.get(callback_context.invocation_id)
        if run is not None and llm_response.content is not None and not llm_response.partial:
            run.said = llm_response.content
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        IN_TOOL.set(True)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
    ) -> dict[str, Any] | None:
        IN_TOOL.set(False)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        IN_TOOL.set(False)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        run = self._runs.pop(invocation_context.invocation_id, None)
        if run is None or run.said is None:
            return
        calls = [part for part in run.said.parts or [] if part.function_call is not None]
        answer = self._door.edge.attempt_here("the answer", lambda: _last_words(invocation_context), None)
        if calls and answer is None:
            # It waits for an approval, or for a result from elsewhere.
            return
        run.reading.add(run.said)
        session = invocation_context.session
        who = self._who(session.app_name, session.user_id, session.id)
        await self._door.finish(who, run.reading.told, answer if calls else None)

    def _who(self, app: str, user: str, session: str) -> Who:
        return whose(user, session, app if self._tenant is None else self._tenant)

    def _tools(self, who: Who) -> list[BaseTool]:
        return [_Tool(self._door, who, schema) for schema in self._door.tool_schemas(who).values()]


def _last_words(context: InvocationContext) -> str | None:
    """The answer of a run whose model gave it by calling a tool."""
    last = context.session.events[-1] if context.session.events else None
    if last is None or last.author == "user" or not last.is_final_response() or last.long_running_tool_ids:
        return None
    parts = last.content.parts or [] if last.content is not None else []
    return "".join(part.text or "" for part in parts if not part.thought) or None


class _Tool(BaseTool):
    def __init__(self, door: Door, who: Who, schema: dict[str, Any]) -> None:
        super().__init__(name=schema["name"], description=schema["description"])
        self._door, self._who, self._schema = door, who, schema

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema["parameters"]
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await self._door.answer(self.name, args, self._who)
