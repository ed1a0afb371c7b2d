"""The measured model as LangChain calls one. Apart, since it needs LangChain to be imported."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.agents.loops import calls_of


class AskedModel(BaseChatModel):
    """Passes messages and tools on to the endpoint."""

    asked: Any
    tools: tuple[dict[str, Any], ...] = ()

    @property
    def _llm_type(self) -> str:
        return "measured"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        del tool_choice, kwargs
        return self.model_copy(
            update={"tools": tuple(convert_to_openai_tool(one)["function"] for one in tools)}
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("Only its asynchronous half is called.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager, kwargs
        said = await self.asked.answer(convert_to_openai_messages(messages), self.tools)
        calls = [
            {"id": call_id, "name": name, "args": arguments} for call_id, name, arguments in calls_of(said)
        ]
        message = AIMessage(said.get("content") or "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])
