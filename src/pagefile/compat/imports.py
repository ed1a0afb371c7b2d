"""What the MCP reference memory server and Anthropic's memory tool keep in files, taken over into a user's memory."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio.to_thread

from pagefile.compat.knowledge_graph import KnowledgeGraph
from pagefile.compat.memory_files import ROOT, MemoryFileError, MemoryFiles
from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError, TransferError
from pagefile.shapes.skeleton import as_object

Take = Callable[[Memory, Path, str, str | None], Awaitable[Counter[str]]]


async def take_graph(memory: Memory, path: Path, user_id: str, tenant: str | None = None) -> Counter[str]:
    """The entities and relations of a `memory.jsonl`; counts what was new, known and rejected."""
    entities, relations = await anyio.to_thread.run_sync(_graph, path)
    graph, counts = KnowledgeGraph.of(memory, user_id, tenant), Counter[str]()
    for one in entities:
        await _counted(counts, graph, "create_entities", "entities", one)
        added: dict[str, Any] = {"entityName": one.get("name"), "contents": one.get("observations") or []}
        # An entity that is there already gets what it lacks.
        await _counted(counts, graph, "add_observations", "observations", added)
    for one in relations:
        await _counted(counts, graph, "create_relations", "relations", one)
    return counts


async def _counted(
    counts: Counter[str], graph: KnowledgeGraph, tool: str, name: str, one: Mapping[str, Any]
) -> None:
    try:
        (result,) = (await graph.call(tool, {name: [one]})).structured.values()
    except InvalidArgumentError:
        counts["rejected"] += 1
        return
    if tool == "add_observations":
        counts["fact"] += len(result[0]["addedObservations"])
    elif result:
        counts["fact"] += len(one.get("observations") or []) if tool == "create_entities" else 1
    else:
        counts["known"] += 1


def _graph(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"entity": [], "relation": []}
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
            if not line.strip():
                continue
            record = as_object(json.loads(line)) or {}
            kind = record.pop("type", None)
            if kind not in found:
                raise TransferError(
                    f"Line {number} of {str(path)!r} is neither an entity nor a relation: give the memory.jsonl of "
                    "@modelcontextprotocol/server-memory."
                )
            found[kind].append(record)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, TransferError):
            raise
        raise TransferError(f"Cannot read {str(path)!r} as lines of JSON: {error}.") from error
    return found["entity"], found["relation"]


async def take_files(memory: Memory, path: Path, user_id: str, tenant: str | None = None) -> Counter[str]:
    """The files of a folder `memories` as the user's `/memories`; a file that exists there is left as it is."""
    files, counts = MemoryFiles.of(memory, user_id, tenant), Counter[str]()
    for name, text in await anyio.to_thread.run_sync(_texts, path):
        try:
            await files.call({"command": "create", "path": f"{ROOT}/{name}", "file_text": text})
        except MemoryFileError as error:
            counts["known" if "already exists" in str(error) else "rejected"] += 1
        else:
            counts["file"] += 1
    return counts


def _texts(folder: Path) -> list[tuple[str, str]]:
    root = folder / "memories" if (folder / "memories").is_dir() else folder
    if not root.is_dir():
        raise TransferError(
            f"{str(folder)!r} is not a folder: give the one that holds the memory tool's files."
        )
    try:
        paths = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
        return [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]
    except (OSError, ValueError) as error:
        raise TransferError(f"Cannot read the files of {str(root)!r} as text: {error}.") from error


#: What takes over each, by its name in `pagefile import --from`.
TAKES: Final[Mapping[str, Take]] = {"reference-memory": take_graph, "memory-tool": take_files}
