"""Files that come from elsewhere: read whole, or refused with an error that says where; never by half."""

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import Memory, PagefileError, Settings, TransferError
from pagefile.engine.export_lines import LINE
from pagefile.engine.ownership import looked_up
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings
from pagefile.standalone import format_memory_for_injection, get_memory_data
from pagefile.text.fact_data import given_facts, sections
from tests.transcripts import CHAT

from .values import FOREIGN, JSONISH, TEXT, nested

REVISION = '"type":"revision"'
SMALL = Settings(archive=ArchiveSettings(threshold=200))
AT = datetime(2026, 5, 6, tzinfo=UTC)


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> list[str]:
    """The lines of an export with something of everything in it."""
    path = tmp_path_factory.mktemp("export") / "all.jsonl"

    async def made() -> None:
        async with Memory.open("memory://", settings=SMALL) as memory:
            for name in ("甲/1", "乙:2"):
                chat = memory.conversation(name, user_id="u")
                steps = [{"tool": "bash", "input": {"a": [1, None]}, "result": "结果。" * 200}]
                await chat.record("问<\u2028>", "答\r\n", steps=steps, at=AT, metadata={"k": ["v"]})
                await chat.record("再问", "再答", at=AT)
                await chat.checkpoint("摘要：说过一次。", recent_turns=1)
                await chat.reset()
                await chat.record("又问", "又答", at=AT)
                await chat.record(messages=CHAT, at=AT)
                await chat.context("他住哪儿？", instructions="简短。")
                await memory.engine.store.watermarks.advance(chat.scope, "facts", 2, epoch=None)
            first = await memory.remember("他住在上海。", user_id="u", attribute="home")
            await memory.remember("他住在杭州。", user_id="u", attribute="home")
            await memory.undo("u")
            await memory.retract(first.id)
            await chat.context(turn=await chat.begin("还没答"))
            await memory.conversation("丙", user_id="u").context("没人答")
            await memory.export(path)

    anyio.run(made)
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


async def imported(
    lines: bytes, folder: Path, look: Callable[[Memory], Awaitable[None]] | None = None
) -> tuple[PagefileError | None, list[str]]:
    """What an import of these bytes raises, and what is there afterwards; whoever wants may look at that."""
    file, after = folder / "in.jsonl", folder / "out.jsonl"
    file.write_bytes(lines)
    async with Memory.open("memory://", settings=SMALL) as memory:
        error = None
        try:
            await memory.import_(file)
        except PagefileError as raised:
            error = raised
        if look is not None:
            await look(memory)
        await memory.export(after)
    return error, after.read_text(encoding="utf-8").rstrip("\n").split("\n")


async def looked_at(memory: Memory) -> None:
    """Every recorded call explained, every change of facts read: or an error that says why not."""
    for place in ("甲/1", "乙:2", "丙"):
        # Whose it is, the damaged line may have changed.
        scope = await looked_up(memory, Scope("default", None, place))
        chat = memory.conversation(place, user_id=scope.user)
        for call in await chat.calls():
            with suppress(PagefileError):
                await chat.explain(call.id)
        turns = await chat.turns()
        for turn in turns:
            await chat.messages(turn)
        # A call would be written down, also where nothing was imported.
        window = await chat.context("下一问") if turns else None
        assert window is None or "failed" not in str(window.receipt.degraded)
    for owner in await memory.engine.store.facts.owners("default"):
        await memory.facts(owner.user, as_of=AT)


def test_a_round_trip_is_exact(exported, tmp_path):
    """Every line of an export comes back as it was."""
    error, back = anyio.run(imported, "\n".join(exported).encode(), tmp_path)
    assert error is None
    assert sorted(exported) == sorted(back)


@pytest.mark.parametrize("lines", ["\r\n", "\n\ufeff"])
def test_other_line_ends_and_a_mark_at_the_beginning(exported, tmp_path, lines):
    """Editors write them."""
    text = ("\ufeff" if "\ufeff" in lines else "") + lines.strip("\ufeff").join(exported)
    error, back = anyio.run(imported, text.encode(), tmp_path)
    assert error is None
    assert sorted(exported) == sorted(back)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([1.5, -1, float("nan"), 1e400, "", " ", "\0", "x" * 300, [], {}, [None], {"a": {}}, nested(150)]),
    st.sampled_from(["0001-01-01T00:00:00+23:59", "2026-13-45", "9999-12-31T23:59:59-23:59", "2026-05-06"]),
    TEXT,
)  # fmt: skip


@st.composite
def damage(draw):
    """Which line, which field of it, and what is there instead; nothing: the field is gone."""
    return draw(st.integers(0, 60)), draw(st.integers(0, 30)), draw(st.one_of(VALUES, st.just(...)))


def holders(record):
    """Every mapping and list in a record, the record first."""
    yield record
    for inner in record.values() if isinstance(record, dict) else record:
        if isinstance(inner, dict | list) and inner:
            yield from holders(inner)


@settings(max_examples=60)
@given(damage())
@example((2, 3, "0001-01-01T00:00:00+23:59"))
def test_a_damaged_field_is_refused_or_read_and_never_by_half(exported, tmp_path_factory, damaged):
    """Nothing is there after an error: a file is read to its end before anything of it is written."""
    line, field, value = damaged
    lines = list(exported)
    number = line % len(lines)
    record = json.loads(lines[number])
    key = list(record)[field % len(record)]
    if value is ...:
        del record[key]
    else:
        record[key] = value
    lines[number] = json.dumps(record)
    error, back = anyio.run(imported, "\n".join(lines).encode(), tmp_path_factory.mktemp("in"))
    if error is not None and "unknown type" not in str(error):
        assert str(error)
        assert 1 == len(back), error


@settings(max_examples=30)
@given(damage(), st.integers(0, 200))
@example((18, 0, []), 1)
def test_damage_deep_in_a_line_is_refused_or_read_and_never_by_half(
    exported, tmp_path_factory, damaged, inner
):
    """A receipt, a moment, a message, a fact as it was: what comes in can be shown and explained, or says why it cannot."""
    line, field, value = damaged
    kinds = {"call", "revision", "session", "turn"}
    records = [json.loads(text) for text in exported]
    deep = [n for n, one in enumerate(records) if one["type"] in kinds and len(list(holders(one))) > 1]
    lines = list(exported)
    number = deep[line % len(deep)]
    record = json.loads(lines[number])
    inside = list(holders(record))[1:]
    holder = inside[inner % len(inside)]
    key = list(holder)[field % len(holder)] if isinstance(holder, dict) else field % len(holder)
    if value is ...:
        del holder[key]
    else:
        holder[key] = value
    lines[number] = json.dumps(record)
    folder = tmp_path_factory.mktemp("in")
    error, back = anyio.run(imported, "\n".join(lines).encode(), folder, looked_at)
    if error is not None:
        assert str(error)
        assert 1 == len(back), error


@settings(max_examples=60)
@given(st.integers(0, 60), st.binary(max_size=30).filter(lambda line: b"\n" not in line and line.strip()))
@example(1, b"[" * 5000)
@example(1, b'{"type": ' * 2000)
@example(0, b"\xef\xbb\xbf\xff")
@example(3, b'{"type": 9999' + b"9" * 5000 + b"}")
@example(2, b"null")
@example(2, b'"turn"')
def test_a_damaged_line_is_refused_with_its_number(exported, tmp_path_factory, number, line):
    """Whatever bytes are there."""
    number %= len(exported)
    lines = [text.encode() for text in exported]
    lines[number] = line
    error, back = anyio.run(imported, b"\n".join(lines), tmp_path_factory.mktemp("in"))
    assert isinstance(error, TransferError)
    assert "line" in str(error).lower() or "UTF-8" in str(error)
    assert 1 == len(back)


def test_lines_that_are_missing_twice_or_in_disorder(exported, tmp_path):
    """An import of what is left, or an error; no conversation is there by half."""
    for number in range(1, len(exported)):
        for lines in (
            exported[:number],
            [*exported[:number], *exported[number + 1 :]],
            [*exported[: number + 1], exported[number], *exported[number + 1 :]],
            [exported[0], *reversed(exported[1:])],
        ):
            error, back = anyio.run(imported, "\n".join(lines).encode(), tmp_path)
            assert error is None or isinstance(error, PagefileError)
            # Facts without their history are written as new ones, which is a history of its own.
            again = not any(REVISION in line for line in lines)
            assert {line for line in back if not (again and REVISION in line)} <= set(exported)


@settings(max_examples=60)
@given(st.integers(0, 60), damage())
def test_the_service_and_a_file_agree_on_what_is_a_line(exported, tmp_path_factory, number, damaged):
    """What the service's own shape takes, an import of a file takes too, once the rest of it fits."""
    _, field, value = damaged
    number %= len(exported)
    record = json.loads(exported[number])
    key = list(record)[field % len(record)]
    record[key] = None if value is ... else value
    text = json.dumps(record)
    try:
        LINE.validate_json(text.encode("utf-8", "replace"))
    except ValueError:
        return
    lines = [*exported[:number], text, *exported[number + 1 :]]
    error, _ = anyio.run(imported, "\n".join(lines).encode(), tmp_path_factory.mktemp("in"))
    assert not str(error).startswith("Line")


# -- memory.json ---------------------------------------------------------------------------------------------------------

FACTS = st.fixed_dictionaries(
    {},
    optional={
        "user": st.one_of(JSONISH, st.dictionaries(st.sampled_from(["workContext", "topOfMind"]), JSONISH)),
        "history": JSONISH,
        "facts": st.one_of(
            JSONISH,
            st.lists(st.one_of(JSONISH, st.fixed_dictionaries({"content": JSONISH, "confidence": JSONISH, "createdAt": JSONISH}))),
        ),
    },
)  # fmt: skip


@settings(max_examples=60)
@given(FACTS)
def test_memory_data_of_any_shape_can_be_shown(data):
    """What cannot be read is left out."""
    given_facts(data)
    list(sections(data))
    format_memory_for_injection(data, current_context="甲").encode("utf-8", "surrogatepass")


@settings(max_examples=40)
@given(FACTS)
def test_memory_data_of_any_shape_can_be_imported(data):
    """Counted fact by fact, or refused as a whole."""

    async def story() -> None:
        async with Memory.open("memory://") as memory:
            try:
                counts = await memory.import_facts(data, user_id="u")
            except PagefileError:
                return
            assert min(counts.values()) >= 0

    anyio.run(story)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"null",
        b"[" * 5000,
        b'{"facts": 9' + b"9" * 5000 + b"}",
        "{}".encode("utf-16"),
    ],
)
def test_a_file_that_is_no_memory_is_named(tmp_path, content):
    """By both readers."""
    file = tmp_path / "memory.json"
    file.write_bytes(content)
    with pytest.raises(TransferError, match="memory"):
        get_memory_data(file)

    async def story() -> None:
        async with Memory.open("memory://") as memory:
            with pytest.raises(TransferError, match="memory"):
                await memory.import_facts(file, user_id="u")

    anyio.run(story)


def test_a_memory_file_with_a_mark_is_read(tmp_path):
    """Editors write it before the first brace."""
    file = tmp_path / "memory.json"
    file.write_text('{"facts": [{"content": "住在上海"}]}', encoding="utf-8-sig")
    assert ["住在上海"] == [fact.text for fact in given_facts(get_memory_data(file))]

    async def story() -> int:
        async with Memory.open("memory://") as memory:
            return (await memory.import_facts(file, user_id="u"))["stored"]

    assert 1 == anyio.run(story)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_function_may_give_anything(name):
    """A caller's own source of memory data."""
    given_facts({"facts": FOREIGN[name], "user": FOREIGN[name]})
    list(sections({"facts": FOREIGN[name], "user": FOREIGN[name]}))
