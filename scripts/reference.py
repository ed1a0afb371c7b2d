"""Writes the reference of docs/ out of the code: settings, commands, errors, metrics, routes, verbs and Python names.

`python scripts/reference.py` writes the files; a test fails while one of them is stale. What code cannot say, what to do about an
error for one, is in reference.toml beside this file.
"""

import ast
import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from fastapi.routing import iter_route_contexts

from pagefile import Conversation, Memory
from pagefile import verbs as table_of_verbs
from pagefile.cli.app import app as commands
from pagefile.cli.commands import value_name
from pagefile.engine.metrics import METRICS
from pagefile.errors import PagefileError
from pagefile.inspector.reference import Operation, operations
from pagefile.service.app import create_app
from pagefile.service.auth import FOR_EVERYBODY, is_public
from pagefile.service.problems import OTHER, Kind
from pagefile.settings import Settings, model
from pagefile.settings.model import Limit, Secret
from pagefile.verbs import Verb

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTES: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_WRITTEN = "<!-- Written by scripts/reference.py: do not edit. -->"


def main() -> None:
    """Write every page that is not what it should be."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        file = FOLDER / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"wrote {file.relative_to(ROOT)}")


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    writers: dict[str, Callable[[], Iterator[str]]] = {
        "settings.md": settings,
        "commands.md": commands_page,
        "errors.md": errors,
        "metrics.md": metrics,
        "routes.md": routes,
        "verbs.md": verbs,
        **{f"{name}.md": partial(python, name) for name in PYTHON},
    }
    return {name: f"{_WRITTEN}\n\n" + "\n".join(write()).rstrip() + "\n" for name, write in writers.items()}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table, and the blank line that ends it."""
    names = list(head)
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def code(text: str) -> str:
    """A word as it is typed; nothing for nothing."""
    return f"`{text}`" if text else ""


# -- settings ----------------------------------------------------------------------------------------------------------


def settings() -> Iterator[str]:
    """Every setting: type, default, variable, what it does."""
    yield "# Settings\n"
    yield NOTES["pages"]["settings"]
    told = said_of_settings()
    yield "## Top level {#top}\n"
    yield from _section(Settings, "", told)
    for setting in fields(Settings):
        if is_dataclass(setting.type):
            assert isinstance(setting.type, type)
            yield f"## `[{setting.name}]` {{#{setting.name}}}\n"
            yield f"{inspect.getdoc(setting.type)}\n"
            yield from _section(setting.type, f"{setting.name}.", told)


def _section(section: type, prefix: str, told: Mapping[str, str]) -> Iterator[str]:
    plain = [setting for setting in fields(section) if not is_dataclass(setting.type)]
    for setting in plain:
        name = f"{prefix}{setting.name}"
        yield f"### `{name}` {{#{name.replace('.', '-')}}}\n"
        yield f"{told[name]}\n"
        default = (
            "none" if setting.default is None else f"`{json.dumps(setting.default, ensure_ascii=False)}`"
        )
        variable = f"PAGEFILE_{name.replace('.', '__').upper()}"
        yield f"{type_of(setting.type)} · default {default} · `{variable}`\n"


def said_of_settings() -> dict[str, str]:
    """The `#:` comment above each setting, by dotted name."""
    lines = Path(model.__file__).read_text(encoding="utf-8").splitlines()
    classes = {node.name: node for node in ast.parse("\n".join(lines)).body if isinstance(node, ast.ClassDef)}
    prefixes = {
        setting.type.__name__: f"{setting.name}."
        for setting in fields(Settings)
        if isinstance(setting.type, type) and is_dataclass(setting.type)
    }
    said: dict[str, str] = {}
    for owner, prefix in {"Settings": "", **prefixes}.items():
        for node in classes[owner].body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                said[prefix + node.target.id] = _comment_above(lines, node.lineno - 1)
    return said


def _comment_above(lines: list[str], at: int) -> str:
    above: list[str] = []
    while lines[at - 1].strip().startswith("#:"):
        at -= 1
        above.insert(0, lines[at].strip().removeprefix("#:").strip())
    return " ".join(above)


def type_of(annotation: Any) -> str:
    """A type in words."""
    words: dict[Any, str] = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    if get_origin(annotation) is Annotated:
        base, limit = get_args(annotation)
        if isinstance(limit, Secret):
            return f"{type_of(base)}, at least {limit.least} characters"
        return f"{words[base]}{_bounds(limit)}" if isinstance(limit, Limit) else "time zone"
    if get_origin(annotation) is Literal:
        return " or ".join(f'`"{choice}"`' for choice in get_args(annotation))
    if annotation in words:
        return words[annotation]
    return " or ".join("none" if part is type(None) else words[part] for part in get_args(annotation))


def _bounds(limit: Limit) -> str:
    least = f"{'more than' if limit.above else 'at least'} {limit.least:g}"
    most = f", at most {limit.most:g}" if limit.most != float("inf") else ""
    return f", {least}{most}"


# -- commands ----------------------------------------------------------------------------------------------------------


def commands_page() -> Iterator[str]:
    """Every command with its options."""
    yield "# Commands\n"
    yield NOTES["pages"]["commands"]
    root = typer.main.get_command(commands)
    yield from table(
        ("command", ""),
        (
            (f"[`{name}`](#{name.replace(' ', '-').replace('pagefile-', '')})", _first(command.help))
            for name, command in all_commands(root)
        ),
    )
    yield "## Before every command {#global}\n"
    yield from _options(root)
    for name, command in all_commands(root):
        yield f"## `{name}` {{#{name.replace('pagefile ', '').replace(' ', '-')}}}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        yield f"```text\n{name} {_usage(command)}\n```\n"
        yield from _options(command)
        if examples := getattr(command, "examples", ()):
            yield "```text\n" + "\n".join(examples) + "\n```\n"


def all_commands(group: Any, name: str = "pagefile") -> Iterator[tuple[str, Any]]:
    """Every command by its whole name; a group is one too when it does something by itself."""
    if name != "pagefile":
        yield name, group
    for known, command in inner_commands(group):
        yield from all_commands(command, f"{name} {known}")


def inner_commands(group: Any) -> Iterator[tuple[str, Any]]:
    """The commands of a group, which imports them when it is asked; none of a command."""
    names = group.list_commands(None) if hasattr(group, "list_commands") else ()
    return ((name, group.get_command(None, name)) for name in names)


def _options(command: Any) -> Iterator[str]:
    rows = [row for parameter in command.params if (row := _option(parameter))]
    if rows:
        yield from table(("argument or option", "", "default"), rows)


def _option(parameter: Any) -> tuple[str, str, str] | None:
    if parameter.name in {"install_completion", "show_completion", "help"} or parameter.hidden:
        return None
    names = [*parameter.opts, *parameter.secondary_opts]
    if not names[0].startswith("-"):
        names = [_argument(parameter)]
    elif not parameter.is_flag:
        names[-1] += f" {value_name(parameter)}"
    default = "" if parameter.default in (None, False) else code(str(parameter.default))
    said = " ".join((parameter.help or "").split())
    return ", ".join(code(name) for name in names), said, "required" if parameter.required else default


def _usage(command: Any) -> str:
    arguments = [one for one in command.params if not one.opts[0].startswith("-")]
    shown = [_argument(one) if one.required else f"[{_argument(one)}]" for one in arguments]
    more = ["COMMAND [ARGS]..."] if hasattr(command, "list_commands") else []
    return " ".join(["[OPTIONS]", *shown, *more])


def _argument(parameter: Any) -> str:
    # A command that has run in this process carries the names that it was given then.
    name = value_name(parameter)
    return name + ("..." if parameter.nargs == -1 and name == parameter.name.upper() else "")


def _first(text: str | None) -> str:
    return inspect.cleandoc(text or "").partition("\n\n")[0].replace("\n", " ")


# -- errors ------------------------------------------------------------------------------------------------------------


def errors() -> Iterator[str]:
    """Every error: meaning, what to do, code and status."""
    yield "# Errors\n"
    yield NOTES["pages"]["errors"]
    # One of two parents is found twice.
    for error in dict.fromkeys(all_errors()):
        kind = Kind.of(error)
        parents = " · ".join(f"`{parent.__name__}`" for parent in error.__mro__[1:-3] or error.__mro__[1:2])
        yield f"## {error.__name__} {{#{error.__name__.lower()}}}\n"
        yield f"{' '.join((error.__doc__ or '').split())}\n"
        yield f"**What to do:** {NOTES['errors'][error.__name__]}\n"
        home = "" if error.__module__ == "pagefile.errors" else f" · in `{error.__module__}`"
        yield f"Code `{kind.code}` · HTTP {kind.status} · subclass of {parents}{home}\n"
    yield "## Problems of the HTTP service alone {#problems}\n"
    yield NOTES["pages"]["problems"]
    yield from table(
        ("code", "HTTP", "meaning", "what to do"),
        (
            (code(name), str(status), title, NOTES["problems"][name])
            for name, (status, title) in OTHER.items()
        ),
    )


def all_errors(root: type[PagefileError] = PagefileError) -> Iterator[type[PagefileError]]:
    """Every class of error, each before its children."""
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith("pagefile."):
            yield from all_errors(child)


# -- metrics -----------------------------------------------------------------------------------------------------------


def metrics() -> Iterator[str]:
    """Every metric."""
    yield "# Metrics\n"
    yield NOTES["pages"]["metrics"]
    yield from table(
        ("name", "type", "labels", "what it tells"),
        ((code(one.name), one.kind, ", ".join(map(code, one.labels)), one.tells) for one in METRICS),
    )
    yield "## Labels {#labels}\n"
    named = sorted({label for one in METRICS for label in one.labels})
    yield from table(("label", "values"), ((code(label), NOTES["labels"][label]) for label in named))
    yield "## Buckets {#buckets}\n"
    yield from table(
        ("histogram", "upper bounds"),
        (
            (code(one.name), ", ".join(f"{bound:g}" for bound in one.buckets))
            for one in METRICS
            if one.buckets
        ),
    )


# -- Python ------------------------------------------------------------------------------------------------------------

#: Modules that a program may import from, in the order in which a reader meets them.
MODULES = (
    "pagefile",
    "pagefile.client",
    "pagefile.settings",
    "pagefile.models",
    "pagefile.integrations.langchain",
    "pagefile.integrations.langgraph",
    "pagefile.integrations.langgraph_checkpoints",
    "pagefile.integrations.langgraph_store",
    "pagefile.integrations.pydantic_ai",
    "pagefile.integrations.claude_agent",
    "pagefile.integrations.adk",
    "pagefile.integrations.agent_framework",
    "pagefile.integrations.agno",
    "pagefile.integrations.crewai",
    "pagefile.integrations.llama_index",
    "pagefile.integrations.openai_agents",
    "pagefile.integrations.smolagents",
    "pagefile.integrations.strands",
    "pagefile.integrations.prometheus",
    "pagefile.integrations.imports",
    "pagefile.ports",
    "pagefile.testing",
    "pagefile.standalone",
)
#: Where a reader begins.
_FIRST = ("Memory", "Conversation", "Settings", "Store")
#: Nobody makes these by hand: `Memory.open` and `memory.conversation` do.
_GIVEN = {"Memory", "Conversation"}
#: Their verbs are those of another class, whose description says it all.
_TWINS = {
    "BlockingMemory",
    "BlockingConversation",
    "BlockingClient",
    "BlockingClientConversation",
    "Client",
    "ClientConversation",
}


#: The pages of the Python names, each with its title and the modules on it; the first has all that no other page has.
PYTHON = {
    "python": ("Python", "pagefile"),
    "python-integrations": ("Python: integrations", "pagefile.integrations"),
    "python-extending": ("Python: ports and test kit", ("pagefile.ports", "pagefile.testing")),
    "python-standalone": ("Python: standalone parts", "pagefile.standalone"),
}


def python(page: str) -> Iterator[str]:
    """The public names on a page, described by mkdocstrings out of their docstrings."""
    yield f"# {PYTHON[page][0]}\n"
    yield NOTES["pages"][page]
    told: set[str] = set()
    for module in MODULES:
        if page != [name for name, (_, modules) in PYTHON.items() if module.startswith(modules)][-1]:
            continue
        yield f"## {module}\n"
        yield f"{NOTES['modules'][module]}\n"
        again = []
        for name in public_names(module):
            if f"{module}.{name}" in told or (name.endswith("Error") and module == "pagefile"):
                again.append(name)
                continue
            yield f"::: {module}.{name}\n"
            if name in _TWINS:
                yield "    options:\n      members: false\n      merge_init_into_class: false\n"
            if name in _GIVEN:
                yield "    options:\n      merge_init_into_class: false\n"
        if again:
            yield f"Also here: {', '.join(f'`{name}`' for name in again)} ([errors](errors.md)).\n"


# -- verbs -------------------------------------------------------------------------------------------------------------


def verbs() -> Iterator[str]:
    """Every verb of a memory and of a conversation on one page, grouped by what one wants to do."""
    yield "# Verbs\n"
    yield NOTES["pages"]["verbs"]
    routes = {
        verb.method: f"{verb.http_method} {verb.path}"
        for verb in vars(table_of_verbs).values()
        if isinstance(verb, Verb)
    }
    for title, listed in NOTES["verbs"].items():
        yield f"## {title}\n"
        rows = [_verb(*name.split(".", 1), routes) for name in listed.split()]
        yield from table(("verb", "what it does", "over HTTP"), rows)


def _verb(owner: str, name: str, routes: Mapping[Any, str]) -> tuple[str, str, str]:
    face = {"chat": Conversation, "memory": Memory}[owner]
    method = getattr(face, name)
    said = " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split()).replace("|", "\\|")
    # What is assigned, and not defined, has no entry of its own in the Python reference.
    defined = f"def {name}(" in inspect.getsource(face)
    place = f"pagefile.{face.__name__}.{name}" if defined else f"pagefile.{face.__name__}"
    link = f"[`{owner}.{name}`](python.md#{place})"
    return link, said, code(routes.get(method, ""))


def _order(name: str) -> tuple[int, str]:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST), name


def public_names(module: str) -> list[str]:
    """What a module offers: its `__all__`, or the classes that it makes itself. Read without importing a framework."""
    path = ROOT / "src" / Path(*module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    # Where names are imported when they are used, the stub lists them.
    source = stub if (stub := source.with_suffix(".pyi")).exists() else source
    tree = ast.parse(source.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value), key=_order)
    added = [
        ast.unparse(node.value).removesuffix(".__all__")
        for node in tree.body
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "__all__"
    ]
    if added:
        return sorted((name for part in added for name in public_names(f"{module}.{part}")), key=_order)
    return [
        node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


# -- routes ------------------------------------------------------------------------------------------------------------


def routes() -> Iterator[str]:
    """Every route of the service."""
    yield "# Routes\n"
    yield NOTES["pages"]["routes"]
    app = create_app(Settings(url="memory://"))
    document = app.openapi()
    ours = {
        (method, one.path): one.endpoint
        for one in iter_route_contexts(app.routes)
        for method in one.methods or ()
    }
    groups: dict[str, list[Operation]] = {}
    for operation in operations(document):
        groups.setdefault(operation.spec["tags"][0], []).append(operation)
    for group, members in groups.items():
        yield f"## {group}\n"
        for operation in members:
            yield from _route(operation, ours[operation.method, operation.path], document)
    yield "## Pages and measurements {#pages}\n"
    yield NOTES["pages"]["pages"]
    rows = [row for row in other_routes(app) if not row[1].endswith(".json") or row[1] == "/openapi.json"]
    yield from table(
        ("method", "path", "who may", "what it is"),
        (
            (method, code(path), who_may(path, None), NOTES["other_routes"][f"{method} {path}"])
            for method, path in rows
        ),
    )


def other_routes(app: Any) -> list[tuple[str, str]]:
    """Method and path of what is in no OpenAPI document."""
    known = {(one.method, one.path) for one in operations(app.openapi())}
    found = {
        (method, one.path or "")
        for one in iter_route_contexts(app.routes)
        for method in (one.methods or set()) - {"HEAD"}
    }
    return sorted(found - known, key=lambda route: (route[1], route[0]))


def who_may(path: str, endpoint: Callable[..., Any] | None) -> str:
    """Which keys may call a route, where keys are required."""
    if is_public(path):
        return "everyone, without a key"
    if path in FOR_EVERYBODY or endpoint is None:
        return "any key"
    names: set[str] = set()
    for hint in get_type_hints(inspect.unwrap(endpoint), include_extras=True).values():
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        names |= set(getattr(bare, "model_fields", ()))
    return "a tenant's key; a user's key, for that user" if "user_id" in names else "a tenant's key"


def _route(operation: Operation, endpoint: Callable[..., Any], document: Mapping[str, Any]) -> Iterator[str]:
    spec = operation.spec
    yield f"### {operation.method} `{operation.path}` {{#{operation.anchor}}}\n"
    yield f"{inspect.cleandoc(spec['description'])}\n"
    yield f"Access: {who_may(operation.path, endpoint)}.\n"
    schemas = document["components"]["schemas"]
    if parameters := [one for one in spec.get("parameters", ()) if one["in"] == "query"]:
        yield from table(
            ("parameter", "type", ""),
            (
                _field(one["name"], one["schema"], one.get("description"), one.get("required"))
                for one in parameters
            ),
        )
    if body := spec.get("requestBody"):
        media, shape = next(iter(body["content"].items()))
        if media == "application/json":
            schema = schemas[_name(shape["schema"])]
            required = schema.get("required", ())
            yield from table(
                ("field", "type", ""),
                (
                    _field(name, one, one.get("description"), name in required)
                    for name, one in schema.get("properties", {}).items()
                ),
            )
        yield from _example("Request", media, shape, schemas)
    media, shape = next(iter(operation.success["content"].items()))
    yield from _example("Answer", media, shape, schemas)


def _field(name: str, schema: Mapping[str, Any], told: str | None, required: object) -> tuple[str, str, str]:
    said = " ".join((told or "").split())
    return code(name) + (" (required)" if required else ""), _json_type(schema), said


def _json_type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": reference}:
            return code(reference.rpartition("/")[2])
        case {"anyOf": choices} | {"oneOf": choices}:
            return " or ".join(dict.fromkeys(_json_type(choice) for choice in choices))
        case {"enum": choices}:
            return " or ".join(code(json.dumps(choice)) for choice in choices)
        case {"const": only}:
            return code(json.dumps(only))
        case {"type": "array", "items": items}:
            return f"list of {_json_type(items)}"
        case {"type": "null"}:
            return "null"
        case {"type": str(kind)}:
            default = schema.get("default")
            return kind if default is None else f"{kind}, default {code(json.dumps(default))}"
        case _:
            return "any JSON"


def _example(label: str, media: str, shape: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    if media == "application/json":
        name = _name(shape["schema"])
        example = shape.get("example") or schemas[name]["examples"][0]
        title = f"{label}: {name}" if name else label
        kind, text = "json", json.dumps(example, ensure_ascii=False, indent=2)
    else:
        title, kind, text = f"{label}: {media}", "text", str(shape["example"]).rstrip()
    yield f'??? example "{title}"\n\n    ```{kind}'
    yield from (f"    {line}".rstrip() for line in text.splitlines())
    yield "    ```\n"


def _name(schema: Mapping[str, Any]) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


if __name__ == "__main__":
    main()
