"""Answers that are larger than any model writes."""

from time import process_time

import pytest

from pagefile.gateway import ADAPTERS, replies
from pagefile.gateway.sse import EventSplitter
from tests.gateway.behind import behind
from tests.gateway.scripts import QUESTION, asked, said
from tests.gateway.upstream import Said


def test_an_event_in_many_pieces_takes_as_long_as_its_bytes():
    def seconds(pieces):
        splitter, began = EventSplitter(), process_time()
        for _ in range(pieces):
            splitter.feed(b"A" * 500)
        return process_time() - began

    assert seconds(4_000) < 40 * max(seconds(250), 0.001)


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_the_end_of_an_event_may_arrive_in_pieces(end):
    whole = b"data: 1" + end + b"data: 2" + end
    for size in range(1, len(whole)):
        splitter = EventSplitter()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        events = [event for piece in pieces for event in splitter.feed(piece)]
        assert (["1", "2"], b"") == ([event.data for event in events], splitter.rest())


@pytest.mark.parametrize("path", list(ADAPTERS))
def test_an_event_without_end_passes_and_is_not_held(monkeypatch, path):
    monkeypatch.setattr(replies, "MOST_BYTES", 1_000)
    reply = ADAPTERS[path].reply(frozenset())
    pieces = [b'data: {"x":"', *[b"A" * 300] * 9, b'"}\n\n']
    passed = [reply.feed(piece, events=True) for piece in pieces]
    assert b"".join(pieces) == b"".join(passed)
    assert passed[-1] == pieces[-1]
    assert reply.end_round().stop is None


def test_an_answer_that_is_too_large_passes_unrecorded(tmp_path, monkeypatch):
    monkeypatch.setattr(replies, "MOST_BYTES", 100_000)
    large = "word " * 200_000
    with behind(lambda _: Said(large), tmp_path) as here:
        assert large == said(asked(here.openai(), QUESTION))
        ((_, answer, status),) = here.talks()[0]
        assert (True, "aborted") == (not answer, status)
