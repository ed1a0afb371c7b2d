"""What rules find in a text, what they leave alone, and that a redacted text stays as it is."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefile.engine.policy import Policy
from pagefile.errors import SettingsError
from pagefile.settings import PolicySettings, Settings
from pagefile.text.redaction import KINDS, Redaction

#: Made up; the card and account numbers are those that issuers publish for tests.
FOUND = [
    ("email", "Write to ada.lovelace+home@mail.example.com today."),
    ("email", "我的邮箱是zhang_wei@example.com.cn，谢谢"),
    ("phone", "call +44 20 7946 0958 tomorrow"),
    ("phone", "手机号13912345678，晚上打"),
    ("phone", "139-1234-5678"),
    ("phone", "(415) 555-2671"),
    ("phone", "座机 010-62345678"),
    ("card", "Visa 4111 1111 1111 1111, exp 12/29"),
    ("card", "5500-0000-0000-0004"),
    ("card", "4111 1111 1111 1111 12/29"),
    ("card", "American Express 3782 822463 10005"),
    ("card", "1234 4111 1111 1111 1111 is mine"),
    ("card", "4111 1111 1111 1111 123"),
    ("card", "卡号6222020200112230004，储蓄卡"),
    ("phone", "(555) 010-9999"),
    ("phone", "reach me: 555-010-9999"),
    ("phone", "13912345678"),
    ("phone", "13912345678 is my phone"),
    ("phone", "mobile=13912345678"),
    ("phone", "My phone number: 13812345678"),
    ("phone", "Phone number 13812345678"),
    ("phone", "Mobile no: 13812345678"),
    ("phone", "WeChat ID: 13812345678"),
    ("phone", "my number: 13812345678"),
    ("phone", "tel. id 13812345678"),
    ("phone", "联系编号：13812345678"),
    ("phone", '{"phone_number": "13812345678"}'),
    ("phone", '{"contact_number": "13812345678"}'),
    ("phone", '{\\"phone_number\\": \\"13812345678\\"}'),
    ("phone", "Order 5512, 13812345678"),
    ("phone", "订单号 20240101, 13812345678"),
    ("phone", '{"id": 17, "13812345678": 1}'),
    ("phone", "order 15932101785, 13812345678"),
    ("secret", "password: hunter2-Tr0ub4dor"),
    ("secret", '{"api_key": "0a1b2c3d4e5f"}'),
    ("secret", "密码：abc123!x"),
    ("secret", "DB_PASSWORD=hunter2x"),
    ("secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("secret", "Authorization: Bearer 0a1b2c3d4e5f"),
    ("secret", 'curl -H "authorization: Basic dXNlcjpwYXNzd29yZA=="'),
    ("secret", '{"Authorization": "Bearer 0a1b2c3d4e5f"}'),
    ("secret", "Bearer 0a1b2c3d4e5f0a1b2c3d4e5f"),
    ("secret", "postgres://u:pa55word@db.example.com/app"),
    ("iban", "DE89 3704 0044 0532 0130 00 BIC"),
    ("iban", "IBAN DE89 3704 0044 0532 0130 00"),
    ("iban", "GB29NWBK60161331926819"),
    ("chinese_id", "身份证号11010519491231002X。"),
    ("phone", "手机号１３９１２３４５６７８，晚上打"),
    ("email", "ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ 发邮件"),
    ("chinese_id", "身份证号１１０１０５１９４９１２３１００２Ｘ。"),
    ("secret", "export KEY=sk-proj-abcdefghijklmnopqrstuvwx1234"),
    ("secret", "token ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ("secret", "AKIAIOSFODNN7EXAMPLE"),
    ("secret", "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----"),
    ("secret", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"),
]
LEFT = [
    "The meeting is on 2026-11-18 at 14:30.",
    "Order 4111 1111 1111 1112 has no valid checksum.",
    "Version 10.20.30.40 and 192.168.100.200",
    "血压 135/90，空腹血糖 5.6，体重 72.5 公斤",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "Pi is 3.14159265358979323846, and 1234567890 is a number.",
    "follow @pagefile, see user@host and a@b",
    "身份证号110105194912310021 的校验位不对",
    "DE89 is the beginning of many accounts.",
    "the price went from 100-200-3000 points",
    "order 11142348-9282-4e90-bf35-0440d9fe3487",
    "at 1763902202300 ms, or 1763902202300000 µs",
    "nanoseconds 1763902202300123458 and a snowflake 1853902202300123451",
    "row 15932101785 of 13912345678901",
    "rows 15932101785, 15932101786",
    "it has 15932101785 bytes",
    "订单号15932101785已发货",
    "EAN 4006381333931",
    "sha 4111111111111111aa0e and 0x4111111111111111",
    "key-4111111111111111 and 4111111111111111-4a",
    "a sum of 4111111111111111.50",
    "password: required, at least twelve letters",
    "what is the password?",
    "OLDPWD=/srv/app1",
    "Authorization: Bearer <token>",
    '{"phone": null, "id": 15932101785}',
    "hotel order 15932101785",
    "ids: 15932101785, 15932101786",
    '{\\"order\\": \\"15932101785\\"}',
    "see https://example.com:8080/a@b",
]


@pytest.mark.parametrize(("kind", "text"), FOUND)
def test_what_has_a_form_is_removed(kind, text):
    """And counted under its kind, and only that."""
    redaction = Redaction(KINDS)
    made = redaction.text(text)
    assert made != text
    assert f"[{kind} removed]" in made
    assert {kind: 1} == dict(redaction.counts)


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_like_it_stays(text):
    assert text == Redaction(KINDS).text(text)


def test_of_a_named_secret_only_the_value_is_removed():
    text = "password: hunter2-Tr0ub4dor, postgres://u:pa55word@h/db"
    assert "password: [secret removed], postgres://u:[secret removed]@h/db" == Redaction(KINDS).text(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password: " + "aB3x" * 75 + " end", "password: [secret removed] end"),
        ("postgres://u:p@ss1@h/db", "postgres://u:[secret removed]@h/db"),
        ("postgres://u:" + "a1" * 300 + "@h/db", "postgres://u:[secret removed]@h/db"),
        ('"a://u:p1@h","mail":"x@y"', '"a://u:[secret removed]@h","mail":"x@y"'),
        (
            r'{"body": "{\"password\": \"hunter2x\", \"n\": 1}"}',
            r'{"body": "{\"password\": \"[secret removed]\", \"n\": 1}"}',
        ),
        ("Authorization: Bearer ab12.cd-34_ef==\nHost: h", "Authorization: Bearer [secret removed]\nHost: h"),
        ("call 13812345678 order 15932101785", "call [phone removed] order 15932101785"),
        ("Phone numbers: 13812345678, 13912345678", "Phone numbers: [phone removed], [phone removed]"),
    ],
)
def test_a_secret_is_removed_to_its_end(text, left):
    """And nothing behind it, so that JSON stays JSON."""
    assert left == Redaction(KINDS).text(text)


def test_ids_and_times_are_no_cards():
    """Of 20,000 made by chance, none: what was removed cannot be brought back."""
    chance = Random(7)
    ids = [str(UUID(int=chance.getrandbits(128), version=4)) for _ in range(5000)]
    digests = [f"{chance.getrandbits(160):040x}" for _ in range(5000)]
    times = [str(chance.randrange(10**12, 2 * 10**12)) for _ in range(5000)]
    times += [str(chance.randrange(10**18, 2 * 10**18)) for _ in range(5000)]
    text = "\n".join((*ids, *digests, *times))
    redaction = Redaction(KINDS)
    assert text == redaction.text(text), dict(redaction.counts)


def test_only_the_kinds_that_are_named():
    text = "a@example.com 4111111111111111"
    assert "a@example.com [card removed]" == Redaction({"card"}).text(text)


def test_ids_and_bytes_of_a_message_stay():
    """A provider needs them as they are."""
    message = {
        "role": "tool",
        "tool_call_id": "call_13912345678",
        "content": [{"type": "text", "text": "13912345678"}],
    }
    made = Redaction(KINDS).value(message)
    assert ("call_13912345678", "[phone removed]") == (made["tool_call_id"], made["content"][0]["text"])


@given(
    st.lists(st.sampled_from([*(text for _, text in FOUND), *LEFT, "，", " ", "0", "+"]), max_size=6).map(
        "".join
    )
)
def test_redacting_twice_changes_nothing_more(text):
    once = Redaction(KINDS).text(text)
    assert once == Redaction(KINDS).text(once)


@pytest.mark.parametrize(
    "text", ["1" * 200_000, "a" * 200_000 + "@", "+1 " * 60_000, "DE89 " + "A1B2 " * 40_000, "a." * 100_000]
)
def test_a_hostile_text_is_read_in_linear_time(text):
    """It comes back at all: a pattern that backtracks would take hours."""
    assert Redaction(KINDS).text(text)


def test_the_first_pattern_that_fits_applies():
    policy = Policy.of(
        Settings(policy=PolicySettings(redact="clinic=email+phone, t-*=none, *=all", retention="t-*=7d, *=0"))
    )
    assert [frozenset({"email", "phone"}), frozenset(), frozenset(KINDS)] == [
        policy.kinds(tenant) for tenant in ("clinic", "t-1", "other")
    ]
    assert [7.0, 0.0] == [policy.days(tenant) for tenant in ("t-1", "other")]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"redact": "clinic"}, "tenant=value"),
        ({"redact": "*=names"}, "chinese_id"),
        ({"retention": "*=soon"}, "days"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(given, word):
    """With what can be written instead."""
    with pytest.raises(SettingsError, match=word):
        Policy.of(Settings(policy=PolicySettings(**given)))


def test_keys_that_become_one_keep_their_values():
    redaction = Redaction(KINDS)
    made = redaction.value({"ada@example.com": 1, "bob@example.com": 2, "name": "Ada"})
    assert {"[email removed]": 1, "[email removed] 2": 2, "name": "Ada"} == made


def test_a_message_keeps_its_ids_and_bytes():
    """A provider needs them; arguments of a tool are not among them."""
    image = "data:image/png;base64,AKIAIOSFODNN7EXAMPLE/8="
    given = {"id": "AKIAIOSFODNN7EXAMPLE", "content": [{"image_url": image}, {"url": image}]}
    assert given == Redaction(KINDS).value(given, exact=True)
    responses = {"input": [{"role": "user", "id": "AKIAIOSFODNN7EXAMPLE", "content": []}]}
    assert responses == Redaction(KINDS).value(responses, exact=True)
    made = Redaction(KINDS).value({"input": {"id": "ada@example.com"}}, exact=True)
    assert {"input": {"id": "[email removed]"}} == made


def test_full_width_letters_beside_it_stay():
    assert "Ｔｅｌ：[phone removed]，ＯＫ" == Redaction(KINDS).text("Ｔｅｌ：13912345678，ＯＫ")
