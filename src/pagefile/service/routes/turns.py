"""Turns go in."""

from typing import Annotated, TypeAlias

from fastapi import Header, Query

from pagefile.service.once import HEADER, made_id
from pagefile.service.routes.common import MemoryOf, chat_of, router, told_chat
from pagefile.wire.queries import DoneTurnsParams, MessagesParams, TurnsParams
from pagefile.wire.requests import AbortTurn, AddStep, BeginTurn, CompleteTurn, ExtendTurn, RecordTurn
from pagefile.wire.responses import MessagesOut, Page, TurnOut, page_of

routes = router("Turns")

Key: TypeAlias = Annotated[str | None, Header(alias=HEADER)]


@routes.post("/turns", status_code=201)
async def record(memory: MemoryOf, body: RecordTurn, key: Key = None) -> TurnOut:
    """Write one done turn; when the answer comes, it is on disk.

    The same id with the same text answers with the stored turn, with another text it is a conflict (409): a request
    with an id can be repeated safely. Without one, an `Idempotency-Key` stands for it.
    """
    chat = told_chat(memory, body)
    turn = await chat.record(
        body.user,
        body.assistant,
        messages=body.messages,
        steps=[step.model_dump() for step in body.steps],
        id=body.id or made_id(key, body.tenant, body.conversation_id),
        at=body.at,
        metadata=body.metadata,
    )
    return TurnOut.of(turn)


@routes.post("/turns/begin", status_code=201)
async def begin(memory: MemoryOf, body: BeginTurn, key: Key = None) -> TurnOut:
    """Write the user's message before the answer is there; the turn stays open until it is completed or aborted.

    The same id with the same message answers with the stored turn as it is, with another message it is a conflict (409).
    """
    chat = told_chat(memory, body)
    turn_id = body.id or made_id(key, body.tenant, body.conversation_id)
    turn = await chat.begin(body.user, messages=body.messages, id=turn_id, at=body.at, metadata=body.metadata)
    return TurnOut.of(turn)


@routes.post("/turns/extend")
async def extend(memory: MemoryOf, body: ExtendTurn) -> TurnOut:
    """Add messages of a provider's client to an open turn; bulky tool results are archived on the way."""
    chat = chat_of(memory, body)
    return TurnOut.of(await chat.extend(body.turn_id, body.messages, after=body.after))


@routes.post("/turns/step")
async def step(memory: MemoryOf, body: AddStep, key: Key = None) -> TurnOut:
    """Add a tool call and its result to an open turn; a bulky result is archived on the way."""
    chat = chat_of(memory, body)
    turn = await chat.step(
        body.turn_id,
        tool=body.tool,
        input=body.input,
        result=body.result,
        call_id=body.call_id or made_id(key, body.turn_id),
    )
    return TurnOut.of(turn)


@routes.post("/turns/complete")
async def complete(memory: MemoryOf, body: CompleteTurn) -> TurnOut:
    """Write the answer: the turn is done and takes its place in the conversation."""
    return TurnOut.of(await chat_of(memory, body).complete(body.turn_id, body.assistant))


@routes.post("/turns/abort")
async def abort(memory: MemoryOf, body: AbortTurn) -> TurnOut:
    """Give a turn up: it stays in the log and enters no window, summary or index."""
    return TurnOut.of(await chat_of(memory, body).abort(body.turn_id))


@routes.get("/turns/messages")
async def messages(memory: MemoryOf, params: Annotated[MessagesParams, Query()]) -> MessagesOut:
    """The messages of a turn as they were recorded, or in another provider's shape."""
    found = await chat_of(memory, params).messages(params.turn_id, shape=params.shape)
    return MessagesOut(messages=found)


@routes.get("/turns")
async def turns(memory: MemoryOf, params: Annotated[TurnsParams, Query()]) -> Page[TurnOut]:
    """Turns in order, open and aborted ones too."""
    found = await chat_of(memory, params).turns(after=params.after, limit=params.limit, newest=params.newest)
    return page_of([TurnOut.of(turn) for turn in found], found.next)


@routes.get("/turns/done")
async def done(memory: MemoryOf, params: Annotated[DoneTurnsParams, Query()]) -> Page[TurnOut]:
    """Done turns of a conversation, a user or a tenant, one conversation after the other, those from before a reset too."""
    found = await memory.turns(
        user_id=params.user_id,
        conversation_id=params.conversation_id,
        tenant=params.tenant,
        limit=params.limit,
        after=params.after,
    )
    return page_of([TurnOut.of(turn) for turn in found], found.next)
