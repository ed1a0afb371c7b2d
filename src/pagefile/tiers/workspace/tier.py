"""The workspace tier: the workspaces of all runs in this process, and what they offer to a window."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from pagefile.lru import Lru
from pagefile.records import ErasureReceipt, Scope, Step, Turn
from pagefile.tiers import base
from pagefile.tiers.workspace.calls import ToolCall
from pagefile.tiers.workspace.parts import Parts
from pagefile.tiers.workspace.run import Workspace
from pagefile.window.budget import share_of
from pagefile.window.candidates import Block, Candidate

#: The scope and the name of a run.
_Run: TypeAlias = tuple[Scope, str]


class Workspaces(base.Tier):
    """What the runs of this process have at hand; the least recently used are evicted."""

    name = "workspace"
    incognito = True

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        parts.on_failure = lambda error, first: self.report(error, logs=first)
        self._runs: Lru[_Run, Workspace] = Lru(parts.rules.max_runs)
        #: What each run is working on, including those that have nothing at hand yet.
        self._asked: Lru[_Run, str] = Lru(parts.rules.max_runs)

    def __len__(self) -> int:
        return len(self._runs)

    def of(self, scope: Scope, run: str = "") -> Workspace:
        """The workspace of a run; empty if the run is new or was evicted."""
        if (found := self._runs.get((scope, run))) is None:
            found = self._runs[scope, run] = Workspace(self._parts, scope, run, partial(self._changed, scope))
            found.ask(self._asked.get((scope, run)))
        return found

    def asked(self, scope: Scope, run: str, query: str | None) -> None:
        if not query or not self._parts.rules.enabled:
            return
        self._asked[scope, run] = query
        if (workspace := self._runs.get((scope, run))) is not None:
            workspace.ask(query)

    async def absorb(self, turn: Turn) -> bool:
        if turn.status == "open":
            self.asked(turn.scope, "", turn.user)
        return False

    async def absorb_step(self, scope: Scope, raw: Step, kept: Step, turn_id: str, admit: base.Admit) -> Step:
        """What the conversation's own run remembers of a step, and which answers the step made untrue."""
        call = ToolCall.of(raw.tool, raw.input)
        rule = (self._runs.get((scope, "")) or Workspace(self._parts, scope)).rule(*call)
        if rule.remembers != "nothing" or rule.cacheable:
            own = self.of(scope)
            await own.absorb(raw.tool, raw.input, raw.result, archive_uuid=kept.page, call_id=raw.call_id)
        elif rule.changes:
            self._changed(scope, call)
        return kept

    def disregard(self, scope: Scope, step: Step, *, error: bool) -> None:
        if (own := self._runs.get((scope, ""))) is not None:
            own.disregard(step, error=error)

    def _changed(self, scope: Scope, change: ToolCall) -> None:
        """A user's runs work on the same things: what one of them changes is untrue for all."""
        for (home, _), workspace in list(self._runs.items()):
            if (home.tenant, home.user) == (scope.tenant, scope.user):
                workspace.changed(change)

    def limits(self, window_tokens: int) -> Mapping[Block, int]:
        return {"chunks": share_of(window_tokens, self._parts.rules.max_tokens)}

    async def offer(self, request: base.WindowRequest) -> Sequence[Candidate]:
        """Tables of contents at hand, then the best chunks that the window does not show anyway."""
        if request.run is None:
            return []
        self.asked(*request.run, request.query)
        if (workspace := self._runs.get(request.run)) is None or not self._parts.rules.enabled:
            return []
        await workspace.refresh()
        workspace.notes.language = request.language
        recent = request.view.turns[-request.recent_turns :]
        placeheld = frozenset(step.call_id for turn in recent for step in turn.steps)
        hint, chunks = (
            workspace.hint_forms(),
            workspace.chunk_forms(frozenset(_shown_calls(request)), placeheld),
        )
        toc = [Candidate("toc", "chunks", hint, 0)] if hint else []
        names = _numbered([f"chunk:{one.chunk_type}:{one.source}" for one, _ in chunks])
        return toc + [
            Candidate(name, "chunks", forms, rank, one.relevance_score)
            for rank, (name, (one, forms)) in enumerate(zip(names, chunks, strict=True), 1)
        ]

    async def replay(self, past: base.PastWindow) -> base.Tier:
        """A workspace lives only in its process: what it had at hand is what was recorded."""
        shown = base.traced(past.traces.get(self.name)) if self._parts.rules.enabled else []
        return base.Remembered(self, shown)

    def reset(self, scope: Scope) -> None:
        """Forget the query context of every run of a conversation."""
        for (home, _), workspace in self._runs.items():
            if base.within(home, scope):
                workspace.reset()

    async def forget(self, scope: Scope) -> base.Counts:
        for workspace in self._runs.drop(lambda key: base.within(key[0], scope)):
            # A caller may still hold a reference to it.
            workspace.reset_all()
        self._asked.drop(lambda key: base.within(key[0], scope))
        return {}

    async def forget_part(self, receipt: ErasureReceipt) -> None:
        for home in base.homes(receipt):
            await self.forget(home)


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number behind the second and further ones of a kind: several passages of one source."""
    seen: Counter[str] = Counter()
    told: list[str] = []
    for name in names:
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told


def _shown_calls(request: base.WindowRequest) -> Iterator[str]:
    """The calls whose results the window shows anyway: those of the running turn, and recent whole or loaded ones."""
    view = request.view
    if view.open_turn is not None:
        yield from (step.call_id for step in view.open_turn.steps)
    for turn in view.turns[-request.recent_turns :]:
        for number, step in enumerate(turn.steps):
            if step.whole or (turn.id, number) in request.pages:
                yield step.call_id
