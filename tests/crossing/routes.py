"""Every route of the service, read from its own description, and how a call of it is put together."""

import json
from dataclasses import dataclass, field
from urllib.parse import urlencode

import httpx
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from pagefile.service.auth import FOR_EVERYBODY, is_public
from pagefile.service.inspector_auth import KEY, TOKEN

from .answers import Answer, parsed
from .uploads import upload
from .values import OUT, asked, filled, label, now_and_then, one_of, said, some
from .world import Ask, Caller, Named, Reach

#: How often each is played, beside the others. A route that is not here has no recipe.
WEIGHTS = {
    "POST /v1/context": 8, "POST /v1/recall": 5, "GET /v1/calls": 3, "POST /v1/turns": 14, "POST /v1/turns/begin": 5,
    "POST /v1/turns/extend": 4, "POST /v1/turns/step": 5, "POST /v1/turns/complete": 4, "POST /v1/turns/abort": 2,
    "GET /v1/turns/messages": 5, "GET /v1/turns": 3, "GET /v1/turns/done": 3, "GET /v1/calls/call": 3, "GET /v1/explain": 4,
    "POST /v1/replay": 4, "GET /v1/costs": 2, "POST /v1/chat/stream": 3, "GET /v1/chat/stream": 2, "POST /v1/load": 4, "GET /v1/load": 3, "GET /v1/pages": 3,
    "GET /v1/pages/page": 3, "GET /v1/pages/text": 4, "POST /v1/pages/search": 4, "POST /v1/pages/fetched": 4, "POST /v1/pages/pin": 3,
    "POST /v1/pages/purge": 1, "GET /v1/tools": 1, "POST /v1/tools/call": 5, "POST /v1/memory/conversations/fork": 3,
    "GET /v1/memory/conversations": 3, "GET /v1/memory/conversations/conversation": 3, "GET /v1/session": 3, "GET /v1/history": 3, "PUT /v1/session": 2, "GET /v1/log": 3,
    "POST /v1/checkpoints": 3, "GET /v1/checkpoints": 2, "GET /v1/resets": 1, "POST /v1/reset": 1, "POST /v1/facts": 5,
    "GET /v1/facts": 4, "GET /v1/facts/revisions": 3, "POST /v1/facts/undo": 2, "POST /v1/facts/import": 2,
    "POST /v1/facts/retract": 3, "POST /v1/facts/correct": 3, "POST /v1/forget": 3, "GET /v1/export": 3, "POST /v1/import": 4, "POST /v1/settle": 1,
    "GET /healthz": 1, "GET /readyz": 1, "GET /metrics": 1, "GET /openapi.json": 1, "GET /docs": 0.2, "GET /problems/{code}": 1,
    "GET /docs/{name}": 0.2, "GET /": 2, "GET /index.json": 2, "GET /inspector": 1,
    "GET /inspector/conversations": 1, "GET /inspector/conversations.json": 1, "GET /inspector/conversation": 1,
    "GET /inspector/conversation.json": 1, "GET /inspector/calls": 1, "GET /inspector/calls.json": 1, "GET /inspector/call": 1,
    "GET /inspector/call.json": 1, "GET /inspector/replay": 1, "GET /inspector/replay.json": 1, "GET /inspector/recall": 1,
    "GET /inspector/recall.json": 1, "GET /inspector/archive": 1, "GET /inspector/archive.json": 1, "GET /inspector/page": 1,
    "GET /inspector/page.json": 1, "GET /inspector/facts": 1, "GET /inspector/facts.json": 1, "GET /inspector/sessions": 1,
    "GET /inspector/sessions.json": 1, "GET /inspector/chat": 1, "GET /inspector/chat.json": 1, "GET /inspector/erase": 1,
    "GET /inspector/erase.json": 1, "GET /inspector/gateway": 1, "GET /inspector/gateway.json": 1,
    "GET /inspector/metrics": 1, "GET /inspector/metrics.json": 1, "GET /inspector/login": 1,
    "GET /inspector/search": 2, "GET /inspector/search.json": 2, "GET /inspector/live": 1, "GET /inspector/live.json": 1,
    "GET /inspector/trace": 1, "GET /inspector/trace.json": 1, "GET /inspector/experiments": 1,
    "GET /inspector/experiments.json": 1, "GET /inspector/experiment": 1, "GET /inspector/experiment.json": 1,
    "GET /inspector/settings": 1, "GET /inspector/settings.json": 1, "POST /inspector/note": 2,
    "POST /inspector/experiments": 1, "POST /inspector/experiment": 1, "POST /inspector/model": 0.2,
    "GET /inspector/inspector.css": 1, "GET /inspector/inspector.js": 1, "GET /inspector/icon.svg": 1,
    "POST /inspector/page": 2, "POST /inspector/facts": 2, "POST /inspector/erase": 1, "POST /inspector/demo": 1,
    "POST /inspector/login": 1, "POST /inspector/logout": 1, "POST /inspector/chat": 1, "POST /inspector/chat/stream": 1,
    "POST /agents/hook": 4, "POST /v1/traces": 3, "GET /audit": 1, "GET /favicon.ico": 0.2,
}  # fmt: skip
#: What an operator asks of a tenant, also where a conversation is named without its user.
TENANT_WIDE = frozenset({"GET /v1/turns/done", "GET /v1/export", "POST /v1/forget", "POST /v1/pages/purge"})
#: What the pages of the inspector read from the query string and from their forms; no description lists it.
PAGE_FIELDS = {"q": asked, "uuid": some("page"), "call_id": some("call"), "open": some("page"), "set.window_tokens": one_of(OUT, 500),
               "history": one_of(OUT, "1"), "after": some("page"), "lang": one_of(OUT, "zh"), "show": one_of(OUT, "dropped"),
               "turn": some("turn"), "label": one_of(OUT, "x"), "since": one_of(OUT, "2026-01-01"), "id": some("call")}  # fmt: skip
FORM_FIELDS = {"what": one_of("add", "edit", "retract", "undo"), "fact_id": some("fact"), "uuid": some("page"), "text": said,
               "pinned": one_of("yes", "no"), "revision": one_of("0", "1"), "category": label, "attribute": label, "message": asked,
               "sample": one_of(OUT, OUT, "1"), "next": one_of("/inspector/conversations", "//elsewhere"),
               "turn_id": now_and_then(some("turn")), "page": now_and_then(some("page")), "subject": one_of("turn", "call"),
               "id": some("turn"), "labels": one_of(OUT, "x"), "set.window_tokens": one_of(OUT, "500"), "limit": one_of("1", "3")}  # fmt: skip
#: Where the scripts of coding agents send what their hooks were given; no description lists it.
HOOK = "/agents/hook"
HOOK_FIELDS = {"tenant": False, "user_id": False, "conversation_id": True}
#: Where programs send their spans, in the shape of OpenTelemetry; no description lists it.
SPANS = "/v1/traces"
#: Keys that everybody sends: an answer that is kept for one must not be given to another.
ONCE_KEYS = tuple(f"same-{number}" for number in range(40))


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, and the fields of its request by whether they are required."""

    method: str
    path: str
    query: dict[str, bool] = field(default_factory=dict)
    body: dict[str, bool] | None = None

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def fields(self) -> dict[str, bool]:
        return {**self.query, **(self.body or {})}

    @property
    def is_page(self) -> bool:
        return self.path in {"/", "/index.json"} or self.path.startswith("/inspector")

    @property
    def names_nobody(self) -> bool:
        """It is the same for everybody, so there is nothing of anybody in it."""
        return (is_public(self.path) and self.path != "/") or self.path in FOR_EVERYBODY

    @property
    def reach(self) -> Reach:
        return "page" if self.is_page else "tenant" if self.name in TENANT_WIDE else "conversation"


def routes_of(app: FastAPI) -> dict[str, Route]:
    """All there are: those of the OpenAPI document with their fields, and the pages."""
    document = app.openapi()
    found = [
        Route(method.upper(), path, _query(told), _body(told, document))
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]
    known = {route.name for route in found}
    others = [
        Route(method, one.path or "", body=HOOK_FIELDS if one.path == HOOK else None)
        for one in iter_route_contexts(app.routes)
        for method in sorted((one.methods or set()) - {"HEAD"})
    ]
    found += [route for route in others if route.name not in known]
    return {route.name: route for route in found}


def _query(told: dict) -> dict[str, bool]:
    return {
        one["name"]: one.get("required", False) for one in told.get("parameters", []) if one["in"] == "query"
    }


def _body(told: dict, document: dict) -> dict[str, bool] | None:
    shape = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if shape is None:
        return None
    schema = document["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]]
    return {name: name in schema.get("required", ()) for name in schema["properties"]}


def request_of(route: Route, ask: Ask, caller: Caller, named: Named) -> httpx.Request:
    """One call of a route."""
    headers, whose = _headers(route, ask, caller), _whose(route, named)
    if route.is_page:
        return _page_request(route, ask, caller, headers, whose)
    if route.name == "POST /v1/import":
        text = upload(ask, of_user=caller.user is not None)
        return _request(route, headers | {"Content-Type": "application/x-ndjson"}, whose, text.encode())
    if route.path == HOOK:
        body = json.dumps(_hook(ask) | whose, ensure_ascii=False).encode()
        return _request(route, headers | {"Content-Type": "application/json"}, {}, body)
    if route.path == SPANS:
        body = json.dumps(_spans(ask, named), ensure_ascii=False).encode()
        return _request(route, headers | {"Content-Type": "application/json"}, {}, body)
    given = filled(route.name, route.fields, ask)
    if route.body is not None:
        body = json.dumps({**whose, **given}, ensure_ascii=False).encode()
        return _request(route, headers | {"Content-Type": "application/json"}, {}, body)
    return _request(route, headers, whose | given)


def _hook(ask: Ask) -> dict[str, object]:
    """What the script of a coding agent sends."""
    event = ask.dice.choice(["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"])
    given = {"prompt": asked(ask), "last_assistant_message": said(ask), "tool_name": "Bash", "tool_input": {},
             "tool_response": {"stdout": said(ask)}, "tool_use_id": "t"}  # fmt: skip
    input_ = {**given, "hook_event_name": event}
    return {"conversation_id": "s", "agent": "claude", "project": "/p", "input": input_}


def _spans(ask: Ask, named: Named) -> dict[str, object]:
    """What an instrumented program's exporter sends: one model call."""
    told, answered = ([{"role": role, "parts": [{"type": "text", "content": text}]}]
                      for role, text in (("user", asked(ask)), ("assistant", said(ask))))  # fmt: skip
    given = {
        "gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(told), "gen_ai.output.messages": json.dumps(answered),
        "gen_ai.conversation.id": named.conversation, "user.id": named.user,
    }  # fmt: skip
    attributes = [
        {"key": name, "value": {"stringValue": text}} for name, text in given.items() if text is not None
    ]
    trace = f"{ask.dice.getrandbits(128):032x}"
    span = {
        "traceId": trace,
        "spanId": "1",
        "startTimeUnixNano": "1767225600000000000",
        "attributes": attributes,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def sent_by(caller: Caller, earlier: httpx.Request) -> httpx.Request:
    """The same request once more, by another."""
    kept = {
        name: one
        for name, one in earlier.headers.items()
        if name in {"content-type", "accept", "idempotency-key"}
    }
    shown = {"Authorization": f"Bearer {caller.key}"} if caller.key else {}
    return httpx.Request(earlier.method, earlier.url, headers=kept | shown, content=earlier.content)


def _whose(route: Route, named: Named) -> dict[str, object]:
    said_ = {"tenant": named.tenant, "user_id": named.user, "conversation_id": named.conversation}
    return {
        name: one
        for name, one in said_.items()
        if one is not None and (route.is_page or name in route.fields)
    }


def _headers(route: Route, ask: Ask, caller: Caller) -> dict[str, str]:
    headers = {"Accept": ask.dice.choice(["text/html", "application/json"])}
    if caller.key is not None and route.is_page and ask.chance(0.5):
        headers["Cookie"] = f"{KEY}={caller.key}"
    elif caller.key is not None:
        headers |= ask.dice.choice([{"Authorization": f"Bearer {caller.key}"}, {"X-API-Key": caller.key}])
    if route.method == "POST" and ask.chance(0.2):
        headers["Idempotency-Key"] = ask.dice.choice(ONCE_KEYS)
    if ask.chance(0.05):
        headers["If-None-Match"] = "*"
    return headers


def _page_request(route: Route, ask: Ask, caller: Caller, headers: dict, whose: dict) -> httpx.Request:
    recipes = PAGE_FIELDS if route.method == "GET" else FORM_FIELDS
    given = {name: recipe(ask) for name, recipe in recipes.items() if ask.chance(0.5)}
    given = {name: one for name, one in given.items() if one is not OUT}
    if route.method == "GET":
        return _request(route, headers, whose | given)
    given |= {"token": "crossing", "confirm": whose.get("conversation_id") or whose.get("user_id") or ""}
    headers["Cookie"] = "; ".join([*filter(None, [headers.get("Cookie")]), f"{TOKEN}=crossing"])
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    return _request(route, headers, whose, urlencode(given).encode())


def _request(route: Route, headers: dict, query: dict, body: bytes | None = None) -> httpx.Request:
    path = route.path.replace("{code}", "not-found")
    told = {name: str(one).lower() if isinstance(one, bool) else one for name, one in query.items()}
    url = f"http://127.0.0.1:8780{path}" + (f"?{urlencode(told, doseq=True)}" if told else "")
    return httpx.Request(route.method, url, headers=headers, content=body)


async def answered(client: httpx.AsyncClient, request: httpx.Request) -> Answer:
    """What comes back, headers and all."""
    response = await client.send(request, follow_redirects=False)
    told = "\n".join(f"{name}: {one}" for name, one in response.headers.multi_items())
    return Answer(response.status_code, f"{told}\n\n{response.text}", parsed(response.text))
