"""Document 002's conversation store: messages and one summary per conversation, over the turn log.

The document stores single messages, the log stores turns: a user's messages open a turn, the assistant's completes it. What a
user said counts from the moment it is written, whether or not an answer comes. A summary is the conversation's checkpoint: the
rows of `conversation_summaries` and `ai_message` are two views of it.
"""

import json
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, NotRequired, TypedDict
from uuid import NAMESPACE_URL, uuid5

from pagefile import records
from pagefile.engine import Conversation, Memory
from pagefile.engine.engine import Engine
from pagefile.engine.ownership import on_behalf
from pagefile.errors import ConflictError, ErasedError, InvalidArgumentError
from pagefile.lru import Lru
from pagefile.ports import ENDED, EntryQuery, LogReader, LogView, ViewRequest
from pagefile.records import Scope, Turn, checked_id
from pagefile.standalone.session import SPEAKERS
from pagefile.stores.session import Role, sides
from pagefile.text.speakers import UNANSWERED
from pagefile.tiers.checkpoints import Checkpoints
from pagefile.tiers.history import History

_BATCH = 500


class Conversations:
    """The conversations of a tenant. The documents' calls name no user, and act as the conversation's owner."""

    def __init__(self, memory: Memory, tenant: str | None = None) -> None:
        self.memory = memory
        self.tenant = records.DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant")

    @property
    def engine(self) -> Engine:
        """The engine; raises if it is closed."""
        self.memory.engine.check_open()
        return self.memory.engine

    @property
    def reader(self) -> LogReader:
        return self.engine.store.reader

    @property
    def checkpoints(self) -> Checkpoints:
        return self.engine.tier(History).checkpoints

    def scope(self, conversation_id: str, user_id: str | None = None) -> Scope:
        """The scope of a conversation; without a user, for any of them."""
        return Scope(self.tenant, user_id or None, checked_id(conversation_id, "conversation_id"))

    async def owned(self, conversation_id: str, user_id: str | None = None) -> Scope:
        """A conversation and its user: if the caller names none, the conversation's owner."""
        return await on_behalf(self.reader, self.scope(conversation_id, user_id))

    async def view(self, scope: Scope, *, budget_tokens: int = 0, min_turns: int = 0) -> LogView:
        """The head of a conversation and its summary, by default without turns."""
        return await self.reader.view(ViewRequest(scope, budget_tokens, min_turns))

    async def turns_after(self, scope: Scope, seq: int) -> AsyncIterator[Turn]:
        """Turns after a position in the log, read in batches of some hundreds; without an answer, only the user's side."""
        while batch := await self._ended(scope, _BATCH, seq):
            for turn in batch:
                if turn.counts:
                    yield turn.spoken
            if len(batch) < _BATCH:
                return
            seq = batch[-1].seq or seq

    async def turns(
        self, scope: Scope, limit: int, after_seq: int = 0, *, newest: bool = False
    ) -> list[Turn]:
        """The first or the newest turns after a position in the log, oldest first; without an answer, only the user's side."""
        found = await self._ended(scope, limit, after_seq, newest=newest)
        return [turn.spoken for turn in found if turn.counts]

    async def _ended(self, scope: Scope, limit: int, after_seq: int, *, newest: bool = False) -> list[Turn]:
        query = EntryQuery(scope, statuses=ENDED, after_seq=after_seq, limit=limit, newest=newest)
        return [turn for turn in await self.reader.entries(query) if isinstance(turn, Turn)]


#: Other names for the roles.
_ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_OPEN: Final[frozenset[records.Status]] = frozenset({"open"})
_NEWEST = 20
#: A turn with two messages of the user and an answer.
_SEVERAL = 3
#: How many conversations' listings and counts are remembered.
_REMEMBERED = 10_000


class ConversationMessage(TypedDict):
    """One side of a turn, in the document's dict format."""

    role: Role
    content: str
    #: Seconds since 1970, as in an episode.
    timestamp: int
    id: NotRequired[str]
    turn_id: NotRequired[str]
    conversation_id: NotRequired[str]
    #: When it was written, always with a time zone.
    created_at: NotRequired[datetime]
    #: True for a message recalled because it is relevant to the question.
    recalled: NotRequired[bool]


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A row of `conversation_summaries`: the current summary, and how far it reaches."""

    __tablename__: ClassVar[str] = "conversation_summaries"

    id: str
    conversation_id: str
    summary: str
    covered_message_count: int
    created_at: datetime
    #: Increases with every summary: pass it back as `expected_version`.
    version: int
    covered_through_seq: int


@dataclass(slots=True)
class _Listed:
    """The epochs in which messages were listed since the last summary: the next one may be based on any of them."""

    first: int
    last: int


class ConversationStore(Conversations):
    """对话存储: the five calls of the document, and what they need to be safe."""

    def __init__(self, memory: Memory, *, tenant: str | None = None) -> None:
        super().__init__(memory, tenant)
        self._listed: Lru[str, _Listed] = Lru(_REMEMBERED)
        #: By what was counted and where: which conversation it was, up to where, how many messages.
        self._counts: Lru[tuple[str, str], tuple[tuple[datetime, int], int, int]] = Lru(_REMEMBERED)

    def conversation(self, conversation_id: str, user_id: str | None = None) -> Conversation:
        return self.memory.conversation(conversation_id, user_id=user_id, tenant=self.tenant)

    async def chat(self, conversation_id: str, user_id: str | None = None) -> Conversation:
        """The same for the conversation's owner, if no user is named."""
        return self.conversation(conversation_id, (await self.owned(conversation_id, user_id)).user)

    async def get_or_create_conversation_id(self, user_id: str, session_id: str) -> str:
        """The conversation id of a user's session: deterministic, the same everywhere.

        Nothing is written: a conversation begins with its first message.
        """
        whose = [self.tenant, checked_id(user_id, "user_id"), checked_id(session_id, "session_id")]
        return str(uuid5(NAMESPACE_URL, f"pagefile:conversation:{json.dumps(whose)}"))

    # -- messages -------------------------------------------------------------------------------------------------------

    async def append_message(
        self,
        conversation_id: str,
        role: str,
        content: str,
        *,
        turn_id: str | None = None,
        user_id: str | None = None,
        at: datetime | None = None,
        metadata: records.JsonObject | None = None,
    ) -> ConversationMessage:
        """Write a message; when this returns, it is on disk.

        A user's message opens a turn (with the id `turn_id`, if given), or goes on in the open one: several messages in a row are
        one user side. An assistant's completes the named turn, else the newest open one. Where requests of one conversation
        overlap, pass the `turn_id` of the user's message. An assistant message without an open turn makes its own. Repeating a
        call that names its turn changes nothing.
        """
        side = _role(role)
        chat = await self.chat(conversation_id, user_id)
        waiting = None if turn_id is not None else await self._waiting(conversation_id)
        if side == "user":
            if waiting is not None and metadata is None:
                turn = await chat.extend(waiting, [{"role": "user", "content": content}])
            else:
                turn = await chat.begin(content, id=turn_id, at=at, metadata=metadata)
            return messages_of([turn])[-1]
        turn_id = waiting.id if waiting is not None else turn_id
        if turn_id is None:
            turn = await chat.record(None, content, at=at, metadata=metadata)
        else:
            turn = await self._completed(chat, turn_id, content)
        return _message(turn, side, content)

    async def _completed(self, chat: Conversation, turn_id: str, content: str) -> Turn:
        """The turn with its answer; several messages of the user may have several answers, each after the first in its own turn."""
        try:
            return await chat.complete(turn_id, content)
        except ConflictError:
            turn = (await self.standing(chat.id, [turn_id])).get(turn_id)
            if turn is None or turn.status != "done" or len([*sides(turn)]) < _SEVERAL:
                raise
            return await chat.record(None, content)

    async def _waiting(self, conversation_id: str) -> Turn | None:
        """The newest turn that has no answer yet."""
        return next(reversed(await self._open(await self.owned(conversation_id))), None)

    async def _open(self, scope: Scope) -> list[Turn]:
        query = EntryQuery(scope, statuses=_OPEN, limit=_NEWEST, newest=True)
        return [turn.spoken for turn in await self.reader.entries(query) if isinstance(turn, Turn)]

    async def abort_turn(self, conversation_id: str, turn_id: str) -> None:
        """Abort a turn whose answer will not come (a stream broke off): only what the user said counts."""
        await (await self.chat(conversation_id)).abort(turn_id)

    async def list_messages(
        self, conversation_id: str, limit: int | None = None, *, desc: bool = False
    ) -> list[ConversationMessage]:
        """Messages, oldest first, or newest first with `desc`; the first `limit` of them, or all. Unanswered ones are among them."""
        if limit is not None and limit < 1:
            raise InvalidArgumentError(f"limit is {limit}: it must be at least 1, or None for all.")
        scope = await self.owned(conversation_id)
        view = await self.view(scope)
        epoch = view.head.epoch
        self._listed.setdefault(conversation_id, _Listed(epoch, epoch)).last = epoch
        waiting = await self._open(scope)
        if limit is not None and desc:
            turns = await self.turns(scope, limit, view.head.reset_seq, newest=True)
            return messages_of([*turns, *waiting])[::-1][:limit]
        found: list[ConversationMessage] = []
        async for turn in self.turns_after(scope, view.head.reset_seq):
            found += messages_of([turn])
            if limit is not None and len(found) >= limit:
                break
        else:
            found += messages_of(waiting)
        return found[::-1] if desc else found[:limit]

    async def count_messages(self, conversation_id: str) -> int:
        """The number of messages since the conversation began or was last reset."""
        scope = await self.owned(conversation_id)
        head = (await self.view(scope)).head
        waiting = len(messages_of(await self._open(scope)))
        return waiting + await self._count("all", scope, head, head.last_seq)

    async def has_messages(self, view: LogView, count: int) -> bool:
        """Whether a conversation has at least this many messages; reads no more of it than that."""
        # Every turn has at least one message.
        turns = await self.turns(view.head.scope, count, view.head.reset_seq, newest=True)
        return len(messages_of(turns)) >= count

    # -- the summary ------------------------------------------------------------------------------------------------------

    async def get_summary(self, conversation_id: str) -> ConversationSummary | None:
        """The current summary; never makes one."""
        scope = await self.owned(conversation_id)
        view = await self.view(scope)
        if view.checkpoint is None:
            return None
        through = view.checkpoint.covered_through_seq
        return _summary(view.checkpoint, await self._count("covered", scope, view.head, through))

    async def save_summary(
        self,
        conversation_id: str,
        summary: str,
        covered_message_count: int,
        *,
        expected_version: int | None = None,
    ) -> ConversationSummary:
        """Let a summary replace the first messages of the conversation; a later one replaces this one.

        A turn that is only half covered is left out entirely. With an `expected_version` (0: there is none yet), a summary saved
        meanwhile by another caller is not overwritten: on `ConflictError`, read it and try again. A summary of messages that this store
        listed before some of them were erased raises `ErasedError`.
        """
        scope = await self.owned(conversation_id)
        view = await self.view(scope)
        covered, through_seq = await self._covered(scope, view.head.reset_seq, covered_message_count)
        if not covered:
            raise InvalidArgumentError(
                f"covered_message_count is {covered_message_count}: there is no whole turn in that many messages."
            )
        listed = self._listed.get(conversation_id) or _Listed(view.head.epoch, view.head.epoch)
        try:
            made = await self.checkpoints.cover(
                scope, summary, through_seq, epoch=listed.first, expected_version=expected_version
            )
        except ErasedError:
            listed.first = listed.last
            raise
        listed.first = listed.last
        return _summary(made, covered)

    async def _covered(self, scope: Scope, reset_seq: int, count: int) -> tuple[int, int]:
        """How many of the first `count` messages are in whole turns, and the position of the last such turn."""
        covered, through_seq = 0, 0
        async for turn in self.turns_after(scope, reset_seq):
            sides = len(messages_of([turn]))
            if covered + sides > count:
                break
            covered, through_seq = covered + sides, turn.seq or 0
        return covered, through_seq

    # -- for code built on this ------------------------------------------------------------------------------------------

    async def standing(self, conversation_id: str, ids: Collection[str]) -> dict[str, Turn]:
        """Those of the given turns that the log still holds."""
        scope = await self.owned(conversation_id)
        newest = await self.reader.entries(EntryQuery(scope, limit=_NEWEST, newest=True))
        there = [turn for turn in newest if isinstance(turn, Turn) and (turn.counts or turn.status == "open")]
        found = {turn.id: turn for turn in there if turn.id in ids}
        # Most were written just now: the whole conversation is only read for others.
        if len(found) < len(ids):
            found |= {turn.id: turn async for turn in self.turns_after(scope, 0) if turn.id in ids}
        return found

    async def _count(self, what: str, scope: Scope, head: records.ConversationInfo, through_seq: int) -> int:
        """The number of messages up to a position in the log; reads only what was written since the last count."""
        key = what, scope.conversation or ""
        # One that was erased and started again is a different conversation.
        whose = head.created, head.reset_seq
        known, seq, count = self._counts.get(key, (whose, head.reset_seq, 0))
        if known != whose or seq > through_seq:
            seq, count = head.reset_seq, 0
        if seq < through_seq:
            async for turn in self.turns_after(scope, seq):
                if (turn.seq or 0) > through_seq:
                    break
                count += len(messages_of([turn]))
        self._counts[key] = whose, through_seq, count
        return count

    async def window_start(self, scope: Scope, window_messages: int) -> int:
        """The position of the oldest turn among the newest messages; 0 if there are no others."""
        head = (await self.view(scope)).head
        if not window_messages:
            return head.last_seq + 1
        left = window_messages
        for turn in reversed(await self.turns(scope, window_messages, head.reset_seq, newest=True)):
            left -= len(messages_of([turn]))
            if left <= 0:
                return turn.seq or 0
        return 0

    async def turn_of(self, hit: records.Hit) -> Turn | None:
        """A recalled turn with both sides separate; None if it was erased meanwhile."""
        after = hit.before.seq or 0 if hit.before else 0
        found = await self.turns(await self.owned(hit.conversation_id), 1, after)
        return found[0] if found and found[0].id == hit.id else None


def version_of(view: LogView) -> int:
    """The version of the current summary; 0 if there is none."""
    return view.checkpoint.version if view.checkpoint else 0


def messages_of(turns: Iterable[Turn]) -> list[ConversationMessage]:
    return [_message(turn, role, text, n) for turn in turns for n, (role, text) in enumerate(sides(turn))]


def format_messages(messages: Iterable[ConversationMessage]) -> str:
    """A line per message, with its speaker; line breaks in a text become spaces."""
    return lines_of((message["role"], message["content"]) for message in messages)


def lines_of(said: Iterable[tuple[str, str]]) -> str:
    lines = ((_speaker(role), text.replace("\n", " ")) for role, text in said)
    return "\n".join(f"{speaker}: {text}" for speaker, text in lines)


def _speaker(role: str) -> str:
    return UNANSWERED["zh"] if role == UNANSWERED["en"] else SPEAKERS[_role(role)]


def _message(turn: Turn, role: Role, content: str, number: int = 0) -> ConversationMessage:
    """One message of a turn; those of its user after the first one have the number in their id."""
    part = f"{role}:{number}" if role == "user" and number else role
    return ConversationMessage(
        role=role,
        content=content,
        timestamp=int(turn.at.timestamp()),
        id=f"{turn.id}:{part}",
        turn_id=turn.id,
        conversation_id=turn.scope.conversation or "",
        created_at=turn.created,
    )


def _role(given: str) -> Role:
    role = _ROLES.get(given)
    if role is None:
        raise InvalidArgumentError(
            f"role is {given!r}: a message is the user's or the assistant's; give 'user' or 'assistant'."
        )
    return role


def _summary(checkpoint: records.Checkpoint, covered: int) -> ConversationSummary:
    name, made = checkpoint.scope.conversation or "", (checkpoint.created, checkpoint.version)
    through = checkpoint.covered_through_seq
    return ConversationSummary(checkpoint.id, name, checkpoint.summary, covered, *made, through)
