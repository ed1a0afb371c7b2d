"""Write docs/documents/claims-004.md: what document 004 says was done, whether it is so here, and the tests that tell.

"All of it is implemented", the document ends; where it came from, most of it was not. The rows are
docs/requirements/claims-004.toml. Run by `make traceability`.
"""

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "docs" / "requirements" / "claims-004.toml"
PAGE = ROOT / "docs" / "documents" / "claims-004.md"

_INTRODUCTION = """\
# Document 004: what it claims, and what is so

<!-- Written by `make traceability` from docs/requirements/claims-004.toml; do not edit. -->

Document 004 ends by saying that everything in it was implemented. In the project that it was written for, most of it was not:
neither the ranking nor the injection that it describes. So each of its claims is listed here with what is true in Pagefile, and
with tests that fail when it is no longer so (C4-7). Where its names are: [document 004](004.md).

| the document claims | here | tests |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim in our words, what is so here, and the tests that tell."""

    claim: str
    here: str
    tests: tuple[str, ...]


def written_claims() -> list[Claim]:
    """Every claim of the file; an unknown key is an error."""
    given = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claims"]
    return [Claim(**{**one, "tests": tuple(one["tests"])}) for one in given]


def page(claims: Sequence[Claim]) -> str:
    """The whole page."""
    return _INTRODUCTION + "".join(f"{_line(claim)}\n" for claim in claims)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(written_claims()), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


def _line(claim: Claim) -> str:
    tests = "<br>".join(map(_link, claim.tests))
    return f"| {claim.claim} | {claim.here} | {tests} |"


def _link(test: str) -> str:
    path, name = test.split("::", 1)
    return f"[{name}](../../{path})"


if __name__ == "__main__":
    main()
