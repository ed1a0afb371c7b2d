"""The state of the conversation graph, which all nodes share, and the prompt that is built from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from operator import add
from typing import Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, convert_to_messages
from langgraph.channels import UntrackedValue  # pyright: ignore[reportMissingTypeStubs] - as in `graph`

from pagefile.errors import InvalidArgumentError
from pagefile.standalone import ConversationMessage, build_general_prompt
from pagefile.standalone.hybrid_history import pairs, with_safety
from pagefile.standalone.knowledge_base import Results, results_block
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.turn_notes import abridged, allotted, load_call
from pagefile.window.wording import WORDINGS, Language, Wording


class NodeTrace(TypedDict):
    """A record of a node's run and its duration."""

    node: str
    duration_ms: NotRequired[float]
    #: Failures that the node worked around.
    notes: NotRequired[list[str]]
    #: Anything else a node reports.
    told: NotRequired[dict[str, Any]]


def traced(before: Sequence[NodeTrace], added: Sequence[NodeTrace]) -> list[NodeTrace]:
    """The nodes of one turn: `route` begins the next one, which a checkpointer keeps in the same state."""
    begins = any(one["node"] == "route" for one in added)
    return [*(() if begins else before), *added]


class ConversationState(TypedDict, total=False):
    """对话全局状态: the state that all nodes share.

    A node returns only its changes: `messages` and, within a turn, `trace` are appended to, everything else is replaced.
    """

    # 核心数据
    messages: Annotated[list[BaseMessage], add]
    user_id: str
    session_id: str
    conversation_id: str
    # 上下文: handed on from `recall` to `generate`, and never saved by a checkpointer, where no erasure would reach it
    memory_context: Annotated[str | None, UntrackedValue]
    conversation_summary: Annotated[str | None, UntrackedValue]
    #: Past turns relevant to the question (`recalled`), then the recent messages.
    episodic_memory: Annotated[list[ConversationMessage] | None, UntrackedValue]
    #: The user's snapshot in the session, for its safety data.
    user_snapshot: Annotated[Mapping[str, Any] | None, UntrackedValue]
    # 决策
    kb_prefix: str | None
    agent_type: str
    use_retrieval: bool
    # 检索结果
    retrieval_results: Results | None
    # 元数据
    debug: bool
    #: The turn in the log being answered, once it was begun.
    turn_id: str
    trace: Annotated[list[NodeTrace], traced]


#: Keys that are appended to; all others are replaced.
ADDED: Mapping[str, Callable[[Any, Any], list[Any]]] = {"messages": add, "trace": traced}


def merged(state: ConversationState, update: ConversationState) -> ConversationState:
    """The state after an update, as LangGraph would compute it."""
    after: dict[str, Any] = {**state}
    for key, value in update.items():
        after[key] = ADDED[key](list(after.get(key, ())), value) if key in ADDED else value
    return ConversationState(**after)


def running(state: ConversationState) -> tuple[HumanMessage, Sequence[BaseMessage]]:
    """The user's last message, and what was said since: tool calls, their results, the answer."""
    messages = state.get("messages", [])
    for place, message in reversed([*enumerate(messages)]):
        if isinstance(message, HumanMessage):
            return message, messages[place + 1 :]
    raise InvalidArgumentError("The state has no message of the user: begin with messages=[HumanMessage(…)].")


def question(state: ConversationState) -> str:
    return str(running(state)[0].text)


# -- the prompt -------------------------------------------------------------------------------------------------------


def build_prompt_from_state(
    state: ConversationState,
    *,
    system_message: str,
    window_tokens: int | None = None,
    count: Callable[[str], int] = len,
    language: Language = "zh",
    zone: tzinfo = UTC,
) -> list[BaseMessage]:
    """系统消息、长期记忆、对话背景、相关历史、检索结果、最近的消息、问题; None and empty values have no block.

    Above `window_tokens`, large recent turns are abridged, and then the least important parts are dropped first: the oldest recent
    messages, then recalled turns, then the last retrieval results. The system message, the safety data, the facts, the summary, the
    question and what was said since are never cut.
    """
    history = list(state.get("episodic_memory") or ())
    results = list(state.get("retrieval_results") or ())
    prompt = _prompt(state, system_message, history, results, language, zone)
    if window_tokens is not None and prompt_tokens(prompt, count) > window_tokens:
        bare = prompt_tokens(_prompt(state, system_message, [], [], language, zone), count)
        history = _abridged(history, question(state), window_tokens - bare, count, WORDINGS[language])
        prompt = _prompt(state, system_message, history, results, language, zone)
    while window_tokens is not None and prompt_tokens(prompt, count) > window_tokens:
        if not _shortened(history, results):
            break
        prompt = _prompt(state, system_message, history, results, language, zone)
    return prompt


def prompt_tokens(prompt: Iterable[BaseMessage], count: Callable[[str], int]) -> int:
    return sum(count(str(message.text)) + MESSAGE_OVERHEAD for message in prompt)


def _prompt(
    state: ConversationState,
    system_message: str,
    history: list[ConversationMessage],
    results: Results,
    language: Language,
    zone: tzinfo,
) -> list[BaseMessage]:
    asked, since = running(state)
    known = state.get("memory_context"), state.get("conversation_summary")
    told = with_safety(system_message, state.get("user_snapshot"), language)
    plain = build_general_prompt(told, *known, history, str(asked.text), language=language, zone=zone)
    *before, _ = convert_to_messages([dict(message) for message in plain])
    # Some endpoints reject a system message after the first user message.
    place = next((at for at, one in enumerate(before) if not isinstance(one, SystemMessage)), len(before))
    block = results_block(results, language)
    found = [SystemMessage(block)] if block else []
    return [*before[:place], *found, *before[place:], HumanMessage(asked.content), *since]


def _abridged(
    history: Sequence[ConversationMessage],
    query: str,
    room: int,
    count: Callable[[str], int],
    wording: Wording,
) -> list[ConversationMessage]:
    """The history with large recent turns abridged, so that others fit beside them."""
    recalled = [message for message in history if message.get("recalled")]
    turns = [*pairs([message for message in history if not message.get("recalled")])]
    given = allotted([_tokens(turn, count) for turn in turns], room)
    fitting = turns[len(turns) - len(given) :]
    shown = [
        _excerpt(turn, query, tokens, count, wording) for turn, tokens in zip(fitting, given, strict=True)
    ]
    return [*recalled, *(message for turn in shown for message in turn)]


def _tokens(turn: Sequence[ConversationMessage], count: Callable[[str], int]) -> int:
    return sum(count(message["content"]) + MESSAGE_OVERHEAD for message in turn)


def _excerpt(
    turn: list[ConversationMessage], query: str, room: int, count: Callable[[str], int], wording: Wording
) -> list[ConversationMessage]:
    if _tokens(turn, count) <= room:
        return turn
    turn_id = turn[0].get("turn_id")
    note = f"\n{wording.abridged.format(call=load_call(turn_id))}" if turn_id else ""
    room -= count(note) + len(turn) * MESSAGE_OVERHEAD
    texts = abridged([message["content"] for message in turn], query, room, count, wording)
    texts[0] += note
    return [{**message, "content": text} for message, text in zip(turn, texts, strict=True) if text]


def _shortened(history: list[ConversationMessage], results: Results) -> bool:
    """Drop the least important item; False if nothing is left to drop."""
    recent = next((at for at, message in enumerate(history) if not message.get("recalled")), None)
    if recent is not None:
        del history[recent]
        # An answer without its question says little, so it is dropped too.
        if recent < len(history) and history[recent]["role"] == "assistant":
            del history[recent]
        return True
    for left in (history, results):
        if left:
            left.pop()
            return True
    return False
