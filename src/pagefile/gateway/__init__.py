"""Providers' own protocols with memory: the session that the service's routes and wrapped clients share."""

from pagefile.gateway.adapter import Adapter
from pagefile.gateway.anthropic_messages import Messages
from pagefile.gateway.chat_completions import ChatCompletions
from pagefile.gateway.openai_responses import Responses

#: By the path of their requests after the version.
ADAPTERS: dict[str, Adapter] = {
    adapter.path: adapter for adapter in (ChatCompletions(), Messages(), Responses())
}
