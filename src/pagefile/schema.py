"""The base of every JSON shape: which texts, numbers and times are accepted, and how a record becomes JSON and back.

What a database cannot hold is refused here, with the field's name, before anything is done.
"""

import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from inspect import get_annotations
from types import UnionType
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar, cast

import pydantic
from pydantic import AfterValidator, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from pagefile.content import JsonObject, JsonValue
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

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Params(BaseModel):
    """A query string: unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Answer(BaseModel):
    """A response body: every field is in it."""

    model_config = ConfigDict(
        frozen=True, use_attribute_docstrings=True, json_schema_serialization_defaults_required=True
    )


# -- records -----------------------------------------------------------------------------------------------------------


class Mirror(Answer, Generic[R]):
    """JSON with the fields of a record: a subclass declares only those whose JSON differs from the record's.

    A field that the record names differently has that name as its alias. Defaults are the record's.
    """

    model_config = ConfigDict(
        from_attributes=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    record_type: ClassVar[Any]
    #: What each type of a record's fields is in JSON; every subclass adds itself for its own record.
    kinds: ClassVar[dict[Any, Any]] = {
        JsonObject: dict[str, pydantic.JsonValue],
        JsonValue: pydantic.JsonValue,
        Mapping: dict,
    }
    #: Descriptions for the API reference, by field.
    about: ClassVar[Mapping[str, str]] = {}
    #: Fields of the record that the JSON does not contain.
    without: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        # Pydantic reads the annotations and this setting after this. `Mirror[Turn]` is in no source file: before Python 3.13,
        # Pydantic looks for it through every module of every frame, which took a third of the service's imports.
        super().__init_subclass__(**options)
        cls.model_config["use_attribute_docstrings"] = "[" not in cls.__name__
        cls.record_type = _record_type(cls)
        if cls.record_type is None:
            return
        # Not `vars(…)["__annotations__"]`: from Python 3.14 on, a class has them only when it is asked.
        declared = dict(get_annotations(cls))
        elsewhere = {name for base in cls.__mro__[1:] for name in get_annotations(base)}
        left_out = {"scope", *cls.without, *(elsewhere - declared.keys())}
        own = [field for field in fields(cls.record_type) if field.name not in left_out]
        cls.__annotations__ = {one.name: declared.pop(one.name, None) or _derived(one, cls) for one in own}
        cls.__annotations__ |= declared
        cls.kinds.setdefault(cls.record_type, cls)

    @classmethod
    def of(cls, record: R) -> Self:
        return cls.model_validate(record)

    def record(self, **beside: object) -> R:
        """The record; `beside` supplies what the JSON does not contain."""
        return cast("R", self.record_type(**self.values(), **beside))

    def values(self) -> dict[str, Any]:
        return {field: _restored(getattr(self, name)) for field, name in _record_fields(type(self))}


def _record_type(kind: type) -> Any:
    """The record that a class says it mirrors; None for a base class."""
    for base in kind.__mro__:
        known = vars(base).get("__pydantic_generic_metadata__", {})
        if any(is_dataclass(argument) for argument in known.get("args", ())):
            return known["args"][0]
    return None


def _derived(field: Any, kind: type[Mirror[Any]]) -> Any:
    options = {"default": field.default, "default_factory": field.default_factory}
    known = {name: value for name, value in options.items() if value is not MISSING}
    about = Field(description=kind.about.get(field.name), **known)
    return Annotated[_json_type(field.type, kind.kinds), about]


def _json_type(hint: Any, kinds: Mapping[Any, Any]) -> Any:
    if hint in kinds:
        return kinds[hint]
    origin = typing.get_origin(hint)
    if origin in {None, Literal}:
        return hint
    inner = tuple(_json_type(one, kinds) for one in typing.get_args(hint))
    outer: Any = typing.Union if origin in {typing.Union, UnionType} else kinds.get(origin, origin)
    return outer[inner]


class OfUser(Mirror[R]):
    """A record of a user; the fields of its scope are flat."""

    user_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "user"))]
    tenant: Annotated[str, Field(validation_alias=AliasPath("scope", "tenant"))]

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.user_id)


class OfScope(Mirror[R]):
    """A record of a conversation, of a user, or of a tenant."""

    conversation_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "conversation"))]
    user_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "user"))]
    tenant: Annotated[str, Field(validation_alias=AliasPath("scope", "tenant"))]

    @property
    def scope(self) -> Scope:
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
    names = ((one.name, aliases.get(one.name, one.name)) for one in fields(kind.record_type))
    return tuple((field, name) for field, name in names if hasattr(kind, name) or name in kind.model_fields)


def _restored(value: object) -> object:
    if isinstance(value, Mirror):
        return cast("Mirror[Any]", value).record()
    if isinstance(value, tuple):
        return tuple(_restored(one) for one in cast("tuple[object, ...]", value))
    return value
