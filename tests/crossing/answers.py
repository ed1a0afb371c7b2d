"""What came back: as one text to search, and the ids in it to guess with later."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass

from .owners import OWNERSHIP, Viewer, found_in
from .world import Owner, World

#: A dictionary with all of these keys is a record of that kind, and the first one is its id.
SHAPES = {
    "page": ("uuid",),
    "turn": ("id", "steps"),
    "call": ("id", "receipt"),
    "fact": ("id", "confidence"),
    "hash": ("hash",),
    "cursor": ("next",),
    "conversation": ("conversation_id",),
}
_MORE = {"content_hash": "hash", "turn_id": "turn", "page": "page", "conversation": "conversation"}


@dataclass
class Answer:
    """An answer as its caller has it: words, headers, or what an error says."""

    status: int | str
    text: str
    #: The same, as far as it is JSON or records.
    data: list[object] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        return not isinstance(self.status, int) or self.status >= 400


def parsed(text: str) -> list[object]:
    """A body as JSON, or each of its lines that is: exports, and the events of a stream."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [found for line in text.splitlines() if (found := _line(line)) is not None]


def _line(line: str) -> object | None:
    line = line.removeprefix("data: ")
    try:
        return json.loads(line) if line.startswith("{") else None
    except ValueError:
        return None


def plain(value: object) -> object:
    """Records of ours as dictionaries of everything that is in them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [*map(plain, value), *([{"next": value.next}] if getattr(value, "next", None) else [])]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def learn(world: World, answer: Answer, viewer: Viewer, sent: str, conversation: str | None) -> None:
    """Take up the ids that somebody was given: from now on others guess them."""
    if answer.refused or viewer.tenant is None or viewer.whole:
        return
    owner = Owner(viewer.tenant, viewer.user)
    known = found_in(sent)
    # Until decision 0033 holds, what comes to a user may be nobody's.
    owners = {owner} if OWNERSHIP else {owner, Owner(owner.tenant, None)}
    for name in found_in(answer.text) - known:
        if name not in world.names.owners:
            world.names.owners[name] |= owners
    for kind, name, where in _ids(answer.data, conversation):
        if name not in known or kind == "open":
            world.learn(kind, name, owner, where)


def _ids(value: object, where: str | None) -> Iterator[tuple[str, str, str | None]]:
    """Kind and id of what is in an answer, and the conversation it is of."""
    if isinstance(value, list):
        for one in value:
            yield from _ids(one, where)
    if not isinstance(value, dict):
        return
    where = value.get("conversation_id") or where
    if value.get("status") == "open":
        yield "open", value["id"], where
    for kind, keys in SHAPES.items():
        if all(key in value for key in keys) and isinstance(value[keys[0]], str):
            yield kind, value[keys[0]], where
    for key, kind in _MORE.items():
        if isinstance(value.get(key), str):
            yield kind, value[key], where
    for one in value.values():
        yield from _ids(one, where)
