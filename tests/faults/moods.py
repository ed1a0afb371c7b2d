"""A stand-in for an OpenAI-compatible endpoint, chat and embeddings, with moods: it works, or fails in one of the usual ways."""

import hashlib
import json
import threading
from contextlib import suppress
from typing import Any

from tests.stub_server import QuietHandler, StubServer

DIMENSION = 16
#: Everything that goes wrong with models: no answer at all, an error, a page of somebody's proxy, JSON of another kind, half a body,
#: and vectors of another length.
BAD = ("hangs", "fails", "html", "nonsense", "half", "other length")


class Endpoint(StubServer):
    """Use it as `with Endpoint() as endpoint`; what it was asked is in `chats` and `embedded`."""

    def __init__(self) -> None:
        #: How it answers from now on.
        self.mood = "well"
        self.chats: list[dict[str, Any]] = []
        #: The texts that were made vectors of.
        self.embedded: list[str] = []
        #: Ends those that hang, so that no thread is left at the end.
        self._over = threading.Event()
        outer = self

        class Handler(QuietHandler):
            def handle(self) -> None:
                # Clients that lose their patience leave in the middle of a request.
                with suppress(ConnectionError, ValueError):
                    super().handle()

            def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                mood = outer.mood
                if mood == "hangs":
                    outer._over.wait(30)
                    self.close_connection = True
                    return
                status, kind, body = outer.answer(self.path, request, mood)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if mood == "half":
                    body, self.close_connection = body[: len(body) // 2], True
                self.wfile.write(body)

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def __exit__(self, *error: object) -> None:
        self._over.set()
        super().__exit__(*error)

    def answer(self, path, request, mood):
        """Status, content type and body."""
        if mood == "fails":
            return 500, "application/json", b'{"error": {"message": "overloaded"}}'
        if mood == "html":
            return 200, "text/html", b"<html>please log in</html>"
        if mood == "nonsense":
            return 200, "application/json", b'{"weather": "fine"}'
        if path.endswith("/embeddings"):
            return 200, "application/json", json.dumps(self._vectors(request, mood)).encode()
        self.chats.append(request)
        if request.get("stream"):
            return 200, "text/event-stream", _streamed("好的，", "请少盐。")
        return 200, "application/json", json.dumps(_said(self._text(request))).encode()

    def _vectors(self, request, mood):
        length = DIMENSION + 1 if mood == "other length" else DIMENSION
        if mood == "well":
            self.embedded += request["input"]
        rows = [_vector(text, length) for text in request["input"]]
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": request["model"], "data": data, "usage": usage}

    def _text(self, request):
        """Facts for whoever asks for facts: each turn that names something to be allergic to states one; else a summary."""
        lines = request["messages"][-1]["content"].splitlines()
        if not all(line.startswith('{"turn"') for line in lines):
            return "摘要：用户谈到了过敏。"
        turns = [json.loads(line) for line in lines]
        facts = [
            {
                "turn": turn["turn"],
                "quote": turn["text"],
                "text": f"用户：{turn['text']}",
                "category": "health",
            }
            for turn in turns
            if "过敏" in turn["text"]
        ]
        return json.dumps({"facts": facts}, ensure_ascii=False)


def _vector(text, length):
    digest = hashlib.sha256(text.encode()).digest()
    return [digest[at % 32] / 255 - 0.5 for at in range(length)]


def _said(text):
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}


def _streamed(*texts):
    pieces = [({"content": text}, None) for text in texts] + [({}, "stop")]
    lines = [
        {
            "id": "x", "object": "chat.completion.chunk", "created": 0, "model": "stub",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        for delta, finish in pieces
    ]  # fmt: skip
    return b"".join(b"data: %s\n\n" % json.dumps(line).encode() for line in lines) + b"data: [DONE]\n\n"
