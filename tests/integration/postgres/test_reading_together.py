"""What an index does not know of a user is read in a few round trips, however many conversations there are."""

import pytest

from pagefile.ports import SinceRequest, TurnTerms
from pagefile.records import Scope
from pagefile.stores.postgres.driver import Connection
from pagefile.testing.drafts import done

pytestmark = pytest.mark.anyio

ADA = Scope("tenant", "ada")
MANY = 60


@pytest.fixture
async def filled(store):
    """Conversations of one to five turns, of which half have terms; and somebody else's."""
    for number in range(MANY):
        scope = Scope("tenant", "ada", f"c{number:02}")
        for turn in range(1 + number % 5):
            await store.log.append(done(f"t{turn}", f"{number} says {turn}", scope=scope))
            if number % 2:
                terms = TurnTerms(
                    scope.conversation, turn + 1, f"t{turn}", (await at(store, scope)), "said", "answered"
                )
                await store.terms.write(scope, [terms], "a")
    await store.log.append(done("theirs", scope=Scope("tenant", "bob", "d")))
    return store


async def at(store, scope):
    return (await store.reader.since(SinceRequest(scope, {})))[-1].at


@pytest.fixture
def asked(monkeypatch):
    """The names of the statements."""
    names, rows = [], Connection.rows

    async def counted(self, name, values):
        names.append(name)
        return await rows(self, name, values)

    monkeypatch.setattr(Connection, "rows", counted)
    return names


async def test_a_hundred_conversations_are_a_few_statements(filled, asked):
    """Of the list of conversations, and of all that was said in them."""
    turns = await filled.reader.since(SinceRequest(ADA, {}, 1000))
    assert sum(1 + number % 5 for number in range(MANY)) == len(turns)
    assert ["conversations_of_user", "turns_after_each"] == asked
    terms = await filled.terms.since(SinceRequest(ADA, {}, 1000), "a")
    assert [(turn.scope.conversation, turn.seq) for turn in turns] == [
        (one.conversation, one.seq) for one in terms
    ]
    assert {"said", None} == {one.said for one in terms}


@pytest.mark.parametrize("limit", [1, 2, 7, 50, 1000])
async def test_every_limit_reads_the_same_in_pieces(filled, limit):
    """In order, nothing twice and nothing left out; what is known is not read again."""
    known, read = {"c07": 2}, []
    while rows := await filled.reader.since(SinceRequest(ADA, known, limit)):
        assert len(rows) <= limit
        read += [(row.scope.conversation, row.seq) for row in rows]
        known |= {row.scope.conversation: row.seq for row in rows}
    wanted = [(f"c{n:02}", turn + 1) for n in range(MANY) for turn in range(1 + n % 5)]
    assert [one for one in wanted if one not in {("c07", 1), ("c07", 2)}] == read
