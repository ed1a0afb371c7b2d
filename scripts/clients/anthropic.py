"""Anthropic's package: its tool runner, streams and counted tokens, in both kinds of client."""

import asyncio

from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

GIVEN = {"model": "claude-sonnet-4-5", "max_tokens": 200}
READ = [{"role": "user", "content": "Read the table, please."}]
QUESTION = [{"role": "user", "content": "How many rows?"}]
client = Anthropic(max_retries=0)


@beta_tool
def read() -> str:
    """Reads the table."""
    return "row 1: 7\nrow 2: 14"


@beta_async_tool(name="read")
async def read_later() -> str:
    """Reads the table."""
    return "row 1: 7\nrow 2: 14"


print(client.beta.messages.tool_runner(**GIVEN, tools=[read], messages=READ).until_done().content[0].text)
with client.messages.stream(**GIVEN, messages=QUESTION) as stream:
    print(stream.get_final_text())
print(client.messages.count_tokens(model=GIVEN["model"], messages=QUESTION).input_tokens)


async def main() -> None:
    async with AsyncAnthropic(max_retries=0) as later:
        runner = later.beta.messages.tool_runner(**GIVEN, tools=[read_later], messages=READ)
        print((await runner.until_done()).content[0].text)
        print((await later.messages.create(**GIVEN, messages=QUESTION)).content[0].text)
        async with later.messages.stream(**GIVEN, messages=QUESTION) as stream:
            print(await stream.get_final_text())


asyncio.run(main())
