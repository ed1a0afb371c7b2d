"""Summaries by any OpenAI-compatible model: the real client against a small server that speaks the protocol."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pagefile import Memory, ModelOutputError, ModelUnavailableError, Settings
from pagefile.models import OpenAIChat, endpoint
from pagefile.settings import ModelSettings
from tests.faults.moods import Endpoint


class Stub(BaseHTTPRequestHandler):
    """Answers `POST /v1/chat/completions` with what the test wants."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], request))
        status, content = self.server.answer
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}]}  # fmt: skip
        data = json.dumps(body if status == 200 else {"error": {"message": "no"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def served(answer):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.answer, server.seen = answer, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_key_is_in_no_repr():
    """Not of the endpoint either, which a traceback or a log may show."""
    assert "sk-secret" not in repr(endpoint.Endpoint("The model 'm'", "A chat model", None, "sk-secret", 1.0))


async def test_a_model_behind_any_base_url_answers():
    """The request is a plain chat completion, with the key in the header."""
    with served((200, "模型的摘要。")) as (server, url):
        model = OpenAIChat("qwen-small", base_url=url, api_key="sk-1")
        assert await model.complete([{"role": "user", "content": "你好"}], max_tokens=50) == "模型的摘要。"
        await model.close()
    path, key, request = server.seen[0]
    assert (path, key, request["model"], request["max_tokens"]) == (
        "/v1/chat/completions",
        "Bearer sk-1",
        "qwen-small",
        50,
    )
    assert request["messages"] == [{"role": "user", "content": "你好"}]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((500, ""), ModelUnavailableError),
        ((401, ""), ModelUnavailableError),
        ((200, "  "), ModelOutputError),
        ((200, None), ModelOutputError),
    ],
)
async def test_a_failing_model_gives_our_errors(answer, error):
    """Whatever the client raises; the key is never in the message."""
    with served(answer) as (_, url):
        model = OpenAIChat("m", base_url=url, api_key="sk-secret")
        with pytest.raises(error) as caught:
            await model.complete([{"role": "user", "content": "x"}], max_tokens=5)
        await model.close()
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("mood", ["html", "nonsense", "half", "fails"])
async def test_what_is_no_chat_completion_gives_our_error(mood):
    """The page of a proxy, JSON of another kind, half a body: never the client's own exception."""
    with Endpoint() as endpoint:
        endpoint.mood = mood
        model = OpenAIChat("m", base_url=endpoint.url, api_key="sk-secret")
        with pytest.raises((ModelOutputError, ModelUnavailableError)) as caught:
            await model.complete([{"role": "user", "content": "x"}], max_tokens=5)
        await model.close()
    assert "sk-secret" not in str(caught.value)


async def test_a_model_that_is_not_there_gives_our_error():
    """Nobody listens at this port."""
    with served((200, "x")) as (_, url):
        pass
    model = OpenAIChat("m", base_url=url)
    with pytest.raises(ModelUnavailableError):
        await model.complete([{"role": "user", "content": "x"}], max_tokens=5)
    await model.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [((200, "模型写的：第0次到第3次，血压 120、121、122、123。"), "模型写的"), ((500, ""), "血压")],
)
async def test_a_model_named_in_the_settings_writes_the_summaries(answer, expected):
    """And when it fails, the summary is extracted: the conversation goes on either way."""
    with served(answer) as (_, url):
        settings = Settings(window_tokens=600, model=ModelSettings(name="m", base_url=url, api_key="k"))
        async with Memory.open("memory://", settings=settings) as memory:
            chat = memory.conversation("c")
            for n in range(30):
                await chat.record(user=f"第{n}次：血压 {120 + n}，要紧吗？", assistant="继续观察。")
            await memory.settle()
            assert expected in (await chat.checkpoints())[-1].summary
