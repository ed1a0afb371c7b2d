"""What a database is before it is opened to be used."""

from pagefile.stores.postgres.database import Database
from pagefile.stores.postgres.driver import translating
from pagefile.stores.postgres.migrating import check_known, head, revision
from pagefile.stores.postgres.place import Place

__all__ = ["head", "revision_of"]


async def revision_of(url: str) -> str | None:
    """The revision of the tables, None where there are none; `SchemaVersionError` when this Pagefile does not know it."""
    place = Place.of(url)
    database = await Database.open(place)
    try:
        with translating(place.shown):
            async with database.raw() as connection:
                found = await revision(connection)
        check_known(found, place.shown)
        return found
    finally:
        await database.close()
