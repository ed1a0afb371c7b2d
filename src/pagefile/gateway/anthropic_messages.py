"""Anthropic's Messages: content in blocks, instructions beside the messages, streams of typed events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

from pagefile.gateway.adapter import Adapter, parts_of
from pagefile.gateway.exchanges import CACHE_MARK, Json, blocks_of, cache_marks, text_of
from pagefile.gateway.replies import OwnCall, Reply, Round, said_arguments, summed
from pagefile.gateway.sse import Event, encoded
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import anthropic

_CALLS = frozenset({"tool_use"})
#: The API allows this many marks for its prompt cache in a request.
_MOST_MARKS = 4
#: Where the pieces of a block go, by the type of the delta.
_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Messages(Adapter):
    name, shape, path = "messages", "anthropic", "/messages"
    no_choice: ClassVar[Any] = {"type": "none"}

    def asks(self, message: Json) -> bool:
        blocks = [as_object(block) or {} for block in blocks_of(message)]
        return message.get("role") == "user" and not any(
            block.get("type") == "tool_result" for block in blocks
        )

    def system(self, body: Json) -> str:
        return text_of({"content": body.get("system")})

    def with_system(self, body: Json, text: str) -> Json:
        given = body.get("system")
        if isinstance(given, str) and given:
            return {**body, "system": f"{given}\n\n{text}"}
        # Behind the client's own marks for the prompt cache, which stay valid.
        return {**body, "system": [*(as_list(given) or []), self.text_block(text)]}

    def is_stateful(self, body: Json) -> bool:
        return bool(body.get("thread"))

    def previous(self, body: Json) -> str | None:
        named = (as_object(body.get("thread")) or {}).get("previous_message_id")
        return named if isinstance(named, str) else None

    def is_held(self, body: Json) -> bool:
        return self.is_stateful(body)

    def with_mark(self, body: Json, before: int) -> Json:
        """Where a client uses the prompt cache, the end of the history before the question is marked too: what follows changes.

        The mark is a copy of the client's next one, or else of the last before it: marks that hold longer must come first.
        """
        messages, automatic = self.messages(body), body.get(CACHE_MARK)
        earlier = [
            *cache_marks(body.get("tools")), *cache_marks(body.get("system")), *cache_marks(messages[:before])
        ]  # fmt: skip
        later = [*cache_marks(messages[before:]), *([] if automatic is None else [automatic])]
        marks = [*later[:1], *earlier[-1:]]
        if not 0 < len(earlier) + len(later) < _MOST_MARKS or before < 1 or cache_marks(messages[before - 1]):
            return body
        *rest, last = [as_object(block) or {} for block in blocks_of(messages[before - 1])] or [{}]
        if last.get("type") not in {"text", "tool_result", "image", "document"} or last.get("text") == "":
            return body
        marked = {**messages[before - 1], "content": [*rest, {**last, CACHE_MARK: marks[0]}]}
        return self.with_messages(body, [*messages[: before - 1], marked, *messages[before:]])

    def results(self, message: Json) -> Iterator[str]:
        for block in objects_in(message.get("content")):
            if block.get("type") == "tool_result":
                yield str(block.get("tool_use_id"))

    def with_results(self, message: Json, texts: Mapping[str, str]) -> Json:
        changed: list[Any] = []
        for block in as_list(message.get("content")) or []:
            fields = as_object(block) or {}
            text = texts.get(str(fields.get("tool_use_id"))) if fields.get("type") == "tool_result" else None
            changed.append(block if text is None or not _is_text(fields) else {**fields, "content": text})
        return {**message, "content": changed}

    def rendered(self, turns: Sequence[ShownTurn], blobs: Mapping[str, bytes]) -> list[Json]:
        return [cast("Json", message) for message in anthropic(parts_of(turns, blobs))[1]]

    def reply(self, own: frozenset[str]) -> Reply:
        return MessagesReply(own)

    def own_results(self, results: Sequence[tuple[OwnCall, str]]) -> list[Json]:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
        return [{"role": "user", "content": blocks}]

    def call_ids(self, messages: Sequence[Json]) -> list[str]:
        blocks = [block for message in messages for block in objects_in(message.get("content"))]
        return [str(block.get("id")) for block in blocks if block.get("type") in _CALLS]

    def is_final(self, messages: Sequence[Json], stop: str | None) -> bool:
        # A paused turn goes on when the client sends it back.
        return stop != "pause_turn" and super().is_final(messages, stop)


def _is_text(result: Json) -> bool:
    content = result.get("content")
    return content is None or isinstance(content, str) or all(
        (as_object(block) or {}).get("type") == "text" for block in as_list(content) or [None]
    )  # fmt: skip


class MessagesReply(Reply):
    def __init__(self, own: frozenset[str]) -> None:
        super().__init__(own)
        #: How many blocks the client has got.
        self._shown = 0
        self.next_round()

    def next_round(self) -> None:
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}
        #: The number that the client knows a block by; None for calls of our tools.
        self._numbers: dict[int, int | None] = {}
        self._stop: str | None = None
        self._usage: Json = {}

    # -- streams ----------------------------------------------------------------------------------------------------------

    def take(self, event: Event, data: Json) -> bytes | None:
        match data.get("type"):
            case "message_start":
                message = as_object(data.get("message")) or {}
                self._usage = as_object(message.get("usage")) or {}
                self.id = self.id or str(message.get("id"))
                return b"" if self.rounds else None
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._block(event, data)
            case "message_delta":
                return self._end(event, data)
            case _:
                return None

    def _block(self, event: Event, data: Json) -> bytes | None:
        index = data.get("index")
        if not isinstance(index, int):
            return None
        if data["type"] == "content_block_start":
            block = dict(as_object(data.get("content_block")) or {})
            self._blocks[index] = block
            mine = block.get("type") in _CALLS and block.get("name") in self.own
            self._numbers[index] = None if mine else self._shown
            self._shown += not mine
        elif data["type"] == "content_block_delta":
            self._collect(index, as_object(data.get("delta")) or {})
        number = self._numbers.get(index, index)
        if number is None:
            return b""
        return None if number == index else encoded({**data, "index": number}, event.name)

    def _collect(self, index: int, delta: Json) -> None:
        block, kind = self._blocks.setdefault(index, {}), str(delta.get("type"))
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block["citations"] = [*(as_list(block.get("citations")) or []), delta.get("citation")]
        elif kind in _PIECES:
            name = _PIECES[kind]
            block[name] = str(block.get(name) or "") + str(delta.get(name) or "")

    def _end(self, event: Event, data: Json) -> bytes | None:
        delta = as_object(data.get("delta")) or {}
        usage = as_object(data.get("usage")) or {}
        self._usage = {**self._usage, **usage}
        if isinstance(delta.get("stop_reason"), str):
            self._stop = delta["stop_reason"]
        changed = data
        if self.rounds and usage:
            earlier = {name: value for name, value in self.usage.items() if name in usage}
            changed = {**changed, "usage": summed(earlier, usage)}
        if self._numbers and self._stop == "tool_use" and not self._is_foreign():
            self.hold()
            # If no round follows, there is no call in the answer.
            changed = {**changed, "delta": {**delta, "stop_reason": "end_turn"}}
        return None if changed is data else encoded(changed, event.name)

    def _is_foreign(self) -> bool:
        return any(
            block.get("type") in _CALLS and self._numbers.get(index) is not None
            for index, block in self._blocks.items()
        )

    def round_of_events(self) -> Round:
        for index, text in self._inputs.items():
            if text:
                self._blocks[index]["input"] = said_arguments(text)
        content = [block for _, block in sorted(self._blocks.items())]
        return self._round(content, self._stop, self._usage)

    # -- whole answers ------------------------------------------------------------------------------------------------------

    def round_of(self, payload: Json) -> Round:
        stop = payload.get("stop_reason")
        self.id = str(payload.get("id"))
        usage = as_object(payload.get("usage")) or {}
        return self._round(objects_in(payload.get("content")), str(stop) if stop else None, usage)

    def _round(self, content: Sequence[Json], stop: str | None, usage: Json) -> Round:
        calls = [block for block in content if block.get("type") in _CALLS]
        own = [
            OwnCall(str(block.get("id")), str(block["name"]), as_object(block.get("input")) or {})
            for block in calls
            if block.get("name") in self.own
        ]
        foreign = len(own) < len(calls)
        kept = [
            block for block in content if not (foreign and self._is_own(block)) and block.get("text") != ""
        ]
        return Round([{"role": "assistant", "content": kept}] if kept else [], own, foreign, stop, usage)

    def _is_own(self, block: Json) -> bool:
        return block.get("type") in _CALLS and block.get("name") in self.own

    def merged(self, payload: Json) -> Json:
        said = [
            block
            for one in self.rounds[:-1]
            for message in one.messages
            for block in objects_in(message.get("content"))
        ]
        content = [block for block in (*said, *objects_in(payload.get("content"))) if not self._is_own(block)]
        stop = payload.get("stop_reason")
        called = any(block.get("type") in _CALLS for block in content)
        ended = "end_turn" if stop == "tool_use" and not called else stop
        return {**payload, "content": content, "stop_reason": ended, "usage": self.usage}

    def error_event(self, error: Json) -> bytes:
        return encoded({"type": "error", "error": error}, "error")
