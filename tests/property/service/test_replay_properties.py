"""Whatever somebody wants changed about a recorded call, they get a window within its budget or a problem that says why not."""

import anyio
import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Settings
from pagefile.engine.replay import CHANGEABLE
from pagefile.settings import ArchiveSettings, EmbedderSettings
from tests.acceptance.http_serving import serving

SETTINGS = Settings(
    url="memory://",
    archive=ArchiveSettings(threshold=200, page_from=100),
    embedder=EmbedderSettings(name="none"),
    checkpoints="manual",
)
HERE = {"conversation_id": "诊疗/1", "user_id": "ada"}
PROBLEMS = {"settings", "budget", "invalid-argument", "handle-not-found", "validation"}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(1, 3000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1),
    st.text(max_size=20),
    st.sampled_from(["auto", "never", "head", "hybrid", "zh", "en", "estimate", "file:/", "qwen:x"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
names = (
    st.sampled_from(CHANGEABLE)
    | st.sampled_from(["call_id", "self", "archive__threshold"])
    | st.text(max_size=9)
)
changes = st.dictionaries(names, values, max_size=3)


async def prepared(client: httpx.AsyncClient) -> str:
    """A conversation with an archived result and a fact, and a call of it."""
    step = {"tool": "search", "input": {"q": "高血压"}, "result": "少盐，多运动。\n" * 60}
    turn = {**HERE, "user": "高血压怎么办？", "assistant": "少盐。", "steps": [step]}
    await client.post("/v1/turns", json=turn)
    await client.post("/v1/turns", json={**HERE, "user": "谢谢", "assistant": "不客气。"})
    await client.post("/v1/facts", json={"user_id": "ada", "text": "喜欢茶"})
    window = await client.post("/v1/context", json={**HERE, "query": "还有呢？", "window_tokens": 2000})
    return window.json()["id"]


async def replayed(wanted: list[dict[str, object]]) -> None:
    async with serving(SETTINGS) as client:
        call_id = await prepared(client)
        was = (await client.get("/v1/explain", params={**HERE, "call_id": call_id})).json()
        assert was["exact"]
        for one in wanted:
            answer = await client.post("/v1/replay", json={**HERE, "call_id": call_id, "changes": one})
            said = f"{one} -> {answer.status_code} {answer.text}"
            told = answer.json()
            if not answer.is_success:
                assert answer.status_code == 501 or told["code"] in PROBLEMS, said
                continue
            assert told["after"]["tokens"] <= told["after"]["budget"], said
            assert told["before"] == was["window"], said
            compared = told["comparison"]
            assert compared["difference"] == sum(block["difference"] for block in compared["blocks"]), said
            assert compared["same"] == (told["before"]["messages"] == told["after"]["messages"]), said
        again = (await client.get("/v1/explain", params={**HERE, "call_id": call_id})).json()
        assert again == was
        assert len((await client.get("/v1/costs", params=HERE)).json()["items"]) == 1


@settings(max_examples=15)
@given(st.lists(changes, min_size=5, max_size=15))
def test_a_replay_answers_whatever_is_changed(wanted: list[dict[str, object]]):
    """Never an internal error; what it answers adds up; and nothing is written."""
    anyio.run(replayed, wanted)
