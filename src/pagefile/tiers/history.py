"""The history tier: recent turns verbatim, older ones as a checkpoint's summary (documents 001 and 002)."""

from collections.abc import Sequence
from uuid import uuid4

from pagefile.errors import InvalidTurnError
from pagefile.ports import CheckpointDraft, EntryQuery, LogReader, LogView, ResetDraft, TurnLog, ViewRequest
from pagefile.records import Checkpoint, Reset, Scope, Turn, checked_text
from pagefile.text.extract import anchors, summarize
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.window.candidates import Candidate, Form
from pagefile.window.forms import step_forms, turn_forms
from pagefile.window.measure import recounted, side_tokens
from pagefile.window.placeholder import GUIDE
from pagefile.window.render import escape, with_own_call_ids
from pagefile.window.residency import demoted_results

#: An extractive summary has at most this many characters, as document 002's builders settled on.
SUMMARY_CHARS = 1200
#: Full results of earlier turns take at most this share of the window; beyond it the oldest become notes.
RESULTS_SHARE = 4
#: How many turns are read at a time while a checkpoint is made.
_BATCH = 500


class History(Tier):
    """Turns and checkpoints of one conversation."""

    name = "history"

    def __init__(self, log: TurnLog, reader: LogReader, counter: Counter) -> None:
        self._log = log
        self._reader = reader
        self._counter = counter

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """The summary, the live turns that were read, and one line for those that were not."""
        view = occasion.view
        turns = [self._counted(turn) for turn in view.turns]
        redone = sum(new is not old for new, old in zip(turns, view.turns, strict=True))
        if redone:
            occasion.note(f"counted {redone} turns again: they were written with another tokenizer")
        _note_losses(turns, occasion)
        recent_from = len(turns) - occasion.recent_turns
        demoted = _demoted(turns, occasion.window_tokens // RESULTS_SHARE)
        candidates = [
            Candidate(
                turn.id,
                "recent" if number >= recent_from else "older",
                turn_forms(turn, occasion.pages, frozenset(demoted.get(turn.id, ())), self._counter.count),
                turn.seq or 0,
            )
            for number, turn in enumerate(turns)
        ]
        return [*self._summary(view), *_unread(view), *candidates, *self._guide(occasion)]

    def current(self, turn: Turn, occasion: Occasion) -> list[Candidate]:
        """The open turn as the current message of its own window, with the tool results it has so far."""
        turn = self._counted(turn)
        _note_losses([turn], occasion)
        found: list[Candidate] = []
        if turn.user:
            message = Form(
                side_tokens(turn.user, turn.user_tokens), ({"role": "user", "content": turn.user},)
            )
            found.append(Candidate(turn.id, "current", (message,)))
        for number, step in enumerate(with_own_call_ids(turn.steps)):
            forms = step_forms(step, occasion.running.get(number, ()), self._counter.count)
            found.append(Candidate(f"{turn.id}/step/{number}", "steps", forms, number))
        return found

    def question(self, query: str) -> Candidate:
        """A question that is not written yet, as the current message."""
        message = Form(MESSAGE_OVERHEAD + self._counter.count(query), ({"role": "user", "content": query},))
        return Candidate("current", "current", (message,))

    async def checkpoint(self, scope: Scope, summary: str | None, recent_turns: int) -> Checkpoint:
        """Cover all but the last `recent_turns` turns with a summary; made here when none is given."""
        view = await self._reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))
        covered = await self._coverable(scope, view, recent_turns)
        if not covered:
            raise InvalidTurnError(
                f"Nothing to cover: the conversation has {view.head.live_turns} live turns and recent_turns={recent_turns} "
                "stay verbatim. Record more turns or lower recent_turns."
            )
        previous = view.checkpoint
        text = (
            checked_text(summary, "summary").strip()
            if summary is not None
            else _summary_of(covered, previous)
        )
        if not text:
            raise InvalidTurnError("The summary is empty: give some text, or None to have one made.")
        draft = CheckpointDraft(
            scope=scope,
            id=str(uuid4()),
            summary=text,
            text=f"历史摘要: {text}",
            covered_through_seq=covered[-1].seq or 0,
            expected_version=previous.version if previous else 0,
            tokens=self._counter.count(text),
            counter=self._counter.name,
            anchors=_anchors_of(covered, previous),
            archive_refs=_archive_refs_of(covered, previous),
        )
        entry = await self._log.mark(draft)
        assert isinstance(entry, Checkpoint)
        return entry

    async def reset(self, scope: Scope) -> Reset:
        """Begin anew; the log keeps what came before."""
        entry = await self._log.mark(ResetDraft(scope, str(uuid4())))
        assert isinstance(entry, Reset)
        return entry

    def _guide(self, occasion: Occasion) -> list[Candidate]:
        """Tells the model how to bring a page back, once there is one."""
        view = occasion.view
        turns = [*view.turns, *([view.open_turn] if view.open_turn else [])]
        archived = any(step.page for turn in turns for step in turn.steps)
        if not archived and not (view.checkpoint is not None and view.checkpoint.archive_refs):
            return []
        return [Candidate("guide", "guide", (Form(self._counter.count(GUIDE), text=GUIDE),))]

    def _counted(self, turn: Turn) -> Turn:
        return (
            turn
            if turn.counter == self._counter.name
            else recounted(turn, self._counter.count, self._counter.name)
        )

    def _summary(self, view: LogView) -> list[Candidate]:
        checkpoint = view.checkpoint
        if checkpoint is None:
            return []
        text = f"历史摘要: {escape(checkpoint.summary)}"
        return [Candidate(checkpoint.id, "summary", (Form(self._counter.count(text), text=text),))]

    async def _coverable(self, scope: Scope, view: LogView, recent_turns: int) -> list[Turn]:
        """The live turns, oldest first, without those that stay verbatim."""
        live: list[Turn] = []
        after = max(view.head.covered_through_seq, view.head.reset_seq)
        while True:
            query = EntryQuery(scope, statuses=frozenset({"done"}), after_seq=after, limit=_BATCH)
            batch = [entry for entry in await self._reader.entries(query) if isinstance(entry, Turn)]
            live += batch
            if len(batch) < _BATCH:
                return live[: max(0, len(live) - recent_turns)]
            after = batch[-1].seq or after


def _demoted(turns: Sequence[Turn], limit_tokens: int) -> dict[str, set[int]]:
    """Which full results of earlier turns give way to their one-line notes, by turn."""
    full = [
        (f"{turn.id}\0{number}", step.result_tokens)
        for turn in turns
        for number, step in enumerate(turn.steps)
        if step.page and step.whole
    ]
    demoted: dict[str, set[int]] = {}
    for key in demoted_results(full, limit_tokens):
        turn_id, _, number = key.partition("\0")
        demoted.setdefault(turn_id, set()).add(int(number))
    return demoted


def _note_losses(turns: Sequence[Turn], occasion: Occasion) -> None:
    for turn in turns:
        for step in turn.steps:
            if step.lost_chars:
                occasion.note(
                    f"the archive was down: {step.lost_chars} characters of a result of {step.tool!r} in turn {turn.id} are gone"
                )


def _unread(view: LogView) -> list[Candidate]:
    head = view.head
    turns, tokens = (
        head.live_turns - len(view.turns),
        head.live_tokens - sum(turn.tokens for turn in view.turns),
    )
    if turns <= 0:
        return []
    return [Candidate(f"{turns} older turns", "older", (), position=-1, unread_tokens=max(0, tokens))]


def _summary_of(turns: Sequence[Turn], previous: Checkpoint | None) -> str:
    said = [
        (speaker, text)
        for turn in turns
        for speaker, text in (("user", turn.user), ("assistant", turn.assistant))
        if text
    ]
    return summarize(said, max_chars=SUMMARY_CHARS, previous=previous.summary if previous else None)


def _anchors_of(turns: Sequence[Turn], previous: Checkpoint | None) -> tuple[str, ...]:
    found = dict.fromkeys(previous.anchors if previous else ())
    for turn in turns:
        found.update(dict.fromkeys(anchors(turn.text)))
    return tuple(found)


def _archive_refs_of(turns: Sequence[Turn], previous: Checkpoint | None) -> tuple[str, ...]:
    found = dict.fromkeys(previous.archive_refs if previous else ())
    found.update(dict.fromkeys(step.page for turn in turns for step in turn.steps if step.page))
    return tuple(found)
