"""Errors in one shape: RFC 9457 problem documents."""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from traceback import format_tb
from typing import Literal, NamedTuple, cast
from uuid import uuid4

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from pagefile import errors
from pagefile.errors import PagefileError
from pagefile.inspector import urls
from pagefile.service.inspector_auth import gone_to, problem_page, wants_page
from pagefile.wire.responses import MEDIA_TYPE, FieldError, Problem, kinds_of_error

logger = logging.getLogger("pagefile.service")

#: The HTTP status of our errors; a class not listed here inherits its parent's.
#: 422 for everything the caller can fix by sending something else: the JSON was valid, its content was not. 400 is reserved for
#: malformed JSON.
STATUS: Mapping[type[PagefileError], int] = {
    PagefileError: 500,
    errors.SettingsError: 422,
    errors.MissingExtraError: 501,
    errors.InvalidArgumentError: 422,
    errors.BudgetError: 422,
    errors.TransferError: 422,
    errors.NotFoundError: 404,
    errors.PagePurgedError: 410,
    errors.ConflictError: 409,
    errors.ClosedError: 503,
    errors.AccessError: 403,
    errors.UnauthorizedError: 401,
    errors.TooManyRequestsError: 429,
    errors.StoreUnavailableError: 503,
    errors.StoreFullError: 507,
    errors.ModelError: 502,
    errors.ModelUnavailableError: 503,
    errors.ModelBusyError: 429,
}
#: Codes without an error class of ours.
OTHER: Mapping[str, tuple[int, str]] = {
    "invalid-json": (400, "The body is not JSON in UTF-8."),
    "invalid-query": (400, "The query string is not UTF-8."),
    "http": (400, "The request cannot be answered."),
    "route-not-found": (404, "There is no such route."),
    "method-not-allowed": (405, "The route does not take this method."),
    "body-too-large": (413, "The body is larger than the service accepts."),
    "body-too-slow": (408, "The body did not arrive in time."),
    "cross-site": (
        403,
        "A web page of another site sent this: only programs and this service's own pages may change anything.",
    ),
    "media-type": (415, "Changes must be sent as JSON: send the header Content-Type: application/json."),
    "misdirected": (421, "The Host header names another service."),
    "validation": (422, "The request does not fit the schema."),
    "idempotency-running": (
        409,
        "The first request with this Idempotency-Key is still running: try again in a moment.",
    ),
    "idempotency-interrupted": (
        409,
        "The service was stopped while it carried out the first request with this Idempotency-Key: it may have taken effect.",
    ),
    "idempotency-gone": (
        409,
        "The request with this Idempotency-Key was carried out. Its response was erased, or was too long to be kept.",
    ),
    "idempotency-key": (422, "An Idempotency-Key has 1 to 255 visible ASCII characters."),
    "idempotency-reused": (
        422,
        "This Idempotency-Key was used for another request: make a new one for each.",
    ),
    "internal": (500, "Something went wrong inside the service."),
    "no-model": (501, "No chat model is set."),
}

#: Instead of the error's docstring, which only makes sense to a Python program.
_SAID: Mapping[type[PagefileError], str] = {
    errors.ClosedError: "The service is starting or stopping: try again in a moment.",
    errors.StoreUnavailableError: "The database does not answer: try again in a moment. Nothing acknowledged is lost.",
}

_CODE_OF_STATUS = {
    404: "route-not-found",
    405: "method-not-allowed",
    408: "body-too-slow",
    413: "body-too-large",
}
_MAX_ERRORS = 20
_MAX_POINTER_CHARS = 200


class Kind(NamedTuple):
    code: str
    status: int
    title: str

    @classmethod
    def of(cls, known: type[PagefileError]) -> "Kind":
        """The kind of an error class; its status may come from its nearest listed ancestor."""
        status = next(STATUS[parent] for parent in known.__mro__ if parent in STATUS)
        said = next((_SAID[one] for one in known.__mro__ if one in _SAID), known.__doc__ or known.__name__)
        return cls(known.code, status, " ".join(said.split()))


@cache
def kinds() -> Mapping[str, Kind]:
    ours = [Kind.of(known) for known in kinds_of_error()]
    return {kind.code: kind for kind in [*ours, *(Kind(code, *rest) for code, rest in OTHER.items())]}


# -- responses ----------------------------------------------------------------------------------------------------


def to_problem(
    kind: Kind | str,
    detail: str | None = None,
    *,
    fields: Sequence[FieldError] = (),
    retry_after_s: int | None = None,
) -> Problem:
    """The document of a problem; all of them are built here."""
    known = kinds()[kind] if isinstance(kind, str) else kind
    return Problem(
        type=f"/problems/{known.code}",
        title=known.title,
        status=known.status,
        detail=_encodable(detail or known.title),
        instance=f"urn:uuid:{uuid4()}",
        code=known.code,
        errors=tuple(fields),
        retry_after_s=retry_after_s,
    )


class _ProblemResponse(Response):
    """The document; where a browser asks for a page of the inspector, a page with the same headers."""

    def __init__(self, problem: Problem, headers: Mapping[str, str]) -> None:
        super().__init__(problem.model_dump_json(), problem.status, headers, MEDIA_TYPE)
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if not wants_page(request):
            await super().__call__(scope, receive, send)
            return
        page = problem_page(self._problem, request)
        for name, value in self.headers.items():
            # With this one, a browser would show its own password dialog.
            if name != "www-authenticate":
                page.headers.setdefault(name, value)
        await page(scope, receive, send)


def answered(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        problem = problem.model_copy(update={"retry_after_s": 1})
    wait = problem.retry_after_s
    added = {} if wait is None else {"Retry-After": str(wait)}
    return _ProblemResponse(problem, {**added, **(headers or {})})


def problem_of(error: PagefileError, *, shown: tuple[type[PagefileError], ...] = ()) -> Problem:
    """The problem for one of our own errors. Server-side failures are logged; callers get no details, except of those `shown`."""
    kind = Kind.of(type(error))
    if kind.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        wait = error.retry_after_s if isinstance(error, errors.TooManyRequestsError) else None
        return to_problem(kind, str(error), retry_after_s=wait)
    problem = to_problem(kind, str(error) if isinstance(error, shown) else None)
    logger.error("%s: %s: %s", problem.instance, type(error).__name__, error)
    return problem


def refused(error: PagefileError, *, shown: tuple[type[PagefileError], ...] = ()) -> Response:
    known = isinstance(error, errors.UnauthorizedError)
    return answered(problem_of(error, shown=shown), {"WWW-Authenticate": "Bearer"} if known else None)


def unforeseen(error: Exception) -> Problem:
    """The problem for an unexpected error. Third-party messages can quote user content, so only source locations are logged."""
    problem = to_problem("internal", "The log of the service says where; nothing already recorded is lost.")
    places = "".join(format_tb(error.__traceback__))
    logger.error("%s: %s at\n%s", problem.instance, type(error).__name__, places)
    return problem


# -- handlers -----------------------------------------------------------------------------------------------------


async def pagefile_error(_request: Request, error: PagefileError) -> Response:
    return refused(error)


async def http_error(request: Request, error: HTTPException) -> Response:
    """An error of the framework: unknown route, wrong method, unreadable body. Or one of ours that it raised while a body was read."""
    if isinstance(error.__cause__, PagefileError):
        return refused(error.__cause__)
    if error.status_code == HTTPStatus.BAD_REQUEST and error.__cause__ is not None:
        return answered(_unreadable(error.__cause__))
    path = request.url.path
    if error.status_code == HTTPStatus.NOT_FOUND and path.endswith("/") and urls.is_page(path):
        # Pages have no slash at the end, but people type one.
        return gone_to(path.rstrip("/") + (f"?{request.url.query}" if request.url.query else ""))
    code = _CODE_OF_STATUS.get(error.status_code)
    if code is None:
        return answered(to_problem(Kind("http", error.status_code, OTHER["http"][1])), error.headers)
    if code == "method-not-allowed":
        return answered(to_problem(code), {**(error.headers or {}), **_allow(request)})
    return answered(to_problem(code, error.detail if code == "body-too-large" else None), error.headers)


async def validation_error(_request: Request, error: RequestValidationError) -> Response:
    """A request that does not match the schema: names the fields, never their values."""
    found = cast("Sequence[Mapping[str, object]]", error.errors())
    if any(item["type"] == "json_invalid" for item in found):
        position = cast("tuple[str, int]", found[0]["loc"])[1]
        return answered(
            to_problem("invalid-json", f"The body is not JSON: it breaks at character {position}.")
        )
    # The framework does not parse a body of another content type.
    if isinstance(cast("object", error.body), bytes):
        return answered(to_problem("media-type", "Send the header Content-Type: application/json."))
    fields = [_field(item) for item in found[:_MAX_ERRORS]]
    more = f" (and {len(found) - _MAX_ERRORS} more)" if len(found) > _MAX_ERRORS else ""
    detail = "; ".join(f"{field.where} {field.pointer}: {field.detail}" for field in fields) + more
    return answered(to_problem("validation", detail, fields=fields))


def _allow(request: Request) -> dict[str, str]:
    """Every method of the path: the framework names only those of the first matching route."""
    methods = cast("FastAPI", request.app).openapi()["paths"].get(request.url.path)
    return {"Allow": ", ".join(sorted(method.upper() for method in methods))} if methods else {}


def _unreadable(cause: BaseException) -> Problem:
    if isinstance(cause, UnicodeDecodeError):
        return to_problem("invalid-json", f"The body is not UTF-8: it breaks at byte {cause.start}.")
    if isinstance(cause, RecursionError):
        return to_problem("invalid-json", "The body is nested too deeply.")
    return to_problem(
        "invalid-json", "The body cannot be read: it broke off, or has a number too long to read."
    )


def _field(item: Mapping[str, object]) -> FieldError:
    place, *path = cast("tuple[str | int, ...]", item["loc"])
    pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
    if len(pointer) > _MAX_POINTER_CHARS:
        pointer = pointer[:_MAX_POINTER_CHARS] + "…"
    where = str(place) if place in {"body", "query", "header", "path"} else "body"
    return FieldError(
        where=cast("Literal['body', 'query', 'header', 'path']", where),
        pointer=_encodable(pointer),
        code=str(item["type"]),
        detail=_encodable(str(item["msg"]).removeprefix("Value error, ")),
    )


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
