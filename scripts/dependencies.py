"""Writes docs/dependencies.md, the direct dependencies and what we would do without each, and a bill of materials of the lock.

    python scripts/dependencies.py [--index URL]     the page; with an index (simple API), releases and wheels are counted again
    python scripts/dependencies.py --sbom FILE       CycloneDX 1.5 of requirements.lock, with hashes and licences

Versions are those of requirements.lock; licences and authors are what the packages that are installed say.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BEGIN = """# Dependencies

<!-- Written by scripts/dependencies.py; what we would do is in scripts/dependencies.toml. -->

Every direct dependency, what it is licensed under, who keeps it, and what we would do if it went away. The lock has versions and hashes of these and of all they need;
`python scripts/dependencies.py --sbom FILE` writes it as a CycloneDX bill of materials. Releases and wheels are those of the index on the day the page was written with `--index`; a single release or a single author is a risk that the last column answers.
"""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def direct() -> dict[str, str]:
    """The direct dependencies by name, each with the extra that brings it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = {}
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, requirements in groups.items():
        for requirement in requirements if extra not in {"all", "bench"} else ():
            found.setdefault(normalized(_NAME.match(requirement)[0]), extra)
    return found


def locked(file: str = "requirements.lock") -> Iterator[tuple[str, str, list[str]]]:
    """Name, version and SHA-256s of everything in a lock."""
    text = (ROOT / file).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if found := re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?==([^\s;]+)", line):
            yield normalized(found[1]), found[2], re.findall(r"--hash=sha256:([0-9a-f]{64})", line)


def about(name: str) -> tuple[str, str]:
    """Licence and author, as the installed package says."""
    try:
        data = distribution(name).metadata
    except PackageNotFoundError:
        return "", ""
    classified = [
        one.rpartition(" :: ")[2] for one in data.get_all("Classifier") or [] if one.startswith("License ::")
    ]
    licence = (
        data.get("License-Expression")
        or next(iter(classified), "")
        or (data.get("License") or "").split("\n")[0]
    )
    people = (
        data.get("Author")
        or data.get("Maintainer")
        or data.get("Author-email")
        or data.get("Maintainer-email")
        or ""
    )
    people = re.sub(r"\s*<[^>]*>", "", people).replace('"', "")
    return licence[:60], people[:60]


def counted(index: str, name: str) -> str:
    """How many releases an index has, and for how many platforms the newest has wheels."""
    with urlopen(f"{index.rstrip('/')}/{name}/", timeout=30) as answer:  # noqa: S310 - the operator's own index
        files = re.findall(r">([^<>]+\.(?:whl|tar\.gz))<", answer.read().decode())
    versions = {
        match[1]: []
        for file in files
        if (match := re.match(r"[A-Za-z0-9_.]+?-([0-9][^-]*?)(?:-|\.tar)", file))
    }
    for file in files:
        if file.endswith(".whl"):
            versions.setdefault(file.split("-")[1], []).append(file)
    newest = next((wheels for wheels in reversed(versions.values()) if wheels), [])
    kind = "any platform" if any("none-any" in file for file in newest) else f"{len(newest)} wheels"
    return f"{len(versions)} releases, {kind}"


def page(index: str | None) -> str:
    fallbacks = tomllib.loads((ROOT / "scripts" / "dependencies.toml").read_text())["fallbacks"]
    versions = {name: version for name, version, _ in locked()}
    before = (
        dict(re.findall(r"^\| `([^`]+)` \|(?:[^|]*\|){4} ([^|]*) \|", PAGE.read_text(), re.MULTILINE))
        if PAGE.exists()
        else {}
    )
    rows = []
    for name, extra in direct().items():
        # What the lock does not have may be installed or not.
        licence, people = about(name) if name in versions else ("", "")
        seen = counted(index, name) if index else before.get(name, "").strip()
        cells = (
            f"`{name}`",
            extra or "always",
            versions.get(name, "not in the lock"),
            licence,
            people,
            seen,
            fallbacks[_key(fallbacks, name)],
        )
        rows.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    head = "| package | installed by | version | licence | author | releases and wheels | if it went away |\n|---|---|---|---|---|---|---|"
    return "\n".join([_BEGIN, head, *rows]) + "\n"


def _key(fallbacks: dict[str, str], name: str) -> str:
    found = [key for key in fallbacks if normalized(key) == name]
    if not found:
        raise SystemExit(f"scripts/dependencies.toml does not say what we would do without {name}.")
    return found[0]


def bill() -> dict[str, Any]:
    """The lock as CycloneDX."""
    parts: list[dict[str, Any]] = []
    for name, version, hashes in locked():
        part: dict[str, Any] = {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
        }
        part["bom-ref"] = part["purl"]
        if licence := about(name)[0]:
            part["licenses"] = [{"license": {"name": licence}}]
        # One file of these is installed; which one depends on the platform.
        part["properties"] = [{"name": "pagefile:sha256", "value": value} for value in hashes]
        parts.append(part)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    component = {"type": "application", "name": "pagefile", "version": str(project.get("version", "0"))}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component},
        "components": parts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--index", help="the simple API of a package index, to count releases and wheels")
    parser.add_argument("--sbom", type=Path, help="write a CycloneDX bill of materials there instead")
    given = parser.parse_args()
    if given.sbom is not None:
        made = bill()
        given.sbom.write_text(json.dumps(made, indent=1) + "\n")
        print(f"{len(made['components'])} components in {given.sbom}")
        return 0
    PAGE.write_text(page(given.index))
    print(f"{len(direct())} direct dependencies in {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
