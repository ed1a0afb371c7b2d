"""Writes an adapter's messages to the log, each exactly once.

Frameworks have message classes of their own. Adapters describe a message with the classes here: text, thoughts, calls, images,
results. Which format to write, what the log already has, and what remains of an interrupted turn is decided here, in one place.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from pagefile.content import Message, ToolCall
from pagefile.engine import Conversation
from pagefile.engine.arguments import result_text
from pagefile.errors import ConflictError, NotFoundError, PagefileError
from pagefile.records import Step, Turn
from pagefile.shapes.call_order import answered_steps, question, waiting_steps
from pagefile.shapes.media import read_media
from pagefile.shapes.message_reader import step_tool
from pagefile.shapes.parser import cleaned, parsed
from pagefile.shapes.tool_arguments import compact
from pagefile.tiers.page_in import LOADING_TOOLS

logger = logging.getLogger("pagefile")

#: The types of blocks in which Anthropic's models think.
THINKING = frozenset({"thinking", "redacted_thinking"})

Carrier: TypeAlias = Literal["openai", "anthropic"]
#: An image, a sound, a file or something unknown, as a block of any provider.
Shown: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Thought:
    """A model's thought, with everything its provider needs to accept it back: signature, id, encrypted content."""

    text: str
    sealed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Whether it is Anthropic's, and can be sent back there.
    anthropic: bool = False

    @classmethod
    def of_block(cls, block: Mapping[str, Any]) -> "Thought":
        """The thought in an Anthropic block; `index` numbers the pieces of a stream."""
        sealed = {key: value for key, value in block.items() if key not in {"thinking", "index"}}
        return cls(str(block.get("thinking") or ""), sealed, anthropic=True)


@dataclass(frozen=True, slots=True)
class Called:
    tool: str
    input: object
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    blocks: tuple[str | Shown, ...]

    def json(self) -> dict[str, Any]:
        """The message; `[ ]` if it is blank, because there is no turn without a question."""
        content = _content(_merged(self.blocks))
        blank = isinstance(content, str) and not content.strip()
        return {"role": "user", "content": "[ ]" if blank else content}

    @property
    def text(self) -> str | None:
        """The question as logged: the text, and the names of what was shown."""
        return question(parsed([as_json(self.json())]).messages)


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the model: its text, thoughts and calls."""

    blocks: tuple[str | Thought | Called | Shown, ...]

    @property
    def text(self) -> str:
        """Its text, as in the log."""
        return "\n".join(block for block in _merged(self.blocks) if isinstance(block, str))

    @property
    def words(self) -> str:
        """Its text, concatenated as most frameworks do."""
        return "".join(block for block in _merged(self.blocks) if isinstance(block, str))

    @property
    def calls(self) -> list[Called]:
        return [block for block in self.blocks if isinstance(block, Called)]

    @property
    def plain(self) -> bool:
        return all(isinstance(block, str) for block in self.blocks)

    @property
    def empty(self) -> bool:
        return self.plain and not self.text.strip()

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """Identifies it within its turn; some models give all calls the same id."""
        return self.text, tuple(_call_key(call.tool, call.input) for call in self.calls)

    def json(self, carrier: Carrier) -> dict[str, Any]:
        merged = _merged(self.blocks)
        thoughts = [block for block in merged if isinstance(block, Thought)]
        if carrier == "anthropic":
            # A thought that is not Anthropic's is kept outside the blocks, where it is never sent.
            foreign = [thought for thought in thoughts if not thought.anthropic]
            blocks = [_anthropic_block(block) for block in merged if block not in foreign]
            return {"role": "assistant", "content": blocks, **_beside(foreign, "reasoning")}
        said = _content([block for block in merged if not isinstance(block, Called | Thought)])
        calls = [_openai_call(call) for call in self.calls]
        message = {"role": "assistant", **_beside(thoughts, "reasoning_content"), "content": said}
        return {**message, "tool_calls": calls} if calls else message


@dataclass(frozen=True, slots=True)
class Returned:
    """A tool's result, and the call it answers."""

    call: Called
    blocks: tuple[str | Shown, ...]
    error: bool = False

    @property
    def text(self) -> str:
        """The result as logged before archiving; images and files are separate."""
        told = (block for block in self.blocks if isinstance(block, str) or read_media(block) is None)
        texts = (block if isinstance(block, str) else compact(dict(block)) for block in told)
        return result_text("\n".join(texts))

    def json(self, carrier: Carrier) -> dict[str, Any]:
        shown = any(not isinstance(block, str) for block in self.blocks)
        content: Any = _block_json(self.blocks) if shown else self.text
        error = {"is_error": True} if self.error else {}
        if carrier == "openai":
            return {"role": "tool", "tool_call_id": self.call.call_id, "content": content, **error}
        result = {"type": "tool_result", "tool_use_id": self.call.call_id, "content": content, **error}
        return {"role": "user", "content": [result]}


Happened: TypeAlias = Said | Returned


# -- writing ----------------------------------------------------------------------------------------------------------


async def begun(chat: Conversation, asked: Asked, turn_id: str) -> Turn:
    return await chat.begin(messages=[as_json(asked.json())], id=turn_id)


async def written(chat: Conversation, turn: Turn, happened: Iterable[Happened]) -> Turn:
    """The turn extended by what it does not have yet; bulky results are archived."""
    new = unwritten(turn, happened)
    return await chat.extend(turn, _messages(turn, new)) if new else turn


async def completed(
    chat: Conversation, turn: Turn, happened: Sequence[Happened], answer: str | None = None
) -> Turn:
    """The turn with everything that happened in it, done.

    The answer is the last thing the model said unless `answer` is given, as for outputs that are not text. Of a turn that is done
    already only the answer counts: the same one changes nothing, another one conflicts.
    """
    if turn.status != "open":
        return await chat.complete(turn, answer)
    last = happened[-1] if happened else None
    if isinstance(last, Said) and not last.calls and answer in {None, last.text, last.words}:
        answer = None
        turn = await written(chat, turn, happened[:-1])
        if last.plain and turn.layout is None:
            return await chat.complete(turn, last.text)
    return await chat.complete(await written(chat, turn, happened), answer)


async def given_up(chat: Conversation, turn: Turn | str) -> bool:
    """Abort the turn of a run that broke off; whether it has ended now. It enters no window, summary or index in any case."""
    try:
        await chat.abort(turn)
    except (ConflictError, NotFoundError):
        # Completed at the last moment by this request or another, never begun, or erased.
        return True
    except PagefileError:
        logger.exception("a turn that broke off could not be aborted; it stays open, and out of every window")
        return False
    return True


def unwritten(turn: Turn, happened: Iterable[Happened]) -> list[Happened]:
    """What the turn does not have yet, whichever process wrote the rest, and in whatever order results arrived."""
    known = Counter(_key(message, turn) for message in turn.messages if message.role == "assistant")
    taken: set[int] = set()
    new: list[Happened] = []
    for one in happened:
        if isinstance(one, Said):
            if known[one.key]:
                known[one.key] -= 1
            elif not one.empty:
                new.append(one)
        elif (number := step_of(turn, one, taken)) is not None:
            taken.add(number)
        else:
            new.append(one)
    return new


async def kept(chat: Conversation, turn: Turn, said: Iterable[Said], result: Returned) -> tuple[Turn, Step]:
    """The turn extended by a result and what the model said before it, and the step that holds the result."""
    turn = await written(chat, turn, [*said, result])
    number = step_of(turn, result)
    return turn, turn.steps[-1 if number is None else number]


def step_of(turn: Turn, returned: Returned, taken: Iterable[int] = ()) -> int | None:
    """The step of a turn that holds a result; some models give the same call id to every call."""
    text, call = returned.text, returned.call
    for number in sorted(answered_steps(turn.messages) - set(taken)):
        step = turn.steps[number]
        if step.call_id != call.call_id or step.tool not in {call.tool, step_tool(call.tool)}:
            continue
        same_page = step.page is not None and step.page_chars == len(text)
        same_load = step.tool in LOADING_TOOLS and step.input == call.input
        if step.result == text or same_page or same_load or step.lost_chars:
            return number
    return None


def as_json(message: dict[str, Any]) -> dict[str, Any]:
    """The message as JSON for the log; other values become text."""
    return cleaned(json.loads(json.dumps(message, ensure_ascii=False, default=str)))


def _messages(turn: Turn, happened: Sequence[Happened]) -> list[dict[str, Any]]:
    """The messages in one format; a result whose call is not in the log brings it along."""
    waiting = Counter(turn.steps[number].call_id for number in waiting_steps(turn.messages))
    whole: list[Happened] = []
    for one in happened:
        if isinstance(one, Said):
            waiting.update(str(call.call_id) for call in one.calls)
        elif waiting[str(one.call.call_id)]:
            waiting[str(one.call.call_id)] -= 1
        else:
            whole.append(Said((one.call,)))
        whole.append(one)
    blocks = [block for one in whole if isinstance(one, Said) for block in one.blocks]
    # Only Anthropic's format can hold its thoughts, and a turn has one format.
    sealed = any(isinstance(block, Thought) and block.anthropic for block in blocks)
    begun_so = any(message.shape == "anthropic" for message in turn.messages)
    return [as_json(one.json("anthropic" if sealed or begun_so else "openai")) for one in whole]


def _key(message: Message, turn: Turn) -> tuple[str, tuple[str, ...]]:
    steps = [turn.steps[part.step] for part in message.parts if isinstance(part, ToolCall)]
    return message.text, tuple(_call_key(step.tool, step.input) for step in steps)


def _call_key(tool: str, value: object) -> str:
    given = json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)
    return f"{step_tool(tool)} {cleaned(given)}"


def _merged(blocks: Iterable[Any]) -> list[Any]:
    """The blocks, with adjacent texts joined: a stream delivers an answer in pieces."""
    found: list[Any] = []
    for block in blocks:
        text = cleaned(block) if isinstance(block, str) else block
        if isinstance(text, str) and found and isinstance(found[-1], str):
            found[-1] += text
        elif text != "":
            found.append(text)
    return found


def _beside(thoughts: Sequence[Thought], name: str) -> dict[str, Any]:
    text = "\n".join(thought.text for thought in thoughts if thought.text)
    sealed = [dict(thought.sealed) for thought in thoughts if thought.sealed]
    return {**({name: text} if text else {}), **({"reasoning_details": sealed} if sealed else {})}


def _content(said: Sequence[str | Shown]) -> str | list[dict[str, Any]]:
    """Merged blocks as the content of a message: a plain text, or blocks if there is more than one text."""
    if not said:
        return ""
    return said[0] if len(said) == 1 and isinstance(said[0], str) else _block_json(said)


def _block_json(blocks: Iterable[str | Shown]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": block} if isinstance(block, str) else dict(block) for block in blocks]


def _anthropic_block(block: str | Thought | Called | Shown) -> dict[str, Any]:
    if isinstance(block, Thought):
        redacted = block.sealed.get("type") == "redacted_thinking"
        return {**block.sealed, **({} if redacted else {"type": "thinking", "thinking": block.text})}
    if not isinstance(block, Called):
        return _block_json([block])[0]
    value = cast("Any", block).input
    given: Any = value if isinstance(value, Mapping) else {"input": value}  # pyright: ignore[reportUnknownVariableType] - whatever the model gave
    made: dict[str, Any] = {"type": "tool_use", "name": block.tool, "input": given}
    return {**made, "id": block.call_id} if block.call_id else made


def _openai_call(call: Called) -> dict[str, Any]:
    arguments = json.dumps(call.input, ensure_ascii=False, separators=(",", ":"), default=str)
    made = {"type": "function", "function": {"name": call.tool, "arguments": arguments}}
    return {"id": call.call_id, **made} if call.call_id else made
