"""`tail`: turns and calls as they happen, whichever process writes them."""

import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Annotated, TypeAlias, cast

import anyio
from rich.text import Text
from typer import Argument, Option

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.maintenance import quiet
from pagefile.cli.measures import SHOWN_CHARS, number, plural
from pagefile.cli.options import of_user
from pagefile.cli.output import clipped, err, out
from pagefile.engine import Conversation, Memory
from pagefile.records import Scope, Turn, WindowRecord

Event: TypeAlias = Turn | WindowRecord
#: Conversations, turns and calls read at a time.
_SLICE = 50


@command()
def tail(
    cli: Invocation,
    conversation: Annotated[str | None, Argument(help="Only this conversation.")] = None,
    *,
    user_id: Annotated[str | None, of_user(help="Only conversations of this user.")] = None,
    limit: Annotated[int, Option("--limit", "-n", min=0, help="How many past entries to show first.")] = 5,
    every: Annotated[float, Option(min=0.05, max=60, help="How often to look, in seconds.")] = 0.5,
    once: Annotated[bool, Option("--once", help="Show the latest and exit.")] = False,
) -> None:
    """Follow turns and calls as they are written, by any process that uses the same database. Ctrl-C ends it.

    With --json, each is a line of JSON. Nothing is written.

    Examples:
        pagefile tail
        pagefile tail support-42 -n 20
        pagefile tail --user ada --json | jq .tokens
    """

    async def work(memory: Memory) -> None:
        chat = await cli.chat(memory, conversation, user_id) if conversation is not None else None
        follower = _Follower(memory, Scope(cli.scope.tenant, user_id) if chat is None else chat.scope, chat)
        last = await follower.begin()
        if not last:
            chosen = conversation is not None or user_id is not None
            said = "Nothing is recorded of that yet." if chosen else await cli.nothing_here(memory)
            err().print(
                said if once else f"{said} Waiting for what comes next; Ctrl-C ends it.", soft_wrap=True
            )
        for event in last[-limit:] if limit else ():
            _print(event, as_json=cli.as_json)
        while not once:
            await anyio.sleep(every)
            for event in await follower.news():
                _print(event, as_json=cli.as_json)

    try:
        cli.run(work, settings=quiet(cli.settings))
    except KeyboardInterrupt:
        # The usual way to end it is no failure.
        sys.stdout.write("\n")


@dataclass
class _Follower:
    """Reads what was written since it was last asked."""

    memory: Memory
    scope: Scope
    #: The only conversation to follow; None follows all of the scope.
    only: Conversation | None
    #: The last position of each conversation that was read, and the newest calls.
    _seen: dict[str, int] = field(default_factory=dict[str, int])
    _calls: set[str] = field(default_factory=set[str])

    async def begin(self) -> list[Event]:
        """The newest turns and calls, oldest first; from here on, only what comes later is news."""
        turns: list[Turn] = []
        async for chat, last_seq in self._conversations():
            newest: Sequence[Turn] = ()
            if len(turns) < _SLICE:
                newest = await chat.turns(limit=_SLICE, newest=True)
            turns += newest
            self._seen[chat.id] = max([last_seq, *(turn.seq or 0 for turn in newest)])
        calls = await self._newest_calls()
        return _in_order(turns, calls)

    async def news(self) -> list[Event]:
        """Turns and calls since the last time, oldest first."""
        turns: list[Turn] = []
        async for chat, last_seq in self._conversations():
            seen = self._seen.get(chat.id, 0)
            if last_seq == seen:
                # The most recently used come first: none behind one that has nothing new has anything new.
                break
            # Less than before: erased meanwhile, and begun again.
            found = [turn async for turn in _after(chat, min(seen, last_seq) if last_seq >= seen else 0)]
            self._seen[chat.id] = max([last_seq, *(turn.seq or 0 for turn in found)])
            turns += found
        return _in_order(turns, await self._newest_calls())

    async def _conversations(self) -> AsyncIterator[tuple[Conversation, int]]:
        """The conversations with the last position in each, most recently used first."""
        if self.only is not None:
            newest = await self.only.log(limit=1, newest=True)
            yield self.only, max([0, *(one.seq or 0 for one in newest)])
            return
        after: str | None = None
        while True:
            heads = await self.memory.conversations(
                user_id=self.scope.user, tenant=self.scope.tenant, limit=_SLICE, after=after
            )
            for head in heads:
                scope = head.scope
                yield (
                    self.memory.conversation(
                        scope.conversation or "", user_id=scope.user, tenant=scope.tenant
                    ),
                    head.last_seq,
                )
            after = heads.next
            if after is None:
                return

    async def _newest_calls(self) -> list[WindowRecord]:
        """Calls that were not there the last time; of the first time, all that are listed at once."""
        listed = await self.memory.engine.store.calls.list(self.scope, limit=_SLICE)
        new = [call for call in listed if call.id not in self._calls]
        self._calls = {call.id for call in listed}
        return new


async def _after(chat: Conversation, seq: int) -> AsyncIterator[Turn]:
    place: int | str | None = seq
    while place is not None:
        found = await chat.turns(after=place, limit=_SLICE)
        for turn in found:
            yield turn
        place = found.next


def _in_order(turns: Sequence[Turn], calls: Sequence[WindowRecord]) -> list[Event]:
    """Ended turns and calls as they were written; an open turn is shown when it ends."""
    ended = [(turn.created, 1, turn) for turn in turns if turn.seq is not None]
    made = [(call.at, 0, call) for call in calls]
    return [event for _, _, event in sorted([*ended, *made], key=lambda one: one[:2])]


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        kind = "turn" if isinstance(event, Turn) else "call"
        value = cast("dict[str, object]", import_module("pagefile.record_json").to_json(event))
        sys.stdout.write(json.dumps({"event": kind, **value}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
        return
    console = out()
    for style, line in _turn_lines(event) if isinstance(event, Turn) else _call_lines(event):
        # A line each, however narrow: what flows past is read at a glance.
        console.print(Text(clipped(line, console.width), style=style))


def _turn_lines(turn: Turn) -> Iterator[tuple[str, str]]:
    tools = f" · {plural(len(turn.steps), 'tool call')}" if turn.steps else ""
    state = "" if turn.status == "done" else f" · {turn.status}"
    about = f"turn {turn.seq} · {plural(turn.tokens, 'token')}{tools}{state}"
    yield "bold", _line(turn.created, turn.scope, about)
    who = turn.scope.user or "user"
    # Of an answer that broke off, what there was of it.
    for name, text in ((who, turn.user), ("assistant", turn.assistant or turn.answered)):
        if text:
            yield "", f"{name}: {text}"


def _call_lines(call: WindowRecord) -> Iterator[tuple[str, str]]:
    budget = call.options.get("window_tokens")
    of = f" of {number(budget)}" if isinstance(budget, int) else ""
    yield (
        "dim",
        _line(call.at, call.scope, f"call {call.id[:SHOWN_CHARS]} · {number(call.tokens)}{of} tokens"),
    )


def _line(at: datetime, scope: Scope, about: str) -> str:
    return f"{at.astimezone():%H:%M:%S} {clipped(scope.conversation or '–', 30)} · {about}"
