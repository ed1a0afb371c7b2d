"""A provider that speaks the real protocols of OpenAI and Anthropic, with a script instead of a model, and with faults."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.stub_server import QuietHandler, StubServer


@dataclass(frozen=True)
class Said:
    """What the model says: a text, and calls of tools."""

    text: str = ""
    #: Pairs of a tool's name and its arguments.
    calls: tuple[tuple[str, Any], ...] = ()
    thinking: str = ""


@dataclass(frozen=True)
class Fault:
    """What goes wrong instead: a status, a stream that is cut after some events, a malformed event, or silence."""

    status: int = 0
    cut_after: int | None = None
    #: Falls silent for so long after that many events.
    stalls_after: int | None = None
    stall_s: float = 0.0
    malformed: bool = False
    sleep_s: float = 0.0
    #: Keeps a stream open behind its end, until this is true; called once.
    lingers: Callable[[], object] | None = None
    said: Said = field(default_factory=lambda: Said("never heard to its end"))


Script = Callable[[dict[str, Any]], Said | Fault]
_IDS = count(1)


class Upstream(StubServer):
    """Use it as `with Upstream(script) as upstream`; `requests` has the path, the headers and the body of each request."""

    def __init__(self, script: Script) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        #: Set when a client went away in the middle of an answer.
        self.left = threading.Event()
        outer = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
                outer.requests.append((self.path, _lower(self.headers), {}))
                self._whole(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]})

            do_DELETE = do_GET  # noqa: N815 - likewise

            def do_POST(self) -> None:  # noqa: N802 - likewise
                body = _read(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, _lower(self.headers), body))
                if self.path.endswith("/count_tokens"):
                    self._whole(200, {"input_tokens": 7})
                    return
                said = script(body)
                fault = said if isinstance(said, Fault) else Fault()
                said = fault.said if isinstance(said, Fault) else said
                time.sleep(fault.sleep_s)
                if fault.status:
                    error = {"type": "overloaded_error", "message": "try again", "code": None, "param": None}
                    self._whole(fault.status, {"type": "error", "error": error}, {"retry-after": "0"})
                    return
                speak = _PROTOCOLS[self.path.partition("?")[0].rpartition("/v1")[2]]
                if body.get("stream"):
                    self._events(speak(body, said, stream=True), fault)
                else:
                    self._whole(200, speak(body, said, stream=False))

            def _whole(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
                text = json.dumps(value).encode()
                self.send_response(status)
                for name, one in {
                    "content-type": "application/json",
                    "x-request-id": "req_1",
                    "set-cookie": "vendor=one; Path=/",
                    **(headers or {}),
                }.items():
                    self.send_header(name, one)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def _events(self, events: Iterator[tuple[str, Any]], fault: Fault) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream; charset=utf-8")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                try:
                    for number, (name, data) in enumerate(events):
                        if number == fault.cut_after:
                            self.close_connection = True
                            self.connection.close()
                            return
                        if number == fault.stalls_after:
                            time.sleep(fault.stall_s)
                        head = f"event: {name}\n" if name else ""
                        text = data if isinstance(data, str) else json.dumps(data)
                        if fault.malformed and number == 1:
                            text = "{nonsense"
                        piece = f"{head}data: {text}\n\n".encode()
                        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                        self.wfile.flush()
                    if fault.lingers is not None:
                        fault.lingers()
                    self.wfile.write(b"0\r\n\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                    outer.left.set()

        super().__init__(Handler)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.requests]

    @property
    def last(self) -> dict[str, Any]:
        return self.bodies[-1]


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return {}


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [word if not at else f" {word}" for at, word in enumerate(words)] if text else []


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _chat(body: dict[str, Any], said: Said, *, stream: bool) -> Any:
    head = {"id": f"chatcmpl-{next(_IDS)}", "created": 1, "model": body["model"]}
    calls = [
        {
            "id": f"call_{next(_IDS)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for name, arguments in said.calls
    ]
    finish = "tool_calls" if calls else "stop"
    if not stream:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said.text or None,
            "refusal": None,
            "annotations": [],
        }
        message |= {"tool_calls": calls} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": _USAGE}

    def events() -> Iterator[tuple[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(said.text)]
        for index, call in enumerate(calls):
            first = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
            deltas.append({"tool_calls": [{"index": index, **first}]})
            arguments = call["function"]["arguments"]
            for part in (arguments[:3], arguments[3:]):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        whole = {**head, "object": "chat.completion.chunk"}
        for delta in deltas:
            yield "", {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield "", {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        if (body.get("stream_options") or {}).get("include_usage"):
            yield "", {**whole, "choices": [], "usage": _USAGE}
        yield "", "[DONE]"

    return events()


def _messages(body: dict[str, Any], said: Said, *, stream: bool) -> Any:
    blocks: list[dict[str, Any]] = []
    if said.thinking:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": f"sig-{said.thinking}"})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    for name, arguments in said.calls:
        blocks.append({"type": "tool_use", "id": f"toolu_{next(_IDS)}", "name": name, "input": arguments})
    stop = "tool_use" if said.calls else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {
        "id": f"msg_{next(_IDS)}", "type": "message", "role": "assistant", "model": body["model"], "content": blocks,
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not stream:
        return message

    def events() -> Iterator[tuple[str, Any]]:
        start = {**message, "content": [], "stop_reason": None}
        yield "message_start", {"type": "message_start", "message": start}
        yield "ping", {"type": "ping"}
        for index, block in enumerate(blocks):
            kind = block["type"]
            empty = {
                "text": {"text": ""},
                "thinking": {"thinking": "", "signature": ""},
                "tool_use": {"input": {}},
            }[kind]
            yield (
                "content_block_start",
                {"type": "content_block_start", "index": index, "content_block": {**block, **empty}},
            )
            deltas: list[dict[str, Any]] = []
            if kind == "text":
                deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
            elif kind == "thinking":
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                deltas += [{"type": "signature_delta", "signature": block["signature"]}]
            else:
                text = json.dumps(block["input"])
                deltas = [
                    {"type": "input_json_delta", "partial_json": part} for part in ("", text[:4], text[4:])
                ]
            for delta in deltas:
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        delta = {"stop_reason": stop, "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
        yield "message_stop", {"type": "message_stop"}

    return events()


def _responses(body: dict[str, Any], said: Said, *, stream: bool) -> Any:
    items: list[dict[str, Any]] = []
    if said.thinking:
        number = next(_IDS)
        thought = {"type": "reasoning", "summary": [], "encrypted_content": f"sealed {number}"}
        items.append({**thought, "id": f"rs_{number}"})
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}]
        items.append(
            {
                "type": "message",
                "id": f"msg_{next(_IDS)}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for name, arguments in said.calls:
        call = {"call_id": f"call_{next(_IDS)}", "name": name, "arguments": json.dumps(arguments)}
        items.append({"type": "function_call", "id": f"fc_{next(_IDS)}", "status": "completed", **call})
    usage = {
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    response = {
        "id": f"resp_{next(_IDS)}", "object": "response", "created_at": 1, "model": body["model"], "status": "completed",
        "output": items, "usage": usage, "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
    }  # fmt: skip
    if not stream:
        return response
    numbers = count()

    def event(kind: str, **fields: Any) -> tuple[str, Any]:
        return kind, {"type": kind, "sequence_number": next(numbers), **fields}

    def events() -> Iterator[tuple[str, Any]]:
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for index, item in enumerate(items):
            place = {"item_id": item["id"], "output_index": index}
            if item["type"] == "message":
                whole = item["content"][0]
                empty = {**whole, "text": ""}
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**item, "content": [], "status": "in_progress"},
                )
                yield event("response.content_part.added", **place, content_index=0, part=empty)
                for piece in _pieces(whole["text"]):
                    yield event(
                        "response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[]
                    )
                yield event(
                    "response.output_text.done", **place, content_index=0, text=whole["text"], logprobs=[]
                )
                yield event("response.content_part.done", **place, content_index=0, part=whole)
            elif item["type"] == "function_call":
                yield event(
                    "response.output_item.added",
                    output_index=index,
                    item={**item, "arguments": "", "status": "in_progress"},
                )
                yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
                yield event(
                    "response.function_call_arguments.done",
                    **place,
                    name=item["name"],
                    arguments=item["arguments"],
                )
            else:
                yield event("response.output_item.added", output_index=index, item=item)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=response)

    return events()


_PROTOCOLS = {"/chat/completions": _chat, "/messages": _messages, "/responses": _responses}
