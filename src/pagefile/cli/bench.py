"""`bench`: the benchmarks, which are in `benchmarks/` of a checkout and not in the wheel."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from pagefile.cli.commands import Group
from pagefile.errors import SettingsError

#: The repository's root, if this is an editable install of it.
_ROOT = Path(__file__).parents[3]


class _Benchmarks(Group):
    """The commands of `benchmarks/cli.py`, imported on demand."""

    def list_commands(self, ctx: Any) -> list[str]:
        return _found().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _found().get_command(ctx, cmd_name)


def _found() -> Group:
    if not (_ROOT / "benchmarks" / "cli.py").is_file():
        raise SettingsError(
            "The benchmarks are not part of the installed package: clone the repository and run `make setup` "
            "and `.venv/bin/pagefile bench` there."
        )
    if str(_ROOT) not in sys.path:
        sys.path.append(str(_ROOT))
    commands: Any = typer.main.get_command(import_module("benchmarks.cli").app)
    return commands


app = typer.Typer(cls=_Benchmarks, no_args_is_help=True, add_completion=False)


@app.callback()
def bench() -> None:
    """Measure Pagefile on this machine; from a checkout of its repository.

    Examples:
        pagefile bench core
    """
