"""Where a request comes from. Nothing that a web page of another site can make a browser send changes anything here.

Browsers send some requests for any page without asking first: forms, and `fetch` with the content types of forms. They say where such
a request comes from, which no page can forge, and they ask before they send any other content type. Both are looked at, for every
path there is, because a service without keys trusts whoever reaches it.
"""

import re

from starlette.datastructures import Headers

from pagefile.service.binding import host_name, is_loopback
from pagefile.service.problems import told
from pagefile.wire.problem import Problem

#: What changes nothing.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
#: JSON, or JSON lines: browsers ask before they send these to another site.
_JSON = re.compile(r"application/(?:json|x-ndjson|x-jsonlines|jsonl|[\w.-]+\+json)", re.ASCII)
_FORM = "application/x-www-form-urlencoded"


class Origins:
    """Which requests may change something: those of programs, of our own pages, and of the sites that an operator has named."""

    def __init__(self, named: frozenset[str]) -> None:
        self._named = named

    def refusal(self, method: str, scheme: str, headers: Headers, *, form: bool) -> Problem | None:
        """Why a request is refused, None when it is not. `form`: it is for a page of ours, whose forms have a token besides."""
        if method in SAFE_METHODS:
            return None
        if not self._is_known(scheme, headers, own_only=form):
            return told("cross-site")
        # Browsers ask before they send any other method to another site.
        if method == "POST" and not _is_asked_for(headers, form=form):
            return told("media-type")
        return None

    def _is_known(self, scheme: str, headers: Headers, *, own_only: bool) -> bool:
        match [origin.lower() for origin in headers.getlist("origin")]:
            case []:
                # Programs say neither; browsers that leave out one of the two say the other.
                return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
            case [origin]:
                own = origin in _own(scheme, headers.get("host", "").lower())
                return own or (not own_only and origin in self._named)
            case _:
                # No browser says two: which of them another program believes is not to be guessed.
                return False


def _own(scheme: str, host: str) -> set[str]:
    """The origins of our own pages. A proxy that ends TLS need not say so; where only this machine is, there need not be one."""
    behind = set[str]() if is_loopback(host_name(host)) else {f"https://{host}"}
    return {f"{scheme}://{host}"} | behind


def _is_asked_for(headers: Headers, *, form: bool) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return _JSON.fullmatch(kind) is not None or (form and kind == _FORM)
