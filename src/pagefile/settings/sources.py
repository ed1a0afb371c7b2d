"""Where settings come from: the only reader of files and of the environment.

Defaults < file < environment < what the caller passes (the flags of a command). Every source is split into
single settings with their origin, so that an error can name the file or the variable, and all problems are
reported in one error.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, cast

from pagefile.errors import SettingsError
from pagefile.settings.files import FILE_NAMES, files_here, log
from pagefile.settings.model import (
    RENAMED,
    SECTIONS,
    Settings,
    close_to,
    known_settings,
    parsed_as,
    problem,
    replaced,
    unknown_name,
)

PREFIX = "PAGEFILE_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"
#: A folder with benchmark data; not a setting, since only the benchmarks use it.
BENCH_DATA_VARIABLE = f"{PREFIX}BENCH_DATA"
DEFAULT = "default"

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The effective settings, and where each came from."""

    settings: Settings
    #: The file that was read; None if there is none.
    file: Path | None
    #: By dotted name (`facts.enabled`): "default", a file, "$PAGEFILE_…", "command line" or "overrides".
    origins: Mapping[str, str]

    @property
    def said(self) -> str:
        """Which file was read, in words."""
        if self.file is not None:
            return f"Settings are read from {self.file}."
        return f"There is no {FILE_NAMES[0]} in {Path.cwd()}: defaults and the environment apply."

    def values(self) -> dict[str, object]:
        return {name: attrgetter(name)(self.settings) for name in known_settings()}


class _Given(NamedTuple):
    key: str
    value: object
    origin: str


def load_settings(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] = _NOTHING,
) -> Settings:
    """The effective settings: defaults, a settings file, the environment, and what is given here, for `Memory.open(settings=…)`.

    The file is the one given, `$PAGEFILE_CONFIG`, or a `pagefile.toml`, `.yaml` or `.yml` in the working directory; which one it was,
    or that there is none, is logged (`pagefile.settings`, INFO). `SettingsError` lists everything that is wrong, and where.
    """
    found = load(file=file, environ=environ, overrides=overrides, caller="overrides")
    log.info("%s", found.said)
    return found.settings


def load(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] = _NOTHING,
    caller: str = "command line",
) -> Loaded:
    """The effective settings and where each came from.

    Without a `file`, it is `$PAGEFILE_CONFIG`, else a `pagefile.toml`, `.yaml` or `.yml` in the working directory. The
    `overrides` are settings for this run only, nested or by dotted name; None means not given. Their origin is the `caller`.
    """
    environ = os.environ if environ is None else environ
    path = file or _file_in_force(environ)
    given = [
        *(_from_file(path) if path else ()),
        *_from_environment(environ),
        *(one for one in _from_table(overrides, caller) if one.value is not None),
    ]
    values: dict[str, object] = {}
    origins = dict.fromkeys(known_settings(), DEFAULT)
    problems = [complaint for one in given if (complaint := _apply(one, values, origins))]
    if problems:
        raise SettingsError("\n".join(problems))
    return Loaded(replaced(Settings(), values), path, origins)


def bench_data(environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder with benchmark data named in the environment, None if there is none."""
    named = (os.environ if environ is None else environ).get(BENCH_DATA_VARIABLE)
    return Path(named) if named else None


def child_environment() -> dict[str, str]:
    """The environment of this process, for one that it starts."""
    return dict(os.environ)


def handed_down(name: str, value: str | None) -> None:
    """Set or remove a variable for child processes: some libraries can only be configured this way."""
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def shown(value: object, name: str = "") -> object:
    """A setting as it may be printed: keys, and passwords inside a URL, are masked."""
    if not isinstance(value, str):
        return value
    if name.endswith(("api_key", "metrics_key")):
        return "***"
    # In this order: an option may contain an @ too. A password that nobody encoded may contain any character: it ends at the last @.
    without_options = re.sub(r"([?&]\w*password=)[^&]*", r"\1***", value)
    return re.sub(r"(?<=://)([^/@:]*):.*@", r"\1:***@", without_options, flags=re.DOTALL)


# -- one setting -------------------------------------------------------------------------------------------------------


def _apply(given: _Given, values: dict[str, object], origins: dict[str, str]) -> str | None:
    """Apply a setting, or return what is wrong with it."""
    known = known_settings()
    if given.key not in known:
        return f"{given.origin}: {_unknown(given, known)}"
    value = parsed_as(known[given.key], given.value) if given.origin.startswith("$") else given.value
    what = problem(known[given.key], value)
    if what:
        named = "" if given.origin.startswith("$") else f"{given.key} "
        return f"{given.origin}: {named}{what}."
    values[given.key] = value
    origins[given.key] = given.origin
    return None


def _unknown(given: _Given, known: Mapping[str, object]) -> str:
    if given.key in RENAMED or given.key == "memory":
        now = RENAMED.get(given.key, "facts")
        if given.origin.startswith("$"):
            return f"this setting is called ${_variable(now)} now: rename the variable."
        return f"{given.key!r} is called {now!r} now: rename it."
    if given.key in SECTIONS:
        return f"{given.key} is a section: it must hold names and values, not {type(given.value).__name__}."
    if given.origin.startswith("$"):
        close = close_to(given.key, known)
        hint = f"; did you mean ${_variable(close)}?" if close else "."
        return f"there is no setting of this name{hint}"
    if isinstance(given.value, Mapping) and (section := close_to(given.key, SECTIONS)) is not None:
        return f"there is no section {given.key!r}; did you mean {section!r}?"
    told = unknown_name(given.key, known)
    return f"{told[0].lower()}{told[1:]}"


def _variable(key: str) -> str:
    return PREFIX + key.replace(".", "__").upper()


# -- sources -----------------------------------------------------------------------------------------------------------


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Given]:
    """Every `PAGEFILE_…` variable that is a setting; an empty one counts as not set."""
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in {CONFIG_VARIABLE, BENCH_DATA_VARIABLE} and environ[name]:
            yield _Given(name.removeprefix(PREFIX).lower().replace("__", "."), environ[name], f"${name}")


def _from_table(table: Mapping[str, object], origin: str) -> Iterator[_Given]:
    """Every setting of a nested table; an empty section is ignored."""
    for key, value in table.items():
        if key in SECTIONS and isinstance(value, Mapping):
            section = cast("Mapping[object, object]", value)
            for name, inner in section.items():
                yield _Given(f"{key}.{name}", inner, origin)
        elif not (key in SECTIONS and value is None):
            yield _Given(str(key), value, origin)


def _file_in_force(environ: Mapping[str, str]) -> Path | None:
    named = environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    present = files_here()
    if len(present) > 1:
        raise SettingsError(
            f"There are several settings files here ({', '.join(present)}): keep one of them."
        )
    return Path(present[0]) if present else None


def _read(path: Path) -> str:
    try:
        content = path.read_bytes()
    except IsADirectoryError as error:
        raise SettingsError(f"{path}: this is a directory, name the file in it.") from error
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: there is no such settings file.") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror or error}).") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(
            f"{path}, line {line}: this is not UTF-8 text, save the file as UTF-8."
        ) from error


def _from_file(path: Path) -> Iterator[_Given]:
    text, is_toml = _read(path), path.suffix == ".toml"
    if path.suffix not in {".toml", ".yaml", ".yml"}:
        raise SettingsError(f"{path}: a settings file must end in .toml, .yaml or .yml.")
    try:
        table: object = tomllib.loads(text) if is_toml else _yaml(text)
    # Not only their own: a number with thousands of digits, a date such as 2024-13-45, endless nesting.
    except (ValueError, RecursionError) as error:
        kind = "TOML" if is_toml else "YAML"
        raise SettingsError(f"{path}: this is not {kind}: {' '.join(str(error).split())}.") from error
    if not isinstance(table, dict | None):
        raise SettingsError(f"{path}: the file must hold names and values, such as `window_tokens: 16000`.")
    return _from_table(cast("dict[str, object]", table or {}), str(path))


def _yaml(text: str) -> object:
    import yaml  # noqa: PLC0415 - it takes as long to import as the rest of a short command, and most have no YAML

    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        if mark is None:
            raise ValueError(error) from error
        where = f"(at line {mark.line + 1}, column {mark.column + 1})"
        raise ValueError(f"{error.problem or 'it breaks off'} {where}") from error
    except yaml.YAMLError as error:
        raise ValueError(error) from error
