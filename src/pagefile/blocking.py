"""`BlockingMemory`: the same verbs for callers without an event loop, with no logic of its own.

An event loop runs in a separate thread; every call is sent there and waits. Names, parameters and docstrings
are those of `Memory` and `Conversation`, which a test enforces.
"""

import concurrent.futures.thread  # noqa: F401  # pyright: ignore[reportUnusedImport] - what it does at the end of a program is registered before ours
import os
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, closing, contextmanager
from functools import cache, partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pagefile.engine import Conversation, Memory
from pagefile.engine.lifetime import plain_function
from pagefile.errors import ClosedError, NotOpenError
from pagefile.records import Scope
from pagefile.settings import Settings
from pagefile.tiers.workspace import AgentMemory, Workspace

P = ParamSpec("P")
R = TypeVar("R")
Inner = TypeVar("Inner")
T = TypeVar("T")
Owner = TypeVar("Owner")
Face = TypeVar("Face", bound="Blocking[Any]")


class Loop:
    """An event loop in its own thread, running as long as the memory is open."""

    def __init__(self, portal: BlockingPortal, face: str) -> None:
        self._portal = portal
        #: What people open: `BlockingMemory`, or a client.
        self._face = face
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError(
                f"This memory is closed: open one again with `{self._face}.open(…)` or `{self._face}.connect(…)`."
            )

    def wait(self, verb: Callable[[], Awaitable[R]]) -> R:
        """Run the verb on the loop and wait; if the caller is interrupted (Ctrl-C), the verb is cancelled."""
        self.check_open()
        future = self._portal.start_task_soon(verb)
        try:
            return future.result()
        finally:
            # Without effect on one that has ended.
            future.cancel()


class Blocking(Generic[Inner]):
    """Wraps an asynchronous object together with the loop it runs in."""

    def __init__(self, inner: Inner, loop: Loop | None = None) -> None:
        if loop is None:
            raise TypeError(
                f"Use `with {type(self).__name__}.open(…) as memory`, or `{type(self).__name__}.connect(…)`."
            )
        self.inner = inner
        self.loop = loop
        #: Closes the memory as a whole.
        self.closing: Callable[[], None]


def blocking(
    verb: Callable[Concatenate[Any, P], Awaitable[R]],
) -> Callable[Concatenate[Blocking[Any], P], R]:

    @wraps(verb)
    def call(self: Blocking[Any], *args: P.args, **kwargs: P.kwargs) -> R:
        # Looked up by name, because a client has the same verbs.
        return self.loop.wait(partial(getattr(self.inner, verb.__name__), *args, **kwargs))

    return call


def direct(verb: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Blocking[Any], P], R]:
    """A method that never waits, as it is."""
    return handing(verb, lambda returned, _loop: returned)


def handing(
    verb: Callable[Concatenate[Any, P], Inner], face: Callable[[Inner, Loop], T]
) -> Callable[Concatenate[Blocking[Any], P], T]:
    """A method that never waits, whose result gets a blocking face of its own."""

    @wraps(verb)
    def call(self: Blocking[Any], *args: P.args, **kwargs: P.kwargs) -> T:
        self.loop.check_open()
        return face(getattr(self.inner, verb.__name__)(*args, **kwargs), self.loop)

    return call


def continuing(
    verb: Callable[Concatenate[Any, P], Awaitable[object]],
) -> Callable[Concatenate[Face, P], Face]:
    """A verb that returns another handle of the same kind."""
    wait = blocking(verb)

    @wraps(verb)
    def call(self: Face, *args: P.args, **kwargs: P.kwargs) -> Face:
        return type(self)(wait(self, *args, **kwargs), self.loop)

    return call


class Opening(AbstractContextManager[Face]):
    """What `open` returns: not a memory yet."""

    def __init__(self, lifetime: AbstractContextManager[Face], face: str) -> None:
        self._face = face
        self._closing = threading.Lock()
        self._lifetime = ExitStack()
        self._enter = partial(self._lifetime.enter_context, lifetime)

    def __enter__(self) -> Face:
        face = self._enter()
        face.closing = partial(self._close, face)
        return face

    def _close(self, face: Face) -> None:
        # One after the other: a second caller returns once it is closed.
        with self._closing:
            self._lifetime.close()
        _left_open.discard(face)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> bool:
        return bool(self._lifetime.__exit__(kind, error, place))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOpenError(
            f"This memory is not open yet: use `with {self._face}.open(…) as memory`, or `memory = {self._face}.connect(…)`."
        )


def opening(
    like: Callable[P, AbstractAsyncContextManager[Inner]],
) -> Callable[[Callable[[Owner, Inner, Loop], Face]], Callable[Concatenate[Owner, P], Opening[Face]]]:
    """Turns a function that makes a blocking face into one that opens what it is the face of, with the parameters of `like`."""
    signed: Callable[..., object] = (
        cast("Any", like).__init__ if isinstance(like, type) else plain_function(like)
    )

    def decorate(
        made: Callable[[Owner, Inner, Loop], Face],
    ) -> Callable[Concatenate[Owner, P], Opening[Face]]:
        name = made.__qualname__.partition(".")[0]

        @contextmanager
        def lifetime(owner: Owner, *args: P.args, **kwargs: P.kwargs) -> Generator[Face]:
            with (
                start_blocking_portal() as portal,
                portal.wrap_async_context_manager(like(*args, **kwargs)) as opened,
                closing(Loop(portal, name)) as loop,
            ):
                yield made(owner, opened, loop)

        @wraps(signed)
        def open_(owner: Owner, *args: P.args, **kwargs: P.kwargs) -> Opening[Face]:
            return Opening(lifetime(owner, *args, **kwargs), name)

        open_.__name__, open_.__qualname__ = "open", made.__qualname__
        open_.__doc__ = made.__doc__ or like.__doc__
        return open_

    return decorate


#: What was connected and not closed: its threads would keep the program from ending.
_left_open: set[Blocking[Any]] = set()


@cache
def _close_at_the_end() -> None:
    def close() -> None:
        for face in list(_left_open):
            face.closing()

    # Exit handlers come too late: by then the executors of `concurrent.futures`, which closing needs, refuse work. They are told
    # to by this list, which is called from its end.
    threading._register_atexit(close)  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - nothing public is as early
    if hasattr(os, "register_at_fork"):
        # A child has none of the threads that it would wait for.
        os.register_at_fork(after_in_child=_left_open.clear)


def connecting(
    open_: Callable[Concatenate[Owner, P], Opening[Face]],
) -> Callable[Concatenate[Owner, P], Face]:
    """The same without a `with` block."""
    function = plain_function(open_)

    @wraps(function)
    def connect(owner: Owner, *args: P.args, **kwargs: P.kwargs) -> Face:
        face = function(owner, *args, **kwargs).__enter__()
        _left_open.add(face)
        _close_at_the_end()
        return face

    connect.__name__, connect.__qualname__ = "connect", function.__qualname__.replace("open", "connect")
    connect.__doc__ = Memory.connect.__doc__
    return connect


class BlockingWorkspace(Blocking[Workspace]):
    """What one run has fetched and read: nothing is fetched twice, and what matters stays in view."""

    @property
    def enabled(self) -> bool:
        """Whether anything is remembered and shown."""
        return self.inner.enabled

    @property
    def notes(self) -> AgentMemory:
        """The state of the run: tables of contents, chapters, chunks, the query."""
        return self.inner.notes

    rule = direct(Workspace.rule)
    add_rules = direct(Workspace.add_rules)
    ask = direct(Workspace.ask)
    text = direct(Workspace.text)
    reset = direct(Workspace.reset)
    reset_all = direct(Workspace.reset_all)
    lookup = blocking(Workspace.lookup)
    absorb = blocking(Workspace.absorb)


class ConversationVerbs(Blocking[Inner]):
    """The verbs shared by a local conversation and a client's."""

    def __repr__(self) -> str:
        return f"Blocking{self.inner!r}"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return cast("Conversation", self.inner).id

    record = blocking(Conversation.record)
    begin = blocking(Conversation.begin)
    extend = blocking(Conversation.extend)
    step = blocking(Conversation.step)
    complete = blocking(Conversation.complete)
    abort = blocking(Conversation.abort)
    messages = blocking(Conversation.messages)

    fork = continuing(Conversation.fork)
    recall = blocking(Conversation.recall)
    load = blocking(Conversation.load)
    page = blocking(Conversation.page)
    pages = blocking(Conversation.pages)
    search_tool_history = blocking(Conversation.search_tool_history)
    fetched = blocking(Conversation.fetched)
    pin = blocking(Conversation.pin)
    call_tool = blocking(Conversation.call_tool)
    checkpoint = blocking(Conversation.checkpoint)
    reset = blocking(Conversation.reset)
    turns = blocking(Conversation.turns)
    log = blocking(Conversation.log)
    head = blocking(Conversation.head)
    session = blocking(Conversation.session)
    put_session = blocking(Conversation.put_session)
    checkpoints = blocking(Conversation.checkpoints)
    calls = blocking(Conversation.calls)
    explain = blocking(Conversation.explain)
    replay = blocking(Conversation.replay)
    costs = blocking(Conversation.costs)


class BlockingConversation(ConversationVerbs[Conversation]):
    """A cheap handle: making one reads and writes nothing."""

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self.inner.scope

    context = blocking(Conversation.context)

    workspace = handing(Conversation.workspace, BlockingWorkspace)


class MemoryVerbs(Blocking[Inner]):
    """The verbs shared by a local memory and a client."""

    conversations = blocking(Memory.conversations)
    turns = blocking(Memory.turns)
    recall = blocking(Memory.recall)
    remember = blocking(Memory.remember)
    facts = blocking(Memory.facts)
    retract = blocking(Memory.retract)
    correct = blocking(Memory.correct)
    fact_revisions = blocking(Memory.fact_revisions)
    undo = blocking(Memory.undo)
    import_facts = blocking(Memory.import_facts)
    call = blocking(Memory.call)
    page = blocking(Memory.page)
    pages = blocking(Memory.pages)
    peek = blocking(Memory.peek)
    search_tool_history = blocking(Memory.search_tool_history)
    purge = blocking(Memory.purge)
    settle = blocking(Memory.settle)
    forget = blocking(Memory.forget)
    export = blocking(Memory.export)
    import_ = blocking(Memory.import_)


class BlockingMemory(MemoryVerbs[Memory]):
    """Everything the agents ever saw, and the windows made from it.

    Use it as `with BlockingMemory.open("sqlite:///agent.db") as memory`.
    """

    @classmethod
    @opening(Memory.open)
    def open(cls, opened: Memory, loop: Loop) -> "BlockingMemory":
        return cls(opened, loop)

    connect = classmethod(connecting(open))  # noqa: A003 - the method above

    def close(self) -> None:
        self.closing()

    close.__doc__ = Memory.close.__doc__

    @property
    def settings(self) -> Settings:
        """What this memory was opened with."""
        return self.inner.settings

    conversation = handing(Memory.conversation, BlockingConversation)
    rebuild = blocking(Memory.rebuild)
    describe = blocking(Memory.describe)
