"""`remember` and `facts`: lasting statements about a user."""

from typing import Annotated

import typer

from pagefile.cli.opening import AsJson, ConfigFile, Db, Tenant, loaded, run
from pagefile.cli.output import clipped, moment, nothing, print_json, print_table, say, table, visible


def remember(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="The statement.")],
    *,
    user_id: Annotated[str, typer.Option(help="The user it is about.")],
    category: Annotated[
        str | None,
        typer.Option(help="Such as preference or correction; corrections have a budget of their own."),
    ] = None,
    confidence: Annotated[float, typer.Option(min=0, max=1, help="How sure it is.")] = 1.0,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Write down a lasting statement about a user."""
    fact = run(
        loaded(ctx, db, config).settings,
        lambda memory: memory.remember(
            text, user_id=user_id, tenant=tenant, category=category, confidence=confidence
        ),
        must_exist=False,
    )
    if as_json:
        print_json(fact)
    else:
        say(f"Remembered about {clipped(user_id)}: {clipped(fact.text)} (id {fact.id})")


def facts(
    ctx: typer.Context,
    user_id: Annotated[str, typer.Argument(help="The user.")],
    *,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """List what is held about a user, oldest first."""
    found = run(loaded(ctx, db, config).settings, lambda memory: memory.facts(user_id, tenant))
    if not found:
        raise nothing(
            f"Nothing is held about {user_id!r}: `pagefile remember` writes a fact.", as_json=as_json
        )
    if as_json:
        print_json(found)
        return
    made = table("id", "recorded", "category", "sure", "fact", right=("sure",))
    for fact in found:
        made.add_row(
            clipped(fact.id, 9),
            moment(fact.recorded),
            clipped(fact.category or "–", 14),
            f"{fact.confidence:.2f}",
            visible(fact.text),
        )
    print_table(made)
