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
