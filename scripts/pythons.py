"""Runs a smoke set of the tests on every Python that pyproject.toml names: `make pythons`.

An interpreter is looked for on the path, among those that uv knows, and among those named with `--python PATH`; nothing is downloaded.
Each gets the locked dependencies, in a `.pythons` folder. What was not to be had is printed, and is no failure.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = Path(sys.executable).with_name("uv")
#: Every module of the core, the tokens, the library, the service and the command line.
SMOKE = (
    "tests/unit",
    "tests/integration/text/test_text_tokens.py",
    "tests/contract/test_sqlite.py",
    "tests/acceptance/test_memory.py",
    "tests/acceptance/test_http_story.py",
    "tests/acceptance/test_http_docs.py",
    "tests/acceptance/test_client.py",
    "tests/acceptance/test_cli.py",
)


def versions() -> list[str]:
    """Those of the classifiers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = "Programming Language :: Python :: "
    return [one.removeprefix(said) for one in project["classifiers"] if one.startswith(f"{said}3.")]


def find(version: str, named: Sequence[str]) -> str | None:
    """An interpreter of this version that runs."""
    return next((one for one in _candidates(version, named) if one and _version(one) == version), None)


def _candidates(version: str, named: Sequence[str]) -> Iterator[str | None]:
    yield from named
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        yield sys.executable
    yield shutil.which(f"python{version}")
    yield _said(str(UV), "python", "find", "--no-python-downloads", "--no-project", version)


def _version(python: str) -> str:
    return _said(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])")


def _said(*command: str) -> str:
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def play(version: str, python: str, tests: Sequence[str]) -> tuple[bool, str]:
    """Whether the tests pass, and what pytest said last."""
    folder = ROOT / ".pythons" / version
    made = str(folder / "bin" / "python")
    steps = (
        [str(UV), "venv", "--quiet", "--clear", "--python", python, str(folder)],
        [str(UV), "pip", "sync", "--quiet", "--python", made, "--require-hashes", "requirements.lock"],
        [
            str(UV),
            "pip",
            "install",
            "--quiet",
            "--python",
            made,
            "--no-deps",
            "--no-build-isolation",
            "-e",
            ".",
        ],
    )
    for step in steps:
        done = subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            return False, f"cannot be set up: {' '.join(step[:3])}: {done.stderr.strip()}"
    command = [made, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--heavy", "left-out", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    failed = [line for line in done.stdout.splitlines() if re.match(r"(FAILED|ERROR) ", line)]
    last = (done.stdout or done.stderr).strip().rpartition("\n")[2]
    return done.returncode == 0, "\n    ".join([last, *failed])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="an interpreter to use")
    parser.add_argument("--only", action="append", choices=versions(), help="only this version")
    parser.add_argument("tests", nargs="*", default=SMOKE, help="other tests than the smoke set")
    asked = parser.parse_args()
    passed = True
    for version in asked.only or versions():
        python = find(version, asked.python)
        if python is None:
            print(
                f"{version}  not to be had here: install python{version}, or name one with --python",
                flush=True,
            )
            continue
        fine, said = play(version, python, asked.tests)
        print(f"{version}  {python}: {said}", flush=True)
        passed = passed and fine
    sys.exit(not passed)


if __name__ == "__main__":
    main()
