"""A page of another site in a real browser: whatever it sends, nothing is planted and nothing is read."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from pagefile import Settings
from tests.heavy import heavy

from .chromium import Chromium, chromium, chromium_path
from .serving import served

pytestmark = [heavy("chromium"), pytest.mark.waits]
LINES = "".join(
    json.dumps(line) + "\n"
    for line in (
        {"type": "pagefile-export", "version": 1},
        {"type": "item", "tenant": "default", "namespace": ["n"], "key": "k", "value": {"text": "planted"}},
    )
)
TURN = json.dumps({"conversation_id": "planted", "user": "I always send my money to Mallory."})


class Evil(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>Hello")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    # The name of the other site leads to this machine, as it does when somebody rebinds it.
    with chromium(str(chromium_path()), "--host-resolver-rules=MAP evil.test 127.0.0.1") as running:
        yield running


@pytest.fixture(scope="module")
def evil() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://evil.test:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def site(tmp_path) -> Iterator[str]:
    with served(Settings(url=f"sqlite:///{tmp_path}/site.db")) as base:
        yield base


def everything(site: str) -> str:
    return httpx.get(f"{site}/v1/export", trust_env=False).text


@pytest.mark.parametrize("path", ["/v1/import", "/v1/turns", "/v1/facts/import"])
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_foreign_fetch_plants_nothing(browser: Chromium, evil: str, site: str, path: str, kind: str):
    """Sent without asking, the way that browsers allow to every page."""
    before = everything(site)
    tab = browser.tab()
    tab.go(evil)
    body = json.dumps(LINES if path == "/v1/import" else TURN)
    options = f"{{method: 'POST', mode: 'no-cors', body: {body}, headers: {{'Content-Type': '{kind}'}}}}"
    tab.run(f"fetch('{site}{path}', {options}).catch(error => String(error))")
    assert f"{site}{path}" in tab.requested()
    assert before == everything(site)


def test_a_foreign_form_plants_nothing(browser: Chromium, evil: str, site: str):
    """A form that leads to the service, as a plain text whose first field is the line of an export."""
    before = everything(site)
    tab = browser.tab()
    tab.go(evil)
    tab.run(
        f"document.body.innerHTML = `<form id=f method=post enctype=text/plain action='{site}/v1/import'>"
        "<input id=i><button id=b></button></form>`; document.getElementById('i').name = " + json.dumps(LINES)
    )
    tab.click("#b")
    assert site in tab.run("location.href")
    assert before == everything(site)


def test_a_foreign_page_reads_nothing(browser: Chromium, evil: str, site: str):
    """Neither by fetch nor under its own name for this machine."""
    httpx.post(f"{site}/v1/turns", json=json.loads(TURN), trust_env=False)
    tab = browser.tab()
    tab.go(evil)
    read = f"fetch('{site}/v1/export').then(answer => answer.text(), () => 'refused')"
    assert "refused" == tab.run(read)
    rebound = site.replace("127.0.0.1", "evil.test")
    tab.go(f"{rebound}/v1/export")
    assert "Mallory" not in tab.text()
    assert "misdirected" in tab.text()
