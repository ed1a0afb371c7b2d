"""Document 004 on its own: facts for every model call, within an exact number of tokens, without a store.

`format_memory_for_injection` is pure: the same data and the same conversation give the same text, byte for byte. The middleware
never changes the given messages. For LangChain agents, `pagefile.integrations.langchain` also archives, recalls and compacts.
"""

import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np

from pagefile.errors import PagefileError, SettingsError, TransferError
from pagefile.records import Fact
from pagefile.settings import FactSettings
from pagefile.standalone.agent_memory import part_of, texts_in
from pagefile.text import fact_ranking
from pagefile.text.fact_data import GivenFact, given_facts, sections
from pagefile.text.sentences import clip
from pagefile.text.tokens import CachedCounter, open_counter
from pagefile.window.parts import escape

#: Tokens reserved for corrections.
GUARANTEED_TOKENS = 500
CORRECTION = "correction"
#: No line takes fewer tokens: a dash, a word, a line break.
_LEAST_LINE_TOKENS = 3
#: A profile is not cut below this length.
_LEAST_CHARS = 24

#: Semantic cosine similarities of a conversation with each of several texts.
Similarities = Callable[[str, Sequence[str]], Sequence[float]]
MemoryData = Mapping[str, Any]


def _count_tokens(text: str) -> int:
    """The number of tokens in cl100k_base (GPT-4 and 3.5), exact and offline."""
    return open_counter("cl100k_base").count(text)


@cache
def _lines_counted() -> CachedCounter:
    """The same facts recur before every model call, so each line is counted once."""
    return CachedCounter(open_counter("cl100k_base"))


class FactRanker:
    """Ranks one user's facts across calls; only new ones are processed."""

    def __init__(self) -> None:
        self._index: fact_ranking.FactIndex[str] = fact_ranking.FactIndex()
        self._texts: frozenset[str] = frozenset()

    def similarities(self, context: str, texts: Sequence[str]) -> fact_ranking.Floats:
        """The TF-IDF cosine of the conversation with each text."""
        wanted = frozenset(texts)
        self._index.remove(sorted(self._texts - wanted))
        self._index.add((text, text) for text in dict.fromkeys(texts) if text not in self._texts)
        self._texts = wanted
        return self._index.similarity_array(context, texts)


def format_memory_for_injection(
    memory_data: MemoryData | None,
    max_tokens: int = 2000,
    current_context: str | None = None,
    *,
    similarity_weight: float = fact_ranking.SIMILARITY_WEIGHT,
    confidence_weight: float = fact_ranking.CONFIDENCE_WEIGHT,
    guaranteed_tokens: int = GUARANTEED_TOKENS,
    similarities: Similarities | None = None,
    ranker: FactRanker | None = None,
) -> str:
    """The text of a memory block: profile, corrections, and the facts relevant now; never more than `max_tokens`.

    Args:
        memory_data: deer-flow's `memory.json`: `user`, `history` and `facts`; damaged parts are left out.
        max_tokens: counted exactly, in cl100k_base.
        current_context: what the conversation is about; without it, the most certain facts come first.
        guaranteed_tokens: tokens reserved for corrections.
        similarities: an additional semantic comparison, for instance with embeddings: 测试 is near `testing`.
        ranker: caches what it knows of the facts between calls.
    """
    weights = {"similarity_weight": similarity_weight, "confidence_weight": confidence_weight}
    ranked = _ranked(given_facts(memory_data), current_context, weights, similarities, ranker)
    sheet = _Sheet(max_tokens)
    corrections = [_line(fact) for fact in ranked if fact.category == CORRECTION]
    sheet.fill("Corrections", corrections, min(guaranteed_tokens, max_tokens))
    plain = [_line(fact) for fact in ranked if fact.category != CORRECTION]
    budget = sheet.left // 2 if plain else sheet.left
    for section in sections(memory_data):
        title, line = section.title, f"- {section.label}: {escape(section.text)}"
        took = sheet.fill(title, [line], budget)
        budget -= took or sheet.fill(title, [_cut(line, budget - _cost(title) - 3)], budget)
    sheet.fill("Facts", plain, sheet.left)
    return sheet.text()


def injected(data: MemoryData, config: FactSettings, context: str, **more: Any) -> str:
    """`format_memory_for_injection` with the limit and the weights of the settings."""
    weights = {"similarity_weight": config.similarity_weight, "confidence_weight": config.confidence_weight}
    return format_memory_for_injection(data, config.max_injection_tokens, context, **weights, **more)


def memory_data_of(facts: Sequence[Fact]) -> dict[str, Any]:
    """Facts of a `Memory` in the format of document 004."""
    return {
        "facts": [
            {
                "id": fact.id,
                "content": fact.text,
                "category": fact.category,
                "confidence": fact.confidence,
                "createdAt": fact.recorded.isoformat(),
                "source": fact.source_turn,
            }
            for fact in facts
        ]
    }


def get_memory_data(source: object = None) -> MemoryData:
    """The memory data of a source: a `memory.json`, a function that returns the data, the data itself, or nothing.

    A missing file is an empty memory; a damaged one raises `TransferError`.
    """
    if callable(source):
        source = source()
    if source is None:
        return {"user": {}, "history": {}, "facts": []}
    if isinstance(source, Mapping):
        return cast("MemoryData", source)
    path = Path(cast("str", source))
    try:
        data: object = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return get_memory_data()
    except (OSError, ValueError, RecursionError) as error:
        raise TransferError(f"{str(path)!r} is not a memory file ({error}).") from error
    if not isinstance(data, Mapping):
        raise TransferError(f"{str(path)!r} is not a memory file: it holds no object.")
    return cast("MemoryData", data)


def _ranked(
    facts: Sequence[GivenFact],
    context: str | None,
    weights: Mapping[str, float],
    similarities: Similarities | None,
    ranker: FactRanker | None,
) -> list[GivenFact]:
    texts = [fact.text for fact in facts]
    found: fact_ranking.Floats | None = None
    if context and context.strip() and texts:
        found = (ranker or FactRanker()).similarities(context, texts)
        if similarities is not None:
            found = fact_ranking.blended(found, np.asarray(similarities(context, texts), dtype=np.float64))
    values = fact_ranking.scores(found, [fact.confidence for fact in facts], **weights)
    order = sorted(range(len(facts)), key=lambda i: -values[i])  # stable: ties keep the file's order
    if found is not None:
        order = [order[place] for place in fact_ranking.diverse([texts[i] for i in order])]
    return [facts[i] for i in order]


def _line(fact: GivenFact) -> str:
    told = fact.category and fact.category != CORRECTION  # corrections have their own heading
    kind = f"[{escape(' '.join((fact.category or '').split()))}] " if told else ""
    return f"- {kind}{escape(' '.join(fact.text.split()))}"


def _cut(line: str, tokens: int) -> str:
    """The head and tail of a line that is too long, within a number of tokens; empty if nothing is left."""
    chars = len(line)
    while chars >= _LEAST_CHARS:
        chars = min(chars - 1, max(int(chars * 0.8), _LEAST_CHARS - 1))
        cut = " ".join(clip(line, chars).split())
        if _cost(cut) <= tokens:
            return cut
    return ""


def _cost(line: str) -> int:
    """Tokens of a line and its line break."""
    return _lines_counted().count(line) + 1


class _Sheet:
    def __init__(self, max_tokens: int) -> None:
        self._max = max_tokens
        self._sections: dict[str, list[str]] = {}
        self.left = max(0, max_tokens)

    def fill(self, title: str, lines: Sequence[str], budget: int) -> int:
        """Add the lines that fit, in order; returns their tokens. Corrections are shown after the profile."""
        took = 0
        for line in lines:
            if min(self.left, budget - took) < _LEAST_LINE_TOKENS:
                break
            opening = 0 if title in self._sections else _cost(f"{title}:") + 1
            cost = _cost(line) + opening if line else 0
            if not line or took + cost > budget or cost > self.left:
                continue
            self._sections.setdefault(title, []).append(line)
            took += cost
            self.left -= cost
        return took

    def text(self) -> str:
        """The whole text, counted again in one piece: parts may cost less separately than together."""
        while True:
            filled = {title: lines for title, lines in self._sections.items() if lines}
            order = ("User Context", "History", "Corrections", "Facts")
            groups = ("\n".join([f"{title}:", *filled[title]]) for title in order if title in filled)
            text = "\n\n".join(groups)
            if not text or _count_tokens(text) <= self._max:
                return text
            dropped_first = ("Facts", "History", "User Context", "Corrections")
            next(filled[title] for title in dropped_first if title in filled).pop()


logger = logging.getLogger("pagefile")

#: Marks our own message, which is replaced in the next call.
MEMORY_NAME = "memory_context"
_ROLES = {"user": "human", "assistant": "ai"}


@dataclass(frozen=True, slots=True)
class SystemMessage:
    """LangChain's message class, for use without LangChain."""

    content: str
    name: str | None = None
    type: str = "system"


def extract_text(msg: object) -> str:
    """The text of a message: its content, or the text parts of multimodal content."""
    return " ".join(text.strip() for text in texts_in(part_of(msg, "content")) if text.strip())


def _extract_conversation_context(messages: Sequence[object], max_turns: int = 3) -> str:
    """What the last turns are about: the user's words and final answers; no tools, and nothing written by memory."""
    parts: list[str] = []
    turns = 0
    for msg in reversed(messages):
        if max_turns <= turns:
            break
        kind = _kind(msg)
        final = kind == "ai" and not part_of(msg, "tool_calls")
        if part_of(msg, "name") == MEMORY_NAME or not (kind == "human" or final):
            continue
        text = extract_text(msg)
        if text:
            parts.append(text)
            turns += kind == "human"
    return " ".join(reversed(parts))


def memory_config(config: FactSettings | Mapping[str, Any] | None = None) -> FactSettings:
    """Settings from a parsed `config.yaml` (or its `memory:` section); missing ones have their defaults.

    Keys that are not document 004's are ignored, so old files keep working.
    """
    if config is None or isinstance(config, FactSettings):
        return config or FactSettings()
    section = config.get("memory", config)
    if not isinstance(section, Mapping):
        raise SettingsError(f"`memory:` must be a section, not {type(section).__name__}.")
    given = cast("Mapping[str, Any]", section)
    known = {setting.name for setting in fields(FactSettings)}
    return FactSettings(**{key: value for key, value in given.items() if key in known and value is not None})


class MemoryMiddleware:
    """Injects memory before every model call, not once per run, so that each call sees what is relevant by then.

    `source` is anything `get_memory_data` accepts: a path, a function, or the data. `role="user"` sends memory as a user message,
    for servers that refuse a second system message. Made where `langchain.agents` is imported, it can be given to `create_agent`.
    """

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        if cls is MemoryMiddleware and "langchain.agents" in sys.modules:
            from pagefile.standalone.langchain_memory import LangChainMemory  # noqa: PLC0415 - needs LangChain

            return super().__new__(cast("type[Self]", LangChainMemory))
        return super().__new__(cls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"MemoryMiddleware has no {name!r}. For create_agent, import langchain.agents before you make a MemoryMiddleware, "
            "or give it a pagefile.integrations.langchain.PagefileMiddleware."
        )

    def __init__(
        self,
        source: object = None,
        *,
        config: FactSettings | Mapping[str, Any] | None = None,
        role: Literal["system", "user"] = "system",
        similarities: Similarities | None = None,
    ) -> None:
        self.config = memory_config(config)
        self._source = source
        self._role = role
        self._similarities = similarities
        self._ranker = FactRanker()

    def before_model(self, state: Mapping[str, Any], runtime: object = None) -> dict[str, Any] | None:
        """The messages for this call with memory first, or None if there is nothing to change.

        A memory message of an earlier call is removed first. If memory cannot be read, the call goes on without it.
        """
        given = cast("Sequence[object]", state["messages"])
        messages = [msg for msg in given if part_of(msg, "name") != MEMORY_NAME]
        content = self._content(messages)
        if content:
            return {"messages": [self._message(f"<memory>\n{content}\n</memory>"), *messages]}
        return {"messages": messages} if len(messages) < len(given) else None

    def _content(self, messages: Sequence[object]) -> str:
        if not self.config.enabled:
            return ""
        try:
            data = get_memory_data(self._source)
        except (PagefileError, OSError, ValueError):
            logger.exception("memory could not be read; going on without it")
            return ""
        context = _extract_conversation_context(messages, self.config.max_context_turns)
        more = {"similarities": self._similarities, "ranker": self._ranker}
        return injected(data, self.config, context, **more)

    def _message(self, content: str) -> object:
        system = self._role == "system"
        try:
            from langchain_core import messages  # noqa: PLC0415 - optional, only needed when a message is made
        except ImportError:
            return SystemMessage(content, MEMORY_NAME, "system" if system else "human")
        return (messages.SystemMessage if system else messages.HumanMessage)(content, name=MEMORY_NAME)


def _kind(msg: object) -> object:
    """The type of a LangChain message; an OpenAI-style dict has a role instead."""
    kind = part_of(msg, "type")
    role = part_of(msg, "role")
    return kind if kind is not None or not isinstance(role, str) else _ROLES.get(role, role)
