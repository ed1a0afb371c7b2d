"""The blocking face has the verbs of the async one: same names, same parameters, same docstrings."""

import pytest

from .faces import differences, public

#: What only one face can have: context management is spelled differently, and a portal may be asked for.
ASYNC_ONLY: dict[str, set[str]] = {"Memory": set(), "Conversation": set()}
BLOCKING_ONLY: dict[str, set[str]] = {"Memory": set(), "Conversation": set()}


def faces(name: str) -> tuple[type, type]:
    """The async class and its blocking counterpart."""
    from pagefile import blocking, engine

    return getattr(engine, name), getattr(blocking, f"Blocking{name}")


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
