"""Temporary directories for uploads, removed afterwards even if the process was killed."""

import os
import re
import shutil
import tempfile
from pathlib import Path

_PREFIX = "pagefile-import-"
_NAMED = re.compile(rf"{_PREFIX}(\d+)-.*")


def upload_folder() -> tempfile.TemporaryDirectory[str]:
    """A directory for one upload; its name holds the process id."""
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


def remove_left_uploads() -> None:
    """Remove what dead processes left behind: it holds user content, and no erasure would find it."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        named = _NAMED.fullmatch(folder.name)
        if named is None or not _is_running(int(named[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # The process belongs to another user, and so does the directory.
        return True
    return True
