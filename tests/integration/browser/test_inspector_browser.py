"""The inspector in a real browser: clicked through in both languages, at two widths, in both themes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from pagefile import BlockingMemory, Settings
from pagefile.inspector import urls
from pagefile.settings import ServiceSettings
from tests.acceptance.inspector_story import CHAT, USER, every_page, told
from tests.heavy import heavy

from .chromium import Chromium, chromium, chromium_path
from .serving import served

pytestmark = [heavy("chromium"), pytest.mark.waits]
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium(str(chromium_path())) as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service, with a story in it that would do harm in careless pages."""
    with served(Settings(url=f"sqlite:///{tmp_path_factory.mktemp('site')}/site.db")) as base:
        yield base


@pytest.fixture(scope="module")
def about(site: str) -> dict[str, str]:
    async def write() -> dict[str, str]:
        async with httpx.AsyncClient(base_url=site, trust_env=False, timeout=30) as client:
            return await told(client)

    return anyio.run(write)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_sound(
    browser: Chromium, site: str, about: dict[str, str], width: int, language: str, dark: bool
):
    """Nothing that was said runs, nothing is asked of another site, the console is silent, and the audit finds nothing."""
    tab = browser.tab(width=width, language=language, dark=dark)
    findings: dict[str, list[str]] = {}
    for path in every_page(about):
        tab.go(site + path)
        if found := tab.run(AUDIT):
            findings[path] = found
        # What is folded away must be readable, too: the form that edits a fact was white on white.
        tab.run("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        if found := [one for one in tab.run(AUDIT) if not one.startswith("heading jumps")]:
            findings[f"{path} (unfolded)"] = found
        assert tab.run(
            "window.ran === undefined && document.querySelectorAll('main script, main iframe, main img').length === 0"
        ), path
    assert {} == findings
    assert [] == tab.complaints()
    # The picture in Chromium's own field for a date is in its address.
    assert [] == [url for url in tab.requested() if not url.startswith((site, "data:"))]


@pytest.mark.parametrize(
    ("language", "chat", "timeline", "bills", "bill", "replay"),
    [
        ("en", "Chat", "Timeline", "Model calls", "Model call", "Compare and replay"),
        ("zh", "对话", "时间线", "模型调用", "模型调用", "对比与重放"),
    ],
)
def test_the_way_to_a_bill(
    browser: Chromium,
    site: str,
    about: dict[str, str],
    language: str,
    chat: str,
    timeline: str,
    bills: str,
    bill: str,
    replay: str,
):
    """From the first page to a conversation, to its calls, to one bill, to a replay with a smaller window."""
    tab = browser.tab(language=language)
    tab.go(site)
    assert chat in tab.text("nav")
    tab.click("main table tbody a")
    assert timeline in tab.text(".tabs [aria-current]")
    tab.click(f'.tabs a[href^="{urls.CALLS}"]')
    assert bills == tab.text("h1")
    assert tab.run("document.querySelectorAll('.chart .with').length > 0")
    tab.click("main table tbody a")
    assert bill == tab.text("h1")
    tab.click(f'a.button[href^="{urls.REPLAY}"]')
    assert replay == tab.text("h1")
    tab.run("document.querySelector('[name=\"set.window_tokens\"]').value = '2600'")
    tab.click("form.ask button.primary")
    assert "/ 2,600" in tab.text(".two") or "of 2,600" in tab.text(".two")
    assert [] == tab.complaints()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_an_archived_result_opens_in_place(browser: Chromium, site: str, about: dict[str, str], script: bool):
    """With the script it is fetched and is there as text; without, the link leads to the same place."""
    tab = browser.tab(script=script)
    path = next(one for one in every_page(about) if one.startswith(urls.CONVERSATION + "?"))
    tab.go(f"{site}{path}&after=0")
    tab.run("document.querySelector('details.step').open = true")
    tab.click("a[data-open]", leads_on=not script)
    tab.wait_for("document.querySelector('details.step[open] .whole')?.innerText.includes('第 100 行')")
    assert tab.run("window.ran === undefined")
    assert [] == tab.complaints()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
@pytest.mark.parametrize(
    ("language", "message", "again", "out", "back"),
    [
        ("en", "How is the site?", "open the archived result: V-42", "Paged out", "Paged in"),
        ("zh", "现场情况怎么样？", "打开存档的原文，看 V-42", "换出", "换入"),
    ],
)
def test_the_chat_pages_out_and_in(
    browser: Chromium, site: str, language: str, message: str, again: str, out: str, back: str, script: bool
):
    """A long result goes out, and comes back when it is asked for; both are said while the answer streams."""
    tab = browser.tab(language=language, script=script)
    tab.go(f"{site}{urls.CHAT}?conversation_id=try-{language}-{script}")
    tab.run(f"document.getElementById('chat-message').value = {message!r}")
    tab.run("document.querySelector('[name=sample]').checked = true")
    tab.click("#chat button", leads_on=not script)
    tab.wait_for(f"document.getElementById('chat-log').innerText.includes({out!r})")
    tab.wait_for("!document.querySelector('#chat button').disabled")
    tab.run(f"document.getElementById('chat-message').value = {again!r}")
    tab.click("#chat button", leads_on=not script)
    tab.wait_for(f"document.getElementById('chat-log').innerText.includes({back!r})")
    tab.wait_for("document.getElementById('chat-log').innerText.includes('SP-7731')")
    assert [] == tab.complaints()


def test_a_link_leads_to_the_turn(browser: Chromium, site: str, about: dict[str, str]):
    """The page opens where the turn is, and the turn is marked."""
    tab = browser.tab(height=600)
    path = next(
        one for one in every_page(about) if one.startswith(urls.CONVERSATION + "?") and "turn=turn-5" in one
    )
    tab.go(f"{site}{path}#here")
    place = "document.querySelector('.entry.sought').getBoundingClientRect().top"
    tab.wait_for(f"-5 <= {place} && {place} < 300")
    assert "问题 5" in tab.text(".entry.sought")
    assert [] == tab.complaints()


def test_the_chat_opens_at_the_newest_turn(browser: Chromium, site: str):
    """With the box to write in beneath it, without a script too."""
    with httpx.Client(base_url=site, trust_env=False) as client:
        for number in range(14):
            turn = {
                "conversation_id": "long-chat",
                "user": f"Question {number} " * 30,
                "assistant": "Yes. " * 60,
            }
            client.post("/v1/turns", json=turn)
    for script in (True, False):
        tab = browser.tab(script=script, height=900)
        tab.go(f"{site}{urls.CHAT}?conversation_id=long-chat")
        last, box = (
            tab.run(f"document.querySelector('{part}').getBoundingClientRect().bottom")
            for part in ("#chat-log > li:last-child", ".chat-box")
        )
        assert last <= box + 2
        assert tab.run("document.getElementById('chat-message').getBoundingClientRect().top < 1200")


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_request_of_the_reference_is_sent(browser: Chromium, site: str, script: bool):
    """A POST with the script, a GET without one too."""
    tab = browser.tab(script=script)
    if script:
        tab.go(f"{site}{urls.DOCS}/turns")
        tab.run(
            "document.querySelector('#post-v1-turns').closest('section').querySelector('details').open = true"
        )
        tab.click("section:has(> #post-v1-turns) form.try button", leads_on=False)
        shown = "document.querySelector('section:has(> #post-v1-turns) .result').textContent"
        tab.wait_for(f"{shown}.startsWith('201')")
        assert "penicillin" in tab.run(shown)
    else:
        tab.go(f"{site}{urls.DOCS}/health")
        tab.click("section:has(> #get-healthz) form.try button")
        assert '"status"' in tab.text()
    assert [] == tab.complaints()


def test_an_experiment_in_the_browser(browser: Chromium, site: str, about: dict[str, str]):
    """Chosen, run, watched and read."""
    tab = browser.tab()
    tab.go(f"{site}{urls.EXPERIMENTS}")
    tab.run("document.querySelector('main details').open = true")
    tab.run("document.querySelector('[name=\"set.window_tokens\"]').value = '2400'")
    tab.run("document.querySelector('[name=name]').value = 'A smaller window'")
    tab.click("main form button.primary")
    assert "A smaller window" == tab.text("h1")
    tab.wait_for("!document.querySelector('progress') && !!document.querySelector('.chart')")
    assert "Evidence kept" in tab.text("main")
    assert [] == tab.complaints()


def test_the_keyboard_reaches_everything(browser: Chromium, site: str, about: dict[str, str]):
    """The first stop leads past the navigation, every stop can be seen, and the end is reached."""
    tab = browser.tab()
    path = next(one for one in every_page(about) if one.startswith(urls.FACTS + "?"))
    tab.go(site + path)
    stops: list[str] = []
    for _ in range(200):
        for kind in ("rawKeyDown", "keyUp"):
            tab.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        stop = tab.run(
            "(() => { const a = document.activeElement, s = getComputedStyle(a); return a === document.body ? '' : "
            "a.matches(':focus-visible') && s.outlineStyle !== 'none' ? a.tagName : `unseen ${a.outerHTML.slice(0, 80)}`; })()"
        )
        if not stop:
            break
        stops.append(stop)
    assert [] == [stop for stop in stops if stop.startswith("unseen")]
    reachable = tab.run(
        "[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]')]"
        ".filter((one) => one.checkVisibility()).length"
    )
    assert reachable <= len(stops)


def test_erasing_in_the_browser(browser: Chromium, site: str):
    """The name is typed, the receipt is shown, the conversation is gone."""
    with httpx.Client(base_url=site, trust_env=False) as client:
        client.post("/v1/turns", json={"conversation_id": "删掉我", "user": "再见"})
    tab = browser.tab(language="zh")
    tab.go(f"{site}{urls.ERASE}?conversation_id=%E5%88%A0%E6%8E%89%E6%88%91")
    tab.run("document.querySelector('[name=confirm]').value = '删掉我'")
    tab.click("button.danger")
    assert "回执" in tab.text("main")
    tab.go(f"{site}{urls.CONVERSATIONS}")
    assert "删掉我" not in tab.text("main")
    assert [] == tab.complaints()


def test_signing_in_and_out(browser: Chromium, tmp_path: Path):
    """The key goes into a cookie that the page itself cannot read; the page that was asked for comes, and goes."""
    url = f"sqlite:///{tmp_path}/locked.db"
    with BlockingMemory.open(url) as memory:
        memory.conversation("秘密", tenant="clinic").record("我对青霉素过敏。", "已记录。")
    said = subprocess.run(
        [sys.executable, "-m", "pagefile", "keys", "add", "me", "--tenant", "clinic", "--json", "--db", url],
        capture_output=True,
        check=True,
    )
    key = json.loads(said.stdout)["key"]
    with served(Settings(url=url, service=ServiceSettings(require_keys=True))) as base:
        tab = browser.tab()
        tab.go(base + urls.CONVERSATIONS)
        assert "秘密" not in tab.text()
        tab.run(f"document.querySelector('[name=key]').value = {key!r}")
        tab.click("button.primary")
        assert "秘密" in tab.text("main")
        assert key not in tab.run("document.cookie")
        tab.click(".switches button")
        tab.go(base + urls.CONVERSATIONS)
        assert "秘密" not in tab.text()
        assert all("401" in complaint for complaint in tab.complaints())


def test_the_story_is_there(browser: Chromium, site: str, about: dict[str, str]):
    """The tests above looked at something: the harmful names are there, to be read."""
    tab = browser.tab()
    tab.go(f"{site}{urls.CONVERSATIONS}")
    assert CHAT in tab.text("main")
    assert USER in tab.text("main")
