"""`keys`: who may use the service, for which tenant and which user."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pagefile.cli.invocation import Invocation, command, group
from pagefile.cli.measures import moment, span
from pagefile.cli.options import of_user
from pagefile.cli.output import chosen, clipped, visible
from pagefile.engine import Memory
from pagefile.errors import NotFoundError, SettingsError
from pagefile.records import ApiKey, Scope
from pagefile.stores.key_secrets import new_key

_EXPIRES = Option(min=0.001, max=36_500, metavar="DAYS", help="The key expires after this many days.")

app = group(
    "Create, list, rotate and revoke the keys of the HTTP service.\n\nExamples:\npagefile keys add laptop\npagefile keys list"
)


_NOT_NEEDED = "\nOn this machine no key is needed until the setting service.require_keys is true."


@command(app, "add")
def add(
    cli: Invocation,
    name: Annotated[str, Argument(help="A name for it, such as the program that will use it.")],
    *,
    user_id: Annotated[
        str | None, of_user(help="Give access to this user's memory only; by default to the whole tenant.")
    ] = None,
    expires: Annotated[float | None, _EXPIRES] = None,
    file: Annotated[
        Path | None,
        Option(help="Write it to this file, readable only by you, instead of printing it."),
    ] = None,
    if_none: Annotated[
        bool, Option("--if-none", help="Do nothing if there is a usable key: for the start of a container.")
    ] = False,
) -> None:
    """Create a key and print it once: only its hash is stored.

    Examples:
        pagefile keys add laptop
        pagefile keys add ada --tenant clinic --user ada --expires 90
    """
    now = datetime.now(UTC)
    scope = Scope(cli.scope.tenant, user_id)
    key, text = new_key(name, scope, created=now, expires=_end(now, expires))

    async def work(memory: Memory) -> bool:
        store = memory.engine.store.keys
        if if_none and any(known.usable_at(now) for known in await store.list()):
            return False
        if file is not None and file.exists():
            raise SettingsError(f"{str(file)!r} is there already: name a new file. No key was made.")
        await store.add(key)
        return True

    if not cli.run(work, must_exist=False):
        cli.answer({"added": False}, "There is a usable key already: none was made.")
        return
    if file is not None:
        _write(file, text)
        cli.answer(
            {**_key_json(key), "file": str(file)},
            f"The key is in {file}. It opens {_whose(key)}{_until(key)}.",
        )
        return
    cli.answer(
        {**_key_json(key), "key": text},
        f"{text}\n\nIt opens {_whose(key)}{_until(key)}. Keep it now: it is not shown again. Send it as `Authorization: Bearer …`."
        f"{'' if cli.settings.service.require_keys else _NOT_NEEDED}",
    )


def _write(file: Path, text: str) -> None:
    """Write a secret to a new file that nobody else can read, from its first byte on."""
    try:
        with open(
            file, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags | os.O_EXCL, 0o600)
        ) as opened:
            opened.write(f"{text}\n")
    except OSError as error:
        raise SettingsError(
            f"The key cannot be written to {str(file)!r} ({error.strerror}): revoke it, and name a new file."
        ) from error


@command(app, "list", tenant=False)
def list_keys(cli: Invocation) -> None:
    """List the keys, oldest first; never their secrets.

    Examples:
        pagefile keys list
    """
    found = cli.run(lambda memory: memory.engine.store.keys.list())
    if not found:
        # To have none is the usual state, and no failure.
        needed = "" if cli.settings.service.require_keys else " On this machine none is needed."
        cli.answer([], f"There is no key yet: `pagefile keys add NAME` makes one.{needed}")
        return
    cli.list(
        found,
        {
            "id": lambda key: key.id,
            "~name": lambda key: visible(key.name),
            "~opens": _whose,
            "~state": _state,
            "last used": lambda key: key.last_used or "never",
        },
        missing="",
        value=[_key_json(key) for key in found],
    )


def _overlap(text: str) -> timedelta:
    try:
        return span(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(
            f"{error.message}; 0s ends the old key at once, as `pagefile keys revoke ID` does without a new one"
        ) from error


@command(app, "rotate", tenant=False)
def rotate(
    cli: Invocation,
    name: Annotated[str, Argument(metavar="NAME", help="Its name or its id, as `keys list` shows them.")],
    *,
    overlap: Annotated[
        timedelta,
        Option(
            parser=_overlap, metavar="1d|12h|…", help="How long the old one still works; 0s ends it at once."
        ),
    ] = "1d",  # pyright: ignore[reportArgumentType] - Typer parses the default like a given value
    expires: Annotated[float | None, _EXPIRES] = None,
) -> None:
    """Replace a key with a new one and print it once. The old one works until the overlap is over.

    Examples:
        pagefile keys rotate laptop --overlap 1d
    """
    now = datetime.now(UTC)

    async def work(memory: Memory) -> tuple[ApiKey, ApiKey, str]:
        store = memory.engine.store.keys
        key = _find_key(await store.list(), name, now)
        if expires is None and key.expires is not None and key.usable_at(now):
            raise SettingsError(
                f"The key {key.id!r} ends {moment(key.expires)}: say with --expires DAYS when the new one should expire."
            )
        new, text = new_key(key.name, key.scope, created=now, expires=_end(now, expires))
        return await store.rotate(key.id, new, now + overlap), new, text

    old, new, text = cli.run(work)
    cli.answer(
        {**_key_json(new), "key": text, "replaces": _key_json(old)},
        f"{text}\n\nIt opens {_whose(new)}{_until(new)}. Keep it now: it is not shown again."
        f"\nThe old one, {old.id}, works{_until(old)}; `pagefile keys revoke {old.id}` ends it at once.",
    )


@command(app, "revoke", tenant=False)
def revoke(
    cli: Invocation,
    name: Annotated[str, Argument(metavar="NAME", help="Its name or its id, as `keys list` shows them.")],
) -> None:
    """Revoke a key, effective at once. It stays on record.

    Examples:
        pagefile keys revoke laptop
        pagefile keys revoke K7QZ2MXA
    """
    now = datetime.now(UTC)

    async def work(memory: Memory) -> ApiKey:
        store = memory.engine.store.keys
        found = _keys_called(await store.list(), name, now)
        if len(found) > 1:
            raise SettingsError(f"Several keys are called {name!r}: give the id of one ({_ids(found)}).")
        return await store.revoke(found[0].id, now)

    key = cli.run(work)
    cli.answer(_key_json(key), f"Revoked {key.id} ({clipped(key.name)}): it is no longer accepted.")


def _find_key(known: Sequence[ApiKey], name: str, now: datetime) -> ApiKey:
    """The key with an id, or the newest usable one with a name."""
    found = _keys_called(known, name, now)
    if len({key.scope for key in found}) > 1:
        raise SettingsError(
            f"Several keys are called {name!r} and give different access: give the id of one ({_ids(found)})."
        )
    return found[-1]


def _keys_called(known: Sequence[ApiKey], name: str, now: datetime) -> list[ApiKey]:
    """The key with an id, or the usable ones with a name, oldest first."""
    of_id = [key for key in known if key.id == name]
    found = of_id or [key for key in known if key.name == name and key.usable_at(now)]
    if not found:
        raise NotFoundError(
            f"There is no valid key with the name or id {name!r}: `pagefile keys list` shows the existing ones."
        )
    return found


def _ids(keys: Sequence[ApiKey]) -> str:
    return ", ".join(key.id for key in keys)


def _end(now: datetime, days: float | None) -> datetime | None:
    return None if days is None else now + timedelta(days=days)


def _key_json(key: ApiKey) -> dict[str, object]:
    """A key for scripts, without its hash."""
    scope = {"tenant": key.scope.tenant, "user_id": key.scope.user}
    return {**chosen(key, "id name"), **scope, **chosen(key, "created expires revoked last_used")}


def _whose(key: ApiKey) -> str:
    tenant = f"tenant {visible(key.scope.tenant)}"
    return tenant if key.scope.user is None else f"user {visible(key.scope.user)} of {tenant}"


def _until(key: ApiKey) -> str:
    return "" if key.expires is None else f" until {moment(key.expires)}"


def _state(key: ApiKey) -> str:
    if key.revoked is not None:
        return f"revoked {moment(key.revoked)}"
    if key.expires is not None and not key.usable_at(datetime.now(UTC)):
        return f"expired {moment(key.expires)}"
    return f"open{_until(key)}"
