"""Who may reach the service."""

import pytest

from pagefile import Settings, SettingsError
from pagefile.service.app import create_app
from pagefile.service.binding import allowed_names, check_binding, host_name
from pagefile.settings import ServiceSettings


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LocalHost", "::1", "[::1]", "127.8.9.1", "::ffff:127.0.0.1"]
)
def test_loopback_is_fine(host):
    """Only this machine can reach it."""
    check_binding(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.0.1", "example.com", "::ffff:10.0.0.1", "localhost."]
)
def test_beyond_loopback_is_refused(host):
    """A service without keys is nobody else's business; the error says what to do."""
    with pytest.raises(SettingsError, match=r"127\.0\.0\.1"):
        check_binding(host)
    with pytest.raises(SettingsError):
        create_app(Settings(url="memory://", service=ServiceSettings(host=host)))


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


def test_names_of_the_machine_are_allowed():
    """The loopback names, and the address the service listens on."""
    assert {"127.0.0.1", "localhost", "::1"} == allowed_names("127.0.0.1")
    assert "127.0.0.2" in allowed_names("127.0.0.2")
    assert {"127.0.0.1", "localhost", "::1"} == allowed_names("::1") == allowed_names("[::1]")
    assert "" not in allowed_names("127.0.0.1")
