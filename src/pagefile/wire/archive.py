"""The archive over HTTP: pages, searching them, and the tools a model calls to page in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, computed_field, model_validator

from pagefile.records import Page, PageHit
from pagefile.schema import Mirror, OfScope
from pagefile.wire.queries import AFTER, PAGE
from pagefile.wire.requests import CHAT, USER, ConversationBody
from pagefile.wire.texts import (
    MAX_INT,
    MAX_PAGE,
    SOME_UUID,
    Answer,
    Body,
    ConversationId,
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

#: Older than any archive, and still within every calendar's range.
MAX_AGE_S = 10**10


# -- requests ----------------------------------------------------------------------------------------------------------


class PagesParams(Params):
    """Archived tool results: of a conversation, of a user, or of a tenant."""

    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None
    after: Annotated[Id | None, Field(description=AFTER)] = None
    limit: Annotated[PageSize, Field(description=PAGE)] = 100


class PageParams(Params):
    """One archived tool result: of a conversation, of a user, or of a tenant."""

    uuid: Uuid
    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None


class PeekParams(Params):
    """The text of an archived tool result of a user, or of a tenant: whole, a part of it, or the passages that answer a query."""

    uuid: Uuid
    user_id: UserId = None
    tenant: Tenant = None
    query: LoadQuery = None
    offset: LoadOffset = 0
    limit: LoadLimit = None


class SearchPages(Body):
    """A search of archived tool results: in all of a user's conversations, or in one conversation without a user."""

    query: Text
    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None
    limit: PageSize = 5
    here: Annotated[bool, Field(description="Of this conversation alone, also where a user is named.")] = (
        False
    )

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "每天测血压", "user_id": USER, "limit": 3}]}
    )

    @model_validator(mode="after")
    def _names_somebody(self) -> "SearchPages":
        if self.conversation_id is None and "user_id" not in self.model_fields_set:
            raise ValueError(
                "say whose pages to search: give a conversation_id or a user_id, which is null for the whole tenant"
            )
        if self.conversation_id is None and self.here:
            raise ValueError("say where to search: here needs a conversation_id")
        return self


class FindFetched(ConversationBody):
    """A tool call about to be made, which an equal recent call may already answer."""

    tool: Annotated[Text, Field(min_length=1, max_length=100, examples=["search"])]
    input: Annotated[JsonValue, Field(description="The tool's arguments, any JSON.")] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"conversation_id": CHAT, "user_id": USER, "tool": "guideline", "input": {"topic": "高血压"}}
            ]
        }
    )


class PinPage(ConversationBody):
    """Keeps a page in every window of its conversation and exempt from purging."""

    uuid: Uuid
    pinned: Annotated[bool, Field(description="False takes the pin out.")] = True

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"conversation_id": CHAT, "user_id": USER, "uuid": SOME_UUID}]}
    )


class PurgePages(Body):
    """Whose pages to purge, and which: a page that meets any condition is purged, unless it is pinned."""

    conversation_id: ConversationId | None = None
    user_id: UserId = None
    tenant: Tenant = None
    uuids: Annotated[tuple[Id, ...] | None, Field(strict=False, max_length=MAX_PAGE)] = None
    older_than_s: Annotated[
        float | None, Field(ge=0, le=MAX_AGE_S, description="Older than so many seconds.")
    ] = None
    max_bytes: Annotated[
        int | None, Field(ge=0, le=MAX_INT, description="The oldest, until the rest takes no more on disk.")
    ] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"conversation_id": CHAT, "user_id": USER, "uuids": [SOME_UUID], "max_bytes": 10**8}]
        }
    )

    @model_validator(mode="after")
    def _names_something(self) -> "PurgePages":
        if self.uuids is None and self.older_than_s is None and self.max_bytes is None:
            raise ValueError("say which pages to purge: give uuids, older_than_s or max_bytes")
        return self


class CallTool(ConversationBody):
    """A model's call of one of the tools of `GET /v1/tools`."""

    name: Annotated[Text, Field(max_length=255, description="As the model wrote it.")]
    arguments: Annotated[dict[str, JsonValue], Field(description="As the model wrote them.")] = Field(
        default_factory=dict[str, JsonValue]
    )
    turn_id: Annotated[
        Id | None,
        Field(description="The open turn of the call: what it loaded already counts against the window."),
    ] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "conversation_id": CHAT,
                    "user_id": USER,
                    "name": "load_tool_history",
                    "arguments": {"uuid": SOME_UUID, "query": "每天测血压"},
                }
            ]
        }
    )


# -- responses ---------------------------------------------------------------------------------------------------------


class PageOut(OfScope[Page]):
    """An archived tool result, without its text."""

    uuid: str
    tool: str
    input: JsonValue
    query_summary: str
    result_summary: str
    length: Annotated[int, Field(description="Characters of the text.")]
    sources: tuple[str, ...]
    created: datetime
    tokens: int
    counter: str
    content_hash: Annotated[str, Field(description="SHA-256 of the text.")]
    call_hash: Annotated[str, Field(description="Equal for equal calls of a tool.")]
    thread_id: Annotated[str | None, Field(validation_alias="thread")]
    pinned: bool
    loads: Annotated[int, Field(description="How often it was loaded.")]
    last_load: datetime | None
    purged: Annotated[datetime | None, Field(description="When its text was purged.")]
    stored_bytes: Annotated[
        int, Field(description="What its text takes on disk, or took until it was purged.")
    ]

    @computed_field(description="Whether the text is there to be loaded (已存档); false once it was purged.")
    @property
    def archived(self) -> bool:
        return self.purged is None


class PageHitOut(Mirror[PageHit]):
    """An archived tool result that matches the query."""

    page: PageOut
    score: float
    passage: Annotated[str, Field(description="Its best passage.")]
    start: Annotated[int, Field(description="Where the passage stands: an `offset` for /v1/load.")]


class FetchedOut(Answer):
    """The page of an equal call, if one is fresh enough."""

    page: PageOut | None

    @classmethod
    def of(cls, page: Page | None) -> "FetchedOut":
        return cls(page=None if page is None else PageOut.of(page))

    def record(self) -> Page | None:
        return None if self.page is None else self.page.record()


class PurgeOut(Answer):
    """The pages that became tombstones."""

    items: tuple[PageOut, ...]
    stored_bytes: Annotated[
        int,
        Field(
            description="What the texts took on disk, equal ones once; a text that others hold stays there."
        ),
    ]

    @classmethod
    def of(cls, pages: Sequence[Page]) -> "PurgeOut":
        texts = {page.content_hash: page.stored_bytes for page in pages}
        return cls(items=tuple(PageOut.of(page) for page in pages), stored_bytes=sum(texts.values()))

    def record(self) -> list[Page]:
        return [page.record() for page in self.items]


class ToolOut(Answer):
    """A tool to offer to the model."""

    name: str
    description: str
    parameters: Annotated[dict[str, JsonValue], Field(description="JSON schema of the arguments.")]


class ToolAnswer(Answer):
    """The result of a tool call, for the model."""

    text: Annotated[
        str, Field(description="Always text that a model can read: what cannot be loaded is explained in it.")
    ]

    @classmethod
    def of(cls, text: str) -> "ToolAnswer":
        # It may quote the model's output, and a lone surrogate cannot be encoded.
        return cls(text=text.encode("utf-8", "replace").decode())

    def record(self) -> str:
        return self.text
