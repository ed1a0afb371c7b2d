"""Asks before something goes for good."""

import sys

import typer

from pagefile.cli.output import visible, warn


def ask(deed: str, *, otherwise: str) -> None:
    """Goes on when the person at the terminal says yes; where there is nobody to ask, nothing is done."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"there is nobody to ask whether to {deed}: say --yes")
    if not typer.confirm(f"{visible(deed[:1].upper() + deed[1:])}?", err=True):
        warn(otherwise)
        raise typer.Exit(1)
