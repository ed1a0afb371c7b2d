"""A store and the oracle, given the same verbs."""

import asyncio
import hashlib
import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pagefile.errors import PagefileError
from pagefile.ports import (
    Abort,
    AddStep,
    CheckpointDraft,
    Complete,
    ConversationQuery,
    EntryQuery,
    PurgeRequest,
    ResetDraft,
    SinceRequest,
    TurnDraft,
    TurnRef,
    ViewRequest,
)
from pagefile.records import Scope, Step
from pagefile.stores import StoreOptions, open_store
from pagefile.testing import FakeClock
from pagefile.testing.drafts import AT, call, fact, page
from tests.oracle import OracleStore

TENANTS, USERS, CHATS = ("t1", "t2"), (None, "ada", "bob"), ("c1", "c2", "c3")
IDS = tuple("abcdefgh")
EVERY_KIND = frozenset({"turn", "checkpoint", "reset"})
chats = st.builds(Scope, st.sampled_from(TENANTS), st.sampled_from(USERS), st.sampled_from(CHATS))
scopes = st.builds(Scope, st.sampled_from(TENANTS), st.sampled_from(USERS), st.sampled_from((None, *CHATS)))
ids = st.sampled_from(IDS)
texts = st.sampled_from((None, "", "x", "你好", 'say "hi"\n'))
tokens = st.integers(0, 50)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(("", "a", "键")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab键"), inner, max_size=2),
    max_leaves=4,
)
plain_steps = st.builds(
    Step, st.sampled_from(("t", "u")), values, st.sampled_from(("", "r")), ids, tokens, tokens
)
steps = plain_steps | st.builds(
    replace,
    plain_steps,
    page=st.none() | ids,
    whole=st.booleans(),
    page_tokens=tokens,
    page_chars=tokens,
    lost_chars=tokens,
)
times = st.integers(-2, 5).map(lambda minutes: AT + timedelta(minutes=minutes))
hashes = st.sampled_from(("", "x", "y"))
spans = st.lists(st.tuples(st.integers(0, 3), st.integers(3, 9)), max_size=3).map(tuple)
purges = st.builds(
    PurgeRequest,
    scope=scopes,
    at=times,
    uuids=st.none() | st.frozensets(ids, max_size=3),
    before=st.none() | times,
    max_bytes=st.none() | st.integers(0, 60),
    spared=st.frozensets(ids, max_size=2),
)
drafts = st.builds(
    TurnDraft,
    scope=chats,
    id=ids,
    status=st.sampled_from(("open", "done", "done")),
    user=texts,
    assistant=texts,
    steps=st.lists(steps, max_size=2).map(tuple),
    at=st.integers(-100, 100).map(lambda hours: AT + timedelta(hours=hours)),
    user_tokens=tokens,
    assistant_tokens=tokens,
    tokens=tokens,
    counter=st.just("test"),
    metadata=st.dictionaries(st.sampled_from("ab键"), values, max_size=2),
    agent=st.sampled_from((None, "triage", "pharmacy")),
)
changes = st.one_of(
    st.builds(AddStep, chats, ids, steps, tokens),
    st.builds(Complete, chats, ids, texts, tokens, tokens),
    st.builds(Abort, chats, ids),
)
markers = st.one_of(
    st.builds(
        CheckpointDraft,
        scope=chats,
        id=ids,
        summary=st.sampled_from(("s", "摘要")),
        text=st.just("历史摘要: s"),
        covered_through_seq=st.integers(0, 6),
        expected_version=st.integers(0, 2),
        tokens=tokens,
        counter=st.just("test"),
        anchors=st.sampled_from(((), ("42",))),
        archive_refs=st.sampled_from(((), ("p", "q"))),
    ),
    st.builds(ResetDraft, chats, ids),
)
sessions = st.dictionaries(
    st.sampled_from(("meta", "flow_context", "message_context", "user_snapshot", "own")),
    st.none() | st.just({"turn_count": 7, "x": "y"}) | st.just({"turn_count": "many"}) | st.just([1]),
    max_size=3,
)


class Twins(RuleBasedStateMachine):
    """The same words to both stores must get the same answers."""

    def __init__(self):
        super().__init__()
        self.loop = asyncio.Runner()
        self.clock = FakeClock()
        self.folder = Path(tempfile.mkdtemp(prefix="twins-"))
        self.oracle = OracleStore(self.clock)
        self.store = self.loop.run(self.opened())
        self.last = self.change = None
        self.written = True

    async def opened(self):
        options = StoreOptions(synchronous="normal", readers=1)
        return await open_store(f"sqlite:///{self.folder}/twin.db", clock=self.clock, options=options)

    def teardown(self):
        self.loop.run(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    async def answer(self, store, ask):
        try:
            return await ask(store)
        except PagefileError as error:
            return type(error)

    def both(self, ask):
        """Ask both to write."""
        self.written = True
        return self.same(ask)

    def same(self, ask):
        async def asked():
            return await self.answer(self.oracle, ask), await self.answer(self.store, ask)

        expected, actual = self.loop.run(asked())
        assert expected == actual
        return actual

    @rule(seconds=st.integers(-100, 100))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @rule(draft=drafts)
    def append(self, draft):
        self.last = draft
        self.both(lambda store: store.log.append(draft))

    @rule(changed=st.booleans(), text=texts)
    def append_again(self, changed, text):
        if self.last is not None:
            draft = replace(self.last, user=text) if changed else self.last
            self.both(lambda store: store.log.append(draft))

    @rule(change=changes)
    def advance(self, change):
        self.change = change
        self.both(lambda store: store.log.advance(change))

    @rule(result=st.none() | st.sampled_from(("", "r", "s")))
    def advance_again(self, result):
        change = self.change
        if change is not None:
            if isinstance(change, AddStep) and result is not None:
                change = replace(change, step=replace(change.step, result=result, page="again"))
            self.both(lambda store: store.log.advance(change))

    @rule(scope=chats)
    def claim(self, scope):
        self.both(lambda store: store.log.claim(scope))
        self.both(lambda store: store.reader.owner(scope))

    @rule(marker=markers)
    def mark(self, marker):
        self.both(lambda store: store.log.mark(marker))

    @rule(scope=chats, marker_id=ids, back=st.integers(0, 3))
    def mark_as_a_caller_would(self, scope, marker_id, back):
        """A checkpoint made from what a view shows takes effect."""

        async def ask(store):
            seen = await store.reader.view(ViewRequest(scope, 10**6, 0))
            covered = max(0, seen.head.last_seq - back)
            version = seen.checkpoint.version if seen.checkpoint else 0
            return await store.log.mark(
                CheckpointDraft(scope, marker_id, "s", "t", covered, version, 3, "test")
            )

        self.both(ask)

    @rule(source=chats, copy=chats)
    def restore(self, source, copy):
        async def ask(store):
            entries = await store.reader.entries(EntryQuery(source, EVERY_KIND, limit=1000))
            return await store.log.restore([replace(entry, scope=copy) for entry in entries])

        self.both(ask)

    @rule(scope=scopes, fact_id=ids, text=st.sampled_from(("x", "y")), hours=st.integers(0, 3))
    def put_fact(self, scope, fact_id, text, hours):
        new = fact(fact_id, text, scope=scope, recorded=AT + timedelta(hours=hours))
        self.both(lambda store: store.facts.put(new))

    @rule(scope=scopes, fact_id=ids)
    def get_fact(self, scope, fact_id):
        self.same(lambda store: store.facts.get(scope, fact_id))

    @rule(
        scope=scopes, texts=st.dictionaries(ids, st.sampled_from(("x", "y")), max_size=3), gone=st.booleans()
    )
    def revise_facts(self, scope, texts, gone):
        facts = [
            replace(fact(i, text, scope=scope), retracted=AT if gone else None) for i, text in texts.items()
        ]
        self.both(lambda store: _told(store, Scope(scope.tenant, scope.user), facts))

    @rule(
        uuid=ids,
        text=st.sampled_from(("", "same", "长" * 300)),
        given=st.fixed_dictionaries(
            {"scope": scopes, "minutes": st.integers(0, 3), "spans": spans, "call_hash": hashes}
        ),
        fields=st.fixed_dictionaries(
            {
                "thread": st.none() | ids,
                "pinned": st.booleans(),
                "loads": tokens,
                "last_load": st.none() | times,
            },
            optional={"purged": times, "stored_bytes": tokens},
        ),
    )
    def put_page(self, uuid, text, given, fields):
        draft = page(uuid, text, **given)
        draft = replace(draft, page=replace(draft.page, **fields))
        self.both(lambda store: store.pages.put(draft))

    @rule(scope=scopes, uuid=ids)
    def load_page(self, scope, uuid):
        self.both(lambda store: store.pages.load(scope, uuid))
        self.both(lambda store: store.page_keeper.page(scope, uuid))

    @rule(scope=scopes, uuid=ids, pinned=st.booleans())
    def pin_page(self, scope, uuid, pinned):
        self.both(lambda store: store.page_keeper.pin(scope, uuid, pinned=pinned))

    @rule(scope=scopes, uuids=st.lists(ids, max_size=4), at=times)
    def touch_pages(self, scope, uuids, at):
        self.both(lambda store: store.page_keeper.touch(scope, uuids, at))

    @rule(scope=scopes, call_hash=hashes, since=times)
    def equal_call(self, scope, call_hash, since):
        self.same(lambda store: store.page_keeper.equal_call(scope, call_hash, since))

    @rule(scope=scopes, uuids=st.lists(ids, max_size=4))
    def name_pages(self, scope, uuids):
        self.same(lambda store: store.page_keeper.named(scope, uuids))
        texts = [hashlib.sha256(text.encode()).hexdigest() for text in ("same", "长" * 300)]
        self.same(lambda store: store.page_keeper.holding(scope, texts))

    @rule(request=purges)
    def purge_pages(self, request):
        self.same(lambda store: store.page_keeper.due(request))
        self.both(lambda store: store.page_keeper.purge(request))

    @rule(scope=scopes, uuid=ids, mark=st.sampled_from(("", "x", "词")), more=st.sampled_from((0, 0, 0, 1)))
    def write_terms(self, scope, uuid, mark, more):
        """As a search does: one text for each passage, and sometimes one too many."""

        async def ask(store):
            for found in await store.page_index.read(scope, [uuid]):
                await store.page_index.write(scope, uuid, [mark] * (len(found.spans) + more))
            await store.page_index.write(scope, uuid, [mark])

        self.both(ask)

    @rule(scope=scopes, uuids=st.lists(ids, max_size=4))
    def read_terms(self, scope, uuids):
        self.same(lambda store: store.page_index.read(scope, uuids))
        self.same(lambda store: store.page_index.uuids(scope))
        self.same(lambda store: store.page_keeper.pinned(scope))

    @rule(batch=st.lists(st.builds(call, ids, scope=scopes), max_size=3), keep=st.integers(0, 3))
    def add_calls(self, batch, keep):
        self.both(lambda store: store.calls.add(batch, keep=keep))

    @rule(scope=chats, value=sessions)
    def put_session(self, scope, value):
        self.both(lambda store: store.sessions.put(scope, value))

    @rule(scope=scopes)
    def erase(self, scope):
        async def erased(store):
            # Where bytes are left of what was erased is each database's own affair.
            return replace(await store.erase(scope), pending=())

        self.both(erased)

    @rule()
    def reopen(self):
        self.loop.run(self.store.close())
        self.store = self.loop.run(self.opened())
        self.written = True

    @rule(scope=chats, budget=st.integers(0, 120), least=st.integers(0, 3), turn=st.none() | ids)
    def view(self, scope, budget, least, turn):
        self.same(lambda store: store.reader.view(ViewRequest(scope, budget, least, turn)))

    @rule(
        scope=chats,
        kinds=st.frozensets(st.sampled_from(sorted(EVERY_KIND))),
        statuses=st.frozensets(st.sampled_from(("open", "done", "aborted"))),
        after=st.integers(0, 5),
        limit=st.integers(0, 5),
        newest=st.booleans(),
    )
    def entries(self, scope, kinds, statuses, after, limit, newest):
        self.same(
            lambda store: store.reader.entries(EntryQuery(scope, kinds, statuses, after, limit, newest))
        )

    @rule(scope=scopes, after=st.none() | st.sampled_from(CHATS) | ids, limit=st.integers(0, 3))
    def slices(self, scope, after, limit):
        self.same(lambda store: store.reader.heads(ConversationQuery(scope, limit, after)))
        self.same(lambda store: store.pages.list(scope, limit=limit, after=after))
        self.same(lambda store: store.calls.list(scope, limit=limit, after=after))

    @rule(
        scope=scopes,
        known=st.dictionaries(st.sampled_from(CHATS), st.integers(0, 4)),
        limit=st.integers(0, 6),
    )
    def since(self, scope, known, limit):
        self.same(lambda store: store.source.since(SinceRequest(scope, known, limit)))

    @rule(
        scope=scopes, refs=st.lists(st.builds(TurnRef, st.sampled_from(CHATS), st.integers(0, 6)), max_size=4)
    )
    def around(self, scope, refs):
        self.same(lambda store: store.source.around(scope, refs))
        self.same(lambda store: store.source.at(scope, refs))

    @invariant()
    def everything_is_the_same(self):
        """Looked at after each write; a read that wrote something is seen after the next one."""
        if not self.written:
            return
        self.written = False
        for tenant in TENANTS:
            self.same(lambda store, tenant=tenant: everything(store, tenant))


async def _told(store, scope, facts):
    """A revision and the history behind it, without the numbers: those of a database may have gaps."""
    revision = await store.facts.revise(scope, facts, action="stored", at=AT, epoch=None)
    history = [replace(found, number=0) for found in await store.facts.revisions(scope)]
    return replace(revision, number=0), history, (await store.facts.changed(scope))[1]


async def everything(store, tenant):
    """All there is to read of a tenant."""
    found = [
        await store.reader.heads(ConversationQuery(Scope(tenant))),
        await store.facts.list(Scope(tenant), retracted=True),
        await store.pages.list(Scope(tenant)),
        await store.calls.list(Scope(tenant)),
        await store.page_keeper.pinned(Scope(tenant)),
        await store.page_index.read(Scope(tenant), await store.page_index.uuids(Scope(tenant))),
    ]
    for head in found[0]:
        chat = head.scope
        found += [
            await store.reader.view(ViewRequest(chat, 10**6, 0)),
            await store.reader.entries(EntryQuery(chat, EVERY_KIND, limit=1000)),
            await store.sessions.get(chat),
        ]
    return found
