"""What an erasure removes, and how it is numbered: decisions without a database.

Every erasure gets the next number. A view says how many there were when it was read (`ConversationInfo.epoch`); a write that is based on the
view names that number, and the store refuses it, in the same transaction, if the tenant, the user or the conversation was erased
since. Numbers count for the whole database, not for a scope: a conversation may begin again under another owner, and counts of two
scopes may agree by chance. Of what was erased only a hash is left: the id of a user is often their address, which an erasure must
not keep.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from pagefile.errors import ErasedError, HandleNotFoundError, NotFoundError
from pagefile.ports import Part
from pagefile.records import ERASED, Checkpoint, Entry, JsonValue, Page, Reset, Scope, Step, Turn
from pagefile.shapes.tool_arguments import with_values
from pagefile.stores.encoding import own_json, to_json

#: Tables that are also erased by owner, even where the conversation itself was never written to.
OF_OWNERS = ("facts", "fact_revisions", "context_calls", "archive_passage", "tool_result_archive", "items")
OF_CONVERSATIONS = (
    "attachments",
    "ai_message",
    "conversation_summaries",
    "sessions",
    "watermarks",
    "turn_terms",
    "conversations",
)
#: The tables that an erasure counts.
TABLES: tuple[str, ...] = (*OF_OWNERS, *OF_CONVERSATIONS, "blobs")
#: Conversations and positions in their logs.
Places = tuple[tuple[str, int], ...]
#: What a turn or a page has in common with its copies in forks.
_TURN = attrgetter("id", "at", "user", "scope.user")
_PAGE = attrgetter("created", "content_hash", "call_hash", "tool", "scope.user")
#: Shorter texts occur inside others by chance.
_TELLING_CHARS = 12


def counted_vectors(gone: int) -> dict[str, int]:
    """What a receipt says about vectors in the database: nothing where there were none, since many databases have none."""
    return {"conversation_episodes": gone} if gone else {}


def tombstone(entry: Entry) -> Turn:
    """What stays in the log: an id, a position and its times, so that the log has no gap and the id is never used again."""
    at = entry.at if isinstance(entry, Turn) else entry.created
    return Turn(entry.id, entry.scope, entry.seq, "aborted", ERASED, None, (), at, entry.created, 0, 0, 0, "")


def is_copy(turn: Turn, other: Turn) -> bool:
    """Whether a turn is this one, or its copy in a fork: callers choose ids, so the user must have said the same too.

    Not what was answered: a fork may begin at a turn that is still open, and each gets its own answer.
    """
    return _TURN(turn) == _TURN(other)


def part_key(scope: Scope, part: Part) -> str:
    """A hash that identifies a turn or a page once it is erased, since open turns and pages leave no other trace.

    A turn belongs to its conversation, whichever user the scope names. A page is known to its user, and to a scope without one.
    """
    home = scope.user if part.turn_id is None else scope.conversation
    return hashlib.sha256(to_json([scope.tenant, home, part.turn_id, part.page]).encode()).hexdigest()


def part_keys(scope: Scope, part: Part, owner: str | None) -> list[str]:
    """The hashes of every scope that may name it again."""
    return sorted({part_key(replace(scope, user=user), part) for user in (None, owner)})


def no_part(part: Part) -> NotFoundError:
    """The error for something that never existed or was erased with its conversation: the two cannot be told apart."""
    if part.turn_id is None:
        return HandleNotFoundError(f"No archived page {part.page!r} is known here: nothing was erased.")
    return NotFoundError(f"No turn {part.turn_id!r} is known in this conversation: nothing was erased.")


def covering(entries: Sequence[Entry], seq: int) -> list[Checkpoint]:
    """The checkpoints that may summarize the turn at a position; `entries` are in order. A reset drops the summary too."""
    found: list[Checkpoint] = []
    for entry in entries:
        if (entry.seq or 0) <= seq:
            continue
        if isinstance(entry, Reset):
            break
        if isinstance(entry, Checkpoint) and entry.covered_through_seq >= seq:
            found.append(entry)
    return found


# -- pages ------------------------------------------------------------------------------------------------------------


def made_pages(turn: Turn, part: Part) -> set[str]:
    """The pages that a turn's tools made; those it only loaded belong to other turns."""
    return {uuid for step in turn.steps if step.tool not in part.loading_tools for uuid in step.pages}


def is_page_copy(page: Page, other: Page) -> bool:
    """Whether a page is the copy that a fork made of this one."""
    return _PAGE(page) == _PAGE(other)


def without_pages(turn: Turn, uuids: Collection[str], part: Part) -> Turn:
    """The turn with a note in place of every result that showed one of the pages."""
    steps, tokens = list(turn.steps), turn.tokens
    for place, step in enumerate(turn.steps):
        # What a search over pages found is quoted beside the uuid.
        quoted = step.tool in part.loading_tools and any(uuid in step.result for uuid in uuids)
        if quoted or step.page in uuids:
            call = step.tool, step.input, ERASED, step.call_id, step.call_tokens
            note = Step(*call, part.note_tokens, input_pages=step.input_pages)
            steps[place], tokens = note, tokens + note.result_tokens - step.result_tokens
        if erased := {pointer for pointer, uuid in step.input_pages.items() if uuid in uuids}:
            # Its tokens stay an upper bound until they are counted again.
            given = with_values(step.input, dict.fromkeys(erased, ERASED))
            pages = {pointer: uuid for pointer, uuid in step.input_pages.items() if pointer not in erased}
            steps[place] = replace(steps[place], input=given, input_pages=pages)
    return replace(turn, steps=tuple(steps), tokens=tokens)


# -- words ------------------------------------------------------------------------------------------------------------


def words_of(*turns: Turn) -> list[str]:
    """What was said in a turn and its copies, text by text."""
    texts: list[str | None] = []
    for turn in turns:
        texts += [turn.user, turn.assistant, *(message.text for message in turn.layout or ())]
    return list(dict.fromkeys(text for text in texts if text))


def without_words(value: JsonValue, words: Collection[str]) -> JsonValue:
    """The value with an empty text in place of each that contains these words; elements of a list are removed."""
    if isinstance(value, str):
        return "" if _says(value, words) else value
    if isinstance(value, Mapping):
        return {key: without_words(inner, words) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [without_words(inner, words) for inner in value if not _holds(inner, words)]
    return value


def _holds(value: JsonValue, words: Collection[str]) -> bool:
    if isinstance(value, str):
        return _says(value, words)
    return isinstance(value, Mapping) and any(_holds(inner, words) for inner in value.values())


def _says(text: str, words: Collection[str]) -> bool:
    return any(text == word or (len(word) >= _TELLING_CHARS and word in text) for word in words)


def names_in_windows(turn_id: str, checkpoints: Iterable[str], facts: Iterable[str]) -> list[str]:
    """How recorded windows name a turn, checkpoints and facts in their JSON."""
    names = turn_id, f"episode:{turn_id}", *checkpoints, *(f"fact:{fact}" for fact in facts)
    return [own_json(name) for name in names]


def telling(words: Iterable[str]) -> list[str]:
    """Texts long enough not to occur by chance, as they are written inside JSON."""
    return [own_json(word)[1:-1] for word in words if len(word) >= _TELLING_CHARS]


def scope_key(tenant: str, user: str | None = None, conversation: str | None = None) -> str:
    """The key that a tenant, a user or a conversation is noted under: a hash, which does not reveal whose it was."""
    return hashlib.sha256(to_json([tenant, user, conversation]).encode()).hexdigest()


def written_keys(scopes: Iterable[Scope]) -> list[str]:
    """The keys that must not have been erased for these scopes to be written to; sorted, so that locks are taken in one order."""
    keys: set[str] = set()
    for scope in scopes:
        # Where no user or no conversation is named, its key is the tenant's.
        keys |= {scope_key(scope.tenant), scope_key(scope.tenant, scope.user)}
        keys.add(scope_key(scope.tenant, None, scope.conversation))
    return sorted(keys)


def erased_keys(scope: Scope, conversations: Iterable[str]) -> list[str]:
    """The keys that an erasure is noted under. For a user, each conversation too: another user may begin one with that id."""
    if scope.conversation is not None:
        return [scope_key(scope.tenant, None, scope.conversation)]
    if scope.user is None:
        return [scope_key(scope.tenant)]
    own = [scope_key(scope.tenant, None, name) for name in conversations]
    return sorted([scope_key(scope.tenant, scope.user), *own])


def check_epoch(epoch: int, newest: int | None) -> None:
    """Refuse a write made from data that has been erased since; `newest` is the last erasure of the scope written to."""
    if newest is not None and newest > epoch:
        raise ErasedError
