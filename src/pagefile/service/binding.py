"""Who may reach the service: this machine only, as long as there are no keys."""

import re
from ipaddress import IPv6Address, ip_address

from pagefile.errors import SettingsError

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{0,5})?", re.ASCII)


def check_binding(host: str) -> None:
    """Refuse to listen where other machines could reach a service that asks nobody for a key."""
    if not is_loopback(host):
        raise SettingsError(
            f"The service has no keys yet, so it does not listen on {host!r}, where other machines could read every "
            "conversation: use 127.0.0.1, and put a reverse proxy that asks for a password in front of it."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host; a name other than localhost may mean anything."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def host_name(header: str) -> str:
    """The name in a Host header, lower case, without port and brackets; empty when it is no name and port at all."""
    found = _HOST.fullmatch(header.lower())
    return (found[1] or found[2]) if found else ""


def allowed_names(host: str) -> frozenset[str]:
    """What a Host header may say to a service that listens on `host`.

    A page of another origin can point its own name at 127.0.0.1 (DNS rebinding), and then reads what it likes; but its
    requests still carry that name.
    """
    return LOOPBACK_NAMES | {host.strip("[]").lower()}
