"""The workspace tier: the workspaces of all runs in this process, and what they offer to a window."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from pagefile.ports import Clock
from pagefile.records import Scope, Step
from pagefile.tiers.archive import Archive
from pagefile.tiers.base import Counter, Occasion, Tier
from pagefile.tiers.workspace.run import Parts, Workspace, WorkspaceRules
from pagefile.window.candidates import Candidate, candidate_json

#: Whose run, and its name.
_Run: TypeAlias = tuple[Scope, str]
_Kept = TypeVar("_Kept")


class Workspaces(Tier):
    """What the runs of this process have at hand; those used longest ago are let go."""

    name = "workspace"

    def __init__(self, archive: Archive, counter: Counter, clock: Clock, rules: WorkspaceRules) -> None:
        self._parts = Parts(archive, counter, clock, rules)
        self._runs: OrderedDict[_Run, Workspace] = OrderedDict()
        #: What each run works on, also those that have nothing at hand yet.
        self._asked: OrderedDict[_Run, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def on_failure(self, tell: Callable[[Exception, bool], None]) -> None:
        """Who is told of every store that failed, and whether it is the first failure of its run."""
        self._parts.on_failure = tell

    def of(self, scope: Scope, run: str = "") -> Workspace:
        """The workspace of a run; an empty one for a run that is new, or that nobody used for long."""
        key = (scope, run)
        found = self._runs.get(key)
        if found is None:
            found = Workspace(self._parts, scope, run)
            found.ask(self._asked.get(key))
        self._keep(self._runs, key, found)
        return found

    def asked(self, scope: Scope, run: str, query: str | None) -> None:
        """A run works on a question now."""
        if not query or not self._parts.rules.enabled:
            return
        self._keep(self._asked, (scope, run), query)
        if (workspace := self._runs.get((scope, run))) is not None:
            workspace.ask(query)

    async def absorb_step(self, scope: Scope, raw: Step, kept: Step) -> None:
        """What the conversation's own run remembers of a step; nothing of tools without a rule."""
        known = self._runs.get((scope, "")) or Workspace(self._parts, scope)
        rule = known.rule(raw.tool)
        if rule.remembers != "nothing" or rule.cacheable:
            own = self.of(scope)
            await own.absorb(raw.tool, raw.input, raw.result, archive_uuid=kept.page, call_id=raw.call_id)

    async def offer(self, occasion: Occasion) -> Sequence[Candidate]:
        """Tables of contents at hand, then the best chunks that the window does not show anyway."""
        workspace = None if occasion.run is None else self._runs.get(occasion.run)
        if workspace is None or not self._parts.rules.enabled:
            return []
        hint = workspace.hint_forms()
        found = [Candidate("toc", "chunks", hint, 0)] if hint else []
        for rank, (chunk, forms) in enumerate(workspace.chunk_forms(frozenset(_shown_calls(occasion))), 1):
            name = f"chunk:{chunk.chunk_type}:{chunk.source}"
            found.append(Candidate(name, "chunks", forms, rank, chunk.relevance_score))
        # A workspace lives in this process only: no log can tell what it had at hand.
        occasion.traces[self.name] = [candidate_json(one) for one in found]
        return found

    def reset(self, scope: Scope) -> None:
        """Forget the query context of every run of a conversation."""
        for home, run in self._runs:
            if _within(home, scope):
                self._runs[home, run].reset()

    def forget(self, scope: Scope) -> None:
        """Drop every workspace that may hold something of the scope."""
        for key in [key for key in self._runs if _within(key[0], scope)]:
            # Somebody may hold on to it.
            self._runs.pop(key).reset_all()
        for key in [key for key in self._asked if _within(key[0], scope)]:
            self._asked.pop(key)

    def _keep(self, shelf: OrderedDict[_Run, _Kept], key: _Run, value: _Kept) -> None:
        shelf[key] = value
        shelf.move_to_end(key)
        while len(shelf) > max(1, self._parts.rules.max_runs):
            shelf.popitem(last=False)


def _within(home: Scope, scope: Scope) -> bool:
    """Whether a workspace belongs to a scope; one that names nobody may belong to anybody of its tenant."""
    return (
        home.tenant == scope.tenant
        and (scope.user is None or home.user in {None, scope.user})
        and (scope.conversation is None or home.conversation == scope.conversation)
    )


def _shown_calls(occasion: Occasion) -> Iterator[str]:
    """The calls whose results the window shows by itself: of the running turn, and whole or loaded ones lately."""
    view = occasion.view
    if view.open_turn is not None:
        yield from (step.call_id for step in view.open_turn.steps)
    for turn in view.turns[-occasion.recent_turns :]:
        for number, step in enumerate(turn.steps):
            if step.whole or (turn.id, number) in occasion.pages:
                yield step.call_id
