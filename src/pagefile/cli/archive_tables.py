"""How archived pages look in a terminal."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pagefile.cli.measures import size_text, span_text
from pagefile.cli.output import clipped, moment, number, plural, print_table, say, table, visible
from pagefile.records import Page, PageHit

#: Columns left beside the numbers in an 80-column terminal.
_BESIDE = 44
_PASSAGE = 300


@dataclass(slots=True)
class Totals:
    """The totals of a list of pages; purged ones count as pages only."""

    pages: int = 0
    chars: int = 0
    tokens: int = 0
    pinned: int = 0
    purged: int = 0
    _texts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, page: Page) -> None:
        """Count one more page."""
        self.pages += 1
        self.pinned += page.pinned
        self.purged += page.purged is not None
        if page.purged is None:
            self.chars += page.length
            self.tokens += page.tokens
            self._texts[page.content_hash] = page.stored_bytes

    @property
    def stored_bytes(self) -> int:
        """What the texts take on disk; equal ones are stored once."""
        return sum(self._texts.values())


def totals_json(totals: Totals) -> dict[str, int]:
    """The totals for a script."""
    return {
        "pages": totals.pages,
        "chars": totals.chars,
        "tokens": totals.tokens,
        "stored_bytes": totals.stored_bytes,
        "pinned": totals.pinned,
        "purged": totals.purged,
    }


def show_pages(pages: Sequence[Page], totals: Totals) -> None:
    """Pages as a table, with their totals."""
    now = datetime.now(UTC)
    made = table("age", "tokens", "stored", "loads", "page", right=("age", "tokens", "stored", "loads"))
    for page in pages:
        made.add_row(
            span_text(now - page.created),
            number(page.tokens),
            "–" if page.purged else size_text(page.stored_bytes),
            number(page.loads),
            _about(page),
        )
    print_table(made)
    if totals.pages > len(pages):
        say(f"\nThere are more: --limit {len(pages) * 10} shows them.")
    state = [
        f"{count} {word}" for count, word in ((totals.pinned, "pinned"), (totals.purged, "purged")) if count
    ]
    parts = [plural(totals.pages, "page"), *state, plural(totals.chars, "character")]
    parts += [plural(totals.tokens, "token"), f"{size_text(totals.stored_bytes)} on disk"]
    say(f"\n{' · '.join(parts)}")


def show_page(page: Page, text: str | None, *, more_from: int | None) -> None:
    """Everything about a page, and its text if it is to be shown."""
    made = table("page", page.uuid)
    for name, value in _rows(page):
        made.add_row(name, value)
    print_table(made)
    if text is None:
        return
    say(f"\n{visible(text, lines=True)}")
    if more_from is not None:
        say(f"\n… {number(page.length - more_from)} more characters: --offset {more_from}")


def show_hits(hits: Sequence[PageHit], *, full: bool) -> None:
    """Pages that match a query."""
    made = table("score", "offset", "passage", right=("score", "offset"))
    for hit in hits:
        passage = visible(hit.passage, lines=True) if full else clipped(hit.passage, _PASSAGE)
        made.add_row(
            f"{hit.score:.2f}", number(hit.start), f"{_about(hit.page)}\n{passage}", end_section=True
        )
    print_table(made)


def show_purged(pages: Sequence[Page], freed: int) -> None:
    """The pages that became tombstones."""
    made = table("age", "stored", "tombstone", right=("age", "stored"))
    now = datetime.now(UTC)
    for page in pages:
        made.add_row(span_text(now - page.created), size_text(page.stored_bytes), _about(page))
    print_table(made)
    say(f"\nPurged {plural(len(pages), 'page')}: {size_text(freed)} freed.")


def _about(page: Page) -> str:
    """A page's id and state, its tool and query, its length and conversation: a line each."""
    state = "purged" if page.purged else "pinned" if page.pinned else ""
    where = f" · {page.scope.conversation}" if page.scope.conversation else ""
    lines = (f"{page.tool}: {page.query_summary}", f"{number(page.length)} chars{where}")
    return "\n".join((f"{page.uuid} {state}".rstrip(), *(clipped(line, _BESIDE) for line in lines)))


def _rows(page: Page) -> list[tuple[str, str]]:
    rows = [
        ("tool", visible(page.tool)),
        ("query", visible(page.query_summary)),
        ("input", clipped(json.dumps(page.input, ensure_ascii=False), 400)),
        ("conversation", visible(page.scope.conversation or "–")),
        ("user", visible(page.scope.user or "–")),
        ("thread", visible(page.thread or "")),
        ("created", moment(page.created)),
        ("state", _state(page)),
        ("length", plural(page.length, "character")),
        ("tokens", f"{number(page.tokens)} ({page.counter})"),
        ("stored", "" if page.purged else f"{size_text(page.stored_bytes)} on disk"),
        ("sha256", page.content_hash),
        ("loads", _loads(page)),
        ("synopsis", visible(page.result_summary, lines=True)),
        ("sources", "\n".join(visible(source) for source in page.sources)),
    ]
    return [(name, value) for name, value in rows if value]


def _state(page: Page) -> str:
    if page.purged is not None:
        return f"purged {moment(page.purged)}: the text is gone"
    return "pinned" if page.pinned else "archived"


def _loads(page: Page) -> str:
    last = "" if page.last_load is None else f", last {moment(page.last_load)}"
    return f"{number(page.loads)}{last}"
