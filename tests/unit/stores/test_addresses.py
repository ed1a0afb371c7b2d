"""An address that cannot be read is refused with what to write, and without the password in it."""

import pytest

from pagefile import SettingsError
from pagefile.settings.sources import shown
from pagefile.stores.milvus.driver import Place as MilvusPlace
from pagefile.stores.postgres.address import Place

#: Passwords with a character that must be percent-encoded, of which none is.
UNESCAPED = ["pf/Secret@9", "12/Secret@9", "12/Secret", "12?Secret", "12#Secret", "pf?Secret", "pf#Secret"]


@pytest.mark.parametrize("scheme", ["postgresql", "milvus"])
@pytest.mark.parametrize("password", UNESCAPED)
def test_an_unescaped_password_is_refused_and_not_shown(scheme, password):
    read = Place.of if scheme == "postgresql" else MilvusPlace.of
    with pytest.raises(SettingsError) as caught:
        read(f"{scheme}://pagefile:{password}@127.0.0.1:19500/pagefile")
    told = str(caught.value)
    assert "%2F" in told
    assert "Secret" not in told
    assert "pf" not in told


@pytest.mark.parametrize(("address", "port"), [("u:Secret@h:abc/db", "abc"), ("u:Secret@h:99999/db", "99999"), ("u:Secret@a:1,b:x/db", "x"), ("u:Secret@[::1]:y/db", "y"), ("u:Secret@h/db?port=z", "z")])  # fmt: skip
def test_a_port_that_is_none_is_named(address, port):
    with pytest.raises(SettingsError, match=f"'{port}'") as caught:
        Place.of(f"postgresql://{address}")
    assert "Secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["u:p%2F%40@h:5432/db", "h", "a:1,b:2/db", "a,b/db", "[::1]:5432/db", "[::1]/db", "/db?host=%2Frun", "%2Frun/db", "h/db?user=a@b", "h/db?port=1,2", "h:/db", "h:%35/db"])  # fmt: skip
def test_addresses_of_postgresql_are_read(address):
    assert Place.of(f"postgresql://{address}").dsn


@pytest.mark.parametrize("password", [*UNESCAPED, "a:b", "a@b", "plain", "%2F"])
@pytest.mark.parametrize("scheme", ["postgresql", "redis", "milvus", "https"])
def test_whatever_the_password_nothing_of_it_is_shown(scheme, password):
    assert shown(f"{scheme}://u:{password}@h:1/db") == f"{scheme}://u:***@h:1/db"


def test_a_password_among_the_options_is_not_shown():
    assert shown("postgresql://h:1/db?password=a@b&x=1") == "postgresql://h:1/db?password=***&x=1"
