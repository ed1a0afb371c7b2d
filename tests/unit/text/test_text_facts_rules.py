"""What people say about themselves, found without a model."""

import pytest

from pagefile.text import fact_rules
from pagefile.text.fact_rules import own_words, stated


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("我叫李雷，请多关照。", [("用户的名字是李雷", "我叫李雷", "name")]),
        ("请叫我小明就好", [("用户的名字是小明", "请叫我小明", "name")]),
        ("我最喜欢喝绿茶。", [("用户喜欢喝绿茶", "我最喜欢喝绿茶", "taste:绿茶")]),
        ("我不喜欢咖啡", [("用户不喜欢咖啡", "我不喜欢咖啡", "taste:咖啡")]),
        ("我不吃香菜。", [("用户不吃香菜", "我不吃香菜", "taste:香菜")]),
        ("我不喝牛奶。", [("用户不喝牛奶", "我不喝牛奶", "taste:牛奶")]),
        ("我现在住在杭州了", [("用户住在杭州", "我现在住在杭州了", "residence")]),
        ("我对青霉素过敏，开药注意", [("用户对青霉素过敏", "我对青霉素过敏", "allergy:青霉素")]),
        ("我是一名儿科医生。", [("用户是儿科医生", "我是一名儿科医生", "occupation")]),
        ("请不要用表格", [("用户要求：请不要用表格", "请不要用表格", None)]),
        ("以后都用中文回答", [("用户要求：以后都用中文回答", "以后都用中文回答", None)]),
        ("记住：周五我不上班", [("周五用户不上班", "记住：周五我不上班", None)]),
        (
            "不对，应该是头孢，不是青霉素。",
            [("用户更正：不对，应该是头孢，不是青霉素", "不对，应该是头孢，不是青霉素。", None)],
        ),
        ("不对。应该是3月5日。", [("用户更正：不对。应该是3月5日", "不对。应该是3月5日。", None)]),
        (
            "My name is Ada Lovelace.",
            [("The user's name is Ada Lovelace", "My name is Ada Lovelace", "name")],
        ),
        (
            "I prefer tabs over spaces.",
            [("The user likes tabs over spaces", "I prefer tabs over spaces", "taste:tabs over spaces")],
        ),
        ("I can’t stand Java!", [("The user does not like Java", "I can’t stand Java", "taste:java")]),
        (
            "Hi, I just moved to Berlin.",
            [("The user lives in Berlin", "I just moved to Berlin", "residence")],
        ),
        ("I just moved to Berlin.", [("The user lives in Berlin", "I just moved to Berlin", "residence")]),
        (
            "I'm allergic to peanuts",
            [("The user is allergic to peanuts", "I'm allergic to peanuts", "allergy:peanuts")],
        ),
        (
            "I am an electrical engineer at Foo",
            [("The user is an electrical engineer", "I am an electrical engineer", "occupation")],
        ),
        (
            "Please don't use emojis.",
            [("The user asked: Please don't use emojis", "Please don't use emojis", None)],
        ),
        (
            "No, it's Berlin, not Munich.",
            [("The user corrected: No, it's Berlin, not Munich", "No, it's Berlin, not Munich.", None)],
        ),
    ],
)
def test_statements_are_found(said, expected):
    """With their exact words and what they speak of."""
    found = [(one.text, one.quote, one.attribute) for one in stated(said)]
    assert found == expected
    assert all(quote in said for _, quote, _ in found)


@pytest.mark.parametrize(
    "said",
    [
        "你知道我喜欢什么吗？",
        "如果我住在北京会怎样",
        "我叫外卖了",
        "我叫你别来",
        "我喜欢这个",
        "他说“我喜欢猫”",
        "她喜欢猫",
        "我在做一个 Python 项目",
        "Do you know my name is Bob?",
        "If I lived in Paris, I like to think",
        "I like it",
        "I'd like to order a pizza",
        "No, it's fine",
        "We like tea",
        'He said "I love cats"',
        "```\nI love this_code\n```",
        "> I hate quotes",
        "<memory>\n我喜欢狗\n</memory>",
        "<memory>I live in Rome",
        "📎 [存档:123e4567-e89b-42d3-a456-426614174000] 我喜欢狗",
        "",
    ],
)
def test_what_is_not_meant_is_left_alone(said):
    """Questions, conditions, quotations, code, others, and whatever memory wrote."""
    assert stated(said) == []


def test_only_own_words_are_read():
    """Memory, placeholders and quoted lines go; what stands around them stays."""
    said = "我喜欢猫。<memory>我喜欢狗</memory>\n> 我喜欢鱼\n我住在广州。"
    assert [one.text for one in stated(said)] == ["用户喜欢猫", "用户住在广州"]
    assert "狗" not in own_words(said)


def test_like_and_dislike_speak_of_the_same():
    """So that the later one takes the place of the earlier."""
    assert stated("我喜欢咖啡")[0].attribute == stated("我不喜欢咖啡")[0].attribute
    assert stated("I love Java")[0].attribute == stated("I hate Java")[0].attribute


@pytest.mark.parametrize(
    ("message", "fact"),
    [
        ("I'm vegan, what can I cook?", "The user is vegan"),
        ("By the way I can't have shellfish, my throat swells up.", "The user cannot have shellfish"),
        ("My husband Tariq works nights, so quiet hobbies please.", "The user's husband Tariq works nights"),
        (
            "Our deploys go out with make ship and a purge of the cache.",
            "How to: deploys go out with make ship and a purge of the cache",
        ),
        ("我用的是小米手机，截图怎么弄？", "用户用的是小米手机"),
        ("我们公司发版要先跑make ship，再清缓存。", "发版要先跑make ship，再清缓存"),
    ],
)
def test_what_is_stated_before_a_question_or_in_passing(message, fact):
    """A message that asks may state something first; relatives keep their names."""
    assert fact in [one.text for one in stated(message)]


@pytest.mark.parametrize(
    "message",
    [
        "I'm preparing for dinner now.",
        "我在学校等你。",
        "我喜欢第二种写法。",
        "If I'm vegan, what do I eat?",
        "我不能理解这句话。",
    ],
)
def test_passing_remarks_are_no_facts(message):
    """Precision first."""
    assert [] == stated(message)


def test_headings_of_a_note_are_not_speakers():
    """Two names are those of speakers if one of them recurs or is known to take part."""
    note = "Diet: I'm vegan.\nAllergies: I'm allergic to nuts."
    assert {"The user is vegan", "The user is allergic to nuts"} == {one.text for one in stated(note)}
    chat = "Ada: I'm vegan.\nBob: I'm allergic to nuts."
    spoken = {"Ada is vegan", "Bob is allergic to nuts"}
    assert spoken == {one.text for one in stated(chat, known={None, "Bob"})}
    assert spoken == {one.text for one in stated(f"{chat}\nAda: Good.")}


def test_a_sentence_is_searched_for_secrets_once(monkeypatch):
    """However many statements it makes."""
    searched: list[str] = []
    monkeypatch.setattr(fact_rules, "secret_in", searched.append)
    assert 20 == len(stated(", ".join(f"I like dish{number}" for number in range(20))))
    assert 1 == len(searched)
