"""Pagefile itself in `pagefile bench peers`, as it is when nothing is set."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

from benchmarks.corpus import url_of
from benchmarks.peers_base import INSTRUCTIONS, RECALLED, Peer, Prompt
from benchmarks.peers_script import Line
from pagefile.engine import Conversation, Memory
from pagefile.records import Turn
from pagefile.window.measure import turn_tokens

_BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)
_AT_ONCE = 1000


class PagefilePeer(Peer):
    """A conversation in a database file."""

    name = "Pagefile"
    used = (
        "`chat.record`, `chat.context`, `chat.recall` and `load_tool_history` with all defaults: a SQLite file, every turn on disk "
        "when `record` returns, and an exact budget."
    )
    bulk = True
    _memory: Memory
    _chat: Conversation

    async def open(self) -> None:
        self._opened = AsyncExitStack()
        memory = Memory.open(url_of(self.given.folder / "pagefile.db"), embedder=self.given.vectors)
        self._memory = await self._opened.enter_async_context(memory)
        self._chat = self._memory.conversation("chat", user_id="bench")

    async def record(self, line: Line) -> None:
        steps = (
            [] if line.result is None else [{"tool": "look_up", "input": line.number, "result": line.result}]
        )
        await self._chat.record(line.user, line.assistant, steps=steps)

    async def context(self, question: str) -> Prompt:
        window = await self._chat.context(question, instructions=INSTRUCTIONS)
        return [{"role": str(one["role"]), "content": _content(one)} for one in window.messages]

    async def recall(self, question: str) -> Sequence[str]:
        return [hit.text for hit in await self._chat.recall(question, RECALLED)]

    async def recall_result(self, question: str) -> Sequence[str]:
        return [hit.passage for hit in await self._chat.search_tool_history(question, RECALLED)]

    async def look_up(self, question: str) -> Sequence[str]:
        """Turns, or what `load_tool_history` shows of the page that answers best."""
        found = await self._chat.search_tool_history(question, 1)
        loaded = [await self._chat.load(hit.page.uuid, query=question) for hit in found]
        return [*await self.recall(question), *loaded]

    async def remains(self) -> Iterable[str]:
        texts: list[str] = []
        after = 0
        while turns := list(await self._chat.turns(after=after, limit=_AT_ONCE)):
            after += len(turns)
            for turn in turns:
                texts += [turn.user or "", turn.assistant or ""]
                for step in turn.steps:
                    texts.append(step.result if step.page is None else await self._chat.load(step.page))
        return texts

    async def idle(self) -> None:
        await self._memory.settle()

    async def fill(self, lines: Sequence[Line]) -> None:
        """An import, as of another log; what a tool returned is left out."""
        for start in range(0, len(lines), _AT_ONCE):
            part = lines[start : start + _AT_ONCE]
            await self._memory.engine.store.log.restore([self._turn(line) for line in part])
        self._memory.engine.worker.scan()

    async def close(self) -> None:
        await self._opened.aclose()

    def _turn(self, line: Line) -> Turn:
        count = self.given.counter.count
        user, assistant = count(line.user), count(line.assistant)
        moment = _BEGAN + timedelta(minutes=line.number)
        return Turn(
            id=f"turn-{line.number}",
            scope=self._chat.scope,
            seq=line.number + 1,
            status="done",
            user=line.user,
            assistant=line.assistant,
            steps=(),
            at=moment,
            created=moment,
            user_tokens=user,
            assistant_tokens=assistant,
            tokens=turn_tokens(line.user, user, line.assistant, assistant, ()),
            counter=self.given.counter.name,
        )


def _content(message: Mapping[str, object]) -> str:
    """What a message says, the calls of tools in it included."""
    calls = message.get("tool_calls")
    return f"{message.get('content') or ''}{'' if calls is None else calls}"
