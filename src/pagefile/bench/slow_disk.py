"""A disk whose every sync takes longer: lets a machine with a fast one see what a slow one would do."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import apsw

_NAME = "pagefile-slow-disk"


class _SlowFile(apsw.VFSFile):
    seconds = 0.0

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's word
        time.sleep(self.seconds)
        super().xSync(flags)


class _SlowDisk(apsw.VFS):
    def __init__(self, base: str, seconds: float) -> None:
        self._base = base
        self._file = type("_File", (_SlowFile,), {"seconds": seconds})
        super().__init__(_NAME, base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's word
        return cast("apsw.VFSFile", self._file(self._base, name, flags))


@contextmanager
def slow_disk(seconds: float) -> Generator[None]:
    """Databases opened inside wait so much longer for each sync; they must be closed before the end."""
    usual = apsw.vfs_names()[0]
    disk = _SlowDisk(usual, seconds)
    try:
        yield
    finally:
        apsw.set_default_vfs(usual)
        disk.unregister()
