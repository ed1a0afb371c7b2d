"""Checkpoints lose nothing, whatever happens in whatever order."""

import tempfile

import anyio
from hypothesis import given, settings

from .checkpointing import ACTIONS, Play


@settings(max_examples=25, deadline=None)
@given(ACTIONS)
def test_covered_and_window_and_segment_are_every_completed_turn(actions):
    """On SQLite, with two processes that checkpoint at the same time and crash."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(Play(f"sqlite:///{folder}/agent.db").run, actions)
