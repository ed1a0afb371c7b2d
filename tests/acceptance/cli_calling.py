"""Calls the `pagefile` command in this process and hands back what it said."""

import json
import re
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from typer.testing import CliRunner

from pagefile.cli.app import app


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """All of stdout, which must be JSON and nothing else."""
        return json.loads(self.out)

    @property
    def words(self) -> str:
        """Stdout on one line, as it reads without the wrapping."""
        return " ".join(self.out.split())


def pagefile(*arguments: str, stdin: str | None = None) -> Said:
    """Run a command."""
    result = CliRunner().invoke(app, arguments, input=stdin, prog_name="pagefile")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


def table_widths(text: str) -> set[int]:
    """How many cells wide the lines of the (only) table in a text are, from its rule on."""
    lines = text.splitlines()
    rule = next(number for number, line in enumerate(lines) if re.fullmatch("─+", line))
    return {cell_len(line) for line in lines[rule - 1 :] if line}
