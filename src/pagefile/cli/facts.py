"""`remember` and `facts`: lasting statements about a user, their history, and imports."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, BadParameter, Option

from pagefile.cli.commands import Group
from pagefile.cli.invocation import Invocation, command, group
from pagefile.cli.measures import LEAST_CHARS, telling_chars
from pagefile.cli.options import User, at_time, of_user
from pagefile.cli.output import clipped, visible
from pagefile.engine import Memory
from pagefile.errors import NotFoundError, SettingsError
from pagefile.records import Fact, Revision, Scope, checked_id

_TOLD = {
    "stored": "Remembered",
    "duplicate": "Already known, with more confidence now",
    "superseded": "Remembered instead of what was known before",
}


class _ListsByDefault(Group):
    """`pagefile facts USER` is `pagefile facts list USER`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride] - typer hands its own context on
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = group(
    "List what is known about a user, and how it changed; undo, retract, correct, import.\n\nExamples:\npagefile facts ada\npagefile facts retract 3f2a91bc",
    _ListsByDefault,
)

NamedUser = Annotated[str | None, of_user(help="The user.")]


@command()
def remember(
    cli: Invocation,
    text: Annotated[str, Argument(help="The statement.")],
    *,
    user_id: Annotated[str, of_user(help="The user it is about.")],
    category: Annotated[
        str | None, Option(help="Such as preference or correction; corrections have their own budget.")
    ] = None,
    attribute: Annotated[
        str | None, Option(help="Such as residence; replaces the previous value of that attribute.")
    ] = None,
    confidence: Annotated[float, Option(min=0, max=1, help="How certain it is, from 0 to 1.")] = 1.0,
    project: Annotated[str | None, Option(help="Show it only in conversations of this project.")] = None,
    agent: Annotated[str | None, Option(help="Show it only in conversations of this agent.")] = None,
) -> None:
    """Store a lasting statement about a user.

    Examples:
        pagefile remember "Allergic to penicillin." --user ada
        pagefile remember "Lives in Oslo." --user ada --attribute residence
    """
    about: dict[str, Any] = {"category": category, "attribute": attribute, "confidence": confidence}
    about |= {"project": project, "agent": agent}
    fact = cli.run(
        lambda memory: memory.remember(text, user_id=user_id, tenant=cli.tenant, **about), must_exist=False
    )
    told = _TOLD[fact.outcome or "stored"]
    cli.answer(fact, f"{told} about {clipped(user_id)}: {clipped(fact.text)} (id {fact.id})")


@command(app, "list")
def list_facts(
    cli: Invocation,
    user: User = None,
    *,
    user_id: NamedUser = None,
    as_of: Annotated[
        datetime | None, at_time(help="What was known at this time (UTC unless it has an offset).")
    ] = None,
    history: Annotated[bool, Option("--history", help="Include superseded and retracted facts.")] = False,
) -> None:
    """List what is known about a user, oldest first.

    Examples:
        pagefile facts ada
        pagefile facts --user ada --as-of 2026-01-31 --history
    """
    user_id = _named(user, user_id)
    found = cli.run(lambda memory: memory.facts(user_id, cli.tenant, as_of=as_of, history=history))
    chars = telling_chars([fact.id for fact in found])
    cli.list(
        found,
        {
            "id": lambda fact: visible(fact.id[:chars]),
            "recorded": lambda fact: fact.recorded,
            **({"until": _ended} if history else {}),
            "category": lambda fact: clipped(fact.category or "–", 14),
            ">sure": lambda fact: f"{fact.confidence:.2f}",
            "fact": lambda fact: visible(fact.text),
        },
        missing=f"Nothing is known about {user_id!r}: `pagefile remember` writes a fact, and with the setting "
        'facts.extract = "rules" they are taken from what users say.',
    )


def _named(user: str | None, user_id: str | None) -> str:
    """The user, named before or behind the options."""
    if (user is None) == (user_id is None):
        raise BadParameter("name one user: `pagefile facts USER`, or --user USER")
    return user or user_id or ""


def _ended(fact: Fact) -> datetime | str:
    return min(filter(None, (fact.valid_to, fact.retracted)), default="–")


@command(app, "revisions")
def list_revisions(cli: Invocation, user: User = None, *, user_id: NamedUser = None) -> None:
    """List every change to what is known about a user, oldest first.

    Examples:
        pagefile facts revisions ada
    """
    user_id = _named(user, user_id)
    cli.list(
        cli.run(lambda memory: memory.fact_revisions(user_id, cli.tenant)),
        {
            ">revision": lambda one: str(one.number),
            "at": lambda one: one.at,
            "change": lambda one: one.action,
            "fact": _changed,
        },
        missing=f"Nothing ever changed about {user_id!r}.",
    )


@command(app)
def undo(
    cli: Invocation,
    user: Annotated[str, Argument(help="The user.")],
    revision: Annotated[
        int | None, Argument(min=1, help="The change to undo; by default the newest.")
    ] = None,
) -> None:
    """Undo a change to what is known about a user; the undo can be undone too.

    Examples:
        pagefile facts undo ada
        pagefile facts undo ada 7
    """
    done = cli.run(lambda memory: memory.undo(user, revision, tenant=cli.tenant))
    cli.answer(done, f"Undone as revision {done.number}: {_changed(done)}")


@command(app)
def retract(
    cli: Invocation,
    fact_id: Annotated[
        str, Argument(help="A fact, or the beginning of its id; `pagefile facts list USER` lists them.")
    ],
) -> None:
    """Retract a fact; it stays on record as retracted.

    Examples:
        pagefile facts retract 3f2a91bc
    """

    async def work(memory: Memory) -> Fact:
        return await memory.retract(await _full_id(memory, fact_id, cli.scope), tenant=cli.tenant)

    fact = cli.run(work)
    cli.answer(fact, f"Retracted: {clipped(fact.text)}")


@command(app)
def correct(
    cli: Invocation,
    fact_id: Annotated[
        str, Argument(help="A fact, or the beginning of its id; `pagefile facts list USER` lists them.")
    ],
    text: Annotated[str, Argument(help="The correct statement.")],
) -> None:
    """Replace what a fact says; the wrong statement stays on record as retracted.

    Examples:
        pagefile facts correct 3f2a91bc "Lives in Bergen."
    """

    async def work(memory: Memory) -> Fact:
        return await memory.correct(await _full_id(memory, fact_id, cli.scope), text, tenant=cli.tenant)

    fact = cli.run(work)
    cli.answer(fact, f"Corrected: {clipped(fact.text)} (id {fact.id})")


@command(app, "import")
def import_facts(
    cli: Invocation,
    file: Annotated[Path, Argument(metavar="FILE", help="A deer-flow memory.json.")],
    *,
    user_id: Annotated[str, of_user(help="The user they are about.")],
) -> None:
    """Import the facts and the profile from a memory.json; running it twice changes nothing.

    Examples:
        pagefile facts import memory.json --user ada
    """
    counts = cli.run(
        lambda memory: memory.import_facts(file, user_id=user_id, tenant=cli.tenant), must_exist=False
    )
    cli.answer(counts, ", ".join(f"{number} {outcome}" for outcome, number in counts.items()) + ".")


async def _full_id(memory: Memory, name: str, scope: Scope) -> str:
    """The full id of a fact, from itself or a prefix as listed by `facts`."""
    facts = memory.engine.store.facts
    try:
        return (await facts.get(scope, checked_id(name, "fact id"))).id
    except NotFoundError:
        every = await facts.list(scope, retracted=True) if len(name) >= LEAST_CHARS else []
        found = [fact for fact in every if fact.id.startswith(name)]
    if not found:
        raise NotFoundError(f"There is no fact {name!r}: `pagefile facts list USER` shows them.")
    if len(found) > 1:
        told = ", ".join(f"{fact.id} ({clipped(fact.text, 40)})" for fact in found[:5])
        raise SettingsError(f"{name!r} is the beginning of {len(found)} facts: {told}.")
    return found[0].id


def _changed(revision: Revision) -> str:
    return " · ".join(clipped(fact.text) for fact in revision.after)
