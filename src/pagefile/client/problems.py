"""From a problem document back to the error the service raised."""

from http import HTTPStatus

import httpx
from pydantic import ValidationError

from pagefile.errors import (
    ClosedError,
    InvalidArgumentError,
    NotFoundError,
    PagefileError,
    SettingsError,
    StoreUnavailableError,
)
from pagefile.wire.problem import Problem, kinds_of_error

#: Codes without an error class: the request was refused for its content, or was sent to the wrong place.
_OTHER: dict[str, type[PagefileError]] = {
    "validation": InvalidArgumentError,
    "invalid-json": InvalidArgumentError,
    "invalid-query": InvalidArgumentError,
    "media-type": InvalidArgumentError,
    "body-too-large": InvalidArgumentError,
    "route-not-found": NotFoundError,
    "misdirected": SettingsError,
    # The service is starting or stopping: to its caller, it is temporarily unavailable.
    ClosedError.code: StoreUnavailableError,
}
_AWAY = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


def error_of(answer: httpx.Response) -> PagefileError:
    """The error for a response; one that is not a problem document came from a proxy in between."""
    problem = _problem(answer.content)
    if problem is not None:
        return _raised(problem)
    known = StoreUnavailableError if answer.status_code in _AWAY else PagefileError
    return known(f"The service answered with {answer.status_code} and no problem document: is it Pagefile?")


def error_in(document: bytes) -> PagefileError:
    """The error for a problem document."""
    problem = _problem(document)
    if problem is not None:
        return _raised(problem)
    return PagefileError("The service reported a problem that cannot be read: is it as new as this client?")


def code_of(answer: httpx.Response) -> str | None:
    """The code of a problem; None if the response is not one."""
    problem = _problem(answer.content)
    return None if problem is None else problem.code


def _problem(document: bytes) -> Problem | None:
    try:
        return Problem.model_validate_json(document)
    except ValidationError:
        return None


def _raised(problem: Problem) -> PagefileError:
    return _classes().get(problem.code, PagefileError)(problem.detail)


def _classes() -> dict[str, type[PagefileError]]:
    # A subclass inside the service may have no code of its own; its parent's then applies.
    return {known.code: known for known in kinds_of_error() if "code" in vars(known)} | _OTHER
