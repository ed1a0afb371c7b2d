"""The inspector as a studio: search, live tail, traces, notes, experiments, settings, usage, the model of the chat."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import pytest

from pagefile import Memory, Settings
from pagefile.inspector import urls
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings, ModelSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key
from tests.waiting import until

from .http_serving import serving
from .inspector_story import sent_form
from .model_stub import ModelStub

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}
AMY = {"conversation_id": "chat", "user_id": "amy"}


@pytest.fixture
async def client():
    settings = Settings(url="memory://", archive=ArchiveSettings(threshold=400))
    async with serving(settings) as client:
        yield client


@pytest.fixture
async def told(client):
    """A conversation of sixty turns, one of which called a tool, with windows for the last ones."""
    for number in range(60):
        turn = {**AMY, "id": f"t{number}", "user": f"Question {number}?", "assistant": f"Answer {number}."}
        if number == 3:
            turn["steps"] = [
                {"tool": "look", "input": {"at": "harbour"}, "result": "The crane is grey. " * 60}
            ]
        assert 201 == (await client.post("/v1/turns", json={**turn, "agent": "porter"})).status_code
    for number in (60, 61, 62):
        asked = {**AMY, "id": f"t{number}", "user": f"Question {number}?"}
        assert 201 == (await client.post("/v1/turns/begin", json=asked)).status_code
        window = await client.post("/v1/context", json={**AMY, "turn_id": f"t{number}", "window_tokens": 900})
        assert 200 == window.status_code, window.text
        done = {**AMY, "turn_id": f"t{number}", "assistant": f"Answer {number}."}
        assert 200 == (await client.post("/v1/turns/complete", json=done)).status_code
    return (await client.get("/v1/calls", params=AMY)).json()["items"]


async def page(client, path, **params):
    answer = await client.get(path, params=params or None, headers=HTML)
    assert 200 == answer.status_code, answer.text[:2000]
    return answer.text


def links(html, words):
    """Where the links lead that say this."""
    found = re.findall(r'<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>', html, re.DOTALL)
    return [unescape(place) for place, text in found if words in re.sub(r"<[^>]*>", "", text)]


async def leads_to(client, place, turn):
    """Whether a link leads to a turn: its page marks it, and it is there that the fragment points."""
    path, _, fragment = place.partition("#")
    html = await page(client, path)
    entry = re.search(r'<li class="entry turn[^"]* sought"[^>]*>.*?</li>', html, re.DOTALL)
    return "here" == fragment and entry is not None and '<span id="here">' in entry[0] and turn in entry[0]


async def test_a_browser_finds_the_icon_beside_json(client):
    """Which has no link to it."""
    answer = await client.get("/favicon.ico")
    assert (200, "image/svg+xml") == (answer.status_code, answer.headers["content-type"])


# -- links ---------------------------------------------------------------------------------------------------------------


async def test_every_hit_and_source_leads_to_its_turn(client, told):
    """Of recall, of a search, of a fact, of a candidate, of the bill itself; however far back the turn is."""
    fact = {"user_id": "amy", "text": "Amy likes cranes", "source": "t3"}
    assert 201 == (await client.post("/v1/facts", json=fact)).status_code
    recalled = await page(client, urls.RECALL, user_id="amy", q="Question 3?")
    found = (await client.get(f"{urls.RECALL}.json", params={"user_id": "amy", "q": "Question 3?"})).json()
    places = [one for one in links(recalled, "chat") if "turn=" in one]
    assert len(found["hits"]) + len(found["plain"]) == len(places)
    assert await leads_to(client, next(one for one in places if "turn=t3#" in one), "Question 3?")
    facts = await page(client, urls.FACTS, user_id="amy")
    assert await leads_to(client, links(facts, "chat #4")[0], "Question 3?")
    bill = await page(client, urls.CALL, call_id=told[0]["id"])
    assert await leads_to(client, links(bill, "Show in the timeline")[0], "Question 62?")
    assert await leads_to(client, links(bill, "Question 61?")[0], "Question 61?")


async def test_a_link_to_a_turn_that_is_gone(client, told):
    """Is told to be."""
    answer = await client.get(urls.CONVERSATION, params={**AMY, "turn": "nothing"}, headers=HTML)
    assert 404 == answer.status_code


async def test_recall_names_the_users_there_are(client, told):
    """A user that nobody is, or none at all: those that exist are offered."""
    wrong = await page(client, urls.RECALL, user_id="nobody", q="crane")
    assert "There is no user nobody" in wrong
    assert [f"{urls.RECALL}?user_id=amy&q=crane"] == links(wrong, "amy")
    assert [f"{urls.RECALL}?user_id=amy"] == links(await page(client, urls.RECALL), "amy")


# -- the bill --------------------------------------------------------------------------------------------------------------


async def test_the_bill_shows_prompt_and_answer_first(client, told):
    """Before any table: the parts in their colours, the question, the answer; words where there were ids and enum names."""
    html = await page(client, urls.CALL, call_id=told[0]["id"])
    places = [
        html.index(part)
        for part in ('class="part p-recent"', "Answer 62.", 'class="bill"', 'class="verdicts"')
    ]
    assert sorted(places) == places
    assert "SUMMARY_N" not in html
    assert "FULL_HISTORY" not in html
    chinese = await client.get(
        urls.CALL, params={"call_id": told[0]["id"]}, headers={**HTML, "Accept-Language": "zh"}
    )
    assert "FULL_HISTORY" not in chinese.text
    assert "SUMMARY_N" not in chinese.text


async def test_a_short_conversation_has_saved_nothing_yet(client):
    """Which is said in words, not as a loss."""
    await client.post("/v1/turns", json={"conversation_id": "short", "user": "Hi", "assistant": "Hello"})
    await client.post("/v1/context", json={"conversation_id": "short", "query": "And now?"})
    call = (await client.get("/v1/calls", params={"conversation_id": "short"})).json()["items"][0]
    html = await page(client, urls.CALL, call_id=call["id"])
    assert "nothing to save yet" in html
    assert "−" not in re.sub(r"<[^>]*>", "", html.split("<main")[1].split("Prompt")[0])


async def test_the_model_that_answered_is_in_the_bill_and_in_the_trace():
    """Its name and how long it took, after the process that asked it has ended too."""
    with ModelStub(lambda _request: ["The crane is grey."]) as stub:
        model = ModelSettings(name="stub-model", base_url=stub.url, api_key="sk-secret")
        async with serving(Settings(url="memory://", model=model)) as client:
            await sent_form(
                client, f"{urls.CHAT}?conversation_id=try&user_id=amy", {"message": "Which crane?"}
            )
            call = (
                await client.get("/v1/calls", params={"conversation_id": "try", "user_id": "amy"})
            ).json()["items"][0]
            bill = await page(client, urls.CALL, call_id=call["id"])
            trace = await page(client, urls.TRACE, conversation_id="try", user_id="amy", turn=call["turn_id"])
            for html in (bill, trace):
                assert "stub-model" in html
                assert re.search(r"\d+ ms|\d\.\d s", html)
            usage = (await client.get(f"{urls.METRICS}.json")).json()["usage"]
            assert (1, 1) == (usage["days"][0]["calls"], usage["days"][0]["answered"])


# -- search, live, traces ------------------------------------------------------------------------------------------------


async def test_search_finds_what_anybody_said(client, told):
    """Words of the user, of the assistant and of a tool; filters; slices that lead on; and what is wrong is said."""
    assert ["t3"] == await found(client, q="grey crane")
    assert ["t57", "t47", "t37", "t27", "t17", "t7"] == await found(client, q="question 7?")
    assert 1 == len(await found(client, q="Answer 59."))
    assert ["t3"] == await found(client, tool="look")
    assert [] == await found(client, q="crane", user_id="bob")
    assert 63 == len(await found(client, agent="porter"))
    assert 63 == len(await found(client, since="2000-01-01"))
    assert [] == await found(client, until="2000-01-01", q="question")
    html = await page(client, urls.SEARCH, q="question")
    assert "<mark>Question</mark>" in html
    assert "log entries searched" in html
    # What was said keeps its lines, and the snippet of a long result has its match in sight.
    assert "</mark> 59?\nAnswer 59." in html
    long = await page(client, urls.SEARCH, q="harbour grey")
    assert "<mark>grey</mark>" in long
    for wrong in ({"since": "yesterday"}, {"q": "x " * 9}, {"after": "nonsense", "q": "x"}):
        assert 422 == (await client.get(f"{urls.SEARCH}.json", params=wrong)).status_code


async def found(client, **params):
    ids, after = [], None
    while True:
        answer = await client.get(
            f"{urls.SEARCH}.json", params={**params, **({"after": after} if after else {})}
        )
        slice_ = answer.json()["found"]
        ids += [one["turn"]["id"] for one in slice_["turns"]]
        assert len(slice_["turns"]) <= 20
        after = slice_["next"]
        if after is None:
            return ids


async def test_the_newest_is_live(client, told):
    """Turns and windows, newest first, loaded again by itself unless it is paused."""
    live = await client.get(urls.LIVE, headers=HTML)
    assert "3" == live.headers["refresh"]
    assert "refresh" not in (await client.get(f"{urls.LIVE}?paused=yes", headers=HTML)).headers
    await client.post("/v1/turns/begin", json={**AMY, "id": "now", "user": "Is it live?"})
    events = (await client.get(f"{urls.LIVE}.json")).json()["events"]
    assert ("turn", "open", "Is it live?") == tuple(events[0][key] for key in ("kind", "status", "text"))
    assert {"turn", "window", "checkpoint"} == {event["kind"] for event in events}
    assert [] == (await client.get(f"{urls.LIVE}.json", params={"user_id": "bob"})).json()["events"]


async def test_a_trace_is_a_tree(client):
    """The question, the window, the tools that the model called with it, the next window, the answer."""
    await client.post("/v1/turns/begin", json={**AMY, "id": "a", "user": "Which crane?"})
    await client.post("/v1/context", json={**AMY, "turn_id": "a"})
    step = {**AMY, "turn_id": "a", "tool": "look", "input": {"at": "quay"}, "result": "grey " * 200}
    assert 200 == (await client.post("/v1/turns/step", json=step)).status_code
    await client.post("/v1/context", json={**AMY, "turn_id": "a"})
    await client.post("/v1/turns/complete", json={**AMY, "turn_id": "a", "assistant": "The grey one."})
    html = await page(client, urls.TRACE, **AMY, turn="a")
    tree = html.split('<ol class="tree">', 1)[1]
    places = [
        tree.index(part)
        for part in ("Which crane?", "Model call", '<ol class="tree">', "look", "The grey one.")
    ]
    assert sorted(places) == places
    assert 2 == len(links(tree, "Model call"))
    assert 1 == len(links(tree, "Archived result"))
    told = (await client.get(f"{urls.TRACE}.json", params={**AMY, "turn": "a"})).json()
    assert [0, 1] == [call["options"]["moment"]["steps"] for call in told["calls"]]


async def test_a_note_is_written_found_and_taken_away(client, told):
    """On a turn and on a call; by its words and by its label; sent empty it is gone."""
    there = f"{urls.NOTE}?conversation_id=chat&user_id=amy"
    wrong = {"subject": "turn", "id": "t7", "labels": "wrong, price", "text": "Off by a cent"}
    back = await sent_form(client, there, wrong)
    assert "Off by a cent" in await page(client, back.headers["location"])
    await sent_form(client, there, {**wrong, "subject": "call", "id": told[0]["id"]})
    assert "Off by a cent" in await page(client, urls.CALL, call_id=told[0]["id"])
    for asked in ({"label": "price"}, {"q": "CENT"}):
        notes = (await client.get(f"{urls.SEARCH}.json", params=asked)).json()["notes"]
        assert {"turn", "call"} == {note["subject"] for note in notes}
    html = await page(client, urls.SEARCH, label="price")
    assert await leads_to(client, links(html, "Turn")[0], "Question 7?")
    await sent_form(client, there, {"subject": "turn", "id": "t7", "labels": " ,", "text": ""})
    notes = (await client.get(f"{urls.SEARCH}.json", params={"label": "price"})).json()["notes"]
    assert ["call"] == [note["subject"] for note in notes]
    for bad in ({"id": "nothing"}, {"id": ""}, {"text": "x" * 5000}):
        assert (await sent_form(client, there, {**wrong, **bad})).status_code in {404, 422}


# -- experiments -----------------------------------------------------------------------------------------------------------


async def test_an_experiment_runs_and_is_opened_again(client, told):
    """Progress while it runs; tokens, evidence and reuse of all calls; a link to each; removed when asked to."""
    fields = {"name": "half", "user_id": "amy", "set.window_tokens": "450", "limit": "10"}
    begun = await sent_form(client, urls.EXPERIMENTS, fields)
    assert 303 == begun.status_code, begun.text
    place = begun.headers["location"]
    await until(lambda: ended(client, place))
    one = (await client.get(place.replace("?", ".json?"))).json()
    assert (3, 0) == (one["totals"]["calls"], one["totals"]["failed"])
    assert one["totals"]["tokens"][1] < one["totals"]["tokens"][0]
    assert one["totals"]["kept"] < one["totals"]["evidence"][0]
    assert sum(call["tokens"] for call in told) == one["totals"]["tokens"][0]
    html = await page(client, place)
    assert "window_tokens = 450" in html
    compare = links(html, "Compare")
    assert 3 == len(compare)
    assert "450" in await page(client, compare[0])
    assert "half" in await page(client, urls.EXPERIMENTS)
    gone = await sent_form(client, urls.EXPERIMENT, {"id": one["experiment"]["id"]})
    assert 303 == gone.status_code
    assert 404 == (await client.get(place, headers=HTML)).status_code


async def ended(client, place):
    answer = await client.get(place.replace("?", ".json?"))
    return not answer.json()["running"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"set.window_tokens": "many"},
        {"set.nonsense": "1"},
        {"set.tokenizer": "file:/etc/passwd"},
        {"set.window_tokens": "450", "user_id": "nobody"},
        {"set.window_tokens": "450", "since": "tomorrow"},
    ],
)
async def test_an_experiment_that_cannot_be(client, told, fields):
    """Is refused before it begins, in words."""
    answer = await sent_form(client, urls.EXPERIMENTS, fields)
    assert 422 == answer.status_code, answer.text
    assert [] == (await client.get(f"{urls.EXPERIMENTS}.json")).json()["rows"]


# -- settings, and the model of the chat -------------------------------------------------------------------------------------


async def test_the_settings_in_force(tmp_path, monkeypatch):
    """Where each comes from, what a restart would change, and nothing that is secret."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pagefile.toml").write_text("window_tokens = 9000\nrecent_turns = 3\n")
    monkeypatch.setenv("PAGEFILE_FACTS__ENABLED", "false")
    model = ModelSettings(name="gpt-x", api_key="sk-very-secret")
    settings = Settings(url="memory://", window_tokens=9000, recent_turns=5, model=model)
    settings = replace(settings, facts=replace(settings.facts, enabled=False))
    async with serving(settings) as client:
        told = (await client.get(f"{urls.SETTINGS}.json")).json()
        found = {one["name"]: one for one in told["settings"]}
        assert "pagefile.toml" in found["window_tokens"]["origin"]
        assert "$PAGEFILE_FACTS__ENABLED" == found["facts.enabled"]["origin"]
        assert ("start", 3) == (found["recent_turns"]["origin"], found["recent_turns"]["next"])
        assert ("start", "***") == (found["model.api_key"]["origin"], found["model.api_key"]["value"])
        assert "default" == found["threshold"]["origin"]
        html = await page(client, urls.SETTINGS)
        assert "sk-very-secret" not in html + str(told)
        (tmp_path / "pagefile.toml").write_text("windw_tokens = 1\n")
        assert "cannot be read now" in await page(client, urls.SETTINGS)


async def test_a_model_is_set_for_this_process(client, caplog):
    """It answers; its key is on no page and in no log; naming none takes it away."""
    with ModelStub(lambda _request: ["I am the chosen one."]) as stub:
        fields = {"name": "chosen", "base_url": stub.url, "api_key": "sk-process-only"}
        assert 303 == (await sent_form(client, urls.MODEL, fields)).status_code
        assert "Answers come from chosen." in await page(client, urls.CHAT)
        there = f"{urls.CHAT}?conversation_id=try"
        assert 303 == (await sent_form(client, there, {"message": "Who are you?"})).status_code
        html = await page(client, there)
        assert "I am the chosen one." in html
        assert "sk-process-only" not in html + caplog.text + await page(client, urls.SETTINGS)
    assert 422 == (await sent_form(client, urls.MODEL, {"name": "x", "base_url": "file:///etc"})).status_code
    assert 303 == (await sent_form(client, urls.MODEL, {"name": ""})).status_code
    assert "scripted model answers" in await page(client, urls.CHAT)


@pytest.fixture
async def locked(tmp_path):
    """A service that asks for keys, with a note of each user and an experiment over both."""
    url, keys = f"sqlite:///{tmp_path}/locked.db", {}
    async with Memory.open(url, embedder="none") as memory:
        for name, scope in (
            ("clinic", Scope("clinic")),
            ("amy", Scope("clinic", "amy")),
            ("other", Scope("other")),
        ):
            key, keys[name] = new_key(name, scope, created=datetime.now(UTC))
            await memory.engine.store.keys.add(key)
        for user in ("amy", "bob"):
            chat = memory.conversation(f"chat-{user}", user_id=user, tenant="clinic")
            await chat.record(f"I am {user}, allergic.", "Noted.", id=f"turn-{user}")
            await chat.context(f"{user}: what may I take?")
    async with serving(Settings(url=url, service=ServiceSettings(require_keys=True))) as client:
        yield client, keys


async def with_key(client, key, path, fields):
    """Send a form as the holder of a key."""
    first = await client.get("/", headers={"Accept": "text/html"})
    token = re.search(r"pagefile_form=([\w-]+)", first.headers["set-cookie"])[1]
    client.cookies.clear()
    return await client.post(
        path,
        data={**fields, "token": token},
        headers={"Cookie": f"pagefile_form={token}; pagefile_key={key}", "Accept": "text/html"},
    )


async def test_experiments_and_notes_stay_with_their_owner(locked):
    """A user's key replays and notes its own only; another tenant's sees nothing; settings and models are the operator's."""
    client, keys = locked
    change = {"set.window_tokens": "600"}
    begun = await with_key(client, keys["clinic"], urls.EXPERIMENTS, {**change, "name": "of the clinic"})
    assert 303 == begun.status_code, begun.text
    assert (
        303
        == (await with_key(client, keys["amy"], urls.EXPERIMENTS, {**change, "name": "of amy"})).status_code
    )
    stolen = await with_key(client, keys["amy"], urls.EXPERIMENTS, {**change, "user_id": "bob"})
    assert 403 == stolen.status_code
    chat = await with_key(client, keys["amy"], urls.EXPERIMENTS, {**change, "conversation_id": "chat-bob"})
    assert 403 == chat.status_code
    shown = {}
    for name in ("clinic", "amy", "other"):
        headers = {"Authorization": f"Bearer {keys[name]}"}
        await until(lambda headers=headers: all_ended(client, headers))
        rows = (await client.get(f"{urls.EXPERIMENTS}.json", headers=headers)).json()["rows"]
        shown[name] = {row["name"]: row["total"] for row in rows}
        if name != "clinic":
            there = begun.headers["location"].replace("?", ".json?")
            # By its name another tenant's is refused; for a user of the tenant it is not there.
            expected = 403 if name == "other" else 404
            assert expected == (await client.get(there, headers=headers)).status_code
        for path in (urls.SETTINGS, urls.twin(urls.SETTINGS)):
            assert 403 == (await client.get(path, headers=headers)).status_code
        assert 403 == (await with_key(client, keys[name], urls.MODEL, {"name": "x"})).status_code
    assert {"clinic": {"of the clinic": 2}, "amy": {"of amy": 1}, "other": {}} == shown
    note = {"subject": "turn", "id": "turn-bob", "labels": "x", "text": "bob's"}
    refused = await with_key(client, keys["amy"], f"{urls.NOTE}?conversation_id=chat-bob", note)
    assert 403 == refused.status_code
    written = await with_key(client, keys["clinic"], f"{urls.NOTE}?conversation_id=chat-bob", note)
    assert 303 == written.status_code, written.text
    for name, seen in (("clinic", 1), ("amy", 0), ("other", 0)):
        headers = {"Authorization": f"Bearer {keys[name]}"}
        answer = await client.get(f"{urls.SEARCH}.json", params={"label": "x"}, headers=headers)
        assert seen == len(answer.json()["notes"]), name
        answer = await client.get(f"{urls.SEARCH}.json", params={"q": "allergic"}, headers=headers)
        assert {"clinic": 2, "amy": 1, "other": 0}[name] == len(answer.json()["found"]["turns"])


async def all_ended(client, headers):
    rows = (await client.get(f"{urls.EXPERIMENTS}.json", headers=headers)).json()["rows"]
    return all(row["calls"] == row["total"] for row in rows)


async def test_usage_over_time_comes_from_what_is_stored(client, told):
    """By day, whichever process wrote it; the page has a column for each."""
    days = (await client.get(f"{urls.METRICS}.json")).json()["usage"]["days"]
    assert 3 == sum(day["calls"] for day in days)
    assert sum(call["tokens"] for call in told) == sum(day["tokens"] for day in days)
    html = await page(client, urls.METRICS)
    assert f"{sum(day['tokens'] for day in days):,}" in html
    nobody = (await client.get(f"{urls.METRICS}.json", params={"user_id": "bob"})).json()["usage"]["days"]
    assert [] == nobody


async def test_an_answer_that_broke_off_is_shown_as_far_as_it_came(client):
    """It enters no window, but nothing that was seen is lost: the conversation, the trace and the bill have it."""
    asked = {**AMY, "id": "half", "user": "Tell me a story."}
    assert 201 == (await client.post("/v1/turns/begin", json=asked)).status_code
    window = await client.post("/v1/context", json={**AMY, "turn_id": "half"})
    said = {
        **AMY,
        "turn_id": "half",
        "messages": [{"role": "assistant", "content": "Once upon a time there"}],
    }
    assert 200 == (await client.post("/v1/turns/extend", json=said)).status_code
    assert 200 == (await client.post("/v1/turns/abort", json={**AMY, "turn_id": "half"})).status_code
    for path, more in (
        (urls.CONVERSATION, {}),
        (urls.TRACE, {"turn": "half"}),
        (urls.CALL, {"call_id": window.json()["id"]}),
    ):
        page = await client.get(path, params={**AMY, **more}, headers=HTML)
        assert "Once upon a time there" in page.text, path
        assert re.search("[Aa]borted", page.text), path
    after = await client.post("/v1/context", json={**AMY, "query": "Go on."})
    assert "Tell me a story." in after.text
    assert "Once upon a time" not in after.text


async def test_a_conversation_that_nobody_named_is_called_by_what_was_said_first(client):
    """Its id is a digest: on its page it is small print, in lists its beginning, in full where a pointer rests."""
    name = "gw-a6d969fbde804fab8372ac8cef21cc02"
    here = {"conversation_id": name, "user_id": "amy"}
    turn = {**here, "user": "I run a small web shop.", "assistant": "Nice."}
    assert 201 == (await client.post("/v1/turns", json=turn)).status_code
    page = await client.get(urls.CONVERSATION, params=here, headers=HTML)
    assert "I run a small web shop.</h1>" in page.text
    assert f">{name}</code>" in page.text
    listed = await client.get(urls.CONVERSATIONS, headers=HTML)
    assert f'title="{name}">gw-a6d969fb…</a>' in listed.text
    named = await client.post("/v1/turns", json={**turn, "conversation_id": "shop"})
    assert 201 == named.status_code
    page = await client.get(urls.CONVERSATION, params={**here, "conversation_id": "shop"}, headers=HTML)
    assert ">shop</h1>" in page.text


async def test_calls_far_below_their_window_are_compared_with_one_another(client):
    """Beside a window of a hundred thousand tokens every one of them would be a flat line."""
    for number in range(3):
        asked = {**AMY, "id": f"q{number}", "user": "Word " * 50 * (1 + number)}
        assert 201 == (await client.post("/v1/turns/begin", json=asked)).status_code
        window = {**AMY, "turn_id": f"q{number}", "window_tokens": 100_000}
        assert 200 == (await client.post("/v1/context", json=window)).status_code
        done = {**AMY, "turn_id": f"q{number}", "assistant": "Yes."}
        assert 200 == (await client.post("/v1/turns/complete", json=done)).status_code
    page = (await client.get(urls.CALLS, params=AMY, headers=HTML)).text
    assert "Window size" not in page
    strips = re.findall(r'class="stack".*?</svg>', page, re.DOTALL)
    filled = [sum(map(float, re.findall(r'width="([\d.]+)"', strip))) for strip in strips]
    assert 3 == len(filled)
    assert filled[0] > 900 > filled[1] > filled[2] > 50
