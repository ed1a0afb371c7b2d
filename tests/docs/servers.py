"""What really is behind the addresses that pages name; each is started when the first page names it."""

import json
from contextlib import ExitStack
from itertools import count
from typing import Any

from pagefile import Settings
from tests.acceptance.http_server import listening
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer
from tests.stub_server import QuietHandler, StubServer

SERVICE = "http://127.0.0.1:8780"
MODEL = "http://127.0.0.1:11434/v1"
POSTGRES = "postgresql://pagefile@db/pagefile"
REDIS = "redis://cache:6379/0"


class Servers:
    """Starts what is asked for, once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, Any] = {}
        self._schemas = count(1)

    def named_in(self, text: str) -> dict[str, str]:
        """The real address for each that a text names."""
        return {name: self._address(name) for name in (SERVICE, MODEL, POSTGRES, REDIS) if name in text}

    def _address(self, name: str) -> str:
        if name not in self._started:
            self._started[name] = self._stack.enter_context(_START[name]())
        server = self._started[name]
        if name == SERVICE:
            return server
        # A page finds its database empty.
        return server.url(schema=f"page{next(self._schemas)}") if name == POSTGRES else server.url


class ModelStandIn(StubServer):
    """Answers as an OpenAI-compatible server does: a summary, facts, or what it was asked last; and vectors."""

    def __init__(self) -> None:
        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = _vectors(request) if self.path.endswith("/embeddings") else _completion(request)
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


def _completion(request: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": _said(request["messages"])}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


#: What users say on the pages, and how the model puts it.
_RETOLD = {
    "I prefer trains to planes.": "The user prefers trains to planes.",
    "比起飞机，我更喜欢坐火车。": "用户喜欢坐火车。",
}


def _said(messages: list[dict[str, Any]]) -> str:
    system, asked = messages[0]["content"], messages[-1]["content"]
    if "JSON" in system and "turn" in asked:
        first = json.loads(asked.splitlines()[0])
        text = _RETOLD.get(first["text"], first["text"])
        fact = {"turn": 1, "quote": first["text"], "text": text, "category": "preference"}
        return json.dumps({"facts": [{**fact, "confidence": 0.9}]}, ensure_ascii=False)
    return next((said for text, said in _RETOLD.items() if text in asked), "A summary.")


def _vectors(request: dict[str, Any]) -> dict[str, Any]:
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    data = [
        {
            "object": "embedding",
            "index": n,
            "embedding": [float(text.count(c)) + 0.1 for c in "etaoinshrdlu的是一不"],
        }
        for n, text in enumerate(texts)
    ]
    return {
        "object": "list",
        "model": request["model"],
        "data": data,
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


_START = {
    SERVICE: lambda: listening(Settings(url="memory://")),
    MODEL: ModelStandIn,
    POSTGRES: PostgresServer,
    REDIS: ValkeyServer,
}
