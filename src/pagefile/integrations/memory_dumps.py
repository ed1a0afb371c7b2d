"""What Letta and Zep hold: conversations, and facts about their users."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from pagefile.edge.recorder import Called
from pagefile.errors import TransferError
from pagefile.integrations.brought import (
    Brought,
    BroughtFact,
    Said,
    facts_brought,
    items,
    mapping,
    moment,
    named,
    text,
)
from pagefile.integrations.transcripts import Read, arguments_of, brought_of, joined, together
from pagefile.shapes.tool_arguments import compact

# -- Letta ------------------------------------------------------------------------------------------------------------

#: Blocks of memory that say something about the user, not about the agent.
_ABOUT_USER = frozenset({"human", "user"})
_SEND_MESSAGE = "send_message"
#: Numbers within a file: each begins at 0.
_IN_FILE = re.compile(r"(?:agent|message)-\d{1,6}")
#: What new agents are given to begin with, and what is not known yet: `Age: ?`.
_STARTER = "This is what I know so far about the user"
_UNKNOWN = re.compile(r".*:\s*\??")


def from_letta(data: object) -> Brought:
    """An agent file (`.af`), or what the API lists as an agent's messages: messages as turns, each line of the block "human" as a fact."""
    if isinstance(data, list):
        return _letta_messages(cast("object", data), None)
    file = mapping(data)
    agents = [mapping(one) for one in items(file.get("agents"))] or [file]
    if not any(isinstance(agent.get("messages"), list) for agent in agents):
        raise TransferError("This is not an agent file of Letta: it has no `messages`.")
    blocks = [*items(file.get("blocks")), *items(file.get("core_memory"))]
    facts = [fact for block in blocks for fact in _letta_block(mapping(block))]
    return together(_letta_agent(agent) for agent in agents) + facts_brought(facts)


def _letta_agent(agent: Mapping[str, Any]) -> Brought:
    name, number = text(agent.get("name")), text(agent.get("id"))
    if number is None or _IN_FILE.fullmatch(number):
        # The first agent of every file has the same number.
        number = name or number
    return _letta_messages(agent.get("messages"), number)


def _letta_messages(messages: object, conversation: str | None) -> Brought:
    read = (one for raw in items(messages) for one in _letta_message(mapping(raw), conversation))
    return brought_of(read, conversation)


def _letta_block(block: Mapping[str, Any]) -> Iterator[BroughtFact | str]:
    if block.get("label") not in _ABOUT_USER:
        yield "blocks that are not about the user"
        return
    at = moment(block.get("updated_at")) or moment(block.get("created_at"))
    for line in str(block.get("value") or "").splitlines():
        said = line.strip().lstrip("-*• ").strip()
        if said.startswith(_STARTER) or _UNKNOWN.fullmatch(said):
            yield "lines that say nothing"
        elif said:
            yield BroughtFact(said, at=at)


def _letta_message(message: Mapping[str, Any], conversation: str | None) -> Iterator[Read]:
    kind = str(message.get("message_type") or message.get("role") or "").removesuffix("_message")
    at = moment(message.get("date")) or moment(message.get("created_at"))
    if kind in {"system", "reasoning", "hidden_reasoning"}:
        yield "thoughts" if "reasoning" in kind else "notes of the program"
        return
    if kind in {"summary", "event"}:
        yield "summaries of the agent's own"
        return
    said, packed = _letta_text(message)
    if kind in {"tool", "tool_return"}:
        shown = text(message.get("tool_return")) or said
        yield Said(
            "tool", shown, at=at, call_id=text(message.get("tool_call_id")), tool=text(message.get("name"))
        )
        return
    if kind == "user" and packed not in {None, "user_message"}:
        yield "summaries of the agent's own" if packed == "system_alert" else "notes of the program"
        return
    calls = [_letta_call(mapping(one)) for one in items(message.get("tool_calls"))]
    if mapping(message.get("tool_call")):
        calls.append(_letta_call(mapping(message["tool_call"])))
    # Older agents speak by calling a tool; what they say beside a call is a thought.
    spoken = [str(mapping(call.input).get("message") or "") for call in calls if call.tool == _SEND_MESSAGE]
    others = tuple(call for call in calls if call.tool != _SEND_MESSAGE)
    said = "\n".join(filter(None, [said if kind != "assistant" or not calls else "", *spoken]))
    if said or others:
        name = _letta_name(message, conversation, said)
        yield Said("assistant" if kind == "tool_call" else kind, said, name, others, at)


def _letta_name(message: Mapping[str, Any], conversation: str | None, said: str) -> str | None:
    """The id of a message; where a file has only numbered it, one by what it says and when."""
    name = text(message.get("id"))
    if name is not None and not _IN_FILE.fullmatch(name):
        return name
    return named(f"pagefile:letta:{conversation}:{message.get('created_at')}:{said}")


def _letta_text(message: Mapping[str, Any]) -> tuple[str, str | None]:
    """The text of a message, and the type of the object that it was packed in: `{"type": "user_message", "message": …}`."""
    said = joined(message.get("content"))
    if not said.lstrip().startswith("{"):
        return said, None
    try:
        packed = mapping(json.loads(said))
    except (ValueError, RecursionError):
        return said, None
    kind = text(packed.get("type"))
    if "time" not in packed or not (kind or "status" in packed):
        return said, None
    inner = packed.get("message")
    return inner if isinstance(inner, str) else compact(inner), kind


def _letta_call(call: Mapping[str, Any]) -> Called:
    function = mapping(call.get("function")) or call
    name = text(call.get("id")) or text(call.get("tool_call_id"))
    return Called(str(function.get("name") or "tool"), arguments_of(function.get("arguments")), name)


# -- Zep --------------------------------------------------------------------------------------------------------------


def from_zep(data: object) -> Brought:
    """What Zep's API returns for threads or sessions (`messages`) and for a user's graph (`edges` or `facts`), or a list of either; what
    Graphiti's search returns; or the bare list of edges or messages.
    """
    answers = [mapping(one) for one in (items(data) or [data])]
    for name, of_it in (("edges", "fact"), ("messages", "content")):
        if all(of_it in answer for answer in answers):
            answers = [{name: answers}]
    if not any({"messages", "edges", "facts"} & set(answer) for answer in answers):
        raise TransferError("This is not a dump of Zep: it has neither messages nor edges nor facts.")
    return together(_zep_answer(answer) for answer in answers)


def _zep_answer(answer: Mapping[str, Any]) -> Brought:
    thread, user = (text(answer.get(name)) for name in ("thread_id", "user_id"))
    thread = thread or text(answer.get("session_id"))
    if thread is None and (began := text(answer.get("thread_created_at"))):
        # The answer with a thread's messages does not name the thread.
        thread = f"zep:{began}"
    messages = (_zep_message(mapping(one)) for one in items(answer.get("messages")))
    facts = [*items(answer.get("edges")), *items(answer.get("facts"))]
    return brought_of(messages, thread, user) + facts_brought([_zep_fact(one, user) for one in facts])


def _zep_message(message: Mapping[str, Any]) -> Said:
    role = str(message.get("role_type") or message.get("role") or "")
    at = moment(message.get("reference_time")) or moment(message.get("created_at"))
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
FORMATS: Final[Mapping[str, Callable[[object], Brought]]] = {"letta": from_letta, "zep": from_zep}
#: The files of an archive.
IN_ARCHIVES: Final[Mapping[str, str]] = {"letta": r"(?:.*/)?[^/]+\.af"}
