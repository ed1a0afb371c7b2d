"""What the tests of document 001 say to the app."""

from pagefile.standalone import MemoryQueryRequest, MemoryWriteRequest
from pagefile.text.tokens import open_counter

COUNTER = open_counter()


def asking(query="", **options):
    return MemoryQueryRequest("c", query=query, **options)


async def say(app, *numbers, conversation_id="c"):
    for number in numbers:
        await app.write_turn(
            MemoryWriteRequest(conversation_id, user_query=f"问{number}", agent_response=f"答{number}")
        )


def lines(*numbers):
    return [line for number in numbers for line in (f"用户: 问{number}", f"AI: 答{number}")]


async def history(app, **options):
    return (await app.query_memory_context(asking(**options))).history.split("\n")
