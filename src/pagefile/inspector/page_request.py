"""Requests to the inspector: whose memory, and the rest of the query string."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict
from urllib.parse import urlencode

from pagefile.engine import Conversation, Memory
from pagefile.errors import InvalidArgumentError
from pagefile.records import DEFAULT_TENANT, ConversationInfo, checked_text

_NOTHING: Mapping[str, str] = {}


class Owner(TypedDict):
    """A user, or everybody of a tenant."""

    user_id: str | None
    tenant: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to the inspector. The three ids were checked against the caller's key beforehand."""

    tenant: str | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    values: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    #: Ids fixed by the caller's key, which the reader cannot choose.
    bound: frozenset[str] = frozenset()

    @property
    def owner(self) -> Owner:
        """Whose memory, as the verbs of a memory take it."""
        return {"user_id": self.user_id, "tenant": self.tenant}

    def text(self, name: str) -> str | None:
        """A value with surrounding whitespace removed; None if it is empty."""
        return checked_text(self.values.get(name, ""), name).strip() or None

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 10_000_000) -> int:
        """A whole number, clamped to its bounds."""
        given = self.text(name)
        if given is None:
            return default
        if not given.isdecimal() or len(given) > 12 or not given.isascii():
            raise InvalidArgumentError(f"{name} must be a whole number, not {given[:40]!r}.")
        return max(least, min(most, int(given)))

    def choice(self, name: str, *known: str) -> str:
        """One of the known words; the first unless another is given."""
        given = self.text(name)
        return given if given in known else known[0]

    def flag(self, name: str) -> bool:
        return self.text(name) is not None

    def to(self, path: str, **values: object) -> str:
        """A link on this site, for the same tenant."""
        tenant = {} if self.tenant in {None, DEFAULT_TENANT} else {"tenant": self.tenant}
        given = {key: str(value) for key, value in {**tenant, **values}.items() if value not in {None, ""}}
        return f"{path}?{urlencode(given)}" if given else path

    def here(self, path: str, **values: object) -> str:
        """A link for the same user and conversation."""
        return self.to(path, **{"user_id": self.user_id, "conversation_id": self.conversation_id, **values})


def chat_of(memory: Memory, asked: PageRequest) -> Conversation:
    if asked.conversation_id is None:
        raise InvalidArgumentError("Which conversation? Choose one from the list.")
    return memory.conversation(asked.conversation_id, **asked.owner)


async def head_of(memory: Memory, asked: PageRequest) -> ConversationInfo:
    return await chat_of(memory, asked).head()
