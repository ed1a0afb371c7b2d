"""The messages sent to the model: the run's history, with memory beside the question, within a token budget.

The run's own history is never modified, only copied. A tool call and its result are kept or dropped together.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic_ai import messages as ai

from pagefile.integrations.pydantic_ai.messages import part_text
from pagefile.integrations.shortening import shortened
from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.compile import CUT_TURNS
from pagefile.window.wording import Language

#: A call's id and its result as the history holds it (some models use one id for every call).
Key = tuple[str, str]
Messages = Sequence[ai.ModelMessage]
#: The parts that make up a conversation; all others belong to the framework and are never dropped.
_SAID = frozenset({"user-prompt", "tool-return", "retry-prompt", "retry-feedback"})
#: A shorter excerpt of a result would say less than its placeholder.
LEAST_EXCERPT_TOKENS = 200

_LEFT_OUT: Mapping[Language, str] = {
    "zh": "[较早的 {count} 轮对话未包含在本次请求中]",
    "en": "[{count} earlier exchanges are left out of this request]",
}
_STEPS_LEFT_OUT: Mapping[Language, str] = {
    "zh": "[本轮较早的 {count} 步工具调用未包含在本次请求中]",
    "en": "[{count} earlier steps of this turn are left out of this request]",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A result of the running turn that has a page."""

    full: str
    full_tokens: int
    #: Shown instead when there is no room.
    short: str


#: The passages of a result that answer the question, within a number of tokens.
Excerpt = Callable[[Kept, int], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Fit:
    room_tokens: int
    count: Callable[[str], int]
    kept: Mapping[Key, Kept]
    excerpt: Excerpt
    language: Language = "zh"

    def note(self, words: Mapping[Language, str], count: int) -> ai.UserPromptPart:
        return ai.UserPromptPart(words[self.language].format(count=count))

    def cost(self, messages: Iterable[ai.ModelMessage]) -> int:
        parts = (part for message in messages for part in message.parts)
        return sum(MESSAGE_OVERHEAD + self.count(part_text(part)) for part in parts)


def question_at(messages: Messages, run_id: str | None) -> int | None:
    """Where the running exchange begins: at this run's first user message, else at the history's newest."""
    asking = [number for number, message in enumerate(messages) if _asks(message)]
    own = [number for number in asking if run_id is not None and messages[number].run_id == run_id]
    return next(iter(own), asking[-1] if asking else None)


def with_memory(question: ai.ModelRequest, memory: str) -> ai.ModelRequest:
    """The same request with what memory knows before what the user said."""
    asked = ((at, part) for at, part in enumerate(question.parts) if isinstance(part, ai.UserPromptPart))
    place, said = next(asked)
    # The user's own timestamp keeps repeated requests identical.
    known = ai.UserPromptPart(memory, timestamp=said.timestamp)
    return replace(question, parts=[*question.parts[:place], known, *question.parts[place:]])


def following(turns: Messages, question: ai.ModelRequest) -> tuple[list[ai.ModelMessage], ai.ModelRequest]:
    """The turns for a question without a history, and the question; its system prompts go before both."""
    own = _frameworks_own(question)
    if not turns or not own:
        return list(turns), question
    rest = [part for part in question.parts if part.part_kind in _SAID]
    return [replace(question, parts=own), *turns], replace(question, parts=rest)


async def fitted(
    before: Messages, question: ai.ModelRequest, since: Messages, fit: Fit
) -> list[ai.ModelMessage]:
    """The messages of a request: as much of the running exchange as fits, then earlier ones from the newest back.

    The question is never cut. Its steps start in short form; if that is still too much, the oldest are dropped, and then
    the newest results are shown in full.
    """
    # What still belongs to the question, then each model response with the results returned to it.
    more, *steps = _split(since, lambda message: isinstance(message, ai.ModelResponse))
    short = {key: kept.short for key, kept in fit.kept.items()}
    costs = [fit.cost(_with_texts(message, short) for message in step) for step in steps]
    left = fit.room_tokens - fit.cost([question, *more]) - sum(costs)
    gone = 0
    if left < 0:
        left -= fit.cost([ai.ModelRequest([fit.note(_STEPS_LEFT_OUT, len(steps))])])
    while left < 0 and gone < len(steps) - 1:
        left += costs[gone]
        gone += 1
    running = [message for step in steps[gone:] for message in step]
    texts, left = await _fuller(running, fit, left)
    running = [_with_texts(message, short | texts) for message in running]
    if left < 0:
        # Results that could not be archived and are too long for the window.
        results = [part for message in running for part in _results(message) if not part.files]
        unkept = {key_of(part): part_text(part) for part in results if key_of(part) not in fit.kept}
        texts = shortened(unkept, -left, fit.count)
        running = [_with_texts(message, texts) for message in running]
    if gone:
        question = replace(question, parts=[*question.parts, fit.note(_STEPS_LEFT_OUT, gone)])
    return [*_recent(before, question, fit, left), *more, *running]


# -- the running exchange ---------------------------------------------------------------------------------------------


def _split(messages: Messages, begins: Callable[[ai.ModelMessage], bool]) -> list[list[ai.ModelMessage]]:
    """What precedes the first message that begins a group, which may be nothing, and the groups."""
    groups: list[list[ai.ModelMessage]] = [[]]
    for message in messages:
        if begins(message):
            groups.append([])
        groups[-1].append(message)
    return groups


async def _fuller(running: Messages, fit: Fit, left: int) -> tuple[dict[Key, str], int]:
    """The texts that replace short forms, newest results first, and the tokens then left."""
    texts: dict[Key, str] = {}
    cut = left < 0
    for key in reversed([key_of(part) for message in running for part in _results(message)]):
        if (kept := fit.kept.get(key)) is None:
            continue
        extra = kept.full_tokens - fit.count(kept.short)
        if key in texts:
            left -= fit.count(texts[key]) - fit.count(kept.short)
        elif extra <= left:
            texts[key] = kept.full
            left -= extra
        elif not cut:
            cut = True
            if left >= LEAST_EXCERPT_TOKENS:
                texts[key] = f"{kept.short}\n{await fit.excerpt(kept, left)}"
                left -= fit.count(texts[key]) - fit.count(kept.short)
    return texts, left


def _results(message: ai.ModelMessage) -> list[ai.ToolReturnPart]:
    return [part for part in message.parts if isinstance(part, ai.ToolReturnPart)]


def key_of(part: ai.ToolReturnPart) -> Key:
    return part.tool_call_id, part_text(part)


def _with_texts(message: ai.ModelMessage, texts: Mapping[Key, str]) -> ai.ModelMessage:
    """The message with the results that have such a text as that text: in full, as passages or short."""
    if not isinstance(message, ai.ModelRequest) or texts.keys().isdisjoint(map(key_of, _results(message))):
        return message
    parts = list(message.parts)
    for place, part in enumerate(parts):
        if isinstance(part, ai.ToolReturnPart):
            held = key_of(part)
            text = texts.get(held, held[1])
            parts[place] = part if text == held[1] else replace(part, content=text)
    return replace(message, parts=parts)


# -- what came before -------------------------------------------------------------------------------------------------


def _recent(before: Messages, question: ai.ModelRequest, fit: Fit, left: int) -> list[ai.ModelMessage]:
    """The newest consecutive exchanges that fit, and the question."""
    exchanges = [group for group in _split(before, _asks) if group]
    costs = [fit.cost(exchange) for exchange in exchanges]
    if sum(costs) <= left:
        return [*before, question]
    own = [part for message in before for part in _frameworks_own(message)]
    left -= fit.cost([ai.ModelRequest([*own, fit.note(_LEFT_OUT, len(exchanges))])])
    number = _first_that_fits(costs, left)
    gone = [message for exchange in exchanges[:number] for message in exchange]
    head, *rest = [*(message for exchange in exchanges[number:] for message in exchange), question]
    told = [part for message in gone for part in _frameworks_own(message)]
    # Every exchange but the first begins with a request, and at least the first is gone.
    asked = cast("ai.ModelRequest", head)
    return [replace(asked, parts=[*told, fit.note(_LEFT_OUT, number), *asked.parts]), *rest]


def _first_that_fits(costs: Sequence[int], left: int) -> int:
    """How many exchanges to drop. They go in batches as long as most stay, because prompt caches match prefixes."""
    number = len(costs)
    while number and costs[number - 1] <= left:
        left -= costs[number - 1]
        number -= 1
    fitting = len(costs) - number
    block = next((size for size in (CUT_TURNS, CUT_TURNS // 2, CUT_TURNS // 4) if fitting >= 2 * size), 1)
    return -(-number // block) * block


def _asks(message: ai.ModelMessage) -> bool:
    """Whether an exchange begins here: a user's message that is not a tool result."""
    kinds = {part.part_kind for part in message.parts}
    # Histories of earlier releases have a separate kind for retries.
    retries = any(part.part_kind == "retry-prompt" and part.tool_name is not None for part in message.parts)
    return "user-prompt" in kinds and "tool-return" not in kinds and not retries


def _frameworks_own(message: ai.ModelMessage) -> list[ai.ModelRequestPart]:
    """System prompts and the framework's markers: they concern the whole conversation, not this exchange."""
    if not isinstance(message, ai.ModelRequest):
        return []
    return [part for part in message.parts if part.part_kind not in _SAID]
