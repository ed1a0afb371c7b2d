"""The gateway's traffic in a real browser: requests appear by themselves."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pagefile.inspector import urls
from tests.gateway.behind import Behind, behind
from tests.gateway.scripts import echo
from tests.gateway.upstream import Fault
from tests.heavy import heavy

from .chromium import Chromium, chromium, chromium_path

pytestmark = [heavy("chromium"), pytest.mark.waits]
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
PRICES = 'currency = "USD"\n["gpt-5"]\ninput = 1.25\noutput = 10\n["<b>"]\ninput = 1\noutput = 1'


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium(str(chromium_path())) as running:
        yield running


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    path = tmp_path_factory.mktemp("gateway")
    (path / "prices.toml").write_text(PRICES)

    def script(body):
        return Fault(status=529) if "overloaded" in json.dumps(body) else echo(body)

    with behind(script, path, gateway={"prices": str(path / "prices.toml")}) as running:
        for model in ("gpt-5", "gpt-5-mini-2026-08-07", '<img src=x onerror="window.ran = 1">', "overloaded"):
            _ask(running, model)
        _ask(running, "gpt-5", **{"x-pagefile-mode": "record"})
        yield running


def _ask(here: Behind, model: str, **headers: str) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "Where do I live?"}], "user": "ada"}
    httpx.post(f"{here.url}/v1/chat/completions", json=body, headers=headers)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_sound(
    browser: Chromium, here: Behind, tmp_path: Path, width: int, language: str, dark: bool
):
    tab = browser.tab(width=width, language=language, dark=dark)
    tab.go(f"{here.url}{urls.GATEWAY}?paused=yes")
    tab.screenshot(tmp_path / f"gateway-{width}-{language}-{'dark' if dark else 'light'}.png", whole=True)
    assert [] == (tab.run(AUDIT) or [])
    assert tab.run("window.ran === undefined")
    assert tab.run("document.querySelectorAll('tbody tr').length >= 5")
    assert [] == tab.complaints()


def test_a_request_appears_by_itself(browser: Chromium, here: Behind):
    tab = browser.tab()
    tab.go(here.url + urls.GATEWAY)
    _ask(here, "gpt-5-that-came-later")
    tab.wait_for("document.querySelector('tbody')?.innerText.includes('gpt-5-that-came-later')")
    assert [] == tab.complaints()
