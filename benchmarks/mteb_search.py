"""Pagefile's whole recall for MTEB: an object of the shape of its `SearchProtocol`, to be given to `mteb.evaluate`.

    import mteb
    from benchmarks.mteb_search import PagefileSearch

    mteb.evaluate(PagefileSearch(), mteb.get_tasks(["LoCoMo"]))

A document is a turn, in the order of the corpus. Where a task names the documents that each query is asked of, these are a user's memory.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

from benchmarks.corpus import url_of
from benchmarks.recall_data import Asked, Corpus, Said
from benchmarks.recall_rankers import PagefileRanker
from pagefile.engine import Memory
from pagefile.ports import Embedder
from pagefile.settings import Settings

Row = Mapping[str, Any]
#: Documents have no time: the first one is said then, the others a minute after one another.
_FIRST = datetime(2020, 1, 1, tzinfo=UTC)


class PagefileSearch:
    """Takes in a corpus and answers queries; `embedder` as `Memory.open` takes it."""

    def __init__(self, embedder: str | Embedder | None = None) -> None:
        self._embedder = embedder
        self._said: list[Said] = []

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB writes beside its figures."""
        meta: Any = import_module("mteb.models.model_meta").ModelMeta
        return meta.create_empty({"name": "pagefile/recall", "revision": "1"})

    def index(self, corpus: Iterable[Row], **_: Any) -> None:
        """Take in the documents; what else MTEB says of the task is not needed."""
        self._said = [
            Said(row["id"], "corpus", "corpus", _FIRST + timedelta(minutes=number), _text(row))
            for number, row in enumerate(corpus)
        ]

    def search(
        self,
        queries: Iterable[Row],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """For each query the best documents, better ones with a higher score."""
        groups: dict[tuple[str, ...] | None, list[Row]] = {}
        for row in queries:
            among = None if top_ranked is None else tuple(sorted(top_ranked[row["id"]]))
            groups.setdefault(among, []).append(row)
        return anyio.run(self._found, groups, top_k)

    async def _found(
        self, groups: Mapping[tuple[str, ...] | None, Sequence[Row]], top_k: int
    ) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
            url, settings = url_of(Path(folder) / "mteb.db"), Settings(synchronous="normal")
            async with Memory.open(url, embedder=self._embedder, settings=settings) as memory:
                ranker = PagefileRanker("pagefile", memory)
                for number, (among, rows) in enumerate(groups.items()):
                    chosen = None if among is None else set(among)
                    said = [one for one in self._said if chosen is None or one.id in chosen]
                    await ranker.take(Corpus(f"user-{number}", said, ()))
                    for row in rows:
                        ranked = await ranker.rank(_asked(row), top_k)
                        found[row["id"]] = {turn: 1 / place for place, turn in enumerate(ranked, 1)}
        return found


def _text(row: Row) -> str:
    return "\n".join(filter(None, (row.get("title"), row["text"])))


def _asked(row: Row) -> Asked:
    return Asked(row["id"], row["text"], "", frozenset(), frozenset(), datetime.now(UTC))
