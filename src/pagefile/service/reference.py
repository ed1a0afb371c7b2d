"""The API reference: the OpenAPI document, completed with examples, and a page that renders it without scripts.

FastAPI's own page loads its script from a CDN; this one works offline and under a strict content policy. It is made from template
files of named fragments; values are escaped unless they are fragments themselves.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request, Response

from pagefile.errors import NotFoundError
from pagefile.records import MAX_INT
from pagefile.service.idempotency import HEADER
from pagefile.service.problems import kinds
from pagefile.wire.responses import Problem

#: No scripts and nothing from other origins; only our own style sheet.
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)

_FRAGMENT = re.compile(r"^<!-- fragment: (\w+) -->\n", re.MULTILINE)


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def read(name: str) -> str:
    return files("pagefile.service").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def fragments(name: str) -> Mapping[str, Template]:
    """The named fragments of a template; whatever precedes the first is called `page`."""
    page, *rest = _FRAGMENT.split(read(name))
    return {"page": Template(page)} | {
        key: Template(text) for key, text in zip(rest[::2], rest[1::2], strict=True)
    }


def fill(template: str, fragment: str, /, **values: object) -> Html:
    """A fragment with its placeholders filled in; the parts of a list follow each other line by line."""
    safe = {key: _markup(value) for key, value in values.items()}
    return Html(fragments(template)[fragment].substitute(safe).strip("\n"))


def _markup(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(_markup, cast("list[object]", value)))
    return value if isinstance(value, Html) else escape(str(value))


def page(html: Html) -> Response:
    headers = {"Content-Security-Policy": CONTENT_POLICY, "Content-Language": "en"}
    return Response(html, headers=headers, media_type="text/html; charset=utf-8")


_fill = partial(fill, "docs.html")
_KEY: Mapping[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Makes the request safe to send again: for a day, the same key with the same body gets the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
_BOUNDS: Mapping[str, str] = {
    "format": "",
    "minimum": "≥ ",
    "exclusiveMinimum": "> ",
    "maximum": "≤ ",
    "minLength": "length ≥ ",
    "maxLength": "length ≤ ",
}


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    spec: dict[str, Any]

    @property
    def head(self) -> Mapping[str, str]:
        """Its line on the page, and the anchor of it."""
        anchor = f"{self.method.lower()}{self.path.replace('/', '-')}"
        return {"anchor": anchor, "method": self.method, "path": self.path}

    @property
    def success(self) -> Mapping[str, Any]:
        return next(answer for status, answer in self.spec["responses"].items() if status.startswith("2"))


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            yield Operation(method.upper(), path, spec)


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the problem schema and an example of every response."""
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    schemas |= problem.pop("$defs") | {"Problem": problem}
    examples = cast("dict[str, object]", json.loads(read("examples.json")))
    for operation in operations(document):
        if operation.method == "POST":
            # Handled by a middleware, so no route declares it.
            operation.spec.setdefault("parameters", []).append(_KEY)
        # Responses other than JSON (streamed lines or events) bring their own example.
        if answer := operation.success["content"].get("application/json"):
            answer["example"] = examples[f"{operation.method} {operation.path}"]
    return document


# -- the pages: no scripts, nothing from other origins -----------------------------------------------------------------

routes = APIRouter(include_in_schema=False)


@routes.get("/docs")
async def docs(request: Request) -> Response:
    return page(_reference_page(cast("FastAPI", request.app).openapi()))


@routes.get("/problems/{code}")
async def explanation(code: str) -> Response:
    kind = kinds().get(code)
    if kind is None:
        raise NotFoundError("There is no problem with this name: /docs lists them all.")
    return page(fill("problem.html", "page", **kind._asdict()))


@routes.get("/style.css")
async def style() -> Response:
    return Response(read("style.css"), media_type="text/css; charset=utf-8")


def _reference_page(document: Mapping[str, Any]) -> Html:
    schemas = document["components"]["schemas"]
    contents: list[Html] = []
    groups: dict[str, list[Html]] = {}
    for one in operations(document):
        contents.append(_fill("content", **one.head, summary=one.spec["description"].partition("\n")[0]))
        groups.setdefault(one.spec["tags"][0], []).append(_operation(one, schemas))
    problems = sorted(kinds().values(), key=lambda kind: (kind.status, kind.code))
    return _fill(
        "page",
        **{name: document["info"][name] for name in ("title", "version", "description")},
        contents=contents,
        groups=[_fill("group", name=name, operations=members) for name, members in groups.items()],
        schemas=[_schema(name, schemas[name]) for name in sorted(schemas)],
        problems=[_fill("problem", **kind._asdict()) for kind in problems],
    )


def _operation(operation: Operation, schemas: Mapping[str, Any]) -> Html:
    spec = operation.spec
    body = spec.get("requestBody")
    rows = [
        _row(one["name"], one["schema"], one.get("description"), required=one.get("required", False))
        for one in spec.get("parameters", ())
    ]
    return _fill(
        "operation",
        **operation.head,
        description=spec["description"],
        parameters=_fields("Parameter", rows),
        body="" if body is None else _content_example("Takes", body["content"], schemas),
        answer=_content_example("Answers with", operation.success["content"], schemas),
    )


def _fields(kind: str, rows: list[Html]) -> str:
    return _fill("fields", kind=kind, rows=rows) if rows else ""


def _content_example(label: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> Html:
    media, shape = next(iter(content.items()))
    if media != "application/json":
        return _fill("example", label=f"{label} {media}, for instance", text=shape["example"])
    example = shape.get("example") or _example(shape["schema"], schemas)
    said = Html(f"{label} {_type(shape['schema'])}, for instance")
    return _fill("example", label=said, text=json.dumps(example, ensure_ascii=False, indent=2))


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> object:
    return (schemas[_name(schema["$ref"])] if "$ref" in schema else schema)["examples"][0]


def _schema(name: str, schema: Mapping[str, Any]) -> Html:
    required = schema.get("required", ())
    rows = [
        _row(field, shape, shape.get("description"), required=field in required)
        for field, shape in schema.get("properties", {}).items()
    ]
    about = schema.get("description", "")
    return _fill("schema", name=name, description=about, fields=_fields("Field", rows))


def _row(name: str, schema: Mapping[str, Any], description: str | None, *, required: bool) -> Html:
    star = _fill("required") if required else ""
    return _fill("row", name=name, star=star, type=_type(schema), description=description or "")


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _type(schema: Mapping[str, Any]) -> Html:
    """A schema in a few words, linking to named schemas."""
    match schema:
        case {"$ref": reference}:
            return _fill("link", name=_name(reference))
        case {"anyOf": choices}:
            return Html(" or ".join(_type(choice) for choice in choices))
        case {"enum": choices}:
            return Html(escape(" or ".join(json.dumps(choice) for choice in choices)))
        case {"const": only}:
            return Html(escape(json.dumps(only)))
        case {"type": "array", "items": items}:
            return Html(f"list of {_type(items)}")
        case {"type": "object", "additionalProperties": values} if not isinstance(values, bool):
            return Html(f"object of {_type(values)}")
        case {"type": str(kind)}:
            return Html(escape(f"{kind}{_bounds(schema)}"))
        case _:
            return Html("any JSON")


def _bounds(schema: Mapping[str, Any]) -> str:
    said = [
        f"{word}{_number(schema[key])}"
        for key, word in _BOUNDS.items()
        if schema.get(key, MAX_INT) != MAX_INT
    ]
    if schema.get("default") is not None:
        said.append(f"default {json.dumps(schema['default'])}")
    return f" ({', '.join(said)})" if said else ""


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
