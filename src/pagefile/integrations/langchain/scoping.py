"""Whose memory a run uses: from the middleware's arguments, the run's context, or its configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langgraph.config import get_config

from pagefile.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Whose:
    """A conversation and its user."""

    conversation: str
    user: str | None = None
    tenant: str | None = None


def whose(given: "Given", context: object) -> Whose:
    """The conversation of this run; call it inside a node, a hook or a tool.

    `user_id`, `conversation_id` and `tenant` each come from the first place that has them: the arguments of the middleware, `context=`
    of the run, `configurable` of its configuration. A run that names no conversation uses its `thread_id`.
    """
    settings = _configurable()
    conversation = (
        given.conversation_id or _named(context, "conversation_id") or _named(settings, "conversation_id")
    )
    conversation = conversation or _named(settings, "thread_id")
    if conversation is None:
        raise SettingsError(
            "This run names no conversation: give the middleware a conversation_id, the run a context with one, "
            'or a thread_id as in agent.invoke(…, {"configurable": {"thread_id": "…"}}).'
        )
    return Whose(
        conversation,
        given.user_id or _named(context, "user_id") or _named(settings, "user_id"),
        given.tenant or _named(context, "tenant") or _named(settings, "tenant"),
    )


@dataclass(frozen=True, slots=True)
class Given:
    """What an integration was constructed with; the rest comes from each run."""

    conversation_id: str | None = None
    user_id: str | None = None
    tenant: str | None = None


def _configurable() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable", {})
    except RuntimeError:
        return {}


def _named(source: object, name: str) -> str | None:
    """A context may be a mapping or any object; numeric ids are accepted too."""
    value: object = (
        cast("Mapping[str, object]", source).get(name)
        if isinstance(source, Mapping)
        else getattr(source, name, None)
    )
    return None if value is None else str(value)
