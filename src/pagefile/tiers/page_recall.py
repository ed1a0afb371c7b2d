"""Passages of archived results that come back by themselves when they answer a message, in any conversation of their user."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pagefile.errors import NotFoundError, PagefileError, PagePurgedError
from pagefile.lru import Lru
from pagefile.ports import PageStore
from pagefile.records import Page, Scope
from pagefile.text.recall_gate import Gate, goes_on, tells
from pagefile.text.relevance import is_exercise, is_general, page_helps
from pagefile.text.small_talk import is_small_talk
from pagefile.text.words import is_trivial
from pagefile.tiers.base import Counter, PastWindow, WindowRequest, guarded, traced_rows
from pagefile.tiers.page_in import Asked, is_quoted, part_of
from pagefile.tiers.page_search import Found, PageSearch
from pagefile.window.candidates import Candidate, Form
from pagefile.window.parts import escape

#: How many pages are considered for a message, and how likely one must help, a general question more: several hundred tokens
#: of something else distract.
_MOST = 3
_LEAST_VALUE, _LEAST_FOR_GENERAL, _LEAST_FOR_TOLD = 0.12, 0.35, 0.5
#: The tokens of a page's passages, or the window divided by this.
PASSAGES_TOKENS, PASSAGES_SHARE = 250, 4
#: The name of its trace.
TRACE = "page passages"
#: Running turns whose selection is remembered, so that their windows stay the same through a tool loop.
_CHOICES = 1000


class _Chosen(NamedTuple):
    """A page that a window may show passages of, as a trace records it."""

    uuid: str
    value: float


@dataclass(eq=False, repr=False)
class PageRecall:
    search: PageSearch
    pages: PageStore
    counter: Counter
    gate: Gate
    report: Callable[[Exception], object]
    #: What was chosen for a window that is rebuilt.
    past: Sequence[_Chosen] | None = None
    _choices: Lru[tuple[Scope, str], Sequence[_Chosen]] = field(
        default_factory=lambda: Lru[tuple[Scope, str], Sequence[_Chosen]](_CHOICES)
    )

    def replay(self, past: PastWindow) -> None:
        """Offer again what was offered for a past window, unless the question is another one."""
        if not past.changed("query", "recall"):
            self.past = [_Chosen(*row) for row in traced_rows(past.traces.get(TRACE))]

    async def offer(self, request: WindowRequest, shown: Container[str]) -> list[Candidate]:
        """The passages that answer, of pages that the window does not show anyway."""
        query = request.searched
        if self.gate == "never" or is_trivial(query):
            return []
        if self.gate == "auto" and (is_exercise(query) or is_small_talk(query)):
            return []
        chosen = [one for one in await self._chosen(request, query) if one.uuid not in shown]
        if self.gate == "auto" and request.view.turns and goes_on(query):
            # It leans on what was just said: on the results of these turns, if on any.
            here = {step.page for turn in request.view.turns for step in turn.steps}
            chosen = [one for one in chosen if one.uuid in here]
        if chosen:
            request.traces[TRACE] = [[*one] for one in chosen]
        found = [await self._candidate(request, one, query, rank) for rank, one in enumerate(chosen)]
        return [one for one in found if one is not None]

    def forget(self) -> None:
        self._choices.clear()

    async def _chosen(self, request: WindowRequest, query: str) -> Sequence[_Chosen]:
        if self.past is not None:
            return self.past
        running = request.view.open_turn
        if running is None:
            return await self._choose(request, query)
        if (key := (request.scope, running.id)) not in self._choices:
            self._choices[key] = await self._choose(request, query)
        return self._choices[key]

    async def _choose(self, request: WindowRequest, query: str) -> list[_Chosen]:
        found: Sequence[Found] = ()
        # Whatever fails here costs these passages, not the placeholders. No page is read for it that was not read before.
        with guarded(lambda error: request.note(f"archived results were not searched: {error}")):
            found = (await self.search.find(_home(request.scope), query, _MOST, segment=False))[:_MOST]
        values = [
            page_helps(query, one.together, one.similarity, in_text=one.passage is not None) for one in found
        ]
        told = request.view.turns and tells(query)
        least = _LEAST_FOR_TOLD if told else _LEAST_FOR_GENERAL if is_general(query) else _LEAST_VALUE
        return [
            _Chosen(one.uuid, round(value, 6))
            for one, value in zip(found, values, strict=True)
            if value >= (_LEAST_VALUE if one.numbered else least)
        ]

    async def _candidate(
        self, request: WindowRequest, chosen: _Chosen, query: str, rank: int
    ) -> Candidate | None:
        """The passages with what they are from; None if the page is gone, or is an answer of our own tools."""
        budget = min(PASSAGES_TOKENS, request.window_tokens // PASSAGES_SHARE)
        try:
            page, text = await self.pages.load(_home(request.scope), chosen.uuid)
        except (NotFoundError, PagePurgedError):
            return None
        except PagefileError as error:
            self.report(error)
            return None
        if is_quoted(page.tool, text):
            return None
        asked = Asked(query), budget, self.counter.count, request.wording
        part = await part_of(text, *asked, implied=True)
        shown = f"- {_origin(request, page)}\n{escape(part.text)}"
        form = Form(self.counter.count(shown), text=shown, name="passages")
        return Candidate(f"page:{page.uuid}", "loaded", (form,), rank, value=chosen.value)


def _origin(request: WindowRequest, page: Page) -> str:
    """Which tool a page is from, when, and how to read all of it."""
    about = " · ".join(filter(None, (page.tool, page.query_summary, f"{page.created:%Y-%m-%d}")))
    return f"{request.wording.back.format(uuid=page.uuid)} {escape(about)}"


def _home(scope: Scope) -> Scope:
    """All pages of the user; those of the conversation if there is no user."""
    return scope if scope.user is None else Scope(scope.tenant, scope.user)
