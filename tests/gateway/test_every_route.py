"""What the service does with every request, it does with those of each of a provider's paths."""

import importlib.util
import re
from pathlib import Path

import httpx
import pytest

from pagefile.service.vendor_paths import is_vendors
from pagefile.settings import ServiceSettings
from tests.gateway.behind import behind, new_text
from tests.gateway.upstream import Said

MESSAGES = [{"role": "user", "content": "one"}]
BODIES = {
    "/v1/chat/completions": {"model": "gpt-5", "messages": MESSAGES},
    "/v1/responses": {"model": "gpt-5", "input": "one"},
    "/v1/messages": {"model": "claude-opus-4-6", "max_tokens": 10, "messages": MESSAGES},
}
#: Those that only pass, and one without its version.
OTHERS = {
    "/v1/messages/count_tokens": BODIES["/v1/messages"],
    "/chat/completions": BODIES["/v1/chat/completions"],
}
POSTED = {**BODIES, **OTHERS}
GOTTEN = ("/v1/models", "/v1/models/gpt-5", "/v1/conversations/conv_1", "/v1/responses/resp_1")


def heard(_):
    return Said("heard")


def requests(here, **options):
    """A request to each of the paths, with its answer."""
    for path, body in POSTED.items():
        yield path, httpx.post(here.url + path, json=body, **options)
    for path in GOTTEN:
        yield path, httpx.get(here.url + path, **options)


def test_keys_and_tenants(tmp_path):
    """Without a key nothing is sent on, with one everything is; what memory has belongs to the key's tenant."""
    with behind(heard, tmp_path, service=ServiceSettings(require_keys=True)) as here, here.memory() as memory:
        assert {401} == {answer.status_code for _, answer in requests(here)}
        assert [] == here.upstream.requests
        for tenant in ("clinic", "school"):
            given = {"x-pagefile-key": new_text(memory, tenant, "ada", tenant), "x-api-key": "sk-vendor"}
            assert {200} == {answer.status_code for _, answer in requests(here, headers=given)}
            assert all("x-pagefile-key" not in headers for _, headers, _ in here.upstream.requests)
        found = [list(memory.conversations(tenant=tenant)) for tenant in ("clinic", "school")]
        assert [4, 4] == list(map(len, found))


@pytest.mark.parametrize("path", [*POSTED, *GOTTEN])
def test_rate_limits(tmp_path, path):
    with behind(heard, tmp_path, service=ServiceSettings(requests_per_minute=1)) as here:
        method, body = ("POST", {"json": POSTED[path]}) if path in POSTED else ("GET", {})
        answers = [httpx.request(method, here.url + path, **body) for _ in range(2)]
        assert [200, 429] == [answer.status_code for answer in answers]
        assert answers[1].headers["retry-after"]


@pytest.mark.parametrize("path", POSTED)
def test_sizes_and_repeated_requests(tmp_path, path):
    with behind(heard, tmp_path, service=ServiceSettings(max_body_bytes=10_000)) as here:
        url, body = here.url + path, POSTED[path]
        assert 413 == httpx.post(url, json={**body, "padding": "x" * 20_000}).status_code
        assert [] == here.upstream.requests
        first, second = (httpx.post(url, json=body, headers={"idempotency-key": "one"}) for _ in range(2))
        assert (first.content, "true") == (second.content, second.headers["idempotency-replayed"])
        assert 1 == len(here.upstream.requests)


def test_metrics(tmp_path):
    with behind(heard, tmp_path) as here:
        list(requests(here))
        told = httpx.get(f"{here.url}/metrics").text
        for protocol, count in (("chat", 2), ("responses", 1), ("messages", 1)):
            line = f'pagefile_gateway_requests_total{{protocol="{protocol}",status="recorded"}} {count}.0'
            assert line in told


def test_traces(tmp_path, spans):
    with behind(heard, tmp_path, service=ServiceSettings(tracing=True)) as here:
        list(requests(here))
    told = [(span.name, dict(span.attributes)) for span in spans.get_finished_spans()]
    assert len(POSTED) + len(GOTTEN) == len(told)
    models = [
        (name, of["gen_ai.provider.name"], of["gen_ai.usage.output_tokens"])
        for name, of in told
        if "gen_ai.provider.name" in of
    ]
    openai = ("chat gpt-5", "openai", 5)
    assert [openai, openai, ("chat claude-opus-4-6", "anthropic", 5), openai] == models
    # A path may hold ids: a span that is no model's names the route.
    assert not [name for name, _ in told if "resp_1" in name or "conv_1" in name]


#: What administers an account, and the memory that is ours to serve.
NOT_PASSED = {
    "admin", "memory_stores", "organization", "organizations", "projects", "webhook_endpoints", "webhook_event_types",
}  # fmt: skip


@pytest.mark.parametrize("package", ["openai", "anthropic"])
def test_whatever_the_vendors_clients_ask_for_passes(package):
    """Their own resources, as the installed client has them: what the gateway does not know, it passes on."""
    folder = Path(str(importlib.util.find_spec(package).origin)).parent / "resources"
    paths = {
        path
        for file in folder.rglob("*.py")
        for path in re.findall(r'\(\s*f?"(/[a-z_0-9/]+)', file.read_text())
    }
    found = {path.removeprefix("/v1").split("/")[1] for path in paths}
    assert {"messages"} & found or {"chat", "responses"} <= found
    assert NOT_PASSED >= {name for name in found if not is_vendors(f"/v1/{name}")} - {"chat"}
