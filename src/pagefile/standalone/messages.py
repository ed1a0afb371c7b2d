"""The rows of `ai_message` as document 001 reads them: done turns, oldest first; no checkpoints or resets."""

from typing import Final

from pagefile.errors import InvalidTurnError, NotFoundError
from pagefile.ports import EntryQuery, LogReader
from pagefile.records import Checkpoint, Scope, Status, Turn
from pagefile.standalone.session import AIMessage

_DONE: Final[frozenset[Status]] = frozenset({"done"})
_BATCH = 500
#: More checkpoints than any conversation has.
_EVERY = 2**31 - 1


async def messages_after(reader: LogReader, scope: Scope, seq: int) -> list[AIMessage]:
    """Every turn after a position in the log."""
    messages: list[AIMessage] = []
    while True:
        query = EntryQuery(scope, statuses=_DONE, after_seq=seq, limit=_BATCH)
        batch = [turn for turn in await reader.entries(query) if isinstance(turn, Turn)]
        messages += map(_row, batch)
        if len(batch) < _BATCH:
            return messages
        seq = batch[-1].seq or seq


async def newest_messages(reader: LogReader, scope: Scope, limit: int) -> list[AIMessage]:
    """The last turns."""
    if limit < 1:
        raise InvalidTurnError(f"limit is {limit}: it must be at least 1.")
    return [_row(turn) for turn in await newest_turns(reader, scope, limit)]


async def newest_turns(reader: LogReader, scope: Scope, limit: int, after_seq: int = 0) -> list[Turn]:
    """The last turns after a position in the log."""
    query = EntryQuery(scope, statuses=_DONE, after_seq=after_seq, limit=limit, newest=True)
    return [turn for turn in await reader.entries(query) if isinstance(turn, Turn)]


async def checkpoint_seq(reader: LogReader, scope: Scope, checkpoint_id: str) -> int:
    """The position of a checkpoint in the log; the beginning for an empty id."""
    if not checkpoint_id:
        return 0
    query = EntryQuery(scope, kinds=frozenset({"checkpoint"}), limit=_EVERY)
    for entry in await reader.entries(query):
        if isinstance(entry, Checkpoint) and entry.id == checkpoint_id:
            return entry.seq
    raise NotFoundError(f"Conversation {scope.conversation!r} has no checkpoint {checkpoint_id!r}.")


def _row(turn: Turn) -> AIMessage:
    by = turn.scope.user or ""
    return AIMessage(
        message_id=turn.id,
        conversation_id=turn.scope.conversation or "",
        query=turn.user or "",
        answer=turn.assistant or "",
        create_time=turn.created,
        create_by=by,
        update_time=turn.created,
        update_by=by,
    )
