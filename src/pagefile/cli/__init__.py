"""The `pagefile` command: one file per group of commands, put together in `app`."""

import gc
import sys
from importlib.metadata import version

#: The shell's exit code for an interrupted command.
INTERRUPTED = 130


def main() -> None:
    """Run the command line. Imports take most of a short command's time, so Ctrl-C is handled cleanly during them too."""
    if sys.argv[1:] == ["--version"]:
        # What most asks for it is a script: it need not wait for the rest.
        sys.stdout.write(f"pagefile {version('pagefile')}\n")
        return
    # What is imported stays: looking through it for garbage again and again takes a tenth of a short command's time.
    gc.set_threshold(50_000)
    try:
        from pagefile.cli.app import run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    run()
