"""`audit`: who read and changed what."""

from dataclasses import asdict
from typing import Annotated

from typer import Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.options import of_user
from pagefile.cli.output import visible
from pagefile.engine.audit_log import AuditLog
from pagefile.errors import SettingsError


@command()
def audit(
    cli: Invocation,
    *,
    user_id: Annotated[str | None, of_user(help="Only what concerns this user.")] = None,
    key: Annotated[str | None, Option(help="Only what was done with this key (its id).")] = None,
    limit: Annotated[
        int, Option("--limit", "-n", min=1, max=100_000, help="The maximum number of entries.")
    ] = 100,
) -> None:
    """List who read or changed what in a tenant through the service, newest first; needs the setting policy.audit.

    Examples:
        pagefile audit --limit 20
        pagefile audit --user-id ada --json
    """
    log = AuditLog.of(cli.loaded().settings.policy)
    if log is None:
        raise SettingsError("There is no audit log: set policy.audit to a folder, and restart the service.")
    found = log.entries(cli.scope.tenant, user=user_id, key=key, limit=limit)
    cli.list(
        found,
        {
            "at": lambda entry: entry.at[:19].replace("T", " "),
            ">status": lambda entry: entry.status or "-",
            "key": lambda entry: entry.key or "-",
            "~user": lambda entry: visible(entry.user or "-"),
            "~conversation": lambda entry: visible(entry.conversation or "-"),
            "verb": lambda entry: entry.verb,
        },
        missing=f"The audit log has no such entry in tenant {visible(cli.scope.tenant)!r}: --tenant names another.",
        value=[asdict(entry) for entry in found],
    )
