"""Asks for confirmation before something is removed for good."""

import sys

import typer

from pagefile.cli.output import visible, warn


def ask(deed: str, *, otherwise: str) -> None:
    """Continue only if the user confirms; without a terminal to ask on, refuse."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"there is nobody to ask whether to {deed}: say --yes")
    if not typer.confirm(f"{visible(deed[:1].upper() + deed[1:])}?", err=True):
        warn(otherwise)
        raise typer.Exit(1)
