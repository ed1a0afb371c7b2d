"""Prepares a turn's content for the log: the short form, or the messages of a provider's client."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypeVar
from uuid import uuid4

from pagefile.content import Message, Shape, Text, ToolResult, media_in, message_json
from pagefile.engine import arguments
from pagefile.engine.engine import Engine
from pagefile.engine.lifetime import shielded
from pagefile.engine.log_queries import turn_in
from pagefile.engine.page_tools import loaded_again
from pagefile.errors import ConflictError, ErasedError, InvalidArgumentError, NotFoundError, PagefileError
from pagefile.ports import Abort, Complete, EntryQuery, Extend, Labels, TurnDraft, ViewRequest
from pagefile.records import JsonObject, Scope, Step, Turn, checked_id, plain_layout
from pagefile.shapes.call_order import answer, answered_steps, calls_of, prepared, question
from pagefile.shapes.parser import Parsed, listed, parsed
from pagefile.shapes.renderer import given_back
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.stores import rules
from pagefile.tiers.base import off_loop
from pagefile.tiers.workspace import Workspaces
from pagefile.window.measure import layout_tokens, measured_step, side_tokens, turn_tokens
from pagefile.window.placeholder import loaded_chars

logger = logging.getLogger("pagefile")

R = TypeVar("R")

#: From this many characters on, counting tokens would block the event loop for too long.
_THREAD_FROM_CHARS = 50_000
#: Turns read at a time when looking for one by its id.
_NEWEST, _SLICE = 20, 500

#: Roles of messages whose whole content is a tool's result.
_TELLING_RESULTS = frozenset({"tool", "function"})

#: After this many erasures during one write, the write is retried once more and then fails.
_ERASURES_MET = 3


class Desk:
    """Converts what callers pass into what a log can hold, for one conversation."""

    def __init__(self, engine: Engine, scope: Scope, agent: str | None, labels: Labels) -> None:
        self.engine, self.scope = engine, scope
        self.agent, self.labels = agent, labels

    # -- in -----------------------------------------------------------------------------------------------------------

    async def append(
        self,
        status: Literal["open", "done"],
        user: str | None,
        assistant: str | None,
        messages: Iterable[object] | None,
        steps: Iterable[arguments.StepLike],
        *,
        turn_id: str | None,
        at: datetime | None,
        metadata: JsonObject | None,
    ) -> Turn:
        """Write a new turn, whichever way it was given."""
        engine, most, steps = (
            self.engine,
            self.engine.settings.max_message_chars,
            tuple(steps) if steps else (),
        )
        if messages is not None and (user is not None or assistant is not None or steps):
            raise InvalidArgumentError(
                "Give either messages or the short form (user, assistant, steps), not both."
            )
        given = None if messages is None else await self._listed(messages)
        # Too long a text is refused before anything reads it.
        user = arguments.checked_message(user, "user", most)
        assistant = arguments.checked_message(assistant, "assistant", most)
        user, assistant = await self.redacted(user), await self.redacted(assistant)
        metadata = await self.redacted(metadata)
        turn_id = str(uuid4()) if turn_id is None else checked_id(turn_id, "turn id")

        async def write() -> Turn:
            if given is None:
                content = await self._short(user, assistant, steps, turn_id)
            else:
                content = await self._whole(given, turn_id, done=status == "done")
            draft = TurnDraft(
                scope=self.scope,
                id=turn_id,
                status=status,
                at=arguments.moment_said(at) if at is not None else engine.clock.now(),
                counter=engine.counter.name,
                metadata=arguments.checked_metadata(metadata),
                agent=self.agent,
                labels=self.labels,
                **content,
            )
            began = perf_counter()
            append = engine.store.log.append(draft)
            turn = await (self.written(turn_id, draft.steps, append) if draft.steps else append)
            engine.meter.observe("pagefile_store_seconds", perf_counter() - began, verb="append")
            return turn

        return await behind_erasures(write)

    async def redacted(self, value: Any) -> Any:
        """Without what the tenant's policy removes before anything is stored."""
        return await self.engine.redactor.clean(self.scope.tenant, value)

    async def redacted_step(self, step: Step) -> Step:
        if not self.engine.redactor.applies(self.scope.tenant):
            return step
        return replace(step, input=await self.redacted(step.input), result=await self.redacted(step.result))

    async def _listed(self, messages: object) -> Sequence[object]:
        for place, message in enumerate(given := listed(messages)):
            # Before anything is made of it: to write and read a text of 30 MB holds everybody up.
            _refuse_beyond(self.engine.settings.max_message_chars, place, _said_chars(message))
        return await self.engine.redactor.messages(self.scope.tenant, given)

    async def _short(
        self, user: str | None, assistant: str | None, steps: Sequence[arguments.StepLike], turn_id: str
    ) -> dict[str, Any]:
        """The content of a turn in the short form: the fields of a draft."""
        if user is None and assistant is None:
            raise InvalidArgumentError(
                "A turn needs a user message or an assistant message: both are missing or blank."
            )
        most = self.engine.settings.max_result_chars
        raw = arguments.checked_steps(steps, turn_id, most) if steps else ()
        raw = [await self.redacted_step(step) for step in raw]
        self._ask(user if raw else None)
        pairs = [await self.kept(step, turn_id, user, is_open=False) for step in raw]
        kept = tuple(step for step, _ in pairs)
        if len(user or "") + len(assistant or "") < _THREAD_FROM_CHARS:
            count = self.engine.counter.count
            user_tokens, assistant_tokens = count(user) if user else 0, count(assistant) if assistant else 0
        else:
            user_tokens, assistant_tokens = await self.count(user), await self.count(assistant)
        return {
            "user": user,
            "assistant": assistant,
            "steps": kept,
            "user_tokens": user_tokens,
            "assistant_tokens": assistant_tokens,
            "tokens": turn_tokens(user, user_tokens, assistant, assistant_tokens, kept),
            "epoch": _oldest(epoch for _, epoch in pairs),
        }

    async def _whole(self, messages: Iterable[object], turn_id: str, *, done: bool) -> dict[str, Any]:
        """The same for a turn given as messages; one that is not done has no answer yet, whatever was said in it."""
        found = self._parsed(messages, turn_id)
        self._ask(question(found.messages) if found.steps else None)
        steps, epoch = await self._kept_steps(found, turn_id, None)
        user, assistant = question(found.messages), answer(found.messages) if done else None
        plain = _is_plain(found.messages, user, len(steps), assistant)
        return {
            "user": user,
            "assistant": assistant,
            "steps": tuple(steps.values()),
            "user_tokens": await self.count(user),
            "assistant_tokens": await self.count(assistant),
            "tokens": await self._cost(prepared(found.messages) if done else found.messages, steps),
            "layout": None if plain else found.messages,
            "blobs": found.blobs,
            "epoch": epoch,
        }

    async def addition(self, messages: Iterable[object], turn: Turn) -> Extend:
        """Messages to be added to a turn in its current state."""
        messages = await self._listed(messages)
        found = self._parsed(messages, turn.id, turn)
        steps, epoch = await self._kept_steps(found, turn.id, turn)
        known, now = len(turn.steps), len(turn.messages)
        tokens = await self._cost(found.messages, dict(enumerate(turn.steps)) | steps)
        new = tuple(step for number, step in steps.items() if number >= known)
        results = {number: step for number, step in steps.items() if number < known}
        asked = question((*turn.messages, *found.messages))
        user = None if asked == turn.user else asked
        said = user, await self.count(user)
        content = found.messages, tokens, new, results, found.blobs
        return Extend(self.scope, turn.id, *content, *said, after=now, epoch=epoch)

    async def ending(self, text: str | None, turn: Turn) -> Complete:
        """The answer of a turn in its current state: the one given, or else what the messages say."""
        said = None if turn.layout is None else answer(turn.layout)
        text = said if text is None else await self.redacted(text)
        tokens = await self.count(text)
        added = side_tokens(text, tokens) if text != said else 0
        if turn.layout is not None:
            # While it ran it was counted message by message; only now is it known which calls were never
            # answered.
            added += await self._cost(prepared(turn.layout), dict(enumerate(turn.steps))) - turn.tokens
        return Complete(self.scope, turn.id, text, tokens, added, after=len(turn.messages))

    async def given_up(self, turn: Turn | str) -> Turn:
        """End a turn without an answer, also while the caller is being cancelled."""
        engine, turn_id = self.engine, arguments.turn_id_of(turn)

        async def write() -> Turn:
            said = (turn if isinstance(turn, Turn) else await self.found(turn_id)).spoken
            # A done turn has its results still; the log refuses to abort it.
            counted = said.status != "done" and said.layout is not None
            tokens = await self._cost(said.layout or (), {}) if counted else None
            return await engine.store.log.advance(Abort(self.scope, turn_id, tokens))

        changed = await shielded(write)
        await engine.absorb(changed)
        return changed

    async def since(self, messages: Sequence[object], turn: Turn, after: int) -> Turn:
        """The turn before these messages were added, anywhere after the first `after`; unchanged if they were not."""
        messages = await self._listed(messages)
        said = _said(self._parsed(messages, turn.id, as_of(turn, after)).messages)
        for place in range(after, len(turn.messages)):
            # Parsing them for every position would be slow: comparing the texts rules out most positions.
            if said != _said(turn.messages[place : place + len(said)]):
                continue
            before = as_of(turn, place)
            found = self._parsed(messages, turn.id, before)
            change = Extend(self.scope, turn.id, found.messages, 0, tuple(found.steps), after=place)
            if rules.stands_in(turn, change):
                return before
        return turn

    async def count(self, text: str | None) -> int:
        if not text:
            return 0
        return await off_loop(partial(self.engine.counter.count, text), len(text), _THREAD_FROM_CHARS)

    def _parsed(self, messages: Iterable[object], turn_id: str, turn: Turn | None = None) -> Parsed:
        steps, before = ((), ()) if turn is None else (turn.steps, turn.messages)
        made_id = partial(arguments.made_call_id, turn_id)
        count, most = self.engine.counter.count, self.engine.settings.max_message_chars
        found = parsed(messages, steps=steps, before=before, made_id=made_id, count=count)
        # An existing turn may get an empty answer, such as an Anthropic refusal.
        if turn is None and not any(
            not isinstance(part, Text) or part.text.strip()
            for message in found.messages
            for part in message.parts
        ):
            raise InvalidArgumentError("messages must contain at least one message that is not empty.")
        for place, message in enumerate(found.messages):
            _refuse_beyond(most, place, len(json.dumps(message_json(message), ensure_ascii=False)))
        for step in (*found.steps, *found.results.values()):
            arguments.check_result(step.tool, step.result, self.engine.settings.max_result_chars)
        return found

    async def _kept_steps(
        self, found: Parsed, turn_id: str, turn: Turn | None
    ) -> tuple[dict[int, Step], int | None]:
        """The steps that the messages start or answer, by index, as stored, and the oldest epoch of their pages."""
        answered, known = answered_steps(found.messages), 0 if turn is None else len(turn.steps)
        steps = dict(found.results) | dict(enumerate(found.steps, known))
        said = question(found.messages) if turn is None else turn.user
        kept: dict[int, Step] = {}
        epochs: list[int | None] = []
        for number in sorted(steps):
            if number in answered:
                kept[number], epoch = await self.kept(steps[number], turn_id, said, is_open=turn is not None)
                epochs.append(epoch)
            else:
                kept[number] = measured_step(steps[number], self.engine.counter.count)
        self._disregard(found, steps)
        return kept, _oldest(epochs)

    def _ask(self, query: str | None) -> None:
        """Tell workspaces what the steps that follow are to answer, before they are kept."""
        for workspaces in self._workspaces:
            workspaces.asked(self.scope, "", query)

    def _disregard(self, found: Parsed, steps: Mapping[int, Step]) -> None:
        """Tell workspaces which results are errors, or more than their text: a step does not say so."""
        results = [
            part for message in found.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        for part in (part for part in results if (part.error or part.media) and part.step in steps):
            for workspaces in self._workspaces:
                workspaces.disregard(self.scope, steps[part.step], error=part.error)

    @property
    def _workspaces(self) -> list[Workspaces]:
        return [tier for tier in self.engine.tiers if isinstance(tier, Workspaces)]

    async def _cost(self, messages: Sequence[Message], steps: Mapping[int, Step]) -> int:
        counts = {number: (step.call_tokens, step.result_tokens) for number, step in steps.items()}
        cost = partial(layout_tokens, messages, counts, self.engine.counter.count)
        return await off_loop(cost, sum(len(message.text) for message in messages), _THREAD_FROM_CHARS)

    # -- to the log ---------------------------------------------------------------------------------------------------

    async def kept(
        self, step: Step, turn_id: str, said: str | None, *, is_open: bool
    ) -> tuple[Step, int | None]:
        """A step as it is stored, its result archived if necessary, and the epoch of its page, if any.

        `said` is the message of its turn, which may not be in the log yet.
        """
        epochs: list[int] = []

        async def admit() -> int:
            """The epoch for writing to the turn; raises what the log would raise."""
            request = ViewRequest(self.scope, budget_tokens=0, min_turns=0)
            try:
                running = turn_id if is_open else None
                view = await self.engine.store.reader.view(replace(request, open_turn=running))
            except NotFoundError:
                # A turn that has ended accepts repeats of what it has; for one that does not exist, this raises.
                await self.found(turn_id)
                view = await self.engine.store.reader.view(request)
            epochs.append(view.head.epoch)
            return view.head.epoch

        languages = self.engine.languages
        languages.choose(self.scope, self.labels.language)
        with languages.hearing(self.scope, said):
            kept = await self.engine.absorb_step(self.scope, step, turn_id, admit)
        return kept, epochs[-1] if epochs else None

    async def written(self, turn_id: str, steps: Sequence[Step], write: Awaitable[Turn]) -> Turn:
        """The result of a write; if the log refuses it, pages are withdrawn unless the log accepted them earlier."""
        try:
            return await write
        except (ConflictError, NotFoundError):
            with suppress(NotFoundError, ConflictError):
                accepted = {uuid for step in (await self.found(turn_id)).steps for uuid in step.pages}
                steps = [step for step in steps if accepted.isdisjoint(step.pages)]
            await self.engine.withdraw(self.scope, steps)
            raise

    # -- out ----------------------------------------------------------------------------------------------------------

    async def found(self, turn_id: str) -> Turn:
        reader = self.engine.store.reader
        # It is nearly always among the newest.
        for entry in await reader.entries(EntryQuery(self.scope, limit=_NEWEST, newest=True)):
            if entry.id == turn_id and isinstance(entry, Turn):
                return entry
        found = await turn_in(reader, EntryQuery(self.scope, limit=_SLICE), turn_id)
        if found is None:
            raise rules.no_turn(turn_id)
        return found

    async def given_back(self, turn: Turn, shape: Shape | None) -> list[dict[str, Any]]:
        """The messages of a turn as they came, or in another shape, with every result that still exists in full."""
        steps = [await self._complete_step(turn, number) for number in range(len(turn.steps))]
        return given_back(turn.messages, steps, await self.blobs(turn), shape)

    async def _complete_step(self, turn: Turn, number: int) -> Step:
        """The step with its whole result, unless that was purged; for one that showed a page, what it showed, read again."""
        step = turn.steps[number]
        if step.page is None or step.whole:
            return step
        try:
            if loaded_chars(step.result) is None:
                _, text = await self.engine.store.pages.load(self.scope, step.page)
                return Step(step.tool, step.input, text, step.call_id, step.call_tokens)
            text = await loaded_again(self.engine, self.scope, turn, number)
        except PagefileError:
            return step
        return step if text is None else replace(step, result=text, whole=True)

    async def blobs(self, turn: Turn) -> dict[str, bytes]:
        """The bytes of its images and files. Missing ones are left out and logged: messages then only name them."""
        found: dict[str, bytes] = {}
        kinds = {media.blob: media.kind for media in media_in(turn.messages) if media.blob is not None}
        for blob, kind in kinds.items():
            try:
                found[blob] = await self.engine.store.media.load(self.scope, blob)
            except NotFoundError:
                # Its name is user content, and the log does not tell whose it is: `pagefile verify` does.
                logger.warning("media is only named, because its bytes are gone: %s %s", kind, blob)
        return found


def _refuse_beyond(most: int, place: int, chars: int) -> None:
    if chars > most:
        raise InvalidArgumentError(
            f"messages[{place}] has {chars:,} characters without its tool results and files, at most {most:,} are allowed: "
            "give large material as a tool result or a file, split it, or raise the setting max_message_chars."
        )


def _said_chars(message: object) -> int:
    """About how long a message is as it was given: its texts, but for those of a tool."""
    given = as_object(message) or {}
    content = None if given.get("role") in _TELLING_RESULTS else given.get("content")
    if isinstance(content, str):
        return len(content)
    texts = ((as_object(block) or {}).get("text") for block in as_list(content) or ())
    return sum(len(text) for text in texts if isinstance(text, str))


async def behind_erasures(write: Callable[[], Awaitable[R]]) -> R:
    """Run a write; if what it is made of is erased meanwhile, run it again with what is left, after the erasure."""
    for _ in range(_ERASURES_MET):
        with suppress(ErasedError):
            return await write()
    return await write()


def _oldest(epochs: Iterable[int | None]) -> int | None:
    return min((epoch for epoch in epochs if epoch is not None), default=None)


def as_of(turn: Turn, messages: int) -> Turn:
    """The turn as it was when it had this many messages, without later results."""
    before = turn.messages[:messages]
    answered = answered_steps(before)
    named = max(set[int]().union(*map(steps_of, before)), default=-1) + 1
    steps = [
        step if number in answered else Step(step.tool, step.input, "", step.call_id, step.call_tokens)
        for number, step in enumerate(turn.steps[:named])
    ]
    user, user_tokens = (turn.user, turn.user_tokens) if question(before) else (None, 0)
    return replace(turn, user=user, user_tokens=user_tokens, steps=tuple(steps), layout=before)


def steps_of(message: Message) -> set[int]:
    """The steps that a message calls or answers."""
    return calls_of(message) | answered_steps([message])


def _said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def _is_plain(messages: Sequence[Message], user: str | None, steps: int, assistant: str | None) -> bool:
    """Whether the short form captures all of it."""
    plain = [(message.role, message.parts) for message in plain_layout(user, range(steps), assistant)]
    return plain == [(message.role, message.parts) for message in messages] and all(
        message.given is None and message.shape in {"openai", "plain"} for message in messages
    )
