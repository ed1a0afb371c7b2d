"""A record is the same JSON over HTTP, in an export, printed by `--json`, and beside the inspector's pages."""

import json
from functools import partial

import anyio
import anyio.to_thread
import pytest

from pagefile import Memory, Settings
from pagefile.inspector import urls
from pagefile.settings import ArchiveSettings, EmbedderSettings
from tests.transcripts import CHAT as MESSAGES

from .cli_calling import pagefile
from .http_serving import serving

pytestmark = pytest.mark.anyio

HERE = {"conversation_id": "门诊", "user_id": "王芳"}
URL = "sqlite:///pagefile.db"
#: What a line of an export has in place of a field, or leaves out, and why.
NOT_EXPORTED = {
    "tenant": "an export can be imported into another tenant",
    "outcome": "belongs to the call that wrote the fact",
    "archived": "follows from `purged`",
}
EXPORTED_ONLY = {"type", "text"}


@pytest.fixture(autouse=True)
async def _told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # While an encoder is being loaded, a service waits less long for it than a command.
    monkeypatch.setenv("PAGEFILE_EMBEDDER__NAME", "none")
    settings = Settings(url=URL, archive=ArchiveSettings(threshold=200))
    async with Memory.open(URL, settings=settings, embedder="none") as memory:
        chat = memory.conversation("门诊", user_id="王芳")
        await chat.record("我对青霉素过敏。", "记住了。")
        await chat.record(messages=MESSAGES)
        step = {"tool": "search", "input": {"query": "血压"}, "result": "第一步：量血压。" * 100}
        await chat.record("血压怎么量？", "早晚各一次。", steps=[step])
        await chat.checkpoint(summary="对青霉素过敏。", recent_turns=1)
        await memory.remember("住在上海", user_id="王芳", attribute="residence")
        await memory.remember("住在北京", user_id="王芳", attribute="residence")
        await chat.context("我对什么过敏？")


async def printed(*arguments):
    """A command runs an event loop of its own."""
    said = await anyio.to_thread.run_sync(partial(pagefile, *arguments, "--json"))
    assert 0 == said.code, said.err
    return said.json


async def exported(kind):
    await printed("export", "all.jsonl")
    lines = [json.loads(line) for line in (await anyio.Path("all.jsonl").read_text("utf-8")).splitlines()]
    return [line for line in lines if line["type"] == kind]


async def asked(client, path, **params):
    answer = await client.get(path, params=params)
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def test_each_record_is_printed_in_one_shape():
    """Ids flat, times in UTC with a Z, the same names: what reads one reads them all."""
    in_conversation = await printed("show", "门诊")
    cli = {
        "turn": in_conversation["turns"],
        "checkpoint": in_conversation["checkpoints"],
        "call": await printed("calls", "门诊"),
        "fact": await printed("facts", "王芳", "--history"),
        "page": (await printed("archive", "ls"))["pages"],
    }
    revisions, heads = await printed("facts", "revisions", "王芳"), await printed("show")
    async with serving(Settings(url=URL, embedder=EmbedderSettings(name="none"))) as client:
        paths = {kind: f"/v1/{kind}s" for kind in cli}
        http = {
            kind: (await asked(client, path, **HERE))["items"]
            for kind, path in paths.items()
            if kind != "fact"
        }
        http["fact"] = (await asked(client, "/v1/facts", user_id="王芳", history=True))["items"]
        timeline = await asked(client, urls.twin(urls.CONVERSATION), **HERE)
        facts = await asked(client, urls.twin(urls.FACTS), user_id="王芳", history="yes")
        archive = await asked(client, urls.twin(urls.ARCHIVE), **HERE)
        assert revisions == (await asked(client, "/v1/facts/revisions", user_id="王芳"))["items"]
        assert revisions == facts["revisions"][::-1]
        assert heads == (await asked(client, "/v1/memory/conversations"))["items"] == [timeline["head"]]
    assert cli == http
    assert all(cli.values())
    marks = [entry for entry in timeline["entries"] if "summary" in entry]
    assert (http["turn"], http["checkpoint"]) == (
        [entry for entry in timeline["entries"] if entry not in marks],
        marks,
    )
    assert sorted(http["fact"], key=lambda fact: fact["id"]) == sorted(
        facts["facts"], key=lambda fact: fact["id"]
    )
    assert http["page"] == archive["pages"]
    for kind, records in http.items():
        lines = {_id(line): line for line in await exported(kind)}
        for record in records:
            line = lines[_id(record)]
            left_out = record.keys() - line.keys()
            assert (
                left_out - NOT_EXPORTED.keys()
                == {name for name in left_out if record[name] is None} - NOT_EXPORTED.keys()
            )
            assert line.keys() - record.keys() <= EXPORTED_ONLY
            shared = line.keys() & record.keys()
            assert {name: record[name] for name in shared} == {name: line[name] for name in shared}


async def test_a_call_is_explained_and_replayed_in_one_shape():
    """The command, the route and the page beside it tell the same of a window."""
    call_id = (await printed("calls", "门诊"))[0]["id"]
    explained, replayed = (
        await printed("explain", call_id),
        await printed("replay", call_id, "--set", "window_tokens=3000"),
    )
    async with serving(Settings(url=URL, embedder=EmbedderSettings(name="none"))) as client:
        assert explained == await asked(client, "/v1/explain", call_id=call_id, **HERE)
        assert explained == await asked(client, urls.twin(urls.CALL), call_id=call_id)
        body = {"call_id": call_id, "changes": {"window_tokens": 3000}, **HERE}
        answer = await client.post("/v1/replay", json=body)
        assert (200, replayed) == (answer.status_code, answer.json())
        page = await asked(client, urls.twin(urls.REPLAY), call_id=call_id, **{"set.window_tokens": "3000"})
        assert replayed == page["replay"]


async def test_a_window_is_printed_as_it_is_answered():
    """With its parts beside its messages; only the id differs, which an inspection does not get."""
    window = await printed("context", "门诊", "我对什么过敏？")
    async with serving(Settings(url=URL, embedder=EmbedderSettings(name="none"))) as client:
        answers = [
            (
                await client.post("/v1/context", json={**HERE, "query": "我对什么过敏？", "format": form})
            ).json()
            for form in ("openai", "parts")
        ]
    assert window.keys() == answers[0].keys()
    assert (answers[0]["messages"], answers[1]["parts"]) == (window["messages"], window["parts"])
    assert answers[0]["receipt"] == window["receipt"]


def _id(record):
    return record.get("id") or record["uuid"]
