"""What is public is written down, and the two faces are the same."""

import inspect
import re
from dataclasses import dataclass
from types import ModuleType

import pagefile
from pagefile import errors
from pagefile.errors import PagefileError


def public_names(module: ModuleType) -> list[str]:
    """Names without an underscore that are not modules."""
    names = {name for name, value in vars(module).items() if not inspect.ismodule(value)}
    return sorted(name for name in names if not name.startswith("_"))


def test_all_is_what_is_public():
    """`from pagefile import …` offers exactly what `__all__` says, sorted; `__version__` may be among it."""
    resolved = {name: getattr(pagefile, name) for name in pagefile.__all__}
    assert [] == [name for name, value in resolved.items() if inspect.ismodule(value)]
    assert public_names(pagefile) == [name for name in pagefile.__all__ if name != "__version__"]


def test_public_names_have_docstrings():
    """Whoever asks `help()` gets an answer."""
    things = {name: getattr(pagefile, name) for name in pagefile.__all__}
    documented = {name for name, thing in things.items() if inspect.getdoc(thing)}
    assert set() == {name for name, thing in things.items() if callable(thing)} - documented


# -- errors ------------------------------------------------------------------------------------------------------------


def error_classes() -> dict[str, type[PagefileError]]:
    return {
        name: thing
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, BaseException) and thing.__module__ == errors.__name__
    }


def test_errors_explain_themselves():
    """The docstring is the default message, so each class has its own."""
    for name, error in error_classes().items():
        own = (vars(error)["__doc__"] or "").strip()
        assert own, name
        assert own == str(error()), name


def test_error_codes_are_unique():
    """The HTTP service names an error by its code."""
    codes = {name: vars(error).get("code") for name, error in error_classes().items()}
    assert [] == [name for name, code in codes.items() if not re.fullmatch(r"[a-z]+(-[a-z]+)*", str(code))]
    assert len(codes) == len(set(codes.values())), codes


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of the tree: the class, its parent, the builtin it also is."""

    name: str
    parent: str | None
    builtin: str | None


def drawn_tree(text: str) -> list[Branch]:
    """The branches of a tree drawn with ├── └── │."""
    branches: list[Branch] = []
    trunk: list[str] = []
    for line in text.splitlines():
        match = re.fullmatch(
            r"(?P<indent>(?:[│ ] {3})*(?:[├└]── )?)(?P<name>\w+Error)(?: \((?P<builtin>\w+)\))?", line
        )
        if not match:
            continue
        depth = len(match["indent"]) // 4
        trunk[depth:] = [match["name"]]
        branches.append(Branch(match["name"], trunk[depth - 1] if depth else None, match["builtin"]))
    return branches


def test_errors_stand_in_the_tree():
    """The tree on the first page of the module is the truth about every class."""
    builtins = {
        "ValueError",
        "LookupError",
        "ImportError",
        "OSError",
        "RuntimeError",
        "TypeError",
        "AttributeError",
    }
    actual = {
        Branch(
            name,
            next((base.__name__ for base in error.__bases__ if issubclass(base, PagefileError)), None),
            next((base.__name__ for base in error.__bases__ if base.__name__ in builtins), None),
        )
        for name, error in error_classes().items()
    }
    assert actual == set(drawn_tree(errors.__doc__ or ""))


def test_the_tree_is_read_right():
    """The test above can fail."""
    drawn = "AError\n├── BError (ValueError)\n│   └── CError\n└── DError\n    └── EError (OSError)\n"
    assert [
        Branch("AError", None, None),
        Branch("BError", "AError", "ValueError"),
        Branch("CError", "BError", None),
        Branch("DError", "AError", None),
        Branch("EError", "DError", "OSError"),
    ] == drawn_tree(drawn)
