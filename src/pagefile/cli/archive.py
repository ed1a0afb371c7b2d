"""`archive`: archived tool results, their disk usage, and their removal."""

from datetime import timedelta
from typing import Annotated

import typer

from pagefile.cli.archive_tables import Totals, show_hits, show_page, show_pages, show_purged, totals_json
from pagefile.cli.asking import ask
from pagefile.cli.invocation import Invocation, command
from pagefile.cli.measures import size, span
from pagefile.cli.opening import whose
from pagefile.cli.options import Full
from pagefile.cli.pages import every_page, everybody, page_named
from pagefile.cli.purging import Wish
from pagefile.engine import Memory
from pagefile.engine.pages import load_text
from pagefile.records import Page, PageHit
from pagefile.tiers.archive import Archive

app = typer.Typer(no_args_is_help=True, add_completion=False)

Uuid = Annotated[str, typer.Argument(help="The page, as its placeholder names it.")]
User = Annotated[str | None, typer.Option("--user-id", "--user", help="Only pages of this user.")]
InConversation = Annotated[
    str | None, typer.Option("--conversation", "-c", help="Only pages of this conversation.")
]


@app.callback()
def archive() -> None:
    """List, read, search, pin and purge archived tool results."""


@app.command("ls")
@command()
def list_pages(
    cli: Invocation,
    *,
    user_id: User = None,
    conversation: InConversation = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest to show.")] = 20,
) -> None:
    """List the archived pages, newest first, and what they take on disk."""

    async def work(memory: Memory) -> tuple[list[Page], Totals]:
        newest: list[Page] = []
        totals = Totals()
        async for page in every_page(memory, user_id=user_id, conversation=conversation, tenant=cli.tenant):
            totals.add(page)
            if len(newest) < limit:
                newest.append(page)
        return newest, totals

    pages, totals = cli.run(work)
    cli.answer(
        {"pages": pages, "more": totals.pages > len(pages), "totals": totals_json(totals)},
        lambda: show_pages(pages, totals),
        found=pages,
        missing="There are no archived pages here: a tool result longer than `archive.threshold` becomes one.",
    )


@app.command()
@command()
def show(
    cli: Invocation,
    uuid: Uuid,
    *,
    query: Annotated[str | None, typer.Option(help="Print the passages that answer this.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="Print the text from this character on.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Print so many characters; with --query, so many tokens.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print the whole text.")] = False,
) -> None:
    """Show a page: where it came from, what is in it; its text when asked for."""
    parts = (query, offset, limit)
    if full and parts != (None, None, None):
        raise typer.BadParameter("--full prints the whole text: leave out --query, --offset and --limit")
    if query is not None and offset is not None:
        raise typer.BadParameter("give --query or --offset: passages are found wherever they stand")

    async def work(memory: Memory) -> tuple[Page, str | None]:
        page = await page_named(memory, uuid, cli.tenant)
        if not full and parts == (None, None, None):
            return page, None
        text = await load_text(
            memory.engine, page.scope, page.uuid, query=query, offset=offset or 0, limit=limit
        )
        return page, text

    page, text = cli.run(work)
    end = 0 if text is None or query is not None else (offset or 0) + len(text)
    more_from = end if 0 < end < page.length else None
    cli.answer({"page": page, "text": text}, lambda: show_page(page, text, more_from=more_from))


@app.command()
@command()
def search(
    cli: Invocation,
    query: Annotated[str, typer.Argument(help="What is asked for.")],
    *,
    user_id: Annotated[
        str | None, typer.Option("--user-id", "--user", help="Search all pages of a user.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", help="Search one conversation, whoever its user."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to find.")] = 5,
    full: Full = False,
) -> None:
    """Find archived pages, best first, each with its best passage and where that stands."""
    if not query.strip():
        raise typer.BadParameter("the question is empty: say what to look for")
    if conversation is None and user_id is None:
        raise typer.BadParameter("say where to search: --user-id ID or --conversation ID")

    async def work(memory: Memory) -> list[PageHit]:
        if conversation is None:
            return await memory.search_tool_history(
                query, user_id=user_id or "", tenant=cli.tenant, limit=limit
            )
        chat = await whose(memory, conversation, user_id, cli.tenant)
        return await chat.search_tool_history(query, limit, here=user_id is None)

    hits = cli.run(work)
    missing = f"No archived page here answers {query!r}."
    cli.answer(hits, lambda: show_hits(hits, full=full), found=hits, missing=missing)


@app.command()
@command()
def purge(
    cli: Invocation,
    *,
    uuids: Annotated[list[str] | None, typer.Option("--uuid", help="This page; may be given again.")] = None,
    older_than: Annotated[
        timedelta | None, typer.Option(parser=span, metavar="30d|12h|…", help="Pages older than this.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            parser=size, metavar="100MB|…", help="The oldest, until the rest takes no more on disk."
        ),
    ] = None,
    user_id: User = None,
    conversation: InConversation = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove the texts of archived pages; what they were stays as a tombstone, pinned pages stay whole."""
    wish = Wish(uuids, older_than, max_bytes, user_id, conversation, cli.tenant)
    if not wish.conditions:
        raise typer.BadParameter("say what to purge: --uuid, --older-than or --max-bytes")
    wish = cli.run(wish.checked)
    if not yes:
        ask(f"purge the text of {wish.words} for good", otherwise="nothing was purged.")
    gone, freed = cli.run(wish.done)
    cli.answer(
        {"purged": gone, "bytes_freed": freed},
        lambda: show_purged(gone, freed),
        found=gone,
        missing=f"There was nothing to purge: {wish.words}.",
    )


@app.command()
@command()
def pin(cli: Invocation, uuid: Uuid) -> None:
    """Keep a page in every window of its conversation and out of every purge."""
    page = _with_pin(cli, uuid, pinned=True)
    cli.answer(page, f"Pinned {page.uuid}: it stays in the window and is never purged.")


@app.command()
@command()
def unpin(cli: Invocation, uuid: Uuid) -> None:
    """Treat a page like any other again."""
    page = _with_pin(cli, uuid, pinned=False)
    cli.answer(page, f"Unpinned {page.uuid}.")


def _with_pin(cli: Invocation, uuid: str, *, pinned: bool) -> Page:
    return cli.run(lambda memory: memory.engine.tier(Archive).pin(everybody(cli.tenant), uuid, pinned=pinned))
