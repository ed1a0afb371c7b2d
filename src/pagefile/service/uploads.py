"""Where an upload is kept while it comes in: a folder of its own that is gone afterwards, also when the process was killed."""

import os
import re
import shutil
import tempfile
from pathlib import Path

_PREFIX = "pagefile-import-"
_NAMED = re.compile(rf"{_PREFIX}(\d+)-.*")


def upload_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for one upload; its name says which process made it."""
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


def remove_left_uploads() -> None:
    """Remove what processes that are no more have left behind: it holds what people said, and no erasure would find it."""
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
        # It is somebody else's: so is the folder.
        return True
    return True
