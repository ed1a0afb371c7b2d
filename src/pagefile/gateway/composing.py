"""The request as the model gets it: the client's own messages, chosen by the window, with memory beside the question."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pagefile.gateway.adapter import Adapter, Talk
from pagefile.gateway.exchanges import Exchange, Json, base_key
from pagefile.tiers.page_in import LOADING_TOOLS
from pagefile.window.candidates import TURNS, Block, ShownTurn
from pagefile.window.receipt import Window

#: Sections of memory that say from which page something comes, and how to load the rest.
NAMING_PAGES: frozenset[Block] = frozenset({"loaded", "chunks"})


@dataclass(frozen=True, slots=True)
class Added:
    """What memory adds to a request."""

    #: After the client's instructions: how to load results, what must never be forgotten, the summary.
    system: str = ""
    #: In front of the user's message.
    memory: str = ""
    #: The same where the provider holds the history, and gets nothing else of ours.
    alone: str = ""
    #: Whether any of it is memory: the day alone is not.
    remembers: bool = False

    @classmethod
    def of(cls, window: Window) -> "Added":
        parts = replace(window.parts, instructions="")
        undated = replace(parts, today="")
        return cls(
            parts.system, parts.beside, parts.dated_memory.text, bool(undated.system or undated.beside)
        )


@dataclass(frozen=True, slots=True)
class Composition:
    adapter: Adapter
    body: Json
    talk: Talk
    window: Window
    added: Added
    #: Whether the model can load what a placeholder stands for.
    redeemable: bool
    #: Whether the request offers the tools that do so.
    offered: bool
    #: Whether earlier turns come from the log, because the client has none.
    from_log: bool = False

    def composed(self) -> tuple[Json, bool]:
        """The request's body, and whether memory took part: something was added, left out or replaced by a placeholder."""
        adapter, body = self.adapter, self.body
        *earlier, current = self.talk.exchanges
        groups = self._earlier(earlier)
        shown = self.window.parts.current
        running = (
            self._as_shown(current.rest, shown) if shown is not None and self.redeemable else current.rest
        )
        first, *others = current.asked
        asked = adapter.with_memory(first, self.added.memory) if self.added.memory else first
        messages = [*self.talk.preamble, *groups, asked, *others, *running]
        body = adapter.with_messages(body, messages)
        body = adapter.with_mark(body, len(self.talk.preamble) + len(groups)) if self.added.memory else body
        body = adapter.with_system(body, self.added.system) if self.added.system else body
        if self.offered:
            body = adapter.with_tools(body, self.window.language)
        as_sent = [message for exchange in earlier for message in exchange.messages]
        remembers = self.added.remembers or groups != as_sent or list(running) != list(current.rest)
        return body, remembers

    def _earlier(self, earlier: Sequence[Exchange]) -> list[Json]:
        """Earlier exchanges, from the first that the window shows. One that is in no log passes as the client wrote it."""
        parts = self.window.parts
        if self.from_log:
            return self.adapter.rendered(parts.turns, parts.blobs)
        by_key = {base_key(turn.turn_id): turn for turn in parts.turns}
        reached, messages = self._has_all(by_key), list[Json]()
        for exchange in earlier:
            shown = by_key.get(exchange.key)
            reached = reached or shown is not None
            if reached:
                messages += exchange.messages if shown is None else self._shown(exchange, shown)
        return messages

    def _has_all(self, shown: Collection[str]) -> bool:
        """Whether the window shows everything of the log, or has lost all of it: then nothing of the client's history is left out."""
        receipt = self.window.receipt
        dropped = self.window.mode != "FULL_HISTORY" or any(one.block in TURNS for one in receipt.dropped)
        return not dropped or bool(receipt.degraded and not shown)

    def _shown(self, exchange: Exchange, shown: ShownTurn) -> Sequence[Json]:
        if not self.redeemable:
            return exchange.messages
        if shown.form == "slim" and exchange.rest and self.adapter.is_final(exchange.rest[-1:], None):
            return *exchange.asked, exchange.rest[-1]
        return *exchange.asked, *self._as_shown(exchange.rest, shown)

    def _as_shown(self, messages: Sequence[Json], shown: ShownTurn) -> list[Json]:
        """The messages with their tool results as the window shows them. Some models use one id for several calls."""
        texts: dict[str, list[str]] = {}
        for _, step in sorted(shown.steps.items()):
            # What the model loaded stays as it was loaded: it would be loaded again, and again.
            if step.tool in LOADING_TOOLS:
                continue
            texts.setdefault(step.call_id, []).append(step.result)
        changed: list[Json] = []
        for message in messages:
            ids = list(self.adapter.results(message))
            mine = {name: texts[name].pop(0) for name in ids if texts.get(name)}
            changed.append(self.adapter.with_results(message, mine) if mine else message)
        return changed
