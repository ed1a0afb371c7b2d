"""The state of the conversation graph: what is known while a question is answered, instead of arguments through six layers."""

from collections.abc import Sequence
from operator import add
from typing import Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage

from pagefile.errors import InvalidTurnError
from pagefile.standalone import ConversationMessage


class NodeTrace(TypedDict):
    """A record of a node's run and its duration."""

    node: str
    duration_ms: NotRequired[float]
    #: Failures that the node worked around.
    notes: NotRequired[list[str]]
    #: Anything else a node reports.
    told: NotRequired[dict[str, Any]]


class ConversationState(TypedDict, total=False):
    """对话全局状态: the state that all nodes share.

    A node returns only its changes: `messages` and `trace` are appended to, everything else is replaced.
    """

    # 核心数据
    messages: Annotated[list[BaseMessage], add]
    user_id: str
    session_id: str
    conversation_id: str
    # 上下文
    memory_context: str | None
    conversation_summary: str | None
    #: Past turns relevant to the question (`recalled`), then the recent messages.
    episodic_memory: list[ConversationMessage] | None
    # 决策
    kb_prefix: str | None
    agent_type: str
    use_retrieval: bool
    # 检索结果
    retrieval_results: list[dict[str, Any]] | None
    # 元数据
    debug: bool
    #: The turn in the log being answered, once it was begun.
    turn_id: str
    trace: Annotated[list[NodeTrace], add]


#: Keys that are appended to; all others are replaced.
ADDED = frozenset({"messages", "trace"})


def merged(state: ConversationState, update: ConversationState) -> ConversationState:
    """The state after an update, as LangGraph would compute it."""
    after: dict[str, Any] = {**state}
    for key, value in update.items():
        after[key] = [*after.get(key, ()), *value] if key in ADDED else value  # pyright: ignore[reportGeneralTypeIssues] - both added keys are lists
    return ConversationState(**after)


def running(state: ConversationState) -> tuple[HumanMessage, Sequence[BaseMessage]]:
    """The user's last message, and what was said since: tool calls, their results, the answer."""
    messages = state.get("messages", [])
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, HumanMessage):
            return message, messages[place + 1 :]
    raise InvalidTurnError("The state has no message of the user: begin with messages=[HumanMessage(…)].")


def question(state: ConversationState) -> str:
    """The text of the user's last message."""
    return str(running(state)[0].text)
