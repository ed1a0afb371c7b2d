"""`docs/renamed.md` tells the truth: every new name is there, and no old one."""

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pagefile.cli.app import app
from pagefile.errors import PagefileError
from pagefile.service.app import create_app
from pagefile.settings import Settings
from pagefile.settings.model import RENAMED, known_settings

#: What no row replaces, and why.
UNLISTED = {
    "pagefile.client.ClientConversation": "a client makes it",
    "pagefile.stores.SqliteStore": "`open_store` makes it",
    "pagefile.standalone.ConversationStore.tenant": "set by the constructor now, under the same name",
    "pagefile.standalone.ConversationStore.turns_between": "told below the table",
    "pagefile.integrations.langchain.PagefileMiddleware.failed": "told below the table",
    "pagefile.integrations.langgraph.ConversationNodes.wording": "told below the table",
    "pagefile.stores.CachedSessions": "told below the table",
    "pagefile.stores.versions_in": "told below the table",
}
PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"
CELL = re.compile(r"`([^`]+)`")


def rows(page: str) -> dict[str, list[tuple[str, str]]]:
    """The pairs of every table, by its heading."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| `"):
            before, now = (CELL.search(cell)[1] for cell in line.strip("|").split("|")[:2])
            found.setdefault(heading, []).append((before, now))
    return found


ROWS = rows(PAGE.read_text(encoding="utf-8"))


def there(dotted: str) -> bool:
    """Whether a dotted name leads to something: a module, what is in it, a member or a field of a class."""
    *outer, last = dotted.split(".")
    if not outer:
        return find_spec(dotted) is not None
    try:
        owner = import_module(".".join(outer))
    except ImportError:
        *outer, name = outer
        owner = getattr(import_module(".".join(outer)), name)
    if inspect.isclass(owner):
        known = {one.name for one in fields(owner)} if is_dataclass(owner) else set()
        annotated = {name for base in owner.__mro__ for name in vars(base).get("__annotations__", {})}
        return last in known | annotated or hasattr(owner, last)
    return hasattr(owner, last) or (hasattr(owner, "__path__") and find_spec(dotted) is not None)


def parameters(named: str) -> tuple[set[str], str]:
    """The parameters of `package.Class.method(parameter)`, and the one that is named."""
    path, parameter = re.fullmatch(r"([\w.]+)\((\w+)\)", named).groups()
    return accepts(path) or set(), parameter


def codes(error: type[PagefileError] = PagefileError) -> set[str]:
    return {error.code} | {code for child in error.__subclasses__() for code in codes(child)}


def pairs(*headings: str):
    return [pytest.param(before, now, id=now) for heading in headings for before, now in ROWS[heading]]


@pytest.mark.parametrize(("before", "now"), pairs("Python names", "Fields and methods", "Modules"))
def test_a_name_was_replaced(before: str, now: str):
    """What is listed as new can be imported, and what is listed as old cannot."""
    assert there(now)
    owner = now.rpartition(".")[0]
    assert not there(f"{owner}.{before.rpartition('.')[2]}" if owner else before)


@pytest.mark.parametrize(("before", "now"), pairs("Parameters"))
def test_a_parameter_was_replaced(before: str, now: str):
    """It has the new name only."""
    known, new = parameters(now)
    assert new in known
    assert re.search(r"\((\w+)\)", before)[1] not in known


def test_settings_were_replaced():
    """Those that the page lists are those that the settings know by a former name; the new ones exist, the old do not."""
    assert RENAMED == dict(ROWS["Settings"])
    assert set(RENAMED.values()) <= set(known_settings())
    assert set() == set(RENAMED) & set(known_settings())


def test_options_were_replaced():
    """A command takes the new one only."""
    for before, now in ROWS["Options of commands"]:
        _, *command, new = now.split()
        said = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
        assert new in said
        assert before.split()[-1] not in said


def test_codes_were_replaced():
    """Problems name the new code."""
    for before, now in ROWS["Error codes"]:
        assert now in codes()
        assert before not in codes()


def test_operation_ids_were_replaced():
    """The description of the service has the new ids; no id has a path in it any more."""
    paths = create_app(Settings(url="memory://")).openapi()["paths"]
    ids = {operation["operationId"] for item in paths.values() for operation in item.values()}
    for before, now in ROWS["Operation ids"]:
        assert now in ids
        assert before not in ids
    assert [] == [one for one in ids if "_" in one]


def test_schemas_were_replaced():
    """The description of the service has the new ones only."""
    known = create_app(Settings(url="memory://")).openapi()["components"]["schemas"]
    for before, now in ROWS["Schemas"]:
        assert now in known
        assert before not in known


def test_the_page_is_read_right():
    """The tests above can fail."""
    assert {"A": [("a.b", "a.c")]} == rows(
        "## A\n\n| before | now |\n|---|---|\n| `a.b` | `a.c`, somewhere |\n"
    )
    assert there("pagefile.Memory")
    assert there("pagefile.records.Turn.id")
    assert not there("pagefile.Nothing")
    assert not there("pagefile.records.Turn.nothing")


# -- nothing is missing from the page ----------------------------------------------------------------------------------

BEFORE = (Path(__file__).parent / "public_before.txt").read_text(encoding="utf-8").splitlines()[1:]
NAME = re.compile(r"([\w.]+)(?:\(([^)]*)\))?")
CLASSES = dict(ROWS["Python names"])
MEMBERS = dict(ROWS["Fields and methods"])
PARAMETERS = {before for before, _ in ROWS["Parameters"]}


def accepts(path: str) -> set[str] | None:
    """The parameters of something callable; None if it takes any."""
    owner, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(owner), name)
    except ImportError:
        outer, _, inner = owner.rpartition(".")
        found = getattr(getattr(import_module(outer), inner), name)
    known = inspect.signature(found).parameters
    return None if any(one.kind is one.VAR_KEYWORD for one in known.values()) else set(known)


def unlisted(line: str) -> list[str]:
    """What was public and neither exists nor is listed."""
    missing: list[str] = []
    (before, made_of), *members = (NAME.fullmatch(part).groups() for part in line.split(" | "))
    now = CLASSES.get(before, before)
    if not there(now):
        return [] if before in UNLISTED else [before]
    for member, given in [("", made_of), *members]:
        old, new = (f"{path}.{member}".rstrip(".") for path in (before, now))
        new = MEMBERS.get(old, MEMBERS.get(new, new))
        known = accepts(new) if given and there(new) else None
        if not there(new):
            missing.append(old)
        elif known is not None:
            renamed = {
                f"{path}({name})" for path in (old, new) for name in (given or "").split()
            } & PARAMETERS
            listed = {row.rpartition("(")[2][:-1] for row in renamed}
            # A field is a parameter of its class.
            fields_ = {row.rpartition(".")[2] for row in MEMBERS if row.rpartition(".")[0] in {old, new}}
            missing += [
                f"{old}({name})" for name in (given or "").split() if name not in known | listed | fields_
            ]
    return [name for name in missing if name.partition("(")[0] not in UNLISTED]


@pytest.mark.parametrize("line", BEFORE, ids=[re.split(r"[( ]", line)[0] for line in BEFORE])
def test_what_was_public_exists_or_is_listed(line: str):
    """A name of before the redesign works as before, or the page says what replaces it."""
    assert [] == unlisted(line)


def test_the_comparison_sees():
    """The test above can fail: for a class, a member and a parameter."""
    assert ["pagefile.Nothing"] == unlisted("pagefile.Nothing(a) | b")
    assert ["pagefile.Turn.nothing"] == unlisted("pagefile.Turn | nothing | id")
    assert ["pagefile.Memory.facts(nothing)"] == unlisted("pagefile.Memory | facts(user_id nothing)")
