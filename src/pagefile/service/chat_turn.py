"""Chat with the configured model, streamed: the route, the window, what was retrieved, the answer, the tool calls, and the turn in the log."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import Annotated, Any, TypeAlias, TypeVar, cast

import anyio
from fastapi import Query, Request, Response

from pagefile.edge.recorder import given_up
from pagefile.engine import Conversation, Memory
from pagefile.engine.annotations import ModelCall, note_model_call
from pagefile.errors import ConflictError, ModelError, ModelOutputError, NotFoundError, PagefileError
from pagefile.ports import ChatModel, ToolCall, ViewRequest
from pagefile.records import Turn
from pagefile.service.auth import open_memory
from pagefile.service.chat_hooks import ChatHooks
from pagefile.service.events import EventStream
from pagefile.service.idempotency import HEADER, made_id
from pagefile.service.problems import answered, problem_of, to_problem, unforeseen
from pagefile.service.routes import chat_of, router
from pagefile.service.streams import Answer, EventId, Say, Streams, ended, reread
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone import ConversationStore, tool_schemas
from pagefile.standalone.knowledge_base import (
    DEFAULT_AGENT,
    Results,
    Route,
    find_route,
    results_block,
    retrieve,
)
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.receipt import Window
from pagefile.window.wording import WORDINGS, Language
from pagefile.wire import chat as wire
from pagefile.wire.requests import examples

#: After this many rounds of tool calls the model must answer with what it has.
MAX_ROUNDS = 8

_STREAM = {
    "description": "Server-sent events as they happen; `x-item-schema` is the schema of each, its `data` parsed.",
    "content": {
        EventStream.media_type: {
            "schema": {"type": "string"},
            # `itemSchema` in OpenAPI 3.2, which few tools read yet.
            "x-item-schema": {"$ref": wire.REFERENCE.format(model=wire.STREAM_EVENT)},
            "example": examples()["ChatEvents"],
        }
    },
}
_NOTHING_LEFT = {"description": "The reader has everything: `Last-Event-ID` names the last event."}
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "The id of the last event that was received: the answer goes on behind it.",
    "schema": {"type": "string", "maxLength": 2000},
}
#: How the reference describes the routes.
_EVENTS: dict[str, Any] = {
    "status_code": 200,
    "response_class": EventStream,
    "responses": {200: _STREAM, 204: _NOTHING_LEFT},
    "openapi_extra": {"parameters": [_LAST_EVENT_ID]},
}

_NO_MODEL = "Set model.name, and model.base_url for any OpenAI-compatible endpoint, and start again."

R = TypeVar("R")
#: Sends an event.
Tell: TypeAlias = Callable[[wire.ChatEvent], Awaitable[None]]


@dataclass(slots=True)
class ChatRun:
    memory: Memory
    model: ChatModel
    chat: Conversation
    asked: wire.AskChat
    turn: Turn
    hooks: ChatHooks
    #: What the router decided, and what the knowledge base has on it.
    route: Route = field(default_factory=Route)
    results: Results = field(default_factory=Results)
    #: Whether the knowledge base is asked, and the tokens for what it has.
    retrieves: bool = False
    room: int = 0
    #: The answer so far, the tool calls at its end, and why the model stopped.
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    window: Window | None = None
    checkpoint_version: int = 0
    done: bool = False
    ending: bool = False

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
            if isinstance(error, ConflictError | NotFoundError):
                turn = await reread(self)
                # Whoever aborted it is the reason, not what then could no longer be done.
                problem = problem_of(ended(turn)) if turn.status == "aborted" else problem
            # Abort first: a client that reads the error may look up the turn immediately.
            await self.end()
            await say("error", problem)

    async def end(self) -> None:
        """Abort the turn unless it was completed."""
        self.ending = True
        if not self.done:
            self.done = await given_up(self.chat, self.turn)

    # -- one turn -------------------------------------------------------------------------------------------------------

    async def _answered(self, tell: Tell) -> None:
        await tell(wire.ChatTurn(turn_id=self.turn.id, conversation_id=self.chat.id))
        self.checkpoint_version = (await self._checkpoint()).version
        for step in self.asked.steps:
            await self._step(tell, step.tool, step.input, step.result, step.call_id)
        await self._route(tell)
        for number in range(MAX_ROUNDS + 1):
            await self._recall(tell)
            if number == 0:
                await self._retrieve(tell)
            await self._generate(tell, tools=number < MAX_ROUNDS)
            if not self.calls:
                await self._persist(tell, number + 1)
                return
            await self._tools(tell)
        raise ModelOutputError("The model called tools that were not offered, and gave no answer.")

    async def _route(self, tell: Tell) -> None:
        began, degraded = perf_counter(), list[str]()
        decide, retriever = self.hooks.asking(self.chat.scope.user, self.chat.scope.tenant)
        asked = self.asked
        work = find_route(decide, asked.message, asked.session_id or self.chat.id, asked.agent_type)
        found = await self._tried("router", degraded, work)
        self.route = found or Route(agent_type=asked.agent_type or DEFAULT_AGENT)
        # With a retriever and no router, every question is looked up.
        self.retrieves = retriever is not None and (decide is None or self.route.use_retrieval)
        told = {"kb_prefix": self.route.kb_prefix, "agent_type": self.route.agent_type}
        await tell(_ended("route", began, **told, use_retrieval=self.retrieves, degraded=degraded))

    async def _recall(self, tell: Tell) -> None:
        began = perf_counter()
        settings = self.memory.settings
        budget = self.asked.window_tokens or settings.window_tokens
        self.room = min(self.hooks.settings.retrieval_tokens, budget // 4) if self.retrieves else 0
        self.window = window = await self.chat.context(
            turn=self.turn,
            window_tokens=self.asked.window_tokens,
            instructions=self.asked.instructions,
            answer_tokens=settings.answer_tokens + self.room,
        )
        about = {name: getattr(window, name) for name in ("tokens", "budget", "ratio", "mode")}
        receipt = {"kept": window.receipt.tokens_by_block(), "degraded": list(window.receipt.degraded)}
        await tell(_ended("recall", began, window_id=window.id, **about, **receipt))
        await self._tell_checkpoint(tell)

    async def _retrieve(self, tell: Tell) -> None:
        began, degraded = perf_counter(), list[str]()
        if self.retrieves:
            _, retriever = self.hooks.asking(self.chat.scope.user, self.chat.scope.tenant)
            work = retrieve(retriever, self.asked.message, self.route.kb_prefix)
            self.results = await self._tried("retriever", degraded, work) or []
        tokens = self._fit_results()
        await tell(_ended("retrieve", began, results=len(self.results), tokens=tokens, degraded=degraded))

    def _fit_results(self) -> int:
        """Drop the last results until the rest fits into the room that the window left; returns their tokens."""
        while block := results_block(self.results, self._language):
            tokens = self.memory.engine.counter.count(block) + MESSAGE_OVERHEAD
            if tokens <= self.room:
                return tokens
            self.results.pop()
        return 0

    def _prompt(self) -> list[Any]:
        messages: list[Any] = list(self.window.messages) if self.window else []
        if block := results_block(self.results, self._language):
            # Some endpoints reject a system message after the first user message.
            places = (at for at, message in enumerate(messages) if message["role"] != "system")
            messages.insert(next(places, len(messages)), {"role": "system", "content": block})
        return messages

    async def _generate(self, tell: Tell, *, tools: bool) -> None:
        began = perf_counter()
        self.calls = ()
        schemas = tool_schemas(self._language) if tools else ()
        messages = self._prompt()
        # What the model says after a tool call is a new paragraph.
        between = "\n\n" if self.text.strip() else ""
        async with aclosing(self.model.stream(messages, tools=schemas)) as pieces:
            async for piece in pieces:
                if piece.text:
                    text, between = between + piece.text, ""
                    self.text += text
                    if len(self.text) > self.memory.settings.max_message_chars:
                        raise ModelOutputError("The model's answer is longer than max_message_chars.")
                    await tell(wire.ChatToken(text=text))
                self.calls += piece.calls
                self.finish = piece.finish or self.finish
        await self._note_model(perf_counter() - began)
        await tell(_ended("generate", began, **({"prompt": messages} if self.asked.debug else {})))

    async def _note_model(self, seconds: float) -> None:
        """Beside the window, which model answered it and how long that took."""
        name, engine = getattr(self.model, "model", ""), self.memory.engine
        if self.window is not None and name:
            made = ModelCall(str(name), seconds, None, None, None, "", engine.clock.now())
            with engine.guard("annotations"):
                await note_model_call(engine, self.chat.scope, self.window.id, made)

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
        asked = {"window_tokens": self.window.tokens if self.window else 0, "model_calls": model_calls}
        await tell(wire.ChatDone.of_turn(turn, finish=self.finish, **asked))

    # -- helpers ------------------------------------------------------------------------------------------------------------

    async def _tried(self, what: str, degraded: list[str], work: Awaitable[R]) -> R | None:
        """The result of third-party code, if it comes in time; a failure is noted, logged and counted, and the question is answered without it."""

        async def in_time() -> R:
            with anyio.fail_after(self.hooks.settings.timeout_s):
                return await work

        # Only the kind: the message may quote an address or a key.
        return await self.memory.engine.guarded(
            what, lambda note: degraded.append(": ".join(note.split(": ")[:2])), in_time()
        )

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


# -- the routes ----------------------------------------------------------------------------------------------------------

routes = router("Chat")


@routes.post("/v1/chat/stream", name="stream_chat", **_EVENTS)
async def stream(request: Request, body: wire.AskChat) -> Response:
    """Have the configured model answer a message, as server-sent events.

    They begin with the model's first word, or after a second. A model that refuses with 429 before that is answered with 429 and its
    `Retry-After`; other failures, and later ones, are events.

    `turn` comes first: the message is on disk. Then `node` (route, recall, retrieve, generate, tools, persist) with its duration,
    `token` with words of the answer, `archived` and `loaded` when results leave the window and come back, `checkpoint` when a summary
    takes effect, and `done` with the turn's place and exact tokens, or `error` with a problem document. Lines that begin with a colon
    are heartbeats. The model's calls of `load_tool_history` and `search_tool_history` are answered here.

    Every event has an id. A client that loses its connection repeats the request with a `Last-Event-ID`, and gets the events after that one.
    The same `id` or `Idempotency-Key` alone returns the whole answer; the model is called only once. The answer of a completed turn
    comes from the log. `POST /v1/turns/abort` stops an answer.
    """
    model = cast("ChatModel | None", request.app.state.model)
    if model is None:
        return answered(to_problem("no-model", _NO_MODEL))
    memory = open_memory(request.app)
    if body.conversation_id is None:
        # Both are there: the request would not have been accepted otherwise.
        whose = cast("str", body.user_id), cast("str", body.session_id)
        name = await ConversationStore(memory, tenant=body.tenant).get_or_create_conversation_id(*whose)
        body = body.model_copy(update={"conversation_id": name})
    chat, last = chat_of(request, body), EventId.read(request.headers.get("last-event-id"))
    key = request.headers.get(HEADER)
    streams, hooks = cast("Streams", request.app.state.streams), cast("ChatHooks", request.app.state.hooks)
    turn = await _begun(chat, body, key, last)
    found = await _answer_of(turn, chat, streams, last)
    if found is not None:
        return found
    stays = body.on_disconnect or ("continue" if body.id or key or last else "abort")
    # Not the turn of this request, which is taken over.
    await streams.close_abandoned(chat, memory.engine.store.reader, besides=turn.id)
    run = ChatRun(memory, model, chat, body, turn, hooks)
    return await streams.start(run, hooks.settings.resume_s if stays == "continue" else 0).opened()


@routes.get("/v1/chat/stream", name="resume_chat", **_EVENTS)
async def resume(request: Request, params: Annotated[wire.ResumeParams, Query()]) -> Response:
    """Read an answer again, or continue after the event that `Last-Event-ID` names, as a browser's `EventSource` does by itself.

    An answer in progress is followed, and a completed one is read from the log. The model is not called.
    """
    chat, last = chat_of(request, params), EventId.read(request.headers.get("last-event-id"))
    # Adding nothing returns what is there.
    turn = await chat.extend(params.id, ())
    found = await _answer_of(turn, chat, cast("Streams", request.app.state.streams), last)
    if found is None:
        raise ConflictError(
            f"Turn {turn.id!r} is open, but no answer is in progress here: send its message again with its id."
        )
    return found


async def _answer_of(
    turn: Turn, chat: Conversation, streams: Streams, last: EventId | None
) -> Response | None:
    """The answer of a turn that is done or in progress; None if neither."""
    if turn.status == "done":
        if last is not None and last.is_end and last.turn_id == turn.id:
            return Response(status_code=204)
        return (await Answer.stored(turn, last)).response(replayed=True)
    live = streams.find(chat, turn.id)
    if live is not None:
        return await live.opened() if last is None else live.response(str(last))
    if turn.status == "aborted":
        raise ended(turn)
    return None


async def _begun(chat: Conversation, asked: wire.AskChat, key: str | None, last: EventId | None) -> Turn:
    """The turn of a request, which is on disk when this returns: a new one, or the one that was begun before."""
    if asked.id is None and key is not None:
        for attempt in count():
            # An answer that failed is worth another attempt with the same key.
            name = made_id(key, chat.scope.tenant, chat.id, "chat", str(attempt))
            turn = await chat.begin(asked.message, id=name)
            if turn.status != "aborted":
                return turn
    return await chat.begin(asked.message, id=asked.id or (last and last.turn_id))
