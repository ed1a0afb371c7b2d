"""Reads server-sent events as a client does, and stands in for a knowledge base that speaks JSON."""

import json
import re

from tests.stub_server import QuietHandler, StubServer


class Event(dict):
    """The fields of one event: `event`, `id`, `data`, `retry`."""

    @property
    def json(self):
        return json.loads(self["data"])


def events_in(text):
    """The events of a stream; comments are passed over."""
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [Event(re.findall(r"^(\w+): (.*)$", block, re.MULTILINE)) for block in blocks]


def words(events):
    """The words of the answer that events bring."""
    return "".join(event.json["text"] for event in events if event["event"] == "token")


class JsonStub(StubServer):
    """Answers every request with the same JSON, and remembers headers and body of each."""

    def __init__(self, answer):
        self.requests = []
        outer = self

        class Handler(QuietHandler):
            def do_POST(self):  # noqa: N802 - as http.server calls it
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((dict(self.headers), body))
                said = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        super().__init__(Handler)
