"""The `pagefile` command: one file per group of commands, put together in `app`."""

import sys

#: What a shell calls a command that was interrupted.
INTERRUPTED = 130


def main() -> None:
    """Run the command line. Most of a short command's time goes into imports: Ctrl-C is one line there too."""
    try:
        from pagefile.cli.app import run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    run()
