"""Options that many commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

_WHERE = "Where"
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL|PATH",
        help="The database; a bare path means SQLite. Else `url` of the settings holds.",
        rich_help_panel=_WHERE,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The settings file. Else $PAGEFILE_CONFIG or a pagefile.toml, .yaml or .yml here.",
        rich_help_panel=_WHERE,
    ),
]
Tenant = Annotated[
    str | None, typer.Option(help="The tenant, `default` unless given.", rich_help_panel=_WHERE)
]
UserId = Annotated[str | None, typer.Option(help="The user it belongs to.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
Full = Annotated[bool, typer.Option("--full", help="Print whole texts and every row.")]


@dataclass(frozen=True, slots=True)
class Place:
    """The database and the settings file that were named."""

    db: str | None = None
    config: Path | None = None

    def after(self, before: "Place | None") -> "Place":
        """This place, completed by options before the command; those after the command win."""
        return self if before is None else Place(self.db or before.db, self.config or before.config)
