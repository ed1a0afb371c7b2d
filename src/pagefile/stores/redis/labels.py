"""The keys of a session in Redis, and how a value is known to be the one that was put.

The value is plain JSON under a key of its own, so that any program can read it with `GET`. A second key holds a label
with the version and a digest: a value without a matching label (written by another program, half evicted, damaged, or an
answer that was meant for another key) is not ours, and is a miss.
"""

import hashlib
import json
import re
from typing import Any, cast
from urllib.parse import quote, unquote

from pagefile.ports import CachedSession
from pagefile.records import DEFAULT_TENANT, JsonObject, Scope
from pagefile.stores import rules

#: The key of a session of the default tenant.
KEY = "short_term_memory:session:%s"
_TENANT_KEY = "short_term_memory:tenant:%s:session:%s"
# In a Redis Cluster the part in braces decides where a key lives: the label lives with its value.
_LABEL_KEY = "short_term_memory:version:{%s}"

#: The prefix of the keys that a listing scans.
ANY_KEY = "short_term_memory:*"
_KEYS = re.compile(r"short_term_memory:(?:tenant:([^:]*):session:(.*)|session:(.*))", re.DOTALL)

#: Replaces the digest in the label of a value that was erased.
ERASED = "erased"

_LABEL = re.compile(rb"(\d{1,16}) ([0-9a-f]{40})")


def keys_of(scope: Scope) -> tuple[str, str]:
    """The keys of a conversation's value and of its label.

    A conversation of the default tenant has the plain key, whatever its id is; those of other tenants have another prefix,
    and a tenant's colons are escaped, so no two conversations share a key.
    """
    conversation = rules.conversation_of(scope)
    if scope.tenant == DEFAULT_TENANT:
        key = KEY % conversation
    else:
        key = _TENANT_KEY % (quote(scope.tenant, safe=""), conversation)
    return key, _LABEL_KEY % key


def scope_of(key: str) -> Scope | None:
    """The tenant and conversation of a key; None when it is not a session's."""
    found = _KEYS.fullmatch(key)
    if found is None:
        return None
    tenant, of_tenant, of_default = found.groups()
    return (
        Scope(DEFAULT_TENANT, None, of_default) if tenant is None else Scope(unquote(tenant), None, of_tenant)
    )


def read(key: str, answer: object) -> CachedSession | None:
    """The session in the values of these two keys, or None when the two do not belong together."""
    match answer:
        case [bytes() as value, bytes() as label]:
            found = _LABEL.fullmatch(label)
        case _:
            return None
    if found is None or found[2].decode() != _digest(key, value):
        return None
    try:
        session: Any = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(session, dict):
        return None
    return CachedSession(cast("JsonObject", session), int(found[1]))


def _digest(key: str, value: bytes) -> str:
    return hashlib.sha1(key.encode() + value, usedforsecurity=False).hexdigest()
