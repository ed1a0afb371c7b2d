"""CSRF protection: no other site's web page can make a browser change anything here.

For any page, browsers send forms, and `fetch` with a form's content type, without a preflight. They do state the origin of such a
request, which no page can forge, and they send a preflight before any other content type. Both origin and content type are checked
on every path, because a service without keys trusts every caller.
"""

import re

from starlette.datastructures import Headers

from pagefile.service.binding import host_name, is_loopback
from pagefile.service.problems import told
from pagefile.wire.problem import Problem

#: Methods that change nothing.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: JSON or JSON lines: browsers send a preflight before sending these to another site.
_JSON = re.compile(r"application/(?:json|x-ndjson|x-jsonlines|jsonl|[\w.-]+\+json)", re.ASCII)
_FORM = "application/x-www-form-urlencoded"


class Origins:
    """Decides which requests may change something: those from programs, from our own pages, and from configured origins."""

    def __init__(self, named: frozenset[str]) -> None:
        self._named = named

    def refusal(self, method: str, scheme: str, headers: Headers, *, form: bool) -> Problem | None:
        """The problem to refuse a request with, or None. `form` is for paths of our own pages, whose forms also carry a token."""
        if method in SAFE_METHODS:
            return None
        if not self._is_known(scheme, headers, own_only=form):
            return told("cross-site")
        # Browsers send a preflight for every other unsafe method.
        if method == "POST" and not _is_asked_for(headers, form=form):
            return told("media-type")
        return None

    def _is_known(self, scheme: str, headers: Headers, *, own_only: bool) -> bool:
        match [origin.lower() for origin in headers.getlist("origin")]:
            case []:
                # Programs send neither header; a browser that omits one sends the other.
                return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
            case [origin]:
                own = origin in _own(scheme, headers.get("host", "").lower())
                return own or (not own_only and origin in self._named)
            case _:
                # No browser sends two Origin headers, and other programs may disagree on which one counts.
                return False


def _own(scheme: str, host: str) -> set[str]:
    """The origins of our own pages. A TLS-terminating proxy may not announce itself; on a loopback host none is assumed."""
    behind = set[str]() if is_loopback(host_name(host)) else {f"https://{host}"}
    return {f"{scheme}://{host}"} | behind


def _is_asked_for(headers: Headers, *, form: bool) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return _JSON.fullmatch(kind) is not None or (form and kind == _FORM)
