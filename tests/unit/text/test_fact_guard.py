"""What is not believed of a model's facts: what it makes of questions, of chatter, of secrets and of other people."""

import pytest

from pagefile.text.fact_guard import doubt, verbatim


@pytest.mark.parametrize(
    ("message", "quote", "text"),
    [
        ("I live in Bern and I'm allergic to nuts.", "I'm allergic to nuts", "The user is allergic to nuts."),
        ("I'm vegan, what can I cook?", "I'm vegan", "The user is vegan."),
        ("My sister lives in Oslo.", "My sister lives in Oslo", "The user's sister lives in Oslo."),
        ("My flat is in Bern.", "My flat is in Bern", "The user lives in Bern."),
        (
            "I'm looking for a flat in Bern.",
            "looking for a flat in Bern",
            "The user is looking for a flat in Bern.",
        ),
        ("Please always answer in French.", "always answer in French", "The user wants answers in French."),
        ("我妹妹住在奥斯陆。", "我妹妹住在奥斯陆", "用户的妹妹住在奥斯陆。"),
        ("我对青霉素过敏，有什么药能吃？", "我对青霉素过敏", "用户对青霉素过敏。"),
        ("我老婆和我都不吃香菜。", "我都不吃香菜", "用户不吃香菜。"),
        ("I moved to 杭州 in May.", "I moved to 杭州", "The user lives in 杭州."),
    ],
)
def test_what_a_user_states_is_believed(message, quote, text):
    assert doubt(text, quote, message) is None


@pytest.mark.parametrize(
    ("message", "quote", "text", "why"),
    [
        (
            "How much is rent in Bern?",
            "How much is rent in Bern?",
            "The user lives in Bern.",
            "states nothing",
        ),
        ("If I lived in Bern, I'd ski.", "I lived in Bern", "The user lives in Bern.", "states nothing"),
        ("She said: I live in Paris.", "I live in Paris", "The user lives in Paris.", "states nothing"),
        ("高血压不能吃什么？", "高血压", "用户有高血压。", "states nothing"),
        (
            "The rent here is 900 euros.",
            "The rent here is 900 euros",
            "The user is asking about the cost of rent.",
            "conversation",
        ),
        ("I want to know more.", "I want to know more", "The user wants to know more.", "conversation"),
        ("我想问一下护士工资。", "我想问一下护士工资", "用户想了解护士工资。", "conversation"),
        ("I moved to Bern.", "I moved to Bern", "I moved to Bern.", "repeats"),
        ("我叫了外卖。", "我叫了外卖", "我叫了外卖。", "repeats"),
        ("I'm tired today.", "I'm tired today", "The user is tired.", "over soon"),
        ("我在成都转机，还有三个小时。", "我在成都转机", "用户在成都转机。", "over soon"),
        (
            "My router's password is sunflower77.",
            "My router's password",
            "The user has a router.",
            "secret",
        ),
        ("我家路由器的密码是 sunflower77。", "我家路由器", "用户家里有路由器。", "secret"),
        ("I'm 43 years old.", "I'm 43 years old", "The user is 34 years old.", "does not say"),
        (
            "I live by the lake.",
            "I live by the lake",
            "The user lives in Zurich by the lake.",
            "does not say",
        ),
        ("I'm on the train.", "I'm on the train", "The user is a vegetarian.", "does not say"),
        ("我住在苏州。", "我住在苏州", "The user lives in a large city.", "does not say"),
        ("My sister lives in Oslo.", "sister lives in Oslo", "The user lives in Oslo.", "somebody else"),
        ("He is a nurse.", "He is a nurse", "The user is a nurse.", "somebody else"),
        ("我妹妹住在奥斯陆。", "妹妹住在奥斯陆", "用户住在奥斯陆。", "somebody else"),
    ],
)
def test_what_a_user_does_not_state_is_not(message, quote, text, why):
    assert why in (doubt(text, quote, message) or "")


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("I live in Bern", "I live in Bern"),
        ("i live in bern.", "I live in Bern"),
        ('"I live\n in Bern…"', "I live in Bern"),
        ("I live near Bern", None),
        ("...", None),
    ],
)
def test_a_quote_is_as_the_message_has_it(quote, found):
    """A small model changes the case, the spaces and the signs around what it copies."""
    assert found == verbatim(quote, "Well, I live in Bern, near the river.")
