"""`BlockingClient`: the same client for callers without an event loop, and no logic of its own."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial

import httpx
from anyio.from_thread import start_blocking_portal

from pagefile.blocking import Blocking, Loop, blocking, described_as
from pagefile.client.conversation import ClientConversation
from pagefile.client.remote import Client
from pagefile.engine.drafts import StepLike
from pagefile.records import Scope, Turn
from pagefile.wire.chat import ChatEvent


class BlockingClientConversation(Blocking[ClientConversation]):
    """A cheap handle: making one sends nothing."""

    def __repr__(self) -> str:
        return f"Blocking{self.inner!r}"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.inner.id

    @property
    def scope(self) -> Scope:
        """Whose memory this is, as far as it was named here: a key may stand for another tenant and for a user."""
        return self.inner.scope

    record = blocking(ClientConversation.record)
    begin = blocking(ClientConversation.begin)
    extend = blocking(ClientConversation.extend)
    step = blocking(ClientConversation.step)
    complete = blocking(ClientConversation.complete)
    abort = blocking(ClientConversation.abort)
    messages = blocking(ClientConversation.messages)

    @described_as(ClientConversation.fork)
    def fork(
        self,
        turn: Turn | str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        before: bool = False,
    ) -> "BlockingClientConversation":
        made = self.loop.wait(partial(self.inner.fork, turn, id=id, before=before))
        return BlockingClientConversation(made, self.loop)

    context = blocking(ClientConversation.context)
    recall = blocking(ClientConversation.recall)
    load = blocking(ClientConversation.load)
    page = blocking(ClientConversation.page)
    pages = blocking(ClientConversation.pages)
    search_tool_history = blocking(ClientConversation.search_tool_history)
    fetched = blocking(ClientConversation.fetched)
    pin = blocking(ClientConversation.pin)
    call_tool = blocking(ClientConversation.call_tool)
    checkpoint = blocking(ClientConversation.checkpoint)
    reset = blocking(ClientConversation.reset)
    turns = blocking(ClientConversation.turns)
    log = blocking(ClientConversation.log)
    head = blocking(ClientConversation.head)
    session = blocking(ClientConversation.session)
    checkpoints = blocking(ClientConversation.checkpoints)
    calls = blocking(ClientConversation.calls)
    explain = blocking(ClientConversation.explain)
    replay = blocking(ClientConversation.replay)
    costs = blocking(ClientConversation.costs)

    @described_as(ClientConversation.stream_chat)
    def stream_chat(
        self,
        message: str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        instructions: str | None = None,
        window_tokens: int | None = None,
        steps: Iterable[StepLike] = (),
    ) -> Generator[ChatEvent]:
        events = self.inner.stream_chat(
            message, id=id, instructions=instructions, window_tokens=window_tokens, steps=steps
        )
        try:
            while (event := self.loop.wait(partial(anext, events, None))) is not None:
                yield event
        finally:
            self.loop.wait(events.aclose)


class BlockingClient(Blocking[Client]):
    """A memory that a service keeps, with the verbs and the records of `BlockingMemory`.

    Use it as `with BlockingClient.open("http://127.0.0.1:8780") as memory`.
    """

    @classmethod
    @contextmanager
    def open(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 2,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> Generator["BlockingClient"]:
        """A client for the length of a `with` block; the arguments are those of `Client`."""
        client = Client(url, api_key=api_key, timeout_s=timeout_s, retries=retries, transport=transport)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
            loop = Loop(portal)
            try:
                yield cls(client, loop)
            finally:
                loop.closed = True

    @described_as(Client.conversation)
    def conversation(
        self,
        id: str,  # noqa: A002 - the word users write
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        language: str | None = None,
        timezone: str | None = None,
    ) -> BlockingClientConversation:
        handle = self.inner.conversation(
            id,
            user_id=user_id,
            tenant=tenant,
            agent=agent,
            project=project,
            language=language,
            timezone=timezone,
        )
        return BlockingClientConversation(handle, self.loop)

    conversations = blocking(Client.conversations)
    turns = blocking(Client.turns)
    recall = blocking(Client.recall)
    remember = blocking(Client.remember)
    facts = blocking(Client.facts)
    retract = blocking(Client.retract)
    fact_revisions = blocking(Client.fact_revisions)
    undo = blocking(Client.undo)
    import_facts = blocking(Client.import_facts)
    call = blocking(Client.call)
    page = blocking(Client.page)
    pages = blocking(Client.pages)
    peek = blocking(Client.peek)
    search_tool_history = blocking(Client.search_tool_history)
    purge = blocking(Client.purge)
    settle = blocking(Client.settle)
    forget = blocking(Client.forget)
    export = blocking(Client.export)
    import_ = blocking(Client.import_)
    describe = blocking(Client.describe)
