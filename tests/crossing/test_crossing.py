"""No call of anybody tells what is another's: not a word, not an id, in no answer, refusal, log or metric."""

import os
import re
from base64 import b64encode

import pytest

from pagefile import Conversation, Memory, Settings
from pagefile.service import auth, idempotency
from pagefile.service.app import create_app
from tests.integration.postgres.serving import fresh_url
from tests.servers.valkey import ValkeyServer

from . import playing as rounds
from . import routes, verbs
from .owners import NOBODY, Names, Owner, Viewer
from .playing import play, playing, settings_of
from .values import FIELDS, WHOSE

#: `make soak` plays a hundred thousand on each; another seed plays others: `CROSSING_SEED=7 make test ARGS=tests/crossing`.
CALLS = 800
SEED = int(os.environ.get("CROSSING_SEED", "1"))


@pytest.mark.slow
async def test_nothing_crosses_on_sqlite(tmp_path):
    """Random calls over every verb and every route, by users of two tenants who use the same ids and guess each other's."""
    settings = settings_of(f"sqlite:///{tmp_path}/crossing.db")
    async with playing(settings, tmp_path) as player:
        found = await play(player, SEED, CALLS)
    assert found is None, found


@pytest.mark.slow
async def test_nothing_crosses_on_postgres_and_valkey(tmp_path):
    """The same where the database and the cache are servers."""
    with ValkeyServer() as cache:
        async with playing(settings_of(fresh_url(), cache.url), tmp_path) as player:
            found = await play(player, SEED, CALLS)
    assert found is None, found


# -- that it plays everything -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service():
    return create_app(Settings(url="memory://"))


def test_every_route_has_a_recipe(service):
    """A new one is played, or this fails by its name."""
    known = routes.routes_of(service)
    assert set(known) == set(routes.WEIGHTS)
    lacking = [
        f"{route.name} {name}"
        for route in known.values()
        for name in route.fields
        if not _has_recipe(route.name, name)
    ]
    assert [] == lacking


def test_every_verb_has_a_recipe():
    """A new one is played, or this fails by its name."""
    known = verbs.verbs_of(Memory, Conversation)
    assert set(known) == set(verbs.WEIGHTS) | set(verbs.LEFT_OUT)
    played = [verb for name, verb in known.items() if name in verbs.WEIGHTS and name not in verbs.SPECIAL]
    lacking = [
        f"{verb.name} {name}" for verb in played for name in verb.fields if not _has_recipe(verb.name, name)
    ]
    assert [] == lacking


def _has_recipe(place: str, field: str) -> bool:
    return field in WHOSE or field in FIELDS or f"{place} {field}" in FIELDS


# -- that it can fail ---------------------------------------------------------------------------------------------------------


async def test_a_guard_that_forgets_to_look_is_found(tmp_path, monkeypatch):
    """The service no longer holds what a request names against the caller's key."""

    async def _looks_away(value, principal, app):
        return value

    monkeypatch.setattr(auth, "narrowed", _looks_away)
    async with playing(settings_of("memory://"), tmp_path) as player:
        found = await play(player, SEED, 400, shorten_s=0)
    assert found is not None
    assert f"seed {SEED}" in found


async def test_a_listing_that_forgets_its_user_is_found(tmp_path, monkeypatch):
    """One of all verbs reads the whole tenant for whoever asks."""
    own = Memory.pages

    async def everybodys(self, *, user_id=None, **given):
        return await own(self, **given)

    monkeypatch.setattr(Memory, "pages", everybodys)
    async with playing(settings_of("memory://"), tmp_path) as player:
        found = await play(player, SEED, CALLS, shorten_s=0)
    assert found is not None
    # The verb itself, its own route, or the inspector's page that lists the same.
    assert re.search(r"Memory\.pages|/v1/pages|/inspector/archive", found.splitlines()[0])


async def test_an_answer_that_is_kept_for_everybody_is_found(tmp_path, monkeypatch):
    """The same request with the same idempotency key, by another: the answer of the first must not be given again."""
    monkeypatch.setattr(idempotency, "principal_of", lambda request: auth.Principal())
    # Few answers tell anything of somebody who is not named in the request: most calls send again what another has sent.
    monkeypatch.setattr(rounds, "REPEATED", 0.8)
    found = None
    for seed in range(1, 13):
        folder = tmp_path / str(seed)
        folder.mkdir()
        async with playing(settings_of("memory://"), folder) as player:
            found = await play(player, seed, CALLS, shorten_s=0)
        if found is not None:
            break
    assert found is not None
    assert "idempotency-key" in found.splitlines()[-1]


def test_who_may_read_what():
    """A user reads their own, a tenant's key all of the tenant, and nobody what is another tenant's."""
    names = Names()
    ada, bob, other = Owner("t", "ada"), Owner("t", "bob"), Owner("other", "ada")
    said, told, far = (names.make("t", owner) for owner in (ada, bob, other))
    text = f"{said.upper()} {told} {far}"
    assert {told, far} == set(names.crossed(text, Viewer("t", "ada")))
    assert {far} == set(names.crossed(text, Viewer("t", whole=True)))
    assert {said, told, far} == set(names.crossed(text, NOBODY))
    assert {told} == set(names.crossed(text, Viewer("t", "ada"), sent=far))


def test_names_are_found_inside_of_images():
    """A picture is sent as base 64."""
    names = Names()
    hidden = names.make("t", Owner("t", "ada"))
    data = b64encode(f"some bytes before {hidden} and behind it".encode()).decode()
    assert {hidden} == set(names.crossed(f'{{"url":"data:image/png;base64,{data}"}}', NOBODY))


async def test_the_shortest_trace_is_told(tmp_path, monkeypatch):
    """What is left of hundreds of calls are the few that show it: somebody says something, another is told."""
    own = Memory.facts

    async def of_all(self, user_id, tenant=None, **given):
        users = [head.scope.user for head in await self.conversations(tenant=tenant) if head.scope.user]
        return [fact for user in {user_id, *users} for fact in await own(self, user, tenant, **given)]

    monkeypatch.setattr(Memory, "facts", of_all)
    async with playing(settings_of("memory://"), tmp_path) as player:
        # However busy the machine is: what is shown here is how short a trace becomes, not how soon.
        found = await play(player, SEED, CALLS, shorten_s=600.0)
    assert found is not None
    assert len(found.splitlines()) < 20
