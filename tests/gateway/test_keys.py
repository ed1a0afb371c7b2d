"""Who may use the gateway, and what becomes of keys."""

import logging
import re
from functools import partial

import httpx
import openai
import pytest
from starlette.datastructures import Headers

from pagefile import BlockingMemory, Settings, SettingsError
from pagefile.errors import StoreUnavailableError
from pagefile.service.app import create_app
from pagefile.service.gateway_target import Target
from pagefile.settings import EmbedderSettings, GatewaySettings, ServiceSettings
from tests.gateway.behind import behind, new_text
from tests.gateway.scripts import QUESTION, asked, echo
from tests.gateway.upstream import Fault, Said, Upstream

KEYED = {"service": ServiceSettings(require_keys=True)}


@pytest.fixture
def keyed(tmp_path):
    with behind(echo, tmp_path, **KEYED) as here, here.memory() as memory:
        keys = {name: new_text(memory, name, user) for name, user in (("tenant", None), ("ada", "ada"))}
        yield here, keys


def test_a_key_is_required(keyed):
    here, keys = keyed
    with pytest.raises(openai.AuthenticationError):
        asked(here.openai(), QUESTION)
    assert [] == here.upstream.requests
    asked(here.openai(default_headers={"x-pagefile-key": keys["tenant"]}), QUESTION)
    _, headers, _ = here.upstream.requests[-1]
    assert "Bearer sk-vendor" == headers["authorization"]
    assert "x-pagefile-key" not in headers


def test_our_key_in_the_vendors_header_does_not_leave(tmp_path, keyed):
    here, keys = keyed
    with openai.OpenAI(base_url=f"{here.url}/v1", api_key=keys["ada"], max_retries=0) as client:
        asked(client, QUESTION)
    assert "authorization" not in here.upstream.requests[-1][1]


@pytest.mark.parametrize("scheme", ["Bearer", "BEARER", "bearer "])
def test_our_key_does_not_leave_however_its_scheme_is_written(keyed, scheme):
    here, keys = keyed
    headers = {"authorization": f"{scheme} {keys['ada']}"}
    body = {"model": "gpt-5", "messages": QUESTION}
    assert 200 == httpx.post(f"{here.url}/v1/chat/completions", json=body, headers=headers).status_code
    assert "authorization" not in here.upstream.requests[-1][1]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages/count_tokens"])
def test_cookies_go_neither_way(tmp_path, path):
    """What a provider sets for one user is not sent with another's request, and ours stay here."""
    with behind(echo, tmp_path) as here:
        body = {"model": "gpt-5", "messages": QUESTION}
        first = httpx.post(f"{here.url}{path}", json=body, headers={"x-pagefile-user": "ada"})
        assert "set-cookie" not in first.headers
        httpx.post(f"{here.url}{path}", json=body, headers={"x-pagefile-user": "bob"})
        assert "cookie" not in here.upstream.requests[-1][1]
        httpx.post(f"{here.url}{path}", json=body, headers={"cookie": "pagefile_key=pf_secret"})
        assert "cookie" not in here.upstream.requests[-1][1]


def test_what_any_connection_header_names_stays_here():
    given = [("connection", "keep-alive"), ("connection", "x-hop"), ("x-hop", "1"), ("x-end", "1")]
    headers = Headers(raw=[(name.encode(), value.encode()) for name, value in given])
    assert [("x-end", "1")] == Target(None, "/models", "authorization", None).headers(headers, plain=False)


def test_a_key_of_one_user_reaches_no_other(keyed):
    here, keys = keyed
    client = here.openai(default_headers={"x-pagefile-key": keys["ada"]})
    with pytest.raises(openai.PermissionDeniedError):
        asked(client, QUESTION, extra_headers={"x-pagefile-user": "bob"})
    asked(client, QUESTION, user="bob")
    with here.memory() as memory:
        (turn,) = memory.turns(user_id="ada", tenant="clinic")
        assert ("clinic", "ada") == (turn.scope.tenant, turn.scope.user)
        assert [] == list(memory.turns(user_id="bob", tenant="clinic"))


def test_tenants_share_nothing(tmp_path):
    """Not even where users, histories and a provider's ids are the same."""
    with behind(echo, tmp_path, **KEYED) as here:
        with here.memory() as memory:
            keys = {tenant: new_text(memory, tenant, "ada", tenant) for tenant in ("clinic", "school")}
        history = [
            *QUESTION,
            {"role": "assistant", "content": "answer 1"},
            {"role": "user", "content": "Really?"},
        ]
        found = {}
        for tenant, key in keys.items():
            headers = {"x-pagefile-key": key, "authorization": "Bearer sk-vendor"}
            for messages in (QUESTION, history):
                body = {"model": "gpt-5", "messages": messages}
                answer = httpx.post(f"{here.url}/v1/chat/completions", json=body, headers=headers)
                found.setdefault(tenant, set()).add(answer.headers["x-pagefile-conversation"])
        assert [1, 1] == [len(names) for names in found.values()]
        assert found["clinic"].isdisjoint(found["school"])


def test_a_key_of_one_user_does_not_name_anothers_conversation(keyed):
    here, keys = keyed
    url, body = f"{here.url}/v1/chat/completions", {"model": "gpt-5", "messages": QUESTION}
    named = {"x-pagefile-conversation": "trip"}
    bobs = {**named, "x-pagefile-key": keys["tenant"], "x-pagefile-user": "bob"}
    assert 200 == httpx.post(url, json=body, headers=bobs).status_code
    assert 403 == httpx.post(url, json=body, headers={**named, "x-pagefile-key": keys["ada"]}).status_code
    assert 1 == len(here.upstream.requests)


def test_the_gateways_own_key_replaces_the_clients(tmp_path):
    given = {"openai_api_key": "sk-held", "anthropic_api_key": "sk-ant-held"}
    with behind(echo, tmp_path, gateway=given) as here:
        asked(here.openai(), QUESTION)
        assert "Bearer sk-held" == here.upstream.requests[-1][1]["authorization"]
        message = [{"role": "user", "content": "one"}]
        here.anthropic().messages.create(model="claude-opus-4-6", max_tokens=10, messages=message)
        headers = here.upstream.requests[-1][1]
        assert "sk-ant-held" == headers["x-api-key"]
        assert "authorization" not in headers


@pytest.fixture
def held(tmp_path):
    """The provider's key is the gateway's, and two users have keys of ours."""
    given = {"openai_api_key": "sk-held", "anthropic_api_key": "sk-ant-held"}
    with behind(anything, tmp_path, gateway=given, **KEYED) as here, here.memory() as memory:
        yield here, {name: {"x-pagefile-key": new_text(memory, name, name)} for name in ("ada", "bob")}


def anything(_):
    return Said("fine")


OTHERS = [
    "GET chat/completions",
    "GET files",
    "DELETE files/x",
    "GET responses/resp_1",
    "POST batches",
    "DELETE models/x",
]


@pytest.mark.parametrize("asked_for", OTHERS)
def test_the_held_key_opens_nothing_that_others_left_at_the_provider(held, asked_for):
    here, keys = held
    method, path = asked_for.split()
    body = {"json": {}} if method == "POST" else {}
    assert 403 == httpx.request(method, f"{here.url}/v1/{path}", headers=keys["ada"], **body).status_code
    assert [] == here.upstream.requests


def test_the_held_key_is_used_on_its_own_account_and_for_the_list_of_models(held):
    here, keys = held
    headers = {**keys["ada"], "openai-organization": "org-x", "openai-project": "proj-x"}
    assert 200 == httpx.get(f"{here.url}/v1/models", headers=headers).status_code
    _, sent, _ = here.upstream.requests[-1]
    assert {"openai-organization", "openai-project"}.isdisjoint(sent)


def test_with_the_held_key_a_user_continues_only_own_responses(held):
    here, keys = held

    def asks(user, **fields):
        body = {"model": "gpt-5", "input": "What is it?", **fields}
        return httpx.post(f"{here.url}/v1/responses", json=body, headers=keys[user])

    first = asks("bob").json()["id"]
    assert 200 == asks("bob", previous_response_id=first).status_code
    for named in (
        {"previous_response_id": first},
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
    ):
        assert 403 == asks("ada", **named).status_code
    headers = {**keys["ada"], "content-type": "application/json"}
    assert 400 == httpx.post(f"{here.url}/v1/responses", content=b"packed", headers=headers).status_code
    assert 2 == len(here.upstream.requests)


def test_with_the_held_key_a_user_continues_only_own_threads(held):
    here, keys = held

    def asks(user, thread):
        messages = [{"role": "user", "content": "What is it?"}]
        body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages, "thread": thread}
        return httpx.post(f"{here.url}/v1/messages", json=body, headers=keys[user])

    following = {"type": "continue", "previous_message_id": asks("bob", {"type": "create"}).json()["id"]}
    assert [200, 403] == [asks(user, following).status_code for user in ("bob", "ada")]


def test_no_key_is_logged_or_stored(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with behind(echo, tmp_path) as here:
        asked(here.openai(), QUESTION)
        here.anthropic().messages.create(
            model="claude-opus-4-6", max_tokens=10, messages=[{"role": "user", "content": "one"}]
        )
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("pagefile")]
    assert not [line for line in ours if "sk-" in line]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"Where do I live?" in stored
    assert b"sk-vendor" not in stored
    assert b"sk-ant-vendor" not in stored


def test_a_request_does_not_choose_where_it_goes(tmp_path):
    """No path, header or field leads anywhere but to the provider that is set."""
    with behind(echo, tmp_path) as here:
        for path in (
            "/v1/models/../../secret",
            "/v1/models/%2e%2e/%2e%2e/secret",
            "/v1/models//evil.example/x",
        ):
            answer = httpx.get(f"{here.url}{path}", headers={"host": "127.0.0.1"})
            assert answer.status_code in {200, 404}
        assert all(path.startswith("/v1/") for path, _, _ in here.upstream.requests)
        body = {
            "model": "gpt-5",
            "messages": QUESTION,
            "base_url": "http://evil.example",
            "api_base": "http://evil.example",
        }
        assert 200 == httpx.post(f"{here.url}/v1/chat/completions", json=body).status_code


@pytest.mark.parametrize("name", ["org%2Fname", "%252e%252e", "%3Fx=1", "a%23b", "%E5%AD%97"])
def test_a_path_arrives_as_it_was_sent(tmp_path, name):
    with behind(echo, tmp_path) as here:
        assert 200 == httpx.get(f"{here.url}/v1/models/{name}?limit=2").status_code
        assert [f"/v1/models/{name}?limit=2"] == [path for path, _, _ in here.upstream.requests]


@pytest.mark.parametrize(
    "name", ["%01", "x%0d%0ay", "%2e%2e/%2e%2e/x", "..;/x", "%2e%2e;a=1/x", "%5c..%5c.."]
)
def test_a_path_that_may_lead_elsewhere_is_not_found(tmp_path, name):
    with behind(echo, tmp_path) as here:
        assert 404 == httpx.get(f"{here.url}/v1/models/{name}").status_code
        assert [] == here.upstream.requests


@pytest.mark.parametrize(
    "other",
    [{"x-pagefile-user": "bob"}, {"x-pagefile-mode": "off"}, {"authorization": "Bearer sk-wrong"}],
    ids=str,
)
def test_an_answer_is_replayed_only_to_the_same_caller(tmp_path, other):
    given = {"x-pagefile-user": "ada", "authorization": "Bearer sk-vendor", "idempotency-key": "one"}
    body = {"model": "gpt-5", "messages": QUESTION}
    with behind(echo, tmp_path) as here:

        def asks(headers):
            return httpx.post(f"{here.url}/v1/chat/completions", json=body, headers=headers)

        assert 200 == asks(given).status_code
        assert "true" == asks(given).headers["idempotency-replayed"]
        assert asks({**given, **other}).status_code in {409, 422}


BODIES = (
    b"", b"[]", b"nonsense", b'{"model": 1}', b'{"messages": "x"}', b'{"messages": [1, null, {}]}',
    b'{"messages": [{"role": "user"}]}', b'{"messages": [{"role": "user", "content": [{"type": 5}]}]}',
    b'{"messages": [{"role": "tool", "tool_call_id": 3, "content": {}}], "tools": 7}',
    b'{"messages": [{"role": "user", "content": "\\ud800"}]}', b'{"messages": [{"role": ["user"], "content": "x"}]}',
    b'{"input": {"a": 1}}', b'{"input": [{"type": "function_call_output"}], "previous_response_id": "resp_x"}',
)  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_what_is_no_request_is_for_the_provider_to_judge(tmp_path, path):
    """Nothing that a client sends is answered with a failure of ours."""
    with behind(echo_anything, tmp_path) as here:
        headers = {"content-type": "application/json"}
        for body in BODIES:
            answer = httpx.post(f"{here.url}{path}", content=body, headers=headers)
            assert (400, True) == (answer.status_code, "overloaded_error" in answer.text), body


def echo_anything(_):
    return Fault(status=400)


async def test_a_known_key_needs_no_database(tmp_path, monkeypatch):
    """While it is down, a request goes out unchanged and says why; a key that nobody knows yet opens nothing, least of all the provider's."""

    async def down(*_, **__):
        raise StoreUnavailableError

    with Upstream(echo) as upstream:
        gateway = GatewaySettings(openai_url=f"{upstream.url}/v1", openai_api_key="sk-shared")
        settings = Settings(
            url=f"sqlite:///{tmp_path}/a.db", embedder=EmbedderSettings(name="none"), gateway=gateway, **KEYED
        )
        with BlockingMemory.open(settings=settings) as memory:
            bearers = [
                {"Authorization": f"Bearer {new_text(memory, name, user)}"}
                for name, user in (("tenant", None), ("ada", "ada"), ("late", None))
            ]
        app = create_app(settings)
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        body = {"model": "gpt-5", "messages": QUESTION}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8780") as client,
        ):
            send = partial(client.post, "/v1/chat/completions", json=body)
            for bearer in bearers[:2]:
                assert 200 == (await send(headers=bearer)).status_code
            store = app.state.memory.engine.store
            for port, verb in ((store.keys, "get"), (store.reader, "view"), (store.reader, "owner")):
                monkeypatch.setattr(port, verb, down)
            for bearer in bearers[:2]:
                answer = await send(headers=bearer)
                assert (200, "bypassed") == (answer.status_code, answer.headers["x-pagefile-status"])
                assert "memory failed: the database does not answer" == answer.headers["x-pagefile-bypassed"]
                _, headers, sent = upstream.requests[-1]
                assert ("Bearer sk-shared", body) == (headers["authorization"], sent)
            before, answer = len(upstream.requests), await send(headers=bearers[2])
            assert (503, before) == (answer.status_code, len(upstream.requests))
            assert "this key cannot be checked" in answer.json()["detail"]
            wrong = {"Authorization": f"{bearers[0]['Authorization'][:-3]}abc"}
            assert 401 == (await send(headers=wrong)).status_code
            assert (
                'pagefile_gateway_requests_total{protocol="chat",status="bypassed"} 2.0'
                in app.state.meter.text().decode()
            )


def test_what_a_proxy_says_of_the_client_stays_here(tmp_path):
    """Addresses of an office are nothing for a provider."""
    given = {
        "x-forwarded-for": "10.1.2.3",
        "x-forwarded-proto": "https",
        "forwarded": "for=10.1.2.3",
        "x-real-ip": "10.1.2.3",
        "x-own": "kept",
    }
    with behind(echo, tmp_path) as here:
        httpx.post(
            f"{here.url}/v1/chat/completions", json={"model": "gpt-5", "messages": QUESTION}, headers=given
        )
        _, headers, _ = here.upstream.requests[-1]
    assert ["x-own"] == [name for name in given if name in headers]


def test_a_body_that_is_not_json_is_said_to_be_so(tmp_path, keyed_shared):
    """And not that the key may not do this."""
    here, bearer = keyed_shared
    post = partial(
        httpx.post, f"{here.url}/v1/chat/completions", headers={**bearer, "content-type": "application/json"}
    )
    answer = post(content=b'{"model": nope')
    assert (400, "The body is not JSON: it breaks at character 10.") == (
        answer.status_code,
        answer.json()["detail"],
    )
    assert 400 == post(content=b"[]").status_code
    assert [] == here.upstream.requests


@pytest.fixture
def keyed_shared(tmp_path):
    with (
        behind(echo, tmp_path, gateway={"openai_api_key": "sk-shared"}, **KEYED) as here,
        here.memory() as memory,
    ):
        yield here, {"authorization": f"Bearer {new_text(memory, 'tenant', None)}"}


def test_a_protocol_without_a_provider_names_its_setting(tmp_path):
    with behind(echo, tmp_path, gateway={"anthropic_url": None}) as here:
        answer = httpx.post(f"{here.url}/v1/messages", json={"model": "claude-x", "messages": QUESTION})
    assert (404, "This is Anthropic's protocol: set gateway.anthropic_url, and start again.") == (
        answer.status_code,
        answer.json()["detail"],
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"openai_url": "127.0.0.1:59000"}, "must begin with http:// or https://"),
        ({"anthropic_url": "https://"}, "must begin with http:// or https://"),
        ({"openai_url": "ftp://u:secret@h"}, "gateway.openai_url is 'ftp://u:***@h': it must begin"),
        ({"openai_url": "u:secret@h/v1"}, "gateway.openai_url is 'u:***@h/v1': it must begin"),
        ({"prices": "missing.toml"}, "missing.toml"),
    ],
)
def test_a_gateway_that_cannot_work_is_refused_before_it_starts(given, told):
    """In one line, and not with each request."""
    with pytest.raises(SettingsError, match=re.escape(told)):
        create_app(Settings(gateway=GatewaySettings(**given)))
