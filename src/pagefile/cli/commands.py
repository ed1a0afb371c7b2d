"""How commands show themselves: help with examples at its end, flags without a type, and a list that imports none of them."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from rich.box import ROUNDED
from rich.console import Console
from rich.panel import Panel
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

#: What begins the examples in the docstring of a command.
_EXAMPLES = "\n\nExamples:\n"
#: What a value is called in a usage, by its type; everything else is TEXT.
_VALUES = {int: "INTEGER", float: "NUMBER", Path: "FILE"}
_NO_BRACES = str.maketrans("", "", "{}")


def split_examples(text: str | None) -> tuple[str, list[str]]:
    """A help text, and the examples at its end."""
    before, _, after = inspect.cleandoc(text or "").partition(_EXAMPLES)
    # A line of the source is no line of the terminal.
    before = "\n\n".join(" ".join(paragraph.split()) for paragraph in before.split("\n\n"))
    return before, [line.strip() for line in after.splitlines() if line.strip()]


def value_name(parameter: Any) -> str:
    """What stands for the value of an argument or an option: FILE or on|off, not `<path>` or `<list[str]>`."""
    if parameter.metavar is not None or getattr(parameter, "is_flag", False):
        return parameter.metavar or ""
    if parameter.param_type_name == "argument":
        return parameter.name.upper()
    annotation: Any = parameter.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    return _VALUES.get(annotation, "TEXT")


def _no_type(ctx: Any) -> None:
    """An argument is called by what it is."""


if TYPE_CHECKING:
    _Beside = TyperCommand
else:
    _Beside = object


class _Helpful(_Beside):
    """A command or a group whose help ends with examples, and names values as people do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["help"], self.examples = split_examples(kwargs.get("help"))
        super().__init__(*args, **kwargs)

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = [*super().get_params(ctx)]
        for one in found:
            one.metavar = value_name(one)
            if one.param_type_name == "argument":
                one.display_type_rich = _no_type
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        # Typer puts required arguments into braces, which look like something to type.
        return [piece.translate(_NO_BRACES) for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        if self.examples:
            shown = Text("\n".join(self.examples), no_wrap=True, overflow="ignore")
            Console(markup=False, highlight=False, emoji=False).print(
                Panel(shown, title="Examples", title_align="left", border_style="dim", box=ROUNDED)
            )


class Command(_Helpful, TyperCommand):
    pass


class Group(_Helpful, TyperGroup):
    pass


class Listed(TyperCommand):
    """A command in a list: its name, its group and what it does, without what it needs to run."""

    def __init__(self, name: str, place: str, panel: str) -> None:
        super().__init__(name, help=_summary(place), rich_help_panel=panel)


def _summary(place: str) -> str:
    """The first paragraph of a command's docstring, or of a group's text, as it is in the source: importing it takes much longer."""
    module, _, attribute = place.partition(":")
    said = next(_texts(_tree(module), attribute), "")
    return split_examples(said)[0].partition("\n\n")[0]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse((Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8"))


def _texts(tree: ast.Module, attribute: str) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == attribute:
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == attribute == "app":
            yield from _first_text(node.value)
        elif (
            isinstance(node, ast.FunctionDef)
            and attribute == "app"
            and "app.callback()" in map(ast.unparse, node.decorator_list)
        ):
            yield ast.get_docstring(node) or ""


def _first_text(call: ast.expr) -> Iterator[str]:
    arguments = call.args if isinstance(call, ast.Call) else []
    if arguments and isinstance(arguments[0], ast.Constant):
        yield str(arguments[0].value)
