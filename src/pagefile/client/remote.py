"""`Client`: a memory hosted by a service."""

import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from functools import partial, wraps
from inspect import Parameter, get_annotations, signature
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast, get_args, get_origin
from uuid import uuid4

import anyio
import httpx
from pydantic import BaseModel

from pagefile import records, verbs
from pagefile.client.transport import Caller, lines_in, reading
from pagefile.engine import Conversation, Memory, arguments
from pagefile.engine.export import written_whole
from pagefile.engine.export_lines import FORMAT
from pagefile.engine.fact_import import read_memory
from pagefile.engine.lifetime import shielded
from pagefile.engine.log_queries import KINDS
from pagefile.engine.session_change import checked_change
from pagefile.errors import PagefileError, TransferError
from pagefile.shapes.message_reader import plain_json
from pagefile.shapes.parser import listed, results_cleaned
from pagefile.verbs import Verb
from pagefile.window.budget import tool_texts
from pagefile.wire.chat import AskChat, ChatDone, ChatEvent
from pagefile.wire.requests import MAX_PAGE
from pagefile.wire.responses import ForkOut, ImportOut

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[Any], object]

#: The service enforces length limits.
ANY_LENGTH = sys.maxsize


class Remote:
    """A memory or a conversation hosted by a service."""

    def __init__(self, caller: Caller, known: Mapping[str, object] | None = None) -> None:
        """`known` are the request fields that this handle supplies itself; None is left to the service."""
        self._caller = caller
        self._known = said(known or {})

    async def _request(self, verb: Verb[..., Any], given: Mapping[str, object]) -> Any:
        return await self._caller.ask(verb, {**self._known_of(verb.request), **given})

    def _known_of(self, request: type[BaseModel]) -> dict[str, object]:
        return {name: value for name, value in self._known.items() if name in request.model_fields}

    async def _returned(self, verb: Verb[..., Any], given: dict[str, object], *, whole: bool) -> Any:
        """What the verb returns; with `whole`, all items of a list, page by page."""
        if not whole:
            return (await self._request(verb, given)).record()
        found: list[Any] = []
        given["limit"] = MAX_PAGE
        while True:
            answer = await self._request(verb, given)
            found += answer.record()
            if answer.next is None:
                return records.Listing(found)
            given["after"] = answer.next


def remote(
    verb: Verb[P, R],
    *,
    first: Callable[[Any, dict[str, Any]], object] | None = None,
    then: Callable[[Any, R], R] | None = None,
    whole: bool = False,
    **checks: Check | None,
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method that sends the verb to a service.

    `first` may change the arguments, or raise for those that do not go together; `then` may change the result. With `whole`, all
    pages of a list are fetched. `checks` are for parameters that differ from those of other verbs; None leaves one to the service.
    """
    parameters = verb.signature.parameters
    hints = get_annotations(verb.method, eval_str=True)
    as_list = get_origin(hints["return"]) is list

    def value_of(name: str, value: object) -> object:
        check = checks.get(name, CHECKS.get(name))
        # None means "not given" only where the library says so; elsewhere the check refuses it, as the library does.
        if check is None or (value is None and NoneType in get_args(hints[name])):
            return value
        return check(value)

    def sent(given: Mapping[str, object]) -> dict[str, object]:
        """Leaves out None, for the service to fill in, unless the parameter is required."""
        values = {name: value_of(name, value) for name, value in given.items()}
        return {
            verb.fields[name]: value
            for name, value in values.items()
            if value is not None or parameters[name].default is Parameter.empty
        }

    @wraps(verb.method)
    async def call(self: Remote, *args: P.args, **kwargs: P.kwargs) -> R:
        bound = verb.signature.bind(self, *args, **kwargs)
        if first is not None:
            bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        if first is not None:
            first(self, given)
        returned = await self._returned(verb, sent(given), whole=whole)  # pyright: ignore[reportPrivateUsage] - this becomes a method of it
        result = cast("R", list(returned)) if as_list else returned
        return result if then is None else then(self, result)

    call.__dict__["__signature__"] = verb.signature
    return call


def like(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, object]],
) -> Callable[[Callable[..., Coroutine[Any, Any, R]]], Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]]:
    """Gives a method the parameters and the docstring of the library's, for verbs that need more than a request."""

    def decorate(method: Callable[..., Coroutine[Any, Any, R]]) -> Any:
        @wraps(verb)
        async def call(self: Remote, *args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature(verb).bind(self, *args, **kwargs)
            return await method(*bound.args, **bound.kwargs)

        return call

    return decorate


def said(given: Mapping[str, object]) -> dict[str, object]:
    """The fields that were given; None is left to the service."""
    return {name: value for name, value in given.items() if value is not None}


def is_message(name: str) -> Check:
    """One side of a turn; a blank one counts as missing."""
    return lambda value: arguments.checked_message(value, name, ANY_LENGTH)


def messages_of(messages: Iterable[object]) -> list[records.JsonValue]:
    """Messages as the library would store them: tool results are repaired, the caller's own text is checked."""
    given = [results_cleaned(plain_json(message, number)) for number, message in enumerate(listed(messages))]
    return [arguments.checked_json(message, f"messages[{number}]") for number, message in enumerate(given)]


def steps_of(steps: Iterable[arguments.StepLike]) -> list[dict[str, object]]:
    """Steps as they are sent; a call without an id gets one from the service."""
    given = list(steps)
    checked = arguments.checked_steps(given, "", ANY_LENGTH)
    ids = [step.call_id if isinstance(step, records.Step) else step.get("call_id") for step in given]
    return [
        {"tool": step.tool, "input": step.input, "result": step.result, **({"call_id": own} if own else {})}
        for own, step in zip(ids, checked, strict=True)
    ]


#: How to check a parameter of this name before it is sent.
CHECKS: Mapping[str, Check] = {
    **{name: is_message(name) for name in ("user", "assistant", "instructions")},
    **{name: partial(records.checked_text, name=name) for name in ("query", "text", "tool")},
    **{name: partial(records.checked_id, name=name) for name in ("id", "user_id", "tenant")},
    "call_id": partial(records.checked_id, name="call id"),
    "fact_id": partial(records.checked_id, name="fact id"),
    **{name: partial(arguments.checked_json, name=name) for name in ("input", "changes")},
    "arguments": lambda value: arguments.checked_json(dict(value), "arguments"),
    **{name: partial(arguments.at_least, 1, name=name) for name in ("limit", "revision", "window_tokens")},
    **{name: partial(arguments.at_least, 0, name=name) for name in ("answer_tokens", "recent_turns")},
    **{name: lambda value: arguments.moment(value).isoformat() for name in ("at", "as_of", "valid_from")},
    "older_than": timedelta.total_seconds,
    "messages": messages_of,
    "steps": steps_of,
    "metadata": arguments.checked_metadata,
    "turn": arguments.turn_id_of,
    "tools": lambda tools: [json.loads(text) for text in tool_texts(tools)],
    "threshold": arguments.share,
    "load": lambda uuids: arguments.checked_uuids(uuids, "load"),
    "placement": arguments.checked_placement,
    "language": lambda choice: arguments.one_of(choice, arguments.LANGUAGES, "language"),
    "shape": lambda shape: arguments.one_of(shape, arguments.SHAPES, "shape"),
    "kind": lambda kind: arguments.one_of(kind, KINDS, "kind"),
    "after": arguments.cursor,
    "uuids": lambda uuids: arguments.checked_uuids(uuids, "uuids"),
    "uuid": str,
}


_is_place = partial(arguments.at_least, 0, name="after")


def _begun(chat: "ClientConversation", turn: records.Turn) -> records.Turn:
    chat.open_turn = turn if turn.status == "open" else None
    return turn


def _noticed(chat: "ClientConversation", turn: records.Turn) -> records.Turn:
    if chat.open_turn is not None and chat.open_turn.id == turn.id:
        _begun(chat, turn)
    return turn


def _for_current_turn(chat: "ClientConversation", given: dict[str, Any]) -> None:
    given["turn"] = arguments.current_turn_id(given["query"], given["turn"], chat.open_turn)


def _after_known_messages(_: "ClientConversation", given: dict[str, Any]) -> None:
    if isinstance(given["turn"], records.Turn) and given["after"] is None:
        given["after"] = len(given["turn"].messages)


def _checked_step(_: "ClientConversation", given: dict[str, Any]) -> None:
    turn = given["turn"]
    number = len(turn.steps) if isinstance(turn, records.Turn) else 0
    call = {name: value for name, value in given.items() if name != "turn"}
    step = arguments.checked_step(call, arguments.turn_id_of(turn), number, ANY_LENGTH)
    given |= {"tool": step.tool, "input": step.input, "result": step.result}
    # The same step of the same turn has the same id: adding it twice adds it once.
    given["call_id"] = step.call_id if given["call_id"] or isinstance(turn, records.Turn) else None


class ClientConversation(Remote):
    """A cheap handle: creating one sends nothing. Arguments are checked here, with the error messages of `Memory`."""

    def __init__(self, caller: Caller, scope: records.Scope, about: Mapping[str, object]) -> None:
        """`about` are the tenant, if it is given here and not by the key, the agent and the labels."""
        whose = {"conversation_id": scope.conversation, "user_id": scope.user}
        super().__init__(caller, {**whose, **about, "format": "parts"})
        self._scope = scope
        self._about = about
        #: The turn that this handle began.
        self.open_turn: records.Turn | None = None

    def __repr__(self) -> str:
        return f"ClientConversation({self.id!r}, user_id={self._scope.user!r}, tenant={self._scope.tenant!r})"

    id = Conversation.id

    @property
    def scope(self) -> records.Scope:
        """Whose memory this is, as far as it was named here: the service takes a missing tenant or user from the key."""
        return self._scope

    # -- turns in -------------------------------------------------------------------------------------------------

    record = remote(verbs.RECORD, id=partial(records.checked_id, name="turn id"))
    begin = remote(verbs.BEGIN, then=_begun, id=partial(records.checked_id, name="turn id"))
    extend = remote(verbs.EXTEND, first=_after_known_messages, then=_noticed, after=_is_place)
    step = remote(verbs.STEP, first=_checked_step, then=_noticed, call_id=None)
    complete = remote(verbs.COMPLETE, then=_noticed)
    messages = remote(verbs.MESSAGES)
    _abort = remote(verbs.ABORT, then=_noticed)

    @like(Conversation.abort)
    async def abort(self, turn: records.Turn | str) -> records.Turn:
        return await shielded(lambda: self._abort(turn))

    _fork = remote(verbs.FORK, id=partial(records.checked_id, name="conversation id"))

    @like(Conversation.fork)
    async def fork(self, turn: records.Turn | str, **options: Any) -> "ClientConversation":
        made = cast("ForkOut", await self._fork(turn, **options))
        scope = records.Scope(self._scope.tenant, made.user_id, made.conversation_id)
        return ClientConversation(self._caller, scope, self._about)

    # -- windows out ----------------------------------------------------------------------------------------------

    context = remote(
        verbs.CONTEXT,
        first=_for_current_turn,
        query=is_message("query"),
        recent_turns=partial(arguments.at_least, 1, name="recent_turns"),
    )
    recall = remote(verbs.CHAT_RECALL)

    # -- archived pages -------------------------------------------------------------------------------------------

    load = remote(verbs.LOAD, query=None, limit=None)
    page = remote(verbs.CHAT_PAGE)
    pages = remote(verbs.CHAT_PAGES)
    search_tool_history = remote(verbs.CHAT_SEARCH)
    fetched = remote(verbs.FETCHED)
    pin = remote(verbs.PIN)

    call_tool = remote(
        verbs.CALL_TOOL, first=lambda chat, given: given.update(turn=given["turn"] or chat.open_turn)
    )

    # -- checkpoints and listings ---------------------------------------------------------------------------------

    checkpoint = remote(verbs.CHECKPOINT)
    reset = remote(verbs.RESET)
    turns = remote(verbs.CHAT_TURNS, after=arguments.log_position)
    log = remote(verbs.LOG, after=arguments.log_position)
    head = remote(verbs.HEAD)
    session = remote(verbs.SESSION)
    put_session = remote(verbs.PUT_SESSION, value=checked_change)
    calls = remote(verbs.CALLS)

    checkpoints = remote(verbs.CHECKPOINTS, whole=True)

    # -- recorded calls -------------------------------------------------------------------------------------------

    explain = remote(verbs.EXPLAIN)
    replay = remote(verbs.REPLAY)
    costs = remote(verbs.COSTS)

    # -- only in the service ---------------------------------------------------------------------------------------

    async def stream_chat(
        self,
        message: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        instructions: str | None = None,
        window_tokens: int | None = None,
        steps: Iterable[arguments.StepLike] = (),
    ) -> AsyncGenerator[ChatEvent]:
        """Have the service's model answer a message: events as they happen, including words of the answer, and `ChatDone` at the end.

        A line that breaks is taken up again where it broke; after a restart of the service the answer may begin again, with another
        `ChatTurn`. Other failures are raised. The turn is then aborted, as it is when the caller stops early (wrap it in `aclosing()`
        to abort immediately).
        """
        turn_id = str(uuid4()) if id is None else records.checked_id(id, "turn id")
        body = {
            **self._known_of(AskChat),
            "message": is_message("message")(message) or message,
            "id": turn_id,
            "instructions": instructions,
            "window_tokens": window_tokens,
            "steps": steps_of(steps),
        }
        begun = False
        try:
            async for event in self._caller.events("/v1/chat/stream", said(body)):
                begun = not isinstance(event, ChatDone)
                yield event
        finally:
            if begun:
                with anyio.CancelScope(shield=True), suppress(PagefileError):
                    await self.abort(turn_id)


class Client(Remote):
    """A memory hosted by a service, with the verbs and records of `Memory`.

    Use it as `async with Client("http://127.0.0.1:8780") as memory`. Failures raise the same errors as `Memory`; a service that
    cannot be reached raises `StoreUnavailableError`.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 2,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            api_key: as created by `pagefile keys`.
            timeout_s: how long to wait for a connection, and then for each part of a response.
            retries: how often to retry when the connection breaks or the service asks to wait. Every change still takes effect
                only once.
            transport: the httpx transport, for proxies, custom certificates and tests.
        """
        super().__init__(Caller(url, api_key, timeout_s=timeout_s, retries=retries, transport=transport))

    async def __aenter__(self) -> Self:
        self._caller.check_open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Safe to call twice."""
        await self._caller.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - the word users write
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        language: str | None = None,
        timezone: str | None = None,
    ) -> ClientConversation:
        """A handle on a conversation; nothing is sent until it is used."""
        self._caller.check_open()
        named = records.DEFAULT_TENANT if tenant is None else tenant
        scope = records.Scope(named, user_id, records.checked_id(id, "conversation id"))
        labels = arguments.checked_labels(project=project, language=language, timezone=timezone)
        about = {"tenant": tenant, "agent": arguments.id_or_none(agent, "agent"), **asdict(labels)}
        return ClientConversation(self._caller, scope, about)

    conversations = remote(verbs.CONVERSATIONS)
    turns = remote(verbs.TURNS)
    recall = remote(verbs.RECALL)

    # -- facts ----------------------------------------------------------------------------------------------------

    remember = remote(verbs.REMEMBER)
    retract = remote(verbs.RETRACT)
    correct = remote(verbs.CORRECT)
    undo = remote(verbs.UNDO)

    facts = remote(verbs.FACTS, whole=True)
    fact_revisions = remote(verbs.FACT_REVISIONS, whole=True, after=_is_place)

    @like(Memory.import_facts)
    async def import_facts(
        self, source: str | PathLike[str] | Mapping[str, records.JsonValue], **whose: Any
    ) -> dict[str, int]:
        data = source if isinstance(source, Mapping) else await read_memory(source)
        return await self._import_facts(dict(data), **whose)

    _import_facts = remote(verbs.IMPORT_FACTS)

    # -- recorded calls and pages ---------------------------------------------------------------------------------

    call = remote(verbs.CALL)
    pages = remote(verbs.PAGES)
    page = remote(verbs.PAGE)
    peek = remote(verbs.PEEK, query=None, limit=None)
    search_tool_history = remote(verbs.SEARCH)
    purge = remote(verbs.PURGE, first=lambda _, given: arguments.check_purged(**given))

    # -- the whole memory -----------------------------------------------------------------------------------------

    forget = remote(verbs.FORGET, first=lambda _, given: arguments.check_erased(**given))

    @like(Memory.settle)
    async def settle(self) -> None:
        while not (await self._request(verbs.SETTLE, {})).settled:
            pass

    @like(Memory.export)
    async def export(self, path: str | PathLike[str], **whose: str | None) -> dict[str, int]:
        counts: Counter[str] = Counter()
        async with (
            written_whole(Path(path)) as file,
            self._caller.stream("GET", "/v1/export", params=_ids(**whose)) as answer,
        ):
            async for line in lines_in(answer.aiter_bytes()):
                with reading("The service sent a line that is not one of an export"):
                    kind = str(json.loads(line)["type"])
                counts[kind] += kind != FORMAT
                await file.write(line + "\n")
        return dict(+counts)

    @like(Memory.import_)
    async def import_(self, path: str | PathLike[str], *, tenant: str | None = None) -> dict[str, int]:
        async def content() -> AsyncIterator[bytes]:
            async with await anyio.open_file(path, "rb") as file:
                while chunk := await file.read(1_000_000):
                    yield chunk

        try:
            done = await self._caller.upload("/v1/import", _ids(tenant=tenant), content, ImportOut)
        except OSError as error:
            raise TransferError(f"Cannot read {str(path)!r}: {error}.") from error
        return done.counts

    async def describe(self) -> records.JsonObject:
        """What the service runs on: its version, the store, the tokenizer, and how often each tier failed."""
        return (await self._request(verbs.DESCRIBE, {})).model_dump()


def _ids(**named: str | None) -> dict[str, object]:
    """Checked; what is not named is left out, for the service to take it from the key."""
    return {name: records.checked_id(value, name) for name, value in named.items() if value is not None}
