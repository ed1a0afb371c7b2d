"""The transaction of `record()`, run bare: the store's own statements in a one-thread executor, and nothing else.

No text is checked or counted, no record is made, nothing is grouped: what a program would do that knows its rows already.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pagefile.records import Turn
from pagefile.stores.encoding import time_text
from pagefile.stores.sqlite.database import Place, Synchronous, open_connections
from pagefile.stores.sqlite.player import sql

#: What `record()` runs for a turn of a conversation that is there already, in order (a test compares).
STATEMENTS = ("state", "turn_insert", "conversation_goes_on", "session_turn")
#: Where the statement `state` has the newest place of the log.
_LAST_SEQ = 4

Values = dict[str, Any]


def values_of(turn: Turn) -> Values:
    """The turn as the parameters of all four statements; the place in the log is added when it is written."""
    moment = time_text(turn.created)
    return {
        "id": turn.id,
        "tenant": turn.scope.tenant,
        "conversation": turn.scope.conversation,
        "user": turn.scope.user,
        "agent": None,
        "query": turn.user,
        "answer": turn.assistant,
        "created": moment,
        "now": moment,
        "at": time_text(turn.at),
        "seconds": int(turn.created.timestamp()),
        "status": "done",
        "steps": None,
        "metadata": None,
        "user_tokens": turn.user_tokens,
        "assistant_tokens": turn.assistant_tokens,
        "tokens": turn.tokens,
        "counter": turn.counter,
        "messages": None,
        "digest": "0" * 64,
        "project": None,
        "language": None,
        "timezone": None,
        "done_turns": 1,
        "live_tokens": turn.tokens,
    }


class BareLog:
    """Writes rows one by one, each in a transaction of its own, on a connection set up as the store's."""

    def __init__(self, database: Path, synchronous: Synchronous) -> None:
        self._connection = open_connections(Place(database, synchronous), readers=0)[0]
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._state, *self._writes = [sql(name) for name in STATEMENTS]
        # The first turn of a conversation makes its row.
        self._first = [
            sql("conversation_turn") if one == sql("conversation_goes_on") else one for one in self._writes
        ]

    async def write(self, values: Values) -> None:
        """Write a row; when this returns, it is as durable as the store's."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, values)

    def close(self) -> None:
        """End the thread and close the file."""
        self._thread.shutdown()
        self._connection.close()

    def _transact(self, values: Values) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute(self._state, values).fetchone()
        values["seq"] = 1 if found is None else found[_LAST_SEQ] + 1
        for statement in self._first if found is None else self._writes:
            connection.execute(statement, values)
        connection.execute("COMMIT")
