"""Whose memory the memory of a project is."""

import hashlib
from pathlib import Path
from urllib.parse import quote

from pagefile.records import MAX_ID_CHARS

_PLAIN = " !#$&'()+,/:;=@[\\]~"


def project_user(folder: str | Path) -> str:
    """The user that represents a project's folder: one project's rules never reach another's.

    Always ASCII, as it is sent in headers.
    """
    named = f"project:{quote(str(folder), safe=_PLAIN)}"
    if len(named) <= MAX_ID_CHARS:
        return named
    return f"project:{hashlib.sha256(str(folder).encode()).hexdigest()}"
