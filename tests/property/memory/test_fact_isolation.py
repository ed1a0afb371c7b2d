"""Nobody sees another's facts: whatever users, tenants and verbs come in whatever order."""

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile import Memory, NotFoundError, PagefileError

#: Ids that look alike, hold separators, or are each other's beginning.
NAMES = st.sampled_from(["a", "A", "a/b", "a:b", "b", "a\x1fb", "用户", "ab", " a"])
VERBS = st.sampled_from(["remember", "replace", "retract", "undo", "forget", "look"])
STEPS = st.lists(st.tuples(VERBS, NAMES, NAMES, st.integers(0, 3)), max_size=25)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_users_and_tenants_never_see_each_others_facts(steps):
    """Every fact names its owner in its text, and every look finds only the looker's own."""
    anyio.run(_walk, steps)


async def _walk(steps):
    async with Memory.open("memory://") as memory:
        ids: dict[tuple[str, str], list[str]] = {}
        for verb, tenant, user, number in steps:
            mark = f"<<{tenant}|{user}>>"
            try:
                if verb in {"remember", "replace"}:
                    attribute = "place" if verb == "replace" else None
                    fact = await memory.remember(
                        f"{mark} fact {number}", user_id=user, tenant=tenant, attribute=attribute
                    )
                    ids.setdefault((tenant, user), []).append(fact.id)
                elif verb == "retract":
                    await _retract_as(memory, tenant, user, ids)
                elif verb == "undo":
                    await memory.undo(user, tenant=tenant)
                elif verb == "forget":
                    await memory.forget(user_id=user, tenant=tenant)
                    ids.pop((tenant, user), None)
            except NotFoundError:
                pass
            await _only_own(memory, tenant, user, mark)


async def _retract_as(memory, tenant, user, ids):
    """One of a tenant's own facts; a fact of another tenant cannot be found."""
    for (of, _), known in ids.items():
        if of != tenant and known:
            try:
                await memory.retract(known[0], tenant=tenant)
            except PagefileError:
                continue
            raise AssertionError("a fact of another tenant was retracted")
    if ids.get((tenant, user)):
        await memory.retract(ids[tenant, user][0], tenant=tenant)


async def _only_own(memory, tenant, user, mark):
    for history in (False, True):
        for fact in await memory.facts(user, tenant, history=history):
            assert fact.text.startswith(mark)
            assert (fact.scope.tenant, fact.scope.user) == (tenant, user)
    for revision in await memory.fact_revisions(user, tenant):
        assert all(fact.text.startswith(mark) for fact in revision.after)
    window = await memory.conversation("c" + tenant + user, user_id=user, tenant=tenant).context("fact 1 2 3")
    shown = mark.replace("<", "&lt;").replace(">", "&gt;")
    text = str(window.messages)
    assert text.count("&lt;&lt;") == text.count(repr(" ".join(shown.split()))[1:-1])
