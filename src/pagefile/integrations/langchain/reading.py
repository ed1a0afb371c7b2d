"""Groups LangChain's messages into turns: what was asked, what the tools returned, what was answered."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, cast
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from pagefile.engine.drafts import result_text
from pagefile.integrations.langchain.blocks import asked, said, shown_blocks
from pagefile.integrations.recorder import Asked, Called, Happened, Returned
from pagefile.records import MAX_ID_CHARS

#: The name of the message that carries memory: it is not the user's and is never recorded.
MEMORY_NAME = "memory_context"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool's result, and the call it answers."""

    message: ToolMessage
    tool: str
    input: object

    @property
    def text(self) -> str:
        """The result's text, without its images and files."""
        return self.returned.text

    @property
    def returned(self) -> Returned:
        """The result as recorded in the log."""
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
        """What the user said and showed."""
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
        """The model's messages and its tools' results, in order."""
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
    return (
        isinstance(message, HumanMessage)
        and message.additional_kwargs.get("lc_source") is None
        and not is_memory(message)
    )


def is_memory(message: BaseMessage) -> bool:
    """Whether it carries memory, written by this middleware or by the standalone one."""
    return message.name == MEMORY_NAME


def tool_uses(messages: Sequence[BaseMessage]) -> list[ToolUse]:
    """The tool results among these messages, each with the call it answers."""
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
    """The messages of the model and its tools, converted for the log."""
    uses = {id(use.message): use for use in tool_uses(messages)}
    found: list[Happened] = []
    for message in messages:
        if isinstance(message, AIMessage):
            found.append(said(message))
        elif isinstance(message, ToolMessage):
            found.append(uses[id(message)].returned)
    return found


def text_of(message: BaseMessage) -> str:
    """The text of a message, whatever else it contains."""
    return str(message.text)


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
