"""Which settings files there are. Apart from `sources`, which reads them: opening a memory needs no parser."""

import logging
from functools import cache
from pathlib import Path

FILE_NAMES = ("pagefile.toml", "pagefile.yaml", "pagefile.yml")
log = logging.getLogger("pagefile.settings")


def files_here() -> list[str]:
    """The settings files in the working directory."""
    return [name for name in FILE_NAMES if Path(name).exists()]


def warn_of_unread_file() -> None:
    """Log once that a settings file in the working directory is not read, for programs that open a memory without settings."""
    if present := files_here():
        _warn_of(str(Path.cwd() / present[0]))


@cache
def _warn_of(path: str) -> None:
    log.warning(
        "%s is not read: Memory.open() has settings of its own. To use the file as the pagefile command does, pass "
        "settings=pagefile.load_settings(); to keep the defaults, pass settings=pagefile.Settings().",
        path,
    )
