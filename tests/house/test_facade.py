"""The blocking face has the verbs of the async one: same names, same parameters, same docstrings."""

import inspect

import pytest

#: What only one face can have: context management is spelled differently, and a portal may be asked for.
ASYNC_ONLY: dict[str, set[str]] = {"Memory": set(), "Conversation": set()}
BLOCKING_ONLY: dict[str, set[str]] = {"Memory": set(), "Conversation": set()}


def faces(name: str) -> tuple[type, type]:
    """The async class and its blocking counterpart."""
    from pagefile import blocking, engine

    return getattr(engine, name), getattr(blocking, f"Blocking{name}")


def public(face: type) -> dict[str, object]:
    """Public members, inherited ones included, descriptors as they are."""
    members = {name: inspect.getattr_static(face, name) for name in dir(face)}
    return {name: member for name, member in members.items() if not name.startswith("_")}


def function_of(member: object) -> object:
    """The plain function behind a member."""
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member.fget if isinstance(member, property) else member


def parameters(member: object) -> list[tuple[str, str, object]]:
    """Names, kinds and defaults; annotations may differ where a face returns its own classes."""
    function = function_of(member)
    if not callable(function):
        return []
    return [
        (parameter.name, parameter.kind.name, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def differences(there: type, blocking: type, *, allowed: set[str]) -> list[str]:
    """What a reader of one face would not find on the other."""
    ours, theirs = public(there), public(blocking)
    found = [f"only one face has {name}" for name in sorted((set(ours) ^ set(theirs)) - allowed)]
    for name in sorted(set(ours) & set(theirs)):
        if parameters(ours[name]) != parameters(theirs[name]):
            found.append(f"{name} takes {parameters(ours[name])} here, {parameters(theirs[name])} there")
        if inspect.getdoc(getattr(there, name)) != inspect.getdoc(getattr(blocking, name)):
            found.append(f"{name} has another docstring")
        if isinstance(ours[name], property) != isinstance(theirs[name], property):
            found.append(f"{name} is a property on one face only")
        if inspect.iscoroutinefunction(function_of(theirs[name])):
            found.append(f"{name} does not block")
    return found


@pytest.mark.parametrize("name", ["Memory", "Conversation"])
def test_both_faces_have_the_same_verbs(name: str):
    """What is written for one face can be read for the other."""
    there, blocking = faces(name)
    assert [] == differences(there, blocking, allowed=ASYNC_ONLY[name] | BLOCKING_ONLY[name])


def test_verbs_are_there():
    """The comparison above compares something."""
    memory, _ = faces("Memory")
    chat, _ = faces("Conversation")
    assert {
        "conversation",
        "export",
        "facts",
        "forget",
        "import_",
        "open",
        "recall",
        "remember",
        "settle",
    } <= set(public(memory))
    assert {"abort", "begin", "checkpoint", "complete", "context", "load", "recall", "record", "step"} <= set(
        public(chat)
    )


def test_differences_are_found():
    """The tests above can fail: a missing verb, another default, another docstring, a coroutine."""

    class There:
        async def same(self, a: int = 1) -> None:
            """The same."""

        async def gone(self) -> None:
            """Gone."""

        async def default(self, *, a: int = 1) -> None:
            """Default."""

        async def told(self) -> None:
            """Told."""

        async def waits(self) -> None:
            """Waits."""

    class Blocking:
        def same(self, a: int = 1) -> None:
            """The same."""

        def default(self, *, a: int = 2) -> None:
            """Default."""

        def told(self) -> None:
            """Untold."""

        async def waits(self) -> None:
            """Waits."""

    found = differences(There, Blocking, allowed=set())
    assert ["only one face has gone", "default", "told", "waits"] == [
        line if line.startswith("only") else line.split()[0] for line in found
    ]
