"""Which notes bear on what is asked now: a conversation goes on long after a search has served its purpose."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefile.text.recall_gate import tells
from pagefile.text.words import terms
from pagefile.tiers.workspace.notes import ContentChunk

#: The share of a question's terms that a note of an earlier question has in common with it.
_LEAST_SHARED = 0.25


class _Task(NamedTuple):
    number: int
    query: str


class Tasks:
    """The question a run is working on, and the one that each of its notes was found for."""

    def __init__(self) -> None:
        self._now = _Task(0, "")
        #: By the identity of the chunk, which stays in the dictionary for as long as its entry.
        self._found: dict[int, tuple[ContentChunk, _Task]] = {}

    def ask(self, query: str) -> None:
        if query != self._now.query:
            self._now = _Task(self._now.number + 1, query)

    def found(self, chunks: Sequence[ContentChunk]) -> None:
        """These are the notes after a result: the new ones were found for the current question."""
        self._found = {id(chunk): self._found.get(id(chunk), (chunk, self._now)) for chunk in chunks}

    def concern(self, chunk: ContentChunk) -> bool:
        """Whether the current question is served by a note: found for it or the one before, or about the same things."""
        task = self._found.get(id(chunk), (chunk, self._now))[1]
        if not task.query or self._now.number - task.number <= 1:
            return True
        if tells(self._now.query):
            return False
        asked = set(terms(self._now.query))
        known = set(terms(f"{task.query}\n{chunk.source}\n{chunk.content}"))
        return len(asked & known) >= max(1, _LEAST_SHARED * len(asked))
