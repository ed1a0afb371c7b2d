"""What assistants and coding agents keep of their conversations: Claude Code, Codex, ChatGPT, Claude, Gemini, Letta, Zep.

Each has a pure reader from its JSON, or from the objects of its lines, to `Brought`. Summaries that an agent wrote for itself, notes
of its program and side conversations are left out, and counted: they are not what the user and the assistant said.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any, Final, TypeAlias, cast
from uuid import NAMESPACE_URL, uuid5

from pagefile.errors import TransferError
from pagefile.integrations.brought import (
    Brought,
    BroughtFact,
    Said,
    facts_brought,
    items,
    mapping,
    moment,
    text,
    turns_of,
)
from pagefile.integrations.projects import project_user
from pagefile.integrations.recorder import Called
from pagefile.shapes.tool_arguments import read_arguments
from pagefile.standalone.agent_memory import texts_in

#: A message, or what was left out instead, in words.
Read: TypeAlias = Said | str


def _brought(read: Iterable[Read], conversation_id: str | None, user_id: str | None = None) -> Brought:
    found = list(read)
    left_out = Counter(one for one in found if isinstance(one, str))
    said = [one for one in found if isinstance(one, Said)]
    return turns_of(said, conversation_id, user_id) + Brought(left_out=dict(left_out))


def _all(parts: Iterable[Brought]) -> Brought:
    return sum(parts, Brought())


def _joined(content: object) -> str:
    return "\n".join(filter(None, texts_in(content)))


def _arguments(given: object) -> object:
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
    return _all(
        _brought((one for line in lines for one in _claude_line(line)), name, _folder(lines))
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
            yield Said("tool", _joined(block.get("content")), at=at, call_id=text(block.get("tool_use_id")))
    said = _joined(content)
    if said.startswith(_NOTES):
        yield "notes of the program"
        return
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
    return _brought(_codex_messages(lines), name, whose)


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
        role, said = str(item.get("role") or ""), _joined(item.get("content"))
        if role in {"developer", "system"} or said.startswith(_CODEX_NOTES):
            yield "notes of the program"
        elif said:
            yield Said(role, said, text(item.get("id")), at=at)
    elif kind in _CODEX_CALLS:
        given = item.get("arguments") or item.get("input") or item.get("action")
        call = Called(str(item.get("name") or kind), _arguments(given), text(item.get("call_id")))
        yield Said("assistant", "", calls=(call,), at=at)
    elif isinstance(kind, str) and kind.endswith("_call_output"):
        output = item.get("output")
        fields = mapping(output)
        shown = fields.get("content") if fields else output
        yield Said("tool", _joined(shown), at=at, call_id=text(item.get("call_id")))


# -- ChatGPT ----------------------------------------------------------------------------------------------------------


def from_chatgpt(data: object) -> Brought:
    """`conversations.json` of an export of ChatGPT: of each conversation the branch that is shown."""
    chats = [mapping(one) for one in items(data)]
    if items(data) and not any("mapping" in chat for chat in chats):
        raise TransferError(
            "This is not an export of ChatGPT: give its conversations.json, or the whole zip file."
        )
    return _all(_chatgpt_chat(chat) for chat in chats)


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
    return _brought((one for message in reversed(branch) for one in _chatgpt_message(message)), name)


def _chatgpt_message(message: Mapping[str, Any]) -> Iterator[Read]:
    content, author = mapping(message.get("content")), mapping(message.get("author"))
    role, kind = str(author.get("role") or ""), content.get("content_type")
    said = _joined(content.get("parts")) or text(content.get("text")) or ""
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
    return _all(
        _brought(
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
        return _brought(
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
    return _all(_brought(said, day) for day, said in days.items())


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
    yield Said(role, _joined(message.get("content")), text(message.get("id")), made, at)
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


# -- Letta ------------------------------------------------------------------------------------------------------------

#: Blocks of memory that say something about the user, not about the agent.
_ABOUT_USER = frozenset({"human", "user"})
_SEND_MESSAGE = "send_message"


def from_letta(data: object) -> Brought:
    """An agent file (`.af`), or what the API lists as an agent's messages: messages as turns, each line of the block "human" as a fact."""
    if isinstance(data, list):
        return _brought(
            (one for raw in items(cast("object", data)) for one in _letta_message(mapping(raw))), None
        )
    file = mapping(data)
    agents = [mapping(one) for one in items(file.get("agents"))] or [file]
    if not any(isinstance(agent.get("messages"), list) for agent in agents):
        raise TransferError("This is not an agent file of Letta: it has no `messages`.")
    blocks = [*items(file.get("blocks")), *items(file.get("core_memory"))]
    facts = [fact for block in blocks for fact in _letta_block(mapping(block))]
    return _all(_letta_agent(agent) for agent in agents) + facts_brought(facts)


def _letta_agent(agent: Mapping[str, Any]) -> Brought:
    name = text(agent.get("id")) or text(agent.get("name"))
    return _brought(
        (one for raw in items(agent.get("messages")) for one in _letta_message(mapping(raw))), name
    )


def _letta_block(block: Mapping[str, Any]) -> Iterator[BroughtFact | str]:
    if block.get("label") not in _ABOUT_USER:
        yield "blocks that are not about the user"
        return
    at = moment(block.get("updated_at")) or moment(block.get("created_at"))
    for line in str(block.get("value") or "").splitlines():
        if said := line.strip().lstrip("-*• ").strip():
            yield BroughtFact(said, at=at)


def _letta_message(message: Mapping[str, Any]) -> Iterator[Read]:
    kind = str(message.get("message_type") or message.get("role") or "").removesuffix("_message")
    at = moment(message.get("date")) or moment(message.get("created_at"))
    name, content = text(message.get("id")), message.get("content")
    if kind in {"system", "reasoning", "hidden_reasoning"}:
        yield "thoughts" if "reasoning" in kind else "notes of the program"
        return
    if kind in {"tool", "tool_return"}:
        shown = text(message.get("tool_return")) or _joined(content)
        yield Said(
            "tool", shown, at=at, call_id=text(message.get("tool_call_id")), tool=text(message.get("name"))
        )
        return
    calls = [_letta_call(mapping(one)) for one in items(message.get("tool_calls"))]
    if mapping(message.get("tool_call")):
        calls.append(_letta_call(mapping(message["tool_call"])))
    # Older agents speak by calling a tool.
    spoken = [str(mapping(call.input).get("message") or "") for call in calls if call.tool == _SEND_MESSAGE]
    others = tuple(call for call in calls if call.tool != _SEND_MESSAGE)
    said = "\n".join(filter(None, [_joined(content) if kind != "assistant" or not spoken else "", *spoken]))
    if said or others:
        yield Said("assistant" if kind == "tool_call" else kind, said, name, others, at)


def _letta_call(call: Mapping[str, Any]) -> Called:
    function = mapping(call.get("function")) or call
    name = text(call.get("id")) or text(call.get("tool_call_id"))
    return Called(str(function.get("name") or "tool"), _arguments(function.get("arguments")), name)


# -- Zep --------------------------------------------------------------------------------------------------------------


def from_zep(data: object) -> Brought:
    """What Zep's API returns for threads or sessions (`messages`) and for a user's graph (`edges` or `facts`), or a list of either."""
    answers = [mapping(one) for one in (items(data) or [data])]
    if not any({"messages", "edges", "facts"} & set(answer) for answer in answers):
        raise TransferError("This is not a dump of Zep: it has neither messages nor edges nor facts.")
    return _all(_zep_answer(answer) for answer in answers)


def _zep_answer(answer: Mapping[str, Any]) -> Brought:
    thread, user = (text(answer.get(name)) for name in ("thread_id", "user_id"))
    thread = thread or text(answer.get("session_id"))
    messages = (_zep_message(mapping(one)) for one in items(answer.get("messages")))
    facts = [*items(answer.get("edges")), *items(answer.get("facts"))]
    return _brought(messages, thread, user) + facts_brought([_zep_fact(one, user) for one in facts])


def _zep_message(message: Mapping[str, Any]) -> Said:
    role = str(message.get("role_type") or message.get("role") or "")
    at = moment(message.get("created_at"))
    return Said(role, text(message.get("content")) or "", text(message.get("uuid")), at=at)


def _zep_fact(given: object, user: str | None) -> BroughtFact | str:
    edge = mapping(given)
    said = text(edge.get("fact")) or text(given)
    if said is None:
        return "facts without text"
    if edge.get("invalid_at") or edge.get("expired_at"):
        return "facts that are no longer valid"
    at = moment(edge.get("valid_at")) or moment(edge.get("created_at"))
    return BroughtFact(said, user, at)


#: The reader for each format, by its name in `pagefile import --from`.
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {
    "claude-code": from_claude_code,
    "codex": from_codex,
    "chatgpt": from_chatgpt,
    "claude": from_claude,
    "gemini": from_gemini,
    "letta": from_letta,
    "zep": from_zep,
}
#: Where programs keep what they write themselves, below the user's home, and how its files are called.
FOLDERS: Final[Mapping[str, tuple[str, str]]] = {
    "claude-code": (".claude/projects", "*.jsonl"),
    "codex": (".codex/sessions", "rollout-*.jsonl"),
    "gemini": (".gemini/tmp", "session-*.json"),
}
