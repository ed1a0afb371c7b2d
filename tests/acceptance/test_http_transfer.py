"""A memory leaves over HTTP and comes back, whole or not at all."""

import json
import re

import pytest

from pagefile import Settings
from pagefile.settings import ArchiveSettings, ServiceSettings

from .http_serving import serving

HERE = {"conversation_id": "诊疗/2026:7", "user_id": "用户-1"}
HEADER = '{"type":"pagefile-export","version":1}'
#: That of an export of another tenant than "default".
ELSEWHERE = '{"type":"pagefile-export","version":1,"tenant":"elsewhere"}'
RESET = (
    '{"type":"reset","user_id":null,"conversation_id":"c","id":"r","seq":1,"created":"2026-01-01T00:00:00Z"}'
)


@pytest.fixture
async def client(tmp_path):
    settings = Settings(
        url=f"sqlite:///{tmp_path}/there.db",
        archive=ArchiveSettings(threshold=500, page_from=500),
        service=ServiceSettings(max_body_bytes=20_000, max_import_bytes=200_000),
    )
    async with serving(settings) as client:
        yield client


@pytest.fixture
async def filled(client):
    """Two users; one with a bulky result, a checkpoint and a fact."""
    step = {"tool": "guideline", "input": {"q": "高血压"}, "result": "少盐，监测血压。\n\n" * 100}
    for number in range(3):
        turn = {**HERE, "id": f"t{number}", "user": f"第{number}问", "assistant": "好。", "steps": [step]}
        assert 201 == (await client.post("/v1/turns", json=turn)).status_code
    made = await client.post("/v1/checkpoints", json={**HERE, "summary": "聊了血压。", "recent_turns": 1})
    assert 201 == made.status_code
    await client.post("/v1/facts", json={"text": "对青霉素过敏", "user_id": "用户-1"})
    await client.post("/v1/context", json={**HERE, "query": "血压多少？"})
    await client.post("/v1/turns", json={"conversation_id": "b", "user_id": "用户-2", "user": "别人的话"})
    return client


async def exported(client, **params):
    answer = await client.get("/v1/export", params=params)
    assert (200, "application/x-ndjson") == (answer.status_code, answer.headers["content-type"])
    return answer.text


async def imported(client, text, status=200, **params):
    content = text if isinstance(text, bytes) else text.encode()
    answer = await client.post(
        "/v1/import", params=params, content=content, headers={"Content-Type": "application/x-ndjson"}
    )
    assert status == answer.status_code, answer.text
    return answer.json()


@pytest.mark.anyio
async def test_there_and_back(filled):
    """What was exported can be imported elsewhere, is the same there, and a second time changes nothing."""
    text = await exported(filled, user_id="用户-1")
    kinds = [json.loads(line)["type"] for line in text.splitlines()]
    assert ["pagefile-export", "conversation"] == kinds[:2]
    assert {"session", "page", "turn", "checkpoint", "call", "fact", "revision"} <= set(kinds)
    assert "别人" not in text

    counts = (await imported(filled, text, tenant="elsewhere", user_id="用户-1"))["counts"]
    assert (1, 4, 1) == (counts["conversation"], counts["entry"], counts["fact"])
    assert (1, 1, 1) == (counts["session"], counts["call"], counts["revision"])
    assert text.replace(HEADER, ELSEWHERE) == await exported(filled, tenant="elsewhere", user_id="用户-1")
    again = (await imported(filled, text, tenant="elsewhere"))["counts"]
    assert 0 == sum(again.values())


@pytest.mark.anyio
async def test_an_export_of_one_conversation(filled):
    """Only that conversation, and no facts: they belong to the user."""
    text = await exported(filled, conversation_id="b")
    assert ["pagefile-export", "conversation", "session", "turn"] == [
        json.loads(line)["type"] for line in text.splitlines()
    ]
    assert HEADER == (await exported(filled, conversation_id="nobody's")).strip()


@pytest.mark.anyio
async def test_a_user_brings_only_what_is_theirs(filled):
    """An upload in the name of one user is refused as a whole when a line of it is another's."""
    text = await exported(filled)
    told = await imported(filled, text, 422, tenant="elsewhere", user_id="用户-1")
    assert "transfer" == told["code"]
    assert "别人的话" not in json.dumps(told, ensure_ascii=False)
    listed = await filled.get("/v1/memory/conversations", params={"tenant": "elsewhere"})
    assert [] == listed.json()["items"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"type":"pagefile-export","version":2}',
        b'{"type":"conversation","id":"c","user_id":null,"agent":null}',
        f"{HEADER}\n{HEADER}".encode(),
        f'{HEADER}\n{{"type":"elephant"}}'.encode(),
        f'{HEADER}\n{{"type":"conversation","id":7,"user_id":null,"agent":null}}'.encode(),
        f'{HEADER}\n{{"type":"conversation","id":"秘密","user_id":null}}'.encode(),
        f'{HEADER}\n{{"type":"conversation","id":"\\ud800","user_id":null,"agent":null}}'.encode(),
        f'{HEADER}\n{{"type":"reset","user_id":null,"conversation_id":"c","id":"r","seq":1,"created":5}}'.encode(),
        f'{HEADER}\n{{"type":"reset","user_id":null,"conversation_id":"c","id":"r","seq":1,"created":"2026-01-01"}}'.encode(),
        f"{HEADER}\n".encode() + b"[" * 5000,
    ],
)
async def test_what_is_no_export_is_refused(client, text):
    """With the line that is wrong, never with what is in it; nothing is written."""
    told = await imported(client, text, 422)
    assert "transfer" == told["code"]
    assert "秘密" not in told["detail"]
    assert "elephant" not in told["detail"]
    assert "/tmp" not in told["detail"]
    assert [] == (await client.get("/v1/memory/conversations")).json()["items"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER.replace("1", "2"), "Line 1 .* another version .* upgrade"),
        (HEADER + '\n{"type":"new"}', "Line 2 .* unknown type; upgrade"),
        (HEADER + '\n{"type":"turn"}', "Line 2 .* /user_id Field required"),
        (HEADER + "\n" + RESET, "before any conversation"),
        ("", "empty"),
    ],
)
async def test_a_refusal_says_what_to_do(client, text, words):
    """Which line, what is wrong with it, and what helps."""
    assert re.search(words, (await imported(client, text, 422))["detail"])


@pytest.mark.anyio
async def test_a_broken_line_leaves_the_others_unwritten(filled):
    """The last line of an upload is looked at before the first is written."""
    text = await exported(filled)
    await imported(filled, text + '{"type":"turn"}\n', 422, tenant="elsewhere")
    assert ELSEWHERE == (await exported(filled, tenant="elsewhere")).strip()


@pytest.mark.anyio
async def test_an_upload_has_a_limit_of_its_own(client):
    """It may be larger than other bodies, but not endless."""
    line = '{"type":"conversation","id":"%s","user_id":null,"agent":null}'
    text = "\n".join([HEADER, *(line % number for number in range(1500))])
    assert 20_000 < len(text) < 200_000
    await imported(client, text)
    told = await imported(client, text + " " * 200_000, 413)
    assert "service.max_import_bytes" in told["detail"]


@pytest.mark.anyio
async def test_nothing_of_another_user_is_changed_by_an_import(filled):
    """A conversation that belongs to somebody else is a conflict, whatever the upload says."""
    text = (
        (await exported(filled, conversation_id="b")).replace("用户-2", "用户-3").replace("别人的话", "改了")
    )
    before = await exported(filled, conversation_id="b")
    await imported(filled, text, 409)
    assert before == await exported(filled, conversation_id="b")


@pytest.mark.anyio
async def test_one_conversation(filled):
    """A conversation in one row; a stranger's is not there."""
    answer = await filled.get("/v1/memory/conversations/conversation", params=HERE)
    assert (200, 3) == (answer.status_code, answer.json()["turns"])
    for other in (
        {**HERE, "user_id": "用户-2"},
        {**HERE, "tenant": "elsewhere"},
        {"conversation_id": "nobody's"},
    ):
        answer = await filled.get("/v1/memory/conversations/conversation", params=other)
        assert (404, "not-found") == (answer.status_code, answer.json()["code"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "whose", "key"),
    [
        ("/v1/facts", {"user_id": "u"}, "id"),
        ("/v1/facts/revisions", {"user_id": "u"}, "number"),
        ("/v1/checkpoints", {"conversation_id": "c"}, "seq"),
        ("/v1/turns", {"conversation_id": "c"}, "id"),
        ("/v1/calls", {"conversation_id": "c"}, "id"),
        ("/v1/memory/conversations", {}, "conversation_id"),
    ],
)
async def test_every_list_can_be_read_in_slices(client, path, whose, key):
    """Slices of one and of two put together are the whole list, in order, each record once."""
    for number in range(5):
        await client.post("/v1/facts", json={"text": f"事实 {number}", "user_id": "u"})
        await client.post(
            "/v1/turns", json={"conversation_id": "c", "user": f"问 {number}", "assistant": "答"}
        )
        await client.post("/v1/context", json={"conversation_id": "c"})
        await client.post("/v1/turns", json={"conversation_id": f"c{number}", "user": "你好"})
        made = {"conversation_id": "c", "summary": f"摘要 {number}", "recent_turns": 0}
        assert 201 == (await client.post("/v1/checkpoints", json=made)).status_code
    whole = (await client.get(path, params=whose)).json()
    assert (None, True) == (whole["next"], len(whole["items"]) >= 5)
    for size in (1, 2):
        seen, after = [], {}
        while after is not None:
            page = (await client.get(path, params={**whose, "limit": size, **after})).json()
            assert len(page["items"]) <= size
            seen += page["items"]
            after = {"after": page["next"]} if page["next"] is not None else None
        assert [item[key] for item in whole["items"]] == [item[key] for item in seen]


@pytest.mark.anyio
async def test_a_slice_goes_on_behind_a_fact_that_was_retracted(client):
    """Nothing is skipped or shown twice when a fact leaves the list between two slices."""
    ids = [
        (await client.post("/v1/facts", json={"text": f"事实 {n}", "user_id": "u"})).json()["id"]
        for n in range(4)
    ]
    first = (await client.get("/v1/facts", params={"user_id": "u", "limit": 2})).json()
    await client.post("/v1/facts/retract", json={"fact_id": ids[1]})
    rest = (await client.get("/v1/facts", params={"user_id": "u", "after": first["next"]})).json()
    assert ids == [fact["id"] for fact in first["items"] + rest["items"]]
    for bad in ("x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z  ", "7 7"):
        answer = await client.get("/v1/facts", params={"user_id": "u", "after": bad})
        assert (422, "validation") == (answer.status_code, answer.json()["code"])


@pytest.mark.anyio
async def test_ready_and_settled(client):
    """A load balancer gets a short answer, and whoever wrote can wait until it is all worked in."""
    assert {"status": "ready"} == (await client.get("/readyz")).json()
    assert {"settled": True} == (await client.post("/v1/settle", json={})).json()
