"""The format in which a model reports facts: strict, so that nothing else gets through."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = ["FoundFact", "FoundFacts", "ValidationError"]


class FoundFact(BaseModel):
    """What a model may say about one statement; anything else is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    turn: Annotated[int, Field(ge=1)]
    quote: Annotated[str, Field(min_length=1, max_length=2000)]
    text: Annotated[str, Field(min_length=1, max_length=500)]
    category: Annotated[str, Field(max_length=40)] | None = None
    subject: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    attribute: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None


class FoundFacts(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    facts: list[FoundFact]
