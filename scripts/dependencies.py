"""Writes docs/dependencies.md, the direct dependencies and what we would do without each, and a bill of materials of the lock.

    python scripts/dependencies.py [--index URL]     the page; with an index (simple API), releases, their ages and wheels are looked up again
    python scripts/dependencies.py --sbom FILE       CycloneDX 1.5 of requirements.lock, with hashes and licences

Versions are those of requirements.lock; licences and authors are what the packages that are installed say.
"""

import argparse
import io
import json
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
#: The times of files in archives that are built reproducibly: those of hatchling and cargo, and others, which are older than the index.
_FIXED, _OLDEST_YEAR = {(2020, 2), (2006, 7)}, 2005
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BEGIN = """# Dependencies

<!-- Written by scripts/dependencies.py; what we would do is in scripts/dependencies.toml. -->

Every direct dependency, what it is licensed under, who keeps it, and what we would do if it went away. The lock has versions and hashes of these and of all they need;
`python scripts/dependencies.py --sbom FILE` writes it as a CycloneDX bill of materials. Releases, the months of the first and the newest (of the youngest file in them; `?` where a build hides it), and wheels are those of the index on the day the page was written with `--index`; a single release or a single author is a risk that the last column answers.
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
    return licence_and_people(data)


def licence_and_people(data: Message) -> tuple[str, str]:
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
    people = re.sub(r"\s*<[^>]*>", "", str(people)).replace('"', "")
    return licence[:60], people[:60]


def counted(index: str, name: str) -> tuple[str, str, str]:
    """How many releases an index has, since when, and for how many platforms the newest has wheels; its licence and its authors."""
    place = f"{index.rstrip('/')}/{name}/"
    with urlopen(place, timeout=30) as answer:  # noqa: S310 - the operator's own index
        links = re.findall(r'href="([^"]+)"[^>]*>([^<>]+\.(?:whl|tar\.gz))<', answer.read().decode())
    versions: dict[Version, list[tuple[str, str]]] = {}
    for link, file in links:
        # A file that names no version is of a time before there were rules.
        with suppress(InvalidVersion, AttributeError):
            named = re.match(r"[A-Za-z0-9_.-]+?-([0-9][^-]*?)(?:-|\.tar)", file)[1]
            versions.setdefault(Version(named), []).append((urljoin(place, link), file))
    finals = [one for one in sorted(versions) if not one.is_prerelease] or sorted(versions)
    first, newest = versions[min(versions)], versions[finals[-1]]
    wheels = [file for _, file in newest if file.endswith(".whl")]
    kind = "any platform" if any("none-any" in file for file in wheels) else f"{len(wheels)} wheels"
    began, (ended, licence, people) = looked_into(first)[0], looked_into(newest)
    return f"{len(versions)} releases, {began} to {ended}, {kind}", licence, people


def looked_into(files: list[tuple[str, str]]) -> tuple[str, str, str]:
    """The month of the youngest file in a distribution, and the licence and the authors that it names."""
    url, file = min(files, key=lambda one: (one[1].endswith(".whl"), "none-any" not in one[1]))
    with urlopen(url.partition("#")[0], timeout=120) as answer:  # noqa: S310 - likewise
        data = io.BytesIO(answer.read())
    if file.endswith(".whl"):
        with zipfile.ZipFile(data) as wheel:
            times = [one.date_time[:2] for one in wheel.infolist()]
            text = next(wheel.read(one) for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
    else:
        with tarfile.open(fileobj=data) as archive:
            members = [one for one in archive.getmembers() if one.isfile()]
            times = [datetime.fromtimestamp(one.mtime, UTC).timetuple()[:2] for one in members]
            found = min(
                (one for one in members if one.name.endswith("PKG-INFO")), key=lambda one: len(one.name)
            )
            text = archive.extractfile(found).read()
    year, month = max(times)
    told = "?" if year <= _OLDEST_YEAR or (year, month) in _FIXED else f"{year}-{month:02d}"
    return told, *licence_and_people(message_from_bytes(text))


def page(index: str | None) -> str:
    fallbacks = tomllib.loads((ROOT / "scripts" / "dependencies.toml").read_text())["fallbacks"]
    versions = {name: version for name, version, _ in locked()}
    cells = re.compile(r"^\| `([^`]+)` \|(?:[^|]*\|){2} ([^|]*) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)
    before = {
        name: (seen, licence, people)
        for name, licence, people, seen in cells.findall(PAGE.read_text() if PAGE.exists() else "")
    }
    rows = []
    for name, extra in direct().items():
        # What the lock does not have may be installed or not.
        licence, people = about(name) if name in versions else ("", "")
        seen, *told = counted(index, name) if index else before.get(name, ("", "", ""))
        if name not in versions:
            licence, people = told
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
    parser.add_argument("--index", help="the simple API of a package index, to look up releases and wheels")
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
