"""Compares two windows: what entered, what left, what changed its form, and how the texts differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, groupby, takewhile
from typing import Literal, cast

from pagefile.text.tokens import MESSAGE_OVERHEAD
from pagefile.window.candidates import PRIORITY, RANK, Block, Message
from pagefile.window.measure import Count
from pagefile.window.parts import text_of
from pagefile.window.receipt import Receipt, Verdict, Window

#: "form": shown fuller or shorter; "block": the same text, counted elsewhere (a recent turn that became an
#: older one).
Change = Literal["entered", "left", "form", "block", "same"]
#: Lines of context around a difference.
_AROUND = 3


@dataclass(frozen=True, slots=True)
class BlockBill:
    """The cost of one block of a window, and how many of its candidates were kept and dropped."""

    block: Block
    tokens: int
    kept: int
    dropped: int


@dataclass(frozen=True, slots=True)
class BlockChange:
    """The tokens of one block in both windows."""

    block: Block | Literal["framing"]
    before: int
    after: int

    @property
    def difference(self) -> int:
        """Positive if the block grew."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class CandidateChange:
    """A candidate in both windows; None where it was not even offered."""

    id: str
    change: Change
    before: Verdict | None
    after: Verdict | None

    @property
    def verdict(self) -> Verdict:
        """What the later receipt says of it, or the earlier one."""
        return cast("Verdict", self.after or self.before)

    @property
    def block(self) -> Block:
        return self.verdict.block

    @property
    def difference(self) -> int:
        """Tokens that the change costs; negative if it saves some."""
        return _kept_tokens(self.after) - _kept_tokens(self.before)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of the texts: in both ("="), only before ("-"), only after ("+"), or the number of lines left out ("…")."""

    sign: Literal["=", "-", "+", "…"]
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two windows differ. The differences of the blocks add up to that of the tokens."""

    tokens_before: int
    tokens_after: int
    blocks: tuple[BlockChange, ...]
    #: Every candidate of either window, changed ones first.
    candidates: tuple[CandidateChange, ...]
    diff: tuple[DiffLine, ...]

    @property
    def difference(self) -> int:
        """How many more tokens the second window costs."""
        return self.tokens_after - self.tokens_before

    @property
    def changed(self) -> tuple[CandidateChange, ...]:
        """The candidates that entered, left, or are shown differently."""
        return tuple(one for one in self.candidates if one.change != "same")

    @property
    def same(self) -> bool:
        """Whether both windows are equal, byte for byte."""
        return not self.diff


def bill(receipt: Receipt) -> tuple[BlockBill, ...]:
    """The context bill: each block that had a candidate, in order of priority."""
    tokens, offered = receipt.tokens_by_block(), Counter(verdict.block for verdict in receipt)
    kept = Counter(verdict.block for verdict in receipt.kept)
    return tuple(
        BlockBill(b, tokens.get(b, 0), kept[b], offered[b] - kept[b]) for b in PRIORITY if b in offered
    )


def compared(before: Window, after: Window) -> Comparison:
    receipts = before.receipt, after.receipt
    was, now = (receipt.tokens_by_block() for receipt in receipts)
    blocks = [BlockChange(b, was.get(b, 0), now.get(b, 0)) for b in PRIORITY if b in was or b in now]
    framing = BlockChange("framing", *(receipt.framing for receipt in receipts))
    old, new = ({verdict.id: verdict for verdict in receipt} for receipt in receipts)
    changes = [_changed(name, old.get(name), new.get(name)) for name in dict.fromkeys([*new, *old])]
    changes.sort(key=lambda one: (one.change == "same", RANK[one.block]))
    diff = tuple(text_diff(before.messages, after.messages))
    return Comparison(before.tokens, after.tokens, (*blocks, framing), tuple(changes), diff)


def shared_messages(before: Sequence[Message], after: Sequence[Message]) -> int:
    """The number of equal messages at the beginning of both: what a prompt cache can reuse."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def message_tokens(message: Message, count: Count) -> int:
    """What one message costs in a chat request, tool calls included."""
    called = sum(count(one["name"]) + count(one["arguments"]) for one in _functions(message))
    content = text_of(message)
    return MESSAGE_OVERHEAD + (count(content) if content else 0) + called


def _changed(name: str, before: Verdict | None, after: Verdict | None) -> CandidateChange:
    was, now = before is not None and before.kept, after is not None and after.kept
    if was != now:
        return CandidateChange(name, "entered" if now else "left", before, after)
    if before is None or after is None or not now:
        return CandidateChange(name, "same", before, after)
    if (before.form, before.tokens) != (after.form, after.tokens):
        return CandidateChange(name, "form", before, after)
    return CandidateChange(name, "same" if before.block == after.block else "block", before, after)


def _kept_tokens(verdict: Verdict | None) -> int:
    return verdict.tokens if verdict is not None and verdict.kept else 0


# -- texts ---------------------------------------------------------------------------------------------------------------


def text_diff(before: Sequence[Message], after: Sequence[Message]) -> Iterator[DiffLine]:
    """The lines in which two lists of messages differ, with some context; nothing if they are equal.

    Whole messages are compared first, and only those not in both line by line: there may be thousands of lines.
    """
    if list(before) == list(after):
        return
    was, now = ([_lines(message) for message in messages] for messages in (before, after))
    lines: list[DiffLine] = []
    for tag, i, j, k, m in SequenceMatcher(None, was, now, autojunk=False).get_opcodes():
        old, new = list(chain(*was[i:j])), list(chain(*now[k:m]))
        lines += [DiffLine("=", line) for line in old] if tag == "equal" else _line_diff(old, new)
    # Equal lines that are far from any difference are left out.
    shown: set[int] = set()
    for place, line in enumerate(lines):
        if line.sign != "=":
            shown.update(range(place - _AROUND, place + _AROUND + 1))
    for is_shown, run in groupby(range(len(lines)), key=shown.__contains__):
        places = list(run)
        yield from [lines[place] for place in places] if is_shown else [DiffLine("…", str(len(places)))]


def _line_diff(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        signs: Sequence[Literal["=", "-", "+"]] = ("=",) if tag == "equal" else ("-", "+")
        for sign, lines in zip(signs, (old[i:j], new[k:m]), strict=False):
            yield from (DiffLine(sign, line) for line in lines)


def _lines(message: Message) -> tuple[str, ...]:
    calls = [f"{function['name']} {function['arguments']}" for function in _functions(message)]
    return (f"[{message['role']}]", *calls, *text_of(message).splitlines())


def _functions(message: Message) -> list[Mapping[str, str]]:
    calls = cast("Sequence[Mapping[str, Mapping[str, str]]]", message.get("tool_calls") or ())
    return [call["function"] for call in calls]
