"""OpenAI's Conversations API through the gateway: every call of the client reaches the provider as it was made."""

import json

import openai

from pagefile import Settings
from pagefile.settings import EmbedderSettings, GatewaySettings
from tests.acceptance.http_server import listening
from tests.stub_server import QuietHandler, StubServer

SAID = [{"type": "message", "role": "user", "content": "hi"}]


def test_every_call_of_the_client_passes(tmp_path):
    heard = []

    class Provider(QuietHandler):
        def answer(self):
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            heard.append((self.command, self.path, json.loads(raw) if raw else None))
            body = json.dumps(
                {"id": "conv_1", "object": "conversation", "data": [], "has_more": False}
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - as http.server calls them

    with StubServer(Provider) as provider:
        settings = Settings(
            url=f"sqlite:///{tmp_path}/g.db",
            embedder=EmbedderSettings(name="none"),
            gateway=GatewaySettings(openai_url=f"{provider.url}/v1"),
        )
        with (
            listening(settings) as url,
            openai.OpenAI(base_url=f"{url}/v1", api_key="sk", max_retries=0) as client,
        ):
            talks = client.conversations
            assert talks.create(items=SAID, metadata={"topic": "tea"}).id == "conv_1"
            talks.retrieve("conv_1")
            talks.update("conv_1", metadata={"topic": "coffee"})
            talks.items.create("conv_1", items=SAID)
            assert list(talks.items.list("conv_1")) == []
            talks.items.delete("item_1", conversation_id="conv_1")
            talks.delete("conv_1")
    assert heard == [
        ("POST", "/v1/conversations", {"items": SAID, "metadata": {"topic": "tea"}}),
        ("GET", "/v1/conversations/conv_1", None),
        ("POST", "/v1/conversations/conv_1", {"metadata": {"topic": "coffee"}}),
        ("POST", "/v1/conversations/conv_1/items", {"items": SAID}),
        ("GET", "/v1/conversations/conv_1/items", None),
        ("DELETE", "/v1/conversations/conv_1/items/item_1", None),
        ("DELETE", "/v1/conversations/conv_1", None),
    ]
