"""A client's history as exchanges: what the user said, and everything up to what the user said next.

The key of an exchange is a digest of what the user said up to it. It is the id of its turn in the log, so that a history
is known again however often it is sent, by any worker, after a restart, and in a fork.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pagefile.shapes.skeleton import as_list, as_object
from pagefile.shapes.tool_arguments import compact

#: A message of a request, as the client wrote it.
Json: TypeAlias = dict[str, Any]

#: Turns that answer the same exchange once more, after an attempt that ended, have this behind their key.
_VERSION = re.compile(r"~[0-9a-f]{8}$")
_TEXTS = frozenset({"text", "input_text", "output_text"})
#: What coding agents put into the user's messages: it changes, and the user did not say it.
_REMINDER = re.compile(r"\s*<(system-reminder|environment_context|user_instructions)>.*</\1>\s*", re.DOTALL)
#: Marks for prompt caches move from message to message while a conversation grows.
CACHE_MARK = "cache_control"


@dataclass(frozen=True, slots=True)
class Exchange:
    asked: tuple[Json, ...]
    #: What followed: the model's messages, tool results, instructions in between.
    rest: tuple[Json, ...] = ()
    key: str = ""

    @property
    def messages(self) -> tuple[Json, ...]:
        return *self.asked, *self.rest

    @property
    def question(self) -> str:
        """What the user said in it."""
        return "\n".join(map(text_of, own_words(self.asked)))

    @property
    def answer(self) -> str:
        """Everything the model said in it."""
        return "\n".join(text for message in self.rest if _is_models(message) if (text := text_of(message)))


def exchanges(
    messages: Sequence[Json], asks: Callable[[Json], bool]
) -> tuple[tuple[Json, ...], list[Exchange]]:
    """What comes before the user's first message, and the exchanges, each with its key."""
    groups: list[tuple[list[Json], list[Json]]] = []
    preamble: list[Json] = []
    for message in messages:
        if asks(message):
            # Consecutive messages of a user are one question.
            if not groups or groups[-1][1]:
                groups.append(([], []))
            groups[-1][0].append(message)
        elif groups:
            groups[-1][1].append(message)
        else:
            preamble.append(message)
    key, found = "", list[Exchange]()
    for asked, rest in groups:
        key = _key_after(key, asked)
        found.append(Exchange(tuple(asked), tuple(rest), key))
    return tuple(preamble), found


def continued(found: Sequence[Exchange], keys: Sequence[str]) -> list[Exchange]:
    """The exchanges as those of a longer history: the first ones have these keys in it."""
    made: list[Exchange] = []
    for number, one in enumerate(found):
        key = keys[number] if number < len(keys) else _key_after(made[-1].key, one.asked)
        made.append(replace(one, key=key))
    return made


def _key_after(key: str, asked: Sequence[Json]) -> str:
    digest = hashlib.blake2b(f"pagefile gateway {key}".encode(), digest_size=16)
    for message in own_words(asked):
        said = _identity(message).encode("utf-8", "surrogatepass")
        digest.update(len(said).to_bytes(8, "big") + said)
    return digest.hexdigest()


def base_key(turn_id: str) -> str:
    """The key of the exchange that a turn belongs to."""
    return _VERSION.sub("", turn_id)


def same_answer(logged: str, told: str) -> bool:
    """Whether a client tells the answer in the log: clients trim it, drop thoughts from it, and keep half of one that was cut.

    Where the log has none, the client may tell any; one that tells none has no part in an answer that the log has.
    """
    ours, theirs = "".join(logged.split()), "".join(told.split())
    return not ours or (bool(theirs) and (ours in theirs or theirs in ours))


def is_same(question: str, answer: str, told: Exchange) -> bool:
    """Whether a client tells this question and its answer, to the word; what has no text is not compared."""
    asked = "".join(question.split())
    return (
        bool(asked and answer.strip())
        and asked == "".join(told.question.split())
        and same_answer(answer, told.answer)
    )


def blocks_of(message: Mapping[str, Any], key: str = "content") -> list[Any]:
    """The content of a message as blocks; a plain text is one."""
    content = message.get(key)
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return as_list(content) or []


def text_of(message: Mapping[str, Any]) -> str:
    texts = [as_object(block) or {} for block in blocks_of(message)]
    said = [
        block["text"] for block in texts if block.get("type") in _TEXTS and isinstance(block.get("text"), str)
    ]
    return "\n".join(said)


def own_words(asked: Sequence[Json]) -> list[Json]:
    """A question without what an agent put there in the user's name, unless that is all of it."""
    own = [_spoken(message) for message in asked if not all(map(_is_reminder, blocks_of(message)))]
    return own or list(asked)


def _spoken(message: Json) -> Json:
    if isinstance(message.get("content"), str):
        return message
    blocks = as_list(message.get("content")) or []
    said = [block for block in blocks if not _is_reminder(block)]
    return {**message, "content": said} if said and len(said) < len(blocks) else message


def unmarked(value: Any) -> Any:
    """The same JSON without marks for prompt caches."""
    if (fields := as_object(value)) is not None:
        return {name: unmarked(inner) for name, inner in fields.items() if name != CACHE_MARK}
    if (listed := as_list(value)) is not None:
        return [unmarked(inner) for inner in listed]
    return value


def cache_marks(value: Any) -> list[Any]:
    """The marks for prompt caches, in the order in which they come."""
    if (fields := as_object(value)) is not None:
        inside = [mark for name, inner in fields.items() if name != CACHE_MARK for mark in cache_marks(inner)]
        mine = fields.get(CACHE_MARK)
        return inside if mine is None else [*inside, mine]
    return [mark for inner in as_list(value) or () for mark in cache_marks(inner)]


def _is_models(message: Json) -> bool:
    return message.get("role") == "assistant"


def _is_reminder(block: Any) -> bool:
    text = (as_object(block) or {}).get("text")
    return isinstance(text, str) and _REMINDER.fullmatch(text) is not None


def _identity(message: Json) -> str:
    parts: list[str] = []
    for block in blocks_of(message):
        fields = as_object(block)
        if fields is None:
            parts.append(str(block))
        elif fields.get("type") in _TEXTS and isinstance(fields.get("text"), str):
            parts.append(fields["text"].strip())
        else:
            parts.append(
                hashlib.sha256(compact(unmarked(fields)).encode("utf-8", "surrogatepass")).hexdigest()
            )
    return "\n".join(parts)
