"""Summaries, anchors and excerpts without a model."""

import re

import pytest

from pagefile.text.extract import anchor_phrases, anchors, summarize
from pagefile.text.sentences import clip, cut
from pagefile.text.tokens import open_counter

PATIENT = [
    ("用户", "你好！我今年45岁，对青霉素过敏。最近血压有点高，150/95。"),
    ("AI", "好的。高血压患者应该少吃盐，每天不超过5克。建议定期测量血压。"),
    ("用户", "谢谢！医生给我开了氨氯地平5mg，每天一次，早上8:00吃。"),
    ("AI", "氨氯地平是钙通道阻滞剂。祝您健康！"),
    ("用户", "我下次复诊是2026年12月3日，在北京协和医院，医生叫Dr. Li。"),
]
DEPLOY = [
    ("user", "Hi! I'm Alice Smith from Boston. I work on the billing service at Acme Corp."),
    ("assistant", "Nice to meet you! Billing services are interesting. How can I help today?"),
    ("user", "The deploy failed on 2026-03-04 with error E1234. Logs are in /var/log/app/billing.log."),
    ("assistant", "Error E1234 usually means the database password expired. Rotate it and deploy again."),
]


@pytest.mark.parametrize("texts", [PATIENT, DEPLOY])
@pytest.mark.parametrize("max_chars", [50, 80, 120, 200, 1000])
def test_a_summary_holds_whole_sentences_in_their_order(texts: list[tuple[str, str]], max_chars: int):
    """Never too long, nothing invented, the order of the conversation."""
    summary = summarize(texts, limit=max_chars)
    assert 0 < len(summary) <= max_chars
    # The only words of its own: what follows is newer than what it may be about.
    summary = summary.replace("后来：", "").replace(" Later: ", "\n")
    spoken = "\n".join(f"{speaker}: {text}" for speaker, text in texts)
    sentences = re.findall(r"(?:用户|AI|user|assistant): |[^。！？\n]+?[。！？\n]|[^。\n]+$", summary + "\n")
    # What was said in one go is one sentence behind them.
    said = [
        piece.strip().rstrip(".。")
        for sentence in sentences
        if not sentence.endswith(": ")
        for piece in sentence.split(" / ")
    ]
    places = [spoken.find(sentence) for sentence in said]
    assert -1 not in places
    assert sorted(places) == places


def test_what_must_not_be_forgotten_is_kept():
    """Allergy, dose and date outlive politeness and general advice."""
    summary = summarize(PATIENT, limit=115)
    assert ["青霉素过敏", "5mg", "2026年12月3日"] == [
        word for word in ("青霉素过敏", "5mg", "2026年12月3日", "钙通道", "祝您") if word in summary
    ]


def test_users_come_before_assistants():
    """Of two sentences that carry the same, the user's is kept."""
    texts = [("assistant", "The garden has green apples."), ("user", "The garden has yellow pears.")]
    assert "user: The garden has yellow pears." == summarize(texts, limit=40)


def test_statements_come_before_questions():
    """What was said outlives what was asked."""
    texts = [("user", "Where are the green apples?"), ("user", "There are many green apples.")]
    assert "user: There are many green apples." == summarize(texts, limit=40)


def test_equal_input_gives_equal_summaries():
    """No randomness, no clock."""
    assert summarize(DEPLOY, limit=150) == summarize(DEPLOY, limit=150)


def test_repetition_is_said_once():
    """A sentence that says what another said is left out."""
    texts = [
        ("user", "I like green tea."),
        ("assistant", "You like black coffee."),
        ("user", "I LIKE green tea!"),
    ]
    assert 1 == summarize(texts, limit=500).lower().count("green tea")


def test_small_talk_goes_when_there_is_more():
    """One word without an anchor says nothing, unless it is all there is."""
    assert "user: I moved to Rome." == summarize([("user", "Thanks! I moved to Rome.")], limit=99)
    assert "user: Thanks!" == summarize([("user", "Thanks!")], limit=99)


def test_sentences_of_one_text_share_a_line():
    """Chinese sentences stand close, English ones apart, and nobody in particular needs no label."""
    assert "用户: 我住在上海。我喜欢爬山。" == summarize([("用户", "我住在上海。 我喜欢爬山。")], limit=99)
    assert "I live in Rome. My cat is old." == summarize([("", "I live in Rome.\nMy cat is old.")], limit=99)


def test_the_previous_summary_comes_first_and_survives():
    """Three rounds later the first fact is still there, and so is the newest, each with its speaker."""
    summary = summarize(PATIENT[:2], limit=110)
    summary = summarize(PATIENT[2:4], limit=110, previous=summary)
    summary = summarize(PATIENT[4:], limit=110, previous=summary)
    assert summary.startswith("用户: ")
    assert summary.index("青霉素过敏") < summary.index("2026年12月3日")
    assert len(summary) <= 110


def test_the_previous_summary_leaves_room_for_what_is_new():
    """An old summary that fills the limit gives way, best sentences last."""
    previous = "\n".join(f"user: Old fact number {at} about some matter." for at in range(20))
    summary = summarize([("user", "I am allergic to penicillin.")], limit=200, previous=previous)
    assert "Old fact" in summary
    assert summary.endswith("I am allergic to penicillin.")


def test_a_previous_summary_alone_is_kept_as_it_is():
    """Lines with and without a speaker; a colon alone makes no speaker."""
    previous = "The plan: buy bread and milk.\nuser: I live in Rome.\n\nBob: Bob likes green tea."
    expected = previous.replace("\n\n", "\n")
    assert expected == summarize([], limit=500, previous=previous)


@pytest.mark.parametrize("texts", [[], [("user", "")], [("user", " … !\n")]])
def test_nothing_said_is_no_summary(texts: list[tuple[str, str]]):
    """Marks and space are not text."""
    assert "" == summarize(texts, limit=100)


def test_a_single_long_sentence_is_cut_at_a_boundary():
    """Only when no sentence fits, and then with an ellipsis."""
    long = "we walked along the river and over the hill and through the wood " * 5
    summary = summarize([("user", long)], limit=50)
    assert "user: we walked along the river and over the hill…" == summary
    assert "" == summarize([("user", long)], limit=0)


def test_a_sentence_that_fits_exactly_is_kept():
    """The limit itself is allowed."""
    both = "user: I live in Rome. My cat is old."
    assert both == summarize([("user", "I live in Rome. My cat is old.")], limit=len(both))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我今年45岁，血压150/95。", ["45岁", "150/95"]),
        ("每次500毫克，一天3次，共12 天", ["500毫克", "3次", "12 天"]),
        ("体温38.5°C，涨了15%", ["38.5°C", "15%"]),
        ("2026年12月3日上午8:30，或者5月3日下午3点半", ["2026年12月3日", "8:30", "5月3日", "3点半"]),
        (
            "due 2026-03-04 or May 3, 2024 or 5 June at 3:30 pm",
            ["2026-03-04", "May 3, 2024", "5 June", "3:30 pm"],
        ),
        ("$1,200.50 or ￥300 or 1200元", ["$1,200.50", "￥300", "1200元"]),
        ("订单ORD-2024_001已发货", ["ORD-2024_001"]),
        ("error E1234 in v1.2.3 of gpt-4o.", ["E1234", "v1.2.3", "gpt-4o"]),
        (
            "见/var/log/app/x.log，或 src/a/b.py. C:\\Users\\me or ./a/b",
            ["/var/log/app/x.log", "src/a/b.py", "C:\\Users\\me", "./a/b"],
        ),
        ("Write to a.b@c.org, see https://x.org/a?b=1.", ["a.b@c.org", "https://x.org/a?b=1"]),
        (
            '读《红楼梦》和“三体”，「道」 and "War and Peace"',
            ["《红楼梦》", "“三体”", "「道」", '"War and Peace"'],
        ),
        (
            "I'm Alice Smith, with Dr. Li, using FastAPI at BMW in Paris",
            ["Alice Smith", "Dr. Li", "FastAPI", "BMW", "Paris"],
        ),
        ("医生叫Alice，项目用Python", ["Alice", "Python"]),
        ("Then he left. The end is near, I think OK", []),
        ("room 12 and room 12 and 7", ["12", "7"]),
        ("", []),
    ],
)
def test_anchors(text: str, expected: list[str]):
    """What no paraphrase brings back: in order, once each, in both languages."""
    assert expected == anchors(text)


@pytest.mark.parametrize("max_chars", [200, 61, 60])
def test_an_excerpt_has_both_ends_and_says_what_is_missing(max_chars: int):
    """The number in the marker is the number of characters left out."""
    text = "".join(f"line number {at}\n" for at in range(100))
    excerpt = clip(text, max_chars)
    found = re.fullmatch(r"(.*)\n… \((\d+) characters left out\) …\n(.*)", excerpt, re.DOTALL)
    assert found
    assert len(excerpt) <= max_chars
    assert text.startswith(found[1])
    assert text.endswith(found[3])
    assert len(text) == len(found[1]) + int(found[2]) + len(found[3])


def test_an_excerpt_ends_at_lines_and_sentences():
    """Neither a line nor a sentence is cut when a boundary is near, and Chinese text is marked in Chinese."""
    lines = clip("line one is here\n" * 50, 200)
    assert {"line one is here", "… (697 characters left out) …", ""} == set(lines.split("\n"))
    chinese = clip("今天天气很好。我们去公园。" * 50, 100)
    head, marker, tail = chinese.split("\n")
    assert head.endswith("。")
    assert tail.startswith(("今天", "我们"))
    assert "…（此处略去 572 字）…" == marker


def test_an_excerpt_of_one_long_word():
    """Without a boundary the cut is where it must be."""
    assert 99 <= len(clip("x" * 1000, 100)) <= 100


@pytest.mark.parametrize(
    ("max_chars", "expected"),
    [(0, ""), (-5, ""), (1, "…"), (10, "hello the…"), (12, "hello there…"), (17, "hello there world")],
)
def test_a_small_excerpt_is_the_beginning(max_chars: int, expected: str):
    """There is no room for two ends; a text that fits is left alone."""
    assert expected == clip("hello there world", max_chars)
    assert expected == cut("hello there world", max_chars)


def test_anchors_come_with_their_words():
    """A number without what it counts says nothing."""
    said = "My blood pressure is 148/95, and Emily moved to Toronto in March; thanks! 血压148/95，每天吃5毫克氨氯地平。"
    assert [
        "My blood pressure is 148/95",
        "and Emily moved to Toronto in March",
        "血压148/95",
        "每天吃5毫克氨氯地平",
    ] == anchor_phrases(said)


def test_a_long_clause_keeps_what_is_around_its_anchors():
    """Whole words of it."""
    long = "we walked " * 20 + "and met Alice Smith at the bridge " + "and walked on " * 20
    (phrase,) = anchor_phrases(long)
    assert "met Alice Smith at the bridge" in phrase
    assert len(phrase) < 80
    assert not {*phrase.split()} - {*long.split()}


@pytest.mark.parametrize("vital", ["我对青霉素过敏，我叫王小明。", "I'm lactose intolerant, by the way."])
def test_what_harms_if_it_is_forgotten_comes_first(vital: str):
    """However much else there is, however many numbers it has."""
    talk = [("user", vital), *(("user", f"Question {n} is about matter {n}, at {n}:30.") for n in range(40))]
    assert vital in summarize(talk, limit=200)


@pytest.mark.parametrize("limit", range(40, 160, 10))
def test_what_was_possibly_superseded_is_never_shown_without_what_came_later(limit: int):
    """However little room there is."""
    talk = [("user", f"问题{n} 关于第{n}件事") for n in range(23)]
    for line in summarize(talk, limit=limit, measure=open_counter().count).splitlines():
        assert " / " not in line or line.count("。后来：") == 1
