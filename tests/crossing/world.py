"""Who there is in a round: tenants, users, their keys, and the ids that everybody knows or guesses."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Literal
from zlib import crc32

import httpx

from pagefile.records import DEFAULT_TENANT, Scope
from pagefile.stores.key_secrets import new_key

from .owners import EVERYBODY, NOBODY, OWNERSHIP, Names, Owner, Viewer

#: Conversations and turns that everybody calls the same.
SHARED = {
    "conversation": ["today", "notes/2026:1", "thread 1"],
    "turn": ["turn-1", "turn-2", "turn-3", "turn-4"],
}
#: A user who is there in both tenants, and is not the same person.
NAMESAKE = "ada"
WRONG_KEY = f"pf_{'0' * 12}_{'0' * 43}"
#: The share of ids that are guessed, and how many of the speaker's own are still thought of.
GUESSES, LATEST = 0.25, 8


#: How far a call reaches that names a conversation and no user: nobody's conversation alone, or, as an operator's does, all of the
#: tenant. A page of the inspector lists all that its key may see, whomever it is about.
Reach = Literal["conversation", "tenant", "page"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: with a tenant's key, with a user's, with one that nobody knows, or with none at all."""

    called: str
    key: str | None = None
    tenant: str | None = None
    user: str | None = None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Id:
    """An id that somebody was given."""

    name: str
    owner: Owner
    conversation: str | None
    #: Where it came from, which is the same when a round is played again.
    origin: str


@dataclass
class Named:
    """What a call says of whose memory it means."""

    tenant: str | None = None
    user: str | None = None
    conversation: str | None = None


@dataclass
class World:
    """One round: nobody else has these names. Calls add the ids that they were given."""

    names: Names
    tenants: list[str]
    people: list[Owner]
    callers: list[Caller]
    #: Ids of every kind: whose they are, and which call brought them.
    ids: dict[str, list[Id]] = field(default_factory=lambda: defaultdict(list))
    #: The number of the call that is played, and how many ids it has brought.
    call: int = 0
    _brought: int = 0
    #: The lines of each owner's last export.
    exports: dict[Owner, list[str]] = field(default_factory=dict)
    #: Requests with idempotency keys, and whose memory they mean.
    once: dict[str, list[tuple[Named, httpx.Request]]] = field(default_factory=dict)
    #: Conversations that their owners have written to.
    begun: dict[Owner, list[str]] = field(default_factory=lambda: defaultdict(list))

    def learn(self, kind: str, name: str, owner: Owner, conversation: str | None = None) -> None:
        """An id that its owner was given."""
        if any(one.name == name and one.owner == owner for one in self.ids[kind]):
            return
        self._brought += 1
        self.ids[kind].append(Id(name, owner, conversation, f"{self.call} {self._brought}"))

    def begin(self, call: int) -> None:
        self.call, self._brought = call, 0

    def users_of(self, tenant: str) -> list[str]:
        return [one.user for one in self.people if one.tenant == tenant and one.user is not None]

    def forgot(self, tenant: str) -> None:
        """Something of a tenant was erased: its ids are anybody's again."""
        for owner in self.begun:
            if owner.tenant == tenant:
                self.begun[owner].clear()


def viewer_of(caller: Caller, named: Named, *, reach: Reach) -> Viewer:
    """For whom a call is to be answered, by the rules of SECURITY.md and decision 0033."""
    if not caller.known or not _agrees(caller.tenant, named.tenant) or not _agrees(caller.user, named.user):
        return NOBODY
    tenant, user = caller.tenant or named.tenant or DEFAULT_TENANT, caller.user or named.user
    alone = named.conversation is not None and reach == "conversation" and OWNERSHIP
    whole = caller.user is None if reach == "page" else user is None and not alone
    return Viewer(tenant, user, whole=whole)


def _agrees(own: str | None, named: str | None) -> bool:
    return own is None or named in {None, own}


def speaker_of(caller: Caller, viewer: Viewer) -> Owner:
    """Whose the words of a call are. Of a call that must be refused they are the caller's own."""
    if viewer.tenant is not None:
        return Owner(viewer.tenant, viewer.user)
    return Owner(caller.tenant or "a stranger", caller.user)


async def new_world(names: Names, keys) -> World:
    """A round's people, with keys for those of its own tenants; the default tenant is for callers without a key."""
    tenants = [_new_tenant(names), _new_tenant(names)]
    people = [_new_person(names, tenant) for tenant in [*tenants, DEFAULT_TENANT]]
    people += [Owner(tenant, NAMESAKE) for tenant in tenants]
    people += [Owner(tenant, None) for tenant in [*tenants, DEFAULT_TENANT]]
    world = World(
        names,
        tenants,
        people,
        [Caller("no key"), Caller("no key"), Caller("a wrong key", WRONG_KEY, known=False)],
    )
    for owner in people:
        if owner.tenant in tenants:
            world.callers.append(await _with_key(owner, keys))
    return world


async def _with_key(owner: Owner, keys) -> Caller:
    key, text = new_key("crossing", Scope(owner.tenant, owner.user), created=datetime.now(UTC))
    await keys.add(key)
    return Caller(f"key of {owner.user or 'all'} in {owner.tenant}", text, owner.tenant, owner.user)


def _new_tenant(names: Names) -> str:
    tenant = names.make("n", Owner("", None))
    names.owners[tenant] = {Owner(tenant, EVERYBODY)}
    return tenant


def _new_person(names: Names, tenant: str) -> Owner:
    user = names.make("u", Owner(tenant, None))
    names.owners[user] = {Owner(tenant, user)}
    return Owner(tenant, user)


@dataclass
class Ask:
    """One call while it is put together: who speaks, and the dice."""

    world: World
    dice: Random
    speaker: Owner
    #: The conversation that is named, if one is: most ids are of that one.
    conversation: str | None = None

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def some(self, kind: str) -> str | None:
        """An id: mostly the speaker's own, else one that everybody uses, else another's."""
        if kind in SHARED and self.chance(0.15):
            return self.dice.choice(SHARED[kind])
        pool = self.world.ids[kind]
        own = [one for one in pool if one.owner == self.speaker]
        here = [one for one in own if one.conversation == self.conversation]
        own = (here if self.conversation and here and kind != "conversation" else own)[-LATEST:]
        return self._picked(own if own and not self.chance(GUESSES) else pool)

    def _picked(self, pool: Sequence[Id]) -> str | None:
        """One of them. With others left out it is still the same one, so that a crossing can be shown with fewer calls."""
        draw = self.dice.random()
        found = min(pool, key=lambda one: crc32(f"{draw} {one.origin}".encode()), default=None)
        return found and found.name

    def made(self, kind: str) -> str:
        """A new name of the speaker's."""
        return self.world.names.make(kind, self.speaker)
