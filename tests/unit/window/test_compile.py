"""The window's rules, one by one, on hand-made candidates."""

import pytest

from pagefile.errors import BudgetError
from pagefile.shapes.steps import ShownStep
from pagefile.window.budget import Budget
from pagefile.window.candidates import Candidate, Form, ShownTurn
from pagefile.window.compile import Compiled, Layout, compile_window


def count(text: str) -> int:
    """One token a word: easy to add up by hand."""
    return len(text.split())


def turn(seq: int, tokens: int = 10, *, block: str = "older", slim: int | None = None) -> Candidate:
    forms = [Form(tokens, ShownTurn(f"t{seq}", "full", f"question {seq}", f"answer {seq}"))]
    if slim is not None:
        forms.append(Form(slim, ShownTurn(f"t{seq}", "slim", f"question {seq}"), name="slim"))
    return Candidate(f"t{seq}", block, tuple(forms), seq)


def current(tokens: int = 5) -> Candidate:
    return Candidate("now", "current", (Form(tokens, ShownTurn("now", "current", "now?")),))


def step_form(tokens: int, number: int, result: str, name: str = "full") -> Form:
    steps = {number: ShownStep("search", {}, f"c{number}", result)}
    return Form(tokens, ShownTurn("now", "current", None, steps=steps), name=name)


def entry(name: str, block: str, text: str, position: int = 0) -> Candidate:
    return Candidate(name, block, (Form(count(text), text=text),), position)


def kept(compiled: Compiled) -> set[str]:
    return {verdict.id for verdict in compiled.verdicts if verdict.kept}


def reason(compiled: Compiled, name: str) -> str:
    return next(verdict.reason for verdict in compiled.verdicts if verdict.id == name)


def test_everything_is_in_order_when_it_fits():
    """System, turns oldest first, memory beside the question, the question, its tool results."""
    step = Candidate("s0", "steps", (step_form(9, 0, "r"),))
    given = [
        entry("i", "instructions", "be kind"),
        entry("sum", "summary", "they talked"),
        turn(2, block="recent"),
        turn(1),
        entry("f", "facts", "- likes tea"),
        current(),
        step,
    ]
    compiled = compile_window(given, Budget(1000), count)
    assert [message["role"] for message in compiled.messages] == [
        "system", "user", "assistant", "user", "assistant", "user", "user", "assistant", "tool",
    ]  # fmt: skip
    assert compiled.messages[0]["content"] == "be kind\n\n<summary>\nthey talked\n</summary>"
    assert compiled.messages[1]["content"] == "question 1"
    assert "- likes tea" in str(compiled.messages[5]["content"])
    assert compiled.messages[6]["content"] == "now?"
    assert compiled.prefix_messages == 5


def test_head_placement_puts_memory_into_the_leading_system_message():
    """`placement="head"` is the documents' literal form."""
    given = [entry("i", "instructions", "be kind"), entry("f", "facts", "- likes tea"), current()]
    compiled = compile_window(given, Budget(1000), count, Layout(placement="head"))
    assert [message["role"] for message in compiled.messages] == ["system", "user"]
    assert str(compiled.messages[0]["content"]).startswith("be kind\n\n<memory>\n")


def test_nothing_but_the_question_gives_one_message():
    """A new conversation has no system message and no memory block."""
    assert compile_window([current()], Budget(100), count).messages == [{"role": "user", "content": "now?"}]


def test_instructions_and_the_current_message_are_never_cut():
    """When they alone are too large there is an error that says what to do."""
    with pytest.raises(BudgetError, match="raise window_tokens"):
        compile_window([current(50)], Budget(40), count)


def test_seams_of_joined_text_are_counted_too():
    """A counter for which joining costs extra never leads to a window over budget."""

    def stingy(text: str) -> int:
        return len(text.split()) + 30 * text.count("\n\n")

    given = [entry("i", "instructions", "a b"), entry("s", "summary", "c"), current()]
    compiled = compile_window(given, Budget(40), stingy)
    assert compiled.tokens <= 40
    assert "s" not in kept(compiled)


def test_required_text_that_only_breaks_the_budget_when_joined_is_an_error():
    """The exact count of the joined system text decides."""

    def stingy(text: str) -> int:
        return len(text.split()) + 30 * text.count("\n\n") * (not text.startswith("\n"))

    given = [entry("i", "instructions", "a b"), entry("s", "safety", "c"), current()]
    with pytest.raises(BudgetError, match="need"):
        compile_window(given, Budget(40), stingy)


def test_turns_are_kept_from_the_newest_back_and_stop_at_the_first_that_does_not_fit():
    """No hole in a conversation: what is behind a turn that was left out is left out too."""
    given = [turn(8), turn(9, tokens=500), turn(10), turn(11, block="recent"), current()]
    compiled = compile_window(given, Budget(100), count)
    assert kept(compiled) == {"now", "t11"}
    assert reason(compiled, "t9") == "over budget"
    assert reason(compiled, "t8") == "behind a newer turn that did not fit"
    assert "blocks of 8" in reason(compiled, "t10")


def test_the_history_begins_at_a_multiple_of_eight_once_turns_are_left_out():
    """So that the prompt's beginning stays the same from call to call."""
    given = [turn(seq) for seq in range(1, 41)] + [current()]
    assert (
        min(v.id for v in compile_window(given, Budget(8 + 205), count).verdicts if v.kept and v.id != "now")
        == "t24"
    )


def test_recent_turns_are_not_given_up_for_the_sake_of_blocks():
    """Blocks of eight only concern older turns."""
    given = [turn(seq, block="recent") for seq in range(1, 6)] + [current()]
    assert {"t3", "t4", "t5"} <= kept(compile_window(given, Budget(8 + 32), count))


def test_a_turn_takes_its_slim_form_when_the_full_one_does_not_fit():
    """A turn without its tool results is better than no turn."""
    given = [turn(1, tokens=500, block="recent", slim=7), current()]
    compiled = compile_window(given, Budget(40), count)
    assert reason(compiled, "t1") == "fits as slim"
    assert compiled.wanted_tokens == compiled.tokens + 493


def test_facts_have_a_budget_of_their_own():
    """Plenty of room in the window does not let facts take more than theirs; the receipt says so."""
    given = [entry("f1", "facts", "- one two"), entry("f2", "facts", "- three four", 1), current()]
    compiled = compile_window(given, Budget(1000, {"facts": 4}), count)
    assert kept(compiled) == {"now", "f1"}
    assert reason(compiled, "f2") == "over its own budget of 4 tokens"


def test_corrections_come_before_the_summary_and_facts():
    """A correction survives a budget that nothing else survives."""
    note = compile_window([entry("c", "corrections", "- not Monday"), current()], Budget(1000), count).tokens
    given = [
        entry("f", "facts", "- x"),
        entry("s", "summary", "y " * 50),
        entry("c", "corrections", "- not Monday"),
        current(),
    ]
    assert kept(compile_window(given, Budget(note + 2), count)) == {"now", "c"}


def crowded(scale):
    """Recent turns, a summary and recalled turns, each of which would fill a good part of a window."""
    turns = [turn(seq, 30 * scale, block="recent") for seq in range(1, 11)]
    recalled = [entry(f"e{n}", "episodes", "word " * 20 * scale, n)._replace(value=0.9) for n in range(6)]
    return [current(), entry("s", "summary", "word " * 40 * scale), *turns, *recalled]


def test_the_summary_comes_before_single_memories():
    """Recent turns leave room for what is recalled; the summary of what they follow takes it first."""
    compiled = compile_window(crowded(10), Budget(2600), count)
    assert {"s", "t10"} <= kept(compiled)
    assert compiled.tokens <= 2600


def test_in_a_small_window_the_summary_takes_what_is_left():
    """Less than 1,500 tokens are for the question and what was just said."""
    compiled = compile_window(crowded(1), Budget(260), count)
    assert {"t10", "e0", "e1", "e2"} <= kept(compiled)
    assert "s" not in kept(compiled)


def test_turns_that_were_not_read_are_named_in_the_receipt():
    """The receipt speaks of them, with their tokens, and the ratio counts them."""
    unread = Candidate("90 older turns", "older", (), -1, unread_tokens=900)
    compiled = compile_window([unread, turn(91), current()], Budget(100), count)
    assert reason(compiled, "90 older turns") == "not read: older than what fits"
    assert compiled.wanted_tokens == compiled.tokens + 900 + 10  # turn 91 left with its block of eight


def test_steps_all_stay_in_their_shortest_form_before_the_newest_gets_its_full_one():
    """An agent that fetched three results keeps all three at hand."""

    def step(number: int) -> Candidate:
        forms = (
            step_form(50, number, "long"),
            step_form(5, number, "short", name="placeholder"),
        )
        return Candidate(f"s{number}", "steps", forms, number)

    compiled = compile_window([step(0), step(1), step(2), current()], Budget(8 + 70), count)
    forms = {verdict.id: verdict.form for verdict in compiled.verdicts}
    assert forms == {"now": "full", "s0": "placeholder", "s1": "placeholder", "s2": "full"}


def test_steps_that_fit_in_no_form_are_left_out_oldest_first():
    """A call never stands without its result: the pair goes as a whole."""
    steps = [Candidate(f"s{n}", "steps", (step_form(30, n, "r"),), n) for n in range(3)]
    compiled = compile_window([*steps, current()], Budget(8 + 65), count)
    assert kept(compiled) == {"now", "s1", "s2"}
    assert reason(compiled, "s0") == "over budget"


def test_tokens_are_the_verdicts_and_the_framing():
    """Nothing in the sum is unexplained."""
    given = [entry("i", "instructions", "be kind"), turn(1), entry("f", "facts", "- tea"), current()]
    compiled = compile_window(given, Budget(1000), count)
    assert compiled.tokens == compiled.framing + sum(v.tokens for v in compiled.verdicts if v.kept)


def test_a_window_without_room_is_refused():
    """A budget of nothing is a mistake, not a window."""
    with pytest.raises(BudgetError, match="window_tokens is 0"):
        Budget(0)


@pytest.mark.parametrize(
    ("worth", "window", "turns"),
    [
        # 100 tokens each: .02 is worth its room where nothing leaves for it, .04 is worth a turn, and in a small window both are.
        (0.02, 2000, 6),
        (0.04, 2000, 5),
        (0.02, 1400, 3),
    ],
)
def test_turns_leave_for_what_is_worth_more_than_room(worth, window, turns):
    """The beginning of the prompt moves when a turn leaves, and caches know the beginning."""
    pieces = [entry(f"e{n}", "episodes", "word " * 100, n)._replace(value=worth) for n in range(5)]
    shown = [turn(n, 260, block="recent") for n in range(1, 7)]
    compiled = compile_window([*pieces, *shown, current()], Budget(window), count)
    assert len(kept(compiled) & {one.id for one in shown}) == turns
