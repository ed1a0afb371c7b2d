"""Reads LangChain's messages: as turns, as what happened in each, and as blocks for the log in any provider's format."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any, TypeAlias, cast
from uuid import NAMESPACE_OID, uuid5

from langchain_core import messages as core
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from pagefile.edge.recorder import THINKING, Asked, Called, Happened, Returned, Said, Shown, Thought
from pagefile.engine.arguments import result_text
from pagefile.records import MAX_ID_CHARS
from pagefile.shapes.media import note, read_media
from pagefile.standalone import MEMORY_NAME
from pagefile.standalone.agent_memory import part_of

#: What a tool's run gives LangGraph.
ToolOutput: TypeAlias = ToolMessage | Command[Any]

#: Blocks whose text belongs to the message.
_TEXTS = frozenset({"text", "input_text", "output_text"})
#: Skipped: these calls are in `tool_calls` too.
CALL_BLOCKS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call"})


# -- turns ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool's result, and the call it answers."""

    message: ToolMessage
    tool: str
    input: object

    @property
    def is_plain(self) -> bool:
        """Whether the result is text and nothing else; tools of MCP servers answer in blocks of it."""
        return all(isinstance(block, str) for block in shown_blocks(self.message))

    def with_text(self, text: str) -> ToolMessage:
        """The message with another text, in a block where there were blocks."""
        if self.returned.text == text:
            return self.message
        in_blocks = not isinstance(cast("Any", self.message.content), str)
        content = [{"type": "text", "text": text}] if in_blocks else text
        return self.message.model_copy(update={"content": content})

    @property
    def returned(self) -> Returned:
        call = Called(self.tool, self.input, self.message.tool_call_id)
        return Returned(call, shown_blocks(self.message), error=self.message.status == "error")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user said, in one message or several, and everything that followed from it."""

    humans: tuple[HumanMessage, ...]
    rest: tuple[BaseMessage, ...]

    @property
    def id(self) -> str:
        """The id of the user's last message, which is also the turn's."""
        return turn_id(self.humans[-1])

    @property
    def messages(self) -> tuple[BaseMessage, ...]:
        return (*self.humans, *self.rest)

    @property
    def asked(self) -> Asked:
        return asked(self.humans)

    @property
    def answer(self) -> str | None:
        """The final answer; None if there is none yet."""
        last = self.rest[-1] if self.rest else None
        if not isinstance(last, AIMessage) or last.tool_calls:
            return None
        return said(last).text

    @property
    def last_words(self) -> str | None:
        """The answer, or the model's last text before a non-text result."""
        spoken = (said(message).text for message in reversed(self.rest) if isinstance(message, AIMessage))
        return self.answer or next((text for text in spoken if text.strip()), None)

    @property
    def happened(self) -> list[Happened]:
        return happened(self.rest)


def exchanges(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[Exchange]]:
    """What precedes the first user message (such as LangChain's own summary), and the turns that follow."""
    preamble: list[BaseMessage] = []
    found: list[tuple[list[HumanMessage], list[BaseMessage]]] = []
    for message in messages:
        if is_memory(message):
            continue
        if is_user(message):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(cast("HumanMessage", message))
        else:
            (found[-1][1] if found else preamble).append(message)
    return preamble, [Exchange(tuple(humans), tuple(rest)) for humans, rest in found]


def is_user(message: BaseMessage) -> bool:
    """Whether a person wrote it: summaries and memory come as human messages too."""
    is_written = message.additional_kwargs.get("lc_source") is not None or is_memory(message)
    return isinstance(message, HumanMessage) and not is_written


def is_memory(message: BaseMessage) -> bool:
    """Whether it carries memory, written by this middleware or by the standalone one: never recorded, and not the user's."""
    return message.name == MEMORY_NAME


def tool_uses(messages: Sequence[BaseMessage]) -> list[ToolUse]:
    calls: dict[str, Mapping[str, Any]] = {}
    uses: list[ToolUse] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls.update({str(call["id"]): call for call in message.tool_calls})
        elif isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id, {})
            uses.append(ToolUse(message, str(message.name or call.get("name") or "tool"), call.get("args")))
    return uses


def happened(messages: Sequence[BaseMessage]) -> list[Happened]:
    uses = iter(tool_uses(messages))
    spoken = (message for message in messages if isinstance(message, AIMessage | ToolMessage))
    return [said(one) if isinstance(one, AIMessage) else next(uses).returned for one in spoken]


def structured_text(value: object) -> str | None:
    """Structured output as the model's JSON; None if there is none."""
    if value is None or isinstance(value, str):
        return value
    dump = getattr(value, "model_dump_json", None)
    if callable(dump):
        return str(dump())
    return result_text(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value)


def turn_id(human: HumanMessage) -> str:
    """The id under which a turn is recorded: the same whenever the same message appears again."""
    if human.id and len(human.id) <= MAX_ID_CHARS - 8 and "\0" not in human.id:
        return human.id
    return str(uuid5(NAMESPACE_OID, f"{human.id}\0{asked([human]).json()}"))


# -- states and tool results ------------------------------------------------------------------------------------------


def messages_of(state: Any) -> Sequence[BaseMessage]:
    """The messages of a state, which may be a mapping, a model or a plain list."""
    return cast("list[BaseMessage]", state) if isinstance(state, list) else part_of(state, "messages") or ()


def tool_messages(result: ToolOutput) -> list[ToolMessage]:
    """The tool messages of a result, including those inside a command."""
    if isinstance(result, ToolMessage):
        return [result]
    return [message for message in _updated(result) if isinstance(message, ToolMessage)]


def with_messages(result: ToolOutput, changed: dict[int, ToolMessage]) -> ToolOutput:
    """The result with some of its tool messages replaced, by their `id()`; itself if none is."""
    if isinstance(result, ToolMessage):
        return changed.get(id(result), result)
    if not changed:
        return result
    swapped = [changed.get(id(message), message) for message in _updated(result)]
    return replace(result, update={**cast("dict[str, Any]", result.update), "messages": swapped})


def _updated(command: Command[Any]) -> list[Any]:
    update = cast("Any", command.update)
    found: Any = cast("dict[str, Any]", update).get("messages", ()) if isinstance(update, dict) else ()
    return [*cast("Sequence[Any]", found)] if isinstance(found, (list, tuple)) else [found]


# -- blocks -----------------------------------------------------------------------------------------------------------


def asked(humans: Sequence[BaseMessage]) -> Asked:
    blocks: list[str | Shown] = []
    for human in humans:
        blocks += [*(["\n\n"] if blocks else []), *shown_blocks(human)]
    return Asked(tuple(blocks))


def said(message: AIMessage) -> Said:
    # Some providers put thoughts beside the content.
    beside: Any = message.additional_kwargs.get("reasoning_content")
    thoughts = [Thought(beside)] if isinstance(beside, str) and beside else []
    blocks = [*thoughts, *(_own(block, message) for block in blocks_of(message))]
    calls = [Called(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    return Said((*(block for block in blocks if block is not None), *calls))


def shown_blocks(message: BaseMessage) -> tuple[str | Shown, ...]:
    return tuple(_media_block(block) for block in blocks_of(message))


def with_media_named(message: BaseMessage) -> BaseMessage:
    """The message with its images and files replaced by their names; unchanged if it has none."""
    content = cast("Any", message.content)
    if isinstance(content, str):
        return message
    named = [_without_bytes(block) for block in content]
    return message if named == content else message.model_copy(update={"content": named})


def _without_bytes(block: Any) -> Any:
    shown = _media_block(block)
    found = None if isinstance(shown, str) else read_media(shown)
    return block if found is None else {"type": "text", "text": note(found.media)}


def blocks_of(message: BaseMessage) -> Iterable[Any]:
    content = cast("Any", message.content)
    return [content] if isinstance(content, str) else content


def _media_block(block: Any) -> str | Shown:
    if isinstance(block, str):
        return block
    given = cast("dict[str, Any]", block)
    if given.get("type") in _TEXTS and isinstance(given.get("text"), str):
        return given["text"]
    try:
        # LangChain's own block in a provider's format.
        return core.convert_to_openai_data_block(given) if core.is_data_content_block(given) else given
    except (KeyError, ValueError):
        return given


def _own(block: Any, message: AIMessage) -> str | Thought | Shown | None:
    kind = block.get("type") if isinstance(block, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - blocks are whatever a provider gives
    given = cast("Mapping[str, Any]", block)
    if kind in CALL_BLOCKS:
        return None
    if kind in THINKING:
        return Thought.of_block(given)
    return _reasoning(given, message) if kind == "reasoning" else _media_block(block)


def _reasoning(block: Mapping[str, Any], message: AIMessage) -> Thought:
    """A reasoning block of LangChain's, or of OpenAI's, which splits its text."""
    pieces = cast("list[Mapping[str, Any]]", block.get("summary") or [])
    text = str(block.get("reasoning") or "\n".join(str(piece.get("text") or "") for piece in pieces))
    signature = block.get("signature") or cast("dict[str, Any]", block.get("extras") or {}).get("signature")
    if signature and message.response_metadata.get("model_provider") == "anthropic":
        return Thought(text, {"type": "thinking", "signature": signature}, anthropic=True)
    sealed = {key: value for key, value in block.items() if key not in {"reasoning", "summary", "index"}}
    return Thought(text, sealed if sealed.keys() - {"type"} else {})
