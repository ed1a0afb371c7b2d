"""The text and number types of requests, with their descriptions for the API reference."""

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from pagefile.records import MAX_INT
from pagefile.schema import Answer, Body, Id, Moment, Params, Text, moment_from, visible

#: More tokens or turns than any model accepts.
MAX_COUNT = 2**31 - 1
MAX_PAGE = 1000
#: A placeholder for a page's uuid in examples.
SOME_UUID = "00000000-0000-4000-8000-000000000000"


def _cursor(value: str) -> str:
    moment, _, last = value.partition(" ")
    moment_from(moment)
    visible(last)
    return value


def cursor_of(moment: datetime, last: str) -> str:
    """The cursor to continue a list after a record."""
    return f"{moment.isoformat()} {last}"


def behind(cursor: str) -> tuple[datetime, str]:
    """Parses a cursor made by `cursor_of`."""
    moment, _, last = cursor.partition(" ")
    return moment_from(moment), last


#: Where a list of facts continues: the recorded time and id of the last one shown.
Cursor: TypeAlias = Annotated[Text, Field(min_length=1, max_length=300), AfterValidator(_cursor)]
PageSize: TypeAlias = Annotated[int, Field(ge=1, le=MAX_PAGE)]

ConversationId: TypeAlias = Annotated[
    Id, Field(description="Any text of up to 255 characters.", examples=["诊疗/2026:7"])
]
UserId: TypeAlias = Annotated[
    Id | None,
    Field(description="Whose conversation it is; facts and recall need one.", examples=["user-456"]),
]
FactsUser: TypeAlias = Annotated[
    Id, Field(description="About whom; a user's key fills it in.", examples=["user-456"])
]
Tenant: TypeAlias = Annotated[
    Id | None, Field(description='The tenant; "default" when left out.', examples=["clinic-1"])
]
Uuid: TypeAlias = Annotated[Id, Field(description="As it stands in the placeholder.", examples=[SOME_UUID])]
LoadQuery: TypeAlias = Annotated[
    Text | None, Field(description="Only the passages that answer this, each with where it stands.")
]
LoadOffset: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INT, description="The first character wanted.")]
LoadLimit: TypeAlias = Annotated[
    int | None,
    Field(ge=1, le=MAX_INT, description="At most so many characters; with a query, so many tokens."),
]


__all__ = [
    "MAX_COUNT",
    "MAX_INT",
    "MAX_PAGE",
    "SOME_UUID",
    "Answer",
    "Body",
    "ConversationId",
    "Cursor",
    "FactsUser",
    "Id",
    "LoadLimit",
    "LoadOffset",
    "LoadQuery",
    "Moment",
    "PageSize",
    "Params",
    "Tenant",
    "Text",
    "UserId",
    "Uuid",
    "behind",
    "cursor_of",
]
