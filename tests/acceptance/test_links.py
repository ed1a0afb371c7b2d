"""Every link of the inspector leads somewhere: the pages over the demo are walked from the first one, in both languages."""

import re
from collections import Counter
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from pagefile import Settings
from pagefile.inspector import urls
from pagefile.inspector.demo import fill_demo
from pagefile.inspector.demo.script import PEOPLE
from pagefile.settings import EmbedderSettings

from .http_serving import serving
from .inspector_story import sent_form

pytestmark = [pytest.mark.anyio, pytest.mark.waits]
#: How many pages of a kind are looked at; the links of each are all checked for their kind.
_OF_A_KIND = 6
_LINKS = re.compile(r'<(?:a|link)\b[^>]*?\bhref="([^"]*)"')


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The service over a part of the demo, with an experiment."""
    settings = Settings(url=f"sqlite:///{tmp_path}/demo.db", embedder=EmbedderSettings(name="none"))
    await fill_demo(settings, people=[one for one in PEOPLE if one.user_id == "demo-wei"])
    async with serving(settings) as client:
        await sent_form(
            client, urls.EXPERIMENTS, {"name": "smaller", "limit": "5", "set.window_tokens": "3000"}
        )
        yield client


def links(html: str, here: str) -> set[str]:
    """Where a page leads; what a form asks for depends on its reader."""
    return {urljoin(here, unescape(place)) for place in _LINKS.findall(html)}


def kind(place: str) -> str:
    """Links of a kind differ in their values alone."""
    parts = urlsplit(place)
    return f"{parts.path}?{'&'.join(sorted(parse_qs(parts.query)))}"


async def walked(client: httpx.AsyncClient, language: str) -> tuple[Counter[str], list[str]]:
    """The kinds of pages that were opened, and the links that lead nowhere."""
    opened, dead = Counter[str](), list[str]()
    seen, places = set[str](), [(urls.HOME, "")]
    for place, origin in places:
        url, _, fragment = place.partition("#")
        if url in seen or opened[kind(url)] >= _OF_A_KIND:
            continue
        seen.add(url)
        opened[kind(url)] += 1
        client.cookies.clear()
        answer = await client.get(
            url, headers={"Accept": "text/html", "Accept-Language": language}, follow_redirects=True
        )
        html = answer.text if "html" in answer.headers["content-type"] else ""
        if answer.status_code != 200:
            dead.append(f"{answer.status_code} {url}, from {origin}")
        elif fragment and f'id="{fragment}"' not in html:
            dead.append(f"no #{fragment} in {url}, from {origin}")
        places += [(one, url) for one in sorted(links(html, url))]
    return opened, dead


@pytest.mark.slow
async def test_every_link_leads_somewhere(site: httpx.AsyncClient):
    """And every page can be reached by links alone."""
    # What is sent to these changes something, or it is no page.
    others = {
        urls.NOTE,
        urls.MODEL,
        urls.LOGIN,
        urls.LOGOUT,
        urls.DEMO,
        urls.STREAM,
        urls.SCRIPT,
        urls.FAVICON,
        urls.BASE,
    }
    pages = {value for name, value in vars(urls).items() if name.isupper()} - others
    for language in ("en", "zh"):
        opened, dead = await walked(site, language)
        assert [] == dead
        assert set() == pages - {urlsplit(one).path for one in opened}


def test_a_dead_link_is_noticed():
    """The walk reads links of all kinds, and no forms."""
    html = """<a class="x" href="/a?b=1&amp;c=2#here">a</a><link rel="icon" href="i.svg"><form action="/p">"""
    assert {"/a?b=1&c=2#here", "/i.svg"} == links(html, "/")
    assert "/a?b&c" == kind("/a?c=2&b=1")
