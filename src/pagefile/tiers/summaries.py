"""Makes summaries that can be relied on, whatever the summarizer does.

A summarizer may raise, hang, return nothing, return far too much or repeat itself without doing harm. Input
that is longer than it can read is split into parts, each with the summary so far, and nothing is skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import anyio

from pagefile.ports import Summarizer, SummaryRequest
from pagefile.records import Turn
from pagefile.text.clip import cut
from pagefile.text.extract import summarize
from pagefile.text.sentences import sentences
from pagefile.tiers.base import guarded

#: The maximum length of a summary in characters.
SUMMARY_CHARS = 1200
#: And at most the window divided by this, at about one token per character.
SUMMARY_SHARE = 8
#: Beyond this, a summarizer is considered hung.
SUMMARY_TIMEOUT_S = 120.0


def summary_chars(window_tokens: int) -> int:
    """The maximum length of a summary in a window of this size."""
    return max(60, min(SUMMARY_CHARS, window_tokens // SUMMARY_SHARE))


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and what went wrong while it was made."""

    text: str
    trouble: str | None = None


async def summary_of(
    turns: Sequence[Turn], previous: str | None, summarizer: Summarizer, max_chars: int = SUMMARY_CHARS
) -> Summary:
    """One text for the previous summary and these turns; extracted from them if the summarizer fails."""
    said = [
        (speaker, text)
        for turn in turns
        for speaker, text in (("user", turn.user), ("assistant", turn.assistant))
        if text
    ]
    errors: list[Exception] = []
    # Whatever a model or a caller's function raises: the conversation must continue.
    with guarded(errors.append):
        return Summary(await _in_parts(said, previous, summarizer, max_chars))
    (error,) = errors
    extracted = summarize(said, max_chars=max_chars, previous=previous)
    return Summary(extracted, f"{type(error).__name__}: {error}")


async def _in_parts(
    said: Sequence[tuple[str, str]], previous: str | None, summarizer: Summarizer, max_chars: int
) -> str:
    so_far = previous
    for part in parts(said, summarizer.max_input_chars):
        with anyio.fail_after(SUMMARY_TIMEOUT_S):
            text = await summarizer.summarize(SummaryRequest(so_far, tuple(part), max_chars))
        so_far = usable(text, max_chars)
    return so_far or ""


def parts(said: Sequence[tuple[str, str]], max_chars: int) -> Iterator[list[tuple[str, str]]]:
    """What was said, in parts of at most `max_chars`; a longer text is split, and nothing is left out."""
    part: list[tuple[str, str]] = []
    size = 0
    for speaker, text in said:
        for start in range(0, len(text), max_chars):
            piece = text[start : start + max_chars]
            if part and size + len(piece) > max_chars:
                yield part
                part, size = [], 0
            part.append((speaker, piece))
            size += len(piece)
    if part:
        yield part


def usable(text: str, max_chars: int) -> str:
    """A summary without repetitions and of bounded length; raises if nothing is left."""
    kept = "".join(dict.fromkeys(sentence for sentence in sentences(text.strip())))
    if not kept.strip():
        raise ValueError("the summarizer returned nothing")
    return cut(kept, max_chars).strip()
