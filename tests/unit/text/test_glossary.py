"""What words are called in the other language: a question leads to the piece that answers, without an embedder."""

import json

import pytest

from pagefile.text.glossary import counterparts
from pagefile.text.piece_ranking import RankedPage
from pagefile.text.tables import table
from pagefile.text.words import terms

FIELDS = table("pagefile.text", "glossary")["terms"]
LOG = "\n".join(
    f"10:0{n % 6}:00 gateway answered request {n} for the dashboard" for n in range(60)
).splitlines()
NOTES = [f"第{n}次巡检，仓位整齐，交接正常。" for n in range(60)]


def best_piece(text: str, query: str) -> str:
    page = RankedPage(text, query)
    assert page.answers
    return page.pieces[page.places(1)[0]].text


@pytest.mark.parametrize("field", FIELDS)
def test_a_line_has_chinese_words_and_english_words(field: str):
    """A word on the wrong side would stand for itself."""
    for line in FIELDS[field].strip().splitlines():
        chinese, mark, english = line.partition(" = ")
        assert mark
        assert chinese
        assert not any(character.isascii() for character in chinese.replace(" ", ""))
        assert english
        assert english.isascii()


def test_every_chinese_word_is_one_that_a_question_has():
    """The segmenter gives it as a term, or nothing finds its line."""
    words = [
        word
        for field in FIELDS.values()
        for line in field.strip().splitlines()
        for word in line.partition(" = ")[0].split()
    ]
    assert [] == [word for word in words if word not in terms(word)]


def test_counterparts_are_terms_of_both_languages():
    """English words as an index stores them, stemmed; what the glossary lacks is left out."""
    assert {"rollback", "revert"} <= counterparts(terms("哪次提交触发了回滚"))["回滚"]
    assert "仲裁" in counterparts(terms("Where does arbitration take place?"))["arbitr"]
    assert {} == counterparts(["qwzx", "2026"])


@pytest.mark.parametrize(
    ("lines", "answer", "question"),
    [
        (LOG, "10:07:00 certificate of the mail relay expired", "哪个证书过期了？"),
        (LOG, "10:07:00 disk of host edge-3 is full", "哪台主机的磁盘满了"),
        (NOTES, "违约金按合同总额的千分之三计算。", "How is the penalty calculated?"),
        (NOTES, "东侧电梯故障，已报修。", "which elevator has a fault?"),
    ],
)
def test_a_question_in_the_other_language_leads_to_the_piece_that_answers(
    lines: list[str], answer: str, question: str
):
    """Nothing in it is a word of the question, and it does not stand out where it is one of a few odd lines."""
    odd = [f"zebra quilt {n} walnut" if lines is LOG else f"斑马与核桃{n}" for n in range(3)]
    text = "\n".join([*lines[:20], odd[0], *lines[20:35], answer, *lines[35:50], *odd[1:], *lines[50:]])
    assert answer in best_piece(text, question)


def test_a_word_that_the_page_has_is_not_translated():
    """In a page of both languages, the word of the question leads, not what it is called elsewhere."""
    rows = [{"name": f"item {n}", "note": "ok"} for n in range(40)]
    rows[7]["note"] = "rollback"
    rows[30]["note"] = "回滚"
    assert "回滚" in best_piece(json.dumps(rows, ensure_ascii=False), "哪个回滚了？")
