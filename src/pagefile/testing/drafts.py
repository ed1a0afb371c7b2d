"""Short helpers for requests that tests need often."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pagefile import ports
from pagefile.content import Media, Message, Text
from pagefile.records import ApiKey, Fact, JsonObject, JsonValue, Page, Scope, Step, WindowRecord
from pagefile.testing.scopes import CHAT

AT = datetime(2026, 2, 9, 8, 0, tzinfo=UTC)


def done(
    turn_id: str,
    user: str | None = "question",
    assistant: str | None = "answer",
    *,
    scope: Scope = CHAT,
    steps: Sequence[Step] = (),
    at: datetime = AT,
    tokens: int = 10,
    metadata: JsonObject | None = None,
    agent: str | None = None,
) -> ports.TurnDraft:
    """A turn with its answer."""
    return ports.TurnDraft(
        scope, turn_id, "done", user, assistant, tuple(steps), at, 3, 4, tokens, "test", metadata or {}, agent
    )


def picture(data: bytes, media_type: str = "image/png") -> Media:
    """An image whose bytes the store has."""
    return Media("image", media_type, hashlib.sha256(data).hexdigest(), size=len(data), tokens=5)


def picturing(turn_id: str, data: bytes = b"PNG", *, scope: Scope = CHAT) -> ports.TurnDraft:
    """A turn in which the user shows an image."""
    shown = picture(data)
    layout = (Message("user", (Text("question"), shown)), Message("assistant", (Text("answer"),)))
    return replace(done(turn_id, scope=scope), layout=layout, blobs={shown.blob or "": data})


def extended(
    turn_id: str, *messages: Message, steps: Sequence[Step] = (), after: int | None = None
) -> ports.Extend:
    """More messages for an open turn."""
    return ports.Extend(CHAT, turn_id, messages, 6, tuple(steps), after=after)


def opened(
    turn_id: str,
    user: str | None = "question",
    *,
    scope: Scope = CHAT,
    tokens: int = 5,
    agent: str | None = None,
) -> ports.TurnDraft:
    """A turn without its answer yet."""
    return ports.TurnDraft(scope, turn_id, "open", user, None, (), AT, 3, 0, tokens, "test", {}, agent)


def step(call_id: str = "call-1", result: str = "sunny", given: JsonValue = None) -> Step:
    return Step("weather", {"city": "上海"} if given is None else given, result, call_id, 2, 3)


def added(turn_id: str, new: Step | None = None, *, scope: Scope = CHAT, tokens: int = 6) -> ports.AddStep:
    """One more step for an open turn."""
    return ports.AddStep(scope, turn_id, new or step(), tokens)


def completed(turn_id: str, assistant: str | None = "answer", *, scope: Scope = CHAT) -> ports.Complete:
    """The answer to an open turn."""
    return ports.Complete(scope, turn_id, assistant, 4, 5)


def aborted(turn_id: str, *, scope: Scope = CHAT, tokens: int | None = None) -> ports.Abort:
    """The end of a turn without an answer; with `tokens=0`, as if the user had not said anything."""
    return ports.Abort(scope, turn_id, tokens)


def checkpoint(
    marker_id: str, covered: int, version: int = 0, *, scope: Scope = CHAT, summary: str = "what was said"
) -> ports.CheckpointDraft:
    """A summary up to a turn, based on this version."""
    text = f"历史摘要: {summary}"
    return ports.CheckpointDraft(
        scope, marker_id, summary, text, covered, version, 7, "test", ("42 mg",), ("page-1",)
    )


def reset(marker_id: str, *, scope: Scope = CHAT) -> ports.ResetDraft:
    return ports.ResetDraft(scope, marker_id)


def view(
    *, budget: int = 1_000_000, least: int = 0, open_turn: str | None = None, scope: Scope = CHAT
) -> ports.ViewRequest:
    """A request for a window's turns; by default everything live."""
    return ports.ViewRequest(scope, budget, least, open_turn)


def fact(
    fact_id: str, text: str = "allergic to penicillin", *, scope: Scope = CHAT, recorded: datetime = AT
) -> Fact:
    return Fact(
        fact_id, scope, text, "health", 0.9, AT, None, recorded, None, "t1", "I am allergic", 4, "test"
    )


def page(
    uuid: str,
    text: str = "the whole result",
    *,
    scope: Scope = CHAT,
    minutes: int = 0,
    spans: Sequence[tuple[int, int]] = (),
    call_hash: str = "",
) -> ports.PageDraft:
    """An archived result, some minutes after the others."""
    asked: tuple[str, JsonValue, str] = "search", {"q": "头晕"}, "dizziness"
    created, digest = AT + timedelta(minutes=minutes), hashlib.sha256(text.encode()).hexdigest()
    found = "three reasons", len(text), ("a.pdf", "b.pdf")
    record = Page(uuid, scope, *asked, *found, created, 9, "test", digest, call_hash)
    return ports.PageDraft(record, text, tuple(spans))


def call(call_id: str, *, scope: Scope = CHAT, at: datetime = AT) -> WindowRecord:
    """A recorded window."""
    options: JsonObject = {"window_tokens": 16000}
    receipt: JsonObject = {"verdicts": [{"kept": True, "tokens": 5}]}
    return WindowRecord(
        call_id, scope, at, None, "why?", options, 120, 0.25, "FULL_HISTORY", "prefix", receipt
    )


def api_key(
    key_id: str, name: str = "laptop", *, scope: Scope | None = None, created: datetime = AT
) -> ApiKey:
    """An unused key of a tenant."""
    return ApiKey(key_id, name, scope or Scope("tenant"), f"digest of {key_id}", created)
