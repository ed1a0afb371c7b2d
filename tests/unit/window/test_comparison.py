"""Two windows side by side."""

from pagefile.text.tokens import REPLY_OVERHEAD
from pagefile.window.budget import Budget
from pagefile.window.candidates import Candidate, Form, ShownTurn
from pagefile.window.comparison import bill, compared, message_tokens, shared_messages, text_diff
from pagefile.window.compile import compile_window
from pagefile.window.receipt import Receipt, Window


def count(text):
    return len(text.split())


def turn(number, words, *, block="recent"):
    """A turn of this many words, which can also be shown in two."""
    full = ShownTurn(f"t{number}", "full", f"turn {number} " + "word " * (words - 2))
    short = ShownTurn(f"t{number}", "slim", f"turn {number}")
    forms = (Form(words + 4, full), Form(6, short, name="slim"))
    return Candidate(f"t{number}", block, forms, number)


def question(text="what now"):
    return Candidate("current", "current", (Form(4 + count(text), ShownTurn("", "current", text)),))


def fact(name, rank=0):
    return Candidate(f"fact:{name}", "facts", (Form(2 + count(name), text=f"- {name}"),), rank)


def window(candidates, tokens=1000):
    compiled = compile_window(candidates, Budget(tokens), count)
    receipt = Receipt(compiled.verdicts, tokens, compiled.framing, "words", exact=True)
    return Window(
        compiled.parts, compiled.messages, compiled.tokens, tokens, 0.0, "FULL_HISTORY", False, compiled.prefix_hash,
        compiled.prefix_messages, receipt,
    )  # fmt: skip


def changes(before, after):
    return {one.id: one.change for one in compared(before, after).changed}


def test_a_window_does_not_differ_from_itself():
    """No change, no line, no token."""
    one = window([turn(1, 20), question(), fact("likes tea")])
    found = compared(one, one)
    assert (found.same, found.changed, found.diff, found.difference) == (True, (), (), 0)
    assert {change.change for change in found.candidates} == {"same"}


def test_what_entered_left_and_changed_is_named():
    """A fact more, a turn less, a turn that is shown shorter."""
    before = window([turn(1, 20), turn(2, 20), question(), fact("likes tea")])
    after = window([turn(2, 120), question(), fact("likes tea"), fact("hates rain", 1)], tokens=100)
    assert changes(before, after) == {"t1": "left", "t2": "form", "fact:hates rain": "entered"}
    assert [one.change for one in compared(before, after).candidates][-2:] == ["same", "same"]


def test_a_turn_that_is_no_longer_recent_is_not_another_turn():
    """Its tokens are counted in another block; its text is the same."""
    before, after = window([turn(1, 9), question()]), window([turn(1, 9, block="older"), question()])
    found = compared(before, after)
    assert ({one.id: one.change for one in found.changed}, found.same) == ({"t1": "block"}, True)


def test_what_was_offered_and_never_kept_is_the_same():
    """A candidate that was dropped in both windows, or dropped here and not offered there, changed nothing."""
    large = Candidate("large", "older", (Form(5000, ShownTurn("large", "full", "x")),), 0)
    assert changes(window([question(), large]), window([question()])) == {}
    assert changes(window([question(), large]), window([question(), large])) == {}


def test_the_differences_of_the_blocks_add_up():
    """With framing, to the difference of the windows."""
    before = window([turn(1, 20), turn(2, 20), question(), fact("likes tea")])
    after = window([turn(2, 20), question("and then")], tokens=300)
    found = compared(before, after)
    assert sum(block.difference for block in found.blocks) == found.difference == after.tokens - before.tokens
    assert sum(one.difference for one in found.candidates) == found.difference - found.blocks[-1].difference


def test_a_bill_counts_each_block():
    """Kept tokens, and how many candidates were kept and left out."""
    one = window([turn(1, 90, block="older"), turn(2, 20), question(), fact("likes tea")], tokens=50)
    told = {block.block: (block.tokens, block.kept, block.dropped) for block in bill(one.receipt)}
    assert told["recent"] == (24, 1, 0)
    assert told["current"] == (6, 1, 0)
    assert sum(block.tokens for block in bill(one.receipt)) + one.receipt.framing == one.tokens
    assert sum(block.kept + block.dropped for block in bill(one.receipt)) == len(one.receipt)


def test_messages_cost_what_the_window_says():
    """The sum over the messages, and what a reply is primed with."""
    one = window([turn(1, 20), turn(2, 9), question(), fact("likes tea")])
    assert sum(message_tokens(message, count) for message in one.messages) + REPLY_OVERHEAD == one.tokens


def test_tool_calls_cost_their_name_and_arguments():
    function = {"name": "search", "arguments": '{"q": "a b"}'}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}
    assert message_tokens(call, count) == 4 + 1 + 3


def test_what_both_begin_with_is_shared():
    """Up to the first message that differs, and no further."""
    said = [{"role": "user", "content": str(number)} for number in range(4)]
    assert shared_messages(said, said) == 4
    assert shared_messages(said, said[:2]) == 2
    assert shared_messages(said, [said[0], said[2], said[2], said[3]]) == 1
    assert shared_messages([], said) == 0


def test_lines_that_differ_are_shown_with_a_few_around_them():
    """Line by line inside a message; what is far away is counted."""
    before = [{"role": "system", "content": "\n".join(f"line {n}" for n in range(20))}]
    after = [{"role": "system", "content": "\n".join(f"line {n}" for n in range(20) if n != 10) + "\n末行"}]
    lines = [(line.sign, line.text) for line in text_diff(before, after)]
    assert lines == [
        ("…", "8"), ("=", "line 7"), ("=", "line 8"), ("=", "line 9"), ("-", "line 10"), ("=", "line 11"),
        ("=", "line 12"), ("=", "line 13"), ("…", "3"), ("=", "line 17"), ("=", "line 18"), ("=", "line 19"),
        ("+", "末行"),
    ]  # fmt: skip


def test_every_line_of_either_text_is_told_of():
    """What is taken away and what is added, calls of tools too."""
    function = {"name": "search", "arguments": '{"q":1}'}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}
    lines = [(line.sign, line.text) for line in text_diff([{"role": "user", "content": "a"}], [call])]
    assert sorted(lines) == [("+", "[assistant]"), ("+", 'search {"q":1}'), ("-", "[user]"), ("-", "a")]
