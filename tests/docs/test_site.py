"""The pages build into a site, without a warning, and the site asks nobody else for anything."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .pages import DOCS, pages
from .site import built_into

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
    return built_into(tmp_path_factory.mktemp("site"))


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


class Anchors(HTMLParser):
    """Collects where a page links to, and what in it can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {name for name in (given.get("id"), given.get("name")) if name}
        if (address := given.get("href" if tag in {"a", "link"} else "src")) is not None:
            self.links.append(address)


def dead_links(site: Path) -> list[str]:
    """`page -> address` for each link within the site that leads nowhere, its place on the page included."""
    read: dict[Path, Anchors] = {}
    for file in site.rglob("*.html"):
        read[file] = Anchors()
        read[file].feed(file.read_text(encoding="utf-8"))
    return [
        f"{file.relative_to(site)} -> {link}"
        for file, found in read.items()
        for link in found.links
        if not _leads_somewhere(link, file, site, read)
    ]


def _leads_somewhere(link: str, file: Path, site: Path, read: dict[Path, Anchors]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    path = unquote(parts.path)
    base = site if path.startswith("/") else file.parent
    target = Path(os.path.normpath(base / path.lstrip("/"))) if path else file
    target = target / "index.html" if target.is_dir() else target
    place = unquote(parts.fragment)
    return target.is_file() and (not place or target not in read or place in read[target].ids)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_link_leads_somewhere(site: Path):
    """Within the site, as it was built: mkdocs does not mind a link to a page that it was told to leave out."""
    assert [] == dead_links(site)


def test_a_dead_link_is_noticed(tmp_path: Path):
    """The test above can fail: no such page, no such place."""
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="c/index.html">3</a><a href="https://x/y">4</a>'
    )
    (tmp_path / "b.html").write_text('<h2 id="x">x</h2><a href="#x">5</a><img src="no.svg">')
    assert ["a.html -> b.html#y", "a.html -> c/index.html", "b.html -> no.svg"] == sorted(
        dead_links(tmp_path)
    )


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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_search_works_from_the_disk(site: Path):
    """Its index is a script that a page may load, and the frame that does the work of a worker comes with the site."""
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    for page in (site / "index.html", site / "howto" / "mcp.html"):
        scripts = [name for name in fetches(page.read_text(encoding="utf-8")) if "iframe-worker" in name]
        assert [True] == [(page.parent / name).is_file() for name in scripts]
