"""The memory of one run: its scope, what it knows, what the tools returned, and the turn it writes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import anyio
from pydantic_ai import (
    DeferredToolRequests,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters

from pagefile.edge.fail_open import FailOpen
from pagefile.edge.recorder import Asked, Happened, Returned, Said, begun, completed, kept, written
from pagefile.engine import Conversation
from pagefile.integrations.pydantic_ai import requests
from pagefile.integrations.pydantic_ai.messages import answer_text, as_history, called, happened, returned
from pagefile.records import Step, Turn
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.tiers import page_in
from pagefile.tiers.archive import Archive
from pagefile.tiers.facts import Facts
from pagefile.tiers.workspace import ToolRule, Workspace
from pagefile.window.parts import Language, MemoryPart, Parts, Placement
from pagefile.window.placeholder import step_note
from pagefile.window.wording import WORDINGS

R = TypeVar("R")
D = TypeVar("D")


@dataclass
class RunMemory:
    """One run of an agent. Failures are reported through `edge` and cost the run only its memory."""

    edge: FailOpen
    chat: Conversation
    run_id: str
    #: That of the run which asked: this one, unless it goes on with one whose calls waited for an approval.
    turn_id: str
    asked: Asked | None
    #: Tools that are not steps of a turn: ours, and those through which a model returns its output.
    apart: frozenset[str]
    #: That of the conversation.
    language: Language
    window_tokens: int
    placement: Placement
    history: bool
    #: Whether notes of earlier tool calls are shown, and repeated calls answered.
    notes: bool
    rules: tuple[ToolRule, ...] = ()
    turn: Turn | None = None
    #: What memory knows about the question, and the earlier turns; constant as long as the user's facts are the same.
    _known: Parts | None = None
    _revision: int = -1
    _kept: dict[requests.Key, requests.Kept] = field(default_factory=dict[requests.Key, requests.Kept])
    _excerpts: dict[str, str] = field(default_factory=dict[str, str])
    #: The run's messages so far, and the tools' original results, keyed by what the messages hold.
    _messages: Sequence[ModelMessage] = ()
    _returned: dict[requests.Key, Returned] = field(default_factory=dict[requests.Key, Returned])
    #: Whether a write failed when it was due.
    _behind: bool = False
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _writing: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    @property
    def question(self) -> str | None:
        return None if self.asked is None else self.asked.text

    @property
    def workspace(self) -> Workspace:
        return self.chat.workspace(rules=self.rules)

    # -- the turn ---------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        if self.asked is not None:
            self.turn = await self._write_shielded("recording the question", self._begun, None)

    async def complete(self, output: object, messages: Sequence[ModelMessage]) -> None:
        self._messages = messages
        if isinstance(output, DeferredToolRequests):
            # The turn stays open: the run that brings the results goes on with it.
            await self._finish("recording what was said", self._extended)
        else:
            await self._finish("recording the answer", partial(self._completed, output))

    async def abort(self) -> None:
        """The run was cancelled or failed: what it produced stays in the log."""
        await self._finish("recording the end of a run", self._aborted)

    async def _finish(self, what: str, work: Callable[[], Awaitable[object]]) -> None:
        with anyio.CancelScope(shield=True):
            if self._writing:
                await asyncio.wait(self._writing, timeout=self.edge.timeout_s)
            await self._write_shielded(what, work, None)

    async def _begun(self) -> Turn:
        return await begun(self.chat, cast("Asked", self.asked), self.turn_id)

    async def _extended(self) -> None:
        if self.asked is not None:
            await written(self.chat, await self._newest(), self._happened())

    async def _completed(self, output: object) -> None:
        answer = answer_text(output)
        if self.asked is None:
            if answer is not None:
                await self.chat.record(assistant=answer, id=self.turn_id)
            return
        await completed(self.chat, await self._newest(), self._happened(), answer)

    async def _aborted(self) -> None:
        if self.asked is not None:
            # An interrupted call has no result, so it is dropped.
            came = self._happened()
            while came and isinstance(came[-1], Said):
                came.pop()
            await self.chat.abort(await written(self.chat, await self._newest(), came))

    async def _newest(self) -> Turn:
        """The turn as logged: a write that timed out may have succeeded after all."""
        return await self._begun() if self.turn is None or self._behind else self.turn

    def _happened(self) -> list[Happened]:
        """What happened in the run, with the tools' original results, including those not in any message yet."""
        known = dict(self._returned)
        found = happened(self._messages, {self.turn_id, self.run_id}, self.apart)
        whole = [known.pop(_key(one), one) if isinstance(one, Returned) else one for one in found]
        return [*whole, *known.values()]

    async def _write_shielded(self, what: str, work: Callable[[], Awaitable[R]], otherwise: D) -> R | D:
        """Write something, even if the run is cancelled meanwhile."""
        task = asyncio.ensure_future(self.edge.attempt(what, work, otherwise, always=True))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return await asyncio.shield(task)

    # -- tools ------------------------------------------------------------------------------------------------------

    async def answered(self, call: ToolCallPart, schema: dict[str, Any]) -> str | None:
        """The answer to an equal earlier call; None if the tool has to run."""
        if not self.notes:
            return None
        cached = await self.edge.attempt(
            "looking for an equal call",
            lambda: self.workspace.trusted(self.edge.failures).lookup(
                call.tool_name, call.args_as_dict(), schema=schema
            ),
            None,
        )
        return None if cached is None else cached.answer

    async def keep(self, call: ToolCallPart, result: Any, messages: Sequence[ModelMessage]) -> Any:
        """Archive and remember a result. Returns what goes into the history: the result, or its placeholder."""
        self._messages = messages
        return await self._write_shielded("keeping a tool result", partial(self._keep, call, result), result)

    async def _keep(self, call: ToolCallPart, result: Any) -> Any:
        wrapped = cast("ToolReturn[Any]", result) if isinstance(result, ToolReturn) else None
        value = cast("Any", result) if wrapped is None else wrapped.return_value
        part = ToolReturnPart(call.tool_name, value, call.tool_call_id)
        raw = returned(part, {call.tool_call_id: called(call)})
        text = part.model_response_str()
        key = (call.tool_call_id, text)
        self._returned[key] = raw
        step = await self._stored(raw)
        if step.page is None or part.files:
            return cast("Any", result)
        engine = self.edge.memory.engine
        tokens = step.page_tokens if len(text) == step.page_chars else engine.counter.count(text)
        short = step_note(step, WORDINGS[self.language]) if step.whole else step.result
        paged = requests.Kept(text, tokens, short)
        if step.whole:
            self._kept[key] = paged
            return cast("Any", result)
        shown = (call.tool_call_id, paged.short)
        self._kept[shown], self._returned[shown] = paged, self._returned.pop(key)
        return paged.short if wrapped is None else replace(wrapped, return_value=paged.short)

    async def _stored(self, raw: Returned) -> Step:
        if self.turn is None:
            # The store did not accept the question, but the workspace may still take the result.
            tool, call_id = raw.call.tool, str(raw.call.call_id)
            seen = await self.workspace.absorb(tool, raw.call.input, raw.text, call_id=call_id)
            return Step(tool, None, seen.text, call_id, page=seen.archive_uuid, whole=seen.whole)
        async with self._lock:
            behind, self._behind = self._behind, True
            said = [one for one in self._happened() if isinstance(one, Said)]
            self.turn, step = await kept(self.chat, self.turn, said, raw)
            self._behind = behind
        return step

    # -- model calls --------------------------------------------------------------------------------------------------

    async def prepared(self, request: ModelRequestContext) -> ModelRequestContext:
        """The request with what memory knows, within the window; unchanged if memory fails."""
        self.apart |= {tool.name for tool in request.model_request_parameters.output_tools}
        self._known = await self.edge.attempt("recalling", self._recalled, self._known)
        known = self._known or Parts(memory=MemoryPart(language=self.language))
        work = partial(self._prepared, request, known)
        # `always`: this needs no store, and this run's results must be shown even while the store is being skipped.
        return await self.edge.attempt("preparing a request", work, request, always=True)

    async def _recalled(self) -> Parts:
        revision = await self.edge.memory.engine.tier(Facts).book.revision(self.chat.scope)
        if self._known is not None and revision == self._revision:
            return self._known
        self._revision = revision
        if self.notes:
            self.workspace.ask(self.question)
        window = await self.chat.context(
            None if self.turn is not None else self.question,
            turn=self.turn,
            window_tokens=self.window_tokens,
            placement="tail",  # a separate block, wherever it is placed here
        )
        return window.parts

    async def _prepared(self, request: ModelRequestContext, known: Parts) -> ModelRequestContext:
        messages = list(request.messages)
        # Notes on the tools' results change from request to request.
        most = self.edge.memory.engine.settings.workspace.max_tokens
        parts = (part for message in messages for part in message.parts)
        shown = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
        notes = self.workspace.text(most, shown) if self.notes else ""
        memory = known.memory.with_section("chunks", [notes] if notes else []).text
        start = requests.question_at(messages, self.run_id)
        # By choice, or if there is no user message to put it beside, memory goes after the instructions.
        heads = self.placement == "head" or start is None
        system = "\n\n".join(text for text in (known.system, memory if heads else "") if text)
        parameters = request.model_request_parameters
        if system:
            instructions = *(parameters.instruction_parts or ()), InstructionPart(system, dynamic=True)
            parameters = replace(parameters, instruction_parts=list(instructions))
        if start is None:
            return replace(request, model_request_parameters=parameters)
        before, (asked, *since) = messages[:start], messages[start:]
        question = cast("ModelRequest", asked)
        if not before and self.history:
            before, question = requests.following(as_history(known.turns, known.blobs), question)
        question = requests.with_memory(question, memory) if memory and not heads else question
        sent = await requests.fitted(before, question, since, self._fit(parameters))
        return replace(request, messages=sent, model_request_parameters=parameters)

    def _fit(self, parameters: ModelRequestParameters) -> requests.Fit:
        count = self.edge.memory.engine.counter.count
        texts = [part.content for part in parameters.instruction_parts or ()]
        texts += [
            f"{tool.name} {tool.description or ''} {tool.parameters_json_schema}"
            for tool in (*parameters.function_tools, *parameters.output_tools)
        ]
        taken = sum(MESSAGE_OVERHEAD + count(text) for text in texts)
        return requests.Fit(self.window_tokens - taken, count, self._kept, self._excerpt, self.language)

    async def _excerpt(self, kept: requests.Kept, room_tokens: int) -> str:
        """Passages that answer the question; the same ones as long as they fit."""
        engine = self.edge.memory.engine
        known = self._excerpts.get(kept.full)
        if known is None or engine.counter.count(known) > room_tokens:
            # Leaves some room, so that they still fit as the run continues.
            room = room_tokens * 3 // 4
            asked = page_in.Asked(self.question or kept.short)
            known = await engine.tier(Archive).part(self.chat.scope, kept.full, asked, room)
            self._excerpts[kept.full] = known
        return known


def _key(returned: Returned) -> requests.Key:
    return str(returned.call.call_id), returned.blocks[0] if isinstance(returned.blocks[0], str) else ""
