"""Answers of models that are no summaries."""

import pytest

from pagefile.text.refusals import is_refusal, rejection

SAID = ["我对青霉素过敏，我叫王小明。", "记住了。"]


@pytest.mark.parametrize(
    "answer",
    [
        "抱歉，我无法协助完成这个请求。",
        "对不起，这个话题我不便讨论。",
        "我无法满足您的要求。",
        "作为一个AI语言模型，我不能总结。",
        "I'm sorry, but I can't help with that.",
        "I’m not able to assist with this request.",
        "Sorry, I cannot summarize this conversation.",
        "As an AI language model, I have no memory.",
        "Unfortunately, I am unable to provide a summary.",
    ],
)
def test_a_refusal_is_recognised(answer):
    """Whatever words it repeats of what it was asked."""
    assert is_refusal(answer)
    assert "refusal" in rejection(answer, [*SAID, answer], "zh")


@pytest.mark.parametrize(
    "answer",
    [
        "The user is sorry that he can't come on Tuesday.",
        "I'm sorry, I can't come on Tuesday.",
        "用户王小明对青霉素过敏。助手表示无法提供诊断。",
        "用户不能吃花生，抱歉迟到。",
    ],
)
def test_a_summary_may_speak_of_what_cannot_be(answer):
    """Only a model that speaks of itself refuses."""
    assert not is_refusal(answer)


@pytest.mark.parametrize("answer", ["asdf qwer zxcv", "今天天气真不错。", "￿￿￿"])
def test_what_has_nothing_in_common_is_no_summary(answer):
    assert "nothing in common" in rejection(answer, SAID, "zh")


def test_a_translation_is_a_summary():
    """A summary in the language that was asked for need not share a word with what was said in another."""
    assert rejection("Wang Xiaoming cannot take penicillin.", SAID, "en") is None
    assert rejection("Wang Xiaoming cannot take penicillin.", SAID, "zh") is not None
