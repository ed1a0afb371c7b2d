"""What other memories hold comes over whole, once, and in order; what cannot come is counted."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict

from pagefile import Memory
from pagefile.errors import TransferError
from pagefile.integrations.imports import (
    FORMATS,
    BroughtFact,
    BroughtTurn,
    Said,
    from_ai_message,
    from_episodes,
    from_langchain,
    from_mem0,
    from_messages,
    from_redis_agent_memory,
    from_sessions,
    read_dump,
    take_over,
    turns_of,
)
from tests.acceptance.cli_calling import pagefile

MEM0 = {
    "results": [
        {
            "id": "3c9",
            "memory": "对青霉素过敏",
            "hash": "e1",
            "created_at": "2026-03-01T09:00:00-07:00",
            "updated_at": None,
            "user_id": "ada",
            "metadata": {"category": "health"},
        },
        {"id": "4d0", "memory": "Likes short answers", "created_at": "2026-03-02T10:00:00", "run_id": "r"},
        {"id": "5e1", "memory": "Visits Oslo in May", "user_id": "ada", "expiration_date": "2026-05-31"},
        {"id": "6f2", "memory": "  ", "user_id": "ada"},
        {"id": "7a3", "memory": "Noted.", "user_id": "ada", "role": "assistant"},
    ],
    "relations": [{"source": "ada", "relationship": "likes", "target": "short answers"}],
}

SESSION = {
    "session_id": "visit-1",
    "user_id": "ada",
    "namespace": "clinic",
    "context": "Ada asked about her blood pressure.",
    "messages": [
        {"role": "user", "content": "我头晕", "id": "m1", "created_at": "2026-03-01T09:00:00Z"},
        {"role": "assistant", "content": "先量血压。", "id": "m2", "created_at": "2026-03-01T09:00:05Z"},
        {"role": "system", "content": "Be kind.", "id": "m3"},
    ],
    "memories": [
        {"id": "x", "text": "Has high blood pressure", "topics": ["health"], "memory_type": "semantic"}
    ],
    "data": {"step": 2},
}

LONG_TERM = {
    "memories": [
        {
            "id": "01J",
            "text": "Moved to Bergen",
            "user_id": "ada",
            "memory_type": "episodic",
            "event_date": "2026-02-01T00:00:00Z",
            "created_at": "2026-03-01T00:00:00Z",
            "dist": 0.2,
        },
        {"id": "02J", "text": "我头晕", "user_id": "ada", "memory_type": "message"},
    ],
    "total": 2,
}

MESSAGES = [
    SystemMessage("Be kind."),
    HumanMessage("Weather in Oslo?", id="q1"),
    AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}]),
    ToolMessage("rain", tool_call_id="c1", name="weather"),
    AIMessage([{"type": "text", "text": "It rains."}]),
    HumanMessage("谢谢", id="q2"),
]


# -- readers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [MEM0, MEM0["results"]])
def test_memories_of_mem0_are_facts(data):
    """Text, user, time and category; what has no text, or an end, is counted."""
    brought = from_mem0(data)
    assert brought.facts[0] == BroughtFact(
        "对青霉素过敏", "ada", datetime(2026, 3, 1, 16, tzinfo=UTC), "health"
    )
    assert [None, "ada"] == [fact.user_id for fact in brought.facts[1:]]
    left_out = {"memories without text": 1, "expiry dates": 1, "words of the assistant": 1}
    assert left_out | ({"graph relations": 1} if data is MEM0 else {}) == brought.left_out


def test_categories_of_the_service_come_too():
    """mem0's service names them `categories`."""
    assert "food" == from_mem0([{"memory": "Vegan", "categories": ["food", "health"]}]).facts[0].category


def test_a_session_of_redis_is_turns_and_facts():
    """Both sides of a turn, when it was said, and the summary of what the server had dropped."""
    brought = from_redis_agent_memory(SESSION)
    at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert brought.turns == (
        BroughtTurn("visit-1:context", None, SESSION["context"], "visit-1", "ada", at=at),
        BroughtTurn("m1", "我头晕", "先量血压。", "visit-1", "ada", at=at),
    )
    assert brought.facts == (BroughtFact("Has high blood pressure", "ada", None, "health"),)
    assert {"system messages": 1, "data of sessions": 1} == brought.left_out


def test_long_term_memories_of_redis_are_facts():
    """True since they happened; copies of messages are not facts."""
    brought = from_redis_agent_memory([LONG_TERM, SESSION])
    assert brought.facts[0] == BroughtFact("Moved to Bergen", "ada", datetime(2026, 2, 1, tzinfo=UTC))
    assert 1 == brought.left_out["copies of messages"]
    assert 2 == len(brought.turns)


def _openai(message):
    roles = {"human": "user", "ai": "assistant"}
    fields = {"role": roles.get(message.type, message.type), "content": message.content, "id": message.id}
    for call in getattr(message, "tool_calls", []):
        function = {"name": call["name"], "arguments": json.dumps(call["args"])}
        fields.setdefault("tool_calls", []).append({"id": call["id"], "function": function})
    return fields | ({"tool_call_id": message.tool_call_id} if message.type == "tool" else {})


@pytest.mark.parametrize(
    "dumped",
    [
        MESSAGES,
        messages_to_dict(MESSAGES),
        dumpd(MESSAGES),
        [message.model_dump() for message in MESSAGES],
        [_openai(message) for message in MESSAGES],
        {"messages": messages_to_dict(MESSAGES)},
        {"v": 4, "channel_values": {"messages": messages_to_dict(MESSAGES)}},
    ],
)
def test_messages_of_langchain_are_turns(dumped):
    """In whichever shape they were dumped: tool results are steps of the turn that asked for them."""
    brought = from_langchain(dumped)
    step = {"tool": "weather", "input": {"city": "Oslo"}, "result": "rain", "call_id": "c1"}
    assert brought.turns == (
        BroughtTurn("q1", "Weather in Oslo?", "It rains.", steps=(step,)),
        BroughtTurn("q2", "谢谢", None),
    )
    assert {"system messages": 1} == brought.left_out


def test_threads_by_their_ids():
    """A store of histories is one conversation for each session."""
    dumped = {"a": messages_to_dict(MESSAGES[1:]), "b": messages_to_dict(MESSAGES[-1:])}
    assert ["a", "a", "b"] == [turn.conversation_id for turn in from_langchain(dumped).turns]


ROLES = st.sampled_from(["user", "human", "assistant", "AI", "tool", "system", ""])


@given(st.lists(st.tuples(ROLES, st.booleans()), max_size=12))
def test_nothing_said_is_lost(said):
    """Every text is in one turn, in order, or counted as left out; every turn has a name of its own."""
    messages = [Said(role, f"text {place}" if speaks else "") for place, (role, speaks) in enumerate(said)]
    brought = turns_of(messages, "c", None)
    kept = [
        side for turn in brought.turns for side in (turn.user, *(turn.assistant or "").split("\n\n")) if side
    ]
    sides = {"user", "human", "assistant", "AI"}
    assert kept == [message.text for message in messages if message.role in sides and message.text]
    steps = sum(len(turn.steps) for turn in brought.turns)
    silent = sum(message.role in {"user", "human"} and not message.text for message in messages)
    others = sum(message.role in {"system", ""} for message in messages)
    tools = sum(message.role == "tool" for message in messages)
    assert silent + others + tools - steps == sum(brought.left_out.values())
    assert len({turn.id for turn in brought.turns}) == len(brought.turns)


def test_a_message_whose_id_is_too_long_is_kept():
    """Under a name of our own, the same each time."""
    (first,), (again,) = (turns_of([Said("user", "Hello", "x" * 300)], "c", None).turns for _ in range(2))
    assert first == again
    assert 36 == len(first.id)


@pytest.mark.parametrize(
    "when", ["", "soon", "0001-01-01T00:00:00+14:00", float("nan"), float("inf"), 10**30, True, None, [2026]]
)
def test_a_time_that_is_none_is_left_out(when):
    """The memory comes over without it."""
    assert from_mem0([{"memory": "Likes tea", "created_at": when}]).facts == (BroughtFact("Likes tea"),)


def test_seconds_are_a_time():
    """Since 1970, as some write them."""
    (fact,) = from_mem0([{"memory": "Likes tea", "created_at": 1_772_355_600}]).facts
    assert datetime(2026, 3, 1, 9, tzinfo=UTC) == fact.at


# -- writing ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def memory():
    async with Memory.open("memory://", embedder="none") as opened:
        yield opened


async def test_taking_over_is_done_once(memory):
    """Turns and facts are there; a second time changes nothing, and what was retracted here stays so."""
    brought = from_redis_agent_memory([SESSION, LONG_TERM]) + from_mem0(MEM0)
    first = await take_over(memory, brought, user_id="ada")
    assert first == {"turn": 2, "fact": 5, "session": 0, "known": 0, "rejected": 0, "left_out": 7}
    turns = await memory.conversation("visit-1", user_id="ada").turns()
    assert ["Ada asked about her blood pressure.", "我头晕\n先量血压。"] == [turn.text for turn in turns]
    assert datetime(2026, 3, 1, 9, tzinfo=UTC) == turns[1].at
    facts = await memory.facts("ada")
    assert ["Moved to Bergen", "对青霉素过敏"] == [fact.text for fact in facts[:2]], "the oldest first"
    await memory.retract(facts[0].id)
    again = await take_over(memory, brought, user_id="ada")
    assert again == {"turn": 0, "fact": 0, "session": 0, "known": 7, "rejected": 0, "left_out": 7}
    assert facts[1:] == await memory.facts("ada")


async def test_long_results_become_pages(memory):
    """They come over as any tool result does: whole, and out of the window."""
    messages = [*MESSAGES[:3], ToolMessage("rain " * 5000, tool_call_id="c1"), *MESSAGES[4:]]
    await take_over(memory, from_langchain(messages), user_id="ada", conversation_id="trip")
    (turn, _) = await memory.conversation("trip", user_id="ada").turns()
    assert 25_000 == len(await memory.conversation("trip", user_id="ada").load(turn.steps[0].page))


async def test_what_no_database_holds_is_counted(memory):
    """Half of a pair of surrogates, as JSON can have it: the others come over."""
    brought = from_langchain([{"role": "user", "content": "\ud800"}, {"role": "user", "content": "好"}])
    counts = await take_over(memory, brought, conversation_id="c")
    assert (1, 1) == (counts["turn"], counts["rejected"])


async def test_secrets_are_counted_as_rejected(memory):
    """What `remember()` refuses is told, and the others come over."""
    brought = from_mem0([{"memory": "The password is hunter2-xK9"}, {"memory": "Likes tea"}])
    counts = await take_over(memory, brought, user_id="ada")
    assert (1, 1) == (counts["fact"], counts["rejected"])


@pytest.mark.parametrize(
    ("brought", "word"),
    [(from_langchain(MESSAGES), "conversation"), (from_mem0([{"memory": "Likes tea"}]), "user")],
)
async def test_whose_it_is_must_be_said(memory, brought, word):
    """Before anything is written."""
    with pytest.raises(TransferError, match=f"name no {word}"):
        await take_over(memory, from_mem0([{"memory": "Vegan", "user_id": "ada"}]) + brought)
    assert [] == await memory.facts("ada")


@pytest.mark.parametrize(
    ("text", "kind", "problem"),
    [
        ("{", "mem0", "as JSON"),
        ("[" * 100_000, "mem0", "as JSON"),
        ("[" * 400 + "]" * 400, "redis-agent-memory", "not a dump of redis"),
        ("3", "mem0", "not a dump of mem0"),
        ("{}", "nonsense", "no format 'nonsense'"),
    ],
)
async def test_files_that_are_none(tmp_path, text, kind, problem):
    """Each is told for what it is."""
    (tmp_path / "dump.json").write_text(text)
    with pytest.raises(TransferError, match=problem):
        await read_dump(tmp_path / "dump.json", kind)


# -- the command --------------------------------------------------------------------------------------------------------


def test_the_command_tells_what_became_of_a_dump(tmp_path, monkeypatch):
    """What came, what did not, and as JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mem0.json").write_text(json.dumps(MEM0), encoding="utf-8")
    said = pagefile("import", "mem0.json", "--from", "mem0", "--user-id", "ada")
    assert "Imported 0 turns and 3 facts." in said.out
    assert (
        "Not imported: expiry dates (1), memories without text (1), words of the assistant (1), graph relations (1)."
        in said.words
    )
    again = pagefile("import", "mem0.json", "--from", "mem0", "--user-id", "ada", "--json")
    assert 3 == again.json["known"]
    assert 1 == again.json["left_out"]["words of the assistant"]


def test_the_command_says_what_is_missing(tmp_path, monkeypatch):
    """A dump that names no user, and options that an export has no use for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump.json").write_text(json.dumps(MEM0), encoding="utf-8")
    assert "--user-id" in pagefile("import", "dump.json", "--from", "mem0").err
    assert "only with --from" in " ".join(pagefile("import", "dump.json", "--user-id", "ada").err.split())


ROWS = [
    {"message_id": "m2", "conversation_id": "c", "query": "我还头痛", "answer": "请测血压", "create_time": "2026-02-09T08:01:00Z", "create_by": "u"},
    {"message_id": "m1", "conversation_id": "c", "query": "我头晕", "answer": "多休息", "create_time": "2026-02-09T08:00:00Z", "create_by": "u"},
    {"message_id": "k", "conversation_id": "c", "query": "[MEMORY_CHECKPOINT]", "answer": "历史摘要: x", "create_time": "2026-02-09T08:02:00Z"},
    {"message_id": "e", "conversation_id": "c", "query": None, "answer": None, "create_time": "2026-02-09T08:03:00Z"},
]  # fmt: skip


async def test_rows_of_ai_message_become_turns(memory):
    """In the order of their times, under their ids, for their user; a second time changes nothing."""
    brought = from_ai_message(ROWS)
    assert {"checkpoints, which are made again": 1, "rows without text": 1} == brought.left_out
    assert 2 == (await take_over(memory, brought))["turn"]
    assert 0 == (await take_over(memory, brought))["turn"]
    turns = await memory.conversation("c", user_id="u").turns()
    assert [("m1", "我头晕", "多休息"), ("m2", "我还头痛", "请测血压")] == [
        (turn.id, turn.user, turn.assistant) for turn in turns
    ]


async def test_another_text_under_the_same_id_is_said_to_be_rejected(memory):
    """It is not there already."""
    counts = await take_over(memory, from_ai_message([ROWS[0], {**ROWS[0], "answer": "别的"}]))
    assert (1, 0, 1) == (counts["turn"], counts["known"], counts["rejected"])


@pytest.mark.parametrize(
    "times",
    [
        [999_999_999, 1_770_624_000],
        ["999999999", "1770624000"],
        [1_770_624_000_000, 1_770_624_060_000],
        ["2026-02-09T09:00:00+08:00", "2026-02-09T02:00:00+00:00"],
        ["2026-02-09 08:00:00", "no time"],
    ],
)
def test_rows_come_in_the_order_of_their_times(times):
    """Not of the letters they are written with; a row without a readable time stays behind the one before it."""
    rows = [
        {"message_id": str(n), "conversation_id": "c", "query": "问", "create_time": time}
        for n, time in enumerate(times)
    ]
    given = rows if isinstance(times[1], str) and "no" in times[1] else rows[::-1]
    assert ["0", "1"] == [turn.id for turn in from_ai_message(given).turns]


def test_episodes_have_the_times_of_their_collection():
    """`created_at`, in seconds."""
    row = {
        "id": "e",
        "conversation_id": "c",
        "user_message": "问",
        "assistant_message": "答",
        "created_at": 1_770_624_000,
    }
    (turn,) = from_episodes([row]).turns
    assert datetime(2026, 2, 9, 8, tzinfo=UTC) == turn.at


@pytest.mark.parametrize("kind", ["json", "lines", "csv"])
async def test_a_table_is_read_as_a_database_dumps_it(tmp_path, kind):
    """JSON, a JSON object a line, or CSV with a header."""
    rows = [{"message_id": "m1", "conversation_id": "c", "query": "我头晕，\n怎么办", "answer": None}]
    csv = 'message_id,conversation_id,query,answer\nm1,c,"我头晕，\n怎么办",\n'
    texts = {"json": json.dumps(rows), "lines": "\n".join(map(json.dumps, rows * 2)), "csv": csv}
    (tmp_path / "dump").write_text(texts[kind], encoding="utf-8")
    turn, *_ = (await read_dump(tmp_path / "dump", "ai-message")).turns
    assert ("m1", "c", "我头晕，\n怎么办", None) == (turn.id, turn.conversation_id, turn.user, turn.assistant)


async def test_a_file_that_is_none_of_them_says_what_it_may_be(tmp_path):
    (tmp_path / "dump").write_text("hello", encoding="utf-8")
    with pytest.raises(TransferError, match="JSON or JSON lines, or CSV with a header"):
        await read_dump(tmp_path / "dump", "ai-message")


def test_messages_and_episodes_become_turns():
    """Two rows make a turn of a table of messages; an episode is one."""
    said = {"conversation_id": "c", "created_at": "2026-02-09T08:00:00Z"}
    rows = [
        {**said, "id": "1", "role": "user", "content": "问"},
        {**said, "id": "2", "role": "assistant", "content": "答"},
    ]
    (turn,) = from_messages(rows).turns
    assert ("1", "问", "答", "c") == (turn.id, turn.user, turn.assistant, turn.conversation_id)
    episode = {
        "id": "e",
        "conversation_id": "c",
        "user_message": "问",
        "assistant_message": "答",
        "timestamp": 1770624000,
    }
    (turn,) = from_episodes([episode]).turns
    assert ("e", "问", "答", "c", 2026) == (
        turn.id,
        turn.user,
        turn.assistant,
        turn.conversation_id,
        turn.at.year,
    )


SESSIONS = {
    "short_term_memory:session:c": json.dumps(
        {
            "meta": {"conversation_id": "c", "user_id": "u", "updated_at": 1},
            "flow_context": {"current_agent_key": "triage", "last_bot_message": "多休息", "turn_count": 3},
            "message_context": {"summary": "", "window_messages": [{"role": "user", "content": "我头晕"}]},
            "global_state": {"shared": {}, "agent_slots": {"dept": "心内科"}, "current_intent": "挂号"},
            "user_snapshot": {
                "user_id": "u",
                "name": "王小明",
                "allergies": ["青霉素"],
                "history": ["高血压"],
            },
        }
    ),
    "short_term_memory:session:broken": "not JSON",
}


async def test_sessions_of_redis_bring_the_safety_data(memory):
    """Allergies are in the next window; what is known here already stays, and a second time changes nothing."""
    brought = from_sessions(SESSIONS)
    assert {
        "values that are not sessions": 1,
        "messages of sessions, which ai_message has": 1,
    } == brought.left_out
    chat = memory.conversation("c", user_id="u")
    await chat.put_session({"user_snapshot": {"name": "王晓明"}})
    assert 1 == (await take_over(memory, brought))["session"]
    again = await take_over(memory, brought)
    assert (0, 1) == (again["session"], again["known"])
    session = await chat.session()
    assert ("王晓明", ["青霉素"]) == (session["user_snapshot"]["name"], session["user_snapshot"]["allergies"])
    assert ("挂号", {"dept": "心内科"}) == (
        session["global_state"]["current_intent"],
        session["global_state"]["agent_slots"],
    )
    assert "青霉素" in str((await chat.context("我可以吃阿莫西林吗？")).messages)


def test_the_command_imports_sessions(tmp_path, monkeypatch):
    """As a list, too; and says what it did."""
    monkeypatch.chdir(tmp_path)
    dump = [json.loads(SESSIONS["short_term_memory:session:c"])]
    (tmp_path / "sessions.json").write_text(json.dumps(dump), encoding="utf-8")
    assert "1 session" in pagefile("import", "sessions.json", "--from", "sessions").out


async def test_what_two_users_said_under_one_name_never_mixes():
    """A conversation belongs to one user: the other's turns are counted as rejected, not given to the first."""
    threads = [
        {
            "thread_id": "default",
            "user_id": user,
            "messages": [{"role": "user", "content": f"I am {user}", "uuid": f"m-{user}"}],
        }
        for user in ("ada", "bob")
    ]
    async with Memory.open("memory://", embedder="none") as memory:
        counts = await take_over(memory, FORMATS["zep"](threads))
        turns = await memory.conversation("default", user_id="ada").turns()
    assert (1, 1) == (counts["turn"], counts["rejected"])
    assert ["I am ada"] == [turn.user for turn in turns]
