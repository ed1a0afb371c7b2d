"""Export and import over HTTP: requests and responses."""

from typing import Annotated

from pydantic import Field

from pagefile.wire.texts import Answer, ConversationId, Id, Params, Tenant, UserId

LINES = "application/x-ndjson"


# -- requests ----------------------------------------------------------------------------------------------------------


class ExportParams(Params):
    """What to export: a conversation, a user, or a tenant."""

    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None


class ImportParams(Params):
    """Whose memory the upload becomes."""

    user_id: Annotated[
        Id | None,
        Field(description="Refuse the upload unless all of it is this user's.", examples=["user-456"]),
    ] = None
    tenant: Tenant = None


# -- responses ---------------------------------------------------------------------------------------------------------


class ImportOut(Answer):
    """What was new."""

    counts: Annotated[dict[str, int], Field(description="How many of each kind were not there before.")]
