"""What a memory can do, a service and its client can do; what they cannot is listed here with the reason."""

import inspect

import pytest

from pagefile import Conversation, Memory, Settings
from pagefile.client import BlockingClient, BlockingClientConversation, Client, ClientConversation
from pagefile.service.app import create_app
from pagefile.verbs import TABLE

from .faces import differences, parameters, public

#: Verbs that send or receive a file.
FILES = {"Memory.export": "GET /v1/export", "Memory.import_": "POST /v1/import"}
#: Which route answers for a verb.
ROUTES = {verb.method.__qualname__: f"{verb.http_method} {verb.path}" for verb in TABLE} | FILES
#: Verbs without a route.
LEFT_OUT: dict[str, str] = {
    "Memory.open": "the service opens it when it starts",
    "Memory.connect": "the service opens it when it starts",
    "Memory.close": "the service closes it when it stops",
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
CLIENTS_OWN: dict[str, set[str]] = {"Client": set(), "ClientConversation": {"stream_chat"}}

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


@pytest.mark.parametrize("verb", TABLE, ids=[verb.method.__qualname__ for verb in TABLE])
def test_a_request_leaves_to_the_service_what_the_method_leaves_to_itself(verb):
    """A parameter that is left out means the same to both: the service is not asked with another default."""
    defaults = {name: verb.signature.parameters[name].default for name in verb.fields}
    fields = {name: verb.request.model_fields[field] for name, field in verb.fields.items()}
    asked = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    optional = {name for name, default in defaults.items() if default is not inspect.Parameter.empty}
    assert {name: asked[name] for name in optional} == {name: defaults[name] for name in optional}


@pytest.mark.parametrize(("full_name", "there", "here", "name"), VERBS, ids=[verb[0] for verb in VERBS])
def test_the_client_has_the_same_verbs(full_name, there, here, name):
    """Same names, same parameters, same docstrings, unless a reason is above."""
    if full_name in LEFT_OUT and not hasattr(here, name):
        return
    unnamed = UNNAMED.get(name, {})
    ours = [one for one in parameters(public(there)[name]) if one[0] not in unnamed]
    assert ours == parameters(public(here)[name])
    if name not in {"close", "conversation", "describe", "scope"}:
        assert inspect.getdoc(getattr(there, name)) == inspect.getdoc(getattr(here, name))


@pytest.mark.parametrize(
    ("there", "here", "own"),
    [
        (Client, BlockingClient, {"close", "connect", "open", "inner", "loop"}),
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
