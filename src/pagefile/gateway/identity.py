"""Whose request it is: what its headers, its vendor's fields and its key say."""

import json
import re
from collections.abc import Mapping

from pagefile.errors import AccessError
from pagefile.gateway.conversations import Who
from pagefile.gateway.exchanges import Json
from pagefile.records import checked_id
from pagefile.shapes.skeleton import as_object

USER = "x-pagefile-user"
CONVERSATION = "x-pagefile-conversation"
MODE = "x-pagefile-mode"
KEY = "x-pagefile-key"
#: Headers that are for us, and not for the provider.
OURS = frozenset({USER, CONVERSATION, MODE, KEY})

#: What a coding agent sends as its user: the account or the device, and a session that covers unrelated histories.
_SESSION = re.compile(r"_session_[0-9a-f-]+$")


def who(
    headers: Mapping[str, str], body: Json, *, tenant: str | None, user: str | None, default: str | None
) -> Who:
    """The user and the conversation of a request; `user` is that of the key, beyond which no request reaches."""
    named = headers.get(USER) or _vendors_user(body) or user or default
    if user is not None and named != user:
        if headers.get(USER):
            raise AccessError("This key is for another user: leave x-pagefile-user out, or give its own.")
        named = user
    conversation = headers.get(CONVERSATION)
    return Who(
        None if named is None else checked_id(named, "user_id"),
        tenant,
        None if conversation is None else checked_id(conversation, "conversation id"),
    )


def _vendors_user(body: Json) -> str | None:
    metadata = as_object(body.get("metadata")) or {}
    given = metadata.get("user_id") or body.get("safety_identifier") or body.get("user")
    if not isinstance(given, str) or not given.strip():
        return None
    try:
        # Claude Code sends an object as text.
        parts = as_object(json.loads(given)) if given.startswith("{") else None
    except ValueError:
        parts = None
    if parts is not None:
        given = str(parts.get("account_uuid") or parts.get("device_id") or given)
    return _SESSION.sub("", given)[:255]
