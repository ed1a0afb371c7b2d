"""What several requests share: types of values and groups of fields, with their descriptions for the API reference."""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from pagefile import schema
from pagefile.records import MAX_INT
from pagefile.schema import Id, Text, moment_from, visible

#: More tokens or turns than any model accepts.
MAX_COUNT = 2**31 - 1
MAX_PAGE = 1000
#: A placeholder for a page's uuid in examples.
SOME_UUID = "00000000-0000-4000-8000-000000000000"
CHAT = "诊疗/2026:7"
USER = "user-456"
#: A turn that the examples record.
TURN = "turn-1"


def _cursor(value: str) -> str:
    _, last = behind(value)
    visible(last)
    return value


def cursor_of(moment: datetime, last: str) -> str:
    """The cursor to continue a list after a record."""
    return f"{moment.isoformat()} {last}"


def behind(cursor: str) -> tuple[datetime, str]:
    """Parses a cursor made by `cursor_of`."""
    moment, _, last = cursor.partition(" ")
    return moment_from(moment), last


AFTER = Field(description="The `next` of the page before.")
#: A place in a log, or a number of a revision.
Place: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INT)]
Tokens: TypeAlias = Annotated[int, Field(ge=1, le=MAX_COUNT)]
#: Where a list of facts continues: the recorded time and id of the last one shown.
Cursor: TypeAlias = Annotated[Text, Field(min_length=1, max_length=300), AfterValidator(_cursor)]
PageSize: TypeAlias = Annotated[int, Field(ge=1, le=MAX_PAGE)]
Limit: TypeAlias = Annotated[PageSize, Field(description="The largest number of items.")]

ConversationId: TypeAlias = Annotated[
    Id, Field(description="Any text of up to 255 characters.", examples=[CHAT])
]
UserId: TypeAlias = Annotated[
    Id | None, Field(description="Whose conversation it is; facts and recall need one.", examples=[USER])
]
FactsUser: TypeAlias = Annotated[
    Id, Field(description="About whom; a user's key fills it in.", examples=[USER])
]
Tenant: TypeAlias = Annotated[
    Id | None, Field(description='The tenant; "default" when left out.', examples=["clinic-1"])
]
Uuid: TypeAlias = Annotated[Id, Field(description="As written in the placeholder.", examples=[SOME_UUID])]
CallId: TypeAlias = Annotated[
    Id, Field(description="The `id` of a window, as `GET /v1/calls` lists it.", examples=[SOME_UUID])
]


@cache
def _examples() -> Mapping[str, JsonValue]:
    return json.loads(files("pagefile.wire").joinpath("examples.json").read_text(encoding="utf-8"))


def example(name: str) -> JsonValue:
    """The example of a schema."""
    return _examples()[name]


def with_example(shape: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the example to a schema. The tests send those of all requests."""
    if model.__name__ in _examples():
        shape["examples"] = [example(model.__name__)]


class Body(schema.Body):
    """A request body with an example in the API reference."""

    model_config = ConfigDict(json_schema_extra=with_example)


# -- fields that several requests share --------------------------------------------------------------------------------


class Whose(BaseModel):
    """A user, or a whole tenant."""

    user_id: UserId = None
    tenant: Tenant = None


class Anywhere(Whose):
    """A conversation, a user, or a whole tenant."""

    conversation_id: ConversationId | None = None


class Here(Whose):
    """A conversation."""

    conversation_id: ConversationId


class AboutUser(BaseModel):
    """The user that facts are about."""

    user_id: FactsUser
    tenant: Tenant = None


class LabelFields(BaseModel):
    """What to note about a conversation."""

    agent: Id | None = Field(default=None, description="Which agent the conversation is with.")
    project: Id | None = Field(default=None, description="What the conversation belongs to.")
    language: Literal["auto", "zh", "en"] | None = Field(
        default=None, description="The language the user reads."
    )
    timezone: Id | None = Field(default=None, description="Where the user is, such as Asia/Shanghai.")


class ToolInput(BaseModel):
    """A tool call."""

    tool: Text = Field(min_length=1, max_length=100, examples=["search"])
    input: JsonValue = Field(default=None, description="The tool's arguments, any JSON.")


class Loading(BaseModel):
    """What to read of an archived tool result."""

    uuid: Uuid
    query: Text | None = Field(
        default=None, description="Only the passages that answer this, each with its offset."
    )
    offset: Place = Field(default=0, description="The first character to return.")
    limit: int | None = Field(
        default=None,
        ge=1,
        le=MAX_INT,
        description="The largest number of characters; with a query, of tokens.",
    )


class Slice(BaseModel):
    """A slice of a list that is ordered by numbers."""

    after: Annotated[Place, AFTER] = 0
    limit: Limit = 100


class SliceById(BaseModel):
    """A slice of a list that is ordered by ids."""

    after: Annotated[Id | None, AFTER] = None
    limit: Limit = 100
