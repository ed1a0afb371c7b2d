"""Uploads that reach for what is another's: one's own export, with some ids in it exchanged for those of others."""

import json

from .world import Ask

HEADER = '{"type":"pagefile-export","version":1}'
#: Which ids a line may name, and where they stand.
KINDS = {
    "id": ("turn", "call", "fact"),
    "uuid": ("page",),
    "page": ("page",),
    "turn_id": ("turn",),
    "source_turn": ("turn",),
    "supersedes": ("fact",),
    "hash": ("hash",),
    "content_hash": ("hash",),
    "conversation_id": ("conversation",),
}
#: An item of the LangGraph store, of which no route and no verb makes one.
_MOMENT = "2026-01-01T00:00:00Z"
#: How many lines an upload has at most.
_LINES = 40


def upload(ask: Ask, *, of_user: bool) -> str:
    """Lines of the speaker's last export with ids of others; `of_user` may name other users too, which must be refused."""
    own = ask.world.exports.get(ask.speaker, [])[1:]
    start = ask.dice.randrange(len(own)) if own else 0
    lines = [_changed(line, ask, of_user) for line in own[start : start + _LINES]]
    return "\n".join([HEADER, *lines, _item(ask)]) + "\n"


def _item(ask: Ask) -> str:
    line = {
        "type": "item",
        "user_id": ask.speaker.user,
        "namespace": ["memories", "shared"],
        "key": ask.dice.choice(["same", "other"]),
        "value": {"text": ask.made("t")},
        "created": _MOMENT,
        "updated": _MOMENT,
    }
    return json.dumps(line)


def _changed(line: str, ask: Ask, of_user: bool) -> str:
    if ask.chance(0.6):
        return line
    record = json.loads(line)
    if of_user and ask.chance(0.2) and record.get("user_id"):
        record["user_id"] = ask.dice.choice(ask.world.users_of(ask.speaker.tenant))
    return json.dumps(_exchanged(record, ask), ensure_ascii=False)


def _exchanged(value: object, ask: Ask) -> object:
    if isinstance(value, list):
        return [_exchanged(one, ask) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _other(name, one, ask) for name, one in value.items()}


def _other(name: str, value: object, ask: Ask) -> object:
    if name in {"archive_refs", "load"} and isinstance(value, list):
        return [*value, *filter(None, [ask.some("page")])]
    if name in KINDS and isinstance(value, str) and ask.chance(0.3):
        return ask.some(ask.dice.choice(KINDS[name])) or value
    return _exchanged(value, ask)
