"""The inspector as a person uses it: every page, its JSON, both languages, forms, keys."""

import re
import string
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from pagefile import Memory, Settings
from pagefile.inspector import recall, site, start, urls
from pagefile.inspector.markup import el
from pagefile.inspector.page_request import words
from pagefile.records import Scope
from pagefile.settings import ModelSettings, ServiceSettings
from pagefile.stores.key_secrets import new_key
from tests.transcripts import CHAT as MESSAGES
from tests.waiting import until

from .http_serving import BASE, serving
from .inspector_story import CHAT, INJECTIONS, USER, every_page, told
from .model_stub import ModelStub

pytestmark = pytest.mark.anyio

HTML = {"Accept": "text/html"}
HERE = {"conversation_id": CHAT, "user_id": USER}


@dataclass
class Read(HTMLParser):
    """A page as a browser takes it apart."""

    html: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self.feed(self.html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


@pytest.fixture
async def client():
    async with serving() as client:
        yield client


@pytest.fixture
async def about(client):
    return await told(client)


def visible(text):
    """What turns the direction of text is shown, not obeyed."""
    return re.sub("[\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found.group()):04x}", text)


async def page(client, path, **options):
    """A page that must be there, taken apart."""
    answer = await client.get(path, headers={**HTML, **options.pop("headers", {})}, **options)
    assert 200 == answer.status_code, f"{path}: {answer.text[:500]}"
    return Read(answer.text)


async def sent(client, path, fields, **headers):
    """A form, sent as a browser sends it."""
    await client.get("/", headers=HTML)
    token = client.cookies["pagefile_form"]
    return await client.post(
        path,
        data={"token": token, **fields},
        headers={**HTML, "Origin": BASE, "Sec-Fetch-Site": "same-origin", **headers},
    )


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_page_can_be_read(client, about, language):
    """In both languages, with one heading, landmarks, labels, a way past the navigation, and its JSON beside it."""
    for path in every_page(about):
        read = await page(client, path, headers={"Accept-Language": language})
        assert [{"en": "en", "zh": "zh-CN"}[language]] == [one["lang"] for one in read.all("html")], path
        assert 1 == len(read.all("h1")) == len(read.all("main")), path
        assert "#main" == read.all("a")[0]["href"], path
        twins = [one["href"] for one in read.all("link") if one["rel"] == "alternate"]
        assert 1 == len(twins), path
        twin = await client.get(twins[0])
        assert (200, "application/json") == (twin.status_code, twin.headers["content-type"]), path
        assert isinstance(twin.json(), dict), path


async def test_nothing_that_was_said_is_markup(client, about):
    """Whatever users, tools and models say is in every page as text: no element, no attribute, no address comes of it."""
    known = {"stylesheet", "icon", "alternate"}
    seen = ""
    for path in every_page(about):
        read = await page(client, path)
        assert {urls.SCRIPT} >= {one.get("src") for one in read.all("script")}, path
        assert {"iframe", "img", "style", "object", "embed", "base"}.isdisjoint(
            {tag for tag, _ in read.tags}
        ), path
        for tag, attributes in read.tags:
            assert not [
                name for name in attributes if name.startswith("on") or name in {"style", "srcdoc"}
            ], (path, tag)
            for name in ("href", "src", "action"):
                assert re.match(r"/(?!/)|#|\?", attributes.get(name) or "/"), (path, attributes)
        assert {one["rel"] for one in read.all("link")} <= known, path
        seen += "".join(read.texts)
    for injection in INJECTIONS[:-1]:
        assert injection in seen
    assert "\u202e" not in seen


async def test_the_policy_lets_nothing_else_run(client, about):
    """Only our own files are loaded; a page without need for the script may not even run that."""
    for path in every_page(about):
        answer = await client.get(path, headers=HTML)
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        assert ("'none'", "'self'", "'self'", "'none'") == tuple(
            policy[name] for name in ("default-src", "style-src", "form-action", "frame-ancestors")
        )
        assert policy.get("script-src", "'self'") == "'self'"
        assert ("script-src" in policy) == ("<script" in answer.text), path
        assert "unsafe" not in answer.headers["content-security-policy"]
        # With "no-referrer" a browser sends `Origin: null` with our own forms.
        assert "same-origin" == answer.headers["referrer-policy"]


async def test_language_and_theme_are_remembered(client):
    """The browser says which, the reader may say otherwise, and the next page knows."""
    assert "zh" == (await client.get("/", headers={"Accept-Language": "zh-CN"})).headers["content-language"]
    switched = await client.get(f"{urls.CONVERSATIONS}?lang=zh&theme=dark", headers={"Accept-Language": "en"})
    assert "zh" == switched.headers["content-language"]
    for cookie in switched.headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
    later = await client.get(urls.RECALL, headers={"Accept-Language": "en"})
    assert "zh" == later.headers["content-language"]
    assert 'data-theme="dark"' in later.text
    client.cookies.clear()
    odd = await client.get(f"{urls.RECALL}?lang=nonsense&theme=pink", headers={"Accept-Language": "en"})
    assert "en" == odd.headers["content-language"]
    assert 'data-theme="auto"' in odd.text


async def test_a_conversation_reads_as_a_timeline(client, about):
    """Turns, the archived result with what stands for it, the checkpoint with its anchors, the aborted turn, a reset."""
    await client.post("/v1/reset", json=HERE)
    read = await page(
        client, urls.CONVERSATION, params={**HERE, "after": "0"}, headers={"Accept-Language": "zh"}
    )
    for word in (
        "已存档",
        "检查点 1",
        "已中止",
        "重置",
        "处关键信息",
        "工具结果存档",
        "已进摘要",
    ):
        assert word in read.text, word
    assert "第 399 行" not in read.text
    opened = await page(client, urls.CONVERSATION, params={**HERE, "after": "0", "open": about["uuid"]})
    assert "第 100 行" in opened.text
    loads = (await client.get("/v1/pages/page", params={**HERE, "uuid": about["uuid"]})).json()["loads"]
    assert 0 == loads, "looking is not a page fault"


async def test_a_step_that_loaded_has_the_size_of_what_came_back(client, about):
    """Not that of the page that it came from."""
    step = {"tool": "load_tool_history", "input": {"uuid": about["uuid"]}, "result": "x" * 2_187}
    await client.post("/v1/turns", json={**HERE, "user": "Read it.", "steps": [step], "assistant": "I did."})
    read = await page(client, urls.CONVERSATION, params=HERE)
    (row,) = re.findall(r"load_tool_history\W+Paged in ([\d,]+) characters", read.text)
    assert "2,187" == row


@pytest.mark.parametrize("path", [urls.CONVERSATION, urls.CALLS])
async def test_without_a_conversation_one_is_chosen(client, path):
    answer = await client.get(path, params={"user_id": "ann"}, follow_redirects=False)
    assert (303, f"{urls.CONVERSATIONS}?user_id=ann") == (
        answer.status_code,
        answer.headers["location"],
    )
    assert 422 == (await client.get(f"{path}.json")).status_code


async def test_a_long_conversation_comes_in_slices(client):
    """Every turn is on exactly one slice, and the slices lead to one another."""
    for number in range(100):
        await client.post("/v1/turns", json={"conversation_id": "long", "user": f"Frage Nummer {number}."})
    seen, path = [], f"{urls.CONVERSATION}?conversation_id=long&after=0"
    while path:
        read = await page(client, path)
        seen += re.findall(r"Frage Nummer (\d+)\.", read.text)
        found = re.search(r'href="([^"]*)">Newer →', read.html)
        path = found and unescape(found[1])
    assert [str(number) for number in range(100)] == seen
    newest = await page(client, urls.CONVERSATION, params={"conversation_id": "long"})
    assert "Frage Nummer 99." in newest.text


async def test_the_bill_adds_up(client, about):
    """The blocks and the framing are the tokens of the call; every candidate has its verdict, in words; the prompt is the one sent."""
    found = (await client.get(f"{urls.CALL}.json", params={"call_id": about["call_id"]})).json()
    assert found["exact"], found["why"]
    assert (
        found["call"]["tokens"]
        == sum(block["tokens"] for block in found["blocks"]) + found["receipt"]["framing"]
    )
    read = await page(client, urls.CALL, params={"call_id": about["call_id"]})
    rows = re.search(r'<table class="verdicts">.*?</table>', read.html, re.DOTALL)
    assert rows
    assert len(found["receipt"]["verdicts"]) == rows[0].count("<tr") - 1
    turns = (await client.get("/v1/turns", params=HERE)).json()["items"]
    asked = {turn["id"]: turn["user"] for turn in turns}
    shown = [one["id"] for one in found["receipt"]["verdicts"] if one["block"] in {"recent", "episodes"}]
    assert shown
    for turn_id in shown:
        said = asked[turn_id.removeprefix("episode:")]
        assert " ".join(visible(said).split())[:40] in "".join(read.texts)
    assert found["call"]["prefix_hash"] in read.text
    assert "Same as in the previous call" in read.text
    assert found["window"]["messages"][-1]["content"].splitlines()[-1] in "".join(read.texts)
    bars = [one for one in read.all("svg") if one.get("class") == "stack"]
    assert bars[0]["aria-label"].startswith(f"{found['call']['tokens']:,} of 3,000")


async def test_the_bill_of_a_turn_made_of_messages(client):
    """The page of a call shows the turn as far as it was, and so does its replay."""
    begun = await client.post("/v1/turns/begin", json={**HERE, "messages": MESSAGES[:1]})
    turn = {**HERE, "turn_id": begun.json()["id"]}
    for message in MESSAGES[1:]:
        assert 200 == (await client.post("/v1/context", json=turn)).status_code
        answer = await client.post("/v1/turns/extend", json={**turn, "messages": [message]})
        assert 200 == answer.status_code, answer.text
    calls = (await client.get("/v1/calls", params=HERE)).json()["items"]
    for path in (urls.CALL, urls.REPLAY):
        for call in calls:
            await page(client, path, params={"call_id": call["id"]})
            found = (await client.get(f"{path}.json", params={"call_id": call["id"]})).json()
            assert found.get("exact", True), found["why"]
            assert "Up there." not in str(found)
    assert len(MESSAGES) - 1 == len(calls)


async def test_replay_shows_both_windows(client, about):
    """Another window: fewer tokens, what left and why; nonsense is refused in words."""
    changed = {"call_id": about["call_id"], "set.window_tokens": "2500", "set.recall": "never"}
    found = (await client.get(f"{urls.REPLAY}.json", params=changed)).json()["replay"]
    assert found["after"]["tokens"] <= 2500
    read = await page(client, urls.REPLAY, params=changed)
    assert f"{found['comparison']['tokens_after']:,}" in read.text
    refused = await page(
        client, urls.REPLAY, params={"call_id": about["call_id"], "set.window_tokens": "many"}
    )
    assert "window_tokens must be a whole number" in refused.text


async def test_recall_is_beside_plain_bm25(client, about):
    """Hits with the parts of their scores, and the turns that BM25 alone finds."""
    asked = {"user_id": USER, "q": "问题 5"}
    found = (await client.get(f"{urls.RECALL}.json", params=asked)).json()
    assert found["hits"][0]["parts"]
    assert found["plain"]
    read = await page(client, urls.RECALL, params=asked)
    assert "Plain BM25" in read.text
    assert f"score {found['hits'][0]['score']:.3f}" in read.text


async def test_what_goes_wrong_is_told_as_a_page(client, monkeypatch):
    """In the reader's language, with the status it has; a program gets the problem document."""
    gone = await client.get(
        urls.CONVERSATION, params={"conversation_id": "x"}, headers={**HTML, "Accept-Language": "zh"}
    )
    assert (404, "text/html; charset=utf-8") == (gone.status_code, gone.headers["content-type"])
    assert "不存在" in gone.text
    assert (
        "application/problem+json" == (await client.get(f"{urls.CONVERSATION}.json")).headers["content-type"]
    )
    for path, query in (
        (urls.PAGE, {"uuid": INJECTIONS[0]}),
        (urls.CALL, {"call_id": INJECTIONS[2]}),
        (urls.CALL, {"call_id": "a\0b"}),
    ):
        answer = await client.get(path, params=query, headers=HTML)
        assert answer.status_code in {404, 422}, path
        assert not Read(answer.text).all("img")
        assert not Read(answer.text).all("script")

    async def broken(*_):
        raise RuntimeError("青霉素")

    monkeypatch.setattr(recall, "known_users", broken)
    failed = await client.get(urls.RECALL, headers=HTML)
    assert (500, "text/html; charset=utf-8") == (failed.status_code, failed.headers["content-type"])
    assert "Something went wrong" in failed.text
    assert "青霉素" not in failed.text
    assert "'none'" in failed.headers["content-security-policy"]


# -- forms -------------------------------------------------------------------------------------------------------------


async def test_facts_are_changed(client):
    """Add, edit, retract, undo: each is seen in the list and in the history."""
    where = f"{urls.FACTS}?user_id=amy"

    async def held(**more):
        return [
            fact["text"]
            for fact in (await client.get(f"{urls.FACTS}.json", params={"user_id": "amy", **more})).json()[
                "facts"
            ]
        ]

    added = await sent(client, where, {"what": "add", "text": "对青霉素过敏", "category": "allergy"})
    assert (303, "stored") == (added.status_code, added.headers["location"].rpartition("=")[2])
    assert ["对青霉素过敏"] == await held()
    fact_id = (await client.get(f"{urls.FACTS}.json", params={"user_id": "amy"})).json()["facts"][0]["id"]
    await sent(client, where, {"what": "edit", "fact_id": fact_id, "text": "对青霉素和头孢过敏"})
    assert ["对青霉素和头孢过敏"] == await held()
    assert 2 == len(await held(history="yes"))
    fact_id = (await client.get(f"{urls.FACTS}.json", params={"user_id": "amy"})).json()["facts"][0]["id"]
    await sent(client, where, {"what": "retract", "fact_id": fact_id})
    assert [] == await held()
    await sent(client, where, {"what": "undo"})
    assert ["对青霉素和头孢过敏"] == await held()
    secret = await sent(client, where, {"what": "add", "text": "My password is hunter2-correct-horse"})
    assert 422 == secret.status_code
    assert "text/html" in secret.headers["content-type"]


async def test_a_page_is_pinned(client, about):
    """And unpinned again."""
    for word, expected in (("yes", True), ("no", False)):
        answer = await client.get("/", headers=HTML)
        assert answer.is_success
        done = await client.post(
            urls.PAGE,
            params={**HERE, "uuid": about["uuid"]},
            data={"token": client.cookies["pagefile_form"], "pinned": word},
            headers=HTML,
        )
        assert 303 == done.status_code, done.text
        page_ = (await client.get("/v1/pages/page", params={**HERE, "uuid": about["uuid"]})).json()
        assert expected == page_["pinned"]


async def test_a_page_is_found_by_its_uuid_alone(client, about):
    """Read, searched in and pinned without a word of its conversation; and looking is no load."""
    uuid = about["uuid"]
    whole = (await client.get(f"{urls.PAGE}.json", params={**HERE, "uuid": uuid})).json()
    assert whole == (await client.get(f"{urls.PAGE}.json", params={"uuid": uuid})).json()
    assert "第 300 行" in (await page(client, urls.PAGE, params={"uuid": uuid, "q": "第 300 行"})).text
    pinned = await sent(client, f"{urls.PAGE}?uuid={uuid}", {"pinned": "yes"})
    assert 303 == pinned.status_code, pinned.text
    stored = (await client.get("/v1/pages/page", params={"uuid": uuid})).json()
    assert (True, 0) == (stored["pinned"], stored["loads"])


async def test_a_name_that_stands_for_nothing_erases_nothing(client):
    """The page says so, of a conversation and of a user."""
    for who in ({"conversation_id": "nobody"}, {"user_id": "nobody"}):
        found = (await client.get(f"{urls.ERASE}.json", params=who)).json()
        assert (0, False, 0) == (found["conversations"], found["more"], found["turns"])


async def test_erasing_asks_for_the_name_and_gives_a_receipt(client):
    """Without the name typed nothing goes; with it everything does, counted."""
    for name in ("mine", "other"):
        await client.post("/v1/turns", json={"conversation_id": name, "user": "我对青霉素过敏。"})
    where = f"{urls.ERASE}?conversation_id=mine"
    refused = await sent(client, where, {"confirm": "min"})
    assert 422 == refused.status_code
    assert 2 == len((await client.get("/v1/memory/conversations")).json()["items"])
    done = await sent(client, where, {"confirm": "mine"})
    assert 200 == done.status_code
    assert "turns" in done.text
    assert ["other"] == [
        one["conversation_id"] for one in (await client.get("/v1/memory/conversations")).json()["items"]
    ]


async def test_one_turn_is_erased_alone(client):
    """Where its id is given; the rest of the conversation stays."""
    for turn in ("slip", "kept"):
        words = {"conversation_id": "mine", "id": turn, "user": turn, "assistant": "ok"}
        await client.post("/v1/turns", json=words)
    done = await sent(
        client, f"{urls.ERASE}?conversation_id=mine", {"confirm": "mine", "turn_id": "slip", "page": ""}
    )
    assert 200 == done.status_code
    turns = (await client.get("/v1/turns", params={"conversation_id": "mine"})).json()["items"]
    assert [("slip", "aborted"), ("kept", "done")] == [(one["id"], one["status"]) for one in turns]


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("right", {"Origin": "https://elsewhere.example"}),
        ("right", {"Sec-Fetch-Site": "cross-site"}),
        ("right", {"Sec-Fetch-Site": "same-site"}),
        ("right", {"Origin": "null"}),
        ("wrong", {"Origin": BASE}),
        ("", {}),
    ],
)
async def test_a_form_of_another_site_does_nothing(client, token, headers):
    """Another origin, or no token: refused before anything is done, for every form there is."""
    await client.post(
        "/v1/turns", json={"conversation_id": "mine", "user_id": "amy", "user": "我对青霉素过敏。"}
    )
    await client.get("/", headers=HTML)
    real = client.cookies["pagefile_form"]
    fields = {
        "token": real if token == "right" else token,
        "confirm": "mine",
        "text": "x",
        "message": "x",
        "what": "add",
    }
    forms = {
        urls.ERASE,
        urls.DEMO,
        urls.LOGIN,
        urls.LOGOUT,
        urls.STREAM,
        urls.CHAT,
        urls.EXPERIMENTS,
        urls.MODEL,
        *site.ACTIONS,
    }
    for path in forms:
        answer = await client.post(
            path, params={"conversation_id": "mine", "user_id": "amy"}, data=fields, headers=headers
        )
        assert 403 == answer.status_code, path
        assert "set-cookie" not in answer.headers
    mine = {"conversation_id": "mine", "user_id": "amy"}
    assert 1 == len((await client.get("/v1/turns", params=mine)).json()["items"])


async def test_the_chat_answers_without_a_script(client):
    """A scripted model says what it is; a long result goes out, and comes back when asked for."""
    where = f"{urls.CHAT}?conversation_id=try&user_id=amy"
    first = await sent(client, where, {"message": "巡检结果如何？", "sample": "yes", "window_tokens": "4000"})
    assert 303 == first.status_code
    read = await page(client, first.headers["location"], headers={"Accept-Language": "zh"})
    for word in ("脚本模型", "换出", "inspect_site"):
        assert word in read.text
    await sent(client, where, {"message": "打开存档的原文看看 V-42", "window_tokens": "4000"})
    read = await page(client, where, headers={"Accept-Language": "zh"})
    assert "换入" in read.text
    assert "SP-7731" in read.text
    tried = {"conversation_id": "try", "user_id": "amy"}
    turns = (await client.get("/v1/turns", params=tried)).json()["items"]
    assert ["done", "done"] == [turn["status"] for turn in turns]


async def test_the_chat_streams(client):
    """The same events as the API's own stream."""
    await client.get("/", headers=HTML)
    fields = {"token": client.cookies["pagefile_form"], "message": "Hello", "sample": "yes"}
    answer = await client.post(f"{urls.STREAM}?conversation_id=try", data=fields)
    names = re.findall(r"^event: (\w+)$", answer.text, re.MULTILINE)
    assert ("turn", "archived", "done") == (names[0], names[1], names[-1])
    assert "token" in names


async def test_the_chat_speaks_with_the_model_of_the_settings():
    """Any OpenAI-compatible endpoint: its words stream, it sees the window, and the page says who answers."""
    with ModelStub(lambda _request: ["阿莫西林", "不行，您对青霉素过敏。"]) as stub:
        model = ModelSettings(name="stub-model", base_url=stub.url, api_key="sk-secret")
        async with serving(Settings(url="memory://", model=model)) as client:
            await client.post("/v1/facts", json={"user_id": "amy", "text": "对青霉素过敏"})
            where = f"{urls.CHAT}?conversation_id=try&user_id=amy"
            assert "stub-model" in (await page(client, where)).text
            answer = await sent(client, where, {"message": "能吃阿莫西林吗？"})
            assert 303 == answer.status_code
            assert "阿莫西林不行，您对青霉素过敏。" in (await page(client, where)).text
        assert "对青霉素过敏" in str(stub.requests[0]["messages"])


# -- who may see what ----------------------------------------------------------------------------------------------------


@pytest.fixture
async def locked(tmp_path):
    """A service that asks for keys: one of a tenant, one of a user of it, one of another tenant."""
    url = f"sqlite:///{tmp_path}/locked.db"
    keys = {}
    async with Memory.open(url) as memory:
        for name, scope in (
            ("clinic", Scope("clinic")),
            ("amy", Scope("clinic", "amy")),
            ("other", Scope("other")),
        ):
            key, keys[name] = new_key(name, scope, created=datetime.now(UTC))
            await memory.engine.store.keys.add(key)
        for user in ("amy", "bob"):
            chat = memory.conversation(f"chat-{user}", user_id=user, tenant="clinic")
            await chat.record(f"我是 {user}，对青霉素过敏。", "已记录。")
            await chat.context(f"{user} 问：能吃什么药？")
            await memory.remember(f"{user} 过敏", user_id=user, tenant="clinic")
    settings = Settings(url=url, service=ServiceSettings(require_keys=True))
    async with serving(settings) as client:
        yield client, keys


async def signed_in(client, key):
    client.cookies.clear()
    await client.get("/", headers=HTML)
    token = client.cookies["pagefile_form"]
    fields = {"token": token, "key": key, "next": urls.CONVERSATIONS}
    done = await client.post(urls.LOGIN, data=fields, headers={**HTML, "Origin": BASE})
    assert (303, urls.CONVERSATIONS) == (done.status_code, done.headers["location"])
    return done


async def test_a_stranger_is_asked_for_a_key(locked):
    """The first page says what this is, every other asks for a key, and nothing of anybody's is on any of them."""
    client, _ = locked
    first = await client.get("/", headers=HTML)
    assert 200 == first.status_code
    assert "Pagefile" in first.text
    for path in [one.path for one in site.PAGES] + [
        urls.EXPERIMENT,
        urls.GATEWAY,
        urls.METRICS,
        urls.SETTINGS,
        urls.HOME,
    ]:
        answer = await client.get(
            path, params={"conversation_id": "chat-amy", "user_id": "amy", "tenant": "clinic"}, headers=HTML
        )
        assert (401 if path != urls.HOME else 200) == answer.status_code, path
        assert 'type="password"' in answer.text
        assert "青霉素" not in answer.text
        twin = await client.get(urls.twin(path), headers=HTML)
        assert 401 == twin.status_code
    for path in (urls.STYLE, urls.SCRIPT, urls.ICON, urls.LOGIN):
        assert 200 == (await client.get(path)).status_code


async def test_a_stranger_does_not_learn_whose_a_conversation_is(locked):
    """Naming a conversation in the address of the first page tells nothing of it, not even whether there is one."""
    client, _ = locked
    for named in ({"conversation_id": "chat-amy", "tenant": "clinic"}, {"conversation_id": "nobody-s"}):
        answer = await client.get(urls.HOME, params=named, headers=HTML)
        assert 200 == answer.status_code
        assert "amy" not in answer.text
        assert "user_id=" not in answer.text


async def test_the_key_is_kept_where_no_script_and_no_other_site_gets_it(locked):
    """An HttpOnly, SameSite=Strict cookie; it opens the inspector and not the API, and signing out forgets it."""
    client, keys = locked
    done = await signed_in(client, keys["clinic"])
    (cookie,) = [one for one in done.headers.get_list("set-cookie") if "pagefile_key" in one]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "chat-amy" in (await client.get(urls.CONVERSATIONS, headers=HTML)).text
    assert 401 == (await client.get("/v1/memory/conversations")).status_code
    token = client.cookies["pagefile_form"]
    await client.post(urls.LOGOUT, data={"token": token}, headers=HTML)
    assert 401 == (await client.get(urls.CONVERSATIONS, headers=HTML)).status_code


async def test_a_wrong_key_is_told_so_and_forgotten(locked):
    """The form comes back, the cookie goes, and the page does not lead elsewhere afterwards."""
    client, keys = locked
    await signed_in(client, keys["clinic"][:-3] + "abc")
    answer = await client.get(urls.CONVERSATIONS, headers=HTML)
    assert 401 == answer.status_code
    assert "This key is unknown" in answer.text
    assert "pagefile_key" not in client.cookies
    fields = {"token": client.cookies["pagefile_form"], "key": keys["clinic"], "next": "//elsewhere.example"}
    assert "/" == (await client.post(urls.LOGIN, data=fields)).headers["location"]


async def test_a_key_sees_only_its_own(locked):
    """A tenant's key sees the tenant, a user's key that user, another tenant's neither; whatever they name."""
    client, keys = locked
    await signed_in(client, keys["clinic"])
    calls = {
        user: (await client.get(f"{urls.CALLS}.json", params={"conversation_id": f"chat-{user}"})).json()[
            "costs"
        ][0]["call_id"]
        for user in ("amy", "bob")
    }
    assert 200 == (await client.get(urls.CALL, params={"call_id": calls["bob"]}, headers=HTML)).status_code
    for name, own in (("amy", {"amy"}), ("other", set())):
        await signed_in(client, keys[name])
        for path in (
            urls.twin(urls.HOME),
            urls.twin(urls.CONVERSATIONS),
            urls.twin(urls.SESSIONS),
        ):
            text = (await client.get(path)).text
            assert own == {user for user in ("amy", "bob") if f"chat-{user}" in text}, (name, path)
        for user in {"amy", "bob"} - own:
            for page_ in site.PAGES:
                asked = {
                    "conversation_id": f"chat-{user}",
                    "call_id": calls[user],
                    "user_id": user,
                    "q": "青霉素",
                }
                for more in ({}, {"tenant": "clinic"}):
                    answer = await client.get(urls.twin(page_.path), params={**asked, **more})
                    assert f"我是 {user}" not in answer.text, (name, page_.path)
                    assert f"{user} 过敏" not in answer.text, (name, page_.path)
            for path in (urls.CALL, urls.REPLAY):
                assert 404 == (await client.get(urls.twin(path), params={"call_id": calls[user]})).status_code
            erased = await sent(
                client,
                f"{urls.ERASE}?conversation_id=chat-{user}&tenant=clinic",
                {"confirm": f"chat-{user}"},
            )
            assert 403 == erased.status_code
    await signed_in(client, keys["clinic"])
    left = (await client.get(f"{urls.CONVERSATIONS}.json")).json()["rows"]
    assert {"chat-amy", "chat-bob"} == {row["head"]["conversation_id"] for row in left}


async def test_the_demo_is_the_operators(locked):
    """A key's holder cannot fill a database with it."""
    client, keys = locked
    await signed_in(client, keys["other"])
    answer = await client.post(urls.DEMO, data={"token": client.cookies["pagefile_form"]}, headers=HTML)
    assert 403 == answer.status_code


async def test_the_empty_page_offers_the_demo(tmp_path):
    """One press fills it in the background, the page says how far it is, and then it is there."""
    async with serving(Settings(url=f"sqlite:///{tmp_path}/demo.db")) as client:
        first = await client.get("/", headers=HTML)
        assert "Fill in the demo" in first.text
        fields = {"token": client.cookies["pagefile_form"]}
        assert 303 == (await client.post(urls.DEMO, data=fields, headers=HTML)).status_code
        assert 409 == (await client.post(urls.DEMO, data=fields, headers=HTML)).status_code
        running = await client.get("/", headers=HTML)
        assert "2" == running.headers["refresh"]
        assert "<progress" in running.text


async def says(client, words):
    return words in (await client.get("/", headers=HTML)).text


@pytest.mark.waits
async def test_a_demo_that_cannot_be_filled_in_says_why(client):
    """In a memory that nobody else can open."""
    await sent(client, urls.DEMO, {})
    await until(lambda: says(client, "could not be filled in"))


def test_links_lead_nowhere_else():
    """An address of another site cannot even be put into a page."""
    for place in (
        "https://elsewhere.example",
        "//elsewhere.example",
        "/\\elsewhere.example",
        "javascript:alert(1)",
        "data:text/html,x",
    ):
        with pytest.raises(ValueError, match="own site"):
            el("a", "x", href=place)


# -- words -------------------------------------------------------------------------------------------------------------


def test_every_text_is_there_in_both_languages():
    """With the same gaps; and none is left over."""
    sources = "".join(
        one.read_text(encoding="utf-8")
        for one in files("pagefile.inspector").iterdir()
        if one.name.endswith(".py")
    )
    families = (
        "block.",
        "erased.",
        "set.",
        "theme.",
        "role.",
        "sort.",
        "done.",
        "change.",
        "diff.",
        "part.",
        "action.",
        "metric.",
        "traffic.is.",
        "problem.",
        "tells.",
        "tab.",
        "way.",
        "event.",
        "mode.",
        "form.",
        "live.",
        "origin.",
        "answer.",
        "fix.",
        "group.",
        "start.gateway",
        "start.mcp",
        "start.python",
        "start.http",
    )
    ways = {f"way.{urls.name(path)}" for path in start._WAYS}
    assert ways == {key for key in words() if key.startswith("way.")}
    for key, (english, chinese) in words().items():
        if not key.endswith(".how"):
            gaps = [
                {name for _, name, _, _ in string.Formatter().parse(text) if name}
                for text in (english, chinese)
            ]
            assert gaps[0] == gaps[1], key
        assert english.strip(), key
        assert chinese.strip(), key
        base = key.removesuffix(".one")
        assert f'"{base}"' in sources or key.startswith(families), f"{key} is used nowhere"
    for family in ("nav", "way", "count", "fact", "start"):
        used = re.findall(rf'"({family}\.[a-z_.]+)"', sources)
        assert set(used) <= set(words())


@pytest.mark.parametrize(
    ("asked", "there"),
    [
        ("/inspector/", "/inspector"),
        ("/docs/", "/docs"),
        ("/docs/facts/", "/docs/facts"),
        ("/inspector/settings/", "/inspector/settings"),
        ("/inspector/recall/?query=bees&user_id=ada", "/inspector/recall?query=bees&user_id=ada"),
    ],
)
async def test_an_address_with_a_slash_at_its_end_leads_to_the_page(client, asked, there):
    """It is what people type, and what bookmarks have."""
    answer = await client.get(asked, headers=HTML)
    assert (303, there) == (answer.status_code, answer.headers["location"])
