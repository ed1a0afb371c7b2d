"""One of several processes with the functions of short-term memory: a request on each line of its input, an answer on each of its output."""

import json
import sys

import anyio
import anyio.to_thread

from pagefile import ConflictError, InvalidArgumentError, Memory
from pagefile.standalone import AgentApp, MemoryQueryRequest, MemoryWriteRequest

#: This many tokens hold a handful of turns, and this many hold all.
SMALL_WINDOW, LARGE_WINDOW = 300, 200_000


async def answer(app, verb, conversation, *given):
    if verb == "say":
        (number,) = given
        said = f"A{number} " + "词" * 20
        await app.write_turn(MemoryWriteRequest(conversation, user_query=f"Q{number}", agent_response=said))
        return True
    if verb == "read":
        window = LARGE_WINDOW if given == ("all",) else SMALL_WINDOW
        request = MemoryQueryRequest(conversation, query="?", model_context_window=window)
        context = await app.query_memory_context(request)
        token = getattr(context, "read_token", "")
        return context.full_history, context.should_checkpoint_summary, token
    summary, recent_turns, token = given
    try:
        await app.checkpoint_short_memory(conversation, summary, recent_turns, *([token] if token else []))
    except (ConflictError, InvalidArgumentError) as refused:
        return str(refused)
    return True


async def main(url, sessions):
    async with Memory.open(url, sessions=sessions or None, embedder="none") as memory:
        app = AgentApp(memory)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            print(json.dumps(await answer(app, *json.loads(line))), flush=True)


anyio.run(main, *sys.argv[1:])
