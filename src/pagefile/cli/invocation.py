"""Options that nearly every command has: the database, the tenant, and the output format."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import typer

from pagefile.cli.opening import loaded, run
from pagefile.cli.options import AsJson, ConfigFile, Db, Place, Tenant
from pagefile.cli.output import print_json, say
from pagefile.engine import Memory
from pagefile.errors import NotFoundError
from pagefile.settings import Settings
from pagefile.settings.sources import Loaded

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Invocation:
    """One call of a command, with the shared options."""

    place: Place
    tenant: str | None = None
    as_json: bool = False

    @cached_property
    def settings(self) -> Settings:
        """The effective settings, for a short-lived command."""
        return self.loaded().settings

    def loaded(self, overrides: Mapping[str, object] | None = None, *, patient: bool = True) -> Loaded:
        """The effective settings and where they came from."""
        return loaded(self.place, overrides, patient=patient)

    def run(
        self,
        work: Callable[[Memory], Awaitable[T]],
        *,
        settings: Settings | None = None,
        must_exist: bool = True,
    ) -> T:
        """Open the memory, do the work, close it."""
        return run(settings or self.settings, work, must_exist=must_exist)

    def answer(
        self, value: object, shown: str | Callable[[], object], *, found: object = True, missing: str = ""
    ) -> None:
        """Print the value for scripts, or show it to people; if nothing was `found`, fail with `missing`."""
        if self.as_json:
            print_json(value)
        if not found:
            raise NotFoundError(missing)
        if not self.as_json:
            say(shown) if isinstance(shown, str) else shown()


def command(
    *, tenant: bool = True, json: bool = True
) -> Callable[[Callable[Concatenate[Invocation, P], T]], Callable[..., T]]:
    """Give a command the shared options: Typer sees them after its own, the command gets an `Invocation` in their place."""
    shared: dict[str, tuple[Any, object]] = {"tenant": (Tenant, None)} if tenant else {}
    shared |= {"as_json": (AsJson, False)} if json else {}
    shared |= {"db": (Db, None), "config": (ConfigFile, None)}

    def decorated(function: Callable[Concatenate[Invocation, P], T]) -> Callable[..., T]:
        @wraps(function)
        def invoked(*, ctx: typer.Context, db: str | None, config: Path | None, **given: Any) -> T:
            common = {name: given.pop(name) for name in shared if name in given}
            return function(Invocation(Place(db, config).after(ctx.find_object(Place)), **common), **given)  # pyright: ignore[reportCallIssue] - as Typer parsed them from its own signature

        _, *own = inspect.signature(function).parameters.values()
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("ctx", keyword, annotation=typer.Context),
            *(one.replace(kind=keyword) for one in own),
            *(
                inspect.Parameter(name, keyword, annotation=kind, default=default)
                for name, (kind, default) in shared.items()
            ),
        ]
        invoked.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue] - Typer reads it
        invoked.__annotations__ = {one.name: one.annotation for one in parameters}
        return invoked

    return decorated
