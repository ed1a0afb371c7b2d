"""What looking at rows as they lie there has in common, in every database."""

from collections.abc import Sequence
from typing import Any

from pagefile.ports import Counters, Stray
from pagefile.records import Checkpoint
from pagefile.stores.encoding import to_json

#: What is not derived is never dropped: a session is somebody's own, and a text may be all that is left of a page.
_KEPT = frozenset({"session", "text"})


def droppable(strays: Sequence[Stray]) -> list[Stray]:
    """Those that can be made again, or belong to nothing that ever will."""
    return [stray for stray in strays if stray.kind not in _KEPT]


def told(stray: Stray) -> dict[str, Any]:
    """A stray as the parameters of the statement that drops it."""
    return {
        "tenant": stray.tenant,
        "conversation": stray.conversation,
        "seq": stray.seq,
        "name": stray.name,
    }


def counter_values(counters: Counters) -> dict[str, Any]:
    """The parameters of the statement `audit_recount`, without times."""
    return {
        "last_seq": counters.last_seq,
        "reset_seq": counters.reset_seq,
        "covered": counters.covered_through_seq,
        "turns": counters.turns,
        "live_turns": counters.live_turns,
        "live_tokens": counters.live_tokens,
        "checkpoint": counters.checkpoint_id,
        "versions": counters.checkpoint_version,
    }


def summary_values(checkpoint: Checkpoint) -> dict[str, Any]:
    """The parameters of the statement that writes the summary in force, without its time."""
    return {
        "id": checkpoint.id,
        "summary": checkpoint.summary,
        "seq": checkpoint.seq,
        "version": checkpoint.version,
        "covered": checkpoint.covered_through_seq,
        "covered_turns": checkpoint.covered_turns,
        "anchors": to_json(checkpoint.anchors),
        "archive_refs": to_json(checkpoint.archive_refs),
        "tokens": checkpoint.tokens,
        "counter": checkpoint.counter,
    }
