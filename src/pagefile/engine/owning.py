"""Whose a conversation is: who may open it, and on whose behalf those look who look after all of a tenant."""

from typing import TYPE_CHECKING

from pagefile.ports import LogReader
from pagefile.records import Scope
from pagefile.stores.rules import check_owner

if TYPE_CHECKING:
    from pagefile.engine.memory import Memory


async def check_opens(reader: LogReader, scope: Scope) -> None:
    """Refuse a conversation that is another user's, or a user's where none is named; one that nobody used yet is open to all."""
    owned = await reader.owner(scope)
    if owned is not None:
        check_owner(scope, owned.user)


async def on_behalf(reader: LogReader, scope: Scope) -> Scope:
    """The scope with the user whose conversation it names, for an operator who names none.

    The one way around `check_opens`: for the inspector, the command line, exports, erasures and lists, which are about all of a tenant,
    and for the documents' verbs, which know conversations and no users.
    """
    if scope.user is not None or scope.conversation is None:
        return scope
    return await reader.owner(scope) or scope


async def looked_up(memory: "Memory", scope: Scope) -> Scope:
    """The same for whoever has a memory and looks at all of a tenant."""
    return await on_behalf(memory.engine.store.reader, scope)
