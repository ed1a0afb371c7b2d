"""Pieces of what a run has read, and which of them are kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from pagefile.errors import InvalidTurnError
from pagefile.records import JsonValue

ChunkType = Literal["search_result", "page_content", "table"]


@dataclass
class ContentChunk:
    """内容片段: a piece of a search result or of a page."""

    #: 内容文本
    content: str
    #: 来源, such as `angui_2024 P85`
    source: str
    #: 相关性评分 (0-1)
    relevance_score: float
    #: 类型: search_result, page_content, table
    chunk_type: str
    #: 额外元数据; `archive_uuid` is the archived page with the full text, `raw_score` the score before
    #: normalisation.
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def __post_init__(self) -> None:
        if self.chunk_type not in get_args(ChunkType):
            raise InvalidTurnError(
                f"chunk_type is {self.chunk_type!r}: it must be one of {', '.join(get_args(ChunkType))}."
            )
        score = self.relevance_score
        if isinstance(score, bool) or not math.isfinite(score) or not 0 <= score <= 1:
            raise InvalidTurnError(
                f"relevance_score is {score!r}: give 0 to 1. add_search_results() brings other scales there."
            )

    @property
    def key(self) -> tuple[str, str]:
        """Chunks with the same key are the same; the better one is kept."""
        return self.source, self.chunk_type


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many chunks are kept, and when pages are evicted."""

    chunks: int
    #: Hits with at least this relevance are not displaced by pages.
    min_relevance: float
    #: Pages have a fixed relevance whatever they say: beyond this share of the capacity they are evicted
    #: before hits.
    page_share: float


def with_chunk(chunks: Sequence[ContentChunk], new: ContentChunk, capacity: Capacity) -> list[ContentChunk]:
    """The chunks with one more, best first and newest first among equals, within the capacity.

    Of two with the same source and type the better is kept, or the newer if they are equal.
    """
    old = next((chunk for chunk in chunks if chunk.key == new.key), None)
    if old is not None and old.relevance_score > new.relevance_score:
        return fitting(chunks, capacity)
    others = [chunk for chunk in chunks if chunk is not old]
    place = sum(chunk.relevance_score > new.relevance_score for chunk in others)
    return fitting([*others[:place], new, *others[place:]], capacity)


def distinct(chunks: Sequence[ContentChunk]) -> list[ContentChunk]:
    """The chunks without those contained in another from the same source, such as a snippet of a page that was read."""
    return [
        chunk
        for place, chunk in enumerate(chunks)
        if not any(
            chunk.source == other.source
            and chunk.content in other.content
            and (len(chunk.content) < len(other.content) or at < place)
            for at, other in enumerate(chunks)
            if other is not chunk
        )
    ]


def fitting(chunks: Sequence[ContentChunk], capacity: Capacity) -> list[ContentChunk]:
    """As many chunks as fit: the last are evicted first, but pages beyond their share before good hits."""
    kept = list(chunks)
    while len(kept) > max(0, capacity.chunks):
        del kept[_given_up(kept, capacity)]
    return kept


def _given_up(chunks: Sequence[ContentChunk], capacity: Capacity) -> int:
    last = len(chunks) - 1
    pages = [place for place, chunk in enumerate(chunks) if chunk.chunk_type == "page_content"]
    share = math.floor(capacity.chunks * capacity.page_share)
    if len(pages) > share and chunks[last].relevance_score >= capacity.min_relevance:
        return pages[-1]
    return last
