"""What was kept, what was left out, and why: the receipt of a window."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pagefile.records import JsonObject, JsonValue
from pagefile.window.budget import Beside
from pagefile.window.candidates import PRIORITY, Block, Message
from pagefile.window.parts import Parts, anthropic, plain_text, responses
from pagefile.window.wording import Language


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on one candidate."""

    id: str
    block: Block
    kept: bool
    #: The form that was chosen: "full", "slim", "placeholder" …; None if dropped.
    form: str | None
    #: Exact tokens of the form that was kept, or of the fullest one if dropped.
    tokens: int
    reason: str
    score: float | None = None
    #: A note about it, such as what a summary covers.
    note: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Every candidate exactly once, kept or dropped; iterates over its verdicts."""

    verdicts: tuple[Verdict, ...]
    budget: int
    #: Tokens that belong to no candidate: message frames, tags and joins. May be negative if joined text is
    #: shorter.
    framing: int
    counter: str
    #: False if the counts are estimates.
    exact: bool
    #: What went wrong on the way: tiers that failed, turns that had to be counted again.
    degraded: tuple[str, ...] = ()
    #: Tokens of the budget that are not for messages: "tools", "answer", and "tokenizer" if the model's own
    #: is unknown.
    reserved: Mapping[Beside, int] = field(default_factory=dict[Beside, int])

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def kept(self) -> tuple[Verdict, ...]:
        """The verdicts on what is in the window."""
        return tuple(verdict for verdict in self.verdicts if verdict.kept)

    @property
    def dropped(self) -> tuple[Verdict, ...]:
        """The verdicts on what was left out."""
        return tuple(verdict for verdict in self.verdicts if not verdict.kept)

    def tokens_by_block(self) -> Mapping[Block, int]:
        """Kept tokens of each block that has any, in order of priority."""
        sums: dict[Block, int] = {}
        for verdict in self.verdicts:
            if verdict.kept:
                sums[verdict.block] = sums.get(verdict.block, 0) + verdict.tokens
        return {block: sums[block] for block in PRIORITY if block in sums}

    def to_json(self) -> JsonObject:
        _, *own = fields(self)
        value: dict[str, Any] = {one.name: getattr(self, one.name) for one in own}
        value |= {"degraded": list(self.degraded), "reserved": dict(self.reserved)}
        value["verdicts"] = [_verdict_json(verdict) for verdict in self.verdicts]
        return value


def receipt_from(value: JsonObject) -> Receipt:
    given = _known(Receipt, value)
    given["verdicts"] = tuple(Verdict(**_known(Verdict, verdict)) for verdict in given["verdicts"])
    given["degraded"] = tuple(given["degraded"])
    return Receipt(**given)


def _known(kind: type[Receipt | Verdict], value: JsonObject) -> dict[str, Any]:
    """The fields of this version: a later one may have recorded more."""
    return {one.name: value[one.name] for one in fields(kind) if one.name in value}


def _verdict_json(verdict: Verdict) -> dict[str, JsonValue]:
    # By hand: there is one for each turn of every window, and going by the fields takes three times as long.
    return {
        "id": verdict.id,
        "block": verdict.block,
        "kept": verdict.kept,
        "form": verdict.form,
        "tokens": verdict.tokens,
        "reason": verdict.reason,
        "score": verdict.score,
        "note": verdict.note,
    }


@dataclass(frozen=True, slots=True)
class Window:
    """What to send to the model, and how it came about."""

    #: What it is made of; every list of messages is rendered from this.
    parts: Parts
    #: The parts as OpenAI's chat messages; the last user message is the current one.
    messages: list[Message]
    #: Exact tokens of `messages` as a chat request, reply priming included; other providers' turns as that
    #: provider gets them.
    tokens: int
    #: The maximum size of the request; `receipt.reserved` says how much of it is not for messages.
    budget: int
    #: How full the window would be with every live turn in it; above 1 if some were left out.
    ratio: float
    #: "FULL_HISTORY" or "SUMMARY_N".
    mode: str
    should_checkpoint: bool
    #: Hash of what precedes the part specific to the question: unchanged as long as a prompt cache can be
    #: reused.
    prefix_hash: str
    #: The number of `messages` in that prefix.
    prefix_messages: int
    receipt: Receipt
    #: The call's id in `chat.calls()`.
    id: str = field(default="")

    @property
    def language(self) -> Language:
        """The language of what is written around the conversation; `tool_schemas(window.language)` speaks it too."""
        return self.parts.memory.language

    def for_anthropic(self) -> tuple[str, list[Message]]:
        """The same window for Anthropic's API: the system text, and messages whose roles alternate."""
        return anthropic(self.parts)

    def for_responses(self) -> tuple[str, list[Message]]:
        """The same window for OpenAI's Responses API: the instructions, and the input items."""
        return responses(self.parts)

    def as_text(self) -> str:
        """The same window as one text, one line per message."""
        return plain_text(self.parts, self.language)
