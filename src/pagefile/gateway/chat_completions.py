"""OpenAI's Chat Completions, as OpenAI and everybody compatible with it speak them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pagefile.gateway.adapter import Adapter
from pagefile.gateway.exchanges import Json, text_of
from pagefile.gateway.replies import OwnCall, Reply, Round, said_arguments, summed
from pagefile.gateway.sse import Event, encoded
from pagefile.shapes.skeleton import as_list, as_object, objects_in
from pagefile.window.candidates import ShownTurn
from pagefile.window.parts import chat_turn

_INSTRUCTING = frozenset({"system", "developer"})
#: What an endpoint takes back of a message that it sent; others may refuse the rest.
_TAKEN_BACK = frozenset(
    {"role", "content", "tool_calls", "function_call", "refusal", "name", "reasoning_content", "reasoning", "reasoning_details"}
)  # fmt: skip


class ChatCompletions(Adapter):
    name, shape, path = "chat", "openai", "/chat/completions"
    limits = ("max_completion_tokens", "max_tokens")

    def asks(self, message: Json) -> bool:
        return message.get("role") == "user"

    def system(self, body: Json) -> str:
        leading = self.messages(body)[: self._leading(body)]
        return "\n\n".join(map(text_of, leading))

    def with_system(self, body: Json, text: str) -> Json:
        messages, leading = self.messages(body), self._leading(body)
        if not leading:
            return self.with_messages(body, [{"role": "system", "content": text}, *messages])
        # Many chat templates allow one system message only.
        last = messages[leading - 1]
        content = last.get("content")
        more: Any = (
            f"{content}\n\n{text}".lstrip()
            if isinstance(content, str)
            else [*(as_list(content) or []), self.text_block(text)]
        )
        changed = {**last, "content": more}
        return self.with_messages(body, [*messages[: leading - 1], changed, *messages[leading:]])

    def _leading(self, body: Json) -> int:
        messages = self.messages(body)
        return next(
            (at for at, one in enumerate(messages) if one.get("role") not in _INSTRUCTING), len(messages)
        )

    def results(self, message: Json) -> Iterator[str]:
        if message.get("role") == "tool":
            yield str(message.get("tool_call_id"))

    def with_results(self, message: Json, texts: Mapping[str, str]) -> Json:
        text = texts.get(str(message.get("tool_call_id")))
        plain = isinstance(message.get("content"), str) or _is_text(message.get("content"))
        return message if text is None or not plain else {**message, "content": text}

    def rendered(self, turns: Sequence[ShownTurn], blobs: Mapping[str, bytes]) -> list[Json]:
        return [cast("Json", message) for turn in turns for message in chat_turn(turn, blobs)]

    def reply(self, own: frozenset[str]) -> Reply:
        return ChatReply(own)

    def own_results(self, results: Sequence[tuple[OwnCall, str]]) -> list[Json]:
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]

    def call_ids(self, messages: Sequence[Json]) -> list[str]:
        calls = [call for message in messages for call in objects_in(message.get("tool_calls"))]
        old = ["" for message in messages if message.get("function_call")]
        return [*(str(call.get("id")) for call in calls), *old]


def _is_text(content: object) -> bool:
    blocks = as_list(content)
    return blocks is not None and all((as_object(block) or {}).get("type") == "text" for block in blocks)


class ChatReply(Reply):
    """The first choice is the conversation's; others pass by."""

    def __init__(self, own: frozenset[str]) -> None:
        super().__init__(own)
        self._first_id: str | None = None
        self.next_round()

    def next_round(self) -> None:
        self._message: Json = {}
        self._calls: dict[int, Json] = {}
        #: The number that the client knows a call by; None for ours.
        self._numbers: dict[int, int | None] = {}
        self._stop: str | None = None
        self._usage: Json = {}

    # -- streams ----------------------------------------------------------------------------------------------------------

    def take(self, event: Event, data: Json) -> bytes | None:
        changed = self._renamed(data)
        if usage := as_object(data.get("usage")):
            self._usage = usage
            if self.rounds:
                changed = {**changed, "usage": summed(self.usage, usage)}
        choices = objects_in(data.get("choices"))
        choice = next((one for one in choices if one.get("index", 0) == 0), None)
        if choice is not None:
            visible = self._seen(choice)
            if visible is None:
                return b""
            if visible is not choice:
                changed = {**changed, "choices": [visible if one is choice else one for one in choices]}
        return None if changed is data else encoded(changed, event.name)

    def _renamed(self, data: Json) -> Json:
        """Later rounds go on under the first one's id."""
        if self._first_id is None and isinstance(data.get("id"), str):
            self._first_id = data["id"]
        return {**data, "id": self._first_id} if self.rounds and data.get("id") != self._first_id else data

    def _seen(self, choice: Json) -> Json | None:
        """The choice as the client gets it; None if nothing is left of it."""
        delta = as_object(choice.get("delta")) or {}
        self._collect(delta)
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self._stop = finish
            if self._numbers and all(number is None for number in self._numbers.values()):
                self.hold()
                # If no round follows, there is no call in the answer.
                choice = {**choice, "finish_reason": "stop"}
        hidden = {"tool_calls"} if "tool_calls" in delta else set[str]()
        hidden |= {"role"} if self.rounds and "role" in delta else set[str]()
        visible = self._visible_calls(delta)
        if not hidden or (hidden == {"tool_calls"} and visible == delta["tool_calls"]):
            return choice
        left: Json = {name: value for name, value in delta.items() if name not in hidden}
        left |= {"tool_calls": visible} if visible else {}
        if not any(left.values()) and not choice.get("finish_reason"):
            return None
        return {**choice, "delta": left}

    def _collect(self, delta: Json) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                for piece in objects_in(value):
                    self._collect_call(piece)
            elif isinstance(value, str) and name != "role":
                self._message[name] = (self._message.get(name) or "") + value
            elif value is not None and name != "role":
                known = as_list(self._message.get(name))
                self._message[name] = [*known, *(as_list(value) or [])] if known is not None else value

    def _collect_call(self, piece: Json) -> None:
        # Some servers omit the index and send each call in one piece.
        index = piece.get("index") if isinstance(piece.get("index"), int) else len(self._calls)
        call = self._calls.setdefault(cast("int", index), {"id": "", "type": "function", "function": {}})
        call["id"] = piece.get("id") or call["id"]
        kind = "custom" if "custom" in piece else "function"
        inner = call.setdefault(kind, {})
        for name, value in (as_object(piece.get(kind)) or {}).items():
            inner[name] = (inner.get(name) or "") + value if isinstance(value, str) else value
        if index not in self._numbers:
            mine = inner.get("name") in self.own
            visible = sum(number is not None for number in self._numbers.values())
            self._numbers[cast("int", index)] = None if mine else visible

    def _visible_calls(self, delta: Json) -> list[Json]:
        visible: list[Json] = []
        for piece in objects_in(delta.get("tool_calls")):
            number = self._numbers.get(piece["index"]) if "index" in piece else len(visible)
            if number is not None:
                visible.append({**piece, "index": number} if piece.get("index", number) != number else piece)
        return visible

    def round_of_events(self) -> Round:
        calls = [_whole_call(call) for _, call in sorted(self._calls.items())]
        message: Json = {"role": "assistant", "content": None, **self._message}
        return self._round({**message, **({"tool_calls": calls} if calls else {})}, self._stop, self._usage)

    # -- whole answers ------------------------------------------------------------------------------------------------------

    def round_of(self, payload: Json) -> Round:
        choice = next(iter(objects_in(payload.get("choices"))), Json())
        message, stop = as_object(choice.get("message")) or {}, choice.get("finish_reason")
        return self._round(message, str(stop) if stop else None, as_object(payload.get("usage")) or {})

    def _round(self, message: Json, stop: str | None, usage: Json) -> Round:
        calls = objects_in(message.get("tool_calls"))
        named = [(call, as_object(call.get("function")) or {}) for call in calls]
        own = [
            OwnCall(
                str(call.get("id")),
                str(function["name"]),
                said_arguments(str(function.get("arguments") or "")),
            )
            for call, function in named
            if function.get("name") in self.own
        ]
        kept = {
            name: value
            for name, value in message.items()
            if name in _TAKEN_BACK and value not in (None, [], "")
        }
        said: Json = {"role": "assistant", "content": message.get("content"), **kept}
        foreign = len(own) < len(calls) or bool(message.get("function_call"))
        if own and foreign:
            said = {
                **said,
                "tool_calls": [one for one, function in named if function.get("name") not in self.own],
            }
        spoke = any(said.get(name) for name in said if name != "role")
        return Round([said] if spoke else [], own, foreign, stop, usage)

    def merged(self, payload: Json) -> Json:
        choice, *others = objects_in(payload.get("choices")) or [{}]
        message = as_object(choice.get("message")) or {}
        texts = [text for one in self.rounds[:-1] if (text := one.text)]
        if texts:
            message = {**message, "content": "".join([*texts, text_of(message)])}
        calls = [
            call
            for call in objects_in(message.get("tool_calls"))
            if (as_object(call.get("function")) or {}).get("name") not in self.own
        ]
        message = {name: value for name, value in message.items() if name != "tool_calls"}
        message |= {"tool_calls": calls} if calls else {}
        stop = choice.get("finish_reason")
        ended = "stop" if stop == "tool_calls" and not calls else stop
        return {
            **payload,
            "choices": [{**choice, "message": message, "finish_reason": ended}, *others],
            "usage": self.usage,
        }

    def error_event(self, error: Json) -> bytes:
        return encoded({"error": error})


def _whole_call(call: Json) -> Json:
    return {name: value for name, value in call.items() if value or name == "id"}
