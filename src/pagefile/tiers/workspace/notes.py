"""What an agent has seen in this session (`AgentMemory`), which of it is kept, and how it appears in a prompt.

It needs no store and no event loop; the workspace tier keeps one for each run.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Literal, cast, get_args

from pagefile.errors import InvalidArgumentError
from pagefile.records import JsonValue
from pagefile.text.scores import Scale, normalised
from pagefile.text.sentences import cut
from pagefile.tiers.workspace.calls import ToolCall
from pagefile.tiers.workspace.effects import touches
from pagefile.tiers.workspace.excerpts import answering
from pagefile.tiers.workspace.found import hits
from pagefile.tiers.workspace.outline import Entry, chapters, entries, left_out, outline
from pagefile.tiers.workspace.results import Plain, clean, to_json
from pagefile.window.wording import WORDINGS, Wording

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
    #: normalisation, `passage` tells the passages of one source apart.
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def __post_init__(self) -> None:
        if self.chunk_type not in get_args(ChunkType):
            raise InvalidArgumentError(
                f"chunk_type is {self.chunk_type!r}: it must be one of {', '.join(get_args(ChunkType))}."
            )
        score = self.relevance_score
        if isinstance(score, bool) or not math.isfinite(score) or not 0 <= score <= 1:
            raise InvalidArgumentError(
                f"relevance_score is {score!r}: give 0 to 1. add_search_results() brings other scales there."
            )

    @property
    def key(self) -> tuple[str, str, JsonValue]:
        """Chunks with the same key are the same; the better one is kept."""
        return self.source, self.chunk_type, self.metadata.get(PASSAGE)


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


logger = logging.getLogger("pagefile")

#: Further chapters are not listed.
MAX_CHAPTERS = 200
_NOTHING: Mapping[str, JsonValue] = {}
#: The key under which a hit names its passage.
PASSAGE = "passage"


@dataclass
class AgentMemory:
    """Agent 记忆状态: of one session, in memory only, not shared."""

    #: 目录缓存 (reg_id -> TocTree)
    toc_cache: dict[str, dict[str, Plain]] = field(default_factory=dict[str, dict[str, Plain]])
    #: 已知章节范围
    known_chapters: list[str] = field(default_factory=list[str])
    #: 相关内容（按相关性排序）
    relevant_chunks: list[ContentChunk] = field(default_factory=list[ContentChunk])
    #: 当前查询上下文
    current_query: str = ""
    #: 最大记忆容量
    max_chunks: int = 10
    #: 最小相关性阈值
    min_relevance: float = 0.5
    #: If False, nothing is remembered, and all texts are empty.
    enabled: bool = True
    #: Characters kept of a search result, and of a page.
    search_chars: int = 300
    page_chars: int = 500
    #: The number of chunks in a prompt.
    max_injected: int = 5
    #: Pages beyond this share of the capacity are evicted before search results.
    page_share: float = 0.5
    #: Characters of outline in the hint; 0 for none.
    outline_chars: int = 1200
    language: Literal["zh", "en"] = "zh"
    #: The documents whose table of contents a tool returned, for whatever arguments it was called with.
    _fetched: set[str] = field(default_factory=set[str], init=False, repr=False, compare=False)
    _read: dict[str, tuple[dict[str, Plain], list[Entry]]] = field(
        default_factory=dict[str, tuple[dict[str, Plain], list[Entry]]], init=False, repr=False, compare=False
    )

    # -- 目录缓存 -----------------------------------------------------------------------------------------------------

    def cache_toc(self, reg_id: str, toc: dict[str, Plain]) -> None:
        """缓存目录"""
        if self.enabled:
            self.toc_cache[reg_id] = toc
            self._fetched.discard(reg_id)
            self._learn_chapters()
            logger.debug("[Memory] 缓存目录: %s", reg_id)

    def fetched_toc(self, reg_id: str, toc: dict[str, Plain]) -> None:
        """Cache what a tool returned: another call of the tool may return another part of it."""
        self.cache_toc(reg_id, toc)
        self._fetched.add(reg_id)

    def given_toc(self, reg_id: str) -> dict[str, Plain] | None:
        """The table of contents that was put in with `cache_toc`, and answers every call for its document."""
        return None if reg_id in self._fetched else self.toc_cache.get(reg_id)

    def drop_toc(self, reg_id: str) -> None:
        self.toc_cache.pop(reg_id, None)
        self._read.pop(reg_id, None)
        self._learn_chapters()

    def get_cached_toc(self, reg_id: str) -> dict[str, Plain] | None:
        """获取缓存的目录"""
        return self.toc_cache.get(reg_id)

    def has_cached_toc(self, reg_id: str) -> bool:
        """检查目录是否已缓存"""
        return reg_id in self.toc_cache

    # -- 内容记忆 -----------------------------------------------------------------------------------------------------

    def add_chunk(self, chunk: ContentChunk) -> None:
        """添加内容片段，保持按相关性排序，超过容量时移除低分内容; among equals the newest comes first."""
        if not self.enabled:
            return
        chunks = self.relevant_chunks
        old = next((one for one in chunks if one.key == chunk.key), None)
        if old is None or old.relevance_score <= chunk.relevance_score:
            others = [one for one in chunks if one is not old]
            place = sum(one.relevance_score > chunk.relevance_score for one in others)
            chunks = [*others[:place], chunk, *others[place:]]
        self.relevant_chunks[:] = self._fitting(chunks, self.max_chunks)

    def add_search_results(
        self,
        results: object,
        *,
        scale: Scale = "auto",
        tool: str = "search",
        metadata: Mapping[str, JsonValue] = _NOTHING,
    ) -> None:
        """从搜索结果中提取并添加高相关性内容; a list, or whatever a search tool wraps one in.

        Scores of any scale are normalised to 0–1, the raw one stays in the metadata.
        """
        found = hits(to_json(results), tool)
        scores = normalised([hit.score for hit in found], scale)
        # In reverse: among equals the newest comes first, and that should be the first result.
        for hit, score in reversed(list(zip(found, scores, strict=True))):
            if score >= self.min_relevance:
                kind = "table" if hit.table else "search_result"
                told = {"raw_score": cast("JsonValue", hit.score), PASSAGE: _fingerprint(hit.content)}
                text = answering(hit.content, self.current_query, self.search_chars)
                about = {**hit.extra, **told, **metadata}
                self.add_chunk(ContentChunk(text, hit.source, score, kind, about))
        if self.enabled:
            listed = cast("Sequence[object]", results) if isinstance(results, list | tuple) else found
            logger.debug("[Memory] 添加搜索结果: %s 条", len(listed))

    def add_page_content(
        self,
        content: str,
        source: str,
        relevance: float = 0.8,
        *,
        metadata: Mapping[str, JsonValue] = _NOTHING,
    ) -> None:
        """添加页面内容摘要: the part that answers the current query, or the beginning."""
        if self.enabled:
            text = answering(clean(content).strip(), self.current_query, self.page_chars)
            self.add_chunk(ContentChunk(text, clean(source), relevance, "page_content", dict(metadata)))
            logger.debug("[Memory] 添加页面内容: %s", source)

    def forget_changed(self, change: ToolCall) -> None:
        """Forget what was read from the files that a call changes."""
        self.relevant_chunks[:] = [one for one in self.relevant_chunks if not touches(change, one.source)]

    # -- 上下文生成 ---------------------------------------------------------------------------------------------------

    def get_memory_context(self) -> str:
        """生成记忆上下文，用于注入系统提示词"""
        shown = enumerate(self.shown(), 1)
        parts = [chunk_text(place, chunk.source, chunk.content) for place, chunk in shown]
        return "\n".join([self.wording.notes_title, *parts]) if parts else ""

    def get_toc_cache_hint(self) -> str:
        """生成目录缓存提示; with the outline, which shows what need not be fetched again."""
        return self.toc_hint(self.outline_chars)

    def toc_hint(self, outline_chars: int) -> str:
        """The hint with an outline of at most `outline_chars` characters; 0 for none."""
        if not self.enabled or not self.toc_cache:
            return ""
        known = ", ".join(self.toc_cache)
        lines = [self.wording.toc_title, self.wording.toc_known.format(names=known), self.wording.toc_again]
        if outline_chars > 0:
            lines += self._outlines(outline_chars // len(self.toc_cache))
        return "\n".join(lines)

    def shown(self, wanted: Callable[[ContentChunk], bool] = lambda _: True) -> list[ContentChunk]:
        """The chunks that appear in a prompt, of those that are `wanted` there."""
        chunks = filter(wanted, self.relevant_chunks)
        return self._fitting(distinct(list(chunks)), self.max_injected) if self.enabled else []

    # -- 重置方法 -----------------------------------------------------------------------------------------------------

    def clear_query_context(self) -> None:
        """清除当前查询上下文（保留目录缓存）"""
        self.relevant_chunks.clear()
        self.current_query = ""

    def reset(self) -> None:
        """完全重置记忆"""
        self.clear_query_context()
        self.toc_cache.clear()
        self.known_chapters.clear()
        self._read.clear()
        self._fetched.clear()

    def get_stats(self) -> dict[str, int]:
        """How much is held."""
        return {
            "toc_count": len(self.toc_cache),
            "known_chapters": len(self.known_chapters),
            "chunk_count": len(self.relevant_chunks),
        }

    # -- inside -------------------------------------------------------------------------------------------------------

    @property
    def wording(self) -> Wording:
        return WORDINGS[self.language]

    def _fitting(self, chunks: Sequence[ContentChunk], most: int) -> list[ContentChunk]:
        """As many chunks as fit: the last go first, but before good hits pages beyond their share, whose score is fixed."""
        kept, page_share = list(chunks), math.floor(most * self.page_share)
        while len(kept) > max(0, most):
            pages = [place for place, chunk in enumerate(kept) if chunk.chunk_type == "page_content"]
            good = kept[-1].relevance_score >= self.min_relevance
            del kept[pages[-1] if good and len(pages) > page_share else -1]
        return kept

    def _learn_chapters(self) -> None:
        titles = (title for reg_id in self.toc_cache for title in chapters(self._lines_of(reg_id)))
        self.known_chapters[:] = list(dict.fromkeys(titles))[:MAX_CHAPTERS]

    def _outlines(self, max_chars: int) -> list[str]:
        lines: list[str] = []
        for reg_id, toc in self.toc_cache.items():
            told = outline(self._lines_of(reg_id), max_chars, self.wording.toc_more, left_out(toc))
            if told and len(self.toc_cache) > 1:
                lines.append(f"## {reg_id}")
            lines += told.splitlines()
            if isinstance(uuid := toc.get(ARCHIVED), str):
                lines.append(self.wording.toc_page.format(name=reg_id, uuid=uuid))
        if lines or not self.known_chapters:
            return lines
        # Chapters named elsewhere, for a table of contents in which none can be recognised.
        return [
            cut(self.wording.chapters.format(titles=self.wording.comma.join(self.known_chapters)), max_chars)
        ]

    def _lines_of(self, reg_id: str) -> list[Entry]:
        """A table of contents is parsed once, not for every prompt."""
        toc = self.toc_cache[reg_id]
        if (known := self._read.get(reg_id)) is None or known[0] is not toc:
            known = self._read[reg_id] = toc, entries(toc)
        return known[1]


#: The key under which an archived table of contents names its page.
ARCHIVED = "archive_uuid"


def _fingerprint(text: str) -> str:
    """The same for the same passage, however much of it was kept."""
    return blake2s(" ".join(text.split()).encode(), digest_size=6).hexdigest()


def chunk_text(place: int, source: str, content: str) -> str:
    return f"## [{place}] {source}\n{content}"
