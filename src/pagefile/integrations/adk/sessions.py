"""`PagefileSessionService`: ADK's sessions, their events and the three states in a Pagefile database."""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast
from uuid import uuid4

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from pagefile.blocking import BlockingMemory
from pagefile.edge.fail_open import MemoryLoop
from pagefile.edge.recorder import as_json
from pagefile.engine import Memory
from pagefile.errors import ConflictError
from pagefile.integrations.item_lists import ItemList
from pagefile.ports import OWN_NAMESPACE, ItemKey, ItemWrite, Namespace
from pagefile.records import JsonValue, Scope

R = TypeVar("R")

#: How often a state is written again because another worker was faster.
_ATTEMPTS = 20
_STATE = "state"


class PagefileSessionService(BaseSessionService):
    """Sessions are items of their user: exports, imports and erasures include them.

    A database that is down raises, as in ADK's own services: without its session a run has nothing to run on.
    """

    def __init__(self, memory: Memory | BlockingMemory, *, tenant: str | None = None) -> None:
        self._loop = MemoryLoop(memory)
        self._memory = self._loop.memory
        self._tenant = tenant

    # -- ADK's interface ------------------------------------------------------------------------------------------------------

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        return await self._done(partial(self._create, app_name, user_id, state or {}, session_id))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        return await self._done(partial(self._get, app_name, user_id, session_id, config))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        found = await self._done(partial(self._list, app_name, user_id))
        return ListSessionsResponse(sessions=sorted(found, key=lambda one: one.last_update_time))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        await self._done(partial(self._delete, app_name, user_id, session_id))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await self._done(
            partial(self._value, self._scope(app_name, user_id), _states(app_name), _STATE)
        )

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        is_new = await self._done(partial(self._is_new, session, event))
        if not is_new:
            return event
        event = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        await self._done(partial(self._append, session, event))
        return event

    # -- on the memory's own loop ---------------------------------------------------------------------------------------------

    async def _create(self, app: str, user: str, state: dict[str, Any], session_id: str | None) -> Session:
        name = (session_id or "").strip() or str(uuid4())
        scope = self._scope(app, user)
        app_state, user_state, own = _split(state)
        now = time.time()
        write = ItemWrite(_sessions(app), name, _json({"state": own, "time": now}))
        try:
            await self._items.write(scope, [write], now=self._now(), expected={(_sessions(app), name): None})
        except ConflictError as error:
            raise AlreadyExistsError(f"Session with id {name} already exists.") from error
        await self._update_states(app, user, app_state, user_state)
        made = await self._get(app, user, name, None)
        return cast("Session", made)

    async def _get(
        self, app: str, user: str, session_id: str, config: GetSessionConfig | None
    ) -> Session | None:
        name = session_id.strip()
        scope = self._scope(app, user)
        value = await self._value(scope, _sessions(app), name)
        if not value:
            return None
        last = None if config is None else config.num_recent_events
        listed = await self._events(app, user, name).items(last) if last != 0 else []
        events = [Event.model_validate(one) for one in listed]
        if config is not None and config.after_timestamp is not None:
            events = [event for event in events if event.timestamp >= cast("float", config.after_timestamp)]
        return await self._session(app, user, name, value, events)

    async def _list(self, app: str, user: str | None) -> list[Session]:
        tenant = self._scope(app, None).tenant
        users = [user] if user is not None else [one.user for one in await self._items.owners(tenant)]
        found: list[Session] = []
        for one in users:
            if one is None:
                continue
            items = await self._items.under(self._scope(app, one), _sessions(app), now=self._now())
            found += [await self._session(app, one, item.key, item.value, ()) for item in items]
        return found

    async def _delete(self, app: str, user: str, session_id: str) -> None:
        await self._events(app, user, session_id).clear()
        write = ItemWrite(_sessions(app), session_id, None)
        await self._items.write(self._scope(app, user), [write], now=self._now())

    async def _is_new(self, session: Session, event: Event) -> bool:
        """Whether the event is not there yet: a service that retries may bring it again."""
        value = await self._value(
            self._scope(session.app_name, session.user_id), _sessions(session.app_name), session.id
        )
        if not value:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        (last,) = await self._events(session.app_name, session.user_id, session.id).items(1) or [None]
        return last is None or Event.model_validate(last) != event

    async def _append(self, session: Session, event: Event) -> None:
        app, user = session.app_name, session.user_id
        app_state, user_state, own = _split(event.actions.state_delta or {} if event.actions else {})
        await self._events(app, user, session.id).append([event.model_dump(mode="json", exclude_none=True)])

        def grown(value: dict[str, Any]) -> dict[str, Any]:
            return {"state": {**value.get("state", {}), **own}, "time": event.timestamp}

        await self._change(self._scope(app, user), (_sessions(app), session.id), grown)
        await self._update_states(app, user, app_state, user_state)

    async def _update_states(
        self, app: str, user: str, of_app: dict[str, Any], of_user: dict[str, Any]
    ) -> None:
        for scope, new in ((self._scope(app, None), of_app), (self._scope(app, user), of_user)):
            if new:
                await self._change(scope, (_states(app), _STATE), lambda value, new=new: {**value, **new})

    async def _change(
        self, scope: Scope, key: ItemKey, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> None:
        for left in reversed(range(_ATTEMPTS)):
            before = await self._value(scope, *key)
            write = ItemWrite(*key, _json(change(before)))
            try:
                await self._items.write(scope, [write], now=self._now(), expected={key: before or None})
            except ConflictError:
                if not left:
                    raise
            else:
                return

    async def _session(self, app: str, user: str, name: str, value: Any, events: Sequence[Event]) -> Session:
        of_app = await self._value(self._scope(app, None), _states(app), _STATE)
        of_user = await self._value(self._scope(app, user), _states(app), _STATE)
        state = {
            **value["state"],
            **{State.APP_PREFIX + key: one for key, one in of_app.items()},
            **{State.USER_PREFIX + key: one for key, one in of_user.items()},
        }
        return Session(
            id=name, app_name=app, user_id=user, state=state, events=[*events], last_update_time=value["time"]
        )

    async def _value(self, scope: Scope, space: Namespace, key: str) -> dict[str, Any]:
        (item,) = await self._items.get(scope, [(space, key)], now=self._now())
        return {} if item is None else dict(item.value)

    def _events(self, app: str, user: str, session_id: str) -> ItemList:
        return ItemList(self._memory, ("adk", app, session_id), user, self._tenant or app)

    def _scope(self, app: str, user: str | None) -> Scope:
        return Scope(self._tenant or app, user)

    def _done(self, work: Callable[[], Awaitable[R]]) -> Awaitable[R]:
        return self._loop.started(work)

    @property
    def _items(self) -> Any:
        self._memory.engine.check_open()
        return self._memory.engine.store.items

    def _now(self) -> Any:
        return self._memory.engine.clock.now()


def _sessions(app: str) -> Namespace:
    return (OWN_NAMESPACE, "adk", app, "sessions")


def _states(app: str) -> Namespace:
    return (OWN_NAMESPACE, "adk", app, "states")


def _split(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The app's, the user's and the session's own part, without their prefixes; what is temporary is in none."""
    found: tuple[dict[str, Any], ...] = ({}, {}, {})
    for key, value in state.items():
        if key.startswith(State.APP_PREFIX):
            found[0][key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            found[1][key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            found[2][key] = value
    return found[0], found[1], found[2]


def _json(value: dict[str, Any]) -> JsonValue:
    return cast("JsonValue", as_json(value))
