"""Who can reach the service: only this machine, unless there are keys."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from pagefile.errors import SettingsError
from pagefile.ports import KeyStore
from pagefile.settings import ServiceSettings

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
ANY = "*"

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{0,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
#: What web pages of other origins may do, and which headers they may send and read.
_CORS: Mapping[str, Any] = {
    "allow_methods": ("GET", "POST", "PUT", "DELETE"),
    "allow_headers": ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-API-Key"),
    "expose_headers": ("Content-Disposition", "Retry-After"),
}


def requires_keys(service: ServiceSettings) -> bool:
    """Whether every request needs a key: if so configured, and always when other machines can reach the service."""
    return service.require_keys or not is_loopback(service.host)


async def check_binding(service: ServiceSettings, keys: KeyStore) -> None:
    """Refuse to listen on a non-loopback address while no keys exist."""
    if is_loopback(service.host):
        return
    now = datetime.now(UTC)
    if not any(key.usable_at(now) for key in await keys.list()):
        raise SettingsError(
            f"There is no key yet, so the service does not listen on {service.host!r}, where other machines could read every "
            "conversation: make one with `pagefile keys add NAME`, or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether a host is reachable from this machine only. Names other than localhost count as remote."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def host_name(header: str) -> str:
    """The name in a Host header, lower-cased, without port and brackets; empty if the header is malformed."""
    found = _HOST.fullmatch(header.lower())
    return (found[1] or found[2]) if found else ""


def allowed_names(service: ServiceSettings) -> frozenset[str]:
    """The names a Host header may carry; `*` allows any.

    A page of another origin can point its own name at 127.0.0.1 (DNS rebinding) and would then read everything, but its requests
    still carry that name. Services that require a key are not affected: the page does not know the key.
    """
    named = {name.strip("[]").lower() for name in _listed(service.hosts)}
    if ANY in named and not requires_keys(service):
        raise SettingsError(
            'service.hosts is "*", which is safe only where keys are required: set service.require_keys, or name the hosts.'
        )
    for name in named - {ANY}:
        if host_name(f"[{name}]" if ":" in name else name) != name:
            raise SettingsError(
                f"service.hosts: {name!r} is not a host name: write it without https:// and without a port."
            )
    return LOOPBACK_NAMES | {service.host.strip("[]").lower()} | named


def named_origins(service: ServiceSettings) -> frozenset[str]:
    """The origins whose web pages may call the service."""
    origins = _listed(service.cors_origins)
    for origin in origins:
        if not _ORIGIN.fullmatch(origin.lower()):
            raise SettingsError(
                f"service.cors_origins: {origin!r} is not an origin: write it as https://app.example.com, without a path; "
                '"*" is not possible, because any page could then read every conversation.'
            )
    return frozenset(origin.lower() for origin in origins)


def across_origins(service: ServiceSettings) -> list[Middleware]:
    """The CORS middleware; empty unless origins are configured."""
    origins = sorted(named_origins(service))
    return [Middleware(CORSMiddleware, allow_origins=origins, **_CORS)] if origins else []


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
