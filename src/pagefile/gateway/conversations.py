"""Finds the conversation that a client's history belongs to, and records what the log does not have of it.

The client's history decides. Where the log goes on after the last exchange that the client has, the client edited a message or had
it answered again: it continues in a fork, and both branches stay.
"""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio

from pagefile.content import Message, Reasoning, Shape, Text, ToolCall, ToolResult
from pagefile.edge.recorder import Called, Happened, Returned, Said, Thought, unwritten
from pagefile.engine import Conversation, Memory
from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.gateway.exchanges import (
    Exchange,
    Json,
    base_key,
    continued,
    own_words,
    unmarked,
)
from pagefile.gateway.matching import Found, continued_in, matched
from pagefile.gateway.sse import dumped
from pagefile.lru import Lru
from pagefile.ports import ConversationQuery
from pagefile.records import Scope, Step, Turn
from pagefile.shapes.parser import cleaned, parsed
from pagefile.tiers.page_in import LOADING_TOOLS

logger = logging.getLogger("pagefile")

#: How the ids of conversations begin that a client did not name.
PREFIX = "gw-"
#: Turns read of a conversation, and conversations looked through for one that this process does not know.
_NEWEST_TURNS, _NEWEST_CONVERSATIONS = 20, 30
#: Turns read of one that is known to have the exchange before an edited message.
_ALL_TURNS = 2_000
#: Shorter histories, such as thanks and a welcome, may be the end of any conversation.
_TELLING_CHARS = 60
#: Items that are calls, and messages of a run that are read to tell it from another.
_CALLS, _FIRST_MESSAGES = frozenset({"function_call", "custom_tool_call"}), 5
#: Exchanges and turns remembered.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Who:
    """Whose request it is."""

    user: str | None = None
    tenant: str | None = None
    #: The conversation that the client names.
    conversation: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(tenant=self.tenant, user=self.user) if self.tenant is not None else Scope(user=self.user)


@dataclass(slots=True, weakref_slot=True, eq=False)
class Place:
    """Where a request belongs."""

    chat: Conversation
    turn: Turn
    #: Whether the client has no history of its own, and names the conversation: then it gets that of the log.
    from_log: bool = False
    #: The client's exchanges, with the keys that they have in the log.
    exchanges: Sequence[Exchange] = ()


@dataclass(slots=True)
class Conversations:
    memory: Memory
    #: The conversation of an exchange.
    _known: Lru[tuple[Scope, str], str] = field(default_factory=lambda: Lru(_REMEMBERED))
    #: How much of a running exchange is in its turn, and the digest of the last message of it.
    _caught: Lru[tuple[Scope, str], tuple[int, str]] = field(default_factory=lambda: Lru(_REMEMBERED))
    _locks: Lru[tuple[Scope, str], anyio.Lock] = field(default_factory=lambda: Lru(1_000))

    #: Turns whose answers are on their way; each for as long as its request is.
    _answering: WeakValueDictionary[tuple[Scope, str], Place] = field(
        default_factory=WeakValueDictionary[tuple[Scope, str], Place]
    )
    #: Histories that are being recorded; Python keeps only weak references to tasks.
    _running_now: set[asyncio.Future[Place]] = field(default_factory=set[asyncio.Future[Place]])

    async def open(self, who: Who, found: Sequence[Exchange], shape: Shape) -> Place:
        """The conversation with everything but the answer to the last exchange, which is an open turn.

        A long history that is not known may take longer than its request can wait. It is recorded beside it then: the next request
        has memory.
        """
        recorded = asyncio.ensure_future(self._open(who, found, shape))
        self._running_now.add(recorded)
        recorded.add_done_callback(self._ended)
        return await asyncio.shield(recorded)

    def _ended(self, recorded: asyncio.Future[Place]) -> None:
        self._running_now.discard(recorded)
        if not recorded.cancelled():
            # Retrieved, so that asyncio does not report it again: whoever waited for it has.
            recorded.exception()

    async def _open(self, who: Who, found: Sequence[Exchange], shape: Shape) -> Place:
        scope, place = who.scope, (who.scope, who.conversation or found[0].key)
        if place not in self._locks:
            self._locks[place] = anyio.Lock()
        async with self._locks[place]:
            told = found[-1].key
            chat, known, found = await self._conversation(who, found, shape)
            for exchange in found[known:-1]:
                await self._recorded(chat, exchange, shape)
            turn = await self._running(chat, found[-1], shape)
            self._known[scope, found[-1].key] = self._known[scope, told] = chat.id
            opened = Place(chat, turn, who.conversation is not None and len(found) == 1, found)
            self._answering.setdefault((chat.scope, turn.id), opened)
        return opened

    def leave(self, place: Place) -> None:
        """The request is over."""
        name = (place.chat.scope, place.turn.id)
        if self._answering.get(name) is place:
            del self._answering[name]

    async def take(self, who: Who, found: Sequence[Exchange], shape: Shape) -> None:
        """Record a history that is over, in the conversation it names; what is there already stays as it is."""
        chat = self._chat(who, who.conversation or f"{PREFIX}{found[0].key}")
        for exchange in found:
            await self._recorded(chat, exchange, shape)

    async def observe(
        self, who: Who, found: Sequence[Exchange], shape: Shape, *, ended: bool, at: datetime | None = None
    ) -> int:
        """Record what somebody else's model call shows of a conversation that is named; returns how many turns are new or longer.

        The same call changes nothing the second time, and a history is never a reason for a fork: it is told as it happened. Without
        `ended`, the run goes on after this call, and its turn stays open.
        """
        chat = self._chat(who, who.conversation or "")
        place = (who.scope, chat.id)
        if place not in self._locks:
            self._locks[place] = anyio.Lock()
        async with self._locks[place]:
            *earlier, last = await self._unknown_part(chat, found)
            for exchange in earlier:
                await self._recorded(chat, exchange, shape)
            turn = await chat.begin(messages=_asked(last), id=last.key, at=at)
            if turn.status != "open":
                return 0
            before = len(turn.messages)
            turn = await self._caught_up(chat, turn, last, shape)
            if ended:
                await chat.complete(turn)
            return int(ended or before < len(turn.messages) or before == len(_asked(last)))

    async def _unknown_part(self, chat: Conversation, found: Sequence[Exchange]) -> Sequence[Exchange]:
        """The last exchange, with the key that it has after those of the log; all of them where the log has none."""
        if len(found) < 2:
            return found
        for limit in (_NEWEST_TURNS, _ALL_TURNS):
            turns = await chat.turns(newest=True, limit=limit)
            part = continued_in(chat, turns, found, 0)
            if part is not None:
                return continued(found, part.keys)[-1:]
            if len(turns) < limit:
                break
        # A history that was shortened or rewritten is in the log already, in the words of its time.
        return found[-1:] if any(base_key(turn.id) != found[0].key for turn in turns) else found

    async def resume(self, who: Who, messages: Sequence[Json]) -> Place | None:
        """The running turn of a conversation that the provider holds, with results of tools that were sent alone."""
        given = _given(messages)
        if who.conversation is None or not given:
            return None
        chat = self._chat(who, who.conversation)
        turns = await chat.turns(newest=True, limit=_NEWEST_TURNS)
        turn = next((one for one in reversed(turns) if one.status == "open"), None)
        turn = turn or next((one for one in turns[-1:] if one.status == "aborted"), None)
        if turn is None:
            return None
        # After a fault the same results come again, perhaps to a turn that was given up with half an answer.
        recorded = await chat.messages(turn.id)
        ends = [at for at in range(len(given), len(recorded) + 1) if recorded[at - len(given) : at] == given]
        if turn.status == "open":
            return Place(chat, await chat.extend(turn, [] if len(recorded) in ends else given))
        if not ends:
            return None
        again = await chat.begin(messages=recorded[: ends[-1]], id=version_of(base_key(turn.id)))
        return Place(chat, again)

    # -- which conversation -----------------------------------------------------------------------------------------------

    async def _conversation(
        self, who: Who, found: Sequence[Exchange], shape: Shape
    ) -> tuple[Conversation, int, Sequence[Exchange]]:
        """The conversation, how many of the exchanges it has, and the exchanges with the keys that they have there."""
        best = await self._best(who, found, shape)
        if best is None:
            return self._chat(who, who.conversation or f"{PREFIX}{uuid4().hex}"), 0, found
        last, found = len(found) - 1, continued(found, best.keys) if best.keys else found
        if best.at == last or not best.goes_on or (who.conversation == best.chat.id and not last):
            return best.chat, min(best.at + (best.turn.status != "open"), last), found
        return await self._forked(best, found[-1].key), best.at + 1, found

    async def _best(self, who: Who, found: Sequence[Exchange], shape: Shape) -> Found | None:
        best: Found | None = None
        part: Found | None = None
        seen: set[str] = set()
        async for name in self._candidates(who, found):
            if name in seen:
                continue
            seen.add(name)
            chat = self._chat(who, name)
            turns = await chat.turns(newest=True, limit=_NEWEST_TURNS)
            others = self._others(who, chat.scope, turns, found[-1], shape)
            one = matched(chat, turns, found, others)
            if one is None and self._known.get((who.scope, found[-2:][0].key)) == name:
                # The client went back a long way.
                one = matched(chat, await chat.turns(newest=True, limit=_ALL_TURNS), found, others)
            # A named conversation has the rest of the history, however little is told of it.
            least = 0 if name == who.conversation else _TELLING_CHARS
            part = part or (continued_in(chat, turns, found, least, others) if one is None else None)
            if one is not None and (best is None or (one.at, not one.goes_on) > (best.at, not best.goes_on)):
                best = one
            first = best or part
            if first is not None and first.at >= len(found) - 2 and not first.goes_on:
                return first
        return best or part

    async def _candidates(self, who: Who, found: Sequence[Exchange]) -> AsyncGenerator[str]:
        for exchange in (found[-1], *found[-2:-1]):
            if (name := self._known.get((who.scope, exchange.key))) is not None:
                yield name
        if who.conversation is not None:
            yield who.conversation
        if len(found) < 2 and not found[0].rest:
            return
        start = PREFIX if who.conversation is None else f"{who.conversation}~"
        query = ConversationQuery(who.scope, limit=_NEWEST_CONVERSATIONS)
        for head in await self.memory.engine.store.reader.heads(query):
            name = head.scope.conversation or ""
            if head.scope.user == who.user and name.startswith(start):
                yield name

    def _others(
        self, who: Who, scope: Scope, turns: Sequence[Turn], running: Exchange, shape: Shape
    ) -> frozenset[str]:
        """The open turns that belong to other requests: some are being answered, others have calls that this client never heard of.

        Prompts run more than once, and clients begin with the same words. Whoever names the conversation and says the same again tries again.
        """
        found: set[str] = set()
        for turn in turns:
            if turn.status != "open":
                continue
            runs = base_key(turn.id) == running.key
            ours = {step.call_id for step in turn.steps if runs and step.tool not in LOADING_TOOLS}
            if ours and not ours.isdisjoint(_first_calls(running, shape)):
                continue
            if ours or (who.conversation is None and (scope, turn.id) in self._answering):
                found.add(turn.id)
        return frozenset(found)

    async def _forked(self, found: Found, key: str) -> Conversation:
        root = found.chat.id.partition("~")[0]
        with suppress(ConflictError):
            return await found.chat.fork(found.turn, id=f"{root}~{key[:12]}")
        return await found.chat.fork(found.turn, id=f"{root}~{uuid4().hex[:12]}")

    def _chat(self, who: Who, name: str) -> Conversation:
        return self.memory.conversation(name, user_id=who.user, tenant=who.tenant)

    # -- what is new ------------------------------------------------------------------------------------------------------

    async def _recorded(self, chat: Conversation, exchange: Exchange, shape: Shape) -> None:
        """An exchange that is over, as the client tells it."""
        try:
            turn = await chat.begin(messages=_asked(exchange), id=exchange.key)
            if turn.status != "open":
                return
            turn = await self._caught_up(chat, turn, exchange, shape)
            await (chat.complete(turn) if exchange.answer else chat.abort(turn))
        except (ConflictError, InvalidArgumentError, NotFoundError):
            logger.warning("an earlier exchange of a client's history could not be recorded", exc_info=True)

    async def _running(self, chat: Conversation, exchange: Exchange, shape: Shape) -> Turn:
        asked = _asked(exchange)
        turn: Turn | None = None
        with suppress(ConflictError):
            turn = await chat.begin(messages=asked, id=exchange.key)
        if turn is None or turn.status != "open":
            # It was answered or given up before: this is another attempt.
            turn = await self._open_version(chat, exchange.key) or await chat.begin(
                messages=asked, id=version_of(exchange.key)
            )
        return await self._caught_up(chat, turn, exchange, shape)

    async def _caught_up(self, chat: Conversation, turn: Turn, exchange: Exchange, shape: Shape) -> Turn:
        """The turn with what followed in the exchange and is not in it yet."""
        if not exchange.rest:
            return turn
        # Reading a long run from its beginning for each of its requests would take longer and longer.
        name = (chat.scope, turn.id)
        count, last = self._caught.get(name, (0, ""))
        if count > len(exchange.rest) or (count and _digest(exchange.rest[count - 1]) != last):
            count = 0
        try:
            new = _news(turn, _asked(exchange), _given(exchange.rest[count:]), shape)
        except InvalidArgumentError:
            new = _news(turn, _asked(exchange), _given(exchange.rest), shape)
        turn = await chat.extend(turn, new) if new else turn
        self._caught[name] = (len(exchange.rest), _digest(exchange.rest[-1]))
        return turn

    async def _open_version(self, chat: Conversation, key: str) -> Turn | None:
        turns = await chat.turns(newest=True, limit=_NEWEST_TURNS)
        return next((one for one in turns if base_key(one.id) == key and one.status == "open"), None)


def version_of(key: str) -> str:
    """The id of another turn for the same exchange."""
    return f"{key}~{uuid4().hex[:8]}"


def _digest(message: Json) -> str:
    return hashlib.blake2b(dumped(unmarked(message)), digest_size=16).hexdigest()


def _asked(exchange: Exchange) -> list[Json]:
    return _given(own_words(exchange.asked))


def _first_calls(exchange: Exchange, shape: Shape) -> set[str]:
    """The ids of the first calls of tools in it: results may be long, and are not read."""
    said = [one for one in exchange.rest if one.get("role") == "assistant" or one.get("type") in _CALLS]
    try:
        return {step.call_id for step in parsed(_given(said[:_FIRST_MESSAGES]), shape).steps}
    except InvalidArgumentError:
        return set()


def _given(messages: Iterable[Json]) -> list[Json]:
    return [cleaned(unmarked(message)) for message in messages]


def _news(turn: Turn, asked: Sequence[Json], rest: Sequence[Json], shape: Shape) -> list[Json]:
    """The messages after the last one that the turn has. A client may have changed how they are written, not what they say."""
    found = parsed([*asked, *rest], shape)
    said = [_happened(message, found.steps) for message in found.messages[len(asked) :]]
    new = {id(one) for one in unwritten(turn, [one for group in said for one in group])}
    known = [place for place, group in enumerate(said) if group and not any(id(one) in new for one in group)]
    return list(rest[known[-1] + 1 :] if known else rest)


def _happened(message: Message, steps: Sequence[Step]) -> list[Happened]:
    """What a message says, in the recorder's words."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if results:
        return [
            Returned(_called(steps[part.step]), (steps[part.step].result,), part.error) for part in results
        ]
    if message.role != "assistant":
        return []
    blocks: list[Any] = []
    for part in message.parts:
        match part:
            case Text(text):
                blocks.append(text)
            case Reasoning(text, sealed):
                blocks.append(Thought(text, sealed, anthropic=message.shape == "anthropic"))
            case ToolCall(number):
                blocks.append(_called(steps[number]))
            case _:
                pass
    return [Said(tuple(blocks))]


def _called(step: Step) -> Called:
    return Called(step.tool, step.input, step.call_id)
