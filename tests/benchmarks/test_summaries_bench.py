"""`pagefile bench summaries` judges fairly: what holds, what no longer does, and what is told as corrected."""

import json
from dataclasses import replace

from typer.testing import CliRunner

from benchmarks import summaries
from benchmarks.dialogues import Dialogue, Overruled, dialogues, says
from pagefile.cli.app import app

RENT = Dialogue(
    "rent",
    "en",
    (("The rent is 850.", "Noted."), ("The rent is 890 now.", "Noted.")),
    ((("rent",), ("890", "eight hundred ninety")),),
    (Overruled((("rent",), ("850",)), ("890",)),),
    kept=False,
)


def test_what_holds_is_told_in_one_line():
    """Words from two lines tell nothing together."""
    assert [] == RENT.missing("User: the Rent is 890 now.")
    assert ["rent & 890|eight hundred ninety"] == RENT.missing("The rent was raised.\nIt has 890 rooms.")


def test_what_no_longer_holds_stands_unless_it_is_told_as_corrected():
    """In the same sentence or in the next one of the line."""
    assert ["rent & 850"] == RENT.stale("The rent is 850.\nThe rent is 890 now.")
    assert [] == RENT.stale("The rent is 890 now, not 850.")
    assert [] == RENT.stale("I said the rent was 850. It is 890.")
    assert [] == RENT.stale("The rent is 890 now.")


def test_what_no_longer_holds_misleads_if_nothing_after_it_corrects_it():
    """However far away; a correction before it does not help who reads on."""
    assert [] == RENT.misleading("The rent is 850.\nWe have a dog.\nThe rent is 890 now.")
    assert [] == RENT.misleading("The rent is 890 now, not 850.")
    assert ["rent & 850"] == RENT.misleading("The rent is 890 now.\nThe rent is 850.")
    assert ["rent & 850"] == RENT.misleading("The rent is 850.")
    assert [] == RENT.misleading("The rent is 890 now.")


def test_numbers_and_words_are_whole():
    """A number is no part of a longer one, and a word no end of another."""
    assert says("on October 3.", "October 3")
    assert not says("on October 31", "October 3")
    assert not says("1,850 euros", "850")
    assert not says("ten minutes", "nut")
    assert says("搬到4500了", "4500")


def test_the_set_is_whole():
    """Forty-one conversations in each language, of 20 to 60 turns; weights are fitted to all but thirteen."""
    for language in ("en", "zh"):
        some = [one for one in dialogues() if one.language == language]
        assert (41, 31, 13) == (len(some), sum(one.kept for one in some), sum(one.blind for one in some))
        assert all(20 <= len(one.turns) <= 60 for one in some)
    for one in dialogues():
        everything = "\n".join(f"{user}\n{answer}" for user, answer in one.turns)
        assert [] == one.missing(everything), one.name
        assert [gone.name for gone in one.gone] == one.stale(everything), one.name


def test_the_command_judges(monkeypatch):
    """And prints figures by language, or everything as JSON."""
    monkeypatch.setattr(summaries, "dialogues", lambda: (RENT,))
    report = json.loads(CliRunner().invoke(app, ["bench", "summaries", "--json"]).stdout)
    assert [1, 1] == [one["holds"] for one in report["dialogues"]]
    shown = CliRunner().invoke(app, ["bench", "summaries", "--failing"]).stdout
    assert "16k, en, open" in shown


def test_conversations_of_one_name_are_kept_apart():
    """Another part may have one: neither summary tells the other's."""
    other = replace(RENT, part="_later", turns=(("Our dog is called Rex.", "Noted."),))
    report = summaries.run(judging=(RENT, other))
    assert ["user: Our dog is called Rex."] * 2 == [
        one.summary for one in report.made if one.dialogue is other
    ]
