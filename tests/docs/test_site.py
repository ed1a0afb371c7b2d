"""The pages build into a site, without a warning, and the site asks nobody else for anything."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .pages import DOCS, ROOT, pages

#: What a browser fetches by itself, by tag; what a person may click on is another matter.
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "link": "href",
    "source": "src",
    "video": "src",
    "audio": "src",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """What `make docs` builds."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Fetches(HTMLParser):
    """Collects the addresses that a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") in {"canonical", "prev", "next"}:
            return
        if address := given.get(FETCHED.get(tag, "")):
            self.found.append(address)


def fetches(html: str) -> list[str]:
    parser = Fetches()
    parser.feed(html)
    return parser.found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_site_builds_and_asks_nobody_else(site: Path):
    """Links lead somewhere (strict), every page is there, and no page fetches from another host: no font, no script, no picture."""
    for page in pages():
        name = page.relative_to(DOCS).with_suffix(".html")
        built = name.with_name("index.html") if name.name == "README.html" else name
        assert (site / built).exists(), built
    for file in site.rglob("*.html"):
        away = [address for address in fetches(file.read_text(encoding="utf-8")) if "//" in address]
        assert [] == away, file
    for file in site.rglob("*.css"):
        away = re.findall(
            r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)\s]+", file.read_text(encoding="utf-8")
        )
        assert [] == away, file


def test_a_fetch_from_elsewhere_is_noticed():
    """The test above can fail."""
    html = '<script src="https://cdn.example/x.js"></script><a href="https://example.org">x</a><link rel="icon" href="//x/y">'
    assert ["https://cdn.example/x.js", "//x/y"] == fetches(html)
