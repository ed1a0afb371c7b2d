"""The JSON of a record: declared field by field, made from the record and turned back into it in one place."""

from dataclasses import fields
from typing import Annotated, Any, Generic, Self, TypeVar, cast

from pydantic import AliasPath, ConfigDict, Field

from pagefile.records import Scope
from pagefile.wire.texts import Answer

R = TypeVar("R")


class Mirror(Answer, Generic[R]):
    """An answer with the fields of a record. One that the record calls differently has that name as its alias."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True, validate_by_alias=True)

    @classmethod
    def of(cls, record: R) -> Self:
        return cls.model_validate(record)

    def record(self) -> R:
        return cast("R", _record_type(type(self))(**self.values()))

    def values(self) -> dict[str, Any]:
        """What the record is made of."""
        names = {
            info.validation_alias: name
            for name, info in type(self).model_fields.items()
            if isinstance(info.validation_alias, str)
        }
        given = ((one.name, names.get(one.name, one.name)) for one in fields(_record_type(type(self))))
        return {field: _restored(getattr(self, name)) for field, name in given if hasattr(self, name)}


class OfUser(Mirror[R]):
    """A record of a user: its scope stands flat."""

    user_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "user"))]
    tenant: Annotated[str, Field(validation_alias=AliasPath("scope", "tenant"))]

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return Scope(self.tenant, self.user_id)


class OfScope(OfUser[R]):
    """A record of a conversation, of a user, or of a tenant."""

    conversation_id: Annotated[str | None, Field(validation_alias=AliasPath("scope", "conversation"))]

    @property
    def scope(self) -> Scope:
        """Whose it is."""
        return Scope(self.tenant, self.user_id, self.conversation_id)


class OfConversation(OfScope[R]):
    """A record of a conversation."""

    conversation_id: Annotated[str, Field(validation_alias=AliasPath("scope", "conversation"))]  # pyright: ignore[reportIncompatibleVariableOverride] - frozen


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
