"""Changes to the settings files of other programs: shown first, with a copy of the file as it was, and taken back without a trace."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any, cast

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
        if self.after is None:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.before is not None and self.before != self.after and not self.backup.exists():
            _write(self.backup, self.before)
        _write(self.path, self.after)

    def take_back(self) -> None:
        """Write the file, and remove the copy: if nothing else changed since, the file is again what it was, byte for byte."""
        was = _text(self.backup)
        restored = was if was is not None and _says_the_same(self.path, was, self.after) else self.after
        Change(self.path, self.before, restored).make()
        self.backup.unlink(missing_ok=True)


def json_change(path: Path, edit: Edit) -> Change:
    """The change of a JSON file; an object that is empty afterwards, and was not there before, leaves no file."""
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
    try:
        tomllib.loads(before or "")
    except tomllib.TOMLDecodeError as error:
        raise TransferError(f"{str(path)!r} is not TOML, so it is left as it is: {error}.") from error
    # Up to the next table, or to the end.
    block = re.compile(rf"\n?^\[{re.escape(table)}\]$\n(?:(?!\[).*\n?)*", re.MULTILINE)
    without = block.sub("", before or "")
    if lines is None:
        return Change(path, before, without if without.strip() else None)
    if without != (before or ""):
        same = f"[{table}]\n{lines}\n" in (before or "")
        return Change(path, before, before) if same else _refused(path, table)
    gap = "\n" if without else ""
    end = "" if without.endswith("\n") or not without else "\n"
    return Change(path, before, f"{without}{end}{gap}[{table}]\n{lines}\n")


def with_entry(settings: Mapping[str, Any], place: tuple[str, ...], value: Any, path: Path) -> dict[str, Any]:
    """The settings with a value at a place; another value that is there is never overwritten."""
    name, *inner = place
    held = settings.get(name)
    if not inner:
        if held is not None and held != value:
            _refused(path, ".".join(place))
        return {**settings, name: value}
    below = as_object(held) if held is not None else {}
    if below is None:
        _refused(path, name)
    return {**settings, name: with_entry(below or {}, tuple(inner), value, path)}


def without_entry(settings: Mapping[str, Any], place: tuple[str, ...]) -> dict[str, Any]:
    """The settings without what is at a place, and without objects that are empty then."""
    name, *inner = place
    rest = {key: value for key, value in settings.items() if key != name}
    below = as_object(settings.get(name)) if inner else None
    if below is None:
        return rest if not inner else dict(settings)
    left = without_entry(below, tuple(inner))
    return {key: left if key == name else value for key, value in settings.items()} if left else rest


def _refused(path: Path, what: str) -> Any:
    raise ConflictError(
        f"{str(path)!r} has a {what!r} of its own, which is not overwritten: uninstall it first, or remove it by hand."
    )


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
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
    if other is None:
        return not one.strip()
    if path.suffix == ".json":
        return _filled(_parsed(path, one)) == _filled(_parsed(path, other))
    return one.strip() == other.strip()


def _filled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without objects that hold nothing."""
    return {name: value for name, value in settings.items() if value != {}}


def _write(path: Path, text: str) -> None:
    """All or nothing: the other program may read it at any time. The file keeps its permissions."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    target = path.resolve() if path.is_symlink() else path
    beside = target.with_name(beside.name)
    beside.write_text(text, encoding="utf-8")
    if target.exists():
        beside.chmod(target.stat().st_mode & 0o777)
    beside.replace(target)
