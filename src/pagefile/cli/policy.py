"""`policy`: what is redacted and erased of each tenant's data, and what is due."""

from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from typing import Annotated

import anyio
from typer import Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import visible, warn
from pagefile.engine import Memory
from pagefile.engine.audit_log import AuditLog
from pagefile.engine.policy import Policy
from pagefile.engine.retention import Held, Retention
from pagefile.errors import SettingsError


@command(tenant=False)
def policy(
    cli: Invocation,
    *,
    apply: Annotated[
        bool, Option("--apply", help="Erase what is due now, instead of within the hour.")
    ] = False,
) -> None:
    """List the tenants: what is redacted, how long turns are kept, and what is due to be erased.

    Examples:
        pagefile policy
        pagefile policy --apply
    """
    found = cli.run(partial(_held, apply=apply))
    rules = Policy.of(cli.settings)
    cli.list(
        found,
        {
            "~tenant": lambda one: visible(one.tenant),
            "~redacted": lambda one: ", ".join(sorted(rules.kinds(one.tenant))) or "-",
            ">kept for": lambda one: f"{days:g} days" if (days := rules.days(one.tenant)) else "forever",
            ">conversations": lambda one: one.conversations,
            ">due": lambda one: one.due_conversations,
            ">due turns": lambda one: one.due_turns,
        },
        missing="Nothing is recorded yet.",
        value=[
            {**asdict(one), "redacted": sorted(rules.kinds(one.tenant)), "days": rules.days(one.tenant)}
            for one in found
        ],
    )


async def _held(memory: Memory, *, apply: bool) -> list[Held]:
    engine = memory.engine
    if engine.store.audit is None:
        raise SettingsError("This store does not list its conversations: it has no `audit`.")
    log = AuditLog.of(memory.settings.policy)
    retention = Retention(engine.policy, engine.store, engine.store.audit, engine.clock, engine.erase, log)
    if apply:
        await retention.sweep(anyio.sleep)
    found = await retention.held()
    tenants = [one.tenant for one in found]
    for pattern in engine.policy.unused(tenants):
        close = get_close_matches(pattern, tenants, n=1)
        warn(
            f"The policy names {pattern!r}, and no tenant is called so{f': is {close[0]!r} meant?' if close else '.'}"
        )
    return found
