"""MCP over HTTP: the keys, tenants and origins of every other route."""

import json
from datetime import UTC, datetime

import pytest

from pagefile.records import Scope
from pagefile.stores.key_secrets import new_key

from .http_serving import BEGIN, McpClient, serving


async def key_for(app, tenant, user=None):
    key, text = new_key("k", Scope(tenant, user), created=datetime.now(UTC), expires=None)
    await app.state.memory.engine.store.keys.add(key)
    return {"Authorization": f"Bearer {text}"}


async def test_a_session_remembers(monkeypatch):
    async with serving() as (_app, http):
        client = await McpClient(http).begin()
        await client.call("record", user="My cat is called Miso.", assistant="Nice.")
        found = await client.call("recall", query="cat")
    assert "Miso" in found["content"][0]["text"]


async def test_each_key_has_its_own_memory():
    async with serving(require_keys=True) as (app, http):
        ada = await McpClient(http, await key_for(app, "clinic", "ada")).begin()
        eve = await McpClient(http, await key_for(app, "clinic", "eve")).begin()
        await ada.call(
            "record", user="The password is swordfish.", assistant="Noted.", conversation_id="hers"
        )
        answers = [
            await eve.call("recall", query="password"),
            await eve.call("context", query="password", conversation_id="hers"),
            await eve.call("record", user="Mine now", conversation_id="hers"),
        ]
        own = await ada.call("recall", query="password")
    assert "swordfish" in json.dumps(own)
    assert "swordfish" not in json.dumps(answers)
    assert [False, True, True] == [one["isError"] for one in answers]


async def test_a_key_is_required_where_keys_are_required():
    async with serving(require_keys=True) as (app, http):
        assert 401 == (await McpClient(http).send("initialize", BEGIN)).status_code
        one = await key_for(app, "clinic", "ada")
        named = McpClient(http, {**one, "x-pagefile-user": "eve"})
        assert 403 == (await named.send("initialize", BEGIN)).status_code


async def test_settings_of_a_project_work_with_every_kind_of_key():
    """`pagefile wrap` writes the project and, from the environment, the key: that of a user, of a tenant, or none."""
    project = {"x-pagefile-project": "project:/src/app"}

    async def found_in(http, headers):
        client = await McpClient(http, headers).begin()
        return json.dumps(await client.call("recall", query="port of the database"))

    async with serving() as (_app, http):
        own = await McpClient(http, {**project, "x-pagefile-key": ""}).begin()
        await own.call("record", user="The database listens on port 5544.")
        assert "5544" in await found_in(http, project)
        assert "5544" in await found_in(http, {"x-pagefile-user": "project:/src/app"})
        assert "5544" not in await found_in(http, {})
    async with serving(require_keys=True) as (app, http):
        tenant, ada = await key_for(app, "clinic"), await key_for(app, "clinic", "ada")
        await (await McpClient(http, {**project, **ada}).begin()).call(
            "record", user="Port 7788 is the database's."
        )
        assert "7788" in await found_in(http, ada)
        assert "7788" not in await found_in(http, {**project, **tenant})
        empty = await McpClient(http, {**project, "x-pagefile-key": ""}).send("initialize", BEGIN)
        assert 401 == empty.status_code


async def test_calls_are_counted_by_tool_and_outcome():
    async with serving() as (_app, http):
        client = await McpClient(http).begin()
        await client.call("record", user="My cat is called Miso.")
        await client.call("load_tool_history", uuid="nothing like a uuid")
        measured = (await http.get("/metrics")).text
    assert 'pagefile_mcp_calls_total{outcome="answered",tool="record"} 1.0' in measured
    assert 'pagefile_mcp_calls_total{outcome="refused",tool="load_tool_history"} 1.0' in measured
    assert 'pagefile_mcp_seconds_count{tool="record"} 1.0' in measured


async def test_a_session_is_of_the_key_that_opened_it():
    async with serving(require_keys=True) as (app, http):
        ada = await McpClient(http, await key_for(app, "clinic", "ada")).begin()
        eve = McpClient(http, {**ada.headers, **await key_for(app, "clinic", "eve")})
        assert 404 == (await eve.send("tools/list")).status_code


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_pages_of_other_sites_are_refused(method):
    async with serving() as (_app, http):
        client = await McpClient(http).begin()
        foreign = {**client.headers, "Origin": "https://evil.example"}
        assert 403 == (await http.request(method, "/mcp", headers=foreign, json={})).status_code
        other = {**client.headers, "Host": "evil.example"}
        assert 421 == (await http.request(method, "/mcp", headers=other, json={})).status_code


async def test_requests_count_against_the_limit():
    async with serving(requests_per_minute=3) as (_app, http):
        client = await McpClient(http).begin()
        answers = [(await client.send("ping")).status_code for _ in range(3)]
    assert 429 == answers[-1]


async def test_without_the_extra_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("pagefile.service.mcp.find_spec", lambda _name: None)
    async with serving() as (_app, http):
        said = await McpClient(http).send("initialize", BEGIN)
    assert 501 == said.status_code
    assert "missing-extra" == said.json()["code"]
