"""Erasures by number, so that what was read before one is not written behind it.

Every erasure gets the next number. A view says how many there were when it was read (`Head.epoch`); who writes on the strength of
it later names that number, and the store refuses, in the same transaction, when the tenant, the user or the conversation was erased
since. Numbers are of the whole database, not of a scope: a conversation may begin again under another owner, and counts of two scopes
may agree by chance.

Of what was erased only a hash is left: the id of a user is often their address, which an erasure must not keep.
"""

import hashlib
from collections.abc import Iterable

from pagefile.errors import ErasedError
from pagefile.records import Scope
from pagefile.stores.encoding import to_json


def scope_key(tenant: str, user: str | None = None, conversation: str | None = None) -> str:
    """What a tenant, one of its users or one of its conversations is noted under: a hash, which tells nobody whose it was."""
    return hashlib.sha256(to_json([tenant, user, conversation]).encode()).hexdigest()


def written_keys(scopes: Iterable[Scope]) -> list[str]:
    """What must not have been erased for these scopes to be written to; in order, so that locks are taken in one order."""
    keys: set[str] = set()
    for scope in scopes:
        keys.add(scope_key(scope.tenant))
        if scope.user is not None:
            keys.add(scope_key(scope.tenant, scope.user))
        if scope.conversation is not None:
            keys.add(scope_key(scope.tenant, None, scope.conversation))
    return sorted(keys)


def erased_keys(scope: Scope, conversations: Iterable[str]) -> list[str]:
    """What an erasure is noted under. Of a user each conversation too: somebody else may begin one of that id."""
    if scope.conversation is not None:
        return [scope_key(scope.tenant, None, scope.conversation)]
    if scope.user is None:
        return [scope_key(scope.tenant)]
    own = [scope_key(scope.tenant, None, name) for name in conversations]
    return sorted([scope_key(scope.tenant, scope.user), *own])


def check_epoch(epoch: int, newest: int | None) -> None:
    """Nothing is written that was made from what has been erased since; `newest` is the last erasure of what is written to."""
    if newest is not None and newest > epoch:
        raise ErasedError
