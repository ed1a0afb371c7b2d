"""What a call says: a value for every field that a request or a verb has, by its name.

A field that is not here has no recipe, and the test fails by its name.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta

from .world import Ask

#: Leave the field out.
OUT = object()

TOPICS = (
    "penicillin allergy",
    "blood pressure",
    "quarterly revenue of the shop",
    "travel plans to Lisbon",
    "the compressor",
    "每天早晚各测一次血压",
)
#: Without a word of the speaker's own: these find whatever there is.
PLAIN = (
    *TOPICS,
    "what do I like",
    "where do I live",
    "as before, what did you find earlier?",
    "weather",
    "*",
)
#: The same calls for everybody, so that an answer of another's could be taken for one's own.
TOOL_CALLS = (("lookup", {"city": "X"}), ("list_files", {"folder": "/"}), ("read_file", {"path": "a.txt"}))


def said(ask: Ask) -> str:
    """A sentence with a new name of the speaker's in it."""
    name, topic = ask.made("t"), ask.dice.choice(TOPICS)
    return ask.dice.choice(
        [
            f"About {topic} {name}",
            f"I live in {name}.",
            f"I am allergic to {name}.",
            f"{topic}: {name} 一直如此。",
        ]
    )


def asked(ask: Ask) -> str:
    """A question: of one's own, of words that all have said, or one that names a page of somebody."""
    kind = ask.dice.randrange(6)
    if kind == 0:
        return f'load_tool_history(uuid="{ask.some("page")}") 📎 [{ask.some("page")}]'
    return said(ask) if kind < 3 else ask.dice.choice(PLAIN)


def bulky(ask: Ask) -> str:
    """A tool result that becomes a page."""
    return f"{said(ask)} " * ask.dice.choice([1, 12, 60])


def step(ask: Ask) -> dict:
    """A tool call and its result."""
    tool, given = ask.dice.choice(TOOL_CALLS)
    return {"tool": tool, "input": given, "result": bulky(ask)}


def steps(ask: Ask) -> list:
    return [step(ask) for _ in range(ask.dice.randrange(3))]


def image(ask: Ask) -> str:
    """The bytes of an image, with a name in them, as a data URL."""
    data = b64encode(b"\x89PNG\r\n\x1a\n" + f" {ask.made('t')} ".encode() * 8).decode()
    return f"data:image/png;base64,{data}"


def messages(ask: Ask) -> list:
    """A turn as a provider's client has it: an image, a file, a tool call with its result, an answer."""
    tool, given = ask.dice.choice(TOOL_CALLS)
    call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
    file = {
        "filename": f"{ask.made('t')}.pdf",
        "file_data": image(ask).replace("image/png", "application/pdf"),
    }
    parts = [
        {"type": "text", "text": said(ask)},
        {"type": "image_url", "image_url": {"url": image(ask)}},
        {"type": "file", "file": file},
    ]
    return [
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": bulky(ask)},
        {"role": "assistant", "content": said(ask)},
    ]


def opening(ask: Ask) -> list:
    """What there is of a turn before it is answered."""
    return messages(ask)[:1]


def new_conversation(ask: Ask) -> str:
    name = ask.made("c")
    ask.world.learn("conversation", name, ask.speaker)
    return name


def conversation(ask: Ask) -> str:
    if ask.chance(0.05):
        return new_conversation(ask)
    return ask.some("conversation") or new_conversation(ask)


def turn_name(ask: Ask) -> object:
    """An id for a new turn: mostly none; else one of one's own, or one that is taken."""
    if ask.chance(0.5):
        return OUT
    if ask.chance(0.5):
        name = ask.made("r")
        ask.world.learn("turn", name, ask.speaker)
        return name
    return ask.some("turn") or OUT


def label(ask: Ask) -> object:
    """A short text that comes back with what it was said of."""
    return OUT if ask.chance(0.6) else ask.dice.choice(["residence", "allergy", ask.made("t")])


def cursor(ask: Ask) -> object:
    """Where a listing goes on: behind an id of one's own or of another's."""
    if ask.chance(0.6):
        return OUT
    return ask.some(ask.dice.choice(["conversation", "page", "call", "fact", "cursor"])) or OUT


def number_cursor(ask: Ask) -> object:
    return OUT if ask.chance(0.6) else ask.dice.randrange(6)


def some(kind: str) -> Callable[[Ask], object]:
    return lambda ask: ask.some(kind) or "00000000-0000-4000-8000-000000000000"


def now_and_then(recipe: Callable[[Ask], object]) -> Callable[[Ask], object]:
    """Half of the time; else the call is about more than that."""
    return lambda ask: OUT if ask.chance(0.5) else recipe(ask)


def several(kind: str) -> Callable[[Ask], object]:
    def given(ask: Ask) -> object:
        found = {ask.some(kind) for _ in range(ask.dice.randrange(3))} - {None}
        return sorted(found) or OUT

    return given


def one_of(*values: object) -> Callable[[Ask], object]:
    return lambda ask: ask.dice.choice(values)


def changes(ask: Ask) -> dict:
    load = [one for one in [ask.some("page")] if one]
    return ask.dice.choice(
        [{}, {"window_tokens": 30_000}, {"recent_turns": 50}, {"load": load}, {"archive__threshold": 10**6}]
    )


def arguments(ask: Ask) -> dict:
    """What a model may have written: pages and names of others too."""
    kind = ask.dice.randrange(3)
    if kind == 0:
        return {"query": ask.dice.choice(PLAIN), "limit": 5}
    given = {"uuid": ask.some("page") or "?"}
    return given if kind == 1 else {**given, "user_id": "ada", "tenant": ask.dice.choice(ask.world.tenants)}


def deer_flow(ask: Ask) -> dict:
    return {
        "user": {"workContext": {"summary": said(ask)}},
        "facts": [{"content": said(ask), "category": "preference", "confidence": 0.9}],
    }


def session_value(ask: Ask) -> dict:
    """What a caller knows about the user, and what the agent is doing."""
    return {
        "user_snapshot": {"allergies": [said(ask)], "preferences": [ask.made("t")]},
        "global_state": {"current_intent": ask.made("t"), "agent_slots": {"city": ask.made("t")}},
    }


def tools(ask: Ask) -> object:
    return OUT if ask.chance(0.8) else [{"name": "lookup", "description": said(ask)}]


#: By the field's name; `{path or verb} {field}` where the same word means something else there.
FIELDS: dict[str, Callable[[Ask], object]] = {
    "after": cursor,
    "agent": label,
    "agent_type": label,
    "from_scratch": one_of(OUT, True),
    "answer_tokens": one_of(OUT, 0, 100),
    "arguments": arguments,
    "as_of": one_of(OUT, OUT, "2031-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    "assistant": said,
    "at": one_of(OUT, OUT, OUT, "2026-01-31T09:30:00Z"),
    "attribute": label,
    "before": one_of(OUT, True),
    "call_id": some("call"),
    "category": label,
    "changes": changes,
    "confidence": one_of(OUT, 0.5),
    "conversation_id": conversation,
    "debug": one_of(OUT, OUT, True),
    "fact_id": some("fact"),
    "format": one_of(OUT, "openai", "responses", "anthropic", "text", "parts"),
    "here": one_of(OUT, True),
    "history": one_of(OUT, True),
    "id": turn_name,
    "incognito": one_of(OUT, OUT, OUT, OUT, OUT, True),
    "input": lambda ask: ask.dice.choice(TOOL_CALLS)[1],
    "instructions": lambda ask: OUT if ask.chance(0.5) else said(ask),
    "kind": one_of(OUT, OUT, "turn", "checkpoint", "reset"),
    "language": one_of(OUT, OUT, "auto", "zh", "en"),
    "limit": one_of(OUT, OUT, 1, 3, 50),
    "load": several("page"),
    "max_bytes": one_of(OUT, OUT, 10**9, 3000),
    "memory": deer_flow,
    "message": asked,
    "messages": messages,
    "metadata": lambda ask: OUT if ask.chance(0.6) else {"note": said(ask)},
    "name": one_of("load_tool_history", "search_tool_history", "unknown_tool"),
    "newest": one_of(OUT, True),
    "offset": one_of(OUT, OUT, 0, 20),
    "on_disconnect": one_of(OUT, "abort", "continue"),
    "older_than_s": one_of(OUT, OUT, 10**9),
    "pinned": one_of(OUT, True, False),
    "placement": one_of(OUT, "tail", "head"),
    "project": label,
    "query": asked,
    "read_token": one_of(OUT, OUT, "2.0", "1.1"),
    "recent_turns": one_of(OUT, 1, 2, 50),
    "result": bulky,
    "revision": one_of(OUT, OUT, 1, 2, 3),
    "run": one_of(OUT, "run-1", "run-2"),
    "session_id": one_of(OUT, OUT, "s-1"),
    "shape": one_of(OUT, "openai", "responses", "anthropic"),
    "source": lambda ask: OUT if ask.chance(0.5) else ask.some("turn") or OUT,
    "steps": steps,
    "subject": label,
    "summary": lambda ask: OUT if ask.chance(0.4) else said(ask),
    "text": said,
    "threshold": one_of(OUT, 0.2, 0.75),
    "timeout_s": one_of(0.05, 0.5),
    "timezone": one_of(OUT, OUT, "Asia/Shanghai"),
    "tool": lambda ask: ask.dice.choice(TOOL_CALLS)[0],
    "tools": tools,
    "turn": some("turn"),
    "turn_id": some("turn"),
    "GET /v1/chat/stream id": some("turn"),
    "POST /v1/context turn_id": lambda ask: OUT if ask.chance(0.7) else some("open")(ask),
    "Conversation.context turn": lambda ask: OUT if ask.chance(0.7) else some("open")(ask),
    "POST /v1/tools/call turn_id": lambda ask: OUT if ask.chance(0.7) else some("open")(ask),
    "user": said,
    "uuid": some("page"),
    "uuids": several("page"),
    "value": session_value,
    "valid_from": one_of(OUT, OUT, "2026-01-31T09:30:00Z"),
    "window_for": one_of(OUT),
    "window_tokens": one_of(OUT, 400, 6000, 30_000),
    # Where the same word means something else.
    "POST /v1/forget turn_id": now_and_then(some("turn")),
    "POST /v1/forget page": now_and_then(some("page")),
    "Memory.forget turn_id": now_and_then(some("turn")),
    "Memory.forget page": now_and_then(some("page")),
    "POST /v1/memory/conversations/fork id": lambda ask: OUT if ask.chance(0.4) else conversation(ask),
    "POST /v1/turns/step call_id": one_of(OUT, "call_1", "call_2"),
    "POST /v1/turns/begin messages": opening,
    "POST /v1/turns/extend messages": lambda ask: messages(ask)[1:],
    "POST /v1/turns/extend after": number_cursor,
    "GET /v1/turns after": number_cursor,
    "GET /v1/log after": number_cursor,
    "GET /v1/checkpoints after": number_cursor,
    "GET /v1/resets after": number_cursor,
    "GET /v1/facts/revisions after": number_cursor,
    "Conversation.turns after": number_cursor,
    "Conversation.log after": number_cursor,
    "Conversation.extend after": number_cursor,
    "Memory.fact_revisions after": number_cursor,
    "Conversation.fork id": lambda ask: OUT if ask.chance(0.4) else conversation(ask),
    "Conversation.step call_id": one_of(OUT, "call_1", "call_2"),
    "Conversation.begin messages": opening,
    "POST /v1/turns/step turn_id": some("open"),
    "Conversation.step turn": some("open"),
    "POST /v1/turns/extend turn_id": some("open"),
    "Conversation.extend turn": some("open"),
    "POST /v1/turns/complete turn_id": some("open"),
    "Conversation.complete turn": some("open"),
    "POST /v1/turns/abort turn_id": some("open"),
    "Conversation.abort turn": some("open"),
    "Conversation.call_tool turn": one_of(OUT),
    "Conversation.extend messages": lambda ask: messages(ask)[1:],
    "Memory.import_facts source": deer_flow,
    "Memory.purge older_than": one_of(OUT, timedelta(days=9000)),
    "Memory.conversation id": conversation,
}
#: Fields that say whose memory is meant, and who calls; they are decided before all others.
WHOSE = frozenset({"tenant", "user_id", "conversation_id", "Idempotency-Key"})
#: Two ways to say the same: one of them is left out.
EITHER = (({"messages"}, {"user", "assistant", "steps"}), ({"page"}, {"turn_id"}))


def value(place: str, name: str, ask: Ask) -> object:
    """A value for a field; raises `LookupError` for one that has no recipe."""
    recipe = FIELDS.get(f"{place} {name}") or FIELDS.get(name)
    if recipe is None:
        raise LookupError(
            f"{place}: nobody has said what to send as {name!r}: add it to tests/crossing/values.py"
        )
    return recipe(ask)


def filled(place: str, fields: dict[str, bool], ask: Ask) -> dict[str, object]:
    """The fields of a call, by whether they are required; others are left out now and then."""
    left_out: set[str] = set()
    for one, other in EITHER:
        if one <= set(fields) and other & set(fields):
            left_out |= other if ask.chance(0.25) else one
    given = {
        name: value(place, name, ask)
        for name, required in fields.items()
        if name not in left_out and name not in WHOSE and (required or ask.chance(0.75))
    }
    return {name: one for name, one in given.items() if one is not OUT}
