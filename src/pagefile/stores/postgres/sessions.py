"""Session values: as they were put, and what turns and markers changed since."""

from typing import Any

from pagefile.errors import ConflictError
from pagefile.ports import Clock, SessionStore
from pagefile.records import NEVER, JsonObject, Scope, utc
from pagefile.stores import rules, session
from pagefile.stores.encoding import from_json, to_json
from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import Connection, Row, Values
from pagefile.stores.postgres.epochs import check_writable
from pagefile.stores.postgres.marking import check_owner
from pagefile.stores.postgres.rows import keys


class PostgresSessions(SessionStore):
    """Session values in `sessions`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def get(self, scope: Scope) -> JsonObject | None:
        rules.conversation_of(scope)
        row = await self._database.row("session_get", keys(scope))
        if row is None:
            return None
        rules.check_owner(scope, row[0])
        return value_of(row[2:], scope) if row[1] else None

    async def put(self, scope: Scope, value: JsonObject, *, epoch: int | None = None) -> None:
        rules.conversation_of(scope)
        values = {**session_values(scope, value), "now": utc(self._clock.now())}

        async def write(connection: Connection) -> None:
            await check_writable(connection, epoch, [scope])
            if await connection.row("session_put", values) is None:
                await check_owner(connection, scope)
                raise ConflictError(f"Conversation {scope.conversation!r} was erased meanwhile: try again.")

        await self._database.write(write)


def session_values(scope: Scope, value: JsonObject) -> Values:
    """What the statement that puts a session is given, beside the time."""
    snapshot = to_json(value["user_snapshot"]) if "user_snapshot" in value else None
    return {**keys(scope), "value": to_json(value), "snapshot": snapshot}


def value_of(row: Row, scope: Scope) -> session.SessionValue:
    """A session as it is now: the columns of the statement `session_get` behind the first two."""
    put, changed, turns, anew, user, agent, answer, checkpoint_id, summary = row
    value: session.SessionValue = (
        session.blank(Scope(scope.tenant, user, scope.conversation)) if put is None else from_json(put)
    )
    if anew:
        session.put_reset(value, changed)
    if anew or turns:
        _put_turns(value, session.SessionTurn(user, agent, answer, changed), turns)
    if checkpoint_id is not None:
        session.put_checkpoint(value, checkpoint_id, summary, changed)
    return value


def profile(row: Row, scope: Scope) -> JsonObject | None:
    """The `user_snapshot` of a session: from whether nobody put one, what stands in the one put, and the user of turns since."""
    blank, snapshot, user, conversation = row
    if conversation is None:
        return None
    value: session.SessionValue = {} if snapshot is None else {"user_snapshot": from_json(snapshot)}
    if blank:
        value = session.blank(Scope(scope.tenant, user, scope.conversation))
    session.put_turn(value, session.SessionTurn(user, None, None, NEVER))
    return value.get("user_snapshot")


def _put_turns(value: session.SessionValue, last: session.SessionTurn, turns: int) -> None:
    """So many turns as if they had been put one after the other: all but the count is what the last ones left."""
    session.put_turn(value, last)
    flow: Any = value["flow_context"]
    if isinstance(flow, dict):
        flow["turn_count"] += turns - 1
