"""OpenAI's Responses: a list of items in and out; the provider may hold the history itself."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

from pagefile.gateway.adapter import Adapter, parts_of
from pagefile.gateway.exchanges import Json
from pagefile.gateway.replies import OwnCall, Reply, Round, said_arguments, summed
from pagefile.gateway.sse import Event, encoded
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import responses

_CALLS = frozenset({"function_call", "custom_tool_call"})
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_ENDS = frozenset({"response.completed", "response.incomplete"})


class Responses(Adapter):
    name, shape, path = "responses", "responses", "/responses"
    field = "input"
    limits = ("max_output_tokens",)

    def asks(self, message: Json) -> bool:
        return message.get("role") == "user" and message.get("type", "message") == "message"

    def messages(self, body: Json) -> list[Json]:
        given = body.get("input")
        return [{"role": "user", "content": given}] if isinstance(given, str) else objects_in(given)

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        only = messages[0] if len(messages) == 1 else {}
        if (
            isinstance(body.get("input"), str)
            and only.keys() == {"role", "content"}
            and isinstance(only["content"], str)
        ):
            return {**body, "input": only["content"]}
        return {**body, "input": list(messages)}

    def text_block(self, text: str) -> Json:
        return {"type": "input_text", "text": text}

    def system(self, body: Json) -> str:
        given = body.get("instructions")
        return given if isinstance(given, str) else ""

    def with_system(self, body: Json, text: str) -> Json:
        given = self.system(body)
        return {**body, "instructions": f"{given}\n\n{text}" if given else text}

    def with_previous(self, body: Json, name: str) -> Json:
        return {**body, "previous_response_id": name}

    def is_stateful(self, body: Json) -> bool:
        return any(body.get(name) for name in ("previous_response_id", "conversation", "prompt"))

    def is_held(self, body: Json) -> bool:
        return body.get("store") is not False

    def previous(self, body: Json) -> str | None:
        """The response or the conversation at the provider that this one continues."""
        conversation = body.get("conversation")
        named = (as_object(conversation) or {}).get("id") or conversation or body.get("previous_response_id")
        return named if isinstance(named, str) else None

    def takes_tools(self, body: Json) -> bool:
        return super().takes_tools(body) and not body.get("background") and not self.is_stateful(body)

    def results(self, message: Json) -> Iterator[str]:
        if message.get("type") in _RESULTS:
            yield str(message.get("call_id"))

    def with_results(self, message: Json, texts: Mapping[str, str]) -> Json:
        text = texts.get(str(message.get("call_id")))
        return (
            message
            if text is None or not isinstance(message.get("output"), str)
            else {**message, "output": text}
        )

    def rendered(self, turns: Sequence[ShownTurn], blobs: Mapping[str, bytes]) -> list[Json]:
        return [cast("Json", item) for item in responses(parts_of(turns, blobs))[1]]

    def reply(self, own: frozenset[str]) -> Reply:
        return ResponsesReply(own)

    def own_results(self, results: Sequence[tuple[OwnCall, str]]) -> list[Json]:
        return [
            {"type": "function_call_output", "call_id": call.id, "output": text} for call, text in results
        ]

    def call_ids(self, messages: Sequence[Json]) -> list[str]:
        return [str(item.get("call_id")) for item in messages if item.get("type") in _CALLS]

    def unfolded(
        self, messages: Sequence[Json], logged: Sequence[Json], ours: AbstractSet[str]
    ) -> list[Json]:
        """The client saw each item but those of our calls, which belong before whatever followed them."""
        groups: list[tuple[list[Json], set[str]]] = []
        last: Json = {}
        for item in logged:
            mine = item.get("call_id") in ours
            if mine and last.get("call_id") not in ours:
                groups.append(([], set()))
            if groups:
                hidden, following = groups[-1]
                hidden.extend([item] if mine else [])
                following |= set[str]() if mine else _names(item)
            last = item
        whole: list[Json] = []
        for item in messages:
            while groups and not groups[0][1].isdisjoint(_names(item)):
                whole += groups.pop(0)[0]
            whole.append(item)
        return whole


def _names(item: Json) -> set[str]:
    """What an item is known by; some clients leave out its id."""
    named = (item.get("call_id"), item.get("id"), item.get("encrypted_content"))
    return {name for name in named if isinstance(name, str)}


class ResponsesReply(Reply):
    def __init__(self, own: frozenset[str]) -> None:
        super().__init__(own)
        #: How many items the client has got, and the number of its last event.
        self._shown = 0
        self._number = -1
        self.next_round()

    def next_round(self) -> None:
        self._items: dict[int, Json] = {}
        #: Messages that have begun, and their texts until now.
        self._begun: dict[int, Json] = {}
        self._texts: dict[int, str] = {}
        self._numbers: dict[int, int | None] = {}
        self._stop: str | None = None
        self._usage: Json = {}

    # -- streams ----------------------------------------------------------------------------------------------------------

    def take(self, event: Event, data: Json) -> bytes | None:
        kind = str(data.get("type") or event.name)
        if self.rounds and kind in {"response.created", "response.queued", "response.in_progress"}:
            return b""
        changed = self._item(kind, data)
        if changed is None:
            return b""
        if kind in _ENDS:
            changed = self._end(kind, changed)
        elif kind == "response.created":
            self.id = self.shown_id = str((as_object(data.get("response")) or {}).get("id"))
        number = data.get("sequence_number")
        if isinstance(number, int):
            self._number += 1
            changed = changed if number == self._number else {**changed, "sequence_number": self._number}
        return None if changed is data else encoded(changed, event.name)

    def _item(self, kind: str, data: Json) -> Json | None:
        """The event with the number that the client knows its item by; None if it belongs to a call of our tools."""
        index = data.get("output_index")
        if not isinstance(index, int):
            return data
        item = as_object(data.get("item"))
        if kind == "response.output_item.added":
            mine = item is not None and item.get("type") in _CALLS and item.get("name") in self.own
            self._numbers[index] = None if mine else self._shown
            self._shown += not mine
            if item is not None and item.get("type") == "message":
                self._begun[index] = item
        if kind == "response.output_text.delta":
            self._texts[index] = self._texts.get(index, "") + str(data.get("delta") or "")
        if kind == "response.output_item.done" and item is not None:
            self._items[index] = item
        number = self._numbers.get(index, index)
        if number is None:
            return None
        return data if number == index else {**data, "output_index": number}

    def _end(self, kind: str, data: Json) -> Json:
        response = as_object(data.get("response")) or {}
        self.id = str(response.get("id"))
        self._stop = kind.removeprefix("response.")
        self._usage = as_object(response.get("usage")) or {}
        for index, item in enumerate(objects_in(response.get("output"))):
            self._items.setdefault(index, item)
        own = [item for item in self._items.values() if self._is_own(item)]
        return {**data, "response": self.merged(response)} if self.rounds or own else data

    def round_of_events(self) -> Round:
        for index in self._begun.keys() - self._items.keys():
            if text := self._texts.get(index):
                content: list[Json] = [{"type": "output_text", "text": text, "annotations": []}]
                self._items[index] = {**self._begun[index], "status": "incomplete", "content": content}
        return self._round([item for _, item in sorted(self._items.items())], self._stop, self._usage)

    # -- whole answers ------------------------------------------------------------------------------------------------------

    def round_of(self, payload: Json) -> Round:
        status = payload.get("status")
        self.id = str(payload.get("id"))
        stop = str(status) if status in {"completed", "incomplete"} else None
        return self._round(objects_in(payload.get("output")), stop, as_object(payload.get("usage")) or {})

    def _round(self, items: Sequence[Json], stop: str | None, usage: Json) -> Round:
        calls = [item for item in items if item.get("type") in _CALLS]
        own = [
            OwnCall(
                str(item.get("call_id")), str(item["name"]), said_arguments(str(item.get("arguments") or ""))
            )
            for item in calls
            if self._is_own(item)
        ]
        foreign = len(own) < len(calls)
        kept = [item for item in items if not (foreign and self._is_own(item))]
        return Round(kept, own, foreign, stop, usage)

    def _is_own(self, item: Json) -> bool:
        return item.get("type") in _CALLS and item.get("name") in self.own

    def merged(self, payload: Json) -> Json:
        """What the client sees of all rounds; a stream ends under the id that it began with."""
        # A stream says its end before its round is over.
        earlier = self.rounds if self.events else self.rounds[:-1]
        said = [item for one in earlier for item in one.messages]
        output = [item for item in (*said, *(as_list(payload.get("output")) or [])) if not self._is_own(item)]
        usage: Json = {}
        for one in earlier:
            usage = summed(usage, one.usage)
        shown = self.shown_id if self.events else payload.get("id")
        usage = summed(usage, as_object(payload.get("usage")) or {})
        return {**payload, "id": shown, "output": output, "usage": usage}

    def error_event(self, error: Json) -> bytes:
        self._number += 1
        told = {"code": error.get("code"), "message": error.get("message"), "param": None}
        return encoded({"type": "error", **told, "sequence_number": self._number}, "error")
