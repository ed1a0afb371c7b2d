"""The API reference, rendered from the OpenAPI document: a page for each group of routes, with a form that sends the request."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import Reader
from pagefile.records import MAX_INT
from pagefile.text.tables import table

SCHEMAS, PROBLEMS = "schemas", "problems"
#: What the pages are made from.
_DOCUMENT = "/openapi.json"
_CODE = re.compile(r"`([^`]+)`")
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
    def group(self) -> str:
        return next(iter(self.spec.get("tags", ())), "Other")

    @property
    def success(self) -> Mapping[str, Any]:
        return next(answer for status, answer in self.spec["responses"].items() if status.startswith("2"))

    @property
    def parameters(self) -> Sequence[Mapping[str, Any]]:
        return self.spec.get("parameters", ())


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            yield Operation(method.upper(), path, spec)


def groups(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """The operations by group, in the order of the document."""
    found: dict[str, list[Operation]] = {}
    for operation in operations(document):
        found.setdefault(operation.group, []).append(operation)
    return found


def slug(group: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", group.lower()).strip("-")


# -- texts -----------------------------------------------------------------------------------------------------------------


def prose(text: str) -> list[Content]:
    """Paragraphs, with what is between backquotes as code."""
    return [el("p", inline(" ".join(one.split()))) for one in text.split("\n\n") if one.strip()]


def inline(text: str) -> list[Content]:
    parts = _CODE.split(text)
    return [el("code", part) if number % 2 else part for number, part in enumerate(parts)]


def example_text(example: object, reader: Reader) -> str:
    """An example in the reader's language."""
    text = example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=2)
    if reader.language == "zh":
        return text
    phrases = table("pagefile.inspector", "examples")
    for chinese in sorted(phrases, key=len, reverse=True):
        text = text.replace(chinese, phrases[chinese])
    return text


# -- pages -----------------------------------------------------------------------------------------------------------------


def show(document: Mapping[str, Any], reader: Reader, *, bare: bool) -> ui.View:
    """Every route in one line, by group."""
    say, info = reader.say, document["info"]

    def group(name: str, members: list[Operation]) -> Element:
        items = [
            el(
                "li",
                _method(one),
                " ",
                el("a", el("code", one.path), href=f"{_place(name)}#{one.anchor}"),
                " ",
                _summary(one),
            )
            for one in members
        ]
        title = el("h2", el("a", reader.known(f"group.{slug(name)}", name), href=_place(name)))
        return el("section", title, el("ul", items, class_="routes"), class_="card")

    places = {"docs.schemas": _place(SCHEMAS), "docs.problems": _place(PROBLEMS), "OpenAPI": _DOCUMENT}
    links = [el("li", el("a", reader.known(key, key), href=href)) for key, href in places.items()]
    listed = [group(name, members) for name, members in groups(document).items()]
    body = [el("ul", links, class_="chips"), listed]
    lead = [*inline(info["description"]), " ", say("docs.version", version=info["version"])]
    return ui.View(say("docs.title"), body, lead=lead, twin=_DOCUMENT, bare=bare)


def show_group(document: Mapping[str, Any], name: str, reader: Reader, *, bare: bool) -> ui.View:
    members, schemas = groups(document)[name], document["components"]["schemas"]
    toc = [
        el("li", el("a", el("code", f"{one.method} {one.path}"), href=f"#{one.anchor}")) for one in members
    ]
    body = [el("ul", toc, class_="chips"), [_operation(one, schemas, reader) for one in members]]
    title = reader.known(f"group.{slug(name)}", name)
    return ui.View(title, body, crumbs=_crumbs(reader), twin=_DOCUMENT, script=True, bare=bare)


def show_schemas(document: Mapping[str, Any], reader: Reader, *, bare: bool) -> ui.View:
    schemas = document["components"]["schemas"]
    made = [_schema(name, schemas[name], reader) for name in sorted(schemas)]
    title = reader.say("docs.schemas")
    return ui.View(
        title, made, lead=reader.say("docs.schemas_about"), crumbs=_crumbs(reader), twin=_DOCUMENT, bare=bare
    )


def show_problems(kinds: Sequence[tuple[str, int, str]], reader: Reader, *, bare: bool) -> ui.View:
    columns = {"docs.code": "row", **ui.numbers("docs.status"), "docs.meaning": "reason"}
    rows = [
        (
            el("a", el("code", code), href=f"/problems/{code}", id=f"problem-{code}"),
            str(status),
            inline(title),
        )
        for code, status, title in kinds
    ]
    made = ui.card(None, ui.table(reader, reader.say("docs.problems"), columns, rows))
    schema = el("a", "Problem", href=_schema_place("Problem"))
    lead = [reader.say("docs.problems_about"), " ", schema]
    return ui.View(
        reader.say("docs.problems"), made, lead=lead, crumbs=_crumbs(reader), twin=_DOCUMENT, bare=bare
    )


def show_problem(code: str, status: int, title: str, reader: Reader, *, bare: bool) -> ui.View:
    """One kind of problem: what it means, and what to do."""
    say = reader.say
    about = ui.card(say("docs.meaning"), el("p", inline(title)), ui.soft(say("docs.detail", status=status)))
    todo = ui.card(say("docs.todo"), el("p", inline(say(f"fix.{code}"))))
    crumbs = (*_crumbs(reader), (_place(PROBLEMS), say("docs.problems")))
    return ui.View(code, [about, todo], crumbs=crumbs, twin=_DOCUMENT, bare=bare)


def _place(name: str) -> str:
    return f"{urls.DOCS}/{slug(name)}"


def _schema_place(name: str) -> str:
    return f"{_place(SCHEMAS)}#schema-{name}"


def _crumbs(reader: Reader) -> tuple[tuple[str, str], ...]:
    return ((urls.DOCS, reader.say("docs.title")),)


# -- one route -------------------------------------------------------------------------------------------------------------


def _method(one: Operation) -> Element:
    return ui.badge(one.method, "in" if one.method == "GET" else "kept")


def _summary(one: Operation) -> Content:
    first = " ".join(one.spec.get("description", "").split("\n\n")[0].split())
    return el("span", inline(first), class_="soft")


def _operation(one: Operation, schemas: Mapping[str, Any], reader: Reader) -> Element:
    title = el("h2", _method(one), " ", el("code", one.path), id=one.anchor)
    rows = [
        _row(given["name"], given["schema"], given.get("description"), given.get("required", False), reader)
        for given in one.parameters
    ]
    body = one.spec.get("requestBody")
    taken = None if body is None else _example("docs.takes", body["content"], schemas, reader)
    answer = _example("docs.answers", one.success.get("content", {}), schemas, reader)
    fields = _fields("docs.parameter", rows, reader, f"{one.method} {one.path}")
    inside = [prose(one.spec["description"]), fields, taken, answer, _try(one, schemas, reader)]
    return el("section", title, inside, class_="card")


def _fields(key: str, rows: list[tuple[Content, ...]], reader: Reader, label: str) -> Content:
    if not rows:
        return None
    columns = {key: "row when", "docs.type": "reason", "docs.meaning": "reason"}
    return ui.table(reader, f"{reader.say(key)}: {label}", columns, rows)


def _row(
    name: str, schema: Mapping[str, Any], about: str | None, required: bool, reader: Reader
) -> tuple[Content, ...]:
    needed = el("small", reader.say("docs.required")) if required else None
    return [el("code", name), needed], type_of(schema, reader), inline(about or "")


def _example(key: str, content: Mapping[str, Any], schemas: Mapping[str, Any], reader: Reader) -> Content:
    if not content:
        return None
    media, shape = next(iter(content.items()))
    kind = media if media != "application/json" else type_of(shape["schema"], reader)
    text = example_text(_given_example(media, shape, schemas), reader)
    label = el("h3", reader.say(key), " ", kind)
    return el("div", label, el("pre", text, tabindex="0"))


def _given_example(media: str, shape: Mapping[str, Any], schemas: Mapping[str, Any]) -> object:
    if "example" in shape:
        return shape["example"]
    schema = shape["schema"]
    return (schemas[schema_name(schema["$ref"])] if "$ref" in schema else schema).get("examples", [media])[0]


def _try(one: Operation, schemas: Mapping[str, Any], reader: Reader) -> Element:
    """A form that sends the request, with the script; a GET is sent without one too."""
    body, inside = one.spec.get("requestBody"), list[Content]()
    for given in one.parameters:
        if given["in"] == "query":
            needed = given.get("required", False)
            value = given["schema"].get("default")
            shown = None if isinstance(value, list | dict) or value is None else str(value)
            inside.append(_input(given["name"], needed, shown, one))
    if body is not None:
        media, shape = next(iter(body["content"].items()))
        text = example_text(_given_example(media, shape, schemas), reader)
        inside.append(
            el(
                "label",
                el("span", reader.say("docs.body")),
                el(
                    "textarea",
                    text,
                    name="body",
                    rows=min(16, text.count("\n") + 2),
                    data_media=media,
                    spellcheck="false",
                ),
                class_="field",
            )
        )
    # Without a name: a browser without the script would put it into the address.
    secret = el("input", type="password", autocomplete="off", spellcheck="false", data_key=True)
    hint = el("small", reader.say("docs.key_about"), class_="hint")
    key = el("label", el("span", reader.say("docs.key")), secret, hint, class_="field")
    send = ui.button(reader, "docs.send")
    result = el("pre", class_="result", aria_live="polite", tabindex="0", hidden=True)
    made = el(
        "form",
        el("div", inside, class_="grid") if body is None else inside,
        key,
        send,
        method="get",
        action=one.path,
        class_="try stacked-form",
        data_method=one.method,
        data_failed=reader.say("event.failed"),
    )
    return el("details", el("summary", reader.say("docs.try")), made, result)


def _input(name: str, required: bool, value: str | None, one: Operation) -> Element:
    field = el("input", type="text", name=name, value=value, required=required, autocomplete="off")
    return el("label", el("span", name), field, class_="field")


# -- schemas ---------------------------------------------------------------------------------------------------------------


def _schema(name: str, schema: Mapping[str, Any], reader: Reader) -> Element:
    required = schema.get("required", ())
    rows = [
        _row(field, shape, shape.get("description"), field in required, reader)
        for field, shape in schema.get("properties", {}).items()
    ]
    inside = prose(schema.get("description", "")), _fields("docs.field", rows, reader, name)
    target = el("div", inside, id=f"schema-{name}")
    return el("details", el("summary", el("code", name)), target, class_="card schema")


def schema_name(reference: str) -> str:
    return reference.rpartition("/")[2]


def type_of(schema: Mapping[str, Any], reader: Reader) -> list[Content]:
    """A schema in a few words, linking to named schemas."""
    say = reader.say
    or_ = " " + say("docs.or") + " "
    match schema:
        case {"$ref": reference}:
            return [el("a", schema_name(reference), href=_schema_place(schema_name(reference)))]
        case {"anyOf": choices} | {"oneOf": choices}:
            return _joined([type_of(choice, reader) for choice in choices], or_)
        case {"allOf": [only]}:
            return type_of(only, reader)
        case {"enum": choices}:
            return [or_.join(json.dumps(choice, ensure_ascii=False) for choice in choices)]
        case {"const": only}:
            return [json.dumps(only, ensure_ascii=False)]
        case {"type": "array", "items": items}:
            return [say("docs.list_of"), " ", *type_of(items, reader)]
        case {"type": "object", "additionalProperties": values} if not isinstance(values, bool):
            return [say("docs.object_of"), " ", *type_of(values, reader)]
        case {"type": str(kind)}:
            return [f"{kind}{_bounds(schema)}"]
        case _:
            return [say("docs.any")]


def _joined(parts: list[list[Content]], between: str) -> list[Content]:
    made: list[Content] = []
    for part in parts:
        made += [between, *part] if made else part
    return made


def _bounds(schema: Mapping[str, Any]) -> str:
    said = [
        f"{word}{_number(schema[key])}"
        for key, word in _BOUNDS.items()
        if schema.get(key, MAX_INT) != MAX_INT
    ]
    if schema.get("default") is not None:
        said.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
    return f" ({', '.join(said)})" if said else ""


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
