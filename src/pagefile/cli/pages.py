"""Reads archived pages with full access to the database: any page of a tenant, or all of them."""

from collections.abc import AsyncIterator

from pagefile.cli.opening import whose
from pagefile.engine import Memory
from pagefile.records import DEFAULT_TENANT, Page, Scope
from pagefile.tiers.archive import Archive

#: Pages read at a time.
_BATCH = 1000


def everybody(tenant: str | None) -> Scope:
    """The scope that reaches every page of a tenant."""
    return Scope(DEFAULT_TENANT if tenant is None else tenant)


async def page_named(memory: Memory, uuid: str, tenant: str | None) -> Page:
    """A page, whatever its owner."""
    return await memory.engine.tier(Archive).page(everybody(tenant), uuid)


async def every_page(
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
