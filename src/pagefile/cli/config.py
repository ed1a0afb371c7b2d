"""`config`: the settings in force, and where each came from."""

import typer

from pagefile.cli.opening import loaded
from pagefile.cli.options import AsJson, ConfigFile, Db
from pagefile.cli.output import print_json, print_table, say, table, visible
from pagefile.settings.sources import shown


def config(
    ctx: typer.Context, *, as_json: AsJson = False, db: Db = None, config_file: ConfigFile = None
) -> None:
    """Print the settings in force and where each came from; passwords are left out."""
    found = loaded(ctx, db, config_file, patient=False)
    values = {name: shown(value, name) for name, value in found.values().items()}
    file = None if found.file is None else str(found.file)
    if as_json:
        rows = {name: {"value": value, "from": found.origins[name]} for name, value in values.items()}
        print_json({"file": file, "settings": rows})
        return
    say(f"Settings file: {file or 'none'}\n")
    made = table("setting", "value", "from", wraps=("value",))
    for name, value in values.items():
        made.add_row(name, _written(value), found.origins[name])
    print_table(made)


def _written(value: object) -> str:
    """A value as a settings file would have it."""
    return str(value).lower() if isinstance(value, bool) else visible(str(value))
