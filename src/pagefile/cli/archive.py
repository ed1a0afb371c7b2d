"""`archive`: archived tool results, their disk usage, and their removal."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from typer import Argument, BadParameter, Option

from pagefile.cli.invocation import Invocation, command, confirm, group, whose
from pagefile.cli.measures import moment, number, plural, size, size_text, span, span_text
from pagefile.cli.options import Full, Limit, Newest, Query, Yes
from pagefile.cli.output import chosen, clipped, say, shortened, show_table, visible, warn
from pagefile.engine import Memory
from pagefile.engine.page_tools import load_text
from pagefile.records import DEFAULT_TENANT, Page, PageHit, Scope
from pagefile.tiers.archive import Archive

#: Pages read at a time.
_BATCH = 1000
#: Columns left beside the numbers in an 80-column terminal.
_BESIDE = 44
_PASSAGE = 300

app = group("List, read, search, pin and purge archived tool results.")

Uuid = Annotated[str, Argument(help="The page, as its placeholder names it.")]
User = Annotated[str | None, Option("--user-id", "--user", help="Only pages of this user.")]
InConversation = Annotated[
    str | None, Option("--conversation", "-c", help="Only pages of this conversation.")
]


# -- reading with full access to the database: any page of a tenant, or all of them --------------------------------------


def _everybody(tenant: str | None) -> Scope:
    return Scope(DEFAULT_TENANT if tenant is None else tenant)


async def _page(memory: Memory, uuid: str, tenant: str | None) -> Page:
    """A page, whatever its owner."""
    return await memory.engine.tier(Archive).page(_everybody(tenant), uuid)


async def _every_page(
    memory: Memory, *, user_id: str | None = None, conversation: str | None = None, tenant: str | None = None
) -> AsyncIterator[Page]:
    """All pages of a scope, newest first."""
    after: str | None = None
    while True:
        if conversation is None:
            found = await memory.pages(user_id=user_id, tenant=tenant, limit=_BATCH, after=after)
        else:
            chat = await whose(memory, conversation, user_id, tenant)
            found = await chat.pages(limit=_BATCH, after=after)
        for page in found:
            yield page
        after = found.next
        if after is None:
            return


# -- listing -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Totals:
    """The totals of a list of pages; purged ones count as pages only."""

    pages: int = 0
    chars: int = 0
    tokens: int = 0
    pinned: int = 0
    purged: int = 0
    _texts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, page: Page) -> None:
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


@command(app, "ls")
def list_pages(
    cli: Invocation, *, user_id: User = None, conversation: InConversation = None, limit: Newest = 20
) -> None:
    """List the archived pages, newest first, and what they take on disk."""
    newest: list[Page] = []
    totals = _Totals()

    async def work(memory: Memory) -> None:
        async for page in _every_page(memory, user_id=user_id, conversation=conversation, tenant=cli.tenant):
            totals.add(page)
            if len(newest) < limit:
                newest.append(page)

    cli.run(work)
    counts = chosen(totals, "pages chars tokens stored_bytes pinned purged")
    cli.answer(
        {"pages": newest, "more": totals.pages > len(newest), "totals": counts},
        lambda: _show_pages(newest, totals),
        found=newest,
        missing="There are no archived pages here: a tool result longer than `archive.threshold` becomes one.",
    )


def _show_pages(pages: Sequence[Page], totals: _Totals) -> None:
    now = datetime.now(UTC)
    rows = [
        (
            span_text(now - page.created),
            page.tokens,
            "–" if page.purged else size_text(page.stored_bytes),
            page.loads,
            _about(page),
        )
        for page in pages
    ]
    show_table((">age", ">tokens", ">stored", ">loads", "page"), rows)
    if totals.pages > len(pages):
        say(f"\nThere are more: --limit {len(pages) * 10} shows them.")
    states = {"pinned": totals.pinned, "purged": totals.purged}
    parts = [
        plural(totals.pages, "page"),
        *(f"{count} {word}" for word, count in states.items() if count),
        plural(totals.chars, "character"),
        plural(totals.tokens, "token"),
        f"{size_text(totals.stored_bytes)} on disk",
    ]
    say(f"\n{' · '.join(parts)}")


def _about(page: Page) -> str:
    """A page's id and state, its tool and query, its length and conversation: a line each."""
    state = "purged" if page.purged else "pinned" if page.pinned else ""
    where = f" · {page.scope.conversation}" if page.scope.conversation else ""
    lines = (f"{page.tool}: {page.query_summary}", f"{number(page.length)} chars{where}")
    return "\n".join((f"{page.uuid} {state}".rstrip(), *(clipped(line, _BESIDE) for line in lines)))


# -- one page ------------------------------------------------------------------------------------------------------------


@command(app)
def show(
    cli: Invocation,
    uuid: Uuid,
    *,
    query: Annotated[str | None, Option(help="Print the passages that answer this.")] = None,
    offset: Annotated[int | None, Option(min=0, help="Print the text from this character on.")] = None,
    limit: Annotated[
        int | None, Option(min=1, help="Print at most this many characters; with --query, tokens.")
    ] = None,
    full: Annotated[bool, Option("--full", help="Print the whole text.")] = False,
) -> None:
    """Show a page: where it came from, what is in it; its text when asked for."""
    in_part = (query, offset, limit) != (None, None, None)
    if full and in_part:
        raise BadParameter("--full prints the whole text: leave out --query, --offset and --limit")
    if query is not None and offset is not None:
        raise BadParameter("give either --query or --offset: passages are found anywhere in the text")
    start = offset or 0

    async def work(memory: Memory) -> tuple[Page, str | None]:
        page = await _page(memory, uuid, cli.tenant)
        if not full and not in_part:
            return page, None
        return page, await load_text(
            memory.engine, page.scope, page.uuid, query=query, offset=start, limit=limit
        )

    page, text = cli.run(work)
    end = 0 if text is None or query is not None else start + len(text)
    more_from = end if 0 < end < page.length else None
    cli.answer({"page": page, "text": text}, lambda: _show_page(page, text, more_from=more_from))


def _show_page(page: Page, text: str | None, *, more_from: int | None) -> None:
    show_table(("page", page.uuid), [(name, value) for name, value in _facts(page).items() if value])
    if text is None:
        return
    say(f"\n{visible(text, lines=True)}")
    if more_from is not None:
        say(f"\n… {number(page.length - more_from)} more characters: --offset {more_from}")


def _facts(page: Page) -> dict[str, str]:
    state = "pinned" if page.pinned else "archived"
    last = "" if page.last_load is None else f", last {moment(page.last_load)}"
    return {
        "tool": visible(page.tool),
        "query": visible(page.query_summary),
        "input": clipped(json.dumps(page.input, ensure_ascii=False), 400),
        "conversation": visible(page.scope.conversation or "–"),
        "user": visible(page.scope.user or "–"),
        "thread": visible(page.thread or ""),
        "created": moment(page.created),
        "state": state if page.purged is None else f"purged {moment(page.purged)}: the text is gone",
        "length": plural(page.length, "character"),
        "tokens": f"{number(page.tokens)} ({page.counter})",
        "stored": "" if page.purged else f"{size_text(page.stored_bytes)} on disk",
        "sha256": page.content_hash,
        "loads": f"{number(page.loads)}{last}",
        "synopsis": visible(page.result_summary, lines=True),
        "sources": "\n".join(visible(source) for source in page.sources),
    }


@command(app)
def search(
    cli: Invocation,
    query: Query,
    *,
    user_id: Annotated[str | None, Option("--user-id", "--user", help="Search all pages of a user.")] = None,
    conversation: Annotated[
        str | None, Option("--conversation", "-c", help="Search one conversation, whichever user owns it.")
    ] = None,
    limit: Limit = 5,
    full: Full = False,
) -> None:
    """Find archived pages, best first, each with its best passage and its position."""
    if not query.strip():
        raise BadParameter("the question is empty: say what to look for")
    if conversation is None and user_id is None:
        raise BadParameter("say where to search: --user-id ID or --conversation ID")

    async def work(memory: Memory) -> list[PageHit]:
        if conversation is None:
            whole = {"user_id": user_id or "", "tenant": cli.tenant}
            return await memory.search_tool_history(query, **whole, limit=limit)
        chat = await whose(memory, conversation, user_id, cli.tenant)
        return await chat.search_tool_history(query, limit, here=user_id is None)

    hits = cli.run(work)
    missing = f"No archived page here answers {query!r}."
    cli.answer(hits, lambda: _show_hits(hits, full=full), found=hits, missing=missing)


def _show_hits(hits: Sequence[PageHit], *, full: bool) -> None:
    passages = [f"{_about(hit.page)}\n{shortened(hit.passage, _PASSAGE, full=full)}" for hit in hits]
    rows = [(f"{hit.score:.2f}", hit.start, passage) for hit, passage in zip(hits, passages, strict=True)]
    show_table((">score", ">offset", "passage"), rows, apart=True)


# -- purging and pinning -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Purge:
    """Whose pages to purge, and which."""

    uuids: Sequence[str] | None = None
    older_than: timedelta | None = None
    max_bytes: int | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    tenant: str | None = None

    @property
    def conditions(self) -> list[str]:
        said: list[str] = []
        if self.uuids:
            said.append(plural(len(self.uuids), "named page"))
        if self.older_than is not None:
            said.append(f"pages older than {span_text(self.older_than)}")
        if self.max_bytes is not None:
            said.append(f"the oldest pages beyond {size_text(self.max_bytes)}")
        return said

    @property
    def words(self) -> str:
        whose = {"conversation": self.conversation_id, "user": self.user_id, "tenant": self.tenant}
        of = "".join(f" of {kind} {name!r}" for kind, name in whose.items() if name is not None)
        return " and ".join(self.conditions) + of

    async def checked(self, memory: Memory) -> "_Purge":
        """The request with its uuids as stored; a missing page is an error before anything is removed."""
        if self.uuids is None:
            return self
        pages = [await _page(memory, uuid, self.tenant) for uuid in self.uuids]
        for page in pages:
            if page.pinned:
                warn(f"{page.uuid} is pinned and stays: `pagefile archive unpin` it first.")
        return replace(self, uuids=list(dict.fromkeys(page.uuid for page in pages)))

    async def done(self, memory: Memory) -> tuple[list[Page], int]:
        """The purged pages, and the bytes this freed."""
        gone = await memory.purge(**asdict(self))
        # Equal texts are stored once, and removed with the last page that uses them.
        texts = {page.content_hash: page.stored_bytes for page in gone}
        if texts:
            async for page in _every_page(memory, tenant=self.tenant):
                if page.purged is None:
                    texts.pop(page.content_hash, None)
        return gone, sum(texts.values())


@command(app)
def purge(
    cli: Invocation,
    *,
    uuids: Annotated[list[str] | None, Option("--uuid", help="This page; may be given again.")] = None,
    older_than: Annotated[
        timedelta | None, Option(parser=span, metavar="30d|12h|…", help="Pages older than this.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        Option(parser=size, metavar="100MB|…", help="The oldest, until the rest takes no more on disk."),
    ] = None,
    user_id: User = None,
    conversation: InConversation = None,
    yes: Yes = False,
) -> None:
    """Remove the texts of archived pages; what they were stays as a tombstone, pinned pages stay whole."""
    wanted = _Purge(uuids, older_than, max_bytes, user_id, conversation, cli.tenant)
    if not wanted.conditions:
        raise BadParameter("say what to purge: --uuid, --older-than or --max-bytes")
    wanted = cli.run(wanted.checked)
    if not yes:
        confirm(f"purge the text of {wanted.words} for good", otherwise="nothing was purged.")
    gone, freed = cli.run(wanted.done)
    cli.answer(
        {"purged": gone, "bytes_freed": freed},
        lambda: _show_purged(gone, freed),
        found=gone,
        missing=f"There was nothing to purge: {wanted.words}.",
    )


def _show_purged(pages: Sequence[Page], freed: int) -> None:
    now = datetime.now(UTC)
    rows = [(span_text(now - page.created), size_text(page.stored_bytes), _about(page)) for page in pages]
    show_table((">age", ">stored", "tombstone"), rows)
    say(f"\nPurged {plural(len(pages), 'page')}: {size_text(freed)} freed.")


@command(app)
def pin(cli: Invocation, uuid: Uuid) -> None:
    """Keep a page in every window of its conversation and out of every purge."""
    page = _with_pin(cli, uuid, pinned=True)
    cli.answer(page, f"Pinned {page.uuid}: it stays in the window and is never purged.")


@command(app)
def unpin(cli: Invocation, uuid: Uuid) -> None:
    """Treat a page like any other again."""
    page = _with_pin(cli, uuid, pinned=False)
    cli.answer(page, f"Unpinned {page.uuid}.")


def _with_pin(cli: Invocation, uuid: str, *, pinned: bool) -> Page:
    scope = _everybody(cli.tenant)
    return cli.run(lambda memory: memory.engine.tier(Archive).pin(scope, uuid, pinned=pinned))
