"""What should be equal is compared by small functions that touch nothing."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from pagefile.engine.verification import Finding
from pagefile.engine.verification.checks import broken_chain, is_quoted, tiles, wrong_text
from pagefile.engine.verification.findings import ADVICE, MOST_FINDINGS, Tally
from pagefile.engine.verification.log_walk import LogWalk, compared
from pagefile.ports import Counters, KeptConversation, KeptEntry, KeptPage
from pagefile.records import Checkpoint, Reset, Revision, Scope, Step, Turn
from pagefile.testing.drafts import AT, CHAT, fact, page


def turn(seq, *, tokens=10, status="done", pages=(), assistant="a"):
    steps = tuple(Step("t", None, "r", f"c{uuid}", page=uuid) for uuid in pages)
    created = AT + timedelta(seconds=seq)
    return Turn(f"t{seq}", CHAT, seq, status, "u", assistant, steps, AT, created, 1, 1, tokens, "x")


def mark(seq, version, covered, turns, *, anchors=(), refs=(), summary="s"):
    created = AT + timedelta(seconds=seq)
    return Checkpoint(
        f"k{seq}", CHAT, seq, version, summary, covered, turns, created, 3, "x", tuple(anchors), tuple(refs)
    )


def walked(*entries):
    walk = LogWalk(CHAT, keeps_sums=False)
    found = []
    for entry in entries:
        kind = type(entry).__name__.lower()
        found += walk.take(
            KeptEntry(entry.id, entry.seq, kind, entry, writer=CHAT.user if kind == "turn" else "system")
        )
    return walk, [finding.kind for finding in found]


def test_a_walk_counts_what_a_row_counts():
    """Turns since the reset, live ones behind the checkpoint; one without a word of its user takes a place and nothing else."""
    walk, found = walked(
        turn(1),
        mark(2, 1, 1, 1),
        Reset("r", CHAT, 3, AT + timedelta(seconds=3)),
        turn(4, tokens=5, assistant=None),
        turn(5, tokens=0, status="aborted"),
        turn(6, tokens=7),
        mark(7, 2, 4, 1),
        turn(8, tokens=11),
    )
    assert found == []
    assert walk.counters() == Counters(8, 3, 4, 3, 2, 18, "k7", 2, AT + timedelta(seconds=8))
    assert walk.covered_messages == 1
    assert compared(KeptConversation(CHAT, walk.counters(), {}, walk.checkpoint), walk) == []


@pytest.mark.parametrize(
    ("entries", "kinds"),
    [
        ([turn(1), turn(3)], ["log-gap"]),
        ([turn(2)], ["log-gap"]),
        ([turn(1), mark(2, 1, 2, 1)], ["checkpoint-range"]),
        ([turn(1), mark(2, 1, 1, 5)], ["checkpoint-range"]),
        ([turn(1), mark(2, 2, 1, 1)], ["checkpoint-range"]),
        ([turn(1), turn(2), mark(3, 1, 2, 2), mark(4, 2, 1, 1)], ["checkpoint-range"]),
        ([turn(1), Reset("r", CHAT, 2, AT + timedelta(seconds=2)), mark(3, 1, 1, 0)], ["checkpoint-range"]),
        ([turn(1), mark(2, 1, 1, 1, summary=" ")], ["checkpoint-summary"]),
        ([turn(1, pages=["p"]), mark(2, 1, 1, 1)], ["checkpoint-refs"]),
        ([turn(1), mark(2, 1, 1, 1, refs=["p"]), turn(3), mark(4, 2, 3, 2)], ["checkpoint-refs"]),
        ([turn(1), turn(2, pages=["p"]), mark(3, 1, 1, 1)], []),
        ([turn(1), mark(2, 1, 1, 1, anchors=["42"]), turn(3), mark(4, 2, 3, 2)], ["checkpoint-anchors"]),
        ([turn(1), turn(3), mark(4, 1, 3, 3)], ["log-gap"]),
        ([turn(1), replace(turn(2), created=AT)], ["log-order"]),
    ],
)
def test_what_is_wrong_with_a_log(entries, kinds):
    """Each of it once; behind a hole, ranges and counts are not told."""
    assert walked(*entries)[1] == kinds


def test_a_row_that_is_ahead_of_its_log_lost_turns():
    """One that lags behind is only wrong."""
    walk, _ = walked(turn(1))
    ahead = KeptConversation(CHAT, replace(walk.counters(), last_seq=3), {})
    (found,) = compared(ahead, walk)
    assert (found.level, found.kind, found.seq) == ("damage", "log-gap", 2)
    walk, _ = walked(turn(1))
    (found,) = compared(KeptConversation(CHAT, Counters(), {}), walk)
    assert (found.level, found.kind) == ("derived", "counters")
    assert "last_seq is 0, and should be 1" in found.what


@pytest.mark.parametrize(
    ("spans", "length", "whole"),
    [
        ((), 0, True),
        ((), 1, False),
        (((0, 3), (3, 5)), 5, True),
        (((0, 3), (4, 5)), 5, False),
        (((0, 3), (2, 5)), 5, False),
        (((1, 5),), 5, False),
        (((0, 5),), 6, False),
    ],
)
def test_passages_tile_a_text(spans, length, whole):
    """Joined, they are all of it."""
    assert tiles(spans, length) is whole


def test_a_text_is_held_against_its_length_and_its_hash():
    """A hash that is none of ours says nothing."""
    text = "the whole result"
    stored = page("p", text).page
    kept = KeptPage("t", "p", stored, None, hashlib.sha256(text.encode()).hexdigest(), 9)
    assert wrong_text(kept, stored, text) is None
    assert "characters" in (wrong_text(kept, stored, text + "!") or "")
    assert "SHA-256" in (wrong_text(kept, stored, text.upper()) or "")
    assert wrong_text(replace(kept, blob=None), replace(stored, content_hash="mine"), text.upper()) is None


def test_changes_of_facts_follow_from_one_another():
    """From the first to what is held; one that began before changes were noted may begin anywhere."""
    owner, first = Scope(CHAT.tenant, CHAT.user), fact("f")
    second, third = replace(first, confidence=0.5), replace(first, confidence=0.6)
    made = Revision(1, owner, AT, "stored", (None,), (first,))
    surer = Revision(2, owner, AT, "duplicate", (first,), (second,))
    assert list(broken_chain([second], [made, surer])) == []
    assert list(broken_chain([second], [surer])) == []
    assert list(broken_chain([first], [])) == []
    assert [key for key, _ in broken_chain([third], [made, surer])] == ["f"]
    assert [key for key, _ in broken_chain([], [made, surer])] == ["f"]
    hole = Revision(3, owner, AT, "duplicate", (third,), (third,))
    assert [key for key, _ in broken_chain([third], [made, hole])] == ["f"]


def test_a_quote_is_in_its_turn():
    """In the user's words, or in what is left of them without what others wrote."""
    said = replace(turn(1), user="我对青霉素过敏。")
    assert is_quoted("青霉素", said)
    assert not is_quoted("花生", said)


def test_a_broken_disk_does_not_fill_the_memory():
    """Findings beyond a thousand of a level are counted, and the worst are first."""
    tally = Tally()
    tally.add(Finding("note", "text", str(number)) for number in range(MOST_FINDINGS + 5))
    tally.add([Finding("derived", "terms", "x", mended=True), Finding("damage", "log-gap", "y")])
    report = tally.report(full=False)
    assert [one.level for one in report.findings[:3]] == ["damage", "derived", "note"]
    assert (report.left_out, report.notes, report.damage, report.mended) == (5, MOST_FINDINGS + 5, 1, 1)
    assert not report.whole
    assert all(advice.endswith((".", ")")) for advice in ADVICE.values())
