"""The session value of a conversation."""

import json
from typing import Any

import pytest

from pagefile.errors import ConflictError, InvalidTurnError
from pagefile.ports import HeadQuery, Store
from pagefile.records import Scope
from pagefile.testing.clock import FakeClock
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import AT, CHAT, aborted, checkpoint, completed, done, opened, reset

OTHER = Scope("tenant", "bob", "chat")
_SECONDS = int(AT.timestamp())


async def value_of(store: Store, scope: Scope = CHAT) -> dict[str, Any]:
    """The session, which must exist."""
    found = await store.sessions.get(scope)
    assert found is not None
    return json.loads(json.dumps(found))


class SessionStoreContract(Contract):
    """`SessionStore`, and the session's part in the turn's transaction."""

    async def test_there_is_no_session_before_a_turn_is_done(self, store: Store) -> None:
        """None; an open or aborted turn does not create one."""
        assert await store.sessions.get(CHAT) is None
        await store.log.append(opened("a"))
        await store.log.advance(aborted("a"))
        assert await store.sessions.get(CHAT) is None

    async def test_a_done_turn_writes_the_document_s_keys(self, store: Store) -> None:
        """Every key of the session value's JSON, by name."""
        await store.log.append(done("a", "头晕", "请休息", agent="triage"))
        assert await value_of(store) == {
            "meta": {"conversation_id": "chat", "user_id": "ada", "updated_at": _SECONDS},
            "flow_context": {"current_agent_key": "triage", "last_bot_message": "请休息", "turn_count": 1},
            "message_context": {
                "summary": "",
                "window_messages": [],
                "mode": "FULL_HISTORY",
                "checkpoint_message_id": "",
            },
            "global_state": {
                "shared": {},
                "entities": {},
                "agent_slots": {},
                "current_intent": "",
                "pending_action": None,
            },
            "user_snapshot": {
                "user_id": "ada",
                "name": "",
                "allergies": [],
                "history": [],
                "surgery_history": [],
                "preferences": [],
            },
        }

    async def test_the_session_follows_the_turns(self, store: Store, clock: FakeClock) -> None:
        """The count rises with every done turn; fields a turn does not set stay as they were."""
        await store.log.append(done("a", agent="triage"))
        await store.log.append(done("b", assistant=None))
        await store.log.append(opened("c", agent="pharmacy"))
        clock.advance(90)
        await store.log.advance(completed("c", 'quotes " and \\ and 中文'))
        await store.log.append(done("a", agent="again"))
        value = await value_of(store)
        assert value["flow_context"] == {
            "current_agent_key": "pharmacy",
            "last_bot_message": 'quotes " and \\ and 中文',
            "turn_count": 3,
        }
        assert value["meta"]["updated_at"] == _SECONDS + 90

    async def test_a_checkpoint_and_a_reset_change_the_mode(self, store: Store) -> None:
        """A checkpoint sets its summary and id; a reset clears them and restarts the count."""
        await store.log.append(done("a"))
        await store.log.mark(checkpoint("k", 1))
        value = await value_of(store)
        assert value["message_context"] == {
            "summary": "what was said",
            "window_messages": [],
            "mode": "SUMMARY_N",
            "checkpoint_message_id": "k",
        }
        assert value["flow_context"]["turn_count"] == 1
        await store.log.mark(reset("r"))
        value = await value_of(store)
        assert value["message_context"] == {
            "summary": "",
            "window_messages": [],
            "mode": "FULL_HISTORY",
            "checkpoint_message_id": "",
        }
        assert value["flow_context"]["turn_count"] == 0
        await store.log.append(done("b"))
        assert (await value_of(store))["flow_context"]["turn_count"] == 1

    async def test_what_an_application_keeps_in_it_stays(self, store: Store) -> None:
        """A turn changes only its own keys."""
        await store.log.append(done("a"))
        value = await value_of(store)
        value["global_state"]["agent_slots"] = {"dose": [1, 2.5, None, "毫克"]}
        value["own"] = True
        await store.sessions.put(CHAT, value)
        await store.log.append(done("b"))
        after = await value_of(store)
        assert (after["global_state"], after["own"]) == (value["global_state"], True)
        assert after["flow_context"]["turn_count"] == 2

    async def test_a_turn_mends_what_it_can(self, store: Store) -> None:
        """A missing section is created; one that is not an object is left alone."""
        await store.sessions.put(CHAT, {"flow_context": None, "meta": {"updated_at": "never"}})
        await store.log.append(done("a"))
        assert await value_of(store) == {
            "flow_context": None,
            "meta": {"updated_at": _SECONDS, "user_id": "ada"},
            "user_snapshot": {"user_id": "ada"},
        }

    async def test_put_replaces_the_value(self, store: Store) -> None:
        """What is put is what is read."""
        await store.sessions.put(CHAT, {"a": [1, {"b": None}], "中": "文"})
        assert await value_of(store) == {"a": [1, {"b": None}], "中": "文"}
        await store.sessions.put(CHAT, {})
        assert await value_of(store) == {}

    async def test_putting_a_session_begins_the_conversation(self, store: Store) -> None:
        """It belongs to the user who put it, and is listed."""
        await store.sessions.put(CHAT, {})
        heads = await store.reader.heads(HeadQuery(Scope("tenant", "ada")))
        assert [(head.scope, head.exists, head.last_seq) for head in heads] == [(CHAT, True, 0)]

    async def test_the_session_of_another_user_conflicts(self, store: Store) -> None:
        """It can be neither read nor replaced."""
        await store.sessions.put(CHAT, {"mine": 1})
        with pytest.raises(ConflictError):
            await store.sessions.get(OTHER)
        with pytest.raises(ConflictError):
            await store.sessions.put(OTHER, {})
        assert await value_of(store) == {"mine": 1}

    async def test_a_session_must_be_json(self, store: Store) -> None:
        """What is not JSON is refused."""
        with pytest.raises(InvalidTurnError):
            await store.sessions.put(CHAT, {"x": float("inf")})
        assert await store.sessions.get(CHAT) is None
