"""Every direct dependency is on the page, with what we would do without it, and the bill of materials has all of the lock."""

import json
import subprocess
import sys

from scripts import dependencies
from tests.docs.pages import ROOT


def test_the_page_is_written_from_the_lock():
    """Whoever adds a dependency says what becomes of us without it."""
    assert dependencies.page(None) == dependencies.PAGE.read_text()


def test_the_bill_has_every_locked_package_with_its_hashes(tmp_path):
    file = tmp_path / "sbom.json"
    subprocess.run([sys.executable, "scripts/dependencies.py", "--sbom", str(file)], cwd=ROOT, check=True)
    made = json.loads(file.read_text())
    locked = {f"pkg:pypi/{name}@{version}": hashes for name, version, hashes in dependencies.locked()}
    assert ("CycloneDX", set(locked)) == (made["bomFormat"], {part["purl"] for part in made["components"]})
    for part in made["components"]:
        assert locked[part["purl"]] == [one["value"] for one in part["properties"]] != []
