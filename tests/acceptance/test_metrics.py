"""Measurements: the five of short-term memory and the obvious others, off the hot path, in Prometheus' own format."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pagefile import Memory, Settings
from pagefile.engine.metrics import METRICS
from pagefile.integrations.prometheus import PrometheusMeter
from pagefile.service.app import create_app
from pagefile.settings.sources import shown


def samples(meter):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(meter.text().decode())
        for sample in family.samples
    }


async def test_one_turn_and_one_checkpoint_move_the_metrics_of_document_001():
    """Checkpoints, summary lengths, token ratios, database time, session reads."""
    meter = PrometheusMeter()
    async with Memory.open("memory://", meter=meter, settings=Settings(window_tokens=400)) as memory:
        chat = memory.conversation("c", user_id="u")
        for n in range(20):
            await chat.record(user=f"问题{n}：血压偏高怎么办？", assistant="按时服药。")
        await memory.settle()
        window = await chat.context("?")
        summaries = [one.summary for one in await chat.checkpoints()]
        await memory.engine.sessions.get(chat.scope)
        await chat.recall("血压")
    found = samples(meter)
    assert found["pagefile_checkpoints_total", ()] == len(summaries) >= 1
    assert found["pagefile_summary_chars_sum", ()] == sum(map(len, summaries))
    assert found["pagefile_token_ratio_sum", ()] == window.ratio > 0
    assert found["pagefile_store_seconds_sum", (("verb", "append"),)] > 0
    for name in (
        "pagefile_summary_chars",
        "pagefile_token_ratio",
        "pagefile_session_seconds",
        "pagefile_window_tokens",
    ):
        assert found[f"{name}_count", ()] >= 1, name
    assert found["pagefile_store_seconds_count", (("verb", "append"),)] == 20
    assert found["pagefile_store_seconds_count", (("verb", "view"),)] >= 1
    assert found["pagefile_turns_total", (("status", "done"),)] == 20
    assert found["pagefile_recalls_total", ()] >= 1
    assert found["pagefile_indexed_turns_total", ()] == 20


async def test_memories_that_change_are_counted():
    """The same ones again are no change; one more is, in the conversations that show it."""
    meter = PrometheusMeter()

    def changes():
        return samples(meter)["pagefile_memory_changes_total", ()]

    async with Memory.open("memory://", meter=meter, embedder="none") as memory:
        await memory.remember("用户喜欢龙井茶", user_id="u")
        chat, other = memory.conversation("c", user_id="u"), memory.conversation("d", user_id="v")
        for question in ("喝什么茶？", "喝什么茶呢？"):
            await chat.context(question)
            await other.context(question)
        assert 0 == changes()
        await memory.remember("用户也喝普洱茶", user_id="u")
        for question in ("喝什么茶？", "喝什么茶呢？"):
            await chat.context(question)
            await other.context(question)
        assert 1 == changes()
        await memory.remember("用户养猫", user_id="v")
        await other.context("用户养猫吗？")
        assert 2 == changes()


def test_every_metric_has_the_prefix_and_says_what_it_tells():
    """Names are a promise to dashboards."""
    assert all(metric.name.startswith("pagefile_") for metric in METRICS)
    assert all(metric.tells.endswith(".") for metric in METRICS)
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_a_metric_that_is_not_listed_is_a_mistake():
    """Nothing is measured in silence under a name nobody knows."""
    with pytest.raises(KeyError):
        PrometheusMeter().count("pagefile_unknown_total")


async def test_the_service_gives_its_metrics():
    """`/metrics`, for Prometheus to scrape."""
    app = create_app(Settings(url="memory://"))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        await client.post("/v1/turns", json={"conversation_id": "c", "user": "hello", "assistant": "hi"})
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'pagefile_turns_total{status="done"} 1.0' in answer.text
    (tasks,) = [line for line in answer.text.splitlines() if line.startswith("pagefile_tasks ")]
    assert float(tasks.partition(" ")[2]) >= 1


def test_a_models_key_is_never_shown():
    """Not by `pagefile config`, which shows every other setting."""
    assert shown("sk-secret", "model.api_key") == "***"
