"""How a checkpoint appears in a window: its summary, the anchors the summary lost, and the pages it refers to."""

from collections.abc import Callable
from dataclasses import dataclass

from pagefile.records import Checkpoint
from pagefile.window.render import escape
from pagefile.window.wording import ZH, Wording

Count = Callable[[str], int]

#: Limits for anchors beside a summary, newest first: tokens, and the window divided by this.
ANCHOR_TOKENS = 300
ANCHOR_SHARE = 16
#: The number of pages named beside a summary, the newest ones.
PAGES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class ShownSummary:
    """The text for the window, and what became of the anchors."""

    text: str
    anchors: int
    in_summary: int
    beside: int

    @property
    def note(self) -> str:
        """The note for the receipt."""
        return f"{self.in_summary + self.beside} of {self.anchors} anchors survive, {self.beside} of them beside the summary"


def shown_summary(
    checkpoint: Checkpoint, count: Count, window_tokens: int, wording: Wording = ZH
) -> ShownSummary:
    """The summary, then what it does not say itself."""
    missing = [anchor for anchor in checkpoint.anchors if anchor not in checkpoint.summary]
    beside = _that_fit(missing, count, min(ANCHOR_TOKENS, window_tokens // ANCHOR_SHARE))
    lines = [wording.so_far + escape(checkpoint.summary)]
    if beside:
        lines.append(wording.anchors + escape("；".join(beside)))
    if checkpoint.archive_refs:
        lines.append(wording.pages + "、".join(checkpoint.archive_refs[-PAGES_SHOWN:]))
    total = len(checkpoint.anchors)
    return ShownSummary("\n".join(lines), total, total - len(missing), len(beside))


def _that_fit(missing: list[str], count: Count, room: int) -> list[str]:
    """The newest anchors within their budget, in the order in which they were said."""
    kept: list[str] = []
    for anchor in reversed(missing):
        room -= count(anchor) + 1
        if room < 0:
            break
        kept.append(anchor)
    return kept[::-1]
