"""What a model accepts in one request: a table, kept as data beside this file."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from pagefile.errors import SettingsError
from pagefile.text.tables import table

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
    """The limits of a model."""

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
    """Every model in the table, by each of its names."""
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
