"""Every page and action of the inspector, listed for the app that mounts it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pagefile.engine import Memory
from pagefile.inspector import (
    archive,
    bill,
    conversations,
    erasure,
    experiments,
    facts,
    live,
    playground,
    recall,
    replay,
    search,
    timeline,
    trace,
    ui,
    urls,
)
from pagefile.inspector.page_request import PageRequest, Reader

Gather: TypeAlias = Callable[[Memory, PageRequest], Awaitable[Any]]
Show: TypeAlias = Callable[[Any, Reader], ui.View]
Action: TypeAlias = Callable[[Memory, PageRequest], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its data, which is also its JSON, and how to render it."""

    path: str
    gather: Gather
    show: Show
    #: The scope the page turned out to be about, where the request gives only an id.
    about: Callable[[Any, PageRequest], PageRequest] | None = None
    #: What the JSON is of, if the page shows more than that.
    twin: Callable[[Any], Any] = lambda data: data
    #: Whether it is of one conversation: without one, its address leads to the list that they are chosen from.
    of_conversation: bool = False


PAGES: tuple[Page, ...] = (
    Page(urls.CONVERSATIONS, conversations.gather, conversations.show),
    Page(urls.CONVERSATION, timeline.gather, timeline.show, of_conversation=True),
    Page(urls.CALLS, bill.gather_calls, bill.show_calls, of_conversation=True),
    Page(
        urls.CALL,
        bill.gather_call,
        bill.show_call,
        lambda data, asked: bill.about(data.call, asked),
        lambda data: data.explanation,
    ),
    Page(urls.TRACE, trace.gather, trace.show),
    Page(urls.SEARCH, search.gather, search.show),
    Page(urls.LIVE, live.gather, live.show),
    Page(urls.EXPERIMENTS, experiments.gather, experiments.show),
    Page(urls.REPLAY, replay.gather, replay.show, lambda data, asked: bill.about(data.call, asked)),
    Page(urls.RECALL, recall.gather, recall.show),
    Page(urls.ARCHIVE, archive.gather, archive.show),
    Page(urls.PAGE, archive.gather_page, archive.show_page),
    Page(urls.FACTS, facts.gather, facts.show),
    Page(urls.SESSIONS, conversations.gather_sessions, conversations.show_sessions),
    Page(urls.CHAT, playground.gather, playground.show),
    Page(urls.ERASE, erasure.gather, erasure.show),
)

#: What a form does, by its path; returns the URL to continue at.
ACTIONS: Mapping[str, Action] = {
    urls.PAGE: archive.pin,
    urls.FACTS: facts.change,
    urls.NOTE: trace.note,
    urls.EXPERIMENT: experiments.remove,
}
