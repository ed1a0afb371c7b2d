"""One request through the gateway: recorded, given its window, answered in as many rounds as the model calls our tools.

A call does no HTTP. Whoever carries it sends what `prepare` returns, feeds the response to `reply`, and asks after each response
whether another round follows. The service does that for its routes, and transports do it for wrapped clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlencode

from pagefile.edge.recorder import as_json
from pagefile.engine import Memory
from pagefile.errors import ConflictError, PagefileError, SettingsError
from pagefile.gateway.adapter import Adapter, Talk
from pagefile.gateway.composing import NAMING_PAGES, Added, Composition
from pagefile.gateway.conversations import Conversations, Place, Who, version_of
from pagefile.gateway.exchanges import Json
from pagefile.gateway.identity import Mode
from pagefile.gateway.provider_ids import Held, ProviderIds
from pagefile.gateway.replies import OwnCall, Reply, Round
from pagefile.gateway.sse import dumped
from pagefile.inspector import urls
from pagefile.lru import Lru
from pagefile.records import Scope, Turn
from pagefile.settings import GatewaySettings
from pagefile.standalone.memory_tools import ToolCaller
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.budget import model_limits
from pagefile.window.receipt import Window
from pagefile.window.wording import WORDINGS

#: The setting that says how long a request waits for memory.
DEADLINE = "gateway.deadline_s"
#: Room for what memory adds, where the size of the model's window is not known.
_ROOM_FOR_MEMORY = 8_000
#: No text has fewer characters per token for long.
_LEAST_CHARS_PER_TOKEN = 2
#: How providers say that they do not take a request: its tools, its system text, its length.
_REFUSING = frozenset({400, 413, 422})
#: Turns whose additions are remembered.
_TURNS_REMEMBERED = 2_000


@dataclass(slots=True)
class Gateway:
    """What all requests of a process share."""

    memory: Memory
    settings: GatewaySettings
    conversations: Conversations = field(init=False)
    #: What was added in the first request of a turn: later ones add the same, so that a prompt cache holds.
    added: Lru[tuple[Scope, str], Added] = field(default_factory=lambda: Lru(_TURNS_REMEMBERED))
    #: Conversations in which the model was led to a page.
    leading: Lru[Scope, None] = field(default_factory=lambda: Lru(_TURNS_REMEMBERED))
    provider_ids: ProviderIds = field(init=False)

    def __post_init__(self) -> None:
        self.conversations = Conversations(self.memory)
        self.provider_ids = ProviderIds(self.memory)


@dataclass(slots=True)
class Call:
    """A request on its way, and its answer."""

    gateway: Gateway
    adapter: Adapter
    who: Who
    #: The body as the client sent it.
    raw: bytes
    body: Json
    mode: Mode = "on"
    #: Whether a client without a history gets that of the log; not where it keeps one itself, which may be empty.
    from_log: bool = True
    #: What was done with the request: a word for `x-pagefile-status`.
    status: str = "bypassed"
    #: Why it was bypassed.
    why: str = ""
    place: Place | None = None
    window: Window | None = None
    saved_tokens: int = 0
    window_s: float = 0.0
    #: The request of the current round.
    sent: Json = field(default_factory=dict[str, Any])
    offered: bool = False
    reply: Reply = field(init=False)
    #: The model's messages and tool results of all rounds.
    said: list[Json] = field(default_factory=list[Json])
    #: A round whose calls of our tools have no answers yet.
    unanswered: Round | None = None
    ended: bool = False

    def __post_init__(self) -> None:
        self.reply = self.adapter.reply(frozenset())

    @property
    def model(self) -> str:
        return str(self.body.get("model") or "")

    # -- before ---------------------------------------------------------------------------------------------------------

    async def prepare(self) -> bytes:
        """Record what is new, and return the body to send."""
        began = perf_counter()
        redactor = self.gateway.memory.engine.redactor
        # The provider gets what is recorded: otherwise no later request would fit what is here.
        self.body = await redactor.clean(self.who.scope.tenant, self.body, exact=True)
        talk = self.adapter.talk(self.body)
        self.place = await self._opened(talk)
        self.status = "nothing-asked" if self.place is None else "recorded"
        if not talk.exchanges or self.mode == "record":
            return self.raw
        talk = await self._unfolded(Talk(talk.preamble, list(self._placed.exchanges)))
        window = await self._window()
        body, remembers = self._composed(talk, window)
        self.window, self.window_s = window, perf_counter() - began
        self.status = "memory" if remembers else "recorded"
        self.sent, out = body, dumped(body)
        self.saved_tokens = self._saved(window, len(out))
        return out

    async def _opened(self, talk: Talk) -> Place | None:
        conversations, previous = self.gateway.conversations, self.adapter.previous(self.body)
        held = None if previous is None else await self.gateway.provider_ids.find(self.who.scope, previous)
        if held is not None and held.last is not None:
            self.body = self.adapter.with_previous(self.body, held.last)
            self.raw = dumped(self.body)
        if held is not None and self.who.conversation is None:
            self.who = replace(self.who, conversation=held.conversation)
        if not talk.exchanges:
            return await conversations.resume(self.who, self.adapter.messages(self.body))
        return await conversations.open(self.who, talk.exchanges, self.adapter.shape)

    async def _window(self) -> Window:
        place, body, adapter = self._placed, self.body, self.adapter
        tools = adapter.tools(body)
        return await place.chat.context(
            turn=place.turn,
            tools=tools,
            answer_tokens=adapter.answer_tokens(body) + adapter.media_tokens(body),
            instructions=adapter.system(body) or None,
            placement="tail",
            **self._size(),
        )

    def _size(self) -> dict[str, Any]:
        """The budget: the setting, within the model's own window; a window that is not known leaves nothing out."""
        model, given = self.model, self.gateway.settings.window_tokens
        try:
            model_limits(model)
        except SettingsError:
            room = (
                len(self.raw) // _LEAST_CHARS_PER_TOKEN
                + _ROOM_FOR_MEMORY
                + self.adapter.answer_tokens(self.body)
            )
            return {"window_tokens": given or max(self.gateway.memory.settings.window_tokens, room)}
        return {"window_for": model, **({"window_tokens": given} if given else {})}

    def _composed(self, talk: Talk, window: Window) -> tuple[Json, bool]:
        place, adapter, body = self._placed, self.adapter, self.body
        named = {adapter.tool_name(tool) for tool in adapter.tools(body)}
        redeemable = (
            self.gateway.settings.tools and adapter.takes_tools(body) and named.isdisjoint(LOADING_TOOLS)
        )
        added = self._added(window, place)
        if adapter.is_stateful(body):
            body = self._beside(talk, added)
            return body, added.remembers and body is not self.body
        self.offered = redeemable and self._leads_to_pages(window, place.chat.scope)
        composition = Composition(
            adapter,
            body,
            talk,
            window,
            added,
            redeemable=redeemable,
            offered=self.offered,
            from_log=self.from_log and place.from_log,
        )
        if self.offered:
            self.reply = adapter.reply(LOADING_TOOLS)
        return composition.composed()

    def _leads_to_pages(self, window: Window, scope: Scope) -> bool:
        """Whether this request of a conversation names a page, or an earlier one did: tools that come and go empty prompt caches."""
        leading = self.gateway.leading
        if window.parts.guide or NAMING_PAGES & window.parts.memory.sections.keys():
            leading[scope] = None
        return scope in leading

    def _saved(self, window: Window, size: int) -> int:
        """About how many tokens the request has less than the client's, whose sizes are known."""
        tokens = window.tokens + window.receipt.reserved.get("tools", 0)
        return max(0, round((len(dumped(self.body)) - size) * tokens / max(1, size)))

    def _beside(self, talk: Talk, added: Added) -> Json:
        """Only the memory block: the provider holds the history."""
        *earlier, current = talk.exchanges
        if not added.alone or current.rest:
            return self.body
        before = [message for exchange in earlier for message in exchange.messages]
        first, *others = current.asked
        asked = self.adapter.with_memory(first, added.alone)
        return self.adapter.with_messages(self.body, [*talk.preamble, *before, asked, *others])

    def _added(self, window: Window, place: Place) -> Added:
        # Turn ids are digests of what was said: equal ones exist in conversations of different users.
        new, name = Added.of(window), (place.chat.scope, place.turn.id)
        old = self.gateway.added.get(name)
        # A guide to placeholders that were not there at the beginning has to be added.
        if old is not None and (not window.parts.guide or window.parts.guide in old.system):
            return old
        self.gateway.added[name] = new
        return new

    async def _unfolded(self, talk: Talk) -> Talk:
        """The running exchange with our own rounds in it, as the model saw them: the log has what the client did not see."""
        *earlier, current = talk.exchanges
        place, adapter = self._placed, self.adapter
        ours = {step.call_id for step in place.turn.steps if step.tool in LOADING_TOOLS}
        # A client may have tools of these names itself.
        if not ours or not ours.isdisjoint(adapter.call_ids(current.rest)):
            return talk
        rest = adapter.unfolded(current.rest, await place.chat.messages(place.turn.id), ours)
        return Talk(talk.preamble, [*earlier, replace(current, rest=tuple(rest))])

    def is_refused(self, status: int) -> bool:
        """Whether the provider may have refused the rewritten request: then the original is sent."""
        return self.window is not None and status in _REFUSING

    def failed(self, why: str) -> None:
        self.why = why

    def bypassed(self) -> bytes:
        """The request as it came. Memory failed, was slow, or was refused; the answer is still recorded, if its turn exists."""
        self.status = "bypassed"
        self.window, self.saved_tokens = None, 0
        self.said.clear()
        self.reply = self.adapter.reply(frozenset())
        return self.raw

    @property
    def _placed(self) -> Place:
        if self.place is None:
            raise SettingsError("The request was not prepared.")
        return self.place

    # -- after ----------------------------------------------------------------------------------------------------------

    async def after_round(self) -> bytes | None:
        """What to send next if the model called our tools; None if the answer is complete, which is then in the log.

        The round has ended before: this may be done beside the request, or later.
        """
        ended = self.reply.rounds[-1]
        if self.place is None:
            return None
        may_go_on = len(self.reply.rounds) <= self.gateway.settings.max_rounds
        if ended.calls and not ended.foreign and ended.stop is not None and may_go_on:
            self.unanswered = ended
            return self._next(ended, [await self._answer(call) for call in ended.calls])
        self.said += ended.messages
        await self._finish(ended)
        return None

    def next_without_memory(self) -> bytes | None:
        """The next round if memory failed to answer the model's calls or was slow: the model is told so. None if none wait."""
        ended, window = self.unanswered, self.window
        if ended is None or window is None:
            return None
        refused = WORDINGS[window.language].answers["refused"]
        return self._next(ended, [refused.format(tool=call.tool, reason="") for call in ended.calls])

    def _next(self, ended: Round, answers: Sequence[str]) -> bytes:
        self.unanswered = None
        told = [*ended.messages, *self.adapter.own_results(list(zip(ended.calls, answers, strict=True)))]
        self.said += told
        body = self.adapter.with_messages(self.sent, [*self.adapter.messages(self.sent), *told])
        if len(self.reply.rounds) == self.gateway.settings.max_rounds:
            # Now the model must answer with what it has.
            body = self.adapter.without_own_calls(body)
        self.sent = body
        self.reply.continue_round()
        return dumped(body)

    async def _answer(self, call: OwnCall) -> str:
        place = self._placed
        caller = ToolCaller(self.gateway.memory, place.chat, place.turn)
        try:
            return await caller.answer(call.tool, call.arguments)
        except PagefileError as error:
            return await caller.refused(call.tool, error)

    async def _finish(self, ended: Round) -> None:
        """The answer, in the log; a turn whose model waits for the client's tools stays open."""
        self.ended = True
        place, said = self._placed, [as_json(message) for message in self.said]
        final = ended.stop is not None and self.adapter.is_final(ended.messages, ended.stop)
        try:
            place.turn = await self._written(place.turn, said, final=final)
        except ConflictError:
            # Another client answered the same turn meanwhile: this answer is a turn of its own.
            again = await place.chat.begin(
                messages=await place.chat.messages(place.turn.id), id=version_of(place.turn.id[:32])
            )
            place.turn = await self._written(again, said, final=final)
        await self._keep_ids(place)
        if ended.stop is None:
            await place.chat.abort(place.turn)

    async def _keep_ids(self, place: Place) -> None:
        """What the provider calls this answer, and what it continued."""
        if not self.adapter.is_held(self.body):
            return
        last, shown, chat = self.reply.id, self.reply.shown_id, place.chat.id
        named = {name: Held(chat) for name in (self.adapter.previous(self.body), last) if name}
        if shown is not None:
            named[shown] = Held(chat, None if shown == last else last)
        await self.gateway.provider_ids.keep(self.who.scope, named)

    async def _written(self, turn: Turn, said: Sequence[Json], *, final: bool) -> Turn:
        chat = self._placed.chat
        if final and len(said) == 1 and turn.layout is None and _is_plain(said[0]):
            return await chat.complete(turn, str(said[0]["content"]))
        turn = await chat.extend(turn, said) if said else turn
        return await chat.complete(turn) if final else turn

    def leave(self) -> None:
        """The request is over, however it ended."""
        if self.place is not None:
            self.gateway.conversations.leave(self.place)

    async def give_up(self, *, kept: bool) -> None:
        """The answer will not come: the client left, or the provider broke off or refused.

        What the client heard until then, which of an answer that is no stream is nothing, is in the log, and the turn is marked as
        unanswered. If it heard nothing and the same request may come again (`kept`), its turn waits for it.
        """
        if self.place is None or self.ended:
            return
        ended = self.reply.end_round()
        if ended.stop is not None and not ended.calls:
            # The client left when it had heard everything.
            self.said += ended.messages
            await self._finish(ended)
            return
        self.ended = True
        heard = (*self.said, *(ended.messages if not ended.calls else ())) if self.reply.events else ()
        said = [as_json(message) for message in heard]
        if kept and not said:
            return
        turn = self.place.turn
        turn = await self.place.chat.extend(turn, said) if said else turn
        await self.place.chat.abort(turn)

    # -- responses to the client -----------------------------------------------------------------------------------------

    def headers(self) -> dict[str, str]:
        told = {"x-pagefile-status": self.status}
        if self.status == "bypassed" and self.why:
            told["x-pagefile-bypassed"] = self.why
        if self.place is not None:
            told["x-pagefile-conversation"] = quote(self.place.chat.id, safe="~:/ ")
            told["x-pagefile-turn"] = self.place.turn.id
        if self.window is not None and self.place is not None:
            scope = self.place.chat.scope
            named = {
                "call_id": self.window.id,
                "conversation_id": self.place.chat.id,
                "user_id": scope.user,
                "tenant": scope.tenant,
            }
            query = urlencode({name: value for name, value in named.items() if value})
            told["x-pagefile-bill"] = f"{urls.CALL}?{query}"
            told["x-pagefile-window-tokens"] = str(self.window.tokens)
            told["x-pagefile-tokens-saved"] = str(self.saved_tokens)
        return told


def _is_plain(message: Json) -> bool:
    return (
        message.keys() == {"role", "content"}
        and isinstance(message["content"], str)
        and bool(message["content"].strip())
    )
