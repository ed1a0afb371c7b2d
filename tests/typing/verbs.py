"""What a caller's editor is told of verbs that are made from others: pyright checks this file, nothing runs it."""

from typing import assert_type

from pagefile import BlockingMemory, Memory
from pagefile.client import BlockingClient, Client
from pagefile.records import ErasureReceipt, Fact, Hit, Listing, Page, Turn
from pagefile.window.receipt import Window


async def opened() -> None:
    assert_type(await Memory.connect("sqlite:///agent.db", tokenizer="o200k_base"), Memory)
    async with Memory.open("sqlite:///agent.db") as memory:
        assert_type(memory, Memory)
    await Memory.connect(databse="sqlite:///agent.db")  # pyright: ignore[reportCallIssue]
    with BlockingMemory.open("sqlite:///agent.db") as blocking:
        assert_type(blocking, BlockingMemory)
    assert_type(BlockingMemory.connect(), BlockingMemory)
    assert_type(BlockingClient.connect("http://127.0.0.1:8780"), BlockingClient)


async def asked_of_a_service(client: Client) -> None:
    chat = client.conversation("chat", user_id="ada")
    assert_type(await chat.record("hello", "hi"), Turn)
    assert_type(await chat.context("hello", window_tokens=4000), Window)
    assert_type(await chat.turns(limit=3), Listing[Turn])
    assert_type(await chat.load("uuid", query="what"), str)
    assert_type(await client.recall("hello", user_id="ada"), list[Hit])
    assert_type(await client.remember("Likes tea", user_id="ada"), Fact)
    assert_type(await client.forget(user_id="ada"), ErasureReceipt)
    await client.remember("Likes tea")  # pyright: ignore[reportCallIssue]
    await chat.record(5)  # pyright: ignore[reportArgumentType]


def asked_without_a_loop(memory: BlockingMemory, client: BlockingClient) -> None:
    assert_type(memory.conversation("chat").record("hello", "hi"), Turn)
    assert_type(client.conversation("chat").record("hello", "hi"), Turn)
    assert_type(memory.pages(limit=1), Listing[Page])
    assert_type(client.pages(limit=1), Listing[Page])
    memory.pages(limits=1)  # pyright: ignore[reportCallIssue]
