"""Changes to the settings files of other programs: shown first, with a copy of the file as it was, and taken back without a trace."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any, NoReturn, cast

from pagefile.errors import ConflictError, TransferError
from pagefile.shapes.skeleton import as_object

#: What the copy of a file is called, as it was before Pagefile changed it.
BACKUP = ".before-pagefile"

Edit = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Change:
    """A file, and its text before and after; None where there is none."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    @property
    def backup(self) -> Path:
        return self.path.with_name(self.path.name + BACKUP)

    def diff(self) -> str:
        """For people: what will be different."""
        old, new = ((text or "").splitlines() for text in (self.before, self.after))
        return "\n".join(unified_diff(old, new, str(self.path), str(self.path), lineterm=""))

    def make(self) -> None:
        """Write the file; a copy of what was there before the first change stays beside it."""
        try:
            self._make()
        except OSError as error:
            raise TransferError(f"Cannot change {str(self.path)!r}: {error}.") from error

    def _make(self) -> None:
        if self.before is not None and not _target(self.path).stat().st_mode & stat.S_IWUSR:
            raise PermissionError("it is read-only")
        if self.after is None:
            _target(self.path).unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None and self.before != self.after and not self.backup.exists():
            _write(self.backup, self.before)
        _write(self.path, self.after)

    def take_back(self, root: Path) -> None:
        """Write the file, and remove the copy: if nothing else changed since, the file is again what it was, byte for byte.

        Where no file is left, folders below the root (a home, a project) that hold nothing go with it.
        """
        was = _text(self.backup)
        restored = was if was is not None and _says_the_same(self.path, was, self.after) else self.after
        Change(self.path, self.before, restored).make()
        self.backup.unlink(missing_ok=True)
        if restored is None:
            _remove_empty_folders(self.path.parent, root)


def json_change(path: Path, edit: Edit) -> Change:
    """The change of a JSON file; an object that is empty afterwards leaves no file."""
    before = _text(path)
    found = _parsed(path, before)
    after = edit(json.loads(json.dumps(found)))
    if after == found:
        return Change(path, before, before)
    return Change(path, before, _dumped(after, before) if after else None)


def text_change(path: Path, text: str | None) -> Change:
    """The change of a file that is ours alone: written, or with None removed."""
    return Change(path, _text(path), text)


def toml_change(path: Path, table: str, lines: str | None) -> Change:
    """The change of a TOML file that adds a table, or with None removes it; everything else stays as it is written."""
    before = _text(path)
    held = _at(_toml(path, before), table.split("."))
    own = "" if before is None else before.replace("\r\n", "\n")
    if lines is None:
        # Up to a comment, the next table or the end; tables inside it as well.
        block = re.compile(rf"\n?^\[{re.escape(table)}[.\]].*$\n?(?:(?![\[#]).*\n?)*", re.MULTILINE)
        changed = block.sub("", own) if held is not None else own
        left = None
    elif held is None:
        gap, end = "\n" if own else "", "" if own.endswith("\n") or not own else "\n"
        changed = f"{own}{end}{gap}[{table}]\n{lines}\n"
        left = tomllib.loads(lines)
    elif held == tomllib.loads(lines):
        return Change(path, before, before)
    else:
        refused(path, table)
    if _at(_toml(path, changed), table.split(".")) != left:
        raise TransferError(f"{str(path)!r} has {table!r} in a way of its own: change it by hand.")
    after = changed.replace("\n", "\r\n") if "\r\n" in (before or "") else changed
    return Change(path, before, after if after.strip() else None)


def _toml(path: Path, text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TransferError(f"{str(path)!r} is not TOML, so it is left as it is: {error}.") from error


def _at(settings: object, place: Sequence[str]) -> object:
    for name in place:
        settings = (as_object(settings) or {}).get(name)
    return settings


def with_entry(settings: Mapping[str, Any], place: tuple[str, ...], value: Any, path: Path) -> dict[str, Any]:
    """The settings with a value at a place; another value that is there is never overwritten."""
    name, *inner = place
    held = settings.get(name)
    if not inner:
        if held is not None and held != value:
            refused(path, ".".join(place))
        return {**settings, name: value}
    below = as_object(held) if held is not None else {}
    if below is None:
        refused(path, name)
    return {**settings, name: with_entry(below, tuple(inner), value, path)}


def without_entry(settings: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    """The settings without what is at a place, and without objects that are empty then."""
    name, *inner = place
    rest = {key: value for key, value in settings.items() if key != name}
    below = as_object(settings.get(name)) if inner else None
    if below is None:
        return rest if not inner else dict(settings)
    left = without_entry(below, tuple(inner))
    if left == below:
        # An empty object of the user's own stays.
        return dict(settings)
    return {key: left if key == name else value for key, value in settings.items()} if left else rest


def refused(path: Path, what: str) -> NoReturn:
    raise ConflictError(
        f"{str(path)!r} has a {what!r} of its own, which is not overwritten: uninstall it first, or remove it by hand."
    )


def _text(path: Path) -> str | None:
    try:
        # As it is: the ends of lines are given back as well.
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise TransferError(f"Cannot read {str(path)!r}: {error}.") from error


def _parsed(path: Path, text: str | None) -> dict[str, Any]:
    if not (text or "").strip():
        return {}
    try:
        found: object = json.loads(cast("str", text))
    except (ValueError, RecursionError) as error:
        raise TransferError(
            f"{str(path)!r} is not plain JSON (comments count as well), so it is left as it is: {error}. Add the entry by hand."
        ) from error
    if (fields := as_object(found)) is None:
        raise TransferError(f"{str(path)!r} holds no JSON object, so it is left as it is.")
    return dict(fields)


def _dumped(value: Mapping[str, Any], like: str | None) -> str:
    """JSON with the indentation of the text before."""
    found = re.search(r"^([ \t]+)\S", like or "", re.MULTILINE)
    return json.dumps(value, ensure_ascii=False, indent=found[1] if found else 2) + "\n"


def _says_the_same(path: Path, one: str, other: str | None) -> bool:
    if path.suffix == ".json":
        return _filled(_parsed(path, one)) == _filled(_parsed(path, other))
    return one.split() == (other or "").split()


def _filled(value: Any) -> Any:
    """The value without what holds nothing: objects, lists and nulls."""
    if (fields := as_object(value)) is not None:
        held = {name: _filled(one) for name, one in fields.items()}
        return {name: one for name, one in held.items() if one not in ({}, [], None)}
    return value


def _target(path: Path) -> Path:
    """The file itself, where the path is a link to it."""
    return path.resolve() if path.is_symlink() else path


def _write(path: Path, text: str) -> None:
    """All or nothing: the other program may read it at any time. The file keeps its permissions."""
    target = _target(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    beside.write_bytes(text.encode("utf-8"))
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)


def _remove_empty_folders(folder: Path, root: Path) -> None:
    while root in folder.parents and not (folder.is_dir() and any(folder.iterdir())):
        if folder.is_dir():
            folder.rmdir()
        folder = folder.parent
