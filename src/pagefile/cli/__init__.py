"""The `pagefile` command: one file per group of commands, put together in `app`."""

from pagefile.cli.app import main

__all__ = ["main"]
