"""Messages without a matter: they resemble others of their kind, and need none of them."""

import pytest

from pagefile.text.small_talk import is_small_talk


@pytest.mark.parametrize(
    "message",
    [
        *(
            "今天风好大啊",
            "今晚月亮好圆",
            "现在好多了，谢谢",
            "最近总下雨，烦",
            "困死我了",
            "那我去忙啦",
            "祝你周末愉快",
        ),
        *("后天会不会降温？", "今天会下雪吗？", "周末天气怎么样？", "今天星期几呀？"),
        *(
            "The weather is lovely today",
            "I'm exhausted tonight",
            "It's freezing out there",
            "You made my day",
        ),
        *("Thanks for all your help today", "I'm going for lunch, talk later", "Will it rain tomorrow?"),
    ],
)
def test_weather_moods_wishes_and_goodbyes_are_small_talk(message):
    assert is_small_talk(message)


@pytest.mark.parametrize(
    "message",
    [
        *(
            "",
            "今天吃什么？",
            "今天几点开会？",
            "我今天头疼，能吃布洛芬吗？",
            "明天要下雨，会议还开吗？",
            "我什么时候最开心？",
            "房租",
        ),
        *(
            "When did I feel sad?",
            "How is my mother today?",
            "The boiler is cold again",
            "Is it cold in Oslo?",
        ),
        *("I'm hungry, what can I cook?", "See you tomorrow at 9", "x" * 200),
    ],
)
def test_whatever_names_a_matter_is_not(message):
    assert not is_small_talk(message)
