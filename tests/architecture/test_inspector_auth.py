"""The inspector is only a client: what its pages read and write goes through the verbs that everybody has."""

import ast
from functools import cache

import pytest

from .scans import SOURCE, Finding, Source

#: Rooms behind the verbs.
BEHIND = ("pagefile.ports", "pagefile.stores", "pagefile.engine.engine", "pagefile.engine.log_queries")
#: What a page takes from there all the same, and why.
TAKEN: dict[str, str] = {
    "inspector/scripted.py: pagefile.ports.ChatModel": "what `Memory.open(model=…)` takes: the scripted model is one",
    "inspector/scripted.py: pagefile.ports.Spoken": "what a ChatModel says, word by word",
    "inspector/scripted.py: pagefile.ports.ToolCall": "what a ChatModel asks for",
}
_ENGINE = {"engine", "_engine"}


def behind_the_verbs(source: Source) -> list[Finding]:
    """Where a module reaches through a memory to what lies behind it, or takes something from there."""
    found: list[Finding] = []
    for node, function in source.nodes:
        match node:
            case ast.Attribute(attr=name) if name in _ENGINE:
                found.append(source.finding(node, function, f".{name}"))
            case ast.Constant(value=str(name)) if name in _ENGINE:
                found.append(source.finding(node, function, repr(name)))
            case ast.ImportFrom(module=str(module), names=names):
                found += [
                    source.finding(node, function, f"{module}.{alias.name}")
                    for alias in names
                    if f"{module}.{alias.name}.".startswith(tuple(f"{room}." for room in BEHIND))
                ]
            case ast.Import(names=names):
                found += [
                    source.finding(node, function, alias.name)
                    for alias in names
                    if f"{alias.name}.".startswith(tuple(f"{room}." for room in BEHIND))
                ]
    return found


@cache
def reached() -> frozenset[str]:
    pages = [
        Source.of(file.read_text(encoding="utf-8"), file.relative_to(SOURCE).as_posix())
        for file in (SOURCE / "inspector").rglob("*.py")
    ]
    assert pages
    return frozenset(f"{page.path}: {finding.what}" for page in pages for finding in behind_the_verbs(page))


def test_the_inspector_uses_no_back_door():
    """No `memory.engine`, no store, no port: only the types above, which the public verbs take themselves."""
    assert set() == reached() - set(TAKEN)


def test_what_is_taken_is_argued_and_still_needed():
    """The list shrinks with the code."""
    assert set(TAKEN) == reached() & set(TAKEN)
    assert [] == [name for name, reason in TAKEN.items() if len(reason) < 20]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("async def f(memory): return await memory.engine.store.reader.heads(1)", [".engine"]),
        ("def f(chat): return chat._engine", ["._engine"]),
        ("def f(memory): return getattr(memory, 'engine')", ["'engine'"]),
        ("from pagefile.ports import EntryQuery", ["pagefile.ports.EntryQuery"]),
        ("from pagefile.ports.log import EntryQuery", ["pagefile.ports.log.EntryQuery"]),
        ("from pagefile import ports", ["pagefile.ports"]),
        ("import pagefile.stores.sqlite", ["pagefile.stores.sqlite"]),
        ("from pagefile.engine.engine import Engine", ["pagefile.engine.engine.Engine"]),
        ("from pagefile.engine import Memory\nX = 'an engine'", []),
    ],
)
def test_a_back_door_is_found(text: str, expected: list[str]):
    """The tests above can fail."""
    assert expected == [finding.what for finding in behind_the_verbs(Source.of(text))]
