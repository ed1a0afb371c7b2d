"""A window's view, read in place where that is quicker than a thread."""

from pagefile.ports import LogView, ViewRequest
from pagefile.stores import rules
from pagefile.stores.sql.plain_reader import PlainReader, view
from pagefile.stores.sqlite.lanes import Readers
from pagefile.stores.sqlite.player import SqlitePlayer, played


class SqliteReader(PlainReader):
    """The log as windows, lists and indexes want it."""

    def __init__(self, player: SqlitePlayer, readers: Readers) -> None:
        super().__init__(player)
        self._readers = readers

    async def view(self, request: ViewRequest) -> LogView:
        rules.conversation_of(request.scope)
        return await self._readers.run_again(
            (request.scope, request.budget_tokens), lambda connection: played(connection, view(request))
        )
