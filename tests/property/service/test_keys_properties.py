"""Whatever a key's holder sends to whatever route, nothing of another's comes back, and nothing of another's changes."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile.inspector.reference import Operation, operations
from pagefile.records import Scope
from pagefile.service.app import create_app
from tests.acceptance.http_examples import sent

from .worlds import GHOST, SETTINGS, TENANTS, USERS, Wish, World, a_world, holders, mark, wishes

#: Fields of requests that hold ids of things.
IDS = ("turn_id", "uuid", "fact_id", "id", "source", "call_id", "after")


def fields_of(operation: Operation, document: dict[str, Any]) -> set[str]:
    """What a request may name."""
    named = {one["name"] for one in operation.spec.get("parameters", ())}
    content = operation.spec.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None:
        reference = content["schema"]["$ref"].rpartition("/")[2]
        named |= set(document["components"]["schemas"][reference]["properties"])
    return named


def wished(
    operation: Operation, document: dict[str, Any], wish: Wish, world: World, upload: str
) -> dict[str, Any]:
    """The example request of a route with the wish written over it."""
    request = sent(operation, document, world.ids[wish.thing % len(world.ids)])
    names = [*world.conversations, GHOST]
    over = {
        "tenant": wish.tenant,
        "user_id": wish.user,
        "conversation_id": names[wish.conversation % len(names)],
        **dict.fromkeys(IDS, world.ids[wish.thing % len(world.ids)]),
        "uuids": [world.ids[wish.thing % len(world.ids)]],
    }
    where = "json" if "json" in request else "params"
    given = dict(request.get(where, {}))
    known = fields_of(operation, document)
    for name, value in over.items():
        wanted = name in given or name in ("tenant", "user_id", "conversation_id")
        if name not in known or not wanted:
            continue
        given.pop(name, None)
        if value is not None:
            given[name] = value
    if "content" in request:
        return {
            "content": upload,
            "headers": request["headers"],
            "params": {key: given[key] for key in ("tenant", "user_id") if key in given},
        }
    return {where: given}


@cache
def reference() -> dict[str, Any]:
    """Every route there is."""
    return FastAPI.openapi(create_app(SETTINGS))


@cache
def routes() -> list[Operation]:
    """Those with anything of anybody."""
    return [one for one in operations(reference()) if one.path.startswith("/v1/")]


def others_than(holder: Scope) -> list[Scope]:
    """Everybody whose memory is none of a key's business."""
    everybody = [Scope(tenant, user) for tenant in TENANTS for user in USERS]
    return [
        scope for scope in everybody if scope.tenant != holder.tenant or holder.user not in (None, scope.user)
    ]


async def tried(holder: Scope, order: list[tuple[int, Wish]]) -> None:
    document = reference()
    known = routes()
    everybody = [Scope(tenant, user) for tenant in TENANTS for user in USERS]
    others = others_than(holder)
    async with a_world() as world:
        key = await world.key(holder)
        before = {scope: await world.lines(scope) for scope in others}
        uploads = ["".join(await world.lines(scope)) for scope in everybody]
        sent_in: set[Scope] = set()
        for number, wish in order:
            operation = known[number % len(known)]
            request = wished(operation, document, wish, world, uploads[wish.upload])
            headers = {**key, **request.pop("headers", {})}
            answer = await world.client.request(operation.method, operation.path, headers=headers, **request)
            said = f"{operation.method} {operation.path} {request} -> {answer.status_code} {answer.text}"
            assert answer.status_code != 500, said
            assert [] == [scope for scope in others if mark(scope) in answer.text and scope not in sent_in], (
                said
            )
            if "content" in request and answer.is_success:
                # Whoever sends in an export of another's knew it already, and has a copy of their own from now on.
                sent_in.add(everybody[wish.upload])
            named = request.get("json") or request.get("params") or {}
            if "tenant" in fields_of(operation, document) and (
                named.get("tenant") not in (None, holder.tenant)
                or (holder.user and named.get("user_id") not in (None, holder.user))
            ):
                assert answer.status_code in (403, 422), said
        await world.memory.settle()
        for scope in others:
            assert before[scope] == await world.lines(scope), scope


@cache
def pages() -> list[tuple[str, str]]:
    """Every page and form of the inspector."""
    found = [
        (method, route.path or "")
        for route in iter_route_contexts(create_app(SETTINGS).routes)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]
    return [one for one in found if one[1].startswith("/inspector") or one[1] in ("/", "/index.json")]


async def looked(holder: Scope, order: list[tuple[int, Wish]]) -> None:
    """As `tried`, with a browser: names in the query string and in the form, the key in the cookie."""
    known = pages()
    others = others_than(holder)
    async with a_world() as world:
        key = (await world.key(holder))["Authorization"].removeprefix("Bearer ")
        cookies = {"pagefile_key": key, "pagefile_form": "t"}
        before = {scope: await world.lines(scope) for scope in others}
        for number, wish in order:
            method, path = known[number % len(known)]
            thing = world.ids[wish.thing % len(world.ids)]
            names = {
                "tenant": wish.tenant,
                "user_id": wish.user,
                "conversation_id": [*world.conversations, GHOST, None][wish.conversation],
            }
            values = {key: value for key, value in names.items() if value is not None}
            asked = {
                **dict.fromkeys(("call_id", "uuid", "fact_id", "confirm"), thing),
                "q": "高血压",
                "revision": "1",
            }
            form = {**values, **asked, "token": "t", "what": "retract", "text": "x", "message": "高血压？"}
            headers = {"Accept": "text/html", "Cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())}
            answer = await world.client.request(
                method,
                path,
                params={**values, **asked},
                headers=headers,
                data=form if method == "POST" else None,
            )
            said = f"{method} {path} {values} {thing} -> {answer.status_code} {answer.text}"
            assert answer.status_code != 500, said
            assert [] == [scope for scope in others if mark(scope) in answer.text], said
        await world.memory.settle()
        for scope in others:
            assert before[scope] == await world.lines(scope), scope


def every_route(wish: Wish) -> list[tuple[int, Wish]]:
    return [(number, wish) for number in range(len(routes()))]


@settings(max_examples=12)
@given(holders, st.lists(st.tuples(st.integers(0, 63), wishes), min_size=10, max_size=60))
def test_a_key_never_reaches_another_s(holder: Scope, order: list[tuple[int, Wish]]):
    """No text of another tenant or, for a user's key, of another user or of nobody; and none of theirs changes."""
    anyio.run(tried, holder, order)


@settings(max_examples=10)
@given(holders, st.lists(st.tuples(st.integers(0, 63), wishes), min_size=10, max_size=60))
def test_nor_does_a_browser_that_holds_it(holder: Scope, order: list[tuple[int, Wish]]):
    """The same for the pages and forms of the inspector."""
    anyio.run(looked, holder, order)


def test_every_page_is_looked_at_with_another_s_names():
    """And with ids of everything that is another's, by both kinds of key."""
    for holder in (Scope("红"), Scope("红", "ada")):
        for wish in (
            Wish("blue", "bob", 4, 0),
            Wish(None, None, 1, 0),
            Wish(None, None, 7, 0),
            Wish(None, None, 2, 0),
        ):
            things = [
                (number, replace(wish, thing=thing))
                for number in range(len(pages()))
                for thing in range(0, 36, 5)
            ]
            anyio.run(looked, holder, things)


def test_every_route_is_tried_with_another_s_names():
    """The tenant, the user and the ids of somebody else, at each route once, by both kinds of key."""
    for holder in (Scope("红"), Scope("红", "ada")):
        for wish in (
            Wish("blue", "bob", 4, 20),
            Wish(None, None, 1, 8),
            Wish(None, None, 2, 9),
            Wish("红", "bob", 2, 12),
            # Recorded calls: another user's, in their conversation and in one's own, and another tenant's.
            Wish(None, None, 1, 29),
            Wish(None, None, 0, 29),
            Wish(None, None, 0, 33),
        ):
            anyio.run(tried, holder, every_route(wish))


def test_the_world_tells_whose_is_what():
    """The tests above can fail: without a key's bounds, the marks do come back."""

    async def seen() -> str:
        async with a_world() as world:
            key = await world.key(Scope("blue"))
            answer = await world.client.get(
                "/v1/turns", headers=key, params={"conversation_id": "chat of bob", "user_id": "bob"}
            )
            return answer.text + json.dumps([*map(len, [await world.lines(Scope("blue", "bob"))])])

    text = anyio.run(seen)
    assert mark(Scope("blue", "bob")) in text
    assert not text.endswith("[0]")
