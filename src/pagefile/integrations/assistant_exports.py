"""What people take out of their assistants: the exports of ChatGPT and Claude, and Google's Takeout of Gemini.

Of a conversation with branches the one that is shown comes over. Pictures and files are named in the text, and counted: their bytes are
not imported. What a program wrote itself, thoughts, and what was deleted are left out and counted.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, Final, cast

from pagefile.edge.recorder import Called
from pagefile.errors import TransferError
from pagefile.integrations.brought import Brought, Said, items, mapping, moment, named, text
from pagefile.integrations.transcripts import Read, anthropic, branch, brought_of, joined, together

_OTHER_BRANCHES = "messages of other branches"
_FILES = "images and files"
#: The name of the step that has an attached file's text.
_ATTACHMENT = "attachment"


def _chats(data: object) -> list[Mapping[str, Any]]:
    """The conversations of a file; newer exports have a file for each."""
    listed = items(cast("object", data)) if isinstance(data, list) else (data,)
    return [mapping(one) for one in listed]


def _left(count: int, what: str) -> Brought:
    return Brought(left_out={what: count} if count else {})


# -- ChatGPT ----------------------------------------------------------------------------------------------------------

#: What ChatGPT writes into its answers for its own pages: private characters around a citation, or 【12†source】.
_CITATION = re.compile(r"\s?(?:\ue200[^\ue200\ue201]*\ue201|【\d+(?::\d+)?†[^】]*】)")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_CONTEXTS = frozenset({"user_editable_context", "model_editable_context"})


def from_chatgpt(data: object) -> Brought:
    """`conversations.json` of an export of ChatGPT: of each conversation the branch that is shown."""
    chats = _chats(data)
    if chats and not any("mapping" in chat for chat in chats):
        raise TransferError(
            "This is not an export of ChatGPT: give its conversations.json, or the whole zip file."
        )
    return together(_chatgpt_chat(chat) for chat in chats)


def _chatgpt_chat(chat: Mapping[str, Any]) -> Brought:
    nodes = {name: mapping(node) for name, node in mapping(chat.get("mapping")).items()}
    leaf = text(chat.get("current_node"))
    shown = branch(
        nodes, leaf if leaf in nodes else next(reversed(nodes), None), lambda node: node.get("parent")
    )
    name = text(chat.get("conversation_id")) or text(chat.get("id"))
    # Most messages have no time of their own.
    began = chat.get("create_time")
    messages = ({"create_time": began, **_known(mapping(node.get("message")))} for node in shown)
    others = sum(bool(_words(mapping(node.get("message")))) for node in nodes.values() if node not in shown)
    read = (one for message in messages for one in _chatgpt_message(message))
    return brought_of(read, name) + _left(others, _OTHER_BRANCHES)


def _known(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value is not None}


def _words(message: Mapping[str, Any]) -> str:
    content = mapping(message.get("content"))
    said = joined(content.get("parts")) or text(content.get("text")) or text(content.get("result")) or ""
    return _CITATION.sub("", said).strip()


def _chatgpt_message(message: Mapping[str, Any]) -> Iterator[Read]:
    content, author = mapping(message.get("content")), mapping(message.get("author"))
    role, kind = str(author.get("role") or ""), content.get("content_type")
    said, shown = _words(message), _shown(items(content.get("parts")))
    if kind in _THOUGHTS:
        yield "thoughts"
        return
    if kind not in _CONTEXTS and (not role or not (said or shown)):
        return
    hidden = mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
    if role == "system" or hidden or kind in _CONTEXTS:
        yield "notes of the program"
        return
    yield from (_FILES for _ in shown)
    if not said:
        said = "\n".join(shown)
    name, at = text(message.get("id")), moment(message.get("create_time"))
    recipient = text(message.get("recipient")) or "all"
    if role == "assistant" and recipient != "all":
        # The result follows and names its tool, not the call.
        yield Said(role, "", name, (Called(recipient, {"input": said}, None),), at)
    else:
        yield Said(role, said, name, at=at, tool=text(author.get("name")) if role == "tool" else None)


def _shown(parts: Sequence[object]) -> list[str]:
    """What a message shows besides its text: `[image]`. The text of a voice is a part of its own."""
    kinds = (str(fields.get("content_type") or "") for fields in map(mapping, parts) if fields)
    return [f"[{kind.partition('_')[0] or 'file'}]" for kind in kinds if kind != "audio_transcription"]


# -- Claude -----------------------------------------------------------------------------------------------------------


def from_claude(data: object) -> Brought:
    """`conversations.json` of an export of Claude's data, or a conversation of its own: the branch that was open last."""
    chats = _chats(data)
    if chats and not any("chat_messages" in chat or "uuid" in chat for chat in chats):
        raise TransferError(
            "This is not an export of Claude: give its conversations.json, or the whole zip file."
        )
    return together(_claude_chat(chat) for chat in chats)


def _claude_chat(chat: Mapping[str, Any]) -> Brought:
    messages = [mapping(one) for one in items(chat.get("chat_messages"))]
    named = {name: one for one in messages if (name := text(one.get("uuid")))}
    leaf = text(chat.get("current_leaf_message_uuid"))
    shown = messages
    if any(one.get("parent_message_uuid") in named for one in messages):
        newest = max(messages, key=lambda one: str(one.get("created_at") or ""))
        last = leaf if leaf in named else text(newest.get("uuid"))
        shown = branch(named, last, lambda one: one.get("parent_message_uuid"))
    read = (one for message in shown for one in _claude_message(message))
    return brought_of(read, text(chat.get("uuid"))) + _left(len(messages) - len(shown), _OTHER_BRANCHES)


def _claude_message(message: Mapping[str, Any]) -> Iterator[Read]:
    role, at = str(message.get("sender") or ""), moment(message.get("created_at"))
    content = items(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    yield from ("thoughts" for block in content if mapping(block).get("type") == "thinking")
    attached, files = (list(map(mapping, items(message.get(name)))) for name in ("attachments", "files"))
    yield from (_FILES for _ in files)
    names = [{"type": "text", "text": f"[file: {one.get('file_name')}]"} for one in (*attached, *files)]
    yield from anthropic(
        {"human": "user"}.get(role, role), [*content, *names], text(message.get("uuid")), message
    )
    for one in attached:
        # A result beside the prompt: a long one becomes a page, and the prompt stays what was said.
        if extracted := text(one.get("extracted_content")):
            name = f"{message.get('uuid')}:{one.get('file_name')}"
            given = Called(_ATTACHMENT, {"file_name": one.get("file_name")}, name)
            yield Said("assistant", "", calls=(given,), at=at)
            yield Said("tool", extracted, at=at, call_id=name)


# -- Gemini -----------------------------------------------------------------------------------------------------------

#: How activities are called in which something was asked, and in which not; in other languages, an answer tells.
_ASKED = (
    "Prompted with: ",
    "Prompted ",
    "Asked Gemini: ",
    "Asked Bard: ",
    "Asked ",
    "Said ",
    "Branched ",
    "Answered ",
)
_NOT_ASKED = (
    "Added ",
    "Created ",
    "Deleted ",
    "Edited ",
    "Exported ",
    "Gave ",
    "Pinned ",
    "Renamed ",
    "Selected ",
    "Shared ",
    "Updated ",
    "Used ",
    "Viewed ",
)
_ATTACHED = re.compile(r"\s*Attached \d+ files?\.?\s*$", re.IGNORECASE)
_PRODUCTS = ("gemini", "bard")


def from_gemini(data: object) -> Brought:
    """`MyActivity.json` of Google's Takeout (each day is a conversation: it names none), a conversation of its "Conversation History",
    or a chat of Gemini's command line.
    """
    if isinstance(data, Mapping):
        chat = mapping(cast("object", data))
        if isinstance(chat.get("conversation_turns"), list):
            return _gemini_conversation(chat)
        if not isinstance(chat.get("messages"), list):
            raise TransferError("This is not a chat of Gemini: it has no `messages`.")
        read = (one for message in items(chat["messages"]) for one in _gemini_message(mapping(message)))
        return brought_of(read, text(chat.get("sessionId")))
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
    labels = [
        str(one).casefold() for one in (activity.get("header"), *items(activity.get("products"))) if one
    ]
    if labels and not any(product in label for label in labels for product in _PRODUCTS):
        yield "activities of other products"
        return
    title, at = text(activity.get("title")), moment(activity.get("time"))
    answer = "\n\n".join(
        filter(None, (_plain(mapping(one).get("html")) for one in items(activity.get("safeHtmlItem"))))
    )
    verb = None if title is None else next((verb for verb in _ASKED if title.startswith(verb)), None)
    if title is None or (verb is None and (not answer or title.startswith(_NOT_ASKED))):
        yield "activities that are not questions"
        return
    asked, attached = _ATTACHED.subn("", title.removeprefix(verb or ""))
    yield from (_FILES for _ in range(attached))
    name = named(f"pagefile:gemini:{activity.get('time')}:{title}")
    yield Said("user", asked or "[file]", name, at=at)
    if answer:
        yield Said("assistant", answer, at=at)


def _gemini_conversation(chat: Mapping[str, Any]) -> Brought:
    """Turns of the user and of the model; the file names the conversation by the time when it began."""
    name = f"gemini:{chat.get('creation_time')}"
    return brought_of(
        (one for turn in items(chat["conversation_turns"]) for one in _gemini_turn(mapping(turn), name)), name
    )


def _gemini_turn(turn: Mapping[str, Any], conversation: str) -> Iterator[Read]:
    asked, answered = mapping(turn.get("user_turn")), mapping(turn.get("system_turn"))
    for role, one in (("user", asked), ("assistant", answered)):
        if not one:
            continue
        if one.get("turn_deleted_time"):
            yield "deleted messages"
            continue
        yield from ("thoughts" for _ in items(one.get("model_thoughts")))
        yield from (_FILES for _ in items(one.get("images")))
        said = text(one.get("prompt")) if role == "user" else "\n\n".join(_gemini_texts(one.get("text")))
        place = f"pagefile:{conversation}:{role}:{one.get('turn_index')}:{said}"
        at = moment(one.get("turn_last_modified"))
        yield Said(role, said or "[file]", named(place), at=at)


def _gemini_texts(parts: object) -> Iterator[str]:
    for part in map(mapping, items(parts)):
        shown = (part.get("data"), *(mapping(card).get("content") for card in items(part.get("cards"))))
        yield from filter(None, map(text, shown))


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

    _BLOCKS = frozenset({"p", "li", "tr", "div", "pre", "h1", "h2", "h3", "h4", "h5", "h6"})

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "br":
            self.said.append("\n")

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
    "chatgpt": from_chatgpt,
    "claude": from_claude,
    "gemini": from_gemini,
}
#: The files of an export that comes as an archive, by their paths in it.
IN_ARCHIVES: Final[Mapping[str, str]] = {
    "chatgpt": r"(?:.*/)?conversations[^/]*\.json",
    "claude": r"(?:.*/)?(?:conversations[^/]*|conversations/[^/]+)\.json",
    # Takeout translates its names: only the product's stays.
    "gemini": r"(?:.*/)?(?:My ?Activity\.json|conversation_\d+\.(?:txt|json)|[^/]*Gemini[^/]*/[^/]+\.json)",
}
