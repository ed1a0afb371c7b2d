"""Each prompt brings what the session was not told yet, within the characters that Claude Code takes."""

from hypothesis import given
from hypothesis import strategies as st

from pagefile import Memory
from pagefile.window.parts import MemoryPart
from tests.heavy import heavy, is_there

if is_there("claude"):
    from pagefile.integrations.claude_code.hooks import unsaid

pytestmark = heavy("claude")


def block(facts, episodes=()):
    sections = {"facts": tuple(facts), "episodes": tuple(episodes)}
    return MemoryPart({name: lines for name, lines in sections.items() if lines}, "zh")


def test_what_was_said_is_not_said_again():
    """The second time only the new fact comes, without the note; with nothing new, nothing comes."""
    said = set()
    assert unsaid(block(["- 茶", "- 猫"]), said, 1000) == block(["- 茶", "- 猫"]).text
    assert unsaid(block(["- 猫", "- 茶"]), said, 1000) == ""
    again = unsaid(block(["- 狗", "- 茶"], ["- [2026-05-01] 导演"]), said, 1000)
    assert again.splitlines()[1:-1] == [
        "<facts>",
        "- 狗",
        "</facts>",
        "<episodes>",
        "【相关历史】",
        "- [2026-05-01] 导演",
        "</episodes>",
    ]
    assert unsaid(MemoryPart(), said, 1000) == ""


def test_what_does_not_fit_is_said_another_time():
    """A line that found no room counts as unsaid."""
    said = set()
    long, short = "- " + "长" * 50, "- " + "短" * 10
    room = len(block([long]).text)
    assert "短" not in unsaid(block([long, short]), said, room)
    assert "短" in unsaid(block([long, short]), said, room)


def test_what_is_new_of_a_day_comes_under_that_day():
    """Turns are told under their days: a day that was told before is told again with what is new of it."""
    said = set()
    assert "2026-05-01\n- 导演" in unsaid(block([], ["2026-05-01\n- 导演"]), said, 1000)
    again = unsaid(block([], ["2026-04-30\n- 茶", "2026-05-01\n- 导演", "- 主演"]), said, 1000)
    assert "2026-04-30\n- 茶\n2026-05-01\n- 主演" in again
    assert unsaid(block([], ["2026-05-01\n- 主演"]), said, 1000) == ""


lines = st.lists(
    st.text("ab<>/汉", min_size=1, max_size=30).map(lambda text: f"- {text}"), unique=True, max_size=12
)


@given(st.lists(st.tuples(lines, lines), max_size=6), st.integers(60, 400))
def test_never_twice_and_never_too_much(rounds, most):
    """Whatever comes in whatever order: no line twice, never more than the limit, every tag closed."""
    said, told = set(), []
    for facts, episodes in rounds:
        text = unsaid(block(facts, episodes), said, most)
        assert len(text) <= most
        told += [line for line in text.splitlines() if line.startswith("- ")]
        for name in ("facts", "episodes", "memory"):
            assert text.count(f"<{name}>") == text.count(f"</{name}>") <= 1
    assert len(told) == len(set(told))


async def test_the_day_is_said_once_a_day():
    """The system text is the client's own here: the day comes with the first prompt of a day."""
    async with Memory.open("memory://", embedder="none") as memory:
        window = await memory.conversation("c").context("Hello")
    said: set[str] = set()
    assert window.parts.today in unsaid(window.parts.dated_memory, said, 1000)
    assert "" == unsaid(window.parts.dated_memory, said, 1000)
