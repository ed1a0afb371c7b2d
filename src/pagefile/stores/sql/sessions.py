"""Session values: as they were put, and what turns and markers changed since."""

from collections.abc import Callable
from datetime import datetime
from secrets import token_hex

from pagefile.errors import ConflictError
from pagefile.ports import Clock, SessionStore
from pagefile.records import NEVER, JsonObject, Scope, utc
from pagefile.stores import rules, session
from pagefile.stores.encoding import from_json, moment, to_json
from pagefile.stores.sql.plays import Play, Player, Row, Values, count, row
from pagefile.stores.sql.reader import check_owner, check_writable
from pagefile.stores.sql.rows import keys


class SqlSessions(SessionStore):
    def __init__(self, player: Player, clock: Clock) -> None:
        self._player = player
        self._clock = clock
        self._secret: bytes | None = None

    async def get(self, scope: Scope) -> JsonObject | None:
        rules.conversation_of(scope)
        return await self._player.read(lambda: session_of(scope))

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        values = _values(scope, value, utc(self._clock.now()))

        def play() -> Play[None]:
            yield from check_writable(epoch, [scope])
            yield from count("session_begun", values)
            if (yield from row("session_put", values)) is None:
                yield from check_owner(scope)
                raise ConflictError(
                    f"Conversation {scope.conversation!r} was erased in the meantime: try again."
                )

        await self._player.write(play)

    async def change(self, scope: Scope, change: Callable[[JsonObject | None], JsonObject]) -> None:
        rules.conversation_of(scope)
        now = utc(self._clock.now())

        def play() -> Play[None]:
            # Locks the conversation, whether or not it was there, until the new value is.
            if not (yield from count("session_opened", {**keys(scope), "now": now})):
                yield from check_owner(scope)
            yield from put_session(scope, change((yield from session_of(scope))), now)

        await self._player.write(play)

    async def secret(self) -> bytes:
        if self._secret is None:
            values = {"name": "sessions", "secret": token_hex(32)}

            def play() -> Play[str]:
                yield from count("secret_put", values)
                found = yield from row("secret_get", values)
                return values["secret"] if found is None else found[0]

            self._secret = (await self._player.write(play)).encode()
        return self._secret


def session_of(scope: Scope) -> Play[session.SessionValue | None]:
    """The session of a conversation, which must belong to this scope."""
    found = yield from row("session_get", keys(scope))
    if found is None:
        return None
    owner, there, put, changed, turns, was_reset, user, agent, answer, checkpoint_id, summary = found
    rules.check_owner(scope, owner)
    if not there:
        return None
    value: session.SessionValue = (
        session.blank(Scope(scope.tenant, user, scope.conversation)) if put is None else from_json(put)
    )
    # What turns and markers changed since it was put.
    changed = changed and moment(changed)
    if was_reset:
        session.put_reset(value, changed)
    if was_reset or turns:
        session.put_turn(value, user, agent, answer, changed, turns)
    if checkpoint_id is not None:
        session.put_summary(value, summary, checkpoint_id, changed)
    return value


def put_session(scope: Scope, value: JsonObject, now: datetime) -> Play[None]:
    """Put the session of an existing conversation."""
    yield from row("session_put", _values(scope, value, now))


def tell_session(statement: str, values: Values, scope: Scope) -> Play[None]:
    """Apply a write's changes to the session, which starts out blank if there was none."""
    if not (yield "count", statement, values):
        yield from put_session(scope, session.blank(scope), values["now"])
        yield from count(statement, values)


def _values(scope: Scope, value: JsonObject, now: datetime) -> Values:
    snapshot = to_json(value["user_snapshot"]) if "user_snapshot" in value else None
    return {**keys(scope), "value": to_json(value), "snapshot": snapshot, "now": now}


def profile(found: Row, scope: Scope) -> JsonObject | None:
    """The `user_snapshot` of a session, from the columns of the fragment `session_profile`."""
    blank, snapshot, user, conversation = found
    if conversation is None:
        return None
    if not blank and user is None:
        return from_json(snapshot)
    value: session.SessionValue = {} if snapshot is None else {"user_snapshot": from_json(snapshot)}
    if blank:
        value = session.blank(Scope(scope.tenant, user, scope.conversation))
    session.put_turn(value, user, None, None, NEVER)
    return value.get("user_snapshot")
