"""How many rows the statements read, for whichever role."""

import json

from pagefile.records import Scope
from pagefile.stores.postgres.address import Place
from pagefile.stores.postgres.database import settings
from pagefile.stores.postgres.driver import sql
from pagefile.stores.rules import MOST_RUNNING
from pagefile.testing.drafts import call, done, fact, page, view


async def check_rows_read(store, plain):
    """In a log of a thousand turns, analyzed or not."""
    for number in range(1000):
        await store.log.append(done(f"t{number}", tokens=10))
        if number < 50:
            other = Scope("tenant", "ada", f"c{number}")
            await store.log.append(done("t", scope=other))
            await store.pages.put(page(f"p{number}", f"text {number}", scope=other, spans=((0, 2),)))
            await store.facts.put(fact(f"f{number}", scope=other))
    await store.calls.add([call(f"k{number}") for number in range(50)], keep=100)
    assert len((await store.reader.view(view(budget=200, least=2))).turns) == 20
    for setting, value in settings(Place.of("postgresql://host/db")).items():
        await plain.execute(f"SET {setting} = '{value}'")
    await few_rows_are_read(plain)
    await plain.execute("ANALYZE")
    await few_rows_are_read(plain)


async def few_rows_are_read(plain):
    assert await read(plain, "view", budget=200, least=2, open_turn=None) <= 20 + 2 + 3
    assert await read(plain, "view", budget=0, least=5, open_turn="t3") <= 5 + 5 + 3 + 1
    assert await read(plain, "turn_found", id="t500") == 2
    assert await read(plain, "entry_by_id", id="t500") == 1
    assert await read(plain, "owner") == 1
    assert await read(plain, "session_get") == 2
    assert await read(plain, "turns_after", after_seq=500, limit=7) == 7
    assert await read(plain, "page_load", uuid="p7") <= 2
    assert await read(plain, "page_reached", uuid="p7") == 1
    assert await read(plain, "call_place", after="k7") == 1


async def read(plain, name, **values):
    """How many rows a statement reads in all, by PostgreSQL's own account."""
    statement = sql(name)
    values = {"tenant": "tenant", "conversation": "chat", "user": "ada", "limit": MOST_RUNNING, **values}
    async with plain.transaction():
        told = await plain.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}", *statement.given(values)
        )
    return sum(rows_of(json.loads(told)[0]["Plan"]))


def rows_of(node):
    """What every scan of a table brought up or threw away."""
    if "Relation Name" in node and "Scan" in node["Node Type"]:
        loops = node["Actual Loops"]
        yield (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * loops
    for inner in node.get("Plans", ()):
        yield from rows_of(inner)
