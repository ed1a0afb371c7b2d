"""What a request costs: the tokens that a provider counted, at the prices of the operator's own table.

Prices change and contracts differ, so none come with Pagefile. A table is a TOML file: a currency, and for each model the price
of a million tokens.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pagefile.errors import SettingsError
from pagefile.shapes.skeleton import as_object

_MILLION = 1_000_000
_KINDS = ("input", "output", "cached", "written")


class Usage(NamedTuple):
    """Tokens as a provider bills them."""

    #: Of the whole request, from the cache or not.
    input: int
    output: int
    #: Of the input: read from the prompt cache, and written to it at a price of its own.
    cached: int = 0
    written: int = 0


def usage_of(told: Mapping[str, Any]) -> Usage | None:
    """The usage in an answer of any of the protocols; None if it has none."""

    def count(fields: Mapping[str, Any], *names: str) -> int:
        given = next((fields[name] for name in names if name in fields), 0)
        return given if isinstance(given, int) and given > 0 else 0

    if not told:
        return None
    details = as_object(told.get("prompt_tokens_details", told.get("input_tokens_details"))) or {}
    # Anthropic counts what its cache read and wrote beside the input, OpenAI in it.
    read, written = count(told, "cache_read_input_tokens"), count(told, "cache_creation_input_tokens")
    return Usage(
        count(told, "input_tokens", "prompt_tokens") + read + written,
        count(told, "output_tokens", "completion_tokens"),
        read or count(details, "cached_tokens"),
        written,
    )


@dataclass(frozen=True, slots=True)
class Prices:
    currency: str = ""
    #: By the beginning of a model's name: of a million tokens each.
    models: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    def of(self, model: str, usage: Usage | None) -> float | None:
        """What a request cost; None if its model has no price, or nothing was counted."""
        names = [name for name in self.models if model.startswith(name)]
        if not names or usage is None:
            return None
        price = self.models[max(names, key=len)]
        plain = max(0, usage.input - usage.cached - usage.written)
        counted = {"input": plain, "output": usage.output, "cached": usage.cached, "written": usage.written}
        return sum(tokens * price.get(kind, price["input"]) for kind, tokens in counted.items()) / _MILLION


def read_prices(path: str | None) -> Prices:
    """The table in a file; none without one."""
    if path is None:
        return Prices()
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"gateway.prices: {path!r} cannot be read: {error}.") from error
    currency = table.pop("currency", None)
    if not isinstance(currency, str) or not currency.strip():
        raise SettingsError(f'gateway.prices: {path!r} needs a line such as currency = "USD" at its top.')
    return Prices(currency.strip(), {name: _price(path, name, value) for name, value in table.items()})


def _price(path: str, model: str, value: object) -> dict[str, float]:
    given = as_object(value) or {}
    good = all(
        name in _KINDS
        and isinstance(one, int | float)
        and not isinstance(one, bool)
        and 0 <= one < float("inf")
        for name, one in given.items()
    )
    if not good or not {"input", "output"} <= given.keys():
        raise SettingsError(
            f"gateway.prices: {path!r}: [{model!r}] needs the prices of a million tokens, input and output, and perhaps "
            "cached and written, as numbers of 0 or more."
        )
    return {name: float(one) for name, one in given.items()}
