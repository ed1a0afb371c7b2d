"""What must hold for the workspace, whatever tools return."""

import json

import anyio
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import BudgetError, Memory, Scope, Settings
from pagefile.settings import ArchiveSettings, WorkspaceSettings
from pagefile.standalone import AgentMemory, AgentWithMemory, ContentChunk
from pagefile.stores import InMemoryStore
from pagefile.testing import FakeClock
from pagefile.text.scores import normalised
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter
from pagefile.tiers.workspace import Workspaces
from pagefile.tiers.workspace.outline import chapters, compact, entries, outline
from pagefile.tiers.workspace.results import canonical, to_json
from tests.engines import engine_over

COUNTER = open_counter()
SCOPE = Scope("t", "u", "c")
TOOLS = ["get_toc", "mcp__x__get_toc", "smart_search", "read_page_range", "read_chapter_content", "bash", ""]

TEXT = st.text(alphabet="ab中文<>&#\n\0\ud800 .1第章", max_size=30)
KEYS = st.one_of(
    st.sampled_from(
        [
            "content",
            "text",
            "source",
            "score",
            "results",
            "items",
            "children",
            "title",
            "level",
            "page_num",
            "reg_id",
            "type",
            "error",
            "isError",
            "metadata",
            "chunk_type",
        ]
    ),
    TEXT,
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from([0.5, 0.0164, 12.5]))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    TEXT,
    st.binary(max_size=20),
    st.sampled_from([object(), int, ValueError("x")]),
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(KEYS, inner, max_size=5), st.tuples(inner, inner)
    ),
    max_leaves=25,
)
HITS = st.lists(
    st.fixed_dictionaries(
        {
            "content": st.text(alphabet="母线失压ab \n", min_size=1, max_size=400).filter(str.strip),
            "source": st.sampled_from([f"angui P{n}" for n in range(14)]),
            "score": st.sampled_from([0.2, 0.5, 0.5, 0.7, 0.9, 1.0]),
        }
    ),
    min_size=1,
    max_size=15,
)
TOCS = st.recursive(
    st.fixed_dictionaries({"title": TEXT}),
    lambda inner: st.fixed_dictionaries({"title": TEXT, "children": st.lists(inner, max_size=4)}),
    max_leaves=30,
)
CHUNKS = st.builds(
    lambda source, score, kind: ContentChunk(f"{kind} of {source}.", source, score, kind),
    st.sampled_from([f"P{n}" for n in range(30)]),
    st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.8, 1.0]),
    st.sampled_from(["search_result", "page_content", "table"]),
)


def told(memory: AgentMemory) -> tuple[str, str]:
    return memory.get_toc_cache_hint(), memory.get_memory_context()


@given(st.lists(CHUNKS, max_size=60), st.integers(0, 12), st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0]))
def test_chunks_are_within_their_room_in_order_and_one_of_a_kind(chunks, room, shown, share):
    """Never over the capacity, best first, no source and type twice, pages within their share where good hits wait."""
    memory = AgentMemory(max_chunks=room, max_injected=shown, page_share=share)
    for chunk in chunks:
        memory.add_chunk(chunk)
    kept = memory.relevant_chunks
    assert len(kept) == min(room, len({chunk.key for chunk in kept}))
    assert kept == sorted(kept, key=lambda chunk: -chunk.relevance_score)
    best = {}
    for chunk in chunks:
        best[chunk.key] = max(chunk.relevance_score, best.get(chunk.key, 0.0))
    if room >= len(best):
        assert best == {chunk.key: chunk.relevance_score for chunk in kept}
    shown_now = memory.shown()
    assert len(shown_now) <= shown
    pages = sum(chunk.chunk_type == "page_content" for chunk in shown_now)
    if pages > shown * share:
        left = [chunk for chunk in kept if chunk not in shown_now and chunk.chunk_type != "page_content"]
        assert all(chunk.relevance_score < memory.min_relevance for chunk in left)


@given(st.lists(CHUNKS, max_size=40), CHUNKS)
def test_adding_the_same_again_changes_nothing(chunks, last):
    """The same chunk twice is that chunk once."""
    memory = AgentMemory(relevant_chunks=[])
    for chunk in (*chunks, last):
        memory.add_chunk(chunk)
    before = list(memory.relevant_chunks)
    memory.add_chunk(last)
    assert before == memory.relevant_chunks


@given(st.lists(st.one_of(st.none(), NUMBERS, TEXT), max_size=20), st.sampled_from(["auto", "unit", "best"]))
def test_scores_are_between_0_and_1_and_stay_there(scores, scale):
    """One for each, in range, and doing it twice changes nothing."""
    once = normalised(scores, scale)
    assert len(once) == len(scores)
    assert all(0 <= score <= 1 for score in once)
    assert once == normalised(once, "unit")


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_scores_keep_their_order(scores):
    """The better hit stays the better, whatever the scale."""
    after = normalised(scores)
    ranked = [after[place] for place in sorted(range(len(scores)), key=lambda place: scores[place])]
    assert ranked == sorted(ranked)


@given(st.lists(st.tuples(st.sampled_from(TOOLS), ANYTHING, ANYTHING), max_size=8))
def test_nothing_a_tool_returns_raises(calls):
    """And what is remembered can be shown, and written as UTF-8."""
    agent = AgentWithMemory("你是助手。")
    for tool, given_, result in calls:
        agent._update_memory(tool, result, given_)
        agent._process_event({"type": "tool_result", "tool_name": tool, "content": result})
        agent._process_event(result)
    assert len(agent.memory.relevant_chunks) <= 10
    agent._build_system_prompt().encode()


@given(ANYTHING)
def test_whatever_came_is_plain_json(value):
    """It can be written, and written the same way twice."""
    read = to_json(value)
    assert json.loads(json.dumps(read)) == read
    assert canonical(value) == canonical(value)
    json.loads(canonical(value))


@given(TOCS, st.integers(0, 400))
def test_outlines_are_bounded_and_lose_no_chapter_silently(toc, room):
    """Within the room; when there is any, what is not shown is counted."""
    lines = entries(to_json(toc))
    shown = outline(lines, room, "… {count}")
    assert len(shown) <= room
    if shown:
        said = shown.splitlines()
        missing = int(said[-1].rsplit(" ", 1)[1]) if said[-1].startswith("… ") else 0
        assert len(lines) == len(said) - bool(missing) + missing
    assert chapters(lines)[:50] == chapters(entries(compact(lines, 50)))[:50]


ACTIONS = st.one_of(
    st.tuples(st.just("absorb"), st.sampled_from(TOOLS), ANYTHING, ANYTHING),
    st.tuples(st.just("absorb"), st.just("smart_search"), st.just({"q": 1}), HITS),
    st.tuples(st.just("absorb"), st.just("get_toc"), st.just({"reg_id": "a"}), TOCS),
    st.tuples(st.just("absorb"), st.just("read_page_range"), st.just({"reg_id": "a"}), st.text(max_size=900)),
    st.tuples(st.sampled_from(["reset", "lookup", "window"]), st.none(), st.none(), st.none()),
)


#: Long titles without letters, and one Chinese character in the outline that is kept of them.
_ONE_CHINESE = {
    "title": "1",
    "children": [{"title": "1" * 60}, {"title": "1" * 20 + "中"}, *([{"title": "11111"}] * 4)],
}


@settings(max_examples=30, deadline=None)
@given(st.lists(ACTIONS, max_size=10), st.sampled_from([40, 150, 500, 4000]))
@example([("absorb", "get_toc", {"reg_id": "a"}, _ONE_CHINESE)], 40)
def test_a_run_never_raises_and_never_exceeds_its_budgets(actions, tokens):
    """Absorbing twice is absorbing once, the same state gives the same bytes, and every window keeps to its tokens."""
    anyio.run(_play, actions, tokens)


async def _play(actions, tokens):
    chosen = Settings(
        on_tier_error="raise",
        window_tokens=tokens,
        archive=ArchiveSettings(threshold=300, page_from=60),
        workspace=WorkspaceSettings(max_chunks=6, max_tokens=120),
    )
    async with Memory.open("memory://", settings=chosen) as memory:
        chat = memory.conversation("c", user_id="u")
        workspace = chat.workspace()
        for verb, tool, given_, result in actions:
            if verb == "absorb":
                kept = await workspace.absorb(tool, given_, result)
                before = workspace.text()
                assert kept.text == (await workspace.absorb(tool, given_, result)).text
                assert before == workspace.text()
                if workspace.rule(tool).cacheable and (cached := await workspace.lookup(tool, given_)):
                    assert cached.text == kept.text
            elif verb == "reset":
                hint = workspace.hint_forms()
                workspace.reset()
                assert hint == workspace.hint_forms()
            elif verb == "lookup":
                cached = await workspace.lookup("get_toc", {"reg_id": "a"}, budget_tokens=100)
                assert cached is None or COUNTER.count(cached.text) <= 100
            await _check(chat, workspace, tokens)


async def _check(chat, workspace, tokens):
    assert len(workspace.notes.relevant_chunks) <= 6
    for budget in (0, 25, 90):
        assert COUNTER.count(workspace.text(budget)) <= budget
    try:
        window = await chat.context("母线失压怎么办？")
    except BudgetError:
        return
    assert window.tokens <= tokens
    counted = sum(MESSAGE_OVERHEAD + COUNTER.count(message["content"]) for message in window.messages)
    assert window.tokens == REPLY_OVERHEAD + counted
    assert window.receipt.tokens_by_block().get("chunks", 0) <= min(120, tokens // 8)
    assert window.messages == (await chat.context("母线失压怎么办？")).messages


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(TOOLS[:5]), HITS), min_size=1, max_size=5))
def test_two_runs_that_saw_the_same_say_the_same(calls):
    """Same input, same bytes."""

    async def told_by(run: str) -> str:
        clock = FakeClock()
        engine = engine_over(InMemoryStore(clock), Settings(), clock, COUNTER)
        for tool, result in calls:
            await engine.tier(Workspaces).of(SCOPE, run).absorb(tool, {"q": 1}, result)
        return engine.tier(Workspaces).of(SCOPE, run).text()

    assert anyio.run(told_by, "r") == anyio.run(told_by, "r")
