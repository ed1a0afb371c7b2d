"""The router and the retriever that the settings name: a service behind a URL, or a Python object by its import path."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, cast

import httpx

from pagefile.errors import SettingsError
from pagefile.settings import ChatSettings

#: Where an answer that is not a plain list has its results; `data` is OpenAI's name.
_LISTS = ("results", "data", "documents")


@dataclass(frozen=True, slots=True)
class HttpHook:
    """A service that is asked with the names of the document as JSON, and with whose question it is."""

    url: str
    client: httpx.AsyncClient
    whose: Mapping[str, str | None] = field(default_factory=dict[str, str | None])

    async def route(self, **asked: Any) -> Any:
        return await self._asked(asked)

    async def retrieve(self, **asked: Any) -> Any:
        found = await self._asked(asked)
        if not isinstance(found, dict):
            return found
        named = cast("dict[str, Any]", found)
        return next((named[name] for name in _LISTS if name in named), ())

    def of(self, **whose: str | None) -> "HttpHook":
        """The same for one user's question."""
        return replace(self, whose=whose)

    async def _asked(self, asked: dict[str, Any]) -> Any:
        answer = await self.client.post(self.url, json={**self.whose, **asked})
        return answer.raise_for_status().json()


@dataclass(frozen=True, slots=True)
class ChatHooks:
    """What answers of the service are made with, besides the memory and the model."""

    settings: ChatSettings
    router: Any = None
    retriever: Any = None
    client: httpx.AsyncClient | None = None

    @classmethod
    def of(cls, settings: ChatSettings) -> "ChatHooks":
        """Raises `SettingsError` for what cannot be imported. URLs are not tried: what they lead to may start later."""
        key = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        named = {"chat.router": settings.router, "chat.retriever": settings.retriever}
        remote = any(map(_is_url, named.values()))
        client = httpx.AsyncClient(headers=key, timeout=settings.timeout_s) if remote else None
        router, retriever = (
            HttpHook(said, client) if said and client and _is_url(said) else _imported(name, said)
            for name, said in named.items()
        )
        return cls(settings, router, retriever, client)

    def asking(self, user_id: str | None, tenant: str) -> tuple[Any, Any]:
        """Router and retriever for one user's question."""
        hooks = (self.router, self.retriever)
        router, retriever = (
            hook.of(user_id=user_id, tenant=tenant) if isinstance(hook, HttpHook) else hook for hook in hooks
        )
        return router, retriever

    async def close(self) -> None:
        if self.client is not None:
            await self.client.aclose()


def _is_url(said: str | None) -> bool:
    return said is not None and said.startswith(("http://", "https://"))


def _imported(name: str, said: str | None) -> Any:
    if said is None:
        return None
    module, _, attribute = said.partition(":")
    try:
        found: Any = attrgetter(attribute)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"{name} is {said!r}, which cannot be imported ({error}): give a URL, or a Python object as 'package.module:name'."
        ) from error
    return found() if isinstance(found, type) else found
