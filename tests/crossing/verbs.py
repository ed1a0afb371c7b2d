"""Every verb of `Memory` and `Conversation`, read from their signatures, and how a call of it is put together."""

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from traceback import format_exc
from typing import Any

from pagefile import Conversation, Memory
from pagefile.errors import PagefileError

from .answers import Answer, parsed, plain
from .uploads import upload
from .values import OUT, TOOL_CALLS, bulky, filled, value
from .world import Ask, Named, Reach

#: How often each is played, beside the others. A verb that is not here has no recipe.
WEIGHTS = {
    "Memory.conversations": 2, "Memory.turns": 3, "Memory.recall": 4, "Memory.remember": 3, "Memory.facts": 3, "Memory.retract": 2, "Memory.correct": 2,
    "Memory.fact_revisions": 2, "Memory.undo": 1, "Memory.import_facts": 1, "Memory.settle": 1, "Memory.call": 2, "Memory.forget": 3,
    "Memory.page": 2, "Memory.pages": 2, "Memory.peek": 3, "Memory.search_tool_history": 3, "Memory.purge": 1, "Memory.export": 2,
    "Memory.import_": 2, "Memory.describe": 1, "Memory.rebuild": 1,
    "Conversation.record": 6, "Conversation.begin": 3, "Conversation.extend": 2, "Conversation.messages": 3, "Conversation.fork": 2,
    "Conversation.step": 3, "Conversation.complete": 2, "Conversation.abort": 1, "Conversation.context": 6, "Conversation.recall": 3,
    "Conversation.load": 3, "Conversation.page": 2, "Conversation.pages": 2, "Conversation.search_tool_history": 3,
    "Conversation.fetched": 3, "Conversation.pin": 2, "Conversation.call_tool": 3, "Conversation.checkpoint": 2,
    "Conversation.reset": 1, "Conversation.turns": 2, "Conversation.log": 2, "Conversation.head": 2, "Conversation.session": 2, "Conversation.put_session": 2,
    "Conversation.checkpoints": 1, "Conversation.calls": 2, "Conversation.explain": 3, "Conversation.replay": 3,
    "Conversation.costs": 1, "Conversation.workspace": 3,
}  # fmt: skip
#: Verbs that are not played, and why.
LEFT_OUT = {
    "Memory.open": "opens the memory that all of them share",
    "Memory.connect": "the same",
    "Memory.close": "closes it for all of them",
    "Memory.settings": "what the memory was opened with",
    "Memory.conversation": "makes the handle of every call of a conversation here",
    "Conversation.id": "what the handle was made with",
    "Conversation.scope": "what the handle was made with",
}
#: What an operator asks of a tenant, also where a conversation is named without its user.
TENANT_WIDE = frozenset({"Memory.turns", "Memory.export", "Memory.forget", "Memory.purge"})
#: These name nobody, so there is nothing of anybody in what they return.
NAMES_NOBODY = frozenset({"Memory.settle", "Memory.describe", "Memory.rebuild"})
_MOMENTS = frozenset({"at", "as_of", "valid_from"})
#: The handle's own, beside whose memory it is.
_HANDLE = {"agent": False, "project": False, "language": False, "timezone": False, "incognito": False}


@dataclass(frozen=True, slots=True)
class Verb:
    """A method, and its parameters by whether they are required."""

    face: type
    method: str
    fields: dict[str, bool]

    @property
    def name(self) -> str:
        return f"{self.face.__name__}.{self.method}"

    @property
    def of_conversation(self) -> bool:
        return self.face is Conversation

    @property
    def names_nobody(self) -> bool:
        return self.name in NAMES_NOBODY

    @property
    def reach(self) -> Reach:
        return "tenant" if self.name in TENANT_WIDE else "conversation"


def verbs_of(*faces: type) -> dict[str, Verb]:
    """All there are."""
    found = [
        Verb(face, name, _fields(face, name))
        for face in faces
        for name in dir(face)
        if not name.startswith("_")
    ]
    return {verb.name: verb for verb in found}


def _fields(face: type, name: str) -> dict[str, bool]:
    member = inspect.getattr_static(face, name)
    if not inspect.isfunction(member):
        return {}
    return {
        one.name: one.default is inspect.Parameter.empty
        for one in list(inspect.signature(member).parameters.values())[1:]
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    }


@dataclass(frozen=True, slots=True)
class Deed:
    """A call that is ready to be made: what it says, and how it is made."""

    says: dict[str, Any]
    make: Callable[[], Awaitable[object]]


def deed_of(verb: Verb, ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    """One call of a verb."""
    if verb.name in SPECIAL:
        return SPECIAL[verb.name](ask, memory, named, folder)
    given = _timed(filled(verb.name, verb.fields, ask))
    if verb.of_conversation:
        handle, told = _handle(ask, memory, named)
        return Deed(told | given, lambda: getattr(handle, verb.method)(**given))
    given |= _whose(verb, named)
    return Deed(given, lambda: getattr(memory, verb.method)(**given))


def _timed(given: dict) -> dict:
    return {name: datetime.fromisoformat(one) if name in _MOMENTS else one for name, one in given.items()}


def _whose(verb: Verb, named: Named) -> dict[str, Any]:
    said = {"tenant": named.tenant, "user_id": named.user, "conversation_id": named.conversation}
    return {
        name: one
        for name, one in said.items()
        if name in verb.fields and (one is not None or verb.fields[name])
    }


def _handle(ask: Ask, memory: Memory, named: Named) -> tuple[Conversation, dict]:
    told = {"tenant": named.tenant, "user_id": named.user, **filled("Memory.conversation", _HANDLE, ask)}
    conversation = named.conversation or "today"
    return memory.conversation(conversation, **told), {"conversation_id": conversation, **told}


# -- verbs whose parameters are not values ---------------------------------------------------------------------------------


def _export(ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    said = {"tenant": named.tenant, "user_id": named.user, "conversation_id": named.conversation}

    async def make() -> object:
        counts = await memory.export(folder / "export.jsonl", **said)
        return [counts, *parsed((folder / "export.jsonl").read_text(encoding="utf-8"))]

    return Deed(said, make)


def _import(ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    text = upload(ask, of_user=False)

    async def make() -> object:
        (folder / "import.jsonl").write_text(text, encoding="utf-8")
        return await memory.import_(folder / "import.jsonl", tenant=named.tenant)

    return Deed({"tenant": named.tenant, "lines": text}, make)


def _rebuild(ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    return Deed({}, lambda: memory.rebuild(tenant=ask.dice.choice(ask.world.tenants)))


def _replay(ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    handle, told = _handle(ask, memory, named)
    call, changes = (
        str(value("Conversation.replay", "call_id", ask)),
        value("Conversation.replay", "changes", ask),
    )
    return Deed(told | {"call_id": call, "changes": changes}, lambda: handle.replay(call, **changes))


def _workspace(ask: Ask, memory: Memory, named: Named, folder: Path) -> Deed:
    handle, told = _handle(ask, memory, named)
    tool, given = ask.dice.choice(TOOL_CALLS)
    run, result = value("Conversation.workspace", "run", ask), bulky(ask)

    async def make() -> object:
        space = handle.workspace(None if run is OUT else run)
        before = await space.lookup(tool, given)
        return [before, await space.absorb(tool, given, result), space.text(), space.notes.get_stats()]

    return Deed(told | {"run": None if run is OUT else run, "result": result}, make)


SPECIAL = {
    "Memory.export": _export,
    "Memory.import_": _import,
    "Memory.rebuild": _rebuild,
    "Conversation.replay": _replay,
    "Conversation.workspace": _workspace,
}


async def returned(deed: Deed) -> Answer:
    """What a verb returns, or the error it raises: its own words, and those of what it came from."""
    try:
        result = await deed.make()
    except PagefileError as error:
        return Answer(type(error).__name__, f"{error} {error.__cause__}")
    except Exception:
        return Answer(500, format_exc())
    data = (
        plain({"id": result.id, "scope": result.scope}) if isinstance(result, Conversation) else plain(result)
    )
    return Answer(200, json.dumps(data, ensure_ascii=False, default=str), [data])
