"""Whatever is written, given up, erased and interrupted: every turn that counts ends with one vector, nothing else has any."""

import tempfile

import anyio
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from pagefile import Memory, ModelUnavailableError, Settings
from pagefile.records import Scope
from pagefile.testing import HashingEmbedder

CONVERSATIONS = ("甲", "b/1", "c:2")
WORDS = ("血压", "科幻电影", "导演", "weather", "running shoes", "上周", "青霉素")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
actions = st.one_of(
    st.tuples(st.just("record"), st.sampled_from(CONVERSATIONS), texts),
    st.tuples(
        st.sampled_from(["begin", "abort", "complete", "reset", "forget"]),
        st.sampled_from(CONVERSATIONS),
        st.just(""),
    ),
    st.tuples(st.sampled_from(["settle", "break", "reopen"]), st.just(""), st.just("")),
)


class Fragile(HashingEmbedder):
    """Fails once after being told to, in the middle of its work."""

    fails = False

    async def embed(self, texts):
        if self.fails:
            self.fails = False
            raise ModelUnavailableError("broken in the middle")
        return await super().embed(texts)


class Model:
    """What must be: the ids of the turns that count, by conversation: the done ones and the aborted ones."""

    def __init__(self):
        self.counted = {name: [] for name in CONVERSATIONS}
        self.open = {}
        self.number = 0

    async def play(self, memory, action, name, text):
        chat = memory.conversation(name, user_id="u") if name else None
        self.number += 1
        turn_id = f"t{self.number}"
        match action:
            case "record":
                await chat.record(text, text, id=turn_id)
                self.counted[name].append(turn_id)
            case "begin":
                await chat.begin("没说完", id=turn_id)
                self.open.setdefault(name, []).append(turn_id)
            case "abort" | "complete" if self.open.get(name):
                turn = self.open[name].pop()
                await (chat.complete(turn, "说完了") if action == "complete" else chat.abort(turn))
                self.counted[name].append(turn)
            case "reset" if self.counted[name]:
                await chat.reset()
            case "forget":
                await memory.forget(conversation_id=name)
                self.counted[name], self.open[name] = [], []
            case "settle":
                await memory.settle()
            case "break":
                memory.engine.kit.vectors.embedder.fails = True

    @property
    def all(self):
        return sorted(turn for counted in self.counted.values() for turn in counted)


async def with_vectors(memory, scope):
    vectors = memory.engine.kit.vectors
    asked = (await vectors.embedder.embed(["血压 a e"]))[0]
    return await vectors.index.search(vectors.embedder.model, scope, asked, 10_000)


async def check(memory, model):
    """One vector for each turn that counts, in its conversation; and what is recalled was said, in order, with true parts."""
    memory.engine.kit.vectors.embedder.fails = False
    await memory.settle()
    near = await with_vectors(memory, Scope(user="u"))
    assert sorted(one.turn_id for one in near) == model.all
    for name in CONVERSATIONS:
        near = await with_vectors(memory, Scope(user="u", conversation=name))
        assert sorted(one.turn_id for one in near) == sorted(model.counted[name])
    for question in WORDS:
        hits = await memory.recall(question, user_id="u", limit=5)
        assert {hit.id for hit in hits} <= set(model.all)
        assert len({hit.id for hit in hits}) == len(hits) <= 5
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        for hit in hits:
            parts = sum(value for part, value in hit.parts.items() if part not in {"coverage", "similarity"})
            assert abs(parts - hit.score) < 1e-6 * max(1.0, hit.score)


@examples(max_examples=25)
@given(st.lists(actions, max_size=25))
def test_every_turn_that_counts_has_one_vector_whatever_happens(played):
    """Across failures of the embedder, erasures, resets and restarts."""

    async def story():
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/a.db"
            model, left = Model(), list(played)
            while True:
                settings = Settings(synchronous="normal", drain_s=0)
                async with Memory.open(url, embedder=Fragile(), settings=settings) as memory:
                    while left and left[0][0] != "reopen":
                        await model.play(memory, *left.pop(0))
                    if not left:
                        await check(memory, model)
                        return
                left.pop(0)

    anyio.run(story)


@examples(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from(CONVERSATIONS), texts), min_size=1, max_size=30), st.integers(1, 12)
)
def test_kept_terms_find_what_segmenting_finds(said, kept):
    """A process that begins with the terms of some turns ranks as one that works all of them out."""

    async def story():
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/a.db"
            settings = Settings(synchronous="normal", indexing="manual")
            async with Memory.open(url, embedder="none", settings=settings) as memory:
                for number, (name, text) in enumerate(said):
                    await memory.conversation(name, user_id="u").record(text, text[::-1], id=f"{number}")
                    if number == kept:
                        await memory.rebuild()
                warm = [await memory.recall(question, user_id="u") for question in WORDS]
            async with Memory.open(url, embedder="none", settings=settings) as memory:
                cold = [await memory.recall(question, user_id="u") for question in WORDS]
            assert cold == warm

    anyio.run(story)
