"""Every page of the inspector through axe-core: no violation, in either theme and language, wide or on a phone."""

from collections.abc import Iterator
from typing import cast

import anyio
import httpx
import pytest

from pagefile import Settings
from tests.acceptance.inspector_story import every_page, told
from tests.heavy import heavy

from .axe import axe_path
from .chromium import Chromium, Tab, chromium, chromium_path
from .serving import served

pytestmark = [heavy("axe"), pytest.mark.waits]
_VIOLATIONS = """axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
  violations.map(({id, nodes}) => `${id}: ${nodes.map((one) => one.html.slice(0, 120)).join(' | ')}`))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium(str(chromium_path())) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The service, and its pages over a story that fills each of them."""
    with served(Settings(url=f"sqlite:///{tmp_path_factory.mktemp('axe')}/site.db")) as base:

        async def write() -> dict[str, str]:
            async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=30) as client:
                return await told(client)

        yield base, every_page(anyio.run(write))


def violations(tab: Tab) -> list[str]:
    """What axe-core finds on the page, with everything unfolded that is folded away."""
    tab.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    script = axe_path()
    assert script is not None
    tab.run(f"{script.read_text(encoding='utf-8')}; 0")
    return cast("list[str]", tab.run(_VIOLATIONS))


@pytest.mark.parametrize(
    ("width", "language", "dark"),
    [(1440, "en", False), (1440, "zh", True), (390, "en", True), (390, "zh", False)],
)
def test_axe_finds_nothing(
    browser: Chromium, site: tuple[str, list[str]], width: int, language: str, dark: bool
):
    base, pages = site
    tab = browser.tab(width=width, language=language, dark=dark)
    found: dict[str, list[str]] = {}
    for path in pages:
        tab.go(base + path)
        if wrong := violations(tab):
            found[path] = wrong
    assert {} == found


def test_a_violation_is_noticed(browser: Chromium, site: tuple[str, list[str]]):
    """The test above can fail."""
    tab = browser.tab()
    tab.go(site[0])
    tab.run("document.querySelector('main').append(document.createElement('button'))")
    assert ["button-name: <button></button>"] == violations(tab)
