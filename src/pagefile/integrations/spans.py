"""Model calls in OpenTelemetry spans become turns: whatever an agent is instrumented with, its conversations are remembered.

A span of a model call holds what the model was told and what it answered, in messages of one of several conventions
(`span_messages`). Which turn a call belongs to is found out as for the gateway's requests: the last call of a run ends it. The
same span changes nothing the second time.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import anyio.to_thread

from pagefile.engine import Memory
from pagefile.errors import AccessError, PagefileError, TransferError
from pagefile.gateway.chat_completions import ChatCompletions
from pagefile.gateway.conversations import Conversations, Who
from pagefile.gateway.exchanges import Exchange, Json
from pagefile.integrations.span_messages import messages_of
from pagefile.shapes.skeleton import as_object, objects_in

#: Spans without any of these are of no interest.
PREFIXES = ("gen_ai.", "llm.", "openinference.")
#: Who and where, by any convention; the first that is there counts.
_CONVERSATION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
_USER = ("user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id")
#: The attributes that are read of a span.
NAMES = frozenset({*_CONVERSATION, *_USER})
_MODEL_CALLS = frozenset({"chat", "text_completion", "generate_content"})
_AGENT = "invoke_agent"
_TOOL = "execute_tool"
#: How the conversation of a run is called that names none, before its trace.
PREFIX = "trace-"
_PROTOCOL = ChatCompletions()


@dataclass(frozen=True, slots=True)
class Span:
    trace: str
    id: str
    parent: str
    start_ns: int
    attributes: Mapping[str, Any]
    #: The attributes of its events.
    events: Sequence[Mapping[str, Any]] = ()

    @property
    def operation(self) -> str:
        named = self.attributes.get("gen_ai.operation.name")
        if isinstance(named, str):
            return named
        kind = self.attributes.get("openinference.span.kind")
        return {"LLM": "chat", "AGENT": _AGENT, "TOOL": _TOOL}.get(str(kind), "" if kind else "chat")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a span tells of a conversation."""

    trace: str
    at: datetime
    conversation: str | None
    user: str | None
    exchanges: Sequence[Exchange] = field(repr=False)
    #: Whether the model answered, instead of calling tools.
    ended: bool

    def who(self, tenant: str | None, user: str | None) -> Who:
        return Who(user or self.user, tenant, self.conversation or f"{PREFIX}{self.trace}")


def model_calls(spans: Sequence[Span]) -> Iterator[ModelCall]:
    """The calls with messages, in their order; those of agents that a tool started are asked by a model, and left out."""
    by_id = {(span.trace, span.id): span for span in spans}
    # An agent's span begins before those of its calls, which tell more of the same run.
    for span in sorted(spans, key=lambda one: (one.operation == _AGENT, one.start_ns)):
        if span.operation not in _MODEL_CALLS and span.operation != _AGENT:
            continue
        above = list(_above(span, by_id))
        if any(one.operation == _TOOL for one in above[1:]):
            continue
        told, said = messages_of(span.attributes, span.events)
        found = _PROTOCOL.talk({"messages": [*told, *said]}).exchanges
        if not found:
            continue
        conversation = _named(above, _CONVERSATION)
        yield ModelCall(
            span.trace,
            datetime.fromtimestamp(span.start_ns / 1e9, UTC),
            conversation,
            _named(above, _USER),
            _placed(found, span, conversation),
            ended=bool(said) and not any(one.get("tool_calls") for one in said),
        )


def _above(span: Span, by_id: Mapping[tuple[str, str], Span]) -> Iterator[Span]:
    """A span and those it is in, as far as they are here."""
    seen: set[str] = set()
    one: Span | None = span
    while one is not None and one.id not in seen:
        seen.add(one.id)
        yield one
        one = by_id.get((one.trace, one.parent))


def _named(spans: Iterable[Span], names: Sequence[str]) -> str | None:
    found = (span.attributes.get(name) for span in spans for name in names)
    return next((one for one in found if isinstance(one, str) and one), None)


def _placed(found: Sequence[Exchange], span: Span, conversation: str | None) -> Sequence[Exchange]:
    """The exchanges to record. Without a history, the same question in another run is another turn."""
    if conversation is None:
        # Nothing says that an earlier trace told the same history.
        found = found[-1:]
    if len(found) > 1:
        return found
    # Calls of a run that has no span of its own are traces of their own, with the same first call of a tool.
    calls = [
        str(call.get("id")) for one in found[0].rest for call in one.get("tool_calls") or () if call.get("id")
    ]
    run = span.trace if span.parent or not calls else calls[0]
    key = blake2b(f"{run} {found[0].key}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return [replace(found[0], key=key)]


class SpanRecorder:
    """Writes model calls to a memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._conversations = Conversations(memory)

    async def record(
        self, calls: Iterable[ModelCall], *, tenant: str | None = None, user: str | None = None
    ) -> Counter[str]:
        """Counts what is new (`turn`), there already (`known`) and refused (`rejected`). `user` is whose key it is."""
        counts = Counter[str]()
        for call in calls:
            try:
                new = await self._recorded(call, tenant, user)
            except PagefileError:
                # Another user's conversation, or more than a message may have: the others are recorded.
                counts["rejected"] += 1
            else:
                counts["turn" if new else "known"] += 1
        return counts

    async def _recorded(self, call: ModelCall, tenant: str | None, user: str | None) -> int:
        if user is not None and call.user not in {None, user}:
            raise AccessError("A span names another user than the key.")
        who, shape = call.who(tenant, user), _PROTOCOL.shape
        clean = [await self._redacted(one, who) for one in call.exchanges]
        return await self._conversations.observe(who, clean, shape, ended=call.ended, at=call.at)

    async def _redacted(self, exchange: Exchange, who: Who) -> Exchange:
        clean, tenant = self.memory.engine.redactor.clean, who.scope.tenant
        asked, rest = [
            await clean(tenant, list(part), exact=True) for part in (exchange.asked, exchange.rest)
        ]
        return replace(exchange, asked=tuple(asked), rest=tuple(rest))


# -- OTLP in JSON -----------------------------------------------------------------------------------------------------


def spans_of(data: Json) -> list[Span]:
    """The spans of an export request, or of a line that a collector's file exporter wrote."""
    return [
        _span(one)
        for resource in objects_in(data.get("resourceSpans"))
        for scope in objects_in(resource.get("scopeSpans"))
        for one in objects_in(scope.get("spans"))
    ]


def _span(data: Json) -> Span:
    start = str(data.get("startTimeUnixNano") or 0)
    return Span(
        str(data.get("traceId") or ""),
        str(data.get("spanId") or ""),
        str(data.get("parentSpanId") or ""),
        int(start) if start.isdecimal() and len(start) < 20 else 0,
        _attributes(data.get("attributes")),
        [_attributes(event.get("attributes")) for event in objects_in(data.get("events"))],
    )


def _attributes(data: object) -> dict[str, Any]:
    return {str(one.get("key")): _value(as_object(one.get("value")) or {}) for one in objects_in(data)}


def _value(data: Json) -> Any:
    """A value; of those with parts, the parts."""
    if (listed := as_object(data.get("arrayValue"))) is not None:
        return [_value(one) for one in objects_in(listed.get("values"))]
    if (pairs := as_object(data.get("kvlistValue"))) is not None:
        return _attributes(pairs.get("values"))
    if "intValue" in data:
        whole = str(data["intValue"])
        return int(whole) if whole.lstrip("-").isdecimal() and len(whole) < 20 else None
    return next(iter(data.values()), None)


async def take_spans(memory: Memory, path: Path, user_id: str, tenant: str | None = None) -> Counter[str]:
    """The model calls in a file of OTLP in JSON, one request a line; `user_id` is the user of those that name none."""
    spans = await anyio.to_thread.run_sync(_read, path)
    calls = [replace(call, user=call.user or user_id) for call in model_calls(spans)]
    return await SpanRecorder(memory).record(calls, tenant=tenant)


def _read(path: Path) -> list[Span]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        return [
            span for line in lines if line.strip() for span in spans_of(as_object(json.loads(line)) or {})
        ]
    except (OSError, ValueError, RecursionError) as error:
        raise TransferError(
            f"Cannot read {str(path)!r} as spans: {error}. Give what the collector's file exporter writes, OTLP in JSON, a line for "
            "each request."
        ) from error
