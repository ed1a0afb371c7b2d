"""Options and arguments that several commands share."""

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from pagefile.cli.measures import when
from pagefile.settings.sources import shown

_where = partial(Option, rich_help_panel="Database and settings")
_DB_HELP = "The database: a URL, or the path of an SQLite file. By default, the setting `url`."
_CONFIG_HELP = (
    "The settings file. By default, $PAGEFILE_CONFIG, or pagefile.toml, .yaml or .yml in this folder."
)
Db = Annotated[str | None, _where("--db", metavar="URL|PATH", help=_DB_HELP)]
ConfigFile = Annotated[Path | None, _where("--config", metavar="FILE", help=_CONFIG_HELP)]
Tenant = Annotated[str | None, _where(help="The tenant. By default, `default`.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON and nothing else.")]
Full = Annotated[bool, Option("--full", help="Print whole texts and every row.")]
Newest = Annotated[int, Option("--limit", "-n", min=1, help="How many of the newest to show.")]
Limit = Annotated[int, Option("--limit", "-n", min=1, help="The maximum number of results.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
at_time = partial(Option, parser=when, metavar="2026-01-31T09:30")
in_conversation = partial(Option, "--conversation", "-c")
of_user = partial(Option, "--user", "--user-id")
User = Annotated[str | None, Argument(metavar="USER", help="The user, or --user.")]
UserId = Annotated[str | None, of_user(help="The user it belongs to.")]
Named = Annotated[str, Argument(help="The conversation.")]
Query = Annotated[str, Argument(help="The text to search for.")]


@dataclass(frozen=True, slots=True)
class Place:
    db: str | None = None
    config: Path | None = None

    def after(self, before: "Place | None") -> "Place":
        """This place, completed by options before the command; those after the command win."""
        return self if before is None else Place(self.db or before.db, self.config or before.config)

    @property
    def command(self) -> str:
        """How the command begins that looks at the same place again."""
        named = (("--db", self.db and shown(self.db)), ("--config", self.config))
        return shlex.join(
            ["pagefile", *(text for name, given in named if given for text in (name, str(given)))]
        )
