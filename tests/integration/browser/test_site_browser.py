"""The documentation as a reader opens it: from the disk, in a real browser, without a network."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.site import built_into
from tests.heavy import heavy

from .chromium import Chromium, chromium, chromium_path

pytestmark = [heavy("chromium"), pytest.mark.waits, pytest.mark.timeout(300)]
QUERY = "document.querySelector('[data-md-component=search-query]')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium(str(chromium_path())) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_into(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize(("word", "page"), [("placeholder", "tool-results.html"), ("占位符", "zh/")])
def test_the_search_finds_pages(browser: Chromium, site: Path, word: str, page: str):
    """In both languages; nothing is asked of another host, and the console has no complaint."""
    tab = browser.tab()
    tab.go((site / "index.html").as_uri())
    tab.run(f"{QUERY}.focus()")
    tab.run(f"{QUERY}.value = {json.dumps(word)}")
    tab.run(f"{QUERY}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    tab.run(f"{QUERY}.dispatchEvent(new KeyboardEvent('keyup', {{bubbles: true}}))")
    found = "[...document.querySelectorAll('.md-search-result__link')].map(one => one.href)"
    tab.wait_for(f"{found}.some(href => href.includes({json.dumps(page)}))")
    assert [] == tab.complaints()
    assert [] == [address for address in tab.requested() if not address.startswith(("file:", "data:"))]


def test_a_phone_shows_no_page_wider_than_itself(browser: Chromium, site: Path):
    """The pages that a newcomer opens first."""
    for page in ("index.html", "tutorial.html", "explanation/how-it-works.html", "zh/tutorial.html"):
        tab = browser.tab(width=390, height=800)
        tab.go((site / page).as_uri())
        assert tab.run("document.documentElement.scrollWidth") <= 390, page
