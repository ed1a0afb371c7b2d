"""Whatever a key's holder asks of whatever page, nothing of another's comes back, and no form changes another's."""

import re

import anyio
import pytest
from hypothesis import given, settings

from pagefile.inspector import site, urls
from pagefile.records import Scope
from tests.property.service.worlds import TENANTS, USERS, Wish, a_world, holders, mark, wishes

PATHS = [
    *(page.path for page in site.PAGES),
    urls.HOME,
    urls.GATEWAY,
    urls.METRICS,
    urls.SETTINGS,
    urls.EXPERIMENT,
]
BASE = "http://127.0.0.1:8780"


def may_see(holder: Scope, other: Scope) -> bool:
    """A tenant's key sees the tenant, a user's key that user; nobody's conversations are the tenant's."""
    return holder.tenant == other.tenant and holder.user in {None, other.user}


def asked(world, wish: Wish) -> dict[str, str]:
    """A query string as it may be made up by somebody who has read every id there is."""
    thing = world.ids[wish.thing % len(world.ids)]
    names = {"tenant": wish.tenant, "user_id": wish.user}
    if wish.conversation < len(USERS):
        names["conversation_id"] = world.conversations[wish.conversation]
    values = {key: value for key, value in names.items() if value is not None}
    return {
        **values,
        "call_id": thing,
        "uuid": thing,
        "open": thing,
        "turn": thing,
        "id": thing,
        "q": "高血压",
        "history": "yes",
        "set.window_tokens": "3000",
    }


@pytest.mark.slow
@settings(max_examples=15)
@given(holders, wishes)
def test_a_page_shows_only_its_readers_own(holder: Scope, wish: Wish):
    """As a page and as JSON."""

    async def check() -> None:
        async with a_world() as world:
            shown = await world.key(holder)
            for path in PATHS:
                for place in (path, urls.twin(path)):
                    answer = await world.client.get(
                        place, params=asked(world, wish), headers={**shown, "Accept": "text/html"}
                    )
                    assert answer.status_code < 500, (place, answer.text)
                    for tenant in TENANTS:
                        for user in USERS:
                            if not may_see(holder, Scope(tenant, user)):
                                assert mark(Scope(tenant, user)) not in answer.text, (place, answer.url)

    anyio.run(check)


@pytest.mark.slow
@settings(max_examples=15)
@given(holders, wishes)
def test_no_form_changes_anothers(holder: Scope, wish: Wish):
    """Facts, pins, chats and erasures named in every way: what others hold is the same afterwards."""

    async def check() -> None:
        async with a_world() as world:
            shown = await world.key(holder)
            others = [scope for t in TENANTS for u in USERS if not may_see(holder, scope := Scope(t, u))]
            before = {scope: await world.lines(scope) for scope in others}
            first = await world.client.get("/", headers=shown)
            token = re.search(r"pagefile_form=([\w-]+)", first.headers["set-cookie"])
            assert token is not None
            query = asked(world, wish)
            fields = {
                "token": token[1],
                "confirm": query.get("conversation_id", wish.user or ""),
                "fact_id": query["uuid"],
                "text": "喜欢咖啡",
                "message": "你好",
                "subject": "call",
                "id": query["uuid"],
                "labels": "x",
                "set.window_tokens": "3000",
            }
            for path in (
                urls.PAGE,
                urls.FACTS,
                urls.CHAT,
                urls.ERASE,
                urls.DEMO,
                urls.NOTE,
                urls.EXPERIMENTS,
                urls.EXPERIMENT,
                urls.MODEL,
            ):
                for what in ("add", "edit", "retract", "undo"):
                    answer = await world.client.post(
                        path, params=query, data={**fields, "what": what}, headers={**shown, "Origin": BASE}
                    )
                    assert answer.status_code < 500, (path, answer.text)
            assert before == {scope: await world.lines(scope) for scope in others}

    anyio.run(check)
