"""Document 004's middleware as one of LangChain's own; imported only where LangChain's agents are."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from pagefile.errors import MissingExtraError

try:
    from langchain.agents.middleware.types import AgentMiddleware, AgentState, ModelRequest, ModelResponse
except ImportError as error:
    raise MissingExtraError.of("langchain", "MemoryMiddleware in a LangChain agent") from error

from pagefile.standalone.fact_injection import MemoryMiddleware


class LangChainMemory(MemoryMiddleware, AgentMiddleware[AgentState[Any], Any, Any]):
    """What `MemoryMiddleware` is for `create_agent`: memory goes into each request and never into the state.

    LangChain looks for hooks in the class, and would add what `before_model` returns to the thread. So the class has
    none, while each object still has the document's own method.
    """

    before_model = cast("Any", AgentMiddleware).before_model

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tools = ()
        setattr(self, "before_model", partial(MemoryMiddleware.before_model, self))  # noqa: B010 - hides a hook

    @property
    def name(self) -> str:
        return MemoryMiddleware.__name__

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._with_memory(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._with_memory(request))

    def _with_memory(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        given = MemoryMiddleware.before_model(self, {"messages": request.messages})
        return request if given is None else request.override(messages=given["messages"])
