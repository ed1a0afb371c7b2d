"""A stand-in for the Messages API: streams what a script says, and remembers what it was asked."""

import json
import re
from collections.abc import Callable
from typing import Any

from tests.stub_server import QuietHandler, StubServer

Block = dict[str, Any]
Script = Callable[[dict[str, Any]], list[Block]]


class MessagesStub(StubServer):
    """Use it as `with MessagesStub(script) as stub`; the script turns a request into content blocks."""

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = json.loads(body or b"{}")
                if not self.path.startswith("/v1/messages"):
                    self._answer(404, "application/json", b"{}")
                    return
                outer.requests.append(request)
                blocks = script(request) if request.get("tools") else [{"type": "text", "text": "title"}]
                self._answer(200, "text/event-stream", _stream(blocks, len(outer.requests)))

            def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
                self._answer(404, "application/json", b"{}")

            def do_HEAD(self) -> None:  # noqa: N802 - as http.server calls it
                self._answer(200, "application/json", b"")

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Handler)


def last_said(request: dict[str, Any]) -> list[Block]:
    """The blocks of the last message of the user; the command puts messages of the system between them."""
    content = [message for message in request["messages"] if message["role"] == "user"][-1]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _stream(blocks: list[Block], number: int) -> bytes:
    # The command joins messages of the same id into one.
    calls = any(block["type"] == "tool_use" for block in blocks)
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "stub",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        }
    ]
    for index, block in enumerate(blocks):
        start = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        # A text comes in pieces.
        deltas = (
            [
                {"type": "text_delta", "text": piece}
                for piece in re.findall(r"\S*\s*", block["text"])[:-1] or [""]
            ]
            if block["type"] == "text"
            else [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        )
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if calls else "end_turn"
    events += [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
