"""The API reference: the OpenAPI document, completed with examples, and a page that renders it without scripts.

FastAPI's own page loads its script from a CDN; this one works offline and under a strict content policy. It is made from template
files of named fragments; values are escaped unless they are fragments themselves.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
    """A fragment with its placeholders filled in."""
    safe = {key: value if isinstance(value, Html) else escape(str(value)) for key, value in values.items()}
    return Html(fragments(template)[fragment].substitute(safe).strip("\n"))


def text(value: str) -> Html:
    return Html(escape(value))


def joined(parts: Iterable[Html]) -> Html:
    return Html("\n".join(parts))


def page(html: Html, *, language: str = "en") -> Response:
    headers = {"Content-Security-Policy": CONTENT_POLICY, "Content-Language": language}
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
    def anchor(self) -> str:
        return f"{self.method.lower()}{self.path.replace('/', '-')}"

    @property
    def head(self) -> Mapping[str, str]:
        """Its line on the page, and the anchor of it."""
        return {"anchor": self.anchor, "method": self.method, "path": self.path}

    @property
    def summary(self) -> str:
        return str(self.spec["description"]).partition("\n")[0]

    @property
    def success(self) -> Mapping[str, Any]:
        return next(answer for status, answer in self.spec["responses"].items() if status.startswith("2"))


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Every operation, in the order of registration."""
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
    known = list(operations(document))
    groups: dict[str, list[Operation]] = {}
    for operation in known:
        groups.setdefault(operation.spec["tags"][0], []).append(operation)
    return _fill(
        "page",
        **{name: document["info"][name] for name in ("title", "version", "description")},
        contents=joined(_fill("content", **one.head, summary=one.summary) for one in known),
        groups=joined(
            _fill("group", name=name, operations=joined(_operation(one, schemas) for one in members))
            for name, members in groups.items()
        ),
        schemas=joined(_schema(name, schemas[name]) for name in sorted(schemas)),
        problems=joined(
            _fill("problem", **kind._asdict())
            for kind in sorted(kinds().values(), key=lambda kind: (kind.status, kind.code))
        ),
    )


def _operation(operation: Operation, schemas: Mapping[str, Any]) -> Html:
    spec = operation.spec
    body = spec.get("requestBody")
    return _fill(
        "operation",
        **operation.head,
        description=spec["description"],
        parameters=_fields(
            "Parameter",
            [
                _row(one["name"], one["schema"], one.get("description"), required=one.get("required", False))
                for one in spec.get("parameters", ())
            ],
        ),
        body=Html("") if body is None else _content_example("Takes", body["content"], schemas),
        answer=_content_example("Answers with", operation.success["content"], schemas),
    )


def _fields(kind: str, rows: list[Html]) -> Html:
    return _fill("fields", kind=kind, rows=joined(rows)) if rows else Html("")


def _content_example(label: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> Html:
    media, shape = next(iter(content.items()))
    if media != "application/json":
        said = text(f"{label} {media}, for instance")
        return _fill("example", label=said, text=str(shape["example"]))
    example = shape.get("example") or _resolved(shape["schema"], schemas)["examples"][0]
    shown = json.dumps(example, ensure_ascii=False, indent=2)
    said = Html(f"{label} {_type(shape['schema'])}, for instance")
    return _fill("example", label=said, text=shown)


def _schema(name: str, schema: Mapping[str, Any]) -> Html:
    required = schema.get("required", ())
    rows = [
        _row(field, shape, shape.get("description"), required=field in required)
        for field, shape in schema.get("properties", {}).items()
    ]
    return _fill(
        "schema", name=name, description=schema.get("description", ""), fields=_fields("Field", rows)
    )


def _row(name: str, schema: Mapping[str, Any], description: str | None, *, required: bool) -> Html:
    star = _fill("required") if required else ""
    return _fill("row", name=name, star=star, type=_type(schema), description=description or "")


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    return schemas[_name(schema["$ref"])] if "$ref" in schema else schema


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
            return text(" or ".join(json.dumps(choice) for choice in choices))
        case {"const": only}:
            return text(json.dumps(only))
        case {"type": "array", "items": items}:
            return Html(f"list of {_type(items)}")
        case {"type": "object", "additionalProperties": values} if not isinstance(values, bool):
            return Html(f"object of {_type(values)}")
        case {"type": str(kind)}:
            return text(f"{kind}{_bounds(schema)}")
        case _:
            return Html("any JSON")


def _bounds(schema: Mapping[str, Any]) -> str:
    said = [
        f"{word}{_number(schema[key])}"
        for key, word in _BOUNDS.items()
        if key in schema and schema[key] != MAX_INT
    ]
    if schema.get("default") is not None:
        said.append(f"default {json.dumps(schema['default'])}")
    return f" ({', '.join(said)})" if said else ""


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
