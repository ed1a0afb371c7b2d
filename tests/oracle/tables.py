"""The data that the ports of the in-memory store share: plain Python objects, counted again on each call."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pagefile.errors import ClosedError
from pagefile.ports import NO_LABELS, Clock, EmbeddingModel, Labels, Vector
from pagefile.records import (
    NEVER,
    Checkpoint,
    ConversationInfo,
    Entry,
    Fact,
    Page,
    Reset,
    Scope,
    Turn,
    WindowRecord,
    utc,
)
from pagefile.stores import rules, session
from pagefile.stores.erasure import check_epoch, written_keys
from pagefile.stores.sql.plays import Row

T = TypeVar("T")


@dataclass
class Conversation:
    scope: Scope
    created: datetime
    updated: datetime
    agent: str | None = None
    labels: Labels = NO_LABELS
    #: Turns that ended, checkpoints and resets; the entry at index i has seq i + 1.
    ended: list[Entry] = field(default_factory=list[Entry])
    open: list[Turn] = field(default_factory=list[Turn])

    def entries(self) -> list[Entry]:
        return [*self.ended, *self.open]

    def find(self, entry_id: str) -> Entry | None:
        return next((entry for entry in self.entries() if entry.id == entry_id), None)

    def reset_seq(self) -> int:
        return max((entry.seq for entry in self.ended if isinstance(entry, Reset)), default=0)

    def checkpoint(self) -> Checkpoint | None:
        after = self.ended[self.reset_seq() :]
        return next((entry for entry in reversed(after) if isinstance(entry, Checkpoint)), None)

    def versions(self) -> int:
        return max((entry.version for entry in self.ended if isinstance(entry, Checkpoint)), default=0)

    def began(self) -> datetime:
        """When it was last reset; long ago if it never was."""
        return max((one.created for one in self.ended if isinstance(one, Reset)), default=NEVER)

    def done(self, after: int = 0) -> list[Turn]:
        return [turn.spoken for turn in self.ended[after:] if isinstance(turn, Turn) and turn.counts]

    def live(self) -> list[Turn]:
        checkpoint = self.checkpoint()
        return self.done(max(self.reset_seq(), checkpoint.covered_through_seq if checkpoint else 0))

    def head(self, epoch: int = 0) -> ConversationInfo:
        checkpoint, live = self.checkpoint(), self.live()
        return ConversationInfo(
            scope=self.scope,
            agent=self.agent,
            created=self.created,
            updated=self.updated,
            last_seq=len(self.ended),
            reset_seq=self.reset_seq(),
            covered_through_seq=checkpoint.covered_through_seq if checkpoint else 0,
            turns=len(self.done(self.reset_seq())),
            live_turns=len(live),
            live_tokens=sum(turn.tokens for turn in live),
            project=self.labels.project,
            language=self.labels.language,
            timezone=self.labels.timezone,
            epoch=epoch,
        )


@dataclass(frozen=True, slots=True)
class Shelved:
    """A page and what belongs to it; a tombstone has no text, no spans and no terms."""

    page: Page
    text: str | None
    spans: tuple[tuple[int, int], ...]
    terms: tuple[str, ...] | None = None
    embedding: tuple[str, Vector] | None = None


class Tables:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.closed = False
        self.conversations: dict[tuple[str, str], Conversation] = {}
        self.facts: dict[tuple[str, str], Fact] = {}
        #: Every change of a fact with the fact's scope, and the number of the newest.
        self.fact_revisions = list[tuple[Scope, Row]]()
        self.fact_revision = 0
        self.pages: dict[tuple[str, str], Shelved] = {}
        #: Attachments of turns, by tenant, conversation, turn and hash; and the bytes.
        self.attachments: dict[tuple[str, str, str, str], str] = {}
        self.blobs: dict[str, bytes] = {}
        #: The number of the last erasure of each scope that was erased.
        self.epochs: dict[str, int] = {}
        self.calls: dict[tuple[str, str], WindowRecord] = {}
        self.sessions: dict[tuple[str, str], session.SessionValue] = {}
        #: By tenant, conversation and tier.
        self.watermarks: dict[tuple[str, str, str], int] = {}
        #: By tenant, conversation and position: the analyzer, and the terms it found in question and answer.
        self.terms: dict[tuple[str, str, int], tuple[str, str, str]] = {}
        #: By model, then by tenant, conversation and position: the turn's id and its vector.
        self.vectors: dict[EmbeddingModel, dict[tuple[str, str, int], tuple[str, Vector]]] = {}

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError

    def now(self) -> datetime:
        return utc(self.clock.now())

    @property
    def epoch(self) -> int:
        return max(self.epochs.values(), default=0)

    def check_epoch(self, epoch: int | None, *scopes: Scope) -> None:
        if epoch is not None:
            check_epoch(epoch, self.newest_epoch(*scopes))

    def newest_epoch(self, *scopes: Scope) -> int:
        """The number of the last erasure of one of the scopes, 0 when there was none."""
        return max((self.epochs.get(key, 0) for key in written_keys(scopes)), default=0)

    def found(self, scope: Scope) -> Conversation | None:
        conversation = self.conversations.get((scope.tenant, rules.conversation_of(scope)))
        if conversation is not None:
            rules.check_owner(scope, conversation.scope.user)
        return conversation

    def seen(self, scope: Scope) -> list[Conversation]:
        return [
            conversation
            for (tenant, name), conversation in self.conversations.items()
            if tenant == scope.tenant
            and scope.conversation in (None, name)
            and rules.sees(scope, conversation.scope.user)
        ]

    def written(self, scope: Scope, agent: str | None = None, labels: Labels = NO_LABELS) -> Conversation:
        """The conversation, about to be written to: its times are updated, and the first write sets its owner."""
        now, conversation = self.now(), self.found(scope)
        if conversation is None:
            conversation = Conversation(scope, now, now)
            self.conversations[scope.tenant, rules.conversation_of(scope)] = conversation
        conversation.agent = agent or conversation.agent
        conversation.labels = _joined(conversation.labels, labels)
        conversation.updated = max(conversation.updated, now)
        return conversation

    def attach(self, turn: Turn, media_types: Mapping[str, str], blobs: Mapping[str, bytes]) -> None:
        """Store the turn's attachments, to be found by hash from now on."""
        for key, media_type in media_types.items():
            place = turn.scope.tenant, rules.conversation_of(turn.scope), turn.id, key
            self.attachments.setdefault(place, media_type)
            self.blobs[key] = blobs[key]

    def hashes(self) -> set[str]:
        """Everything that a page or a turn refers to; equal bytes are stored once."""
        texts = {shelved.text for shelved in self.pages.values() if shelved.text is not None}
        return {hashlib.sha256(text.encode()).hexdigest() for text in texts} | {
            key for *_, key in self.attachments
        }

    def drop_fact_revisions(self, goes: Callable[[Scope], bool]) -> int:
        before = len(self.fact_revisions)
        self.fact_revisions = [entry for entry in self.fact_revisions if not goes(entry[0])]
        return before - len(self.fact_revisions)

    def spans(self) -> int:
        return sum(len(shelved.spans) for shelved in self.pages.values())

    def session(self, conversation: Conversation) -> session.SessionValue:
        scope = conversation.scope
        key = scope.tenant, rules.conversation_of(scope)
        return self.sessions.setdefault(key, session.blank(scope))


class Port:
    """A port over the tables, while the store is open."""

    def __init__(self, tables: Tables) -> None:
        self._shared = tables

    @property
    def _tables(self) -> Tables:
        self._shared.check_open()
        return self._shared


def _joined(labels: Labels, new: Labels) -> Labels:
    return Labels(
        new.project or labels.project, new.language or labels.language, new.timezone or labels.timezone
    )


def behind(items: list[T], name: Callable[[T], str | None], after: str | None) -> list[T]:
    """The part of a list after the item of this name."""
    if after is None:
        return items
    place = next((i for i, item in enumerate(items) if name(item) == after), None)
    if place is None:
        raise rules.nothing_behind(after)
    return items[place + 1 :]
