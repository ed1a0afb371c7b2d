"""Errors: one shape for all of them, after RFC 9457."""

from typing import Literal

from pydantic import ConfigDict, Field

from pagefile.errors import PagefileError
from pagefile.schema import Answer
from pagefile.wire.texts import with_example

MEDIA_TYPE = "application/problem+json"


class FieldError(Answer):
    """One invalid field."""

    where: Literal["body", "query", "header", "path"] = Field(description="Which part of the request.")
    pointer: str = Field(description="Which field, as a JSON pointer; empty for the whole.")
    code: str
    detail: str


class Problem(Answer):
    """An error of any kind."""

    type: str = Field(description="Where this kind of problem is explained, relative to the service.")
    title: str
    status: int
    detail: str = Field(description="What happened this time, and what to do.")
    instance: str = Field(description="This occurrence; the service's log names it too.")
    code: str = Field(description="The stable name to program against.")
    errors: tuple[FieldError, ...] = Field(default=(), description="Which fields, for validation errors.")

    model_config = ConfigDict(json_schema_extra=with_example)


def kinds_of_error(known: type[PagefileError] = PagefileError) -> list[type[PagefileError]]:
    """The class of an error and all its subclasses."""
    return [known, *(member for child in known.__subclasses__() for member in kinds_of_error(child))]
