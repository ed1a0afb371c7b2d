"""Whose request it is."""

import pytest

from pagefile.errors import InvalidArgumentError
from pagefile.gateway import identity

SESSION = "session_0d9e8f7a-1b2c-4d3e-8f90-a1b2c3d4e5f6"


def user_of(body, headers=None):
    return identity.who(headers or {}, body, tenant=None, user=None, default="default").user


@pytest.mark.parametrize(
    "body",
    [
        {"user": "anon_session_1"},
        {"user": f"user_ab12_account__{SESSION}"},
        {"safety_identifier": f"visitor_{SESSION}"},
        {"metadata": {"user_id": f"visitor_{SESSION}"}},
    ],
    ids=str,
)
def test_a_session_in_an_applications_own_ids_tells_users_apart(body):
    (given,) = (body.get("metadata") or body).values()
    assert given == user_of(body)


@pytest.mark.parametrize("account", ["", "0d9e8f7a-1b2c-4d3e-8f90-a1b2c3d4e5f6"])
def test_claude_codes_session_is_not_part_of_its_user(account):
    user = f"user_ab12_account_{account}"
    assert user == user_of({"metadata": {"user_id": f"{user}_{SESSION}"}})


def test_long_ids_stay_different():
    assert user_of({"user": "a" * 300 + "1"}) != user_of({"user": "a" * 300 + "2"})


@pytest.mark.parametrize("user", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
def test_a_vendors_field_that_names_nobody_is_ignored(user):
    assert "default" == user_of({"user": user})
    assert "ada" == user_of({"metadata": {"user_id": user}, "user": "ada"})


def test_a_deeply_nested_id_is_only_a_text():
    assert user_of({"metadata": {"user_id": '{"a":' * 100_000}}) is not None


def test_our_own_header_is_not_guessed_at():
    with pytest.raises(InvalidArgumentError):
        user_of({}, {identity.USER: "a\0b"})
