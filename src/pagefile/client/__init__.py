"""A client for the HTTP service, with the verbs and records of `Memory`.

`async with Client("http://127.0.0.1:8780") as memory:` or, without an event loop, `with BlockingClient.open(…) as memory:`.
"""

from pagefile.client.blocking import BlockingClient, BlockingClientConversation
from pagefile.client.remote import Client, ClientConversation

__all__ = ["BlockingClient", "BlockingClientConversation", "Client", "ClientConversation"]
