"""Rounds of random calls, searched one by one; a crossing is told with its seed and the shortest calls that show it."""

import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from time import monotonic
from urllib.parse import unquote_plus

import httpx
from fastapi import FastAPI

from pagefile import Conversation, Memory, Settings
from pagefile.inspector.experiments import batches
from pagefile.inspector.playground import Chosen
from pagefile.inspector.start import filling
from pagefile.ports import ChatModel, Spoken, ToolCall
from pagefile.records import DEFAULT_TENANT
from pagefile.service.app import create_app
from pagefile.service.streams import open_streams
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.testing import HashingEmbedder

from . import routes, verbs
from .answers import Answer, learn
from .owners import NOBODY, OWNERSHIP, Names, Owner, Viewer, found_in, is_text
from .routes import Route
from .values import conversation
from .verbs import Verb
from .world import Ask, Caller, Named, World, new_world, speaker_of, viewer_of

#: Calls in a round; the next one has other people, so that memories stay small and what is found can be played again quickly.
ROUND = 1000
#: A round begins with this many calls that leave something to be found.
PLANTED = 60
PLANTING = {"POST /v1/turns": 4, "Conversation.record": 2, "POST /v1/facts": 2, "POST /v1/turns/begin": 1}
#: Every this many calls, the metrics are searched.
MEASURED = 100
SHORTENING_S = 60.0
#: The share of calls that send again what another has sent, with the same idempotency key.
REPEATED = 0.25
LIBRARY = Caller("the library")
#: What may write to a conversation that nobody has begun, without beginning it. See OWNERSHIP.
LOOSE = frozenset({"POST /v1/context", "Conversation.context"})
#: What an id of a call is about, and the verbs that want a turn that is still open.
ABOUT = {"turn_id": "turn", "turn": "turn", "call_id": "call", "uuid": "page", "page": "page"}
CHANGING = ("step", "extend", "complete", "abort")
FORGETTING = frozenset({"POST /v1/forget", "Memory.forget", "POST /inspector/erase"})
CORRECTING = frozenset({"POST /v1/facts/correct", "Memory.correct"})


class Echo(ChatModel):
    """A model that tells which names it was shown, and calls for a page that it was told of."""

    async def complete(self, messages: Sequence[Mapping], *, max_tokens: int) -> str:
        shown = sorted(name for name in found_in(json.dumps(messages, ensure_ascii=False)) if is_text(name))
        return f"I saw {' '.join(shown[:20])}"

    async def stream(
        self, messages: Sequence[Mapping], *, tools: Sequence[Mapping] = ()
    ) -> AsyncGenerator[Spoken]:
        asked = str(messages[-1].get("content"))
        pages = [name for name in found_in(asked) if "-" in name] if "load_tool_history" in asked else []
        if pages and messages[-1].get("role") == "user":
            call = ToolCall("call-1", "load_tool_history", json.dumps({"uuid": pages[0]}))
            yield Spoken(calls=(call,), finish="tool_calls")
            return
        yield Spoken(await self.complete(messages, max_tokens=100))
        yield Spoken(finish="stop")


@dataclass
class CrossingError(Exception):
    """Somebody was told what is another's."""

    what: str
    at: int = 0
    trace: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.what, *(_cut(line) for line in self.trace)])


def _cut(line: str) -> str:
    return line if len(line) < 500 else f"{line[:400]} … {line[-60:]}"


class Lines(logging.Handler):
    """The log, since somebody last looked."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._formatter = logging.Formatter("%(levelname)s %(name)s: %(message)s")
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self._formatter.format(record))

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear everything that Pagefile has to say."""
        logger = logging.getLogger("pagefile")
        before = logger.level
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(before)

    def taken(self) -> str:
        lines, self._lines = self._lines, []
        return "\n".join(lines)


@dataclass
class Player:
    """Plays rounds on one service, which keeps what it is told."""

    app: FastAPI
    client: httpx.AsyncClient
    folder: Path
    log: Lines
    names: Names = field(default_factory=Names)
    counts: Counter = field(default_factory=Counter)
    played: int = 0

    def __post_init__(self) -> None:
        self.routes = routes.routes_of(self.app)
        self.verbs = {
            name: one for name, one in verbs.verbs_of(Memory, Conversation).items() if name in verbs.WEIGHTS
        }
        self._weights = {**routes.WEIGHTS, **verbs.WEIGHTS}

    @property
    def memory(self) -> Memory:
        return self.app.state.memory

    async def round(self, seed: str, calls: Sequence[int], *, again: bool = False) -> None:
        """Play these calls of a round, by their numbers; raises `CrossingError` with the calls so far.

        Played `again`, the last one waits for the background, whose facts it may have been told of.
        """
        # The only tenant that rounds share: what an earlier one left there would not be there when this one is played again.
        await self.memory.forget(tenant=DEFAULT_TENANT)
        world = await new_world(self.names, self.memory.engine.store.keys)
        trace: list[str] = []
        for number in calls:
            world.begin(number)
            if again and number == calls[-1]:
                await self.memory.settle()
            try:
                await self._call(
                    world, Random(f"{seed} {number}"), trace, PLANTING if number < PLANTED else self._weights
                )
            except CrossingError as found:
                raise CrossingError(found.what, number, trace) from None
        try:
            await self._exports(world)
        except CrossingError as found:
            raise CrossingError(found.what, calls[-1], trace) from None

    # -- one call -------------------------------------------------------------------------------------------------------

    async def _call(self, world: World, dice: Random, trace: list[str], weights: Mapping[str, float]) -> None:
        place = dice.choices(list(weights), list(weights.values()))[0]
        target = self.routes.get(place) or self.verbs[place]
        caller = self._caller(target, world, dice)
        again = _again(target, world, dice)
        named = replace(again[0]) if again else _named(target, caller, world, dice)
        viewer = viewer_of(caller, named, reach=target.reach)
        ask = Ask(world, dice, speaker_of(caller, viewer))
        if again is None:
            _name_conversation(target, named, ask)
            viewer = viewer_of(caller, named, reach=target.reach)
        if target.reach == "page" and viewer.whole and viewer.user is None:
            ask.speaker = await self._on_behalf(viewer, named)
        sent, making = self._made(target, ask, caller, named, again and again[1])
        trace.append(f"{place} by {caller.called}: {sent}")
        answer = await making()
        trace[-1] += f" -> {answer.status}"
        self.played += 1
        self.counts[f"{place} {'refused' if answer.refused else 'answered'}"] += 1
        told = NOBODY if target.names_nobody else viewer
        await self._search(target, answer, told, sent)
        if viewer is NOBODY and not (answer.refused or target.names_nobody):
            raise CrossingError(
                f"{place} was answered ({answer.status}), but {caller.called} may not name {named}."
            )
        self._take_up(target, world, answer, told, ask.speaker, sent, named)

    def _made(
        self, target: Route | Verb, ask: Ask, caller: Caller, named: Named, again: httpx.Request | None
    ) -> tuple[str, Callable[[], Awaitable[Answer]]]:
        """What a call says, and how it is made."""
        if isinstance(target, Verb):
            deed = verbs.deed_of(target, ask, self.memory, named, self.folder)
            return json.dumps(deed.says, ensure_ascii=False, default=str), partial(verbs.returned, deed)
        if again is not None:
            request = routes.sent_by(caller, again)
        else:
            request = routes.request_of(target, ask, caller, named)
        sent = _sent(request)
        if "idempotency-key" in request.headers and not any(map(is_text, found_in(sent))):
            ask.world.once.setdefault(target.name, []).append((named, request))
        return sent, partial(routes.answered, self.client, request)

    def _caller(self, target: Route | Verb, world: World, dice: Random) -> Caller:
        if isinstance(target, Verb):
            return LIBRARY
        # The demo is filled in for whoever runs the service, which takes minutes; with a key it is refused.
        with_key = [one for one in world.callers if one.tenant is not None]
        return dice.choice(with_key if target.path == "/inspector/demo" else world.callers)

    async def _on_behalf(self, viewer: Viewer, named: Named) -> Owner:
        """Whose the words of an operator are: they say them for the owner of the conversation, who reads them there."""
        heads = await self.memory.conversations(tenant=viewer.tenant, limit=10 * ROUND)
        users = [head.scope.user for head in heads if head.scope.conversation == named.conversation]
        return Owner(str(viewer.tenant), users[0] if users else None)

    async def _search(self, target: Route | Verb, answer: Answer, viewer: Viewer, sent: str) -> None:
        found = self.names.crossed(answer.text, viewer, sent)
        if found:
            raise CrossingError(
                f"{target.name} told {viewer} of {_told(found)}:\n{_around(answer.text, next(iter(found)))}"
            )
        if answer.status == 500:
            raise CrossingError(f"{target.name} failed: {answer.text[:500]}\n{self.log.taken()}")
        self._search_quiet("the log", self.log.taken())
        if self.played % MEASURED == 0:
            self._search_quiet("the metrics", (await self.client.get("/metrics")).text)

    def _search_quiet(self, what: str, text: str) -> None:
        """What an operator collects names nobody."""
        found = self.names.crossed(text, NOBODY)
        if found:
            raise CrossingError(f"{what} tells of {_told(found)}:\n{_around(text, next(iter(found)))}")

    def _take_up(
        self, target, world: World, answer: Answer, viewer: Viewer, speaker: Owner, sent: str, named: Named
    ) -> None:
        if answer.refused or viewer is NOBODY:
            return
        ids = {name for name in found_in(sent) if not is_text(name)}
        self.names.said[speaker] |= ids
        if "import" in target.name:
            # A line names its own user.
            for user in world.users_of(speaker.tenant):
                self.names.said[Owner(speaker.tenant, user)] |= ids
        if target.name in CORRECTING:
            # Whoever says it, it is said about the user of the fact, who may read it.
            told = [one for one in answer.data if isinstance(one, dict)]
            # The library answers with records, which have a scope.
            users = {one["user_id"] if "user_id" in one else one["scope"]["user"] for one in told}
            for name in filter(is_text, found_in(sent)):
                self.names.owners[name] |= {Owner(speaker.tenant, user) for user in users}
        if target.name in FORGETTING:
            world.forgot(speaker.tenant)
        if target.name.endswith("export") and not viewer.whole:
            world.exports[speaker] = [
                json.dumps(one) for one in answer.data if isinstance(one, dict) and "type" in one
            ]
        if target.name in {"POST /v1/turns", "Conversation.record"}:
            world.begun[speaker] += [
                one["conversation_id"] for one in answer.data if "conversation_id" in one
            ]
        learn(world, answer, viewer, sent, named.conversation)

    async def _exports(self, world: World) -> None:
        """Everything that is kept of each user, at the end."""
        await self.memory.settle()
        for owner in world.people:
            if owner.user is None:
                continue
            params = {"tenant": owner.tenant, "user_id": owner.user}
            response = await self.client.get("/v1/export", params=params)
            viewer = Viewer(owner.tenant, owner.user)
            await self._search(
                self.routes["GET /v1/export"], Answer(response.status_code, response.text), viewer, ""
            )


def _again(target: Route | Verb, world: World, dice: Random) -> tuple[Named, httpx.Request] | None:
    """What somebody sent before with an idempotency key, and no words of their own in it: another sends the very same."""
    earlier = world.once.get(target.name, [])
    return dice.choice(earlier) if earlier and dice.random() < REPEATED else None


def _named(target: Route | Verb, caller: Caller, world: World, dice: Random) -> Named:
    """Whose memory a call means: mostly one that the caller may name."""
    if isinstance(target, Route) and not target.is_page and "tenant" not in target.fields:
        return Named()
    person = dice.choice([one for one in world.people if caller.tenant in {None, one.tenant}])
    if caller.tenant is None:
        named = Named(
            None if person.tenant == DEFAULT_TENANT and dice.random() < 0.5 else person.tenant, person.user
        )
    else:
        named = Named(
            dice.choice([None, None, caller.tenant]), caller.user and dice.choice([None, caller.user])
        )
        named.user = person.user if caller.user is None else named.user
        if dice.random() < 0.15:
            other = dice.choice(world.people)
            named = dice.choice(
                [
                    Named(other.tenant, named.user),
                    Named(named.tenant, other.user),
                    Named(other.tenant, other.user),
                ]
            )
    fields = target.fields
    if fields.get("user_id") and caller.user is None and named.user is None:
        named.user = dice.choice(world.users_of(person.tenant))
    if isinstance(target, Verb) and not target.of_conversation and "user_id" not in fields:
        named.user = None
    return named


def _name_conversation(target: Route | Verb, named: Named, ask: Ask) -> None:
    required = (
        target.of_conversation if isinstance(target, Verb) else target.fields.get("conversation_id", False)
    )
    may = required or "conversation_id" in target.fields or (isinstance(target, Route) and target.is_page)
    if not may or not (required or ask.chance(0.5)):
        return
    begun = ask.world.begun[ask.speaker]
    if target.name in LOOSE and not OWNERSHIP and begun:
        named.conversation = ask.dice.choice(begun)
    else:
        named.conversation = _of_its_id(target, ask) or conversation(ask)
    ask.conversation = named.conversation


def _of_its_id(target: Route | Verb, ask: Ask) -> str | None:
    """Where something is that the call can be about: a call with any conversation and any id would mostly find nothing."""
    changing = target.name.endswith(CHANGING)
    kind = "open" if changing else next((kind for name, kind in ABOUT.items() if name in target.fields), None)
    here = [one for one in ask.world.ids[kind or ""] if one.owner == ask.speaker and one.conversation]
    return ask.dice.choice(here).conversation if here and ask.chance(0.8) else None


def _sent(request: httpx.Request) -> str:
    keyless = [
        f"{name}: {one}"
        for name, one in request.headers.items()
        if "key=" not in one and name in {"idempotency-key", "accept"}
    ]
    return " ".join(
        [unquote_plus(str(request.url.raw_path, "ascii")), *keyless, unquote_plus(request.content.decode())]
    )


def _told(found: Mapping[str, set[Owner]]) -> str:
    return ", ".join(f"{name} of {sorted(map(str, owners))}" for name, owners in sorted(found.items())[:5])


def _around(text: str, name: str) -> str:
    at = text.lower().find(name)
    return text[max(0, at - 300) : at + 150] if at >= 0 else text[:450]


# -- services and rounds --------------------------------------------------------------------------------------------------------


def settings_of(url: str, sessions: str | None = None) -> Settings:
    """Everything that brings texts back is on, and with little text already."""
    return Settings(
        url=url,
        sessions=sessions,
        language="en",
        recall="always",
        synchronous="normal",
        window_tokens=6000,
        recent_turns=2,
        archive=ArchiveSettings(threshold=400, page_from=200, reuse_s=9999.0, strategy="hybrid"),
        facts=FactSettings(extract="rules", embeddings=True),
    )


@asynccontextmanager
async def playing(settings: Settings, folder: Path) -> AsyncGenerator[Player]:
    """A service in this process, and whoever plays on it. It is opened here, with an embedder and a model that need no network."""
    app, log = create_app(settings), Lines()
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    with log.listening():
        async with (
            Memory.open(
                settings=settings, embedder=HashingEmbedder(), meter=app.state.meter
            ) as app.state.memory,
            filling() as app.state.filling,
            batches() as app.state.batches,
            open_streams(app.state.memory) as app.state.streams,
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8780") as client,
        ):
            app.state.model, app.state.chosen_model = Echo(), Chosen()
            yield Player(app, client, folder, log)


async def play(
    player: Player, seed: int, calls: int, tell=lambda line: None, *, shorten_s: float = SHORTENING_S
) -> str | None:
    """This many calls, in rounds; returns what crossed, with the seed and the fewest calls that show it, or None."""
    for number in range(0, calls, ROUND):
        name, asked = f"{seed} {number}", range(min(ROUND, calls - number))
        found = await _crossing(player, name, asked)
        if found is not None:
            tell(f"found at call {found.at} of round {number}, looking for fewer calls")
            shortest = await shortened(player, name, range(found.at + 1), found, shorten_s)
            return f"seed {seed}, round {number}, call {found.at}: {shortest}"
        tell(f"{number + len(asked)} calls")
    return None


async def shortened(
    player: Player, name: str, calls: Sequence[int], found: CrossingError, most_s: float
) -> CrossingError:
    """The same crossing with fewer calls, as far as this many seconds get: parts are left out, ever smaller ones."""
    kept, size, end = list(calls), max(1, len(calls) // 2), monotonic() + most_s
    while monotonic() < end:
        at, before = 0, len(kept)
        while at < len(kept) - 1 and monotonic() < end:
            less = kept[:at] + kept[min(at + size, len(kept) - 1) :]
            smaller = await _crossing(player, name, less, again=True)
            kept, found, at = (less, smaller, at) if smaller else (kept, found, at + size)
        if size == 1 and len(kept) == before:
            break
        size = max(1, size // 2)
    return found


async def _crossing(
    player: Player, name: str, calls: Sequence[int], *, again: bool = False
) -> CrossingError | None:
    try:
        await player.round(name, calls, again=again)
    except CrossingError as found:
        return found
    return None
