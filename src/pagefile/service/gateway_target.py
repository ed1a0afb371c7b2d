"""Where a request through the gateway goes, and which of its headers go with it."""

import re
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from pagefile.errors import SettingsError
from pagefile.gateway import identity
from pagefile.gateway.prices import read_prices
from pagefile.settings import GatewaySettings
from pagefile.settings.sources import shown
from pagefile.stores.key_secrets import is_key

#: Hop-by-hop headers, those that a proxy writes itself, and cookies: they are this host's, and the inspector's is a key.
HOP = frozenset(
    {
        "connection", "content-length", "cookie", "date", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "server", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
#: What a proxy says of the client: nobody's business but this service's.
_OF_CLIENTS = frozenset(
    {
        "forwarded",
        "via",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
    }
)
#: Characters that are not encoded in a path (RFC 3986), and what is already encoded.
_IN_PATHS = "/%!$&'()*+,;=:@~"
#: Headers that say on whose account a key of OpenAI's is used: they belong to the client's own.
_OF_A_KEY = frozenset({"openai-organization", "openai-project"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Target:
    base: str | None
    path: str
    #: The header that holds its key, and the key if the settings have one.
    header: str
    key: str | None
    #: What its address is called.
    setting: str = ""

    def url(self, query: str) -> str:
        return f"{(self.base or '').rstrip('/')}{self.path}" + (f"?{query}" if query else "")

    def headers(self, given: Headers, *, plain: bool) -> list[tuple[str, str]]:
        """The client's headers without ours; `plain` for an answer that has to be read."""
        named = {word.strip().lower() for word in ",".join(given.getlist("connection")).split(",")}
        dropped = HOP | _OF_CLIENTS | identity.OURS | named | ({"accept-encoding"} if plain else set[str]())
        dropped |= _OF_A_KEY if self.key else frozenset[str]()
        kept = [
            (name, value)
            for name, value in given.items()
            if name not in dropped
            and not (name in {"authorization", "x-api-key"} and (self.key or is_key(value)))
        ]
        if self.key:
            kept.append((self.header, f"Bearer {self.key}" if self.header == "authorization" else self.key))
        return [*kept, ("accept-encoding", "identity")] if plain else kept


def _is_anthropics(request: Request) -> bool:
    return "anthropic-version" in request.headers or cast("str", request.scope["path"]).startswith(
        "/v1/messages"
    )


def nowhere(settings: GatewaySettings | None, request: Request) -> str:
    """Why a request goes to no provider."""
    if settings is None:
        return "This is a provider's route: set gateway.openai_url or gateway.anthropic_url, and start again."
    if _is_anthropics(request) and settings.anthropic_url is None:
        return "This is Anthropic's protocol: set gateway.anthropic_url, and start again."
    if not _is_anthropics(request) and settings.openai_url is None:
        return "This is OpenAI's protocol: set gateway.openai_url, and start again."
    return "The path of a provider's route may not have `..` or control characters."


def _stays_below(path: str) -> bool:
    """Whether no server reads a decoded path as one that leads upwards, or as more than a path."""
    names = {name.partition(";")[0] for name in path.replace("\\", "/").split("/")}
    return ".." not in names and _CONTROL.search(path) is None


def target_of(settings: GatewaySettings, request: Request) -> Target | None:
    """Where a request goes; None if no provider is set for it."""
    path = cast("str", request.scope["path"])
    # As the client wrote it: decoding and encoding again would change which segments it has.
    sent = quote(request.scope["raw_path"], safe=_IN_PATHS)
    base = settings.anthropic_url and settings.anthropic_url.rstrip("/").removesuffix("/v1")
    anthropic = Target(base, sent, "x-api-key", settings.anthropic_api_key, "gateway.anthropic_url")
    openai = Target(
        settings.openai_url,
        sent.removeprefix("/v1"),
        "authorization",
        settings.openai_api_key,
        "gateway.openai_url",
    )
    is_anthropics = _is_anthropics(request)
    chosen = anthropic if is_anthropics else openai
    return chosen if chosen.base is not None and _stays_below(path) else None


def check_gateway(settings: GatewaySettings) -> None:
    """Refuse addresses that cannot be called, and a price table that cannot be read, before the service starts."""
    for name, url in (("openai_url", settings.openai_url), ("anthropic_url", settings.anthropic_url)):
        if url is not None and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
            masked = shown(url) if "://" in url else str(shown(f"://{url}")).removeprefix("://")
            raise SettingsError(f"gateway.{name} is {masked!r}: it must begin with http:// or https://.")
    read_prices(settings.prices)
