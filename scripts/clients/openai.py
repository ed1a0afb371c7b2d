"""OpenAI's package: its tool loop, streams, structured answers and Responses, in both kinds of client."""

import asyncio

from openai import AsyncOpenAI, OpenAI

QUESTION = {"role": "user", "content": "How many rows?"}
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
client, model = OpenAI(max_retries=0), "gpt-5"

messages = [{"role": "user", "content": "Read the table, please."}]
said = client.chat.completions.create(model=model, messages=messages, tools=[READ]).choices[0].message
messages.append(said.model_dump(exclude_none=True))
messages += [
    {"role": "tool", "tool_call_id": call.id, "content": "row 1: 7\nrow 2: 14"}
    for call in said.tool_calls or ()
]
with client.chat.completions.stream(model=model, messages=messages, tools=[READ]) as stream:
    print(stream.until_done().get_final_completion().choices[0].message.content)
one = client.responses.create(model=model, input="How many rows?")
with client.responses.stream(model=model, input="And columns?", previous_response_id=one.id) as stream:
    print(stream.until_done().get_final_response().output_text)


async def main() -> None:
    async with AsyncOpenAI(max_retries=0) as later:
        completion = await later.chat.completions.create(model=model, messages=[QUESTION])
        print(completion.choices[0].message.content)
        pieces = await later.chat.completions.create(model=model, messages=[QUESTION], stream=True)
        print("".join([piece.choices[0].delta.content or "" async for piece in pieces]))
        async with later.responses.stream(model=model, input="How many rows?") as stream:
            print((await stream.get_final_response()).output_text)


asyncio.run(main())
