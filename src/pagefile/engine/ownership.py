"""Ownership of conversations: who may open one, and how an operator of a whole tenant gets access."""

from typing import TYPE_CHECKING

from pagefile.ports import LogReader
from pagefile.records import Scope
from pagefile.stores.rules import check_owner

if TYPE_CHECKING:
    from pagefile.engine.memory import Memory


async def check_opens(reader: LogReader, scope: Scope) -> None:
    """Refuse a conversation of another user, or an owned one if no user is named; an unused one is open to all."""
    owned = await reader.owner(scope)
    if owned is not None:
        check_owner(scope, owned.user)


async def on_behalf(reader: LogReader, scope: Scope) -> Scope:
    """The scope with the conversation's owner filled in, for an operator who names no user.

    The only way around `check_opens`: for the inspector, the command line, exports, erasures and lists, which
    concern a whole tenant, and for the verbs of `standalone`, which know conversations but no users.
    """
    if scope.user is not None or scope.conversation is None:
        return scope
    return await reader.owner(scope) or scope


async def looked_up(memory: "Memory", scope: Scope) -> Scope:
    """The same, given a memory instead of a reader."""
    return await on_behalf(memory.engine.store.reader, scope)
