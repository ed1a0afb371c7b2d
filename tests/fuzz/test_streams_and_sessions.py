"""What comes in pieces, and what others wrote into a cache: read, passed over, or refused with an error of ours."""

import json
from types import SimpleNamespace

import anyio
import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import PagefileError
from pagefile.client import Client
from pagefile.client.transport import EventReader, error_in, error_of
from pagefile.errors import ModelOutputError
from pagefile.models.chat import _Answer
from pagefile.models.extractors import _parsed as extracted
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone import SessionValue
from pagefile.stores.encoding import from_json, json_copy, moment, time_text, to_json
from pagefile.stores.redis.sessions import read, sealed
from pagefile.wire.chat import ChatToken

from .values import JSONISH, PIECES, TEXT

LINES = st.lists(
    st.one_of(
        PIECES,
        st.sampled_from(["", "event: token", "event: end", "event: error", "event: x", "data: {}", "data: [", ": heartbeat", "id: 1", "retry: x"]),
        JSONISH.map(lambda value: f"data: {json.dumps(value, default=str, skipkeys=True)}"),
    ),
    max_size=8,
)  # fmt: skip


async def collected(lines: list[str]) -> list[object]:
    async def given_lines():
        for line in [*lines, "", ""]:
            yield line

    return [event async for event in EventReader().read(given_lines())]


@given(LINES)
@example(["event: token", "data: {"])
@example(["event: error", "data: [" + "[" * 5000])
def test_a_stream_of_any_lines_gives_events_or_an_error_of_ours(lines):
    """Kinds that are not known are passed over."""
    try:
        anyio.run(collected, lines)
    except PagefileError:
        return


@given(st.one_of(PIECES, JSONISH.map(lambda value: json.dumps(value, default=str, skipkeys=True))))
def test_a_problem_of_any_text_is_an_error_of_ours(text):
    """A proxy's page, half a document, nothing."""
    content = text.encode("utf-8", "replace")
    assert isinstance(error_in(content), PagefileError)
    assert isinstance(error_of(SimpleNamespace(status_code=502, content=content)), PagefileError)


SAID = "行一\u2028行二\x85行三\x1c行四\r行五 and a fact"


@pytest.mark.anyio
async def test_lines_end_where_the_service_ends_them(tmp_path):
    """A text may hold every character that Python, but not JSON, takes for the end of a line."""
    line = json.dumps({"type": "fact", "text": SAID}, ensure_ascii=False)
    export = json.dumps({"type": "pagefile-export", "version": 1}) + "\n" + line + "\n"
    event = ChatToken(text=SAID)
    stream = f"event: {ChatToken.event}\ndata: {event.model_dump_json()}\n\n"

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=(export if request.url.path == "/v1/export" else stream).encode())

    async with Client("http://127.0.0.1:1", transport=httpx.MockTransport(answer)) as client:
        assert {"fact": 1} == await client.export(tmp_path / "x.jsonl")
        assert export == (tmp_path / "x.jsonl").read_bytes().decode()
        pieces = client.conversation("c").stream_chat("问")
        piece = await anext(pieces)
        assert isinstance(piece, ChatToken)
        assert SAID == piece.text
        await pieces.aclose()


# -- models ------------------------------------------------------------------------------------------------------------------

CHUNKS = st.lists(
    st.builds(
        lambda content, finish, calls: SimpleNamespace(
            choices=[SimpleNamespace(finish_reason=finish, delta=SimpleNamespace(content=content, tool_calls=calls))]
        ),
        st.one_of(st.none(), TEXT),
        st.sampled_from([None, None, "stop", "tool_calls", ""]),
        st.one_of(
            st.none(),
            st.lists(
                st.builds(
                    lambda index, name, arguments: SimpleNamespace(
                        index=index, id=name, function=None if arguments is None else SimpleNamespace(name=name, arguments=arguments)
                    ),
                    st.one_of(st.none(), st.integers(-1, 3)),
                    st.one_of(st.none(), TEXT),
                    st.one_of(st.none(), PIECES),
                ),
                max_size=3,
            ),
        ),
    ),
    max_size=6,
)  # fmt: skip


@given(CHUNKS)
def test_an_answer_in_pieces_is_whole_or_refused(chunks):
    """The texts come in order; the end is told, or is an error."""
    answer = _Answer("m")
    said = [answer.take(chunk) for chunk in chunks]
    assert [chunk.choices[0].delta.content or "" for chunk in chunks] == said
    try:
        last = answer.last()
    except ModelOutputError:
        return
    assert last.calls or "".join(said).strip()
    assert len({call.id for call in last.calls}) <= len(last.calls)
    for call in last.calls:
        read_arguments(call.arguments)


@given(st.one_of(PIECES, JSONISH.map(lambda value: json.dumps(value, default=str, skipkeys=True))))
@example("[" * 100_000)
@example('{"a":' * 5_000)
@example("9" * 5_000)
def test_arguments_of_any_text_are_json_or_the_text_itself(text):
    """As a model wrote them."""
    found, spelling = read_arguments(text)
    assert spelling != "text" or found == text


@given(st.one_of(PIECES, PIECES.map(lambda text: f"```json\n{text}\n```"), JSONISH.map(lambda value: json.dumps({"facts": value}, default=str, skipkeys=True))))  # fmt: skip
@example('{"facts": ' + "[" * 5_000)
def test_facts_that_a_model_found_are_facts_or_refused(text):
    """With an error that says so."""
    try:
        extracted(text)
    except ModelOutputError:
        return


# -- caches and columns -------------------------------------------------------------------------------------------------------

SESSIONS = st.recursive(
    st.one_of(JSONISH, st.just(float("inf"))),
    lambda inner: st.dictionaries(
        st.sampled_from(["meta", "flow_context", "message_context", "global_state", "user_snapshot", "updated_at", "turn_count", "window_messages", "mode", "entities", "shared", "pending_action", "allergies", "history", "agent_slots", "tool_params"]),
        inner,
        max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(SESSIONS)
@example({"meta": {"updated_at": float("inf")}})
@example({"flow_context": {"turn_count": float("nan")}})
@example({"message_context": {"window_messages": 5}})
@example({"message_context": {"window_messages": {"role": "user"}}})
def test_a_session_of_any_shape_is_a_session(value):
    """What is missing or of another kind is as in a new one; and it can be read again."""
    found = SessionValue.of(value if isinstance(value, dict) else None)
    assert found == SessionValue.of(found.to_json())


@given(
    st.one_of(
        st.binary(max_size=40),
        JSONISH.map(lambda value: json.dumps(value, default=str, skipkeys=True).encode()),
    )
)
@example(b"[" * 5_000)
@example(b'{"a":' * 5_000)
def test_a_cached_session_is_ours_or_nothing(value):
    """Labelled rightly, wrongly, or not at all."""
    label = f"1 {sealed(b'secret', 'k', 1, value)}".encode()
    for answer in ([value, label], [value, b"1 x"], [value, None], [None, None], [value], value, None):
        found = read("k", answer, b"secret")
        assert found is None or isinstance(found.value, dict)
    assert read("k", [value, label], b"another secret") is None


@settings(max_examples=60)
@given(JSONISH)
def test_what_a_column_holds_comes_back(value):
    """Written as JSON and read, or refused."""
    try:
        text = to_json(value)
    except PagefileError:
        return
    assert json_copy(value) == from_json(text)


@given(st.datetimes())
def test_a_time_comes_back(at):
    """To the microsecond."""
    assert moment(time_text(at)) == moment(time_text(moment(time_text(at))))
