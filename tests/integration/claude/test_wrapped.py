"""Claude Code itself, wrapped: two runs, the second of which remembers the first."""

import pytest

from tests.heavy import heavy, is_there

if is_there("claude"):
    from .remembering import recorded

pytestmark = [heavy("claude"), pytest.mark.slow]


def test_claude_code_remembers_over_two_runs():
    """Bulky output reaches it as a placeholder, and after `unwrap` it knows no more than before."""
    _, paged, remembered, unwrapped = recorded()
    assert paged.strip().endswith("A placeholder came.")
    assert remembered.strip().endswith("It is 5544.")
    assert unwrapped.strip().endswith("I do not know.")
