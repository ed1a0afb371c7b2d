"""A gateway on a real socket before a scripted provider, with the vendors' own clients, and a look into its memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anthropic
import openai

from pagefile import BlockingMemory, Settings
from pagefile.records import Scope
from pagefile.settings import ArchiveSettings, EmbedderSettings, GatewaySettings
from pagefile.stores.key_secrets import new_key
from tests.acceptance.http_server import listening
from tests.gateway.upstream import Script, Upstream


@dataclass
class Behind:
    url: str
    upstream: Upstream
    settings: Settings
    #: Closes the clients at the end: a collector that comes later reports their sockets in another test.
    opened: ExitStack

    def openai(self, **options: Any):
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="sk-vendor", max_retries=0, **options)
        return self.opened.enter_context(client)

    def anthropic(self, **options: Any):
        client = anthropic.Anthropic(base_url=self.url, api_key="sk-ant-vendor", max_retries=0, **options)
        return self.opened.enter_context(client)

    @contextmanager
    def memory(self) -> Iterator[BlockingMemory]:
        """The memory of the gateway, opened beside it."""
        with BlockingMemory.open(settings=replace(self.settings, indexing="manual")) as memory:
            yield memory

    def turns(self, conversation: str, user: str | None = None) -> list[Any]:
        with self.memory() as memory:
            return list(memory.conversation(conversation, user_id=user).turns())

    def conversations(self) -> list[str]:
        with self.memory() as memory:
            return [str(head.scope.conversation) for head in memory.conversations()]

    def talks(self) -> list[list[tuple[str | None, str | None, str]]]:
        """What the log has of every conversation: question, answer and status of each turn."""
        found = []
        with self.memory() as memory:
            for head in memory.conversations():
                turns = memory.conversation(str(head.scope.conversation), user_id=head.scope.user).turns()
                found.append([(turn.user, turn.assistant, turn.status) for turn in turns])
        return found


@contextmanager
def behind(script: Script, path: Path, **given: Any) -> Iterator[Behind]:
    """`gateway` has more settings of the gateway; the rest are those of the memory."""
    with ExitStack() as opened:
        upstream = opened.enter_context(Upstream(script))
        gateway = given.pop("gateway", {})
        urls = {"openai_url": f"{upstream.url}/v1", "anthropic_url": upstream.url}
        settings = Settings(
            **{
                "url": f"sqlite:///{path / 'gateway.db'}",
                "embedder": EmbedderSettings(name="none"),
                "archive": ArchiveSettings(threshold=2_000),
                "gateway": GatewaySettings(**{**urls, "deadline_s": 20.0, **gateway}),
                **given,
            }
        )
        yield Behind(opened.enter_context(listening(settings)), upstream, settings, opened)


def new_text(memory: BlockingMemory, name: str, user: str | None, tenant: str = "clinic") -> str:
    """The text of a new key of ours."""
    key, text = new_key(name, Scope(tenant, user), created=datetime.now(UTC))
    memory.loop.wait(lambda: memory.inner.engine.store.keys.add(key))
    return text
