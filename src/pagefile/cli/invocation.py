"""What nearly every command needs: the shared options, the memory that they name, and one way to answer."""

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, unquote

import anyio
import typer
from typer.core import TyperGroup

from pagefile.cli.commands import Command, Group
from pagefile.cli.measures import LEAST_CHARS
from pagefile.cli.options import AsJson, ConfigFile, Db, Place, Tenant
from pagefile.cli.output import Cell, say, show_records, visible, warn
from pagefile.engine import Conversation, Memory
from pagefile.engine.ownership import looked_up
from pagefile.errors import NotFoundError
from pagefile.ports.audit import After
from pagefile.records import DEFAULT_TENANT, Listing, Scope
from pagefile.settings import Settings
from pagefile.settings.sources import DEFAULT, Loaded, load

T = TypeVar("T")
P = ParamSpec("P")

#: How long a short-lived command waits for the embedding of a question: a slow answer is better than an incomplete one.
TIMEOUT_S = 30.0
#: Conversations read at a time.
_SLICE = 200
#: How many other tenants a hint names, and conversations of each that are looked at.
_TENANTS_NAMED = 3
_TENANT_SLICE = 20
#: Behind every name.
_LAST_NAME = "\U0010ffff"


# -- databases -----------------------------------------------------------------------------------------------------------


def database_file(url: str) -> Path | None:
    """The file a URL names; None if it names none."""
    prefix, path = url[:10], url[10:]
    return Path(unquote(path)) if prefix == "sqlite:///" and path not in {"", ":memory:"} else None


def existing_file(url: str, *, otherwise: str = "") -> Path | None:
    """The file a URL names; None if it names none. A missing file is an error and not created: it may be a typo."""
    file = database_file(url)
    if file is not None and not file.exists():
        raise NotFoundError(f"There is no database at {str(file)!r}: name it with --db{otherwise}.")
    return file


# -- commands ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Invocation:
    place: Place
    tenant: str | None = None
    as_json: bool = False

    @property
    def scope(self) -> Scope:
        return Scope(DEFAULT_TENANT if self.tenant is None else self.tenant)

    @cached_property
    def settings(self) -> Settings:
        return self.loaded().settings

    def loaded(self, overrides: Mapping[str, object] | None = None, *, patient: bool = True) -> Loaded:
        """The effective settings and their origins; `patient` commands wait for a slow embedder, unless a timeout is set."""
        db = self.place.db
        url = db if db is None or "://" in db else f"sqlite:///{quote(db)}"
        found = load(file=self.place.config, overrides={"url": url, **(overrides or {})})
        if not patient or found.origins["embedder.query_timeout_s"] != DEFAULT:
            return found
        embedder = replace(found.settings.embedder, query_timeout_s=TIMEOUT_S)
        return replace(found, settings=replace(found.settings, embedder=embedder))

    def run(
        self,
        work: Callable[[Memory], Awaitable[T]],
        *,
        settings: Settings | None = None,
        must_exist: bool = True,
    ) -> T:
        """Open the memory, do the work, close it. Reading never creates a database."""
        settings = settings or self.settings
        if must_exist:
            existing_file(settings.url, otherwise=", or record something first")

        async def worked() -> T:
            async with Memory.open(settings=settings) as memory:
                return await work(memory)

        return anyio.run(worked)

    async def chat(
        self, memory: Memory, conversation: str, user_id: str | None, *, must_exist: bool = True
    ) -> Conversation:
        """A conversation as its owner sees it, unless another user is named; one that must exist may be named by its beginning."""
        named = memory.conversation(conversation, user_id=user_id, tenant=self.tenant).scope
        owner = (await looked_up(memory, named)).user
        chat = memory.conversation(conversation, user_id=owner, tenant=self.tenant)
        if not must_exist or await chat.turns(limit=1, newest=True):
            return chat
        begun = await self._beginning(memory, conversation.rstrip("…"), user_id)
        if len(begun) > 1:
            both = " and ".join(repr(scope.conversation) for scope in begun)
            raise NotFoundError(f"{conversation!r} is the beginning of more than one conversation: {both}.")
        for scope in begun:
            chat = memory.conversation(
                scope.conversation or "", user_id=user_id or scope.user, tenant=self.tenant
            )
            if await chat.turns(limit=1, newest=True):
                return chat
        raise NotFoundError(f"There is no conversation {conversation!r} here: `pagefile show` lists them.")

    async def _beginning(self, memory: Memory, name: str, user_id: str | None) -> list[Scope]:
        """At most two conversations whose ids have this prefix."""
        found: list[Scope] = []
        after: str | None = None
        while len(name) >= LEAST_CHARS and len(found) < 2:
            heads = await memory.conversations(user_id=user_id, tenant=self.tenant, limit=_SLICE, after=after)
            found += [head.scope for head in heads if (head.scope.conversation or "").startswith(name)]
            after = heads.next
            if after is None:
                break
        return found[:2]

    async def nothing_here(self, memory: Memory) -> str:
        """That nothing is recorded here yet, and which tenants have something."""
        here, others = self.scope.tenant, await _other_tenants(memory, self.scope.tenant)
        if not others and here == DEFAULT_TENANT:
            return "Nothing is recorded here yet: `pagefile record` writes a turn."
        said = f"Nothing is recorded in tenant {visible(here)!r} yet."
        if others:
            said += f" There is something in {' and '.join(map(repr, map(visible, others)))}: add --tenant {visible(others[0])}."
        return said

    def answer(
        self, value: object, shown: str | Callable[[], object], *, found: object = True, missing: str = ""
    ) -> None:
        """Print the value for scripts, or show it to people; if nothing was `found`, fail with `missing`."""
        if self.as_json:
            # Imported only now: the schemas take longer to load than most commands take to run.
            import_module("pagefile.cli.json_output").print_json(value)
        if not found:
            raise NotFoundError(missing)
        if not self.as_json:
            say(shown) if isinstance(shown, str) else shown()

    def list(
        self,
        found: Sequence[T],
        columns: Mapping[str, Callable[[T], Cell]],
        *,
        missing: str,
        value: object = None,
        apart: bool = False,
        hint: str = "",
    ) -> None:
        """Answer with records, or fail with `missing`; scripts get the `value` if given, people the `hint` below the table."""

        def shown() -> None:
            show_records(found, columns, apart=apart)
            if isinstance(found, Listing) and found.next:
                say(f"\nThere are more: --limit {len(found) * 10} shows them.")
            if hint:
                say(f"\n{hint}")

        self.answer(found if value is None else value, shown, found=found, missing=missing)


async def _other_tenants(memory: Memory, here: str) -> list[str]:
    """Some other tenants that have conversations, by name."""
    audit, others, after = memory.engine.store.audit, list[str](), After(limit=_TENANT_SLICE)
    while audit is not None and len(others) < _TENANTS_NAMED and (found := await audit.conversations(after)):
        first = found[0].scope.tenant
        if first != here and any(one.there for one in found if one.scope.tenant == first):
            others.append(first)
        after = After(first, _LAST_NAME, limit=_TENANT_SLICE)
    return others


def group(about: str, kind: type[TyperGroup] = Group) -> typer.Typer:
    return typer.Typer(help=about, cls=kind, no_args_is_help=True, add_completion=False)


def command(
    within: typer.Typer | None = None, name: str | None = None, *, tenant: bool = True, json: bool = True
) -> Callable[[Callable[Concatenate[Invocation, P], T]], Callable[..., T]]:
    """Give a command the shared options: Typer sees them after its own, the command gets an `Invocation` in their place."""
    shared: dict[str, tuple[Any, object]] = {"tenant": (Tenant, None)} if tenant else {}
    shared |= {"as_json": (AsJson, False)} if json else {}
    shared |= {"db": (Db, None), "config": (ConfigFile, None)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter(option, keyword, annotation=kind, default=default)
        for option, (kind, default) in shared.items()
    ]

    def decorated(function: Callable[Concatenate[Invocation, P], T]) -> Callable[..., T]:
        @wraps(function)
        def invoked(*, ctx: typer.Context, db: str | None, config: Path | None, **given: Any) -> T:
            common = {option: given.pop(option) for option in shared if option in given}
            return function(Invocation(Place(db, config).after(ctx.find_object(Place)), **common), **given)  # pyright: ignore[reportCallIssue] - as Typer parsed them from its own signature

        _, *own = inspect.signature(function).parameters.values()
        context = inspect.Parameter("ctx", keyword, annotation=typer.Context)
        parameters = [context, *(one.replace(kind=keyword) for one in own), *added]
        invoked.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue] - Typer reads it
        invoked.__annotations__ = {one.name: one.annotation for one in parameters}
        return invoked if within is None else within.command(name, cls=Command)(invoked)

    return decorated


def check_search(query: str, conversation: str | None, user_id: str | None, options: str) -> None:
    if not query.strip():
        raise typer.BadParameter("the question is empty: say what to look for")
    if conversation is None and user_id is None:
        raise typer.BadParameter(f"say where to search: {options}")


def confirm(action: str, *, otherwise: str) -> None:
    """Continue only if the user confirms; without a terminal to ask on, refuse."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"cannot ask whether to {action}, since this is not a terminal: pass --yes")
    if not typer.confirm(f"{visible(action[:1].upper() + action[1:])}?", err=True):
        warn(otherwise)
        raise typer.Exit(1)


def database_url(cli: Invocation) -> str:
    """The database that clients are given: the one that is set, else one in the user's home, wherever they are started."""
    found = cli.loaded(patient=False)
    if found.origins["url"] == DEFAULT:
        return str(_home_folder() / "pagefile.db")
    url = found.settings.url
    prefix = "sqlite:///"
    return str(Path(url.removeprefix(prefix)).resolve()) if url.startswith(prefix) else url


def _home_folder() -> Path:
    return Path.home() / ".pagefile"


def make_home_folder(database: str) -> None:
    """Make the folder of that database, where it is in the user's home: a client will start a server that opens it."""
    if Path(database).parent == _home_folder():
        _home_folder().mkdir(exist_ok=True)


def remove_home_folder() -> None:
    """Remove the folder if it holds nothing: no memory was ever opened."""
    if _home_folder().is_dir() and not any(_home_folder().iterdir()):
        _home_folder().rmdir()
