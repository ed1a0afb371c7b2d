"""Chat with the configured model, streamed: the window, the answer, the tool calls, and the turn in the log."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias, cast

from fastapi import Request, Response

from pagefile.engine import Conversation, Memory
from pagefile.errors import ConflictError, ModelError, ModelOutputError, PagefileError
from pagefile.integrations.recorder import given_up
from pagefile.ports import ChatModel, ToolCall, ViewRequest
from pagefile.records import Turn
from pagefile.service.auth import open_memory
from pagefile.service.events import EventStream, Say
from pagefile.service.problems import answered, problem_of, to_problem, unforeseen
from pagefile.service.routes import chat_of, router
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone import tool_schemas
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.receipt import Window
from pagefile.window.wording import WORDINGS, Language
from pagefile.wire import chat as wire
from pagefile.wire.requests import examples

#: After this many rounds of tool calls the model must answer with what it has.
MAX_ROUNDS = 8

_STREAM = {
    "description": "Events as they happen.",
    "content": {"text/event-stream": {"schema": {"type": "string"}, "example": examples()["ChatEvents"]}},
}

_NO_MODEL = "Set model.name, and model.base_url for any OpenAI-compatible endpoint, and start again."

#: Sends an event.
Tell: TypeAlias = Callable[[wire.ChatEvent], Awaitable[None]]


@dataclass(slots=True)
class ChatRun:
    memory: Memory
    model: ChatModel
    chat: Conversation
    asked: wire.AskChat
    turn: Turn
    #: The answer so far, the tool calls at its end, and why the model stopped.
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    window: Window | None = None
    checkpoint_version: int = 0
    done: bool = False

    @classmethod
    async def begun(
        cls, memory: Memory, model: ChatModel, chat: Conversation, asked: wire.AskChat
    ) -> "ChatRun":
        """Begin a turn. The user's message is on disk when this returns."""
        turn = await chat.begin(asked.message, id=asked.id)
        if turn.status != "open":
            raise ConflictError(f"Turn {turn.id!r} is already {turn.status}: ask again under a new id.")
        return cls(memory, model, chat, asked, turn)

    @property
    def _language(self) -> Language:
        return self.memory.engine.languages.default() if self.window is None else self.window.language

    async def run(self, say: Say) -> None:
        """Send events until the turn ends. Failures are sent too, as problem documents."""
        try:
            await self._answered(lambda event: say(event.event, event))
        except Exception as error:
            # Those of a model reveal nothing about the service.
            known = isinstance(error, PagefileError)
            problem = problem_of(error, shown=(ModelError,)) if known else unforeseen(error)
            # Abort first: a client that reads the error may look up the turn immediately.
            await self.end()
            await say("error", problem)

    async def end(self) -> None:
        """Abort the turn unless it was completed: it then enters no window, summary or index."""
        if not self.done:
            self.done = await given_up(self.chat, self.turn)

    # -- one turn -------------------------------------------------------------------------------------------------------

    async def _answered(self, tell: Tell) -> None:
        await tell(wire.ChatTurn(turn_id=self.turn.id, conversation_id=self.chat.id))
        self.checkpoint_version = (await self._checkpoint()).version
        for step in self.asked.steps:
            await self._step(tell, step.tool, step.input, step.result, step.call_id)
        for number in range(MAX_ROUNDS + 1):
            await self._recall(tell)
            await self._generate(tell, tools=number < MAX_ROUNDS)
            if not self.calls:
                await self._persist(tell, number + 1)
                return
            await self._tools(tell)
        raise ModelOutputError("The model calls tools that were not offered, and gives no answer.")

    async def _recall(self, tell: Tell) -> None:
        began = perf_counter()
        self.window = window = await self.chat.context(
            turn=self.turn, window_tokens=self.asked.window_tokens, instructions=self.asked.instructions
        )
        about = {name: getattr(window, name) for name in ("tokens", "budget", "ratio", "mode")}
        receipt = {"kept": window.receipt.tokens_by_block(), "degraded": list(window.receipt.degraded)}
        await tell(_ended("recall", began, window_id=window.id, **about, **receipt))
        await self._tell_checkpoint(tell)

    async def _generate(self, tell: Tell, *, tools: bool) -> None:
        began = perf_counter()
        self.calls = ()
        schemas = tool_schemas(self._language) if tools else ()
        messages = self.window.messages if self.window else []
        # What the model says after a tool call is a new paragraph.
        between = "\n\n" if self.text.strip() else ""
        async with aclosing(self.model.stream(messages, tools=schemas)) as pieces:
            async for piece in pieces:
                if piece.text:
                    text, between = between + piece.text, ""
                    self.text += text
                    await tell(wire.ChatToken(text=text))
                self.calls += piece.calls
                self.finish = piece.finish or self.finish
        await tell(_ended("generate", began))

    async def _tools(self, tell: Tell) -> None:
        began = perf_counter()
        for call in self.calls:
            given, _ = read_arguments(call.arguments)
            if isinstance(given, dict):
                result = await self.chat.call_tool(call.name, given, turn=self.turn)
            else:
                given = call.arguments
                result = WORDINGS[self._language].answers["bad_arguments"].format(given=call.arguments)
            await self._step(tell, call.name, given, result, call.id)
            await tell(wire.ChatLoaded(tool=call.name, arguments=cast("Any", given), chars=len(result)))
        await tell(_ended("tools", began))

    async def _persist(self, tell: Tell, model_calls: int) -> None:
        began = perf_counter()
        turn = self.turn = await self.chat.complete(self.turn, self.text)
        self.done = True
        await tell(_ended("persist", began))
        await self._tell_checkpoint(tell)
        counts = {name: getattr(turn, name) for name in ("seq", "user_tokens", "assistant_tokens", "tokens")}
        asked = {"window_tokens": self.window.tokens if self.window else 0, "model_calls": model_calls}
        await tell(wire.ChatDone(turn_id=turn.id, finish=self.finish, **counts, **asked))

    # -- helpers ------------------------------------------------------------------------------------------------------------

    async def _step(self, tell: Tell, tool: str, given: object, result: object, call_id: str | None) -> None:
        self.turn = await self.chat.step(self.turn, tool=tool, input=given, result=result, call_id=call_id)
        step = self.turn.steps[-1]
        if step.page is not None and step.tool not in LOADING_TOOLS:
            await tell(wire.ChatArchived(uuid=step.page, tool=step.tool, chars=step.page_chars))

    async def _tell_checkpoint(self, tell: Tell) -> None:
        now = await self._checkpoint()
        if now.version > self.checkpoint_version:
            self.checkpoint_version = now.version
            await tell(now)

    async def _checkpoint(self) -> wire.ChatCheckpoint:
        """The current checkpoint; version 0 if there is none."""
        request = ViewRequest(self.chat.scope, budget_tokens=0, min_turns=0)
        view = await self.memory.engine.store.reader.view(request)
        if view.checkpoint is None:
            return wire.ChatCheckpoint(id="", version=0, covered_through_seq=0)
        return wire.ChatCheckpoint.model_validate(view.checkpoint, from_attributes=True)


def _ended(node: wire.Node, began: float, **told: Any) -> wire.ChatNode:
    return wire.ChatNode(node=node, duration_ms=round((perf_counter() - began) * 1000, 3), told=told)


# -- the route -----------------------------------------------------------------------------------------------------------

routes = router("Chat")


@routes.post("/v1/chat/stream", status_code=200, response_class=EventStream, responses={200: _STREAM})
async def stream(request: Request, body: wire.AskChat) -> Response:
    """Have the model of the settings answer a message, as server-sent events.

    `turn` comes first, when the message is on disk. Then `node` (recall, generate, tools, persist) with its duration, `token` with words
    of the answer, `archived` and `loaded` when results leave the window and come back, `checkpoint` when a summary takes effect, and
    `done` with the turn's place and exact tokens. A stream that ends with `error` (a problem document), or that the client leaves, aborts
    the turn: it enters no window, summary or index. Lines that begin with a colon are heartbeats. The model's calls of
    `load_tool_history` and `search_tool_history` are answered here.
    """
    model = cast("ChatModel | None", request.app.state.model)
    if model is None:
        return answered(to_problem("no-model", _NO_MODEL))
    run = await ChatRun.begun(open_memory(request.app), model, chat_of(request, body), body)
    return EventStream(run.run, run.end)
