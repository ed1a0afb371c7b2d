"""Who may reach the service."""

from datetime import UTC, datetime, timedelta

import pytest

from pagefile import SettingsError
from pagefile.records import Scope
from pagefile.service.auth import RateLimit
from pagefile.service.exposure import across_origins, allowed_names, check_binding, host_name, requires_keys
from pagefile.settings import ServiceSettings
from pagefile.stores import InMemoryStore
from pagefile.stores.key_secrets import new_key, presented
from pagefile.testing import FakeClock

NOW = datetime.now(UTC)


@pytest.fixture
def keys():
    return InMemoryStore(FakeClock()).keys


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LocalHost", "::1", "[::1]", "127.8.9.1", "::ffff:127.0.0.1"]
)
async def test_loopback_is_fine(host, keys):
    """Only this machine can reach it: no key is asked for unless somebody wants it."""
    await check_binding(ServiceSettings(host=host), keys)
    assert not requires_keys(ServiceSettings(host=host))
    assert requires_keys(ServiceSettings(host=host, require_keys=True))


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.168.0.1", "example.com", "::ffff:10.0.0.1", "localhost."]
)
async def test_beyond_loopback_a_key_is_needed(host, keys):
    """One that opens something: not a revoked one, not an expired one. The error says what to do."""
    service = ServiceSettings(host=host)
    revoked, _ = new_key("revoked", Scope(), created=NOW)
    await keys.add(revoked)
    await keys.revoke(revoked.id, NOW)
    await keys.add(new_key("old", Scope(), created=NOW, expires=NOW - timedelta(seconds=1))[0])
    with pytest.raises(SettingsError, match=r"`pagefile keys add NAME`, or listen on 127\.0\.0\.1"):
        await check_binding(service, keys)
    await keys.add(new_key("good", Scope(), created=NOW, expires=NOW + timedelta(days=1))[0])
    await check_binding(service, keys)
    assert requires_keys(service)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("127.0.0.1:8780", "127.0.0.1"),
        ("LOCALHOST", "localhost"),
        ("[::1]:8780", "::1"),
        ("[::1]", "::1"),
        ("::1", ""),
        ("localhost.evil.example:80", "localhost.evil.example"),
        ("[::1].evil.example", ""),
        ("127.0.0.1@evil.example", ""),
        ("localhost:80:evil", ""),
        ("localhost:evil", ""),
        ("localhost/..", ""),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header(header, name):
    """The name alone, however it is dressed; a name that only begins like ours is another name."""
    assert name == host_name(header)


def names(host="127.0.0.1", **settings):
    return allowed_names(ServiceSettings(host=host, **settings))


def test_names_of_the_machine_are_allowed():
    """The loopback names, and the address the service listens on."""
    assert {"127.0.0.1", "localhost", "::1"} == names()
    assert "127.0.0.2" in names("127.0.0.2")
    assert {"127.0.0.1", "localhost", "::1"} == names("::1") == names("[::1]")
    assert "" not in names()


def test_more_names_can_be_allowed():
    """Any name only where keys are required; what is no name is refused with the reason."""
    assert {"memory.example.com", "10.0.0.7", "fd00::7"} <= names(
        hosts="Memory.example.com, 10.0.0.7,[fd00::7],"
    )
    assert "*" in names("0.0.0.0", hosts="*") & names(hosts="*", require_keys=True)
    with pytest.raises(SettingsError, match="require_keys"):
        names(hosts="*")
    for wrong in ("https://memory.example.com", "memory.example.com:443", "a b"):
        with pytest.raises(SettingsError, match="without a port"):
            names(hosts=wrong)


def test_origins_are_named_one_by_one():
    """None unless set; never any page there is."""
    assert [] == across_origins(ServiceSettings())
    assert 1 == len(
        across_origins(ServiceSettings(cors_origins="https://app.example.com, http://localhost:3000"))
    )
    for wrong in ("*", "app.example.com", "https://app.example.com/", "null", "file://x"):
        with pytest.raises(SettingsError, match="is not an origin"):
            across_origins(ServiceSettings(cors_origins=wrong))


def test_a_limit_lets_through_this_many_a_minute():
    """All at once, then one for each part of a minute; each caller for themselves."""
    time = [0.0]
    limit = RateLimit(60, now=lambda: time[0])
    assert [0] * 60 == [limit.wait_s("a") for _ in range(60)]
    assert 1 == limit.wait_s("a")
    assert 0 == limit.wait_s("b")
    time[0] += 1.5
    assert [0, 1] == [limit.wait_s("a") for _ in range(2)]
    time[0] += 1000
    assert [0] * 60 + [1] == [limit.wait_s("a") for _ in range(61)]
    slow = RateLimit(2, now=lambda: time[0])
    assert [0, 0, 30] == [slow.wait_s("a") for _ in range(3)]
    assert {0} == {RateLimit(0).wait_s("a") for _ in range(1000)}


def test_a_key_is_told_once():
    """Its text opens it and no other key; what is kept does not tell the text."""
    key, text = new_key("laptop", Scope("诊所", "李雷", "c"), created=NOW)
    other, _ = new_key("laptop", Scope("诊所"), created=NOW)
    shown = presented(f" {text} ")
    assert text.startswith(f"pf_{key.id}_")
    assert (True, False, False) == (shown.is_for(key), shown.is_for(other), shown.is_for(None))
    secret = text.removeprefix(f"pf_{key.id}_")
    assert secret not in repr(key) + key.digest + repr(shown)
    assert key.digest not in repr(key)
    assert Scope("诊所", "李雷") == key.scope
    for wrong in ("", "pf_", secret, text[:-1], text + "x", text.replace("pf_", "sk_"), text.upper()):
        assert presented(wrong) is None
