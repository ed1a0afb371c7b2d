"""The kinds of text, number and time that may come in over HTTP.

What a database cannot hold is refused here, with the field's name, before anything is done.
"""

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pagefile.records import checked_text, utc

#: The largest whole number that every JSON reader and every database keeps exactly.
MAX_INT = 2**53 - 1
#: More tokens or turns than any model takes.
MAX_COUNT = 2**31 - 1
MAX_PAGE = 1000
#: Stands in the examples for the uuid of a page.
SOME_UUID = "00000000-0000-4000-8000-000000000000"


def _storable(value: str) -> str:
    return checked_text(value, "this text")


def _visible(value: str) -> str:
    if not value.strip():
        raise ValueError("an id needs at least one visible character")
    return value


def _given_as_text(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("give the time as text in ISO 8601, for instance 2026-01-31T09:30:00Z")  # noqa: TRY004 - pydantic reports ValueError only
    try:
        return utc(datetime.fromisoformat(value))
    except (ValueError, OverflowError) as error:
        raise ValueError("give the time in ISO 8601, for instance 2026-01-31T09:30:00Z") from error


def _cursor(value: str) -> str:
    moment, _, last = value.partition(" ")
    _given_as_text(moment)
    _visible(last)
    return value


def cursor_of(moment: datetime, last: str) -> str:
    """Where a list goes on behind a record."""
    return f"{moment.isoformat()} {last}"


def behind(cursor: str) -> tuple[datetime, str]:
    """What `cursor_of` was given."""
    moment, _, last = cursor.partition(" ")
    return _given_as_text(moment), last


Text: TypeAlias = Annotated[str, AfterValidator(_storable)]
Id: TypeAlias = Annotated[Text, Field(min_length=1, max_length=255), AfterValidator(_visible)]
Moment: TypeAlias = Annotated[datetime, BeforeValidator(_given_as_text)]
#: Where a list of facts goes on: when the last one shown was recorded, and its id.
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


class Body(BaseModel):
    """A request body: unknown fields are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Params(BaseModel):
    """A query string: unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """A response body."""

    model_config = ConfigDict(frozen=True)


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
