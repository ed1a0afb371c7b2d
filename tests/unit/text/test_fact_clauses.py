"""A fact ends where the next clause of its sentence begins."""

import pytest

from pagefile.text.fact_rules import stated


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I am allergic to penicillin and I live in Bern.", {"The user is allergic to penicillin", "The user lives in Bern"}),
        ("I live in Bern but I work in Basel", {"The user lives in Bern"}),
        ("I live in Bern and work at Migros.", {"The user lives in Bern"}),
        ("I love tea and I hate coffee.", {"The user likes tea", "The user does not like coffee"}),
        ("I'm allergic to penicillin so please avoid it", {"The user is allergic to penicillin"}),
        ("I'm allergic to cats and dogs.", {"The user is allergic to cats and dogs"}),
        ("My wife is allergic to peanuts and we live in Rome", {"The user's wife is allergic to peanuts"}),
        ("我住在杭州而且我对花生过敏", {"用户住在杭州", "用户对花生过敏"}),
        ("我对青霉素过敏，所以我不吃阿莫西林", {"用户对青霉素过敏"}),
    ],
)  # fmt: skip
def test_one_clause_is_one_fact(said, facts):
    assert facts <= {one.text for one in stated(said)}
    assert not any(" and I" in one.text or "而且" in one.text or "所以" in one.text for one in stated(said))


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("我对芒果过敏，喜欢靠窗的座位。", ["用户对芒果过敏", "用户喜欢靠窗的座位"]),
        ("我住在上海，喜欢爬山，不喜欢游泳。", ["用户住在上海", "用户喜欢爬山", "用户不喜欢游泳"]),
        ("我叫李雷，对花生过敏。", ["用户的名字是李雷", "用户对花生过敏"]),
        ("I'm vegetarian and prefer window seats.", ["The user is vegetarian", "The user likes window seats"]),
        ("I'm allergic to peanuts, love hiking and live in Oslo.", ["The user is allergic to peanuts", "The user likes hiking", "The user lives in Oslo"]),
        # About somebody else, or nobody in particular.
        ("我妈妈对芒果过敏，喜欢跳舞。", ["用户的妈妈对芒果过敏"]),
        ("我对芒果过敏，我同事坐在旁边，喜欢吃榴莲。", ["用户对芒果过敏"]),
        ("我对芒果过敏，喜欢吃辣的人可以试试。", ["用户对芒果过敏"]),
        ("I'm vegetarian, my brother cooks, loves meat.", ["The user is vegetarian"]),
        ("这家店不错，喜欢辣的可以去。", []),
    ],
)  # fmt: skip
def test_a_clause_goes_on_about_the_subject_of_the_one_before(said, facts):
    """Each with a quote that is in the message."""
    found = stated(said)
    assert sorted(facts) == sorted(one.text for one in found)
    assert all(one.quote in said for one in found)
