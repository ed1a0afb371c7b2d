"""What a client asks for: the query strings of GET requests."""

from typing import Annotated

from pydantic import Field

from pagefile.wire.texts import MAX_INT, ConversationId, Id, PageSize, Params, Tenant, UserId

_PAGE = "At most so many items."
_AFTER = "The `next` of the page before."


class ConversationParams(Params):
    """Names the conversation."""

    conversation_id: ConversationId
    user_id: UserId = None
    tenant: Tenant = None


class TurnsParams(ConversationParams):
    """A slice of a conversation."""

    after: Annotated[int, Field(ge=0, le=MAX_INT, description=_AFTER)] = 0
    limit: Annotated[PageSize, Field(description=_PAGE)] = 100
    newest: Annotated[bool, Field(description="The last turns instead of the first.")] = False


class LoadParams(ConversationParams):
    """An archived tool result, whole or in part."""

    uuid: Annotated[
        Id,
        Field(
            description="As it stands in the placeholder.", examples=["00000000-0000-4000-8000-000000000000"]
        ),
    ]
    offset: Annotated[int, Field(ge=0, le=MAX_INT, description="The first character wanted.")] = 0
    limit: Annotated[int | None, Field(ge=1, le=MAX_INT, description="At most so many characters.")] = None


class CallsParams(ConversationParams):
    """Windows handed out lately."""

    after: Annotated[Id | None, Field(description=_AFTER)] = None
    limit: Annotated[PageSize, Field(description=_PAGE)] = 50


class ConversationsParams(Params):
    """Conversations of a tenant, or of one of its users."""

    user_id: UserId = None
    tenant: Tenant = None
    after: Annotated[Id | None, Field(description=_AFTER)] = None
    limit: Annotated[PageSize, Field(description=_PAGE)] = 100


class FactsParams(Params):
    """Facts about a user."""

    user_id: Annotated[Id, Field(description="About whom.", examples=["user-456"])]
    tenant: Tenant = None
