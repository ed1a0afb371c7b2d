"""What people correct: which statements no longer hold, and what is left of them."""

import pytest

from pagefile.text.corrections import Statement, may_go, overruled
from pagefile.text.extract import summarize


def gone(*said):
    """The statements that no longer hold; a pair is one with its answer."""
    pairs = [(one, "") if isinstance(one, str) else one for one in said]
    found = overruled([Statement(text, turn, answer) for turn, (text, answer) in enumerate(pairs)])
    return [pairs[old][0] for old in sorted(found)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The deposit is 700 euros.", "The deposit will be 650 after all."),
        ("The exam is on March 3.", "They put the exam on March 17."),
        ("Yoga is on Mondays.", "Yoga moved to Thursdays."),
        ("My brother Piet brings the cake.", "Piet is ill, my aunt brings the cake instead."),
        ("We expect 40 visitors.", "Now it's 55 visitors."),
        ("押金是800元。", "押金涨到950元了。"),
        ("考试定在3月3日。", "考试推迟到3月17日。"),
        ("瑜伽课在周一。", "瑜伽课改到周四了。"),
        ("蛋糕由小李买。", "小李生病了，蛋糕换小张买。"),
    ],
)
def test_a_correction_overrules_what_it_corrects(old, new):
    """By a value of the same kind for the same thing, or by a word of correction and what it is about."""
    assert [old] == gone(old, new)


def test_an_answer_tells_what_was_meant():
    """Where the correction leaves it out."""
    old = "The sofa is 210 cm wide."
    assert [old] == gone(old, ("We measured again and only 180 fits.", "Then 180 cm it is."))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The deposit is 700 euros.", "The train leaves on March 17."),
        ("I'm allergic to nuts.", "The exam is on March 3."),
        ("The deposit is 700 euros.", "Is the deposit 650?"),
        ("押金是800元。", "我对花生过敏。"),
        ("我叫王芳。", "考试在3月3日。"),
    ],
)
def test_what_is_about_something_else_stands(old, new):
    """And a question corrects nothing."""
    assert [] == gone(old, new)


def test_what_was_compared_before_is_not_compared_again():
    """A correction in an earlier summary has done what it does."""
    said = [Statement("I sold the red car.", 0), Statement("I changed my mind about the red bike.", 1)]
    assert {} == overruled(said, known=2)


def test_a_sentence_that_says_two_things_is_never_left_out():
    """The other one may still hold."""
    assert may_go("Joe mows the lawn.", 0.9)
    assert not may_go("Ana paints the fence, Joe mows the lawn.", 0.9)
    assert not may_go("我对青霉素过敏，2015年住过院。", 0.9)


def test_a_summary_tells_what_holds():
    """In the first summary and in the next ones, without the answer to what no longer does."""
    first = summarize(
        [
            ("user", "The deposit is 700 euros."),
            ("assistant", "700 euros, noted."),
            ("user", "I'm allergic to nuts."),
        ],
        limit=500,
    )
    assert "700" in first
    second = summarize([("user", "The deposit went up, it is 750 euros now.")], limit=500, previous=first)
    assert "user: I'm allergic to nuts.\nuser: The deposit went up, it is 750 euros now." == second


def test_each_half_of_a_sentence_is_told_with_its_own_correction():
    """Although each was corrected by another message."""
    said = [
        ("user", "We rehearse on Tuesdays, in the old church hall."),
        ("assistant", "Noted."),
        ("user", "I bring the music stands."),
        ("assistant", "Good."),
        ("user", "The church hall has a leaking roof, so we go to the school gym instead."),
        ("assistant", "The gym, fine."),
        ("user", "Rehearsals are on Thursdays now."),
        ("assistant", "Thursdays."),
    ]
    summary = summarize(said, limit=500)
    assert "music stands" in summary
    line = next(line for line in summary.splitlines() if "Tuesdays" in line)
    before, later = line.split("Later: ")
    assert "old church hall" in before
    assert "school gym" in before
    assert "Thursdays" in later


def test_the_last_line_of_a_summary_is_corrected_by_the_first_new_message():
    """Whether or not the lines of the summary have answers between them."""
    for lines in ("用户: 过户约在15号。", "用户: 我叫石磊。\n用户: 过户约在15号。"):
        assert "15" not in summarize([("user", "18号才能过户，系统在维护。")], limit=500, previous=lines)


def test_statements_shown_together_are_corrected_one_by_one():
    """A later message takes out the one that it corrects; the other stays with what it was shown with."""
    previous = "user: The rent is 850 euros / Felix drives the van. Later: My colleague Ana drives the van."
    summary = summarize([("user", "The rent will be 890 euros.")], limit=500, previous=previous)
    assert "Felix drives the van. Later: My colleague Ana drives the van." in summary
    assert "850" not in summary
    assert "890" in summary


def test_a_sentence_of_two_things_is_told_whole_before_its_correction():
    """The half that still holds is there, and nobody reads the other one alone."""
    said = [
        ("user", "我住在滨江，健身房在公司楼下。"),
        ("user", "公司楼下的健身房倒闭了，我换到了小区旁边。"),
    ]
    told = "user: 我住在滨江，健身房在公司楼下。后来：公司楼下的健身房倒闭了，我换到了小区旁边。"
    assert told == summarize(said, limit=500)


def test_an_answer_that_repeats_what_was_corrected_is_left_out():
    """Also where the statement it answers has moved to its correction."""
    said = [
        ("user", "It's 120 square metres."),
        ("assistant", "120 square metres, good size."),
        ("user", "I grow beans."),
        ("assistant", "Give them a pole of two metres each, and water in the morning."),
        ("user", "I measured again and the plot is 140 square metres."),
        ("assistant", "140 then."),
    ]
    summary = summarize(said, limit=500)
    assert "good size" not in summary
    assert "140" in summary
    assert "pole of two metres" in summary


def test_a_question_corrects_nothing_without_its_mark():
    """In a chat the mark is often left out in Chinese."""
    assert [] == gone("我们坐火车去丽江。", "丽江火车要不要提前买票")


def test_what_is_shown_beside_a_later_sentence_is_beside_the_one_that_corrects_it():
    """The old time stands before the sentence that gives the new one, not before the one that says why."""
    said = [
        ("user", "I inspect the hives every Sunday, before lunch."),
        ("user", "Sundays don't work with the market stall. I look at the hives on Wednesdays now."),
    ]
    told = "I inspect the hives every Sunday, before lunch. Later: I look at the hives on Wednesdays now."
    assert told in summarize(said, limit=500)


def test_no_statement_is_lost_to_what_was_itself_superseded():
    """Everything said of different things is told, whatever was linked to what."""
    said = [
        ("user", text)
        for text in (
            "The deposit is 700 euros, due in June.",
            "The deposit is 750 euros now.",
            "Actually the deposit is 800 euros.",
            "The notice period is three months.",
        )
    ]
    summary = summarize(said, limit=500)
    assert "due in June" in summary
    assert "800" in summary
    assert "three months" in summary
    assert "750" not in summary or "750" in summary.partition("Later: ")[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna takes 5 mg of ramipril.", "Ben takes 10 mg of ramipril."),
        ("The first alarm is at 7 am.", "The second alarm is at 8 am."),
        ("Room 1 costs 80 euros.", "Room 2 costs 95 euros."),
        ("Flight out is on May 3.", "Flight back is on May 17."),
        ("Mia's birthday is June 2.", "Leo's birthday is August 9."),
        ("Rent is 900.", "Electricity is 80."),
        ("第一个闹钟定在7点。", "第二个闹钟定在8点。"),
        ("我妈血压130。", "我爸血压150。"),
        ("去程5月3号。", "回程5月17号。"),
        ("早上吃二甲双胍500毫克。", "晚上吃二甲双胍1000毫克。"),
        ("张三负责前端。", "李四负责后端。"),
    ],
)
def test_alike_statements_about_different_things_are_both_told(one, other):
    """Nobody said that the first no longer holds."""
    said = [("user", one), ("assistant", "Noted."), ("user", other), ("assistant", "Noted.")]
    summary = summarize(said, limit=500)
    assert one.rstrip(".。") in summary
    assert other.rstrip(".。") in summary


def test_small_talk_has_no_line():
    """Neither the user's nor the assistant's."""
    said = [
        ("user", "我对花粉过敏。"),
        ("assistant", "好的"),
        ("user", "好的"),
        ("assistant", "阳台上不要种花。"),
    ]
    assert "用户: 我对花粉过敏。\n助手: 阳台上不要种花。" == summarize(said, limit=500, language="zh")


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        (
            "The budget is 3,200 pounds for everything.",
            "The budget has to go up, she's putting in 900.",
            "That makes 4,100 pounds.",
        ),
        ("手术定在8月16号。", "手术没排上，往后挪一周。", "8月23号。"),
    ],
)
def test_an_answer_works_out_what_holds(old, new, answer):
    """It says the sum or the day that the user did not say."""
    assert [old] == gone((old, "Noted."), (new, answer))


def shown(old, new, answer):
    """A summary of a statement, of something else, and of what may correct it."""
    other = [("user", "We have a dog."), ("assistant", "Nice.")]
    return summarize(
        [("user", old), ("assistant", "Noted."), *other, ("user", new), ("assistant", answer)], limit=400
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The groom is Stefan.", "I asked, he writes it Stephan."),
        ("The bride is Katherine.", "She spells it Catherine."),
        ("Production runs 4.11.2.", "Prod is on 4.11.3."),
    ],
)
def test_a_name_that_is_spelt_again_and_the_next_version_are_shown_with_the_one_before(old, new):
    """They share no word with it."""
    assert f"{old} Later: {new}" in shown(old, new, "Noted.")


def test_a_wish_put_as_a_question_counts_once_it_is_granted():
    """Unlike other questions, and unlike one that is refused."""
    old, new = "The legs are oak.", "Could I have black legs instead?"
    assert f"{old} Later: {new}" in shown(old, new, "Black legs, no extra cost.")
    assert "Later" not in shown(old, new, "Sorry, they only come in oak.")
    assert ["周六送货。"] == gone("周六送货。", ("送货改周日行吗？", "周日可以。"))
    assert [] == gone("周六送货。", ("送货改周日行吗？", "周日不行。"))


def test_a_correction_is_shown_with_what_was_said_behind_it():
    """In the same go: the first sentence says that something is different, the second what."""
    talk = [
        ("user", "Maya approves the rollout and reads the plan, reach her on Slack."),
        ("assistant", "Noted."),
        ("user", "The flag is off."),
        ("assistant", "Off."),
        ("user", "Maya's out sick. Ask Deepak."),
    ]
    summary = summarize(talk, limit=400)
    assert "reach her on Slack. Later: Maya's out sick / Ask Deepak." in summary
    assert summary == summarize([], limit=400, previous=summary)


def test_of_several_statements_shown_together_each_update_is_marked():
    """Also in a summary that is made from that one."""
    talk = [
        ("user", "Anna runs the shop and does the books on Fridays, she is in charge."),
        ("assistant", "Noted."),
        ("user", "Anna is ill, so Ben runs the shop and does the books."),
        ("assistant", "Noted."),
        ("user", "Ben left, maybe Cara runs the shop, or does the books."),
    ]
    line = "user: Anna runs the shop"
    first = summarize(talk, limit=2000)
    assert line in first
    assert " / later: Anna is ill" in first
    assert ". Later: Ben left" in first
    assert first == summarize([], limit=2000, previous=first)
