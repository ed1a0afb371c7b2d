"""Sends the example of every route, one after the other, and keeps the answers.

`python -m tests.acceptance.http_examples` writes them into the reference; a test compares their shape.
"""

import json
from pathlib import Path
from typing import Any

import anyio
from fastapi import FastAPI

import pagefile.service
from pagefile import Settings
from pagefile.inspector.reference import Operation, operations
from pagefile.service.app import create_app
from pagefile.settings import ArchiveSettings, EmbedderSettings
from pagefile.wire.requests import CHAT, SOME_UUID, USER

from .http_serving import serving

FILE = Path(pagefile.service.__file__).parent / "templates" / "examples.json"
#: With time for an encoder that is still loading: what it misses would be noted in the answers.
SETTINGS = Settings(
    url="memory://",
    archive=ArchiveSettings(threshold=200, page_from=200, reuse_s=3600),
    embedder=EmbedderSettings(query_timeout_s=60),
)
ARCHIVED = """高血压患者的日常注意事项

饮食：每天食盐不超过五克，少吃腌制食品；多吃蔬菜、水果和豆制品，少饮酒，不吸烟，保持体重。

监测：每天早晚各测一次血压，坐下休息五分钟后再量，连续测两遍取平均值，并记在本子上。

用药：按时服药，不要因为血压正常就自行停药；换药或加药前先问医生，外出时随身带药。

运动：每周五天，每天快走三十分钟；血压高于 180/110 mmHg 时不要运动，立即联系医生。

复诊：血压稳定时每三个月复诊一次，带上记录本；头痛、胸闷或视物模糊时随时就诊。
"""
JSON = "application/json"
#: The turn that one of the examples aborts.
LOST_TURN = "turn-3"
#: The routes whose examples speak of an archived page.
ABOUT_PAGES = (
    "/v1/load",
    "/v1/pages",
    "/v1/pages/page",
    "/v1/pages/text",
    "/v1/pages/search",
    "/v1/pages/fetched",
    "/v1/pages/pin",
    "/v1/pages/purge",
    "/v1/tools/call",
)
#: The routes whose examples speak of a recorded call.
ABOUT_CALLS = ("/v1/calls/call", "/v1/explain", "/v1/replay")

#: The order in which the examples make sense.
ORDER = [
    "POST /v1/turns",
    "POST /v1/turns/begin",
    "POST /v1/turns/step",
    "POST /v1/turns/extend",
    "POST /v1/turns/complete",
    "POST /v1/turns/abort",
    "GET /v1/turns",
    "GET /v1/turns/done",
    "GET /v1/turns/messages",
    "POST /v1/memory/conversations/fork",
    "POST /v1/context",
    "GET /v1/calls",
    "GET /v1/calls/call",
    "GET /v1/explain",
    "POST /v1/replay",
    "GET /v1/costs",
    "POST /v1/recall",
    "POST /v1/load",
    "GET /v1/load",
    "GET /v1/pages",
    "GET /v1/pages/page",
    "GET /v1/pages/text",
    "POST /v1/pages/search",
    "POST /v1/pages/fetched",
    "POST /v1/pages/pin",
    "GET /v1/tools",
    "POST /v1/tools/call",
    "POST /v1/pages/purge",
    "GET /v1/memory/conversations",
    "POST /v1/checkpoints",
    "GET /v1/checkpoints",
    "GET /v1/log",
    "POST /v1/facts",
    "GET /v1/facts",
    "POST /v1/facts/import",
    "GET /v1/facts/revisions",
    "POST /v1/facts/undo",
    "POST /v1/facts/correct",
    "POST /v1/facts/retract",
    "POST /v1/settle",
    "GET /v1/memory/conversations/conversation",
    "PUT /v1/session",
    "GET /v1/history",
    "GET /v1/session",
    "POST /v1/import",
    "POST /v1/reset",
    "GET /v1/resets",
    "POST /v1/forget",
    "GET /healthz",
    "GET /readyz",
]


async def answers() -> dict[str, Any]:
    """What the service answers to its own examples."""
    # Without the stored examples: a new route has none yet.
    document = FastAPI.openapi(create_app(SETTINGS))
    known = {f"{one.method} {one.path}": one for one in operations(document)}
    assert set(ORDER) == {name for name, one in known.items() if JSON in one.success["content"]}
    told: dict[str, Any] = {}
    async with serving(SETTINGS) as client:
        for name in ORDER:
            uuid = await prepared(client, name, told)
            request = sent(known[name], document, uuid)
            answer = await client.request(known[name].method, known[name].path, **request)
            assert answer.is_success, f"{name}: {answer.text}"
            told[name] = json.loads(answer.text.replace(uuid, SOME_UUID))
    return told


async def prepared(client: Any, name: str, told: dict[str, Any]) -> str:
    """What an example needs to be there: returns the uuid it speaks of."""
    here = {"conversation_id": CHAT, "user_id": USER}
    if name == "POST /v1/turns/abort":
        await client.post("/v1/turns/begin", json={**here, "id": LOST_TURN, "user": "等一下"})
    if name.endswith(ABOUT_CALLS):
        return told["GET /v1/calls"]["items"][0]["id"]
    if name == "POST /v1/facts/correct":
        return told["POST /v1/facts"]["id"]
    if name == "POST /v1/facts/retract":
        return told["POST /v1/facts/correct"]["id"]
    if not name.endswith(ABOUT_PAGES):
        return SOME_UUID
    step = {"tool": "guideline", "input": {"topic": "高血压"}, "result": ARCHIVED}
    turn = {**here, "id": "turn-4", "user": "指南怎么说？", "assistant": "见附件。", "steps": [step]}
    page = (await client.post("/v1/turns", json=turn)).json()["steps"][0]["page"]
    if name == "POST /v1/pages/purge":
        await client.post("/v1/pages/pin", json={**here, "uuid": page, "pinned": False})
    return page


def sent(operation: Operation, document: dict[str, Any], uuid: str) -> dict[str, Any]:
    """The example request of a route, as arguments for the client."""
    if body := operation.spec.get("requestBody"):
        if JSON not in body["content"]:
            [(kind, described)] = body["content"].items()
            return {"content": described["example"], "headers": {"Content-Type": kind}}
        reference = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        example = document["components"]["schemas"][reference]["examples"][0]
        return {"json": json.loads(json.dumps(example).replace(SOME_UUID, uuid))}
    wanted = [one for one in operation.spec.get("parameters", ()) if one["name"] != "tenant"]
    shown = {one["name"]: one["schema"]["examples"][0] for one in wanted if "examples" in one["schema"]}
    return {"params": {name: uuid if value == SOME_UUID else value for name, value in shown.items()}}


def shape(value: Any) -> Any:
    """The keys of JSON, and the kinds of its values."""
    match value:
        case dict():
            return {key: shape(inner) for key, inner in value.items()}
        case list():
            return [shape(value[0])] if value else []
        case _:
            return type(value).__name__


if __name__ == "__main__":
    FILE.write_text(json.dumps(anyio.run(answers), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
