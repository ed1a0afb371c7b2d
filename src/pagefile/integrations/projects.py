"""Whose memory the memory of a project is."""

import hashlib
from pathlib import Path

from pagefile.records import MAX_ID_CHARS


def project_user(folder: str | Path) -> str:
    """The user that stands for a project's folder: one project's rules never reach another's."""
    named = f"project:{folder}"
    if len(named) <= MAX_ID_CHARS:
        return named
    return f"project:{hashlib.sha256(str(folder).encode()).hexdigest()}"
