"""The archive tier: a bulky tool result becomes a page, and a placeholder takes its place (document 000)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from pagefile.ports import Clock, PageDraft, PageStore
from pagefile.records import JsonValue, Page, Scope, Step
from pagefile.text.extract import clip, summarize
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.window.candidates import Candidate
from pagefile.window.measure import measured_step
from pagefile.window.placeholder import placeholder

#: Summaries of a result have at most this many characters in the store (document 000 asks for 200 to 500).
SUMMARY_CHARS = 500
QUERY_CHARS = 500


class Archive(Tier):
    """Tool results that are too long for every window."""

    name = "archive"

    def __init__(self, pages: PageStore, counter: Counter, clock: Clock, *, threshold: int) -> None:
        self._pages = pages
        self._counter = counter
        self._clock = clock
        self._threshold = threshold

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """Nothing of its own: placeholders stand in the turns that fetched the pages."""
        return []

    async def keep(self, scope: Scope, step: Step) -> Step:
        """The step as it is stored: with its result, or with the placeholder of its page."""
        if len(step.result) <= self._threshold:
            return measured_step(step, self._counter.count)
        page = await self._pages.put(PageDraft(self._page(scope, step), step.result))
        return measured_step(replace(step, result=placeholder(page), page=page.uuid), self._counter.count)

    async def load(self, scope: Scope, uuid: str) -> str:
        """The full text of a page."""
        return (await self._pages.load(scope, uuid))[1]

    def _page(self, scope: Scope, step: Step) -> Page:
        return Page(
            uuid=str(uuid4()),
            scope=scope,
            tool=step.tool,
            input=step.input,
            query_summary=query_summary(step.input),
            result_summary=summarize([("tool", step.result[:50_000])], max_chars=SUMMARY_CHARS),
            length=len(step.result),
            sources=(),
            created=self._clock.now(),
            tokens=self._counter.count(step.result),
            counter=self._counter.name,
            content_hash=hashlib.sha256(step.result.encode()).hexdigest(),
        )


def query_summary(value: JsonValue) -> str:
    """What a tool was asked, in one line."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(" ".join(text.split()), QUERY_CHARS)
