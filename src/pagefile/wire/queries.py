"""Query strings of GET requests."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from pagefile.engine.reading import Kind
from pagefile.wire.requests import TURN
from pagefile.wire.texts import (
    MAX_INT,
    ConversationId,
    Cursor,
    FactsUser,
    Id,
    LoadLimit,
    LoadOffset,
    LoadQuery,
    PageSize,
    Params,
    Tenant,
    Text,
    UserId,
    Uuid,
)

PAGE = "At most so many items."
AFTER = "The `next` of the page before."


class ConversationParams(Params):
    """Names the conversation."""

    conversation_id: ConversationId
    user_id: UserId = None
    tenant: Tenant = None


class TurnsParams(ConversationParams):
    """A slice of a conversation."""

    after: Annotated[int, Field(ge=0, le=MAX_INT, description=AFTER)] = 0
    limit: Annotated[PageSize, Field(description=PAGE)] = 100
    newest: Annotated[bool, Field(description="The last turns instead of the first.")] = False


class MessagesParams(ConversationParams):
    """The messages of a turn."""

    turn_id: Annotated[Id, Field(description="The turn.", examples=[TURN])]
    shape: Annotated[
        Literal["openai", "responses", "anthropic"] | None,
        Field(description="The shape to give them in; the one they came in when left out."),
    ] = None


class DoneTurnsParams(Params):
    """Done turns of a conversation, of a user, or of a tenant."""

    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None
    after: Annotated[Text | None, Field(min_length=1, max_length=300, description=AFTER)] = None
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class LogParams(ConversationParams):
    """A slice of a conversation's log."""

    kind: Annotated[Kind | None, Field(description="Only these; all when left out.")] = None
    after: Annotated[int, Field(ge=0, le=MAX_INT, description=AFTER)] = 0
    limit: Annotated[PageSize, Field(description=PAGE)] = 100
    newest: Annotated[bool, Field(description="The last entries instead of the first.")] = False


class LoadParams(ConversationParams):
    """An archived tool result: all of it, a part, or the passages that answer a query."""

    uuid: Uuid
    query: LoadQuery = None
    offset: LoadOffset = 0
    limit: LoadLimit = None


class CallsParams(ConversationParams):
    """The latest recorded windows."""

    after: Annotated[Id | None, Field(description=AFTER)] = None
    limit: Annotated[PageSize, Field(description=PAGE)] = 50


class ConversationsParams(Params):
    """Conversations of a tenant, or of one of its users."""

    user_id: UserId = None
    tenant: Tenant = None
    after: Annotated[Id | None, Field(description=AFTER)] = None
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class CheckpointsParams(ConversationParams):
    """Checkpoints of a conversation."""

    after: Annotated[int, Field(ge=0, le=MAX_INT, description=AFTER)] = 0
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class ResetsParams(ConversationParams):
    """Resets of a conversation."""

    after: Annotated[int, Field(ge=0, le=MAX_INT, description=AFTER)] = 0
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class FactsParams(Params):
    """Facts about a user."""

    user_id: FactsUser
    tenant: Tenant = None
    as_of: Annotated[datetime | None, Field(description="What was held at this time.")] = None
    history: Annotated[bool, Field(description="Superseded and retracted ones too.")] = False
    after: Annotated[Cursor | None, Field(description=AFTER)] = None
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class FactRevisionsParams(Params):
    """Changes to what is known about a user."""

    user_id: FactsUser
    tenant: Tenant = None
    after: Annotated[int, Field(ge=0, le=MAX_INT, description="Only changes behind this revision.")] = 0
    limit: Annotated[PageSize, Field(description=PAGE)] = 100
