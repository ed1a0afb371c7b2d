"""What was measured of one message, and how windows are made and looked at: the same for every set."""

import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from statistics import fmean

import pagefile
from benchmarks.corpus import url_of
from benchmarks.recall_vectors import Remembered
from benchmarks.window_data import plain
from pagefile.engine import Memory
from pagefile.records import JsonObject
from pagefile.settings import EmbedderSettings, FactSettings, Settings
from pagefile.testing import FakeClock
from pagefile.text.tokens import CachedCounter, open_counter
from pagefile.window.parts import text_of
from pagefile.window.receipt import Window

#: Everything is counted with the default's vocabulary.
COUNT = CachedCounter(open_counter("o200k_base")).count
#: Who makes the window, or what else fills the budget.
WINDOW = "window"
RECALL, PLAIN = "recall packed", "BM25 packed"
_PATIENCE_S = 120.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Line:
    """One message: who made the window, of how many tokens, and what came of it."""

    set: str
    way: str
    id: str
    kind: str
    text: str
    budget: int
    figures: dict[str, float]

    def to_json(self) -> JsonObject:
        """A line of the output."""
        return {
            "set": self.set,
            "way": self.way,
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "budget": self.budget,
            "figures": {name: round(value, 4) for name, value in self.figures.items()},
        }


@dataclass(frozen=True, slots=True)
class Row:
    """The means of some lines."""

    set: str
    way: str
    budget: int
    kind: str
    count: int
    figures: dict[str, float]

    def to_json(self) -> JsonObject:
        """As a line of the output."""
        figures = {name: round(value, 4) for name, value in self.figures.items()}
        return {
            "set": self.set,
            "way": self.way,
            "budget": self.budget,
            "kind": self.kind,
            "count": self.count,
            "figures": {**figures},
        }


def means(lines: Iterable[Line], *, kinds: bool = False) -> list[Row]:
    """A row for each set, budget and way, and for each kind of message in it if `kinds`."""
    groups: dict[tuple[str, int, str, str], list[Line]] = {}
    for line in lines:
        for kind in ("", line.kind) if kinds else ("",):
            groups.setdefault((line.set, line.budget, line.way, kind), []).append(line)
    return [
        Row(name, way, budget, kind, len(group), _means(group))
        for (name, budget, way, kind), group in groups.items()
    ]


def _means(group: Sequence[Line]) -> dict[str, float]:
    """A figure that a line does not have is left out of its mean."""
    names = dict.fromkeys(name for line in group for name in line.figures)
    return {name: fmean(line.figures[name] for line in group if name in line.figures) for name in names}


@dataclass(frozen=True, slots=True)
class Bench:
    """What every part needs: vectors, and where progress goes."""

    vectors: Remembered
    tell: Progress
    #: A sample only.
    quick: bool = False
    clock: FakeClock = field(default_factory=FakeClock)
    #: Where lines are kept, so that a run can go on where another one of the same code stopped.
    kept: Path | None = None

    async def once(self, name: str, work: Callable[[], Awaitable[list[Line]]]) -> list[Line]:
        """What the same code measured before, or measures now and keeps."""
        if self.kept is None:
            return await work()
        # With another encoder, other code or fewer questions it is another measurement.
        mark = sha256(f"{_code()} {self.vectors.name} {self.quick}".encode()).hexdigest()[:12]
        path = self.kept / f"{name.replace('/', '_')}-{mark}.jsonl"
        if path.exists():
            return [Line(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
        lines = await work()
        self.kept.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(
            "".join(f"{json.dumps(asdict(line), ensure_ascii=False)}\n" for line in lines), "utf-8"
        )
        part.rename(path)
        return lines

    @asynccontextmanager
    async def memory(self, facts: FactSettings | None = None) -> AsyncGenerator[Memory]:
        """An empty memory with the defaults, at the time of `clock`; vectors are waited for, however busy the machine is."""
        settings = Settings(
            synchronous="normal",
            calls_kept=0,
            facts=facts or FactSettings(),
            embedder=EmbedderSettings(query_timeout_s=_PATIENCE_S),
        )
        with tempfile.TemporaryDirectory(prefix="pagefile-bench-") as folder:
            async with Memory.open(
                url_of(Path(folder) / "window.db"),
                embedder=self.vectors,
                settings=settings,
                clock=self.clock,
            ) as memory:
                yield memory


@cache
def _code() -> str:
    """Everything that a window depends on."""
    here, package = Path(__file__).parent, Path(pagefile.__file__).parent
    files = [*package.rglob("*"), *here.glob("window*.py"), *(here / "everyday").rglob("*")]
    code = (path for path in sorted(files) if path.suffix in {".py", ".toml", ".sql", ".txt", ".json"})
    return sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


def seen(window: Window) -> str:
    """All that a model is shown."""
    return plain("\n".join(text_of(message) for message in window.messages))


def recalled(window: Window) -> str:
    """What memory brought by itself: facts, turns, passages."""
    return plain(window.parts.memory.text)


def recall_tokens(window: Window) -> int:
    """What that costs, its tags and its note included."""
    text = window.parts.memory.text
    return COUNT(text) if text else 0


def pieces(window: Window) -> list[str]:
    """Each thing that memory brought."""
    return [plain(text) for texts in window.parts.memory.sections.values() for text in texts]


def precision(brought: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """How many of the pieces hold something wanted; where nothing was brought there is nothing to tell."""
    return {"precision": fmean(any(one in piece for one in wanted) for piece in brought)} if brought else {}
