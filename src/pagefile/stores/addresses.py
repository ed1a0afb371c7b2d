"""What the addresses of all servers have in common."""

from urllib.parse import SplitResult

ENCODE = "In a password, write / @ : # % ? as %2F %40 %3A %23 %25 %3F."


def splits_password(parts: SplitResult) -> bool:
    """Whether an @ stands behind the host: what was read as host and port is then the beginning of a login that nobody encoded."""
    names = [option.partition("=")[0] for option in parts.query.split("&")]
    return bool(parts.netloc) and any("@" in text for text in (parts.path, parts.fragment, *names))
