"""A stand-in for a server that speaks OpenAI's chat completions."""

import json

from tests.stub_server import QuietHandler, StubServer


class CompletionsStub(StubServer):
    """`script` turns a request into an answer, or into a refusal: `(status, message)`."""

    def __init__(self, script):
        self.requests = []
        outer = self

        class Handler(QuietHandler):
            def do_POST(self):  # noqa: N802 - as http.server calls it
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(request)
                told = script(request)
                if isinstance(told, tuple):
                    self._answer(told[0], "application/json", json.dumps({"error": {"message": told[1]}}))
                elif request.get("stream"):
                    self._answer(200, "text/event-stream", _stream(told))
                else:
                    self._answer(200, "application/json", json.dumps(_whole(told)))

            def _answer(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

        super().__init__(Handler)


def _head(kind):
    return {"id": "x", "object": kind, "created": 0, "model": "m"}


def _whole(words):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": words}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {**_head("chat.completion"), "choices": [choice], "usage": usage}


def _stream(words):
    """Word by word; a word that is not JSON of the protocol can be put in as BROKEN, and ends the stream."""
    lines = []
    for word in words.split(" "):
        if word == "BROKEN":
            return "".join([*lines, "data: {not json\n\n"])
        lines.append(_piece({"content": f"{word} "}, None))
    return "".join([*lines, _piece({}, "stop"), "data: [DONE]\n\n"])


def _piece(delta, finish):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**_head('chat.completion.chunk'), 'choices': [choice]})}\n\n"
