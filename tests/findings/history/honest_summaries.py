"""Summaries that name every turn their author has read, so that a test can tell which turns are lost.

Turn 7 is said as `Q7`; a summary that speaks for turns 1 to 3 reads `SUM[1 2 3]`.
"""

import re

from pagefile import ConflictError, InvalidArgumentError
from pagefile.standalone import MemoryQueryRequest, MemoryWriteRequest

#: A summary that comes too late may be refused, for others were faster or left it nothing to cover.
REFUSED = (ConflictError, InvalidArgumentError)
#: This many tokens hold a handful of turns.
SMALL_WINDOW = 300
#: This many hold every turn of a test.
LARGE_WINDOW = 200_000


async def say(app, *numbers, conversation="c"):
    """Write turns that take about thirty tokens each."""
    for number in numbers:
        said = MemoryWriteRequest(
            conversation, user_query=f"Q{number}", agent_response=f"A{number} " + "词" * 20
        )
        await app.write_turn(said)


async def read(app, *, window=SMALL_WINDOW, conversation="c"):
    """What a query of the conversation brings."""
    return await app.query_memory_context(
        MemoryQueryRequest(conversation, query="?", model_context_window=window)
    )


def spoken_for(text):
    """The turns for which the summary in a text speaks."""
    summary = re.search(r"SUM\[([^\]]*)\]", text)
    return [int(number) for number in summary[1].split()] if summary else []


def shown(text):
    """The turns that are in a text word by word."""
    return [int(number) for number in re.findall(r"用户: Q(\d+)", text)]


def covered(text):
    """The turns that a reader of a text knows of, in order."""
    return sorted({*spoken_for(text), *shown(text)})


def summary_of(text):
    """What an honest author writes after reading a text."""
    return f"SUM[{' '.join(map(str, covered(text)))}]"


async def lost(app, turns, *, conversation="c"):
    """The turns that are neither in the summary nor in the history."""
    context = await read(app, window=LARGE_WINDOW, conversation=conversation)
    return sorted(set(turns) - set(covered(context.history)))
