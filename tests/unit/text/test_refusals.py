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
        "This request violates our content policy.",
        "There is no conversation to summarize. Please provide the conversation.",
        "Could you please share the conversation you'd like me to summarize?",
        "Error: rate limit exceeded",
        "No content was provided.",
        "Hello! How can I help you today?",
        "该内容违反了相关规定，无法处理。",
        "请提供需要总结的对话内容。",
        "您没有提供任何对话内容。",
        "不好意思，这个我帮不了您。",
        "由于政策限制，我不便回答。",
        "我很乐意帮忙，请把对话发给我。",
        "您好，我是智能助手，有什么可以帮您？",
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
        "No mushrooms for Noor; this week they fly to Lisbon.",
        "There is no parking at the flat. Error 404 is fixed.",
        "Please send the invoice to Ben: that is what the user wants done.",
        "由于装修预算限制，用户不能换浴缸。",
        "请假到周五，用户没有提供病历。",
        "您好小筑民宿订了两晚。",
    ],
)
def test_a_summary_may_speak_of_what_cannot_be(answer):
    """Only a model that speaks of itself refuses."""
    assert not is_refusal(answer)


@pytest.mark.parametrize("answer", ["asdf qwer zxcv", "今天天气真不错。", "￿￿￿"])
def test_what_has_nothing_in_common_is_no_summary(answer):
    assert "nothing in common" in rejection(answer, SAID, "zh")


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        ("The user asked about the weather in Paris and booked a hotel with breakfast.", "en"),
        ("用户询问了巴黎的天气，并预订了含早餐的酒店。", "zh"),
    ],
)
def test_a_summary_of_another_conversation_is_none(answer, asked):
    """That it calls somebody the user is not enough where there was something to tell."""
    said = {
        "en": [
            "I am allergic to penicillin and take ramipril, five milligrams each morning.",
            "Noted: see Dr Patel.",
        ],
        "zh": ["我对青霉素过敏，每天早上吃缬沙坦八十毫克。", "记下了，复诊找孙主任。"],
    }
    assert "nothing in common" in rejection(answer, said[asked], asked)
    assert rejection("The user and the assistant greeted each other.", ["hi", "hello"], "en") is None


def test_a_translation_is_a_summary():
    """A summary in the language that was asked for need not share a word with what was said in another."""
    assert rejection("Wang Xiaoming cannot take penicillin.", SAID, "en") is None
    assert rejection("Wang Xiaoming cannot take penicillin.", SAID, "zh") is not None
