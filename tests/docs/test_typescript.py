"""The TypeScript client is of today's service; `make typescript` builds and tests it."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

FOLDER = ROOT / "clients" / "typescript"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import typescript
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return typescript


def test_it_is_generated_from_the_document_of_today(script):
    """The API changed: run `make typescript ARGS=--write`."""
    today = script.fingerprint(script.document())
    for name in script.GENERATED:
        head = (FOLDER / "src" / name).read_text(encoding="utf-8").split("\n", 2)[1]
        assert f"// {today}" == head, f"{name}: make typescript ARGS=--write"


def test_its_lock_names_no_registry():
    """Where packages come from is the business of the machine that installs them."""
    lock = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: row for name, row in lock["packages"].items() if name}
    assert [] == [name for name, row in packages.items() if "resolved" in row]
    assert [] == [name for name, row in packages.items() if "integrity" not in row]


def test_it_says_what_it_needs(script, monkeypatch, capsys):
    """Without Node, the command says which one to install."""
    monkeypatch.setattr(script, "_on_the_path", lambda: None)
    monkeypatch.setattr(script, "_of_pyright", lambda: None)
    with pytest.raises(SystemExit, match=r"Node 22\.18 or newer with npm is needed"):
        script.find_node()


def test_an_old_node_is_passed_over(script, monkeypatch, tmp_path):
    """One that cannot run the tests is not taken."""
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v20.1.0\n")
    old.chmod(0o755)
    monkeypatch.setattr(script, "_on_the_path", lambda: script.Node(old, old))
    found = script.find_node()
    assert found.node != old


def test_no_package_is_in_the_repository():
    """npm packages are installed, never committed."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert {"node_modules/", "dist/"} <= set(ignored)


def test_every_export_is_built():
    """What package.json exports has a source."""
    exports = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))["exports"]
    for row in exports.values():
        made = re.fullmatch(r"\./dist/(.+)\.js", row["default"])
        assert made is not None
        assert Path(FOLDER, "src", f"{made[1]}.ts").is_file()
