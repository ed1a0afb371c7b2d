"""The commands of Anthropic's memory tool (`memory_20250818`) on a user's virtual `/memories`.

Notes are documents in the database, never files on disk, so no path leads outside. `/memories/facts.md` has what is known
about the user, a line for each fact: to change a line corrects the fact, to remove one retracts it, and a new one is remembered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from posixpath import normpath
from typing import Any, cast

from pagefile.compat.documents import Document, Documents
from pagefile.engine import Memory
from pagefile.errors import ConflictError, InvalidArgumentError, NotFoundError
from pagefile.records import DEFAULT_TENANT, Fact, Scope, checked_id

ROOT = "/memories"
FACTS = f"{ROOT}/facts.md"
COLLECTION = "memory-tool"
MAX_CHARS, MAX_LINES = 1_000_000, 999_999
#: How often an edit is repeated because somebody else changed the document meanwhile.
_ATTEMPTS = 5
_NUMBER_WIDTH = 6
_SIZES = ("B", "K", "M", "G")
_FACTS_ARE_LISTED = (
    f"{FACTS} lists what is known about the user and cannot be {{done}}. "
    "Change or remove single lines with str_replace, add lines with insert."
)


class MemoryFileError(Exception):
    """What the model is told when a command cannot be carried out."""


@dataclass(frozen=True, slots=True)
class MemoryFiles:
    """A user's `/memories`, for any loop: `await files.call({"command": "view", "path": "/memories"})`."""

    memory: Memory
    scope: Scope

    @classmethod
    def of(cls, memory: Memory, user_id: str, tenant: str | None = None) -> "MemoryFiles":
        named = DEFAULT_TENANT if tenant is None else checked_id(tenant, "tenant")
        return cls(memory, Scope(named, checked_id(user_id, "user_id")))

    async def call(self, command: Mapping[str, Any]) -> str:
        """The text for the model; a command that cannot be carried out raises `MemoryFileError`, which says why."""
        name = command.get("command")
        takes = _ARGUMENTS.get(name) if isinstance(name, str) else None
        if takes is None:
            raise MemoryFileError(f"Unknown command {name!r}: use one of {', '.join(_ARGUMENTS)}.")
        given: dict[str, Any] = {}
        for argument, kind in takes.items():
            value = command.get(argument)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise MemoryFileError(f"The command {name} needs `{argument}`.")
            given[argument] = value
        try:
            return await getattr(self, cast("str", name))(**given)
        except (ConflictError, InvalidArgumentError, NotFoundError) as error:
            raise MemoryFileError(str(error)) from error

    async def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        wanted = _checked(path)
        content = await self._content(wanted)
        if content is None:
            return await self._listing(path, wanted)
        lines = content.split("\n")
        if len(lines) > MAX_LINES:
            raise MemoryFileError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        start, end = 1, len(lines)
        if view_range is not None and len(view_range) == 2:
            if not all(type(line) is int for line in view_range):
                raise MemoryFileError("`view_range` must be two line numbers, as in [1, 10] or [11, -1].")
            start, end = max(1, view_range[0]), len(lines) if view_range[1] == -1 else view_range[1]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, start, end)

    async def create(self, path: str, file_text: str) -> str:
        wanted = self._file(path)
        if wanted == FACTS or await self._documents.at(wanted) is not None:
            raise MemoryFileError(f"File {path} already exists")
        await self._check_free(path, wanted)
        await self._documents.create(wanted, _bounded(file_text))
        return f"File created successfully at: {path}"

    async def str_replace(self, path: str, old_str: str, new_str: str) -> str:
        def edited(content: str) -> str:
            count = content.count(old_str) if old_str else 0
            if count == 0:
                raise MemoryFileError(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {path}."
                )
            if count > 1:
                lines = ", ".join(map(str, _lines_with(content, old_str)))
                raise MemoryFileError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            return content.replace(old_str, new_str)

        before, after = await self._edited(path, edited)
        changed = before[: before.find(old_str)].count("\n") + 1
        lines = after.split("\n")
        shown = _numbered(lines, max(1, changed - 2), min(len(lines), changed + 2))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    async def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        def edited(content: str) -> str:
            lines = content.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= insert_line <= len(lines):
                raise MemoryFileError(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(insert_line, insert_text.rstrip("\n"))
            return "\n".join(lines) + "\n"

        await self._edited(path, edited)
        return f"The file {path} has been edited."

    async def delete(self, path: str) -> str:
        wanted = _checked(path)
        if wanted == ROOT:
            raise MemoryFileError("Cannot delete the /memories directory itself")
        if wanted == FACTS:
            raise MemoryFileError(_FACTS_ARE_LISTED.format(done="deleted"))
        below = await self._below(wanted)
        if not below:
            raise MemoryFileError(f"The path {path} does not exist")
        await self._documents.delete(*below)
        return f"Successfully deleted {path}"

    async def rename(self, old_path: str, new_path: str) -> str:
        old, new = _checked(old_path), self._file(new_path)
        if old == ROOT:
            raise MemoryFileError("Cannot rename the /memories directory itself")
        if FACTS in {old, new}:
            raise MemoryFileError(_FACTS_ARE_LISTED.format(done="renamed"))
        if await self._below(new):
            raise MemoryFileError(f"The destination {new_path} already exists")
        below = await self._below(old)
        if not below:
            raise MemoryFileError(f"The path {old_path} does not exist")
        if new.startswith(f"{old}/"):
            raise MemoryFileError(f"The destination {new_path} is inside {old_path}")
        await self._check_free(new_path, new)
        await self._documents.move({new + one.path.removeprefix(old): one for one in below})
        return f"Successfully renamed {old_path} to {new_path}"

    async def clear(self) -> str:
        """Delete every note; what is known about the user stays."""
        await self._documents.delete(*await self._documents.all())
        return "All memory cleared"

    # -- notes ---------------------------------------------------------------------------------------------------------

    @property
    def _documents(self) -> Documents:
        return Documents(self.memory, self.scope, COLLECTION)

    def _file(self, path: str) -> str:
        wanted = _checked(path)
        if wanted == ROOT:
            raise MemoryFileError(f"The path {path} is a directory: name a file in it.")
        return wanted

    async def _check_free(self, path: str, wanted: str) -> None:
        """Refuse a file where a directory is, and one below another file."""
        if await self._below(wanted):
            raise MemoryFileError(f"The path {path} is a directory.")
        parents = wanted.split("/")[2:-1]
        for depth in range(1, len(parents) + 1):
            parent = "/".join((ROOT, *parents[:depth]))
            if parent == FACTS or await self._documents.at(parent) is not None:
                raise MemoryFileError(f"The path {parent} is a file, not a directory.")

    async def _below(self, path: str) -> list[Document]:
        """The file at a path, or the files of a directory."""
        found = await self._documents.all()
        return [one for one in found if one.path == path or one.path.startswith(f"{path}/")]

    async def _content(self, path: str) -> str | None:
        if path == FACTS:
            return _listed(await self._facts())
        found = await self._documents.at(path)
        return None if found is None else found.content

    async def _listing(self, path: str, wanted: str) -> str:
        sizes = {one.path: len(one.content.encode()) for one in await self._below(wanted)}
        if wanted == ROOT:
            sizes[FACTS] = len(_listed(await self._facts()).encode())
        if not sizes:
            raise MemoryFileError(f"The path {path} does not exist. Please provide a valid path.")
        entries: dict[str, int] = {}
        for name, size in sizes.items():
            parts = name.removeprefix(f"{wanted}/").split("/")
            if any(part.startswith(".") for part in parts):
                continue
            for depth in range(1, min(2, len(parts)) + 1):
                shown = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                entries[shown] = entries.get(shown, 0) + size
        lines = [f"{_size(sum(sizes.values()))}\t{wanted}"]
        lines += [f"{_size(entries[name])}\t{wanted}/{name}" for name in sorted(entries)]
        header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join((header, *lines))

    async def _edited(self, path: str, edit: Any) -> tuple[str, str]:
        wanted = _checked(path)
        if wanted == FACTS:
            return await self._edit_facts(edit)
        for attempt in range(_ATTEMPTS):
            found = await self._documents.at(wanted)
            if found is None:
                missing = not await self._below(wanted)
                told = "does not exist. Please provide a valid path." if missing else "is not a file."
                raise MemoryFileError(f"The path {path} {told}")
            after = _bounded(edit(found.content))
            try:
                await self._documents.change(found, content=after)
            except ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            return found.content, after
        raise AssertionError("unreachable")

    # -- facts ---------------------------------------------------------------------------------------------------------

    async def _facts(self) -> list[Fact]:
        return await self.memory.facts(cast("str", self.scope.user), self.scope.tenant)

    async def _edit_facts(self, edit: Any) -> tuple[str, str]:
        facts = await self._facts()
        before = _listed(facts)
        user, tenant = cast("str", self.scope.user), self.scope.tenant
        old, new = before.split("\n"), edit(before).split("\n")
        # One line may hold several words of a changed fact: whole lines are compared.
        for kind, first, last, start, end in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            gone = [facts[place] for place in range(first, last) if place < len(facts)]
            said = [text for line in new[start:end] if (text := line.strip().removeprefix("-").strip())]
            for fact, text in zip(gone, said, strict=False):
                await self.memory.correct(fact.id, text, user_id=user, tenant=tenant)
            for fact in gone[len(said) :]:
                await self.memory.retract(fact.id, user_id=user, tenant=tenant)
            for text in said[len(gone) :]:
                await self.memory.remember(text, user_id=user, tenant=tenant)
        return before, _listed(await self._facts())


#: The arguments of each command, and their kind.
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "view": {"path": str, "view_range": (list, tuple, type(None))},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}


def _checked(path: str) -> str:
    """The path without `.`, `..` and doubled slashes, if it is within `/memories`."""
    if not path.startswith(ROOT):
        raise MemoryFileError(f"Path must start with /memories, got: {path}")
    wanted = normpath(path)
    if wanted != ROOT and not wanted.startswith(f"{ROOT}/"):
        raise MemoryFileError(f"Path {path} would escape /memories directory")
    return wanted


def _bounded(text: str) -> str:
    if len(text) > MAX_CHARS:
        raise MemoryFileError(
            f"The file would have {len(text)} characters, at most {MAX_CHARS} are kept: split it."
        )
    return text


def _listed(facts: Sequence[Fact]) -> str:
    return "\n".join(f"- {' '.join(fact.text.split())}" for fact in facts) + ("\n" if facts else "")


def _numbered(lines: Sequence[str], start: int, end: int) -> str:
    return "\n".join(
        f"{start + place:>{_NUMBER_WIDTH}}\t{line}" for place, line in enumerate(lines[start - 1 : end])
    )


def _lines_with(content: str, wanted: str) -> list[int]:
    found, at = list[int](), content.find(wanted)
    while at != -1:
        found.append(content.count("\n", 0, at) + 1)
        at = content.find(wanted, at + 1)
    return found


def _size(size: int) -> str:
    unit = min(max(0, (size.bit_length() - 1) // 10), len(_SIZES) - 1)
    scaled = size / 1024**unit
    return f"{scaled:.0f}{_SIZES[unit]}" if scaled == int(scaled) else f"{scaled:.1f}{_SIZES[unit]}"
