"""The base of every JSON shape: which texts, numbers and times are accepted, and how a record becomes JSON and back.

What a database cannot hold is refused here, with the field's name, before anything is done.
"""

from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Generic, Self, TypeAlias, TypeVar, cast

from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from pagefile.records import MAX_INT, Scope, checked_text, utc

R = TypeVar("R")


# -- kinds of values ---------------------------------------------------------------------------------------------------


def _storable(value: str) -> str:
    return checked_text(value, "this text")


def visible(value: str) -> str:
    """An id with at least one visible character."""
    if not value.strip():
        raise ValueError("an id needs at least one visible character")
    return value


def moment_from(value: object) -> datetime:
    """A time given as text."""
    if not isinstance(value, str):
        raise ValueError("give the time as text in ISO 8601, for instance 2026-01-31T09:30:00Z")  # noqa: TRY004 - pydantic reports ValueError only
    try:
        return utc(datetime.fromisoformat(value))
    except (ValueError, OverflowError) as error:
        raise ValueError("give the time in ISO 8601, for instance 2026-01-31T09:30:00Z") from error


Text: TypeAlias = Annotated[str, AfterValidator(_storable)]
Id: TypeAlias = Annotated[Text, Field(min_length=1, max_length=255), AfterValidator(visible)]
Moment: TypeAlias = Annotated[datetime, BeforeValidator(moment_from)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_INT)]


# -- shapes ------------------------------------------------------------------------------------------------------------


class Body(BaseModel):
    """A request body: unknown fields are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Params(BaseModel):
    """A query string: unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Answer(BaseModel):
    """A response body."""

    model_config = ConfigDict(frozen=True)


# -- records -----------------------------------------------------------------------------------------------------------


class Mirror(Answer, Generic[R]):
    """JSON with the fields of a record. A field that the record names differently has that name as its alias."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)

    @classmethod
    def of(cls, record: R) -> Self:
        return cls.model_validate(record)

    def record(self, **beside: object) -> R:
        """The record; `beside` supplies what the JSON does not contain."""
        return cast("R", _record_type(type(self))(**self.values(), **beside))

    def values(self) -> dict[str, Any]:
        """The record's fields."""
        return {field: _restored(getattr(self, name)) for field, name in _record_fields(type(self))}


class OfUser(Mirror[R]):
    """A record of a user; the fields of its scope are flat."""

    user_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "user"))]
    tenant: Annotated[str, Field(validation_alias=AliasPath("scope", "tenant"))]

    @property
    def scope(self) -> Scope:
        """The user's scope."""
        return Scope(self.tenant, self.user_id)


class OfScope(Mirror[R]):
    """A record of a conversation, of a user, or of a tenant."""

    conversation_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "conversation"))]
    user_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "user"))]
    tenant: Annotated[str, Field(validation_alias=AliasPath("scope", "tenant"))]

    @property
    def scope(self) -> Scope:
        """The scope it belongs to."""
        return Scope(self.tenant, self.user_id, self.conversation_id)


class OfConversation(OfScope[R]):
    """A record of a conversation."""

    conversation_id: Annotated[str, Field(validation_alias=AliasPath("scope", "conversation"))]  # pyright: ignore[reportIncompatibleVariableOverride] - frozen


@cache
def _record_fields(kind: type[Mirror[Any]]) -> tuple[tuple[str, str], ...]:
    """The fields of the record that the JSON contains, each with its name there."""
    aliases = {
        info.validation_alias: name
        for name, info in kind.model_fields.items()
        if isinstance(info.validation_alias, str)
    }
    names = ((one.name, aliases.get(one.name, one.name)) for one in fields(_record_type(kind)))
    return tuple((field, name) for field, name in names if hasattr(kind, name) or name in kind.model_fields)


@cache
def _record_type(kind: type[Mirror[Any]]) -> Any:
    for base in kind.__mro__:
        arguments = (
            cast("Any", base).__pydantic_generic_metadata__["args"] if issubclass(base, Mirror) else ()
        )
        if arguments and isinstance(arguments[0], type):
            return arguments[0]
    raise TypeError(f"{kind.__name__} does not say which record it mirrors.")


def _restored(value: object) -> object:
    if isinstance(value, Mirror):
        return cast("Mirror[Any]", value).record()
    if isinstance(value, tuple):
        return tuple(_restored(one) for one in cast("tuple[object, ...]", value))
    return value
