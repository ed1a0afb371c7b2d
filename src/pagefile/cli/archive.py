"""`archive`: archived tool results, their disk usage, and their removal."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from pagefile.cli.invocation import Invocation, check_search, command, confirm, group
from pagefile.cli.measures import moment, number, plural, size, size_text, span, span_text
from pagefile.cli.options import Full, Limit, Newest, Query, Yes, in_conversation, of_user
from pagefile.cli.output import clipped, say, shortened, show_table, visible, warn
from pagefile.engine import Memory
from pagefile.engine.log_queries import all_pages
from pagefile.engine.ownership import check_opens
from pagefile.engine.page_tools import load_text
from pagefile.records import Listing, Page, PageHit, Scope
from pagefile.text.passages import matching
from pagefile.tiers.archive import Archive

#: Columns left beside the numbers in an 80-column terminal.
_BESIDE = 44
#: Characters of a passage that are shown of a hit.
_FOUND = 240

app = group(
    'List, read, search, pin and purge archived tool results.\n\nExamples:\npagefile archive ls\npagefile archive search "valve leaks" --user ada'
)

Uuid = Annotated[str, Argument(help="The page, as its placeholder names it.")]
User = Annotated[str | None, of_user(help="Only pages of this user.")]
InConversation = Annotated[str | None, in_conversation(help="Only pages of this conversation.")]


# -- reading with full access to the database: any page of a tenant, or all of them --------------------------------------


async def _every_page(
    cli: Invocation, memory: Memory, user_id: str | None = None, conversation: str | None = None
) -> AsyncIterator[Page]:
    scope = Scope(cli.scope.tenant, user_id)
    if conversation is not None:
        scope = (await cli.chat(memory, conversation, user_id, must_exist=False)).scope
        await check_opens(memory.engine.store.reader, scope)
    async for page in all_pages(memory.engine.store.pages, scope):
        yield page


# -- listing -------------------------------------------------------------------------------------------------------------


@command(app, "ls")
def list_pages(
    cli: Invocation, *, user_id: User = None, conversation: InConversation = None, limit: Newest = 20
) -> None:
    """List the archived pages, newest first, and what they take on disk.

    Examples:
        pagefile archive ls
        pagefile archive ls --user ada --limit 100
    """
    newest: list[Page] = []
    totals = Counter(pages=0, chars=0, tokens=0, stored_bytes=0, pinned=0, purged=0)

    async def work(memory: Memory) -> None:
        # Equal texts are stored once.
        texts: dict[str, int] = {}
        async for page in _every_page(cli, memory, user_id, conversation):
            if len(newest) < limit:
                newest.append(page)
            totals.update(pages=1, pinned=page.pinned, purged=page.purged is not None)
            if page.purged is None:
                totals.update(chars=page.length, tokens=page.tokens)
                texts[page.content_hash] = page.stored_bytes
        totals["stored_bytes"] = sum(texts.values())

    cli.run(work)
    more = totals["pages"] > len(newest)
    parts = [
        plural(totals["pages"], "page"),
        *(f"{totals[state]} {state}" for state in ("pinned", "purged") if totals[state]),
        plural(totals["chars"], "character"),
        plural(totals["tokens"], "token"),
        f"{size_text(totals['stored_bytes'])} on disk",
    ]
    cli.list(
        Listing(newest, newest[-1].uuid if more else None),
        {
            ">age": _age,
            ">tokens": lambda page: page.tokens,
            ">stored": lambda page: "–" if page.purged else size_text(page.stored_bytes),
            ">loads": lambda page: page.loads,
            "page": _about,
        },
        missing="There are no archived pages here: a tool result longer than `archive.threshold` becomes one.",
        value={"pages": newest, "more": more, "totals": totals},
        hint=" · ".join(parts),
    )


def _age(page: Page) -> str:
    return span_text(datetime.now(UTC) - page.created)


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
    limit: Annotated[int | None, Option(min=1, help="Print at most this many characters.")] = None,
    full: Annotated[bool, Option("--full", help="Print the whole text.")] = False,
) -> None:
    """Show where a page came from and what it contains; its text if you ask for it.

    Examples:
        pagefile archive show 50b78a95-0b1e-4c2f-9a57-2f1d0c9e7b11
        pagefile archive show 50b78a95-0b1e-4c2f-9a57-2f1d0c9e7b11 --query valve
    """
    in_part = (query, offset, limit) != (None, None, None)
    if full and in_part:
        raise BadParameter("--full prints the whole text: leave out --query, --offset and --limit")
    start = offset or 0

    async def work(memory: Memory) -> tuple[Page, str | None]:
        page = await memory.page(uuid, tenant=cli.tenant)
        if not full and not in_part:
            return page, None
        wanted: dict[str, Any] = {"query": query, "offset": start, "limit": limit}
        return page, await load_text(memory.engine, page.scope, page.uuid, **wanted)

    page, text = cli.run(work)

    def shown() -> None:
        show_table(("page", page.uuid), [(name, value) for name, value in _facts(page).items() if value])
        if text is None:
            return
        say(f"\n{visible(text, lines=True)}")
        end = start + len(text)
        if query is None and 0 < end < page.length:
            say(f"\n… {number(page.length - end)} more characters: --offset {end}")

    cli.answer({"page": page, "text": text}, shown)


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
    user_id: Annotated[str | None, of_user(help="Search all pages of a user.")] = None,
    conversation: Annotated[
        str | None, in_conversation(help="Search one conversation, whichever user owns it.")
    ] = None,
    limit: Limit = 5,
    full: Full = False,
) -> None:
    """Find archived pages, best first, each with its best passage and its position.

    Examples:
        pagefile archive search "valve leaks" --user ada
        pagefile archive search "valve leaks" -c support-42 --full
    """
    check_search(query, conversation, user_id, "--user ID or --conversation ID")

    async def work(memory: Memory) -> list[PageHit]:
        if conversation is None:
            whole = {"user_id": user_id or "", "tenant": cli.tenant}
            return await memory.search_tool_history(query, **whole, limit=limit)
        chat = await cli.chat(memory, conversation, user_id, must_exist=False)
        return await chat.search_tool_history(query, limit, here=user_id is None)

    cli.list(
        cli.run(work),
        {
            ">score": lambda hit: f"{hit.score:.2f}",
            ">offset": lambda hit: hit.start,
            "passage": lambda hit: f"{_about(hit.page)}\n{_passage(hit, query, full=full)}",
        },
        missing=f"No archived page here answers {query!r}.",
        apart=True,
    )


def _passage(hit: PageHit, query: str, *, full: bool) -> str:
    """What was found: the whole passage, or on one line the part of it that answers."""
    # A Chinese character takes two cells.
    return shortened(hit.passage if full else matching(hit.passage, query, _FOUND), 2 * _FOUND, full=full)


# -- purging and pinning -------------------------------------------------------------------------------------------------


@command(app)
def purge(
    cli: Invocation,
    *,
    uuids: Annotated[list[str] | None, Option("--uuid", help="Purge this page; can be repeated.")] = None,
    older_than: Annotated[
        timedelta | None, Option(parser=span, metavar="30d|12h|…", help="Pages older than this.")
    ] = None,
    max_bytes: Annotated[
        int | None,
        Option(
            parser=size, metavar="100MB|…", help="Purge the oldest pages until the rest fit into this size."
        ),
    ] = None,
    user_id: User = None,
    conversation: InConversation = None,
    yes: Yes = False,
) -> None:
    """Remove the texts of archived pages. Their descriptions stay, and pinned pages stay whole.

    Examples:
        pagefile archive purge --older-than 30d
        pagefile archive purge --max-bytes 100MB --user ada --yes
    """
    if not uuids and older_than is None and max_bytes is None:
        raise BadParameter("say what to purge: --uuid, --older-than or --max-bytes")
    named = cli.run(lambda memory: _checked(cli, memory, uuids or ()))
    conditions = {
        plural(len(named), "named page"): bool(named),
        f"pages older than {span_text(older_than or timedelta())}": older_than is not None,
        f"the oldest pages beyond {size_text(max_bytes or 0)}": max_bytes is not None,
    }
    owner = {"conversation": conversation, "user": user_id, "tenant": cli.tenant}
    of = "".join(f" of {kind} {name!r}" for kind, name in owner.items() if name is not None)
    words = " and ".join(said for said, given in conditions.items() if given) + of
    if not yes:
        confirm(f"purge the text of {words} for good", otherwise="nothing was purged.")
    which = {"uuids": named or None, "older_than": older_than, "max_bytes": max_bytes}
    scope = {"user_id": user_id, "conversation_id": conversation, "tenant": cli.tenant}
    gone, freed = cli.run(lambda memory: _purged(cli, memory, {**which, **scope}))
    cli.list(
        gone,
        {">age": _age, ">stored": lambda page: size_text(page.stored_bytes), "tombstone": _about},
        missing=f"There was nothing to purge: {words}.",
        value={"purged": gone, "bytes_freed": freed},
        hint=f"Purged {plural(len(gone), 'page')}: {size_text(freed)} freed.",
    )


async def _checked(cli: Invocation, memory: Memory, uuids: Iterable[str]) -> list[str]:
    """The uuids as stored; a missing page is an error before anything is removed."""
    pages = [await memory.page(uuid, tenant=cli.tenant) for uuid in uuids]
    for page in pages:
        if page.pinned:
            warn(f"{page.uuid} is pinned and stays: `pagefile archive unpin` it first.")
    return list(dict.fromkeys(page.uuid for page in pages))


async def _purged(cli: Invocation, memory: Memory, wanted: dict[str, Any]) -> tuple[list[Page], int]:
    gone = await memory.purge(**wanted)
    # Equal texts are stored once, and removed with the last page that uses them.
    texts = {page.content_hash: page.stored_bytes for page in gone}
    if texts:
        async for page in _every_page(cli, memory):
            if page.purged is None:
                texts.pop(page.content_hash, None)
    return gone, sum(texts.values())


@command(app)
def pin(cli: Invocation, uuid: Uuid) -> None:
    """Keep a page in every window of its conversation and out of every purge.

    Examples:
        pagefile archive pin 50b78a95-0b1e-4c2f-9a57-2f1d0c9e7b11
    """
    page = _with_pin(cli, uuid, pinned=True)
    cli.answer(page, f"Pinned {page.uuid}: it stays in the window and is never purged.")


@command(app)
def unpin(cli: Invocation, uuid: Uuid) -> None:
    """Undo `pin`.

    Examples:
        pagefile archive unpin 50b78a95-0b1e-4c2f-9a57-2f1d0c9e7b11
    """
    page = _with_pin(cli, uuid, pinned=False)
    cli.answer(page, f"Unpinned {page.uuid}.")


def _with_pin(cli: Invocation, uuid: str, *, pinned: bool) -> Page:
    return cli.run(lambda memory: memory.engine.tier(Archive).pin(cli.scope, uuid, pinned=pinned))
