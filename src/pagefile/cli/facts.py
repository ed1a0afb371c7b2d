"""`remember` and `facts`: lasting statements about a user, how they changed, and where else they come from."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from pagefile.cli.ids import begins, telling_chars
from pagefile.cli.measures import when
from pagefile.cli.opening import loaded, run
from pagefile.cli.options import AsJson, ConfigFile, Db, Tenant
from pagefile.cli.output import clipped, moment, nothing, print_json, print_table, say, table, visible
from pagefile.engine import Memory
from pagefile.errors import NotFoundError, SettingsError
from pagefile.records import Fact, Revision, Scope, checked_id

_TOLD = {
    "stored": "Remembered",
    "duplicate": "Known already, and surer now",
    "superseded": "Remembered in the place of what was held before",
}
#: Facts that are named when the beginning of an id is that of more than one.
_CANDIDATES = 5


class _ListsByDefault(TyperGroup):
    """`pagefile facts USER` is `pagefile facts list USER`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride] - typer hands its own context on
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_ListsByDefault, no_args_is_help=True, add_completion=False)

User = Annotated[str, typer.Argument(help="The user.")]
UserOption = Annotated[str, typer.Option(help="The user they are about.")]


@app.callback()
def facts() -> None:
    """List what is held about a user (`facts USER`), how it changed; undo, retract, import."""


def remember(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(help="The statement.")],
    *,
    user_id: Annotated[str, typer.Option(help="The user it is about.")],
    category: Annotated[
        str | None,
        typer.Option(help="Such as preference or correction; corrections have a budget of their own."),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(
            help="What it speaks of, such as residence; it takes the place of what was held about it."
        ),
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
            text,
            user_id=user_id,
            tenant=tenant,
            category=category,
            attribute=attribute,
            confidence=confidence,
        ),
        must_exist=False,
    )
    if as_json:
        print_json(fact)
    else:
        told = _TOLD[fact.outcome or "stored"]
        say(f"{told} about {clipped(user_id)}: {clipped(fact.text)} (id {fact.id})")


@app.command("list")
def list_facts(
    ctx: typer.Context,
    user_id: User,
    *,
    as_of: Annotated[
        datetime | None,
        typer.Option(
            parser=when,
            metavar="2026-01-31T09:30",
            help="What was held at this time (UTC unless it says otherwise).",
        ),
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="Superseded and retracted ones too.")] = False,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """List what is held about a user, oldest first."""
    found = run(
        loaded(ctx, db, config).settings,
        lambda memory: memory.facts(user_id, tenant, as_of=as_of, history=history),
    )
    if not found:
        raise nothing(
            f"Nothing is held about {user_id!r}: `pagefile remember` writes a fact.", as_json=as_json
        )
    if as_json:
        print_json(found)
    else:
        _show(found, history=history)


@app.command("revisions")
def list_revisions(
    ctx: typer.Context,
    user_id: User,
    *,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """List every change of what is held about a user, oldest first; `undo` takes one back."""
    found = run(loaded(ctx, db, config).settings, lambda memory: memory.fact_revisions(user_id, tenant))
    if not found:
        raise nothing(f"Nothing ever changed about {user_id!r}.", as_json=as_json)
    if as_json:
        print_json(found)
        return
    made = table("revision", "at", "change", "fact", right=("revision",))
    for revision in found:
        made.add_row(str(revision.number), moment(revision.at), revision.action, _changed(revision))
    print_table(made)


@app.command()
def undo(
    ctx: typer.Context,
    user_id: User,
    revision: Annotated[int | None, typer.Argument(min=1, help="Which change; else the newest.")] = None,
    *,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Take back a change of what is held about a user; that can be undone too."""
    done = run(loaded(ctx, db, config).settings, lambda memory: memory.undo(user_id, revision, tenant=tenant))
    if as_json:
        print_json(done)
    else:
        say(f"Undone as revision {done.number}: {_changed(done)}")


@app.command()
def retract(
    ctx: typer.Context,
    fact_id: Annotated[
        str, typer.Argument(help="A fact, or the beginning of its id; `pagefile facts list USER` lists them.")
    ],
    *,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """No longer hold a fact; it stays on record as retracted."""

    async def work(memory: Memory) -> Fact:
        return await memory.retract(await _named(memory, fact_id, tenant), tenant=tenant)

    fact = run(loaded(ctx, db, config).settings, work)
    if as_json:
        print_json(fact)
    else:
        say(f"Retracted: {clipped(fact.text)}")


@app.command("import")
def import_facts(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A deer-flow memory.json.")],
    *,
    user_id: UserOption,
    tenant: Tenant = None,
    as_json: AsJson = False,
    db: Db = None,
    config: ConfigFile = None,
) -> None:
    """Take over the facts and the profile of a memory.json; a second time changes nothing."""
    counts = run(
        loaded(ctx, db, config).settings,
        lambda memory: memory.import_facts(file, user_id=user_id, tenant=tenant),
        must_exist=False,
    )
    if as_json:
        print_json(counts)
    else:
        say(", ".join(f"{number} {outcome}" for outcome, number in counts.items()) + ".")


async def _named(memory: Memory, name: str, tenant: str | None) -> str:
    """The id of a fact, by itself or by the beginning of it that `facts` lists."""
    scope = Scope() if tenant is None else Scope(tenant)
    facts = memory.engine.store.facts
    try:
        return (await facts.get(scope, checked_id(name, "fact id"))).id
    except NotFoundError:
        found = [fact for fact in await facts.list(scope, retracted=True) if begins(fact.id, name)]
    if not found:
        raise NotFoundError(f"There is no fact {name!r}: `pagefile facts list USER` shows them.")
    if len(found) > 1:
        told = ", ".join(f"{fact.id} ({clipped(fact.text, 40)})" for fact in found[:_CANDIDATES])
        raise SettingsError(f"{name!r} is the beginning of {len(found)} facts: {told}.")
    return found[0].id


def _changed(revision: Revision) -> str:
    return " · ".join(clipped(fact.text) for fact in revision.after)


def _show(found: Sequence[Fact], *, history: bool) -> None:
    made = table(
        "id", "recorded", *(("until",) if history else ()), "category", "sure", "fact", right=("sure",)
    )
    chars = telling_chars([fact.id for fact in found])
    for fact in found:
        ended = min((end for end in (fact.valid_to, fact.retracted) if end is not None), default=None)
        made.add_row(
            visible(fact.id[:chars]),
            moment(fact.recorded),
            *((moment(ended) if ended else "–",) if history else ()),
            clipped(fact.category or "–", 14),
            f"{fact.confidence:.2f}",
            visible(fact.text),
        )
    print_table(made)
