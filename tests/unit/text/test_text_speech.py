"""Who says something and whether it only asks; questions in the first person and as statements."""

import pytest

from pagefile.text.speech import in_first_person, named, said_terms, speech
from pagefile.text.words import terms


@pytest.mark.parametrize(
    ("text", "speaker", "asks"),
    [
        ("Caroline: I went to a support group", "caroline", False),
        ("Mary Ann: Where to?", "mary ann", True),
        ("李雷：去哪里？", "李雷", True),
        ("I said: go", "i said", False),
        ("http://example.org/a", None, False),
        ("12:30 is fine", None, False),
        ("Is it?  ", None, True),
        ("There was a question? Yes.", None, False),
        ("这是一个比较长的句子，里面有一个冒号：但不是名字", None, False),
        ("", None, False),
    ],
)
def test_marks_say_who_speaks_and_who_asks(text: str, speaker: str | None, asks: bool):
    """They travel among the terms, through spaces between them, and leave the words as they are."""
    said = speech(" ".join(said_terms(text)))
    assert (speaker, asks) == (said.speaker, said.asks)
    assert " ".join(terms(text)) == said.words


def test_a_long_name_is_none():
    """What is before a colon may be a sentence."""
    assert speech(" ".join(said_terms("Considerations everybody shouldremember: buy milk"))).speaker is None


def test_names_in_a_question():
    """With a capital, as a word of their own; Chinese ones anywhere."""
    names = {"mia", "mary ann", "李雷", "will"}
    assert {"mia"} == named("What did Mia's sister say?", names)
    assert {"mary ann"} == named("Where did Mary Ann go?", names)
    assert {"李雷"} == named("上周李雷去了哪里？", names)
    assert set() == named("Will she, will mia, Miami?", {"mia"})


def test_a_question_in_the_first_person():
    """As the named would ask it."""
    assert "What did I paint for my sister?" == in_first_person(
        "What did Mia paint for Mia's sister?", {"mia"}
    )
    assert "我去了哪里？" == in_first_person("李雷去了哪里？", {"李雷"})
    assert "What did Tom do?" == in_first_person("What did Tom do?", {"mia"})
    assert "Where did I go?" == in_first_person("Where did Mary Ann go?", {"mary", "mary ann"})
