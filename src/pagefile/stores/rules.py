"""What every store must refuse and how it says so, and what a change makes of a turn: decisions without a database."""

import hashlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import cast

from pagefile import ports
from pagefile.arrays import np
from pagefile.content import JsonObject, Message, Text, ToolCall, ToolResult, media_in
from pagefile.errors import (
    ConflictError,
    HandleNotFoundError,
    InvalidArgumentError,
    NotFoundError,
    PagePurgedError,
    VectorIndexError,
)
from pagefile.records import (
    NEVER,
    SNAPSHOT_KEY,
    ApiKey,
    Checkpoint,
    ConversationInfo,
    Entry,
    Fact,
    Page,
    Reset,
    Scope,
    Step,
    Turn,
    WindowRecord,
    plain_layout,
    utc,
)
from pagefile.shapes.call_order import answer
from pagefile.stores.encoding import steps_text, stored_layout, stored_steps
from pagefile.text.tokens import MESSAGE_OVERHEAD

_TICK = timedelta(microseconds=1)


def stamp(now: datetime, last: datetime | None) -> datetime:
    """The time a row is written: now, but always later than the row before it."""
    return now if last is None or now > last else last + _TICK


def conversation_of(scope: Scope) -> str:
    if scope.conversation is None:
        raise InvalidArgumentError("This needs a conversation: name one in the scope.")
    return scope.conversation


def user_of(scope: Scope) -> str:
    if scope.user is None:
        raise InvalidArgumentError("A fact belongs to a user: name one in the scope.")
    return scope.user


def check_owner(scope: Scope, owner: str | None) -> None:
    """A conversation belongs to its owner, or to no user, from its first use on; the error does not reveal the owner."""
    if scope.user == owner:
        return
    if scope.user is None:
        raise ConflictError(
            f"Conversation {scope.conversation!r} belongs to a user, and opens only for them: name the user (user_id), "
            "or use another conversation id."
        )
    raise ConflictError(
        f"Conversation {scope.conversation!r} belongs to another user than {scope.user!r}, or to none: use another conversation id."
    )


def sees(scope: Scope, owner: str | None) -> bool:
    """Whether a list for this scope shows what this user owns: a tenant's list shows everything, a conversation has one owner."""
    return scope.user == owner or (scope.user is None and scope.conversation is None)


def lists(scope: Scope, owned: Scope) -> bool:
    """Whether a list for this scope shows what is stored under the other."""
    within = owned.tenant == scope.tenant and scope.conversation in {None, owned.conversation}
    return within and sees(scope, owned.user)


def made_for(call: WindowRecord) -> Scope:
    """The owner of a recorded window: a handle without a user used to act for the owner, which the call names."""
    if call.scope.user is not None or not isinstance(moment := call.options.get(SNAPSHOT_KEY), Mapping):
        return call.scope
    return replace(call.scope, user=cast("Mapping[str, str | None]", moment).get("owner"))


def no_head(scope: Scope, epoch: int = 0) -> ConversationInfo:
    """The head of a conversation that was never written to."""
    return ConversationInfo(scope, None, NEVER, NEVER, 0, 0, 0, 0, 0, 0, epoch=epoch)


def nothing_behind(after: str) -> NotFoundError:
    return NotFoundError(f"Cannot continue after {after!r}: it is not in this list.")


def check_fact_owner(fact: Fact, owner: str | None) -> None:
    if fact.scope.user != owner:
        raise ConflictError(f"Fact {fact.id!r} belongs to another user: give the new fact a new id.")


def no_fact(fact_id: str) -> NotFoundError:
    """The error for a fact that does not exist or belongs to another user."""
    return NotFoundError(f"There is no fact {fact_id!r}.")


def no_call(call_id: str) -> NotFoundError:
    """The error for a recorded window that does not exist or belongs to another user."""
    return NotFoundError(
        f"There is no recorded call {call_id!r}: `chat.calls()`, or `pagefile calls CONVERSATION`, lists those that "
        "are kept (setting `calls_kept`). A window that showed something erased is erased as well."
    )


def no_key(key_id: str) -> NotFoundError:
    return NotFoundError(
        f"There is no key with the id {key_id!r}: `pagefile keys list` shows the existing ones."
    )


def rotated(key: ApiKey, successor: ApiKey, until: datetime) -> ApiKey:
    """A key after its successor was made: it expires at that time, or earlier if it was due to."""
    if not key.usable_at(successor.created):
        raise ConflictError(
            f"The key {key.id!r} was revoked or has expired: make a new one with `pagefile keys add`."
        )
    ends = utc(until)
    return replace(key, expires=ends if key.expires is None else min(key.expires, ends))


# -- pages ------------------------------------------------------------------------------------------------------------


def lists_page(scope: Scope, owned: Scope) -> bool:
    """Whether a page belongs to a scope, so that it is listed, searched and purged with it.

    One without a user belongs to its conversation, even to one that has a user: until decision 0033 a user could take a conversation over.
    """
    here = Scope(scope.tenant, None, scope.conversation)
    return lists(scope, owned) or (scope.conversation is not None and owned == here)


def check_same_page(stored: Page, page: Page, *, same_text: bool) -> None:
    """A uuid identifies one text of one user; where the text was purged, its hash still identifies it."""
    if stored.purged is not None or page.purged is not None:
        same_text = stored.content_hash == page.content_hash
    if not same_text or stored.scope.user != page.scope.user:
        raise ConflictError(
            f"Page {page.uuid!r} already exists with another text: give the new page a new uuid."
        )


def no_page(uuid: str) -> HandleNotFoundError:
    """The error for a page that does not exist or belongs to another user."""
    return HandleNotFoundError(
        f"There is no archived page {uuid!r} here: copy the uuid from its placeholder."
    )


def check_living(page: Page) -> Page:
    """The page, unless it is a tombstone; the error tells a model what is left of it."""
    if page.purged is not None:
        raise PagePurgedError(
            f"The text of page {page.uuid!r} (tool {page.tool!r}) was purged at {page.purged:%Y-%m-%d %H:%M} UTC and "
            f"cannot be loaded any more. Its summary is left: {page.result_summary!r}. Call the tool again for the whole result.",
            uuid=page.uuid,
            tool=page.tool,
            at=f"{page.purged:%Y-%m-%d %H:%M}",
            about=page.result_summary,
        )
    return page


def check_terms(uuid: str, passages: int, terms: int) -> None:
    if passages != terms:
        raise InvalidArgumentError(
            f"Page {uuid!r} has {passages} passages, but terms came for {terms}: give one text for each."
        )


def check_embeddings(model: ports.EmbeddingModel, made: Mapping[str, ports.Vector]) -> None:
    for uuid, rows in made.items():
        if rows.ndim != 2 or not len(rows) or rows.shape[1] != model.dimension or not np.isfinite(rows).all():
            raise VectorIndexError(
                f"The embedding of page {uuid!r} has the shape {rows.shape}, or is not finite: "
                f"{model.key} makes rows of {model.dimension} finite numbers."
            )


# -- turns ------------------------------------------------------------------------------------------------------------


def check_repeat(stored: Entry | None, draft: ports.TurnDraft | Turn) -> Turn:
    """What is stored under the draft's id, provided that it says the same; a draft that begins a turn has only the question."""
    if isinstance(stored, Turn) and _same_words(stored, draft):
        return stored
    if isinstance(stored, Turn) and stored.erased:
        raise ConflictError(
            f"Turn {draft.id!r} was erased here and cannot be written again: give a new turn a new id."
        )
    raise ConflictError(
        f"Turn {draft.id!r} already exists with another text: give a new turn a new id, and repeat an old one unchanged."
    )


def _same_words(stored: Turn, draft: ports.TurnDraft | Turn) -> bool:
    if isinstance(draft, ports.TurnDraft) and draft.status == "open":
        begun = _messages(draft)
        return stored.user == draft.user or stored.messages[: len(begun)] == begun
    return (
        stored.user == draft.user
        and stored.assistant == draft.assistant
        and _steps_text(stored.steps) == _steps_text(draft.steps)
        and (stored.layout is draft.layout or stored.messages == _messages(draft))
    )


def _messages(draft: ports.TurnDraft | Turn) -> tuple[Message, ...]:
    if draft.layout is not None:
        return stored_layout(draft.layout)
    return plain_layout(draft.user, range(len(draft.steps)), draft.assistant)


def _steps_text(steps: Sequence[Step]) -> str | None:
    # Another tokenizer counts the same words differently, which is not a conflict.
    return steps_text(
        [Step(step.tool, step.input, step.result, step.call_id, 0, 0, step.page) for step in steps]
    )


def stays(turn: Turn, change: ports.TurnChange) -> bool:
    """Whether a change leaves a turn as it is, because a caller retried; one that contradicts the turn raises `ConflictError`."""
    if turn.status != "open":
        _check_ended(turn, change)
        return True
    match change:
        case ports.AddStep(step=step):
            return _heard(step) in {_heard(known) for known in turn.steps if known.call_id == step.call_id}
        case ports.Extend() if stands_in(turn, change):
            _check_results(turn, change)
            return True
        case ports.Extend():
            moved_on = change.after not in (None, len(turn.messages)) or not _fits(turn, change)
        case ports.Complete():
            # An answer taken from the messages counts as theirs only while they are the same; the short form has none in it.
            moved_on = turn.layout is not None and change.after not in (None, len(turn.layout))
        case ports.Abort():
            moved_on = False
    if moved_on:
        raise ConflictError(
            f"Turn {turn.id!r} has moved on to {len(turn.messages)} messages and {len(turn.steps)} steps since this was "
            "made: read it, and make it again."
        )
    return False


def stands_in(turn: Turn, change: ports.Extend) -> bool:
    """Whether a turn has the messages at the position they were made for, or else at its end."""
    new, known = stored_layout(change.messages), turn.messages
    place = len(known) - len(new) if change.after is None else change.after
    return place >= 0 and known[place : place + len(new)] == new and _same_calls(turn, change)


def _check_results(turn: Turn, change: ports.Extend) -> None:
    """Messages only name the steps that hold their results: when messages are sent twice, the results must be equal too."""
    brought = dict(enumerate(change.steps, _first_begun(turn, change))) | dict(change.results)
    for message in change.messages:
        for part in message.parts:
            if not isinstance(part, ToolResult) or part.step not in brought:
                continue
            known, again = turn.steps[part.step], brought[part.step]
            # An archived result is identified by its page; one that was cut because the archive was down cannot be compared.
            paged, cut = known.page and again.page, known.lost_chars or again.lost_chars
            if not cut and (known.page != again.page if paged else known.result != again.result):
                raise ConflictError(
                    f"Turn {turn.id!r} has another result of the call {known.call_id!r} already: a call has one result."
                )


def _same_calls(turn: Turn, change: ports.Extend) -> bool:
    """Whether the steps that a change begins are those of the turn; a result may have come since."""
    first = _first_begun(turn, change)
    known = turn.steps[first : first + len(change.steps)]
    calls = [[_heard(replace(step, result="")) for step in steps] for steps in (known, change.steps)]
    return calls[0] == calls[1]


def _first_begun(turn: Turn, change: ports.Extend) -> int:
    calls = [part.step for message in change.messages for part in message.parts if isinstance(part, ToolCall)]
    return min(calls, default=len(turn.steps) - len(change.steps))


def _fits(turn: Turn, change: ports.Extend) -> bool:
    """Whether the steps that the messages name are those the turn would have."""
    parts = [part for message in change.messages for part in message.parts]
    first, end = len(turn.steps), len(turn.steps) + len(change.steps)
    calls = [part.step for part in parts if isinstance(part, ToolCall)]
    results = [part.step for part in parts if isinstance(part, ToolResult)]
    return all(first <= step for step in calls) and all(
        step < end for step in (*calls, *results, *change.results)
    )


def _heard(step: Step) -> str | None:
    # A caller that retries may have archived the result again, as another page.
    return steps_text([Step(step.tool, step.input, step.result, step.call_id)])


def _check_ended(turn: Turn, change: ports.TurnChange) -> None:
    """A turn that ended never changes: ending it again in the same way is fine, anything else is a conflict."""
    if isinstance(change, ports.Complete):
        same = turn.status == "done" and turn.assistant == change.assistant
    else:
        same = isinstance(change, ports.Abort) and turn.status == "aborted"
    if not same:
        status = "erased" if turn.erased else turn.status
        raise ConflictError(f"Turn {turn.id!r} is {status} and cannot change: begin a new turn.")


#: How many open turns a view has besides the one that it is for.
MOST_RUNNING = 8


def changed(turn: Turn, change: ports.TurnChange) -> Turn:
    """The turn after a change; the store that writes it sets its position in the log."""
    if isinstance(change, ports.Abort):
        heard = turn.user_tokens + MESSAGE_OVERHEAD if turn.user else 0
        return replace(turn, status="aborted", tokens=heard if change.tokens is None else change.tokens)
    layout, tokens = turn.layout, turn.tokens + change.tokens_added
    match change:
        case ports.AddStep(step=step):
            if layout is not None:
                call, result = ToolCall(len(turn.steps)), ToolResult(len(turn.steps))
                layout = (*layout, Message("assistant", (call,)), Message("tool", (result,)))
            return replace(turn, steps=(*turn.steps, *stored_steps([step])), layout=layout, tokens=tokens)
        case ports.Extend():
            known = [change.results.get(number, step) for number, step in enumerate(turn.steps)]
            # What the user said is added to, never replaced.
            adds = change.user is not None and change.user.startswith(turn.user or "")
            first = {"user": change.user, "user_tokens": change.user_tokens} if adds else {}
            steps = stored_steps([*known, *change.steps])
            layout = (*turn.messages, *stored_layout(change.messages))
            return replace(turn, **first, steps=steps, layout=layout, tokens=tokens)
        case ports.Complete():
            if layout is not None and change.assistant and change.assistant != answer(layout):
                layout = (*layout, Message("assistant", (Text(change.assistant),)))
            said = {"assistant": change.assistant, "assistant_tokens": change.assistant_tokens}
            return replace(turn, status="done", **said, layout=layout, tokens=tokens)


def turn_in_place(draft: ports.TurnDraft, seq: int | None, created: datetime) -> Turn:
    """The turn at its position. Fields are named one by one: every `record()` calls this, and `replace` would double its cost."""
    place = draft.id, draft.scope, seq, draft.status
    said = draft.user, draft.assistant, draft.steps, utc(draft.at), created
    counted = draft.user_tokens, draft.assistant_tokens, draft.tokens, draft.counter
    return Turn(*place, *said, *counted, draft.metadata, draft.layout)


def view_of(
    request: ports.ViewRequest,
    head: ConversationInfo,
    checkpoint: Checkpoint | None,
    ended: Sequence[Turn],
    running: Sequence[Turn],
    profile: JsonObject | None,
) -> ports.LogView:
    """What was read for a window; `running` are open turns, oldest first, among them the one that the window is for."""
    mine = next((turn for turn in running if turn.id == request.open_turn), None)
    if request.open_turn is not None and mine is None:
        raise no_turn(request.open_turn)
    others = tuple(turn.spoken for turn in running if turn is not mine and turn.user)
    return ports.LogView(head, checkpoint, tuple(turn.spoken for turn in ended), mine, others, profile)


def no_turn(turn_id: str) -> NotFoundError:
    return NotFoundError(f"There is no turn {turn_id!r} in this conversation.")


def attached(turn: Turn | ports.TurnDraft | ports.Extend, blobs: Container[str]) -> dict[str, str]:
    """The media types of those of the blobs that a turn's messages name."""
    messages = (turn.messages if isinstance(turn, ports.Extend) else turn.layout) or ()
    named = {media.blob: media.media_type for media in media_in(messages) if media.blob is not None}
    return {hash_: media_type for hash_, media_type in named.items() if hash_ in blobs}


def check_blobs(blobs: Mapping[str, bytes]) -> None:
    """Bytes are stored under their own hash, so equal ones are stored once, whoever sent them."""
    for key, data in blobs.items():
        if hashlib.sha256(data).hexdigest() != key:
            raise InvalidArgumentError(f"The attachment {key!r} is not the SHA-256 of its {len(data)} bytes.")


def no_media(key: str) -> NotFoundError:
    """The error for bytes that no turn here attached."""
    return NotFoundError(
        f"There is no image or file {key!r} here: copy the hash from the message it came with."
    )


# -- checkpoints ------------------------------------------------------------------------------------------------------


def check_coverage(draft: ports.CheckpointDraft, head: ConversationInfo, version: int) -> None:
    """A checkpoint must follow the one before it and cover turns that are in the window."""
    covered = draft.covered_through_seq
    if draft.expected_version != version:
        problem = f"it was made from checkpoint {draft.expected_version}, and the newest is {version}"
    elif covered < head.covered_through_seq:
        problem = f"it covers up to {covered}, and the newest covers up to {head.covered_through_seq}"
    elif covered > head.last_seq:
        problem = f"it covers up to {covered}, and the log ends at {head.last_seq}"
    elif covered <= head.reset_seq:
        problem = f"it covers up to {covered}, and the conversation was reset at {head.reset_seq}"
    else:
        return
    raise ConflictError(
        f"The checkpoint {draft.id!r} is out of date: {problem}. Summarize the current view again."
    )


#: The fields that a checkpoint and its draft have in common, besides the scope.
_DRAFTED = (
    "id",
    "summary",
    "covered_through_seq",
    "tokens",
    "counter",
    "anchors",
    "archive_refs",
    "fallback_reason",
)


def checkpoint_in_place(
    draft: ports.CheckpointDraft, scope: Scope, seq: int, version: int, created: datetime
) -> Checkpoint:
    """The checkpoint at its position; the store that writes it counts how many turns it covers."""
    given = {name: getattr(draft, name) for name in _DRAFTED}
    return Checkpoint(scope=scope, seq=seq, version=version, covered_turns=0, created=created, **given)


#: What must be equal for a checkpoint to be the same one again.
_SUMMARY = attrgetter("summary", "covered_through_seq")


def check_same_marker(stored: Entry, draft: ports.CheckpointDraft | ports.ResetDraft) -> Entry:
    """The same marker again returns what is stored."""
    if isinstance(draft, ports.ResetDraft):
        same = isinstance(stored, Reset)
    else:
        same = isinstance(stored, Checkpoint) and _SUMMARY(stored) == _SUMMARY(draft)
    if not same:
        raise ConflictError(f"The id {draft.id!r} is taken in this conversation: give the marker a new id.")
    return stored
