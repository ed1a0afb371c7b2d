"""Reads completed turns once and keeps the lasting statements users made about themselves.

Only the user's own words are read: not the assistant's, no tool output, nothing that memory wrote. What an
extractor returns is accepted only if its quote is found in the turn. A watermark records how far a
conversation was read, so that a crash loses nothing; reading a turn twice changes nothing.
"""

import logging
from dataclasses import dataclass

from pagefile.errors import ErasedError, FactRejectedError, InvalidTurnError, ModelOutputError
from pagefile.ports import (
    EntryQuery,
    FactExtractor,
    LogReader,
    Meter,
    Proposal,
    Said,
    ViewRequest,
    Watermarks,
)
from pagefile.records import Scope, Turn
from pagefile.text.facts_rules import own_words
from pagefile.text.words import TRIVIAL
from pagefile.tiers.facts_book import Draft, FactBook, refuse_orders

logger = logging.getLogger("pagefile")

#: The name of the watermark.
TIER = "facts"
_BATCH = 20
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Learnt:
    """The outcome for a conversation's new turns."""

    turns: int = 0
    kept: int = 0
    refused: int = 0


class FactLearner:
    """Runs an extractor over a conversation's log."""

    def __init__(
        self,
        book: FactBook,
        reader: LogReader,
        marks: Watermarks,
        meter: Meter,
        extractor: FactExtractor,
        instead: FactExtractor | None = None,
    ) -> None:
        self._book = book
        self._reader = reader
        self._marks = marks
        self._meter = meter
        self.extractor = extractor
        #: Used if the extractor's answer is unusable.
        self._instead = instead

    async def behind(self) -> list[Scope]:
        """Conversations not fully read."""
        return [one.scope for one in await self._marks.behind(TIER, limit=_MOST)]

    async def learn(self, scope: Scope) -> Learnt:
        """Read a conversation from its watermark to its end."""
        assert scope.conversation is not None
        seq = (await self._marks.known(scope, TIER)).get(scope.conversation, 0)
        epoch = (await self._reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))).head.epoch
        turns = kept = refused = 0
        while True:
            query = EntryQuery(
                scope,
                kinds=frozenset({"turn", "checkpoint", "reset"}),
                statuses=frozenset({"done", "aborted"}),
                after_seq=seq,
                limit=_BATCH,
            )
            entries = await self._reader.entries(query)
            batch = [entry for entry in entries if isinstance(entry, Turn) and entry.status == "done"]
            for proposal, turn in await self._proposals(batch):
                later = frozenset(one.id for one in batch if (one.seq or 0) > (turn.seq or 0))
                if await self._kept(proposal, turn, later, epoch):
                    kept += 1
                else:
                    refused += 1
            last = max((entry.seq or 0 for entry in entries), default=seq)
            if last > seq:
                await self._marks.advance(scope, TIER, last, epoch=epoch)
            seq, turns = last, turns + len(batch)
            if len(entries) < _BATCH:
                return Learnt(turns, kept, refused)

    async def _proposals(self, turns: list[Turn]) -> list[tuple[Proposal, Turn]]:
        by_id = {turn.id: turn for turn in turns}
        said = [
            Said(turn.id, words, turn.at)
            for turn in turns
            if turn.scope.user is not None and turn.user and (words := own_words(turn.user).strip())
            if words.casefold().strip(" 。.!！~") not in TRIVIAL
        ]
        if not said:
            return []
        try:
            found = await self.extractor.extract(said)
        except ModelOutputError as error:
            if self._instead is None:
                raise
            logger.warning("facts are read by rules for this once: %s", error)
            self._meter.count("pagefile_degraded_total", tier="facts")
            found = await self._instead.extract(said)
        return [(one, by_id[one.turn_id]) for one in found if one.turn_id in by_id]

    async def _kept(self, proposal: Proposal, turn: Turn, later: frozenset[str], epoch: int) -> bool:
        if proposal.quote.strip() == "" or proposal.quote not in own_words(turn.user or ""):
            logger.info("a proposed fact was refused: its quote is not in its turn")
            self._meter.count("pagefile_facts_total", outcome="rejected")
            return False
        draft = Draft(
            proposal.text,
            category=proposal.category,
            confidence=proposal.confidence,
            source_turn=turn.id,
            source_quote=proposal.quote,
            conversation=turn.scope.conversation,
            subject=proposal.subject,
            attribute=proposal.attribute,
            valid_from=turn.at,
            later=later,
            epoch=epoch,
        )
        try:
            refuse_orders(proposal.text, proposal.quote)
            fact = await self._book.remember(turn.scope, draft)
        except ErasedError:
            return False
        except (FactRejectedError, InvalidTurnError) as error:
            logger.info("a proposed fact was refused: %s", error)
            self._meter.count("pagefile_facts_total", outcome="rejected")
            return False
        self._meter.count("pagefile_facts_total", outcome=fact.outcome or "stored")
        return True
