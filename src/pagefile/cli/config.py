"""`config`: the effective settings, and where each came from."""

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import print_table, say, table, visible
from pagefile.settings.sources import shown


@command(tenant=False)
def config(cli: Invocation) -> None:
    """Print the settings in force and where each came from; passwords are left out."""
    found = cli.loaded(patient=False)
    values = {name: shown(value, name) for name, value in found.values().items()}
    file = None if found.file is None else str(found.file)
    rows = {name: {"value": value, "from": found.origins[name]} for name, value in values.items()}

    def shown_rows() -> None:
        say(f"Settings file: {file or 'none'}\n")
        made = table("setting", "value", "from", wraps=("value",))
        for name, value in values.items():
            made.add_row(name, _written(value), found.origins[name])
        print_table(made)

    cli.answer({"file": file, "settings": rows}, shown_rows)


def _written(value: object) -> str:
    """A value as it would be written in a settings file."""
    return str(value).lower() if isinstance(value, bool) else visible(str(value))
