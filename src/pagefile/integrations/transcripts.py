"""What assistants and coding agents keep of their conversations: Claude Code, Codex, ChatGPT, Claude, Gemini.

Each has a pure reader from its JSON, or from the objects of its lines, to `Brought`. Summaries that an agent wrote for itself, notes
of its program and side conversations are left out, and counted: they are not what the user and the assistant said.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, Final, TypeAlias, cast
from uuid import NAMESPACE_URL, uuid5

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
        yield from _anthropic(
            str(message.get("role") or line["type"]),
            message.get("content"),
            name or text(line.get("uuid")),
            line,
        )


def _anthropic(role: str, content: object, name: str | None, line: Mapping[str, Any]) -> Iterator[Read]:
    """A message of Anthropic's shape: its tool results are messages of their own."""
    at = moment(line.get("timestamp")) or moment(line.get("created_at"))
    blocks = [mapping(block) for block in items(content)]
    for block in blocks:
        if block.get("type") == "tool_result":
            yield Said("tool", joined(block.get("content")), at=at, call_id=text(block.get("tool_use_id")))
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


# -- ChatGPT ----------------------------------------------------------------------------------------------------------


def from_chatgpt(data: object) -> Brought:
    """`conversations.json` of an export of ChatGPT: of each conversation the branch that is shown."""
    chats = [mapping(one) for one in items(data)]
    if items(data) and not any("mapping" in chat for chat in chats):
        raise TransferError(
            "This is not an export of ChatGPT: give its conversations.json, or the whole zip file."
        )
    return together(_chatgpt_chat(chat) for chat in chats)


def _chatgpt_chat(chat: Mapping[str, Any]) -> Brought:
    nodes, branch = mapping(chat.get("mapping")), list[Mapping[str, Any]]()
    place: object = chat.get("current_node")
    if not isinstance(place, str) or place not in nodes:
        place = next(reversed(list(nodes)), None)
    while isinstance(place, str) and place in nodes and len(branch) <= len(nodes):
        node = mapping(nodes[place])
        branch.append(mapping(node.get("message")))
        place = node.get("parent")
    name = text(chat.get("conversation_id")) or text(chat.get("id"))
    return brought_of((one for message in reversed(branch) for one in _chatgpt_message(message)), name)


def _chatgpt_message(message: Mapping[str, Any]) -> Iterator[Read]:
    content, author = mapping(message.get("content")), mapping(message.get("author"))
    role, kind = str(author.get("role") or ""), content.get("content_type")
    said = joined(content.get("parts")) or text(content.get("text")) or ""
    if not role or (not said and not items(content.get("parts"))):
        return
    hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    if role == "system" or hidden or kind in {"user_editable_context", "model_editable_context"}:
        yield "notes of the program"
        return
    if kind in {"thoughts", "reasoning_recap"}:
        yield "thoughts"
        return
    if any(isinstance(part, Mapping) for part in items(content.get("parts"))):
        yield "images and files"
    name, at = text(message.get("id")), moment(message.get("create_time"))
    recipient = text(message.get("recipient")) or "all"
    if role == "assistant" and recipient != "all":
        # The result follows and names its tool, not the call.
        yield Said(role, "", name, (Called(recipient, {"input": said}, None),), at)
    elif said:
        yield Said(role, said, name, at=at, tool=text(author.get("name")) if role == "tool" else None)


# -- Claude -----------------------------------------------------------------------------------------------------------


def from_claude(data: object) -> Brought:
    """`conversations.json` of an export of Claude's data."""
    chats = [mapping(one) for one in items(data)]
    if items(data) and not any("chat_messages" in chat for chat in chats):
        raise TransferError(
            "This is not an export of Claude: give its conversations.json, or the whole zip file."
        )
    return together(
        brought_of(
            (
                one
                for message in items(chat.get("chat_messages"))
                for one in _claude_message(mapping(message))
            ),
            text(chat.get("uuid")),
        )
        for chat in chats
    )


def _claude_message(message: Mapping[str, Any]) -> Iterator[Read]:
    role = str(message.get("sender") or "")
    content = items(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    attached = [text(mapping(one).get("extracted_content")) for one in items(message.get("attachments"))]
    texts = [{"type": "text", "text": one} for one in attached if one]
    yield from ("images and files" for _ in items(message.get("files")))
    yield from _anthropic(role, [*content, *texts], text(message.get("uuid")), message)


# -- Gemini -----------------------------------------------------------------------------------------------------------

#: How activities are called in which something was asked; a translation comes before a colon or a space as well.
_PROMPTED = "Prompted "


def from_gemini(data: object) -> Brought:
    """`MyActivity.json` of Google's Takeout (each day is a conversation: it names none), or a chat of Gemini's command line."""
    if isinstance(data, Mapping):
        chat = mapping(cast("object", data))
        if not isinstance(chat.get("messages"), list):
            raise TransferError("This is not a chat of Gemini: it has no `messages`.")
        return brought_of(
            (one for message in items(chat["messages"]) for one in _gemini_message(mapping(message))),
            text(chat.get("sessionId")),
        )
    activities = sorted(map(mapping, items(data)), key=lambda one: str(one.get("time") or ""))
    if activities and not any("title" in one and "time" in one for one in activities):
        raise TransferError(
            "This is not Gemini's activity: ask Takeout for My Activity, Gemini Apps, as JSON."
        )
    days: dict[str, list[Read]] = {}
    for activity in activities:
        day = f"gemini:{str(activity.get('time') or '')[:10]}"
        days.setdefault(day, []).extend(_gemini_activity(activity))
    return together(brought_of(said, day) for day, said in days.items())


def _gemini_activity(activity: Mapping[str, Any]) -> Iterator[Read]:
    title, at = text(activity.get("title")), moment(activity.get("time"))
    answer = "\n\n".join(
        filter(None, (_plain(mapping(one).get("html")) for one in items(activity.get("safeHtmlItem"))))
    )
    if title is None or (not answer and not title.startswith(_PROMPTED)):
        yield "activities that are not questions"
        return
    name = str(uuid5(NAMESPACE_URL, f"pagefile:gemini:{activity.get('time')}:{title}"))
    yield Said("user", title.removeprefix(_PROMPTED), name, at=at)
    if answer:
        yield Said("assistant", answer, at=at)


def _gemini_message(message: Mapping[str, Any]) -> Iterator[Read]:
    role = {"gemini": "assistant", "model": "assistant"}.get(
        str(message.get("type")), str(message.get("type"))
    )
    if role not in {"user", "assistant"}:
        yield "notes of the program"
        return
    at, calls = moment(message.get("timestamp")), [mapping(one) for one in items(message.get("toolCalls"))]
    made = tuple(
        Called(str(call.get("name") or "tool"), call.get("args"), text(call.get("id"))) for call in calls
    )
    yield Said(role, joined(message.get("content")), text(message.get("id")), made, at)
    for call in calls:
        shown = text(call.get("resultDisplay")) or _function_output(call.get("result"))
        yield Said("tool", shown, at=at, call_id=text(call.get("id")), tool=text(call.get("name")))


def _function_output(result: object) -> str:
    responses = [mapping(mapping(one).get("functionResponse")) for one in items(result)]
    return "\n".join(str(mapping(one.get("response")).get("output") or "") for one in responses)


class _Text(HTMLParser):
    """The text of a piece of HTML; blocks end a line."""

    _BLOCKS = frozenset({"p", "br", "li", "tr", "div", "pre", "h1", "h2", "h3", "h4", "h5", "h6"})

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._BLOCKS:
            self.said.append("\n")


def _plain(given: object) -> str:
    if not isinstance(given, str):
        return ""
    reader = _Text()
    reader.feed(given)
    reader.close()
    lines = (line.strip() for line in "".join(reader.said).splitlines())
    return "\n".join(line for line in lines if line)


#: The reader for each format, by its name in `pagefile import --from`.
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {
    "claude-code": from_claude_code,
    "codex": from_codex,
    "chatgpt": from_chatgpt,
    "claude": from_claude,
    "gemini": from_gemini,
}
#: Where programs keep what they write themselves, below the user's home, and how its files are called.
FOLDERS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": (".claude/projects", "*.jsonl"),
    "codex": (".codex/sessions", "rollout-*.jsonl"),
    "gemini": (".gemini/tmp", "session-*.json"),
}
