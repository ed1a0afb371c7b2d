"""Write the table of docs/install.md: on which systems every package of the lock has a wheel, so that nothing has to be compiled.

For each system and Python, uv looks for a wheel of every package that Pagefile and its extras need, in the versions of the lock.
Where there is none, the table names the package. Nothing is installed.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
#: What uv calls each system.
SYSTEMS = {
    "Linux x86-64": "x86_64-unknown-linux-gnu",
    "Linux arm64": "aarch64-unknown-linux-gnu",
    "Linux x86-64 (musl, Alpine)": "x86_64-unknown-linux-musl",
    "Linux arm64 (musl, Alpine)": "aarch64-unknown-linux-musl",
    "macOS arm64": "aarch64-apple-darwin",
    "macOS x86-64": "x86_64-apple-darwin",
    "Windows x86-64": "x86_64-pc-windows-msvc",
    "Windows arm64": "aarch64-pc-windows-msvc",
}
BEGIN, END = "<!-- scripts/platforms.py -->", "<!-- end -->"
SAME = ("--constraint", "requirements-check.lock")
_WITHOUT = re.compile(r"([\w.-]+)(?:\{[^}]*\})?==([\w.]+) has no (?:usable )?wheels?")


def project() -> dict[str, object]:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def uv(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """`uv pip compile`, which resolves and installs nothing."""
    command = [
        str(Path(sys.executable).with_name("uv")),
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
        *arguments,
    ]
    return subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)  # noqa: S603 - our own tool


def needed(extra: str | None = None) -> list[str]:
    """The pins of Pagefile with an extra, on any system: `name==version`, with the condition where there is one."""
    chosen = () if extra is None else ("--extra", extra)
    done = uv("--universal", "--python-version", "3.11", *SAME, *chosen, "pyproject.toml")
    if done.returncode:
        raise SystemExit(done.stderr)
    return [line for line in done.stdout.splitlines() if "==" in line]


def lacking(pins: list[str], system: str, python: str) -> list[str]:
    """The packages among these that have no wheel there."""
    found: list[str] = []
    where = ("--no-deps", "--only-binary", ":all:", "--python-platform", system, "--python-version", python)
    while (done := uv(*where, "-", given="\n".join(pins))).returncode:
        named = _WITHOUT.search(" ".join(done.stderr.split()))
        if named is None:
            raise SystemExit(f"{system}, Python {python}: {done.stderr}")
        found.append(f"{named[1]} {named[2]}")
        pins = [pin for pin in pins if not pin.startswith(f"{named[1]}==")]
    return found


def row(name: str, system: str, pythons: list[str], pins: dict[str | None, list[str]]) -> str:
    """A system: the Pythons that all of the base has wheels for, and the extras that need a compiler."""
    base = {python: lacking(pins[None], system, python) for python in pythons}
    works = [python for python, without in base.items() if not without]
    missing = sorted({package for without in base.values() for package in without})
    shown = ", ".join(works) or "–"
    if missing:
        shown += f" ({'else ' if works else ''}no wheel of {', '.join(missing)})"
    # With the newest Python that works: what an extra lacks, it mostly lacks for all of them.
    every = list(dict.fromkeys(pin for one in pins.values() for pin in one))
    without = lacking(every, system, works[-1]) if works else []
    told = [
        f"`{extra}` ({lost})" for extra in pins if extra for lost in [_lost(pins[extra], without)] if lost
    ]
    return f"| {name} | {shown} | {'; '.join(told) or ('none' if works else '–')} |"


def _lost(pins: list[str], without: list[str]) -> str:
    return ", ".join(one for one in without if any(pin.startswith(f"{one.split()[0]}==") for pin in pins))


def main() -> None:
    """Print the table, and write it into the page."""
    known = project()
    pythons = re.findall(r"Python :: (3\.\d+)\b", " ".join(known["classifiers"]))
    (everything,) = known["optional-dependencies"]["all"]
    # The frameworks that do not resolve beside the others have locks of their own.
    extras = [*re.findall(r"[\w-]+", everything.partition("[")[2]), "claude"]
    pins: dict[str | None, list[str]] = {extra: needed(extra) for extra in (None, *extras)}
    lines = ["| system | Python, all of it from wheels | extras that need a compiler |", "|---|---|---|"]
    for name, system in SYSTEMS.items():
        lines.append(row(name, system, pythons, pins))
        print(lines[-1], flush=True)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + "\n".join((BEGIN, "", *lines, "", END)) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
