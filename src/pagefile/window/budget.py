"""How many tokens a window may have, how many of them one kind of memory may take, and what a request contains
besides its messages: the schemas of the tools, and room for the answer. What models accept is a table beside this file."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Literal, cast

from pagefile.errors import BudgetError, SettingsError
from pagefile.text.tables import table
from pagefile.window.candidates import Block

#: "tokenizer": the share kept free because the model may make more tokens of the same text than our
#: tokenizer.
Beside = Literal["tools", "answer", "tokenizer"]
#: Estimated cost of a tool besides its JSON. Providers render schemas in their own ways, none of which takes
#: more than the JSON.
TOOL_OVERHEAD = 8
#: The budget of corrections, which must survive a tight window.
CORRECTIONS_TOKENS = 500
#: The limit for all third-party tiers together.
EXTRA_TOKENS = 1500
#: No kind of memory takes more than the window divided by this, so that the conversation itself has room.
MEMORY_SHARE = 8
#: The share of a window that what a question touches may take while the conversation itself wants the room.
MAX_SHARE = 0.5
#: A smaller window is small: recall may take what it may take of this one, up to a third more than its share.
SMALL_WINDOW = 1500
_MORE_OF_SMALL = 4 / 3
#: What is taken from a window, in words.
_BESIDE: Mapping[Beside, str] = {
    "tools": "the tools' schemas",
    "answer": "the answer",
    "tokenizer": "a tokenizer that is not published",
}


@dataclass(frozen=True, slots=True)
class Budget:
    """The room for messages, the separate budgets of some blocks, and what the request contains besides messages."""

    tokens: int
    caps: Mapping[Block, int] = field(default_factory=dict[Block, int])
    reserved: Mapping[Beside, int] = field(default_factory=dict[Beside, int])
    #: The share of the room that candidates with a value may take while the conversation wants it.
    max_share: float = MAX_SHARE

    def __post_init__(self) -> None:
        if self.tokens < 1 and self.reserved:
            raise BudgetError(f"There is no room for messages in {self.says}: raise window_tokens.")
        if self.tokens < 1:
            raise BudgetError(f"window_tokens is {self.tokens}: give the model's context size, at least 1.")

    @property
    def says(self) -> str:
        """Describes the window and what is taken from it."""
        whole = self.tokens + sum(self.reserved.values())
        taken = ", ".join(f"{tokens} for {_BESIDE[kind]}" for kind, tokens in self.reserved.items())
        return f"a window of {whole} tokens" + (f", less {taken}" if taken else "")


def recall_room(window_tokens: int, share: float) -> int:
    """What recall may take of a window while the conversation wants the room too.

    Of a small one more than its share: what a question needs is the same there, and so is what its tags take. Neither recall nor the conversation
    ever has less room in a larger window.
    """
    return int(share * max(window_tokens, min(_MORE_OF_SMALL * window_tokens, SMALL_WINDOW)))


def share_of(window_tokens: int, most: int) -> int:
    """What one kind of memory may take of a window: `most`, or less if the window is small."""
    return min(most, window_tokens // MEMORY_SHARE)


# -- beside the messages ------------------------------------------------------------------------------------------------


def tool_texts(tools: object) -> tuple[str, ...]:
    """Each schema as compact JSON, whatever its shape; raises `SettingsError` for anything but a list of objects."""
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Iterable):
        kind = type(cast("object", tools)).__name__
        raise SettingsError(f"tools must be a list of schemas, not {kind}: write tools=[schema].")
    return tuple(_text(tool) for tool in cast("Iterable[object]", tools))


def _text(tool: object) -> str:
    try:
        given = cast("object", tool) if isinstance(tool, Mapping) else _dumped(tool)
        return json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=_dumped)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingsError(f"A tool is not JSON: {error}") from error


def _dumped(value: object) -> object:
    """A vendor's object as its own JSON; a class is refused."""
    dump = getattr(value, "model_dump", None)
    if isinstance(value, type) or not callable(dump):
        kind = type(value).__name__
        raise SettingsError(
            f"A tool must be a schema as OpenAI, Anthropic or MCP have it, not {kind}: give the JSON object that the request "
            "holds, or the vendor's object for it."
        )
    return dump(mode="json", exclude_unset=True, by_alias=True)


def tools_tokens(texts: Iterable[str], count: Callable[[str], int]) -> int:
    return sum(TOOL_OVERHEAD + count(text) for text in texts)


# -- what a model accepts in one request -------------------------------------------------------------------------------

#: The `tokenizer` of a model whose tokens cannot be counted exactly.
UNPUBLISHED = "unpublished"
#: How many tokens such a model is assumed to make of a hundred of ours. This errs on the safe side: Claude
#: and Gemini make more tokens of the same text than OpenAI's tokenizers in some languages, and fewer in
#: others.
UNPUBLISHED_PERCENT = 125

#: What may precede and follow a name: a provider, a date, a revision. A tag such as ":7b" or "-v1:0" is not a
#: name.
_PROVIDER = re.compile(
    r"^(?:[a-z][a-z_-]*:(?=[a-z])|[\w-]+/)*(?:(?:[a-z]+\.)?(?:anthropic|meta|mistral|deepseek|qwen)\.)?"
)
_VERSION = re.compile(
    r"(?:-latest|[-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}(?:-v\d+(?::\d+)?)?|-v\d+:\d+|-\d{3,4}|-preview(?:-\d\d-\d{2,4})?)$"
)


@dataclass(frozen=True, slots=True)
class ModelLimits:
    name: str
    #: The maximum size of a request.
    window_tokens: int
    #: The maximum length of an answer.
    answer_tokens: int
    #: Its tokenizer, as named by `tokenizer` in the settings; "unpublished" if unknown.
    tokenizer: str

    @property
    def percent(self) -> int:
        """How many tokens the model is assumed to make of a hundred of ours."""
        return UNPUBLISHED_PERCENT if self.tokenizer == UNPUBLISHED else 100


def model_limits(name: str) -> ModelLimits:
    """The limits of a model; raises `SettingsError` if it is not in the table."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a replay's changes come as JSON
        raise SettingsError(f"window_for must be the name of a model, not {type(name).__name__}.")
    table = known_models()
    found = next((table[one] for one in _names(name) if one in table), None)
    if found is None:
        near = get_close_matches(name.lower(), table, n=3, cutoff=0.5)
        close = f" Close to it are {', '.join(near)}." if near else ""
        raise SettingsError(
            f"The model {name!r} is not in Pagefile's table of models.{close} "
            "Give its context size instead: window_tokens=…"
        )
    return found


@cache
def known_models() -> dict[str, ModelLimits]:
    return {
        name: ModelLimits(name, row.get("input", row["window"]), row["output"], row["tokenizer"])
        for first, row in table("pagefile.window", "models").items()
        for name in (first, *row.get("also", ()))
    }


def _names(name: str) -> list[str]:
    """The name, then without its provider, then without suffixes, from the most specific on."""
    names = [name.lower()]
    names.append(_PROVIDER.sub("", names[0]))
    while (shorter := _VERSION.sub("", names[-1])) != names[-1]:
        names.append(shorter)
    return names
