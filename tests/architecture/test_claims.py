"""Document 004's claims (C4-7): each has a test that runs, and the page is the one the script writes."""

import tomllib

import pytest
from packaging.requirements import Requirement

from scripts import claims

from .named_tests import complaint
from .scans import ROOT

CLAIMS = claims.written_claims()


def test_every_claim_has_a_test_that_runs():
    """A claim without a test is what the document ended with."""
    assert [] == [claim.claim for claim in CLAIMS if not claim.tests or not claim.here.strip()]
    assert [] == [found for claim in CLAIMS for test in claim.tests if (found := complaint(test))]


def test_every_claim_is_in_one_line_once():
    """A bar or a line break would end its cell."""
    cells = [text for claim in CLAIMS for text in (claim.claim, claim.here)]
    assert [] == [text for text in cells if "|" in text or "\n" in text]
    assert len({claim.claim for claim in CLAIMS}) == len(CLAIMS)


def test_the_page_is_what_the_script_writes():
    """`make traceability` was run after the last change of a claim."""
    assert claims.page(CLAIMS) == claims.PAGE.read_text(encoding="utf-8")


def test_a_key_that_nobody_reads_is_an_error(tmp_path, monkeypatch):
    """A misspelt key would else be lost."""
    file = tmp_path / "claims.toml"
    file.write_text('[[claims]]\nclaim = "a"\nheer = "b"\ntests = ["c"]\n', encoding="utf-8")
    monkeypatch.setattr(claims, "CLAIMS", file)
    with pytest.raises(TypeError, match="heer"):
        claims.written_claims()


def test_the_packages_of_document_004():
    """S4-35, S4-36: from the versions that it names on; scikit-learn is an extra of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (tiktoken,) = [one for text in project["dependencies"] if (one := Requirement(text)).name == "tiktoken"]
    (sklearn,) = map(Requirement, project["optional-dependencies"]["sklearn"])
    assert (">=0.8.0", "scikit-learn", ">=1.6.1") == (
        str(tiktoken.specifier),
        sklearn.name,
        str(sklearn.specifier),
    )
    assert "scikit-learn" not in {Requirement(text).name for text in project["dependencies"]}
