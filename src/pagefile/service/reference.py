"""The API reference: the OpenAPI document, completed with examples, and the pages that render it in the inspector's design.

FastAPI's own page loads its script from a CDN; these work offline and under a strict content policy.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request, Response

from pagefile.errors import NotFoundError
from pagefile.inspector import reference, urls
from pagefile.inspector.page_request import PageRequest
from pagefile.inspector.reference import operations, schema_name
from pagefile.inspector.ui import View
from pagefile.service.auth import is_public, principal_of
from pagefile.service.idempotency import HEADER
from pagefile.service.inspector_auth import shown
from pagefile.service.problems import kinds
from pagefile.wire.chat import REFERENCE, event_schemas
from pagefile.wire.responses import Problem


def read(name: str) -> str:
    return files("pagefile.service").joinpath("templates", name).read_text(encoding="utf-8")


_KEY: Mapping[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Makes the request safe to send again: for a day, the same key with the same body gets the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_SERVERS = [{"url": "/", "description": "The service that this document came from."}]
_SECURITY: Mapping[str, str] = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key of `pagefile keys add`. A service that listens on this machine alone needs none, unless its settings say so.",
}


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with what no route declares: problems, events, keys, and an example of every response."""
    document = _named_by_title(document)
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(mode="serialization", ref_template=REFERENCE)
    schemas |= problem.pop("$defs") | {"Problem": problem} | event_schemas()
    document |= {"servers": _SERVERS, "security": [{"key": []}, {}]}
    document["components"]["securitySchemes"] = {"key": _SECURITY}
    _say_defaults(document)
    examples = cast("dict[str, object]", json.loads(read("examples.json")))
    for operation in operations(document):
        if is_public(operation.path):
            operation.spec["security"] = []
        if operation.method == "POST":
            # Handled by a middleware, so no route declares it.
            operation.spec.setdefault("parameters", []).append(_KEY)
        # Responses other than JSON (streamed lines or events) bring their own example.
        if answer := operation.success["content"].get("application/json"):
            answer["example"] = examples[f"{operation.method} {operation.path}"]
    return document


def _named_by_title(document: dict[str, Any]) -> dict[str, Any]:
    """Pydantic names a `Page[TurnOut]` `Page_TurnOut_`, whatever name it gives itself."""
    text = json.dumps(document)
    for name, schema in document["components"]["schemas"].items():
        if name.endswith("_"):
            text = text.replace(f'{name}"', f'{schema["title"]}"')
    return json.loads(text)


def _say_defaults(document: Mapping[str, Any]) -> None:
    """Move the defaults of request bodies into their descriptions.

    A common generator, openapi-typescript, takes every field with a `default` for one that is always there, and then requires it of
    who sends it.
    """
    schemas = document["components"]["schemas"]
    sent = {name for one in operations(document) for name in _referred(one.spec.get("requestBody", {}))}
    while more := {name for known in sent for name in _referred(schemas[known])} - sent:
        sent |= more
    for name in sent:
        for field in schemas[name].get("properties", {}).values():
            if "default" in field:
                said = f"By default `{json.dumps(field.pop('default'))}`."
                field["description"] = f"{field['description']} {said}" if "description" in field else said


def _referred(value: object) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    match value:
        case {"$ref": str(reference)}:
            yield schema_name(reference)
        case dict():
            for inner in cast("dict[str, object]", value).values():
                yield from _referred(inner)
        case list():
            for inner in cast("list[object]", value):
                yield from _referred(inner)
        case _:
            return


# -- the pages ---------------------------------------------------------------------------------------------------------------

routes = APIRouter(include_in_schema=False)


def _page(request: Request, show: Callable[..., View], *about: object) -> Response:
    """A page for everybody; the navigation is for those who may use it."""
    bare = not principal_of(request).is_known
    return shown(request, PageRequest(), lambda reader: show(*about, reader, bare=bare))


@routes.get(urls.DOCS)
async def docs(request: Request) -> Response:
    return _page(request, reference.show, cast("FastAPI", request.app).openapi())


@routes.get(f"{urls.DOCS}/{{name}}")
async def group(request: Request, name: str) -> Response:
    """The routes of one group, the schemas, or the problems."""
    document = cast("FastAPI", request.app).openapi()
    if name == reference.SCHEMAS:
        return _page(request, reference.show_schemas, document)
    if name == reference.PROBLEMS:
        return _page(request, reference.show_problems, [tuple(kind) for kind in kinds().values()])
    found = next((one for one in reference.groups(document) if reference.slug(one) == name), None)
    if found is None:
        raise NotFoundError(f"There is no part {name[:80]!r} of the reference: see {urls.DOCS}.")
    return _page(request, reference.show_group, document, found)


@routes.get("/problems/{code}")
async def explanation(request: Request, code: str) -> Response:
    kind = kinds().get(code)
    if kind is None:
        raise NotFoundError(f"There is no problem called {code[:80]!r}: /docs/problems lists them.")
    return _page(request, reference.show_problem, *kind)
