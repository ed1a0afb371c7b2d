"""Words and sentences: index and query are cut by the same segmenter, in Chinese and English."""

import threading
import time

import pytest

from pagefile.text.sentences import cjk_share, is_cjk, language, sentences
from pagefile.text.words import MAX_TERM_CHARS, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Testing tests", ["test", "test"]),
        ("The dogs are running", ["dog", "run"]),
        ("John’s and Mary's books", ["john", "mari", "book"]),
        ("don't panic", ["panic"]),
        ("Straße CAFÉ ＦＵＬＬ", ["strass", "café", "full"]),
        ("C++ or C#", ["c++", "c", "c#", "c"]),
        ("Привет мир", ["привет", "мир"]),
        ("…!? 🎉", []),
        ("", []),
    ],
)
def test_english_words_are_folded_and_stemmed(text: str, expected: list[str]):
    """Case, width, endings and possessives do not matter; stop words and marks are left out."""
    assert expected == terms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ORD-2024_001", ["ord-2024_001", "ord", "2024", "001"]),
        ("/usr/local/bin/python3.11", ["usr/local/bin/python3.11", "usr", "local", "bin", "python3", "11"]),
        ("mia.li@example.com", ["mia.li@example.com", "mia", "li", "exampl", "com"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("1.2.3", ["1.2.3", "1", "2", "3"]),
        ("10:30", ["10:30", "10", "30"]),
        ("2024-05-03", ["2024-05-03", "2024", "05", "03"]),
        ("2024/5/3", ["2024/5/3", "2024-05-03", "2024", "5", "3"]),
        ("2024年5月3日", ["2024年5月3日", "2024-05-03", "2024", "5", "3"]),
        ("500mg", ["500mg", "500", "mg"]),
        ("500 mg", ["500mg", "500", "mg"]),
        ("500毫克", ["500毫克", "500", "毫克"]),
        ("3.5mg", ["3.5mg", "3.5", "mg"]),
        ("3.5", ["3.5"]),
        ("1,250,000", ["1250000"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        (
            "https://example.org/a1?b2=c3",
            ["https://example.org/a1?b2=c3", "https", "exampl", "org", "a1", "b2", "c3"],
        ),
    ],
)
def test_what_is_looked_up_letter_by_letter_stays_whole(text: str, expected: list[str]):
    """Ids, paths, addresses, versions, dates and doses are terms, and so are their parts."""
    assert expected == terms(text)


def test_a_chinese_run_gives_words_and_pairs():
    """Dictionary words (long ones with the words inside them) and every pair of characters."""
    found = terms("阿莫西林每天两次")
    assert {"阿莫西林", "每天", "两次"} <= set(found)
    assert {"阿莫", "莫西", "西林", "天两"} <= set(found)


def test_chinese_function_words_are_left_out():
    """Words, and pairs made of nothing else, that say nothing about the matter."""
    found = terms("我在做一个 Python 项目，怎么写测试？")
    assert {"python", "项目", "写", "测试"} <= set(found)
    assert set() == {"我", "在", "我在", "一个", "怎么"} & set(found)


@pytest.mark.parametrize(
    ("query", "text"), [("猫", "我有一只猫"), ("血压", "我还有高血压"), ("북", "북 소리"), ("す", "す。")]
)
def test_short_words_are_found(query: str, text: str):
    """One or two characters are enough."""
    assert set(terms(query)) & set(terms(text))


def test_japanese_and_korean_give_pairs():
    """There is no dictionary for them, and pairs do."""
    assert ["こん", "んに", "にち", "ちは", "は世", "世界"] == terms("こんにちは世界")
    assert ["안녕", "녕하", "하세", "세요", "세계"] == terms("안녕하세요 세계")


def test_numbers_beside_chinese_are_terms():
    """No space is needed between the two."""
    assert {"ord-77", "12天", "天"} <= set(terms("订单ORD-77将在12天后到达"))


@pytest.mark.parametrize(
    ("text", "expected"), [("Who are you?", ["who", "are", "you"]), ("是的", ["是", "的", "是的"])]
)
def test_a_query_of_stop_words_keeps_them(text: str, expected: list[str]):
    """A question made of nothing else can still be asked."""
    assert expected == terms(text)


def test_stop_words_can_be_left_out_for_good():
    """For those who want to know whether a text says anything."""
    assert [] == terms("Who are you?", keep_stop_words_if_empty=False)


def test_no_term_is_endless():
    """A blob is found by its head."""
    assert ["x" * MAX_TERM_CHARS] == terms("x" * 5000)
    assert MAX_TERM_CHARS == max(len(term) for term in terms("ab-" * 100 + "c"))


def test_threads_do_not_share_a_stemmer():
    """Stems are the same from every thread."""
    words = "running jumped easily connections testing houses " * 50
    expected = terms(words)
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(terms(words))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [expected] * 4 == results


@pytest.mark.parametrize(
    "piece", ["a", " ", "[", "`", "汉", "a.", "a. ", "2024-1-", "http://", "](", "[a", '! "', "1,"]
)
def test_time_grows_with_the_text_only(piece: str):
    """No text of 100 kB makes the scans run away."""
    text = piece * (100_000 // len(piece))
    began = time.thread_time()
    terms(text)
    sentences(text)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("char", "expected"),
    [("汉", True), ("か", True), ("한", True), ("a", False), ("。", False), ("1", False)],
)
def test_is_cjk(char: str, expected: bool):
    """Letters, not punctuation."""
    assert expected is is_cjk(char)


@pytest.mark.parametrize(
    ("text", "share", "name"),
    [
        ("", 0, "en"),
        ("123 !", 0, "en"),
        ("hello", 0, "en"),
        ("你好", 1, "zh"),
        ("ab汉字", 0.5, "zh"),
        ("使用 Docker 部署项目", 0.5, "zh"),
        ("She said 你好 to everybody in the room", 2 / 29, "en"),
    ],
)
def test_the_dominant_script(text: str, share: float, name: str):
    """A Chinese sentence with product names in it is Chinese; an English one with a Chinese word is English."""
    assert share == pytest.approx(cjk_share(text))
    assert name == language(text)


@pytest.mark.parametrize(
    "expected",
    [
        [],
        ["no end"],
        ["One. ", "Two! ", "Three?"],
        ["今天很好。", "明天呢？", "走吧！"],
        ["他说：“好。”", "然后走了。"],
        ["It costs 3.5 dollars. ", "Fine."],
        ["Dr. Smith met J. Doe at 5 p.m. in Rome, e.g. for tea. ", "Good."],
        ["Cats vs. dogs, birds etc. are pets. ", "Yes."],
        ["我去看了Dr. Li。", "他很好。"],
        ["See https://example.org/a.b?c=1. ", "Then go."],
        ["看 https://example.org/a。", "然后走。"],
        ["Run `a. b` now. ", "Done."],
        ["```\nx = 1. \ny = 2! \n``` is code. ", "Yes."],
        ["```\nnever closed. It goes on. "],
        ["Look ![a. b! c](img. png) here. ", "Nice."],
        ["1. First item\n", "2. Second item. ", "More.\n", "10. Tenth"],
        ["第一行\n\n\n", "第二行"],
        ["English.", "中文。", "Mixed!", "好"],
        ["Well... ", "真的……", "是吗？！ ", "Yes."],
        ["It was (very) good.) ", "So."],
        ["\n\n text. ", "more"],
        ["I saw Mr.\n", "Then left etc. "],
    ],
)
def test_sentences(expected: list[str]):
    """Both languages; numbers, abbreviations, addresses, code and images stay whole; nothing is lost."""
    assert expected == sentences("".join(expected))
