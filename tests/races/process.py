"""One of the processes that race: `python -m tests.races.process URL SESSIONS PAUSE_S slow|extract`.

It reads a request from each line of its input, works on all of them at once, and answers each with a line: the number of the
request, and what came of it. Everything that it says, and nothing else, goes to its output.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio

from pagefile import Memory, PagefileError, Settings
from pagefile.engine import memory as opening
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.standalone import AgentApp, AgentRequest
from pagefile.stores import open_sessions, open_store
from pagefile.testing.fakes import HashingEmbedder

from .gates import Gate, GatedPort, GatedStore
from .marking import bulky, places_in

SETTINGS = Settings(
    language="en",
    window_tokens=4000,
    recent_turns=1,
    recall="always",
    synchronous="normal",
    facts=FactSettings(extract="rules"),
    archive=ArchiveSettings(threshold=400, page_from=200),
)
#: A tool whose results the workspace remembers, too.
TOOL = "read_page_range"
_SUMMARY_S = 0.05


class Racer:
    """Does what it is asked for with an open memory."""

    def __init__(self, memory: Memory, gate: Gate) -> None:
        self._memory, self._gate = memory, gate
        self._app = AgentApp(memory)

    async def do(self, verb, given):
        """The answer to a request."""
        return await getattr(self, verb)(**given)

    def _chat(self, chat, user):
        return self._memory.conversation(chat, user_id=user)

    # -- writing ------------------------------------------------------------------------------------------------------

    async def record(self, chat, user, mark, bulk=False):
        steps = [{"tool": TOOL, "input": {"q": mark}, "result": bulky(mark)}] if bulk else []
        said = f"I am allergic to {mark}."
        turn = await self._chat(chat, user).record(said, f"Noted {mark}.", steps=steps)
        return {"turn": turn.id}

    async def begin(self, chat, user, mark):
        return {"turn": (await self._chat(chat, user).begin(f"Please look up {mark}.")).id}

    async def step(self, chat, user, turn, mark):
        await self._chat(chat, user).step(turn, tool=TOOL, input={"q": mark}, result=bulky(mark))

    async def complete(self, chat, user, turn, mark):
        await self._chat(chat, user).complete(turn, f"It says {mark}.")

    async def checkpoint(self, chat, user):
        await self._chat(chat, user).checkpoint(recent_turns=0)

    async def fork(self, chat, user, turn, name):
        await self._chat(chat, user).fork(turn, id=name)

    async def remember(self, user, mark):
        await self._memory.remember(f"Works at {mark}", user_id=user)

    async def snapshot(self, chat, user, mark):
        """The session of short-term memory: what is known of the user is in it."""
        await self._app.create_short_memory(AgentRequest(conversation_id=chat, user_id=user))
        session = await self._app.get_short_memory(chat)
        session.user_snapshot.name = mark
        session.meta.user_id = user
        await self._app.set_short_memory(chat, session)

    async def forget(self, chat=None, user=None):
        return {"total": (await self._memory.forget(conversation_id=chat, user_id=user)).total}

    # -- asking -------------------------------------------------------------------------------------------------------

    async def context(self, chat, user, mark):
        await self._chat(chat, user).context(f"What about {mark}?", instructions=f"Be kind to {mark}.")

    async def session(self, chat, user):
        await self._chat(chat, user).session()

    async def owners(self):
        """The users whose conversations there are."""
        return {head.scope.conversation: head.scope.user for head in await self._memory.conversations()}

    async def settle(self):
        await self._memory.settle()

    async def close_gate(self, verbs):
        self._gate.close(verbs)

    async def open_gate(self):
        reached = sorted(set(self._gate.reached))
        self._gate.open()
        return {"reached": reached}

    async def waiting(self):
        """How many writes are at the gate."""
        return {"waiting": len(self._gate.reached)}

    async def look(self, chats, users):
        """Every mark that any verb shows, by verb."""
        found: dict[str, dict[str, str]] = {}
        async for verb, shown in self._shown(chats, users):
            found.setdefault(verb, {}).update(places_in(shown))
        return {"found": found, "verbs": len(found)}

    async def _shown(self, chats, users) -> AsyncIterator[tuple[str, str]]:
        memory = self._memory
        yield "conversations", repr(await memory.conversations())
        yield "done turns", repr(await memory.turns(limit=1000))
        yield "all pages", repr(await memory.pages(limit=1000))
        yield "search of all", repr(await memory.search_tool_history("line of", user_id=None, limit=50))
        for user in users:
            yield "facts", repr(await memory.facts(user, history=True))
            yield "revisions", repr(await memory.fact_revisions(user))
            yield "recall", repr(await memory.recall("allergic noted", user_id=user, limit=50))
        for chat, user in chats:
            async for shown in self._of_chat(self._chat(chat, user)):
                yield shown
        with tempfile.TemporaryDirectory() as folder:
            await memory.export(Path(folder) / "all.jsonl")
            yield "export", (Path(folder) / "all.jsonl").read_text()

    async def _of_chat(self, chat) -> AsyncIterator[tuple[str, str]]:
        try:
            yield "log", repr(await chat.log(limit=1000))
            yield "checkpoints", repr(await chat.checkpoints())
            yield "window", repr(await chat.context("What am I allergic to? Please look it up."))
            yield "workspace", chat.workspace().text()
            yield "search", repr(await chat.search_tool_history("line of", 50, here=True))
            yield "recall here", repr(await chat.recall("allergic noted", 50))
            for page in await chat.pages():
                yield "page", repr(page) + await chat.load(page.uuid)
            for call in await chat.calls():
                yield "calls", repr(call)
            for call in (await chat.calls())[:2]:
                yield "explain", repr(await chat.explain(call.id))
                yield "replay", repr(await chat.replay(call.id, window_tokens=3000))
            yield "costs", repr(await chat.costs())
            yield "session", repr(await chat.session())
        except PagefileError as error:
            # Another user's, or nobody's.
            yield "refusal", str(error)


async def _summarized(text: str) -> str:
    await anyio.sleep(_SUMMARY_S)
    return "In short: " + text[:600]


async def _answered(racer: Racer, line: bytes) -> None:
    asked = json.loads(line)
    try:
        answer = {"ok": await racer.do(asked["do"], asked["with"]) or {}}
    except PagefileError as error:
        answer = {"refused": error.code, "why": str(error)}
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps({"number": asked["number"], **answer}), flush=True)


async def main(url: str, sessions: str, pause_s: str, how: str) -> None:
    """Work until the input ends."""
    gate = Gate(float(pause_s))

    async def gated(*args, **kwargs):
        return GatedStore(await open_store(*args, **kwargs), gate)

    opening.open_store = gated
    cache = GatedPort("cache", open_sessions(sessions), gate) if sessions else None
    given = {"sessions": cache, "embedder": HashingEmbedder(16), "settings": SETTINGS}
    summarizer = _summarized if how == "slow" else None
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    async with Memory.open(url, summarizer=summarizer, **given) as memory, anyio.create_task_group() as tasks:
        racer = Racer(memory, gate)
        print(json.dumps({"number": 0, "ok": {}}), flush=True)
        while line := await reader.readline():
            tasks.start_soon(_answered, racer, line)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
