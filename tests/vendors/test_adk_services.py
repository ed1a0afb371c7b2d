"""What Google's ADK documents of its session and memory services, case by case: its own tests are not in the package."""

import asyncio

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

from pagefile import Memory
from pagefile.integrations.adk import PagefileMemoryService, PagefileSessionService

WHO = {"app_name": "app", "user_id": "ada"}


@pytest.fixture
async def memory(tmp_path):
    async with Memory.open(f"sqlite:///{tmp_path}/a.db", embedder="none") as opened:
        yield opened


@pytest.fixture(params=["adk's own", "pagefile"])
def service(request, memory):
    """Each case runs on ADK's own service, too: it is the measure."""
    return InMemorySessionService() if request.param == "adk's own" else PagefileSessionService(memory)


@pytest.fixture(params=["adk's own", "pagefile"])
def memories(request, memory):
    return InMemoryMemoryService() if request.param == "adk's own" else PagefileMemoryService(memory)


def event(text, author="user", *, at=None, state=None, partial=False, invocation="i1"):
    more = {"timestamp": at} if at is not None else {}
    role = "user" if author == "user" else "model"
    return Event(
        author=author,
        invocation_id=invocation,
        content=types.Content(role=role, parts=[types.Part(text=text)]),
        actions=EventActions(state_delta=state or {}),
        partial=partial,
        **more,
    )


def texts(session):
    return [one.content.parts[0].text for one in session.events]


# -- sessions -------------------------------------------------------------------------------------------------------------


async def test_a_created_session_is_found(service):
    made = await service.create_session(**WHO, session_id="s1", state={"lang": "en"})
    assert ("app", "ada", "s1", {"lang": "en"}, []) == (
        made.app_name,
        made.user_id,
        made.id,
        made.state,
        made.events,
    )
    found = await service.get_session(**WHO, session_id="s1")
    assert (made.id, made.state) == (found.id, found.state)


async def test_a_session_without_an_id_gets_one(service):
    one, other = await service.create_session(**WHO), await service.create_session(**WHO)
    assert one.id
    assert one.id != other.id


async def test_an_id_is_stripped(service):
    made = await service.create_session(**WHO, session_id="  s1  ")
    assert "s1" == made.id


async def test_an_id_is_given_once(service):
    await service.create_session(**WHO, session_id="s1")
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**WHO, session_id="s1")


async def test_an_unknown_session_is_none(service):
    assert await service.get_session(**WHO, session_id="nothing") is None
    await service.create_session(**WHO, session_id="s1")
    assert await service.get_session(app_name="app", user_id="bob", session_id="s1") is None
    assert await service.get_session(app_name="other", user_id="ada", session_id="s1") is None


async def test_sessions_are_listed_without_events_oldest_first(service):
    for name in ("s1", "s2", "s3"):
        await service.create_session(**WHO, session_id=name)
    first = await service.get_session(**WHO, session_id="s1")
    await service.append_event(first, event("hi", at=4e9))
    listed = (await service.list_sessions(**WHO)).sessions
    assert {"s1", "s2", "s3"} == {one.id for one in listed}
    assert "s1" == listed[-1].id
    assert all(not one.events for one in listed)


async def test_sessions_of_all_users_are_listed(service):
    await service.create_session(app_name="app", user_id="ada", session_id="s1")
    await service.create_session(app_name="app", user_id="bob", session_id="s2")
    await service.create_session(app_name="other", user_id="ada", session_id="s3")
    assert {"s1", "s2"} == {one.id for one in (await service.list_sessions(app_name="app")).sessions}
    assert {"s1"} == {one.id for one in (await service.list_sessions(**WHO)).sessions}


async def test_a_deleted_session_is_gone(service):
    session = await service.create_session(**WHO, session_id="s1")
    await service.append_event(session, event("hi"))
    await service.delete_session(**WHO, session_id="s1")
    assert await service.get_session(**WHO, session_id="s1") is None
    assert [] == (await service.list_sessions(**WHO)).sessions
    again = await service.create_session(**WHO, session_id="s1")
    assert [] == again.events


async def test_deleting_nothing_is_no_error(service):
    await service.delete_session(**WHO, session_id="nothing")


async def test_events_are_kept_in_order(service):
    session = await service.create_session(**WHO, session_id="s1")
    for number, author in enumerate(("user", "helper", "user")):
        await service.append_event(session, event(f"e{number}", author, at=100.0 + number))
    found = await service.get_session(**WHO, session_id="s1")
    assert ["e0", "e1", "e2"] == texts(session) == texts(found)
    assert 102.0 == found.last_update_time == session.last_update_time


async def test_events_come_back_whole(service):
    session = await service.create_session(**WHO, session_id="s1")
    call = types.FunctionCall(id="c1", name="f", args={"a": [1, None, "x"]})
    parts = [types.Part(text="thinking", thought=True), types.Part(function_call=call)]
    given = Event(author="helper", invocation_id="i1", content=types.Content(role="model", parts=parts))
    await service.append_event(session, given)
    (found,) = (await service.get_session(**WHO, session_id="s1")).events
    assert given == found


async def test_partial_events_are_not_kept(service):
    session = await service.create_session(**WHO, session_id="s1")
    await service.append_event(session, event("half", "helper", partial=True))
    assert [] == (await service.get_session(**WHO, session_id="s1")).events


async def test_an_event_that_comes_again_is_kept_once(service):
    session = await service.create_session(**WHO, session_id="s1")
    one = event("hi")
    await service.append_event(session, one)
    await service.append_event(session, one)
    assert ["hi"] == texts(await service.get_session(**WHO, session_id="s1"))


async def test_an_event_of_no_session_is_refused(service):
    stray = Session(id="nothing", app_name="app", user_id="ada")
    with pytest.raises(SessionNotFoundError):
        await service.append_event(stray, event("hi"))


@pytest.mark.parametrize(
    ("last", "expected"), [(0, []), (2, ["e3", "e4"]), (9, ["e0", "e1", "e2", "e3", "e4"])]
)
async def test_recent_events_only(service, last, expected):
    session = await service.create_session(**WHO, session_id="s1")
    for number in range(5):
        await service.append_event(session, event(f"e{number}", at=100.0 + number))
    found = await service.get_session(**WHO, session_id="s1", config=GetSessionConfig(num_recent_events=last))
    assert expected == texts(found)


async def test_events_after_a_time(service):
    session = await service.create_session(**WHO, session_id="s1")
    for number in range(5):
        await service.append_event(session, event(f"e{number}", at=100.0 + number))
    found = await service.get_session(**WHO, session_id="s1", config=GetSessionConfig(after_timestamp=103.0))
    assert ["e3", "e4"] == texts(found)


async def test_states_have_their_reach(service):
    state = {"app:a": 1, "user:u": 2, "s": 3, "temp:t": 4}
    one = await service.create_session(**WHO, session_id="s1", state=state)
    assert {"app:a": 1, "user:u": 2, "s": 3} == {
        key: value for key, value in one.state.items() if key != "temp:t"
    }
    same_user = await service.create_session(**WHO, session_id="s2")
    assert {"app:a": 1, "user:u": 2} == same_user.state
    other = await service.create_session(app_name="app", user_id="bob", session_id="s3")
    assert {"app:a": 1} == other.state
    elsewhere = await service.create_session(app_name="other", user_id="ada", session_id="s4")
    assert {} == elsewhere.state


async def test_deltas_change_the_states(service):
    session = await service.create_session(**WHO, session_id="s1", state={"n": 1, "user:u": 1})
    await service.append_event(session, event("hi", state={"n": 2, "user:u": 2, "app:a": 5, "temp:t": 9}))
    found = await service.get_session(**WHO, session_id="s1")
    assert {"n": 2, "user:u": 2, "app:a": 5} == found.state
    assert 9 == session.state["temp:t"]
    assert "temp:t" not in found.events[0].actions.state_delta


async def test_user_state_without_a_session(service):
    assert {} == await service.get_user_state(**WHO)
    await service.create_session(**WHO, session_id="s1", state={"user:u": 2, "s": 3})
    assert {"u": 2} == await service.get_user_state(**WHO)


async def test_concurrent_states_lose_nothing(service):
    sessions = [await service.create_session(**WHO, session_id=f"s{number}") for number in range(8)]
    await asyncio.gather(
        *(service.append_event(one, event("hi", state={f"user:{one.id}": True})) for one in sessions)
    )
    assert {one.id for one in sessions} == set(await service.get_user_state(**WHO))


# -- memories -------------------------------------------------------------------------------------------------------------


async def talk(memories, session_id, *said, user="ada", app="app"):
    events = [
        event(text, "user" if number % 2 == 0 else "helper", invocation=f"i{number // 2}")
        for number, text in enumerate(said)
    ]
    session = Session(id=session_id, app_name=app, user_id=user, events=events)
    await memories.add_session_to_memory(session)
    return session


def found_in(response):
    return " ".join(part.text for one in response.memories for part in one.content.parts)


async def test_what_was_said_is_found(memories):
    await talk(memories, "s1", "My greyhound is called Biscuit.", "What a name!")
    assert "Biscuit" in found_in(await memories.search_memory(**WHO, query="greyhound called"))


async def test_another_users_words_are_not(memories):
    await talk(memories, "s1", "My greyhound is called Biscuit.", "What a name!")
    response = await memories.search_memory(app_name="app", user_id="bob", query="greyhound called")
    assert [] == response.memories


async def test_another_apps_words_are_not(memories):
    await talk(memories, "s1", "My greyhound is called Biscuit.", "What a name!")
    response = await memories.search_memory(app_name="other", user_id="ada", query="greyhound called")
    assert [] == response.memories


async def test_nothing_is_found_of_nothing(memories):
    assert [] == (await memories.search_memory(**WHO, query="greyhound")).memories


async def test_an_empty_session_is_no_error(memories):
    await talk(memories, "s1")
    assert [] == (await memories.search_memory(**WHO, query="greyhound")).memories


async def test_a_session_can_grow(memory, memories):
    await talk(memories, "s1", "My greyhound is called Biscuit.", "What a name!")
    await talk(
        memories, "s1", "My greyhound is called Biscuit.", "What a name!", "The cat is Momo.", "Noted."
    )
    assert "Momo" in found_in(await memories.search_memory(**WHO, query="cat Momo"))
    if isinstance(memories, PagefileMemoryService):
        turns = await memory.conversation("s1", user_id="ada", tenant="app").turns()
        assert ["What a name!", "Noted."] == [turn.assistant for turn in turns]


async def test_events_can_be_added_alone(memories):
    added = [event("The boiler was serviced in May."), event("Noted.", "helper")]
    await memories.add_events_to_memory(**WHO, events=added, session_id="s9")
    assert "boiler" in found_in(await memories.search_memory(**WHO, query="boiler serviced"))


async def test_entries_become_facts_and_can_be_deleted(memory):
    memories = PagefileMemoryService(memory)
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="The user is allergic to hazelnuts.")]))
    await memories.add_memory(**WHO, memories=[entry])
    (found,) = (await memories.search_memory(**WHO, query="allergic to hazelnuts")).memories
    await memories.delete_memory(**WHO, memory_id=found.id)
    assert [] == (await memories.search_memory(**WHO, query="allergic to hazelnuts")).memories
