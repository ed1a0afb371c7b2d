"""What must never be kept as a fact."""

import pytest

from pagefile.text.fact_rules import passes_luhn, secret_in


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("My password is hunter2", "a password"),
        ("我的密码是 abc123", "a password"),
        ("wifi 密码：Tiger#1", "a password"),
        ("账号：ada；pass：hunter22x", "a password"),
        ("login: ada / 123e4567-e89b-42d3-a456-426614174000", "a login"),
        ("pays with 4111 1111 1111 1111", "a card number"),
        ("卡号４１１１１１１１１１１１１１１１", "a card number"),
        ("card 5500-0000-0000-0004", "a card number"),
        ("身份证号 11010519491231002X", "an identity number"),
        ("uses sk-abcdefghijklmnopqrstuv", "an access key"),
        ("token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "an access key"),
        ("AKIAIOSFODNN7EXAMPLE", "an access key"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("postgres://ada:secret@db/prod", "a password in an address"),
        ("api key: A1b2c3d4e5", "a secret"),
        ("密钥是 a8f5f167f44f", "a secret"),
        ("PIN is 1234", "a code"),
        ("the door code's 88421", "a code"),
        ("U盾PIN码是662810", "a code"),
        ("The SIM's PUK is 73518842", "a code"),
        ("My netflix pass is Bandit-2019", "a password"),
        ("Steam recovery code R12345", "a recovery phrase"),
        ("My passport number is C01X00T47", "an identity number"),
        ("access token是eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "an access key"),
        ("验证码是 482913", "a code"),
        ("My Netflix login is bob@x.com / Summer2024", "a login"),
        ("session token 2.0aB9xQ7", "a secret"),
        ("account manager's account number 12345678", "an account number"),
        ("account has number 12345678", "an account number"),
        ("account 123 456 789", "an account number"),
        ("key in /opt/bob/dGhpcyBpcyBhIHNlY3JldCBrZXkgMTIz0Q", "a key"),
        ("uses dGhpcyBpcyBhIHNlY3JldCBrZXkgMTIz0Q", "a key"),
    ],
)
def test_secrets_are_named(text, what):
    """In Chinese and English, whatever the width of the digits."""
    assert secret_in(text) == what


@pytest.mark.parametrize(
    "text",
    [
        "用户喜欢密码学",
        "Prefers password managers",
        "The user's password manager is Bitwarden",
        "用户的密码管理器是1Password",
        "The passport expires in June 2027",
        "The boarding pass is in the blue box",
        "Token budget is 2000",
        "order 4111 1111 1111 1112",
        "电话 13800138000",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 123e4567-e89b-42d3-a456-426614174000",
        "账号 0000；存档: 123e4567-e89b-42d3-a456-426614174000",
        "secret key management matters to the user",
        "likes https://example.com/docs/guide",
        "0000 0000 0000 0000",
        "用户的密码记性很差",
        "The user's team takes the session token from OAuth2.0",
        "To deploy run make token-check v2.3.4",
        "Account manager at Acme since 20180101",
        "The user's account has 1 000 000 followers",
        "Path /srv/bob/Projects/MyApp2024/src/components",
    ],
)
def test_what_only_looks_like_one_is_kept(text):
    """Ordinary talk about passwords, numbers and addresses."""
    assert secret_in(text) is None


def test_luhn():
    """The check digit of payment cards."""
    assert passes_luhn("79927398713") is False  # eleven digits are no card
    assert passes_luhn("4012888888881881") is True
    assert passes_luhn("4012888888881882") is False
