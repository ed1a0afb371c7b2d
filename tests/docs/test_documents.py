"""The pages about the design documents name every name of theirs, and what they name in Pagefile is there."""

import dataclasses
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from pagefile import Settings
from pagefile.engine.metrics import METRICS
from pagefile.service.app import create_app
from pagefile.settings.model import known_settings
from tests.heavy import heavy

from .document_names import NAMES
from .pages import DOCS
from .tables import rows, tables

PAGES = sorted((DOCS / "documents").glob("00*.md"))
#: A name in Pagefile, and the word before it that says what it is; without one it is a Python path.
_NAMED = re.compile(
    r"(?:\b(setting|table|column|metric|route|command|text of source|text of|log line of) )?`([^`]+)`"
)
_PATH = re.compile(r"(?:(pagefile(?:\.\w+)*)(?::|$))?((?:[A-Za-z_]\w*)(?:\.\w+)*)?(?:\((.*)\))?")
#: Where names stand that are given without a module.
_HOMES = ("pagefile.standalone", "pagefile")
#: What only the extra `claude` lets import, and `make test` does not install.
_NEEDS_CLAUDE = "pagefile.integrations.claude_agent"
#: Where a text of a document has values of its own.
_VALUES = re.compile(r"\{[^}]*\}|%[a-z]|\\n")


@cache
def routes() -> set[str]:
    """Every route of the service."""
    paths = create_app(Settings(url="memory://")).openapi()["paths"]
    return {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}


def commands(group: Any = None, before: str = "pagefile") -> set[str]:
    """Every command line, `pagefile archive search`."""
    from pagefile.cli.app import app

    group = typer.main.get_command(app) if group is None else group
    names = group.list_commands(None) if hasattr(group, "list_commands") else []
    return {before}.union(*(commands(group.get_command(None, name), f"{before} {name}") for name in names))


def member(thing: Any, name: str) -> Any:
    """An attribute; a field of a dataclass or a key of a TypedDict counts too."""
    if hasattr(thing, name):
        return getattr(thing, name)
    fields = {known.name for known in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
    assert name in fields | set(getattr(thing, "__annotations__", {})), f"{thing!r} has no {name}"
    return None


def resolved(path: str) -> Any:
    """What a path such as `pagefile.standalone:AgentApp.write_turn(request)` names, parameters and their defaults included."""
    found = _PATH.fullmatch(path)
    assert found, f"{path!r} is no path: pagefile.module:Name.attribute(parameter=default)"
    module, names, parameters = found.groups()
    thing: Any = import_module(module or home(names))
    for name in names.split(".") if names else ():
        thing = member(thing, name)
    for parameter in parameters.split(", ") if parameters else ():
        name, _, default = parameter.partition("=")
        known = inspect.signature(thing).parameters
        assert name in known, f"{names} has no parameter {name}"
        assert default in {"", str(known[name].default)}, f"{path}: it is {known[name].default!r}"
    return thing


def home(names: str) -> str:
    """The module of a name that is given without one."""
    first = names.partition(".")[0]
    found = [module for module in _HOMES if hasattr(import_module(module), first)]
    assert found, f"there is no {first} in {' or '.join(_HOMES)}"
    return found[0]


def is_ours(name: str) -> bool:
    """Whether a word between backticks in a note is meant to be a name of Pagefile."""
    first = re.match(r"\w+", name)
    return _PATH.fullmatch(name) is not None and (
        ":" in name
        or (
            first is not None
            and "." in name
            and any(first[0] in import_module(one).__all__ for one in _HOMES)
        )
    )


def check(kind: str | None, name: str, document_says: str) -> None:
    """That a name exists; a text or a log line must say what the document says."""
    match kind:
        case None:
            resolved(name)
        case "setting":
            assert name in known_settings(), f"there is no setting {name!r}"
        case "table":
            assert name in tables(), f"there is no table {name!r}"
        case "column":
            table, _, column = name.partition(".")
            assert column in tables().get(table, ()), f"there is no column {name!r}"
        case "metric":
            assert name in {metric.name for metric in METRICS}, f"there is no metric {name!r}"
        case "route":
            assert name in routes(), f"there is no route {name!r}"
        case "command":
            assert name in commands(), f"there is no command {name!r}"
        case "text of":
            _check_said(str(resolved(name)), name, document_says)
        case _:
            _check_said(inspect.getsource(resolved(name)), name, document_says)


def _check_said(text: str, name: str, document_says: str) -> None:
    said = re.findall(r"`([^`]+)`", document_says)
    assert said, f"{name}: the first column must show the text"
    for piece in (piece for one in said for piece in _VALUES.split(one) if piece.strip()):
        assert piece in text, f"{name} does not say {piece!r}"


def named(page: Path) -> list[tuple[str | None, str, str]]:
    """What a page names: its kind, itself, and what the document says of it."""
    found: list[tuple[str | None, str, str]] = []
    for says, where, note in rows(page):
        taken = not where.startswith("not taken: ")
        if taken:
            assert _NAMED.search(where), f"{says}: where is it?"
        else:
            assert len(where) > 40, f"{says}: say why"
        for text, all_of_it in ((where, taken), (note, False)):
            for kind, name in _NAMED.findall(text):
                if kind or all_of_it or is_ours(name):
                    found.append((kind or None, name, says))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_is_there(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every path, setting, table, column, metric, route and command in the middle column, and every one beside it."""
    monkeypatch.chdir(tmp_path)
    for kind, name, says in named(page):
        if not name.startswith(_NEEDS_CLAUDE):
            check(kind, name, says)


@heavy("claude")
def test_what_the_pages_name_in_the_claude_adapter_is_there():
    """What the test above leaves out: it can be imported with its extra only."""
    found = [one for page in PAGES for one in named(page) if one[1].startswith(_NEEDS_CLAUDE)]
    assert found
    for kind, name, says in found:
        check(kind, name, says)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_everything_in_its_document(page: Path):
    """Each name that the document introduces is in a first column."""
    told = " ".join(says for says, _, _ in rows(page))
    words = set(re.findall(r"\w+", told))
    assert [] == [name for name in NAMES[page.stem] if name not in words and name not in told]


def test_every_document_has_its_page():
    """Five documents, five pages."""
    assert [page.stem for page in PAGES] == sorted(NAMES)


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        (None, "pagefile.standalone:Nobody", ""),
        (None, "Nobody", ""),
        (None, "pagefile.standalone:AgentApp.nothing", ""),
        (None, "pagefile.standalone:MemoryContext.nothing", ""),
        (None, "pagefile.nowhere", ""),
        (None, "pagefile.standalone:ConversationSummarizer(min_messages=11)", ""),
        (None, "pagefile.standalone:ConversationSummarizer(most_messages)", ""),
        ("setting", "memory.nothing", ""),
        ("table", "nothing", ""),
        ("column", "ai_message.nothing", ""),
        ("metric", "pagefile_nothing", ""),
        ("route", "GET /v1/nothing", ""),
        ("command", "pagefile nothing", ""),
        ("text of", "pagefile.standalone:FULL_HISTORY", "`SUMMARY_N`"),
        ("log line of", "pagefile.standalone:AgentApp.write_turn", "`ReadTurn error: %v`"),
    ],
)
def test_what_is_not_there_is_noticed(kind, name, says, tmp_path, monkeypatch):
    """The tests above can fail."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ImportError)):
        check(kind, name, says)
