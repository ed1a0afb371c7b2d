"""Whose request it is: what its headers, its vendor's fields and its key say."""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal
from urllib.parse import unquote

from pagefile.errors import AccessError, InvalidArgumentError
from pagefile.gateway.conversations import Who
from pagefile.gateway.exchanges import Json
from pagefile.records import MAX_ID_CHARS, checked_id, checked_text
from pagefile.shapes.skeleton import as_object

USER = "x-pagefile-user"
#: The user of a project, for a client whose key names no user.
PROJECT = "x-pagefile-project"
CONVERSATION = "x-pagefile-conversation"
MODE = "x-pagefile-mode"
KEY = "x-pagefile-key"
#: Headers that are for us, and not for the provider.
OURS = frozenset({USER, PROJECT, CONVERSATION, MODE, KEY})

Mode = Literal["on", "record", "off"]
#: From the least to the most that memory does.
_MODES: tuple[Mode, ...] = ("off", "record", "on")

#: What Claude Code sends as its user: the device and the account, then a session that covers unrelated histories.
_CLAUDE_CODE = re.compile(
    r"(user_[0-9a-f]+_account_[0-9a-f-]*)_session_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)


def said(headers: Mapping[str, str], name: str) -> str | None:
    """A header of ours: UTF-8, or percent-encoded where a client sends only ASCII; the answer's are encoded in the same way."""
    value = headers.get(name)
    if value is None:
        return None
    with suppress(UnicodeError):
        # Servers decode headers as ISO 8859-1.
        value = value.encode("latin-1").decode()
    return unquote(value)


def mode(headers: Mapping[str, str], most: Mode) -> Mode:
    """What memory does with the request: what it asks for, and no more than `most`."""
    word = (said(headers, MODE) or most).strip().lower()
    asked = next((one for one in _MODES if one == word), None)
    if asked is None:
        raise InvalidArgumentError(f"{MODE} is {word!r}: send one of {', '.join(_MODES)}.")
    return _MODES[min(_MODES.index(asked), _MODES.index(most))]


def who(
    headers: Mapping[str, str], body: Json, *, tenant: str | None, user: str | None, default: str | None
) -> Who:
    """The user and the conversation of a request; `user` is that of the key, beyond which no request reaches."""
    given, conversation = said(headers, USER), said(headers, CONVERSATION)
    named = given or _vendors_user(body) or user or default
    if user is not None and named != user:
        if given:
            raise AccessError("This key is for another user: leave x-pagefile-user out, or give its own.")
        named = user
    return Who(
        None if named is None else checked_id(named, "user_id"),
        tenant,
        None if conversation is None else checked_id(conversation, "conversation id"),
    )


def _vendors_user(body: Json) -> str | None:
    """The first of the vendors' fields that can name a user; whether they are well formed is for the provider to judge."""
    metadata = as_object(body.get("metadata")) or {}
    named = (_claude_codes(metadata.get("user_id")), body.get("safety_identifier"), body.get("user"))
    return next((user for given in named if (user := _usable(given)) is not None), None)


def _usable(given: object) -> str | None:
    if not isinstance(given, str) or not given.strip():
        return None
    try:
        checked_text(given, "user_id")
    except InvalidArgumentError:
        return None
    # Cut ids could be the same for different users.
    return given if len(given) <= MAX_ID_CHARS else hashlib.sha256(given.encode()).hexdigest()


def _claude_codes(given: object) -> object:
    """A user id without Claude Code's session, if it has one: newer versions send an object as text."""
    if not isinstance(given, str):
        return None
    if (found := _CLAUDE_CODE.fullmatch(given)) is not None:
        return found[1]
    try:
        parts = as_object(json.loads(given)) if given.startswith("{") else None
    except (ValueError, RecursionError):
        parts = None
    return given if parts is None else str(parts.get("account_uuid") or parts.get("device_id") or given)
