"""The inspector's sign-in: a key in a cookie, CSRF-protected forms, problems as HTML pages.

The cookie is only accepted on the inspector's own paths: the API requires a header, which no other site can make a browser send.
"""

import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from hmac import compare_digest
from typing import cast
from urllib.parse import parse_qsl, quote

from fastapi import Request, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from pagefile.errors import AccessError, InvalidArgumentError
from pagefile.inspector import urls
from pagefile.inspector.frame import page
from pagefile.inspector.page_request import Language, PageRequest, Reader, Theme
from pagefile.inspector.start import problem, sign_in
from pagefile.inspector.ui import View
from pagefile.wire.responses import Problem

KEY, TOKEN, LANGUAGE, THEME = "pagefile_key", "pagefile_form", "pagefile_lang", "pagefile_theme"
#: Only our own style sheet; no framing, and forms submit only to this service.
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
#: Pages that use the script may run that one file, and it may call this service.
SCRIPT_POLICY = f"{POLICY}; script-src 'self'; connect-src 'self'"

#: A larger one would hold everybody up while its escapes are read, in Python.
MAX_FORM_BYTES = 1_000_000

_YEAR_S = 365 * 24 * 3600
#: Characters a cookie cannot hold; none of our keys and tokens contains any.
_UNSAFE = re.compile(r"[^\w.~-]", re.ASCII)
#: A path on this service. Browsers drop tabs and line breaks from a URL and read a backslash as a slash.
_OWN = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
#: Characters left unescaped in a URL because they have a meaning there.
_WRITTEN = "/%?&=#:;,+@!$'()*~[]"


class InspectorAuth:
    """Passes the cookie's key on to the `AuthMiddleware`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        key = cookie_parser(headers.get("cookie", "")).get(KEY) if urls.is_inspector(scope["path"]) else None
        if key and "authorization" not in headers and "x-api-key" not in headers:
            # A malformed cookie is treated as an unknown key, not as an error.
            bearer = (b"authorization", b"Bearer " + key.encode("latin-1", "replace"))
            scope = {**scope, "headers": [*scope["headers"], bearer]}
        await self._app(scope, receive, send)


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page of the inspector, and so wants to see a problem as one."""
    path = request.scope["path"]
    is_page = urls.is_inspector(path) and not path.endswith(".json") and path != urls.STREAM
    return is_page and "text/html" in request.headers.get("accept", "")


def problem_page(told: Problem, request: Request) -> Response:
    """A problem as a page; a missing key as the page to sign in."""
    if told.status != 401:
        show = partial(problem, told.title, told.detail, told.status, code=told.code)
        answer = shown(request, PageRequest(), show)
    else:
        query = f"?{request.url.query}" if request.url.query else ""
        onward = f"{request.url.path}{query}" if request.method == "GET" else urls.HOME
        show = partial(sign_in, onward=onward, failed=KEY in request.cookies)
        answer = with_key(shown(request, PageRequest(), show), request, None)
    answer.status_code = told.status
    return answer


# -- the reader ----------------------------------------------------------------------------------------------------------


def reader_of(request: Request, asked: PageRequest) -> Reader:
    """Language and theme: as requested, else as remembered in a cookie, else as the browser prefers."""
    given, kept = request.query_params, request.cookies
    preferred = "zh" if prefers_chinese(request.headers.get("accept-language", "")) else "en"
    language = _chosen({"en", "zh"}, given.get("lang"), kept.get(LANGUAGE))
    theme = _chosen({"auto", "light", "dark"}, given.get("theme"), kept.get(THEME))
    chosen = cast("Language", language or preferred), cast("Theme", theme or "auto")
    path, token = request.url.path.removesuffix(".json"), kept.get(TOKEN) or secrets.token_urlsafe(24)
    return Reader(asked, datetime.now(UTC), *chosen, path, token, KEY in kept)


def prefers_chinese(accept_language: str) -> bool:
    """Whether the reader prefers Chinese to English; False when they state neither."""
    weights = {"zh": 0.0, "en": 0.0}
    for part in accept_language.lower().split(","):
        tag, _, options = part.strip().partition(";")
        primary = tag.partition("-")[0].strip()
        if primary in weights:
            said = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", options)
            weights[primary] = max(weights[primary], float(said[1]) if said else 1.0)
    return weights["zh"] > weights["en"]


def _chosen(among: set[str], *said: str | None) -> str | None:
    return next((one for one in said if one in among), None)


def shown(request: Request, asked: PageRequest, show: Callable[[Reader], View]) -> Response:
    """A page as a response; the reader's choices are remembered in cookies."""
    reader = reader_of(request, asked)
    view = show(reader)
    answer = Response(page(view, reader), media_type="text/html; charset=utf-8")
    answer.headers["Content-Security-Policy"] = SCRIPT_POLICY if view.script else POLICY
    answer.headers["Content-Language"] = reader.language
    # None to other sites. "no-referrer" would also hide that a form is our own: its Origin would be "null".
    answer.headers["Referrer-Policy"] = "same-origin"
    answer.headers["Vary"] = "Accept-Language, Cookie"
    if view.refresh_s is not None:
        answer.headers["Refresh"] = str(view.refresh_s)
    if TOKEN not in request.cookies:
        answer.headers.append("Set-Cookie", _cookie(request, TOKEN, reader.token))
    for name, asked_for, value in ((LANGUAGE, "lang", reader.language), (THEME, "theme", reader.theme)):
        if request.query_params.get(asked_for) == value:
            answer.headers.append("Set-Cookie", _cookie(request, name, value, age_s=_YEAR_S))
    return answer


def gone_to(place: str) -> Response:
    """Redirect to another page with GET. Only paths on this service; anything else leads to the home page."""
    ours = _OWN.fullmatch(place) is not None
    return Response(status_code=303, headers={"Location": quote(place, safe=_WRITTEN) if ours else urls.HOME})


def with_key(answer: Response, request: Request, key: str | None) -> Response:
    """The response with the key's cookie set, or cleared."""
    value = _cookie(request, KEY, key) if key else _cookie(request, KEY, "", age_s=0)
    answer.headers.append("Set-Cookie", value)
    return answer


def _cookie(request: Request, name: str, value: str, age_s: int | None = None) -> str:
    value = _UNSAFE.sub("", value)
    age = "" if age_s is None else f"; Max-Age={age_s}"
    secure = "; Secure" if request.url.scheme == "https" else ""
    return f"{name}={value}; Path=/{age}; HttpOnly; SameSite=Strict{secure}"


# -- forms ---------------------------------------------------------------------------------------------------------------


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form with a valid token; its origin was checked earlier, by `RequestGuard`."""
    body = await request.body()
    if len(body) > MAX_FORM_BYTES:
        raise HTTPException(413, f"A form has at most {MAX_FORM_BYTES:,} bytes: use the API for more.")
    try:
        text = body.decode()
        fields = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=200, errors="strict"))
    except ValueError as error:
        raise InvalidArgumentError("The form cannot be read: reload the page and send it again.") from error
    sent, shown = fields.pop("token", ""), request.cookies.get(TOKEN, "")
    if not shown or not compare_digest(sent.encode(), shown.encode()):
        raise AccessError(
            "This form does not come from a page of this service: reload the page and send it again."
        )
    return fields
