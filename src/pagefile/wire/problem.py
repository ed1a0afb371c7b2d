"""Errors: one shape for all of them, after RFC 9457."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from pagefile.wire.texts import Answer

MEDIA_TYPE = "application/problem+json"


class FieldError(Answer):
    """One invalid field."""

    where: Annotated[Literal["body", "query", "header", "path"], Field(description="Where it stands.")]
    pointer: Annotated[str, Field(description="Which field, as a JSON pointer; empty for the whole.")]
    code: str
    detail: str


class Problem(Answer):
    """An error of any kind."""

    type: Annotated[
        str, Field(description="Where this kind of problem is explained, relative to the service.")
    ]
    title: str
    status: int
    detail: Annotated[str, Field(description="What happened this time, and what to do.")]
    instance: Annotated[str, Field(description="This occurrence; the service's log names it too.")]
    code: Annotated[str, Field(description="The stable name to program against.")]
    errors: Annotated[tuple[FieldError, ...], Field(description="Which fields, for validation errors.")] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "/problems/validation",
                    "title": "The request does not fit the schema.",
                    "status": 422,
                    "detail": "body /usr: Extra inputs are not permitted",
                    "instance": "urn:uuid:3f0f6f5e-7e0b-4b6e-9f2b-2a3c1d0e9b8a",
                    "code": "validation",
                    "errors": [
                        {
                            "where": "body",
                            "pointer": "/usr",
                            "code": "extra_forbidden",
                            "detail": "Extra inputs are not permitted",
                        }
                    ],
                }
            ]
        }
    )
