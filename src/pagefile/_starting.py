"""Ctrl-C while the `pagefile` command is still being imported is one line, not a traceback.

Most of a short command's time goes into its imports, and nothing of ours runs before them but this. Whoever imports the library
into a program of their own keeps their `sys.excepthook`.
"""

import sys
from collections.abc import Sequence
from itertools import pairwise
from types import TracebackType

#: What a shell calls a command that was interrupted.
INTERRUPTED = 130


def is_the_command(argv: Sequence[str], orig_argv: Sequence[str]) -> bool:
    """Whether this process is `pagefile …` or `python -m pagefile …`."""
    if argv[:1] == ["-m"]:  # what it is for as long as the package is looked for
        return ("-m", "pagefile") in pairwise(orig_argv)
    name = argv[0].replace("\\", "/").rpartition("/")[2] if argv else ""
    return name in {"pagefile", "pagefile.exe"}


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stderr.write("Interrupted.\n")
    raise SystemExit(INTERRUPTED)


if is_the_command(sys.argv, sys.orig_argv):
    sys.excepthook = _told
