"""A stand-in for an OpenAI-compatible endpoint: streams what a script says, and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.stub_server import QuietHandler, StubServer

#: What a script yields: a text, a `delta`, or raw bytes of the stream.
Piece = str | dict[str, Any] | bytes
Script = Callable[[dict[str, Any]], Iterable[Piece]]

#: The connection breaks here.
CUT = b"CUT"
#: The endpoint reports an error between two pieces.
ERROR = b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'
NONSENSE = b"data: {nonsense\n\n"
#: The stream ends here, properly, though no piece was the last.
END = b"END"


def call(name: str, arguments: Any, *, index: int = 0, id: str = "call_1") -> list[dict[str, Any]]:  # noqa: A002 - as the protocol calls it
    """The pieces of a tool call, as a model streams it: first its name, then its arguments bit by bit."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    half = len(text) // 2
    first = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": part}} for part in (text[:half], text[half:])]
    return [{"tool_calls": [piece]} for piece in (first, *rest)]


class ModelStub(StubServer):
    """Use it as `with ModelStub(script) as stub`; the script turns a request into the pieces of an answer."""

    def __init__(
        self,
        script: Script,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        after_s: float = 0.0,
    ) -> None:
        """It answers with this status and these headers, after so long."""
        self.requests: list[dict[str, Any]] = []
        #: Set when a client went away in the middle of an answer.
        self.left = threading.Event()
        outer = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                time.sleep(after_s)
                self.send_response(status)
                kind = "text/event-stream" if status == 200 else "application/json"
                for name, value in {"Content-Type": kind, **(headers or {})}.items():
                    self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.close_connection = True
                try:
                    self._play(script(request) if status == 200 else [b'{"error": {"message": "no"}}', END])
                except (BrokenPipeError, ConnectionResetError):
                    outer.left.set()

            def _play(self, pieces: Iterable[Piece]) -> None:
                finish = "stop"
                for piece in pieces:
                    if piece == CUT:
                        self.connection.close()
                        return
                    if piece == END:
                        self.wfile.write(b"0\r\n\r\n")
                        return
                    if isinstance(piece, dict):
                        finish = "tool_calls" if "tool_calls" in piece else finish
                    self._chunk(piece if isinstance(piece, bytes) else _data(piece, None))
                self._chunk(_data({}, finish))
                self._chunk(b"data: [DONE]\n\n")
                self.wfile.write(b"0\r\n\r\n")

            def _chunk(self, data: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


def _data(piece: str | dict[str, Any], finish: str | None) -> bytes:
    delta = {"content": piece} if isinstance(piece, str) else piece
    chunk = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "stub",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
