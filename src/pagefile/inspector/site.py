"""Every page and action of the inspector, listed for the app that mounts it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pagefile.engine import Memory
from pagefile.inspector import (
    archive,
    bill,
    conversations,
    erasing,
    facts,
    places,
    playground,
    recall,
    replaying,
    timeline,
    ui,
)
from pagefile.inspector.asking import Asked
from pagefile.inspector.reader import Reader

Gather: TypeAlias = Callable[[Memory, Asked], Awaitable[Any]]
Show: TypeAlias = Callable[[Any, Reader], ui.View]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its data, which is also its JSON, and how to render it."""

    path: str
    gather: Gather
    show: Show
    #: The scope the page turned out to be about, where the request gives only an id.
    about: Callable[[Any, Asked], Asked] | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """What a form does; returns the URL to continue at."""

    path: str
    do: Callable[[Memory, Asked], Awaitable[str]]


PAGES: tuple[Page, ...] = (
    Page(places.CONVERSATIONS, conversations.gather, conversations.show),
    Page(places.CONVERSATION, timeline.gather, timeline.show),
    Page(places.CALLS, bill.gather_calls, bill.show_calls),
    Page(places.CALL, bill.gather_call, bill.show_call, lambda data, asked: bill.about(data.call, asked)),
    Page(places.REPLAY, replaying.gather, replaying.show, lambda data, asked: bill.about(data.call, asked)),
    Page(places.RECALL, recall.gather, recall.show),
    Page(places.ARCHIVE, archive.gather, archive.show),
    Page(places.PAGE, archive.gather_page, archive.show_page),
    Page(places.FACTS, facts.gather, facts.show),
    Page(places.SESSIONS, conversations.gather_sessions, conversations.show_sessions),
    Page(places.CHAT, playground.gather, playground.show),
    Page(places.ERASE, erasing.gather, erasing.show),
)

DEEDS: tuple[Deed, ...] = (Deed(places.PAGE, archive.pin), Deed(places.FACTS, facts.change))
