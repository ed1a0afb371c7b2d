"""The reference holds everything there is, as it is now."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import typer
from fastapi.routing import iter_route_contexts

from pagefile import Conversation, Memory, Settings
from pagefile.cli.app import app as commands
from pagefile.engine.metrics import METRICS
from pagefile.errors import PagefileError
from pagefile.service.app import create_app
from pagefile.service.problems import kinds
from pagefile.settings.model import known_settings

from .pages import DOCS, ROOT

FOLDER = DOCS / "reference"


def written(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reference():
    """The script that writes it."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_of_today(reference):
    """`make docs`, or `python scripts/reference.py`, was run after the last change."""
    stale = [
        name
        for name, text in reference.pages().items()
        if text != (FOLDER / name).read_text(encoding="utf-8")
    ]
    assert [] == stale, "run .venv/bin/python scripts/reference.py"


def test_every_setting(reference):
    """Its name, its variable, and a sentence that says what it does."""
    page = written("settings")
    for name in known_settings():
        variable = f"PAGEFILE_{name.replace('.', '__').upper()}"
        assert f"### `{name}` " in page
        assert f"`{variable}`" in page
        assert reference.said_of_settings()[name].endswith((".", "）")), name


def test_every_command_and_option(reference):
    """Every command at any depth, and each of its options."""
    page = written("commands")

    def seen(command, name: str) -> None:
        section = page.partition(f"## `{name}` ")[2].partition("\n## ")[0]
        assert name == "pagefile" or section, name
        for parameter in command.params:
            if name != "pagefile" and not parameter.hidden and parameter.name != "help":
                for option in (option for option in parameter.opts if option.startswith("--")):
                    assert f"`{option}" in section, (name, option)
        for known, inner in reference.inner_commands(command):
            seen(inner, f"{name} {known}")

    seen(typer.main.get_command(commands), "pagefile")


def test_every_error():
    """Every class, with what to do; every code of the service."""
    page = written("errors")

    def seen(error: type[PagefileError]) -> None:
        section = page.partition(f"## {error.__name__} ")[2].partition("\n## ")[0]
        assert "**What to do:** " in section, error
        for child in error.__subclasses__():
            if child.__module__.startswith("pagefile."):
                seen(child)

    seen(PagefileError)
    for code in kinds():
        assert f"`{code}`" in page


def test_every_metric():
    """Name, labels and what it tells."""
    page = written("metrics")
    for metric in METRICS:
        (row,) = re.findall(rf"^\| `{metric.name}` \| {metric.kind} \|.*$", page, re.MULTILINE)
        assert metric.tells in row
        assert all(f"`{label}`" in row for label in metric.labels)
        assert all(f"| `{label}` | " in page for label in metric.labels)


@pytest.mark.parametrize("page", ["howto/watch.md", "zh/howto/watch.md", "howto/gateway.md"])
def test_pages_name_metrics_that_exist(page):
    """An alert on a metric that nobody writes never fires."""
    text = (DOCS / page).read_text(encoding="utf-8")
    named = set(re.findall(r"\bpagefile_[a-z_]+(?=[\[{ `\])]|$)", text, re.MULTILINE))
    assert set() == named - {metric.name for metric in METRICS}


def test_every_route():
    """Method, path and who may; an example of what is sent and of what comes back."""
    page, app = written("routes"), create_app(Settings(url="memory://"))
    described = app.openapi()["paths"]
    for route in iter_route_contexts(app.routes):
        path = route.path or ""
        for method in (route.methods or set()) - {"HEAD"}:
            if path.startswith("/v1/") and path in described:
                section = page.partition(f"### {method} `{path}` ")[2].partition("\n### ")[0]
                assert "Access: " in section, (method, path)
                assert '??? example "Answer' in section, (method, path)
                assert method == "GET" or '??? example "Request' in section, (method, path)
            elif path.endswith(".json") and path != "/openapi.json":
                twin = "/" if path == "/index.json" else path.removesuffix(".json")
                assert f"`{twin}`" in page, path
            else:
                assert f"`{path}`" in page, path


def test_every_public_name(reference):
    """What `__all__` of a public module names is on one of the pages, and every module with one is public or has a reason not to be."""
    page = "".join(map(written, reference.PYTHON))
    for module in reference.MODULES:
        for name in reference.public_names(module):
            assert f"::: {module}.{name}\n" in page or f"`{name}`" in page, (module, name)
    modules = {
        path
        for path in (ROOT / "src" / "pagefile" / "integrations").iterdir()
        if not path.name.startswith("_")
    }
    known = {name.rpartition(".")[2] for name in reference.MODULES}
    assert {
        "assistant_exports",
        "brought",
        "claude_code",
        "door",
        "item_lists",
        "memory_dumps",
        "projects",
        "searches",
        "shortening",
        "span_messages",
        "spans",
        "transcripts",
    } == {Path(path).stem for path in modules} - known


def test_every_verb(reference):
    """Each verb of a memory and of a conversation is in exactly one group."""
    listed = [name for group in reference.NOTES["verbs"].values() for name in group.split()]
    faces = {"chat": Conversation, "memory": Memory}
    verbs = {
        f"{owner}.{verb}" for owner, face in faces.items() for verb in dir(face) if not verb.startswith("_")
    }
    # What is no verb.
    assert {"chat.id", "chat.scope", "memory.settings"} == verbs - set(listed)
    assert sorted(set(listed)) == sorted(listed)
    assert set() == set(listed) - verbs
