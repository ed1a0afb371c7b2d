"""Prints the lowest versions that our extras allow of some frameworks, as constraints: `make frameworks-lock` resolves with them."""

import re
import sys
import tomllib
from pathlib import Path

_LOWEST = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?>=([0-9][^,;]*)")


def lowest(extras: list[str]) -> list[str]:
    """`name==version` for each requirement of the extras, in their order."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    found: list[str] = []
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            match = _LOWEST.match(requirement)
            if match is None:
                raise SystemExit(f"{requirement!r} of the extra {extra!r} names no lowest version: write >=.")
            found.append(f"{match[1]}=={match[2].strip()}")
    return found


if __name__ == "__main__":
    print("\n".join(lowest(sys.argv[1:])))
