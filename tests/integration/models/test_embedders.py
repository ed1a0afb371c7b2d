"""Vectors from every kind of embedder: the encoder itself, the real client against a server that speaks the protocol, LangChain."""

import base64
import json
import logging
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from pagefile import Memory, ModelOutputError, ModelUnavailableError, Settings
from pagefile.models import LangChainEmbedder, MemoryEncoder, OpenAIEmbedder
from pagefile.models import embedders as encoders
from pagefile.settings import EmbedderSettings
from tests.waiting import PATIENCE_S, until


def vector_of(text):
    """What the server thinks of a text: something that differs."""
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


class Stub(BaseHTTPRequestHandler):
    """Answers `POST /v1/embeddings` as OpenAI does, or as badly as the test wants."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], request))
        status, body = self.server.answer(request)
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def embeddings(request, vectors=None, *, packed=False):
    vectors = [vector_of(text) for text in request["input"]] if vectors is None else vectors
    rows = [
        base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() if packed else row for row in vectors
    ]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return 200, {"object": "list", "model": request["model"], "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}}  # fmt: skip


@contextmanager
def served(answer):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.answer, server.seen = answer, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("packed", [True, False], ids=["base64", "floats"])
async def test_an_endpoint_answers_in_either_encoding(packed):
    """Rows come in the order of the texts and of unit length; the dimension is learnt; a blank text gives zeros."""

    def shuffled(request):
        status, body = embeddings(request, packed=packed)
        return status, {**body, "data": body["data"][::-1]}

    with served(shuffled) as (server, url):
        embedder = OpenAIEmbedder("any", base_url=url, api_key="sk-1")
        assert embedder.dimension == 0
        rows = await embedder.embed(["血压", "", "a longer text"])
        await embedder.close()
    assert embedder.model.key == "any/3"
    for row, text in ((rows[0], "血压"), (rows[2], "a longer text")):
        wanted = np.array(vector_of(text)) / np.linalg.norm(vector_of(text))
        assert np.allclose(row, wanted, atol=1e-6)
    assert not rows[1].any()
    path, key, request = server.seen[0]
    assert (path, key, request["model"], request["input"]) == (
        "/v1/embeddings",
        "Bearer sk-1",
        "any",
        ["血压", "a longer text"],
    )
    assert "dimensions" not in request


async def test_texts_are_sent_in_batches_and_clipped():
    """Seven texts in batches of three are three requests; nothing is longer than a model reads."""
    with served(embeddings) as (server, url):
        embedder = OpenAIEmbedder("any", base_url=url, batch=3)
        rows = await embedder.embed(["长" * 50_000, *"abcdef"])
        await embedder.close()
    assert [len(request["input"]) for _, _, request in server.seen] == [3, 3, 1]
    assert len(server.seen[0][2]["input"][0]) == 6000
    assert rows.shape == (7, 3)


async def test_a_dimension_that_is_given_is_asked_for_and_checked():
    """An endpoint that gives another one is an error that names both."""
    with served(embeddings) as (server, url):
        embedder = OpenAIEmbedder("any", base_url=url, dimension=256)
        with pytest.raises(ModelOutputError, match="3 numbers instead of 256"):
            await embedder.embed(["x"])
        await embedder.close()
    assert server.seen[0][2]["dimensions"] == 256


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: embeddings(request, [[1.0, 0.0]]),
        lambda request: embeddings(request, [[1.0, 0.0], [1.0]]),
        lambda request: embeddings(request, []),
        lambda request: embeddings(request, [[1.0, float("nan")], [1.0, 0.0]]),
        lambda _: (200, {"hello": "world"}),
        lambda _: (200, []),
    ],
    ids=["too few", "of two lengths", "none", "not a number", "no protocol", "a list"],
)
async def test_an_answer_that_is_no_embeddings_is_an_error_of_ours(answer):
    """Never a wrong vector, never the client's own exception."""
    with served(answer) as (_, url):
        embedder = OpenAIEmbedder("any", base_url=url)
        with pytest.raises((ModelOutputError, ModelUnavailableError)):
            await embedder.embed(["a", "b"])
        await embedder.close()


@pytest.mark.parametrize(("status", "requests"), [(401, 1), (400, 1), (503, 3)])
async def test_what_passes_is_tried_again_and_what_does_not_is_not(status, requests, caplog):
    """Retries are bounded, and the key is in no message."""
    refused = {"error": {"message": "Incorrect API key provided: sk-secret"}}
    with served(lambda _: (status, refused)) as (server, url), caplog.at_level(logging.DEBUG):
        embedder = OpenAIEmbedder("any", base_url=url, api_key="sk-secret")
        with pytest.raises(ModelUnavailableError, match=str(status)) as failure:
            await embedder.embed(["a"])
        await embedder.close()
    assert len(server.seen) == requests
    assert "sk-secret" not in str(failure.value)
    assert "sk-secret" not in "".join(
        record.getMessage() for record in caplog.records if "pagefile" in record.name
    )


@pytest.mark.waits
async def test_a_server_that_is_not_there_or_hangs_is_unavailable():
    """Within the time that was given."""
    quiet = threading.Event()
    with served(lambda request: (quiet.wait(PATIENCE_S), embeddings(request))[1]) as (_, url):
        for base_url in ("http://127.0.0.1:9/v1", url):
            embedder = OpenAIEmbedder("any", base_url=base_url, timeout_s=0.05)
            with pytest.raises(ModelUnavailableError, match=r"APIConnectionError|APITimeoutError"):
                await embedder.embed(["a"])
            await embedder.close()
        quiet.set()


async def test_the_settings_name_an_endpoint(tmp_path):
    """`embedder.name` with a `base_url`: turns are found by what the endpoint says."""
    with served(embeddings) as (server, url):
        settings = Settings(embedder=EmbedderSettings(name="bge-m3", base_url=url, api_key="sk-2"))
        async with Memory.open(f"sqlite:///{tmp_path}/a.db", settings=settings) as memory:
            await memory.conversation("c", user_id="u").record("血压偏高怎么办？", "少盐，多运动。")
            await memory.settle()
            hits = await memory.recall("血压高", user_id="u")
            assert hits[0].parts["similarity"] > 0
            assert (await memory.describe())["recall"]["vectors"] == {"bge-m3/3": 1}
    assert server.seen[0][2]["model"] == "bge-m3"


# -- the encoder that comes with Pagefile ------------------------------------------------------------------------------


async def test_the_encoder_finds_a_meaning_in_two_languages():
    """What means the same lies nearer than what shares the language; rows are of unit length, a blank text gives zeros."""
    encoder = MemoryEncoder()
    texts = ["我对花生过敏", "I am allergic to peanuts", "今天天气很好", "", "长" * 20_000, "!?"]
    rows = await encoder.embed(texts)
    assert rows.shape == (6, encoder.dimension)
    assert np.allclose(np.linalg.norm(rows, axis=1), [1, 1, 1, 0, 1, 1], atol=1e-5)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.3
    assert (await encoder.embed([])).shape == (0, 384)


@pytest.mark.waits
async def test_the_encoder_never_holds_up_the_event_loop(monkeypatch):
    """It works in a thread of its own, one batch after another."""
    encoded, turned = encoders._encoded, threading.Semaphore(0)
    held = []

    def after_the_loop(loaded, texts):
        held.append(len(texts))
        assert turned.acquire(timeout=PATIENCE_S), "the event loop did nothing else meanwhile"
        return encoded(loaded, texts)

    async def turn():
        for batch in range(1, 5):
            await until(lambda batch=batch: len(held) == batch)
            turned.release()

    monkeypatch.setattr(encoders, "_encoded", after_the_loop)
    async with anyio.create_task_group() as together:
        together.start_soon(turn)
        await MemoryEncoder().embed([f"第{n}个问题：明天去哪里吃饭比较好？" for n in range(64)])
    assert [16] * 4 == held


# -- LangChain ---------------------------------------------------------------------------------------------------------


async def test_a_langchain_object_embeds():
    """Its own numbers, of unit length, under the name that was given."""
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8), name="fake")
    rows = await embedder.embed(["一", " ", "two"])
    assert (embedder.model.key, rows.shape) == ("fake/8", (3, 8))
    assert np.allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-5)
    async with Memory.open("memory://", embedder=embedder) as memory:
        chat = memory.conversation("c", user_id="u")
        await chat.record("two", "three")
        await memory.settle()
        assert (await memory.describe())["recall"]["vectors"] == {"fake/8": 1}


async def test_a_langchain_object_that_fails_is_unavailable():
    """Whatever it raises."""

    class Broken(Embeddings):
        def embed_documents(self, texts):
            raise RuntimeError("no GPU")

        def embed_query(self, text):
            raise RuntimeError("no GPU")

    with pytest.raises(ModelUnavailableError, match="RuntimeError"):
        await LangChainEmbedder(Broken(), name="broken").embed(["x"])
