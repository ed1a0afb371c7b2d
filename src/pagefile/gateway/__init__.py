"""Providers' own protocols with memory: the session that the service's routes and wrapped clients share."""

from pagefile.gateway.adapter import Adapter
from pagefile.gateway.chat_completions import ChatCompletions

#: By the path of their requests after the version, and by the provider whose protocol they are.
ADAPTERS: dict[str, Adapter] = {adapter.path: adapter for adapter in (ChatCompletions(),)}
