"""What coding agents keep of their conversations: Claude Code and Codex, and what all readers of messages share.

Each has a pure reader from its JSON, or from the objects of its lines, to `Brought`. Summaries that an agent wrote for itself, notes
of its program and side conversations are left out, and counted: they are not what the user and the assistant said.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from pagefile.edge.recorder import Asked, Called
from pagefile.errors import TransferError
from pagefile.integrations.brought import (
    Brought,
    Said,
    items,
    mapping,
    moment,
    text,
    turns_of,
)
from pagefile.integrations.claude_code.shapes import ATTACHED
from pagefile.integrations.projects import project_user
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.agent_memory import texts_in

#: A message, or what was left out instead, in words.
Read: TypeAlias = Said | str
_T = TypeVar("_T")


def brought_of(read: Iterable[Read], conversation_id: str | None, user_id: str | None = None) -> Brought:
    found = list(read)
    left_out = Counter(one for one in found if isinstance(one, str))
    said = [one for one in found if isinstance(one, Said)]
    return turns_of(said, conversation_id, user_id) + Brought(left_out=dict(left_out))


def together(parts: Iterable[Brought]) -> Brought:
    return sum(parts, Brought())


def joined(content: object) -> str:
    return "\n".join(filter(None, texts_in(content)))


def arguments_of(given: object) -> object:
    if not isinstance(given, str):
        return given
    value, spelling = read_arguments(given)
    return {"arguments": given} if spelling == "text" else value


# -- Claude Code ------------------------------------------------------------------------------------------------------

#: How texts begin that Claude Code's program wrote into the user's messages.
_NOTES = (
    "<command-",
    "<local-command-",
    "<bash-",
    "<task-notification>",
    "Caveat: The messages below",
    "[Request interrupted",
)


def from_claude_code(data: object) -> Brought:
    """The lines of transcripts in `~/.claude/projects`. Each session is a conversation of its project's folder.

    Resumed sessions repeat the lines of the session before: these come once.
    """
    sessions: dict[str, list[Mapping[str, Any]]] = {}
    seen: set[str] = set()
    for line in map(mapping, items(data)):
        name, uuid = text(line.get("sessionId")), text(line.get("uuid"))
        if name is not None and (uuid is None or uuid not in seen):
            sessions.setdefault(name, []).append(line)
            seen |= {uuid} if uuid else set()
    if not sessions and items(data):
        raise TransferError("This is not a transcript of Claude Code: its lines have no `sessionId`.")
    return together(
        brought_of((one for line in lines for one in _claude_line(line)), name, _folder(lines))
        for name, lines in sessions.items()
    )


def _folder(lines: Iterable[Mapping[str, Any]]) -> str | None:
    folder = next((found for line in lines if (found := text(line.get("cwd")))), None)
    return None if folder is None else project_user(folder)


def _claude_line(line: Mapping[str, Any]) -> Iterator[Read]:
    if line.get("type") not in {"user", "assistant"}:
        return
    if line.get("isCompactSummary"):
        yield "summaries of the agent's own"
    elif line.get("isSidechain"):
        yield "messages of subagents"
    elif line.get("isMeta"):
        yield "notes of the program"
    else:
        message = mapping(line.get("message"))
        # The same prompt has this id where a hook recorded it.
        name = text(line.get("promptId")) if line["type"] == "user" else None
        yield from anthropic(
            str(message.get("role") or line["type"]),
            message.get("content"),
            name or text(line.get("uuid")),
            line,
        )


def anthropic(role: str, content: object, name: str | None, line: Mapping[str, Any]) -> Iterator[Read]:
    """A message of Anthropic's shape: its tool results are messages of their own, before those of a user, behind an assistant's calls."""
    at = moment(line.get("timestamp")) or moment(line.get("created_at"))
    blocks = [mapping(block) for block in items(content)]
    results = [
        Said("tool", joined(block.get("content")), at=at, call_id=text(block.get("tool_use_id")))
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    message = _message(role, content, blocks, name, at)
    yield from (*results, *message) if role == "user" else (*message, *results)


def _message(
    role: str, content: object, blocks: Sequence[Mapping[str, Any]], name: str | None, at: datetime | None
) -> Iterator[Read]:
    said = joined(content)
    if said.startswith(_NOTES):
        yield "notes of the program"
        return
    shown = tuple(block for block in blocks if block.get("type") in ATTACHED)
    if role == "user" and shown:
        # As a hook records it.
        said = "\n".join(filter(None, (said, Asked(shown).text)))
    calls = tuple(
        Called(str(block.get("name") or "tool"), block.get("input"), text(block.get("id")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    if said or calls:
        yield Said(role, said, name, calls, at)


# -- Codex ------------------------------------------------------------------------------------------------------------

#: How messages begin that Codex writes in the user's name.
_CODEX_NOTES = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "# AGENTS.md",
)
_CODEX_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})


def from_codex(data: object) -> Brought:
    """The lines of a session in `~/.codex/sessions`, a conversation of the folder it ran in; older ones have no envelope."""
    lines = [mapping(line) for line in items(data)]
    metas = [_payload(line) for line in lines if line.get("type") == "session_meta"] or lines[:1]
    name = next((found for meta in metas if (found := text(meta.get("id")))), None)
    if name is None:
        if lines:
            raise TransferError(
                "This is not a session of Codex: its first line does not say which (`session_meta`)."
            )
        return Brought()
    folder = next((found for meta in metas if (found := text(meta.get("cwd")))), None)
    whose = None if folder is None else project_user(folder)
    return brought_of(_codex_messages(lines), name, whose)


def _codex_messages(lines: Iterable[Mapping[str, Any]]) -> Iterator[Read]:
    """The messages; a prompt has the id of its turn, which a hook is told as well."""
    turn: str | None = None
    for line in lines:
        if line.get("type") == "turn_context":
            turn = text(_payload(line).get("turn_id"))
        for one in _codex_line(line):
            if isinstance(one, Said) and one.role == "user" and turn is not None:
                yield replace(one, id=turn)
                turn = None
            else:
                yield one


def _payload(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(line.get("payload")) if "payload" in line else line


def _codex_line(line: Mapping[str, Any]) -> Iterator[Read]:
    if line.get("type") == "compacted":
        yield "summaries of the agent's own"
        return
    item, at = _payload(line), moment(line.get("timestamp"))
    kind = item.get("type")
    if kind == "message":
        role, said = str(item.get("role") or ""), joined(item.get("content"))
        if role in {"developer", "system"} or said.startswith(_CODEX_NOTES):
            yield "notes of the program"
        elif said:
            yield Said(role, said, text(item.get("id")), at=at)
    elif kind in _CODEX_CALLS:
        given = item.get("arguments") or item.get("input") or item.get("action")
        call = Called(str(item.get("name") or kind), arguments_of(given), text(item.get("call_id")))
        yield Said("assistant", "", calls=(call,), at=at)
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        output = item.get("output")
        fields = mapping(output)
        shown = fields.get("content") if fields else output
        yield Said("tool", joined(shown), at=at, call_id=text(item.get("call_id")))


# -- branches ---------------------------------------------------------------------------------------------------------


def branch(nodes: Mapping[str, _T], leaf: str | None, parent: Callable[[_T], object]) -> list[_T]:
    """From the first message to a leaf, by their ids: edited prompts and answers that were made again are other branches."""
    found: list[_T] = []
    place: object = leaf
    while isinstance(place, str) and place in nodes and len(found) < len(nodes):
        found.append(nodes[place])
        place = parent(nodes[place])
    return found[::-1]


#: The reader for each format, by its name in `pagefile import --from`.
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {
    "claude-code": from_claude_code,
    "codex": from_codex,
}
#: Where programs keep what they write themselves, below the user's home, and how its files are called.
FOLDERS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": (".claude/projects", "*.jsonl"),
    "codex": (".codex/sessions", "rollout-*.jsonl"),
    "gemini": (".gemini/tmp", "session-*.json"),
}
