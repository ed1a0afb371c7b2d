"""What a memory can do, a service and its client can do; what they cannot is listed here with the reason."""

import inspect

import pytest

from pagefile import Conversation, Memory, Settings
from pagefile.client import BlockingClient, BlockingClientConversation, Client, ClientConversation
from pagefile.service.app import create_app

from .test_facade import differences, parameters, public

#: Which route answers for a verb.
ROUTES: dict[str, str] = {
    "Memory.conversations": "GET /v1/conversations",
    "Memory.turns": "GET /v1/turns/done",
    "Memory.recall": "POST /v1/recall",
    "Memory.remember": "POST /v1/facts",
    "Memory.facts": "GET /v1/facts",
    "Memory.retract": "POST /v1/facts/retract",
    "Memory.fact_revisions": "GET /v1/facts/revisions",
    "Memory.undo": "POST /v1/facts/undo",
    "Memory.import_facts": "POST /v1/facts/import",
    "Memory.settle": "POST /v1/settle",
    "Memory.call": "GET /v1/calls/call",
    "Memory.forget": "POST /v1/forget",
    "Memory.page": "GET /v1/pages/page",
    "Memory.pages": "GET /v1/pages",
    "Memory.peek": "GET /v1/pages/text",
    "Memory.search_tool_history": "POST /v1/pages/search",
    "Memory.purge": "POST /v1/pages/purge",
    "Memory.export": "GET /v1/export",
    "Memory.import_": "POST /v1/import",
    "Memory.describe": "GET /healthz",
    "Conversation.record": "POST /v1/turns",
    "Conversation.begin": "POST /v1/turns/begin",
    "Conversation.extend": "POST /v1/turns/extend",
    "Conversation.messages": "GET /v1/turns/messages",
    "Conversation.fork": "POST /v1/conversations/fork",
    "Conversation.step": "POST /v1/turns/step",
    "Conversation.complete": "POST /v1/turns/complete",
    "Conversation.abort": "POST /v1/turns/abort",
    "Conversation.context": "POST /v1/context",
    "Conversation.recall": "POST /v1/recall",
    "Conversation.load": "POST /v1/load",
    "Conversation.page": "GET /v1/pages/page",
    "Conversation.pages": "GET /v1/pages",
    "Conversation.search_tool_history": "POST /v1/pages/search",
    "Conversation.fetched": "POST /v1/pages/fetched",
    "Conversation.pin": "POST /v1/pages/pin",
    "Conversation.call_tool": "POST /v1/tools/call",
    "Conversation.checkpoint": "POST /v1/checkpoints",
    "Conversation.reset": "POST /v1/reset",
    "Conversation.turns": "GET /v1/turns",
    "Conversation.log": "GET /v1/log",
    "Conversation.head": "GET /v1/conversations/conversation",
    "Conversation.session": "GET /v1/session",
    "Conversation.checkpoints": "GET /v1/checkpoints",
    "Conversation.calls": "GET /v1/calls",
    "Conversation.explain": "GET /v1/explain",
    "Conversation.replay": "POST /v1/replay",
    "Conversation.costs": "GET /v1/costs",
}
#: Verbs without a route.
LEFT_OUT: dict[str, str] = {
    "Memory.open": "the service opens it when it starts",
    "Memory.conversation": "makes a handle and asks nothing",
    "Memory.settings": "may hold secrets of whoever runs the service; what others may know of them is in `describe`",
    "Memory.rebuild": "works on every tenant for as long as it takes: an operator's command, `pagefile rebuild`",
    "Conversation.id": "what the handle was made with",
    "Conversation.scope": "what the handle was made with",
    "Conversation.workspace": "lives in the process of the agent that fills it",
}
#: Parameters that a client does not take.
UNNAMED: dict[str, dict[str, str]] = {
    "conversation": {
        "incognito": "such a conversation is kept in its handle only, and a service keeps no handles"
    },
    "context": {"run": "names a workspace, which lives in the agent's process"},
}
#: What only a client has.
CLIENTS_OWN: dict[str, set[str]] = {"Client": {"close"}, "ClientConversation": {"stream_chat"}}

VERBS = [
    (f"{there.__name__}.{name}", there, here, name)
    for there, here in ((Memory, Client), (Conversation, ClientConversation))
    for name in sorted(public(there))
]


def test_every_verb_has_a_route_or_a_reason():
    """Nothing that can be done here cannot be done over HTTP without somebody having said why."""
    names = {name for name, *_ in VERBS}
    assert names == set(ROUTES) | set(LEFT_OUT)
    assert not set(ROUTES) & set(LEFT_OUT)
    document = create_app(Settings(url="memory://")).openapi()
    known = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert set(ROUTES.values()) <= known


@pytest.mark.parametrize(("full_name", "there", "here", "name"), VERBS, ids=[verb[0] for verb in VERBS])
def test_the_client_has_the_same_verbs(full_name, there, here, name):
    """Same names, same parameters, same docstrings, unless a reason stands above."""
    if full_name in LEFT_OUT and not hasattr(here, name):
        return
    unnamed = UNNAMED.get(name, {})
    ours = [one for one in parameters(public(there)[name]) if one[0] not in unnamed]
    assert ours == parameters(public(here)[name])
    if name not in {"conversation", "describe", "scope"}:
        assert inspect.getdoc(getattr(there, name)) == inspect.getdoc(getattr(here, name))


@pytest.mark.parametrize(
    ("there", "here", "own"),
    [
        (Client, BlockingClient, {"close", "open", "inner", "loop"}),
        (ClientConversation, BlockingClientConversation, set()),
    ],
)
def test_both_faces_of_the_client_have_the_same_verbs(there, here, own):
    """As with the memory."""
    assert [] == differences(there, here, allowed=own)


def test_the_client_has_nothing_else():
    """What a client can do, a memory can do too."""
    assert CLIENTS_OWN["Client"] == set(public(Client)) - set(public(Memory))
    assert CLIENTS_OWN["ClientConversation"] == set(public(ClientConversation)) - set(public(Conversation))


def test_metrics_are_left_out_of_the_reference_on_purpose():
    """They are there, for Prometheus, in its own format; the reference is for those who write agents."""
    app = create_app(Settings(url="memory://"))
    assert "/metrics" not in app.openapi()["paths"]
