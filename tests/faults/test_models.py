"""Models and embedders that hang, fail or talk nonsense: the memory answers all the same, says what is missing, and catches up."""

import re
import time

import pytest

from tests.integration.workers.serving import served
from tests.waiting import until_so

from .load import ANSWER_S
from .moods import BAD, Endpoint

pytestmark = [pytest.mark.slow, pytest.mark.waits, pytest.mark.timeout(300)]

USER = {"user_id": "李雷"}
#: Something else to be allergic to for each mood.
NAMES = dict(zip(("well", *BAD), ("青霉素", "头孢", "花生", "芒果", "花粉", "牛奶", "海鲜"), strict=True))
#: Nobody in this test waits for a model longer than this; the answers that need none come at once.
PATIENCE_S = 1


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A service whose every model is the endpoint."""
    with Endpoint() as endpoint:
        named = {"name": "stub", "base_url": endpoint.url, "api_key": "sk-secret", "timeout_s": PATIENCE_S}
        settings = {f"{who}__{key}": value for who in ("model", "embedder") for key, value in named.items()}
        folder = tmp_path_factory.mktemp("models")
        with served(
            folder,
            "sqlite:///a.db",
            **settings,
            facts__extract="model",
            recall="always",
            window_tokens=2000,
            recent_turns=2,
        ) as service:
            yield service, endpoint


def test_every_mood_in_turn_and_then_well_again(place, stopwatch):
    """Recording, windows and recall answer throughout; afterwards every turn has its vector and its fact, once."""
    service, endpoint = place
    told = [recorded(service, "well", number) for number in range(3)]
    settled(service)
    assert facts(service) == set(told)
    for mood in BAD:
        endpoint.mood = mood
        told += [recorded(service, mood, number) for number in range(2)]
        answers_go_on(service)
        service.post("/v1/settle", timeout_s=3)
        chat_ends_properly(service)
    counted = metrics(service)
    for tier in ("meaning", "facts", "summarizer"):
        assert counted[f'pagefile_degraded_total{{tier="{tier}"}}'] > 0, tier
    assert "Recall uses words only" in service.said
    assert "sk-secret" not in service.said
    endpoint.mood = "well"
    began = time.monotonic()
    settled(service)
    stopwatch.told("models that are back", time.monotonic() - began)
    assert facts(service) == set(told)
    # Vectors are made by a process of their own: the one that answers finds out when its rest is over, within 30 s.
    until_so(lambda: not recalls_by_word_only(service))
    vectors_of_every_turn(endpoint, told)
    assert metrics(service)["pagefile_indexed_turns_total"] == turns(service)


def recalls_by_word_only(service):
    return any("by word only" in note for note in context(service, "过敏")["receipt"]["degraded"])


def recorded(service, mood, number):
    """A turn that states a fact, answered without waiting for anybody; long enough that checkpoints are due now and then."""
    said = f"我对{NAMES[mood]}{'甲乙丙'[number]}过敏"
    filler = f"{mood} {number} 高血压患者每天食盐不超过五克。" * 20
    answer = service.post(
        "/v1/turns", conversation_id=f"c-{number}", **USER, id=f"{mood}-{number}", user=said, assistant=filler
    )
    assert answer.status_code == 201, answer.text
    return said


def context(service, query):
    answer = service.post("/v1/context", conversation_id="c-0", **USER, query=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["tokens"] <= 2000
    return answer.json()


def answers_go_on(service):
    """Windows and recall come, without the part that is missing, and say so."""
    window = context(service, "我对什么过敏？")
    assert window["messages"][-1]["content"].endswith("我对什么过敏？")
    assert any("by word only" in note for note in window["receipt"]["degraded"]), window["receipt"][
        "degraded"
    ]
    began = time.monotonic()
    hits = service.post("/v1/recall", query="青霉素乙过敏", **USER)
    assert time.monotonic() - began < ANSWER_S
    assert "青霉素乙" in hits.json()["items"][0]["text"]


def chat_ends_properly(service):
    """A stream that cannot go on ends with a problem, and its turn without an answer; vectors are not its business."""
    answer = service.post("/v1/chat/stream", conversation_id="chat", **USER, message="你好")
    assert answer.status_code == 200
    last = answer.text.strip().split("\n\n")[-1]
    assert re.match(r"event: (error|done)\n", last), last
    items = service.get("/v1/turns", conversation_id="chat", **USER, newest="true", limit=1).json()["items"]
    assert items[0]["status"] == ("done" if "event: done" in last else "aborted")


def settled(service):
    """Background work has caught up with everything; a trial that came too early is not the last."""
    service.until(lambda: service.post("/v1/settle", timeout_s=20).json()["settled"])


def facts(service):
    """What is held about the user, each statement once."""
    items = service.get("/v1/facts", **USER).json()["items"]
    texts = [fact["text"].removeprefix("用户：").removeprefix("用户") for fact in items]
    assert len(texts) == len(set(texts))
    return {text if text.startswith("我") else f"我{text}" for text in texts}


def turns(service):
    """How many turns count: those that are done, and those that were given up after the user had spoken."""
    chat = service.get("/v1/turns", conversation_id="chat", **USER).json()["items"]
    given_up = [turn for turn in chat if turn["status"] == "aborted"]
    assert given_up
    return metrics(service)['pagefile_turns_total{status="done"}'] + len(given_up)


def vectors_of_every_turn(endpoint, told):
    """Each turn's words were made vectors of while the endpoint worked, and none twice."""
    for said in told:
        found = [text for text in endpoint.embedded if said in text]
        assert found, said


def metrics(service):
    """Every sample by its name and labels."""
    lines = [line.rpartition(" ") for line in service.get("/metrics").text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}
