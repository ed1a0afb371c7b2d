"""Settings files, variables, addresses and headers: read, or refused with an error that says where and what to write."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefile import PagefileError, SettingsError
from pagefile.cli.measures import size, span, when
from pagefile.errors import HandleNotFoundError
from pagefile.records import Scope
from pagefile.service.exposure import host_name, is_loopback
from pagefile.service.inspector_auth import prefers_chinese
from pagefile.settings.model import parsed
from pagefile.settings.sources import load, shown
from pagefile.stores.key_secrets import new_key, presented
from pagefile.stores.milvus.driver import Place as MilvusPlace
from pagefile.stores.postgres.address import Place as PostgresPlace
from pagefile.stores.registry import open_store
from pagefile.tiers.page_in import checked_uuid
from pagefile.wire.requests import behind, cursor_of

from .values import ODD, PIECES, TEXT

FILES = st.one_of(
    PIECES,
    st.lists(
        st.tuples(
            st.sampled_from(["url", "window_tokens", "facts", "facts.enabled", "[facts]", "service", "x", "", "1", "null"]),
            st.sampled_from([" = ", ": ", ":\n  ", "="]),
            st.one_of(PIECES, st.sampled_from(["1", "1e999", "-1", "true", "2024-13-45", "[1]", "{a: 1}", "&a [*a]", "'x'", '"x"', "~"])),
        ).map("".join),
        max_size=5,
    ).map("\n".join),
)  # fmt: skip
DEEP = [
    "[" * 5000,
    "a = " + "[" * 5000,
    "a: " + "[" * 2000 + "]" * 2000,
    "{a: " * 2000,
    "a = 9" + "9" * 5000,
    "a: 9" + "9" * 5000,
]


@settings(max_examples=60)
@given(FILES, st.sampled_from([".toml", ".yaml"]))
def test_a_settings_file_is_read_or_refused_by_name(tmp_path_factory, text, suffix):
    """Whatever somebody saved; the error names the file."""
    file = tmp_path_factory.mktemp("settings") / f"pagefile{suffix}"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load(file=file, environ={})
    except SettingsError as error:
        assert file.name in str(error)  # noqa: PT017 - most files are refused, and some are read


@pytest.mark.parametrize("suffix", [".toml", ".yaml"])
@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_a_settings_file_may_be_deep_or_long(tmp_path, text, suffix):
    """Deeper than a parser goes, and with numbers longer than Python writes."""
    file = tmp_path / f"pagefile{suffix}"
    file.write_text(text)
    with pytest.raises(SettingsError, match=f"pagefile{suffix}"):
        load(file=file, environ={})


@given(st.dictionaries(st.sampled_from(["PAGEFILE_WINDOW_TOKENS", "PAGEFILE_THRESHOLD", "PAGEFILE_FACTS__ENABLED", "PAGEFILE_URL", "PAGEFILE_", "PAGEFILE_X__Y__Z"]), st.one_of(TEXT, st.sampled_from(["9" * 5000, "nan", "inf", "1e400", "٣", "0x10", "1_000"])), max_size=3))  # fmt: skip
def test_variables_are_read_or_refused_by_name(environ):
    """All that is wrong, in one error."""
    try:
        load(file=Path(__file__).with_name("empty.toml"), environ=environ)
    except SettingsError as error:
        assert "$PAGEFILE_" in str(error)  # noqa: PT017 - likewise


@given(st.sampled_from(["window_tokens", "threshold", "facts.enabled", "url"]), PIECES)
def test_a_setting_of_the_command_line_is_some_value(name, text):
    """`--set NAME=VALUE`: what it means is decided later, by the same check as everywhere."""
    parsed(name, text)


@given(st.sampled_from(["postgresql://", "milvus://", "https://", "redis://"]), st.text(alphabet=ODD, max_size=12), st.text(alphabet=ODD.replace("@", "").replace("/", ""), min_size=4, max_size=20))  # fmt: skip
def test_no_password_is_shown(scheme, user, password):
    """However strange the characters in it."""
    user = user.translate(str.maketrans("", "", ":/@?#"))
    assert f":{password}@" not in str(shown(f"{scheme}{user}:{password}@host/x", "url"))


ADDRESS = st.builds(
    lambda scheme, rest: f"{scheme}://{rest}",
    st.sampled_from(["postgresql", "sqlite", "milvus", "memory", "redis", "", "PostgreSQL"]),
    st.one_of(
        PIECES,
        st.builds(
            lambda name, value: f"u:p@h/db?{name}={value}",
            st.sampled_from(["pool_min", "pool_max", "command_timeout", "statement_cache", "schema", "x"]),
            st.one_of(
                TEXT, st.sampled_from(["nan", "inf", "-inf", "1e400", "9" * 400, "-1", "", "0.5", "١"])
            ),
        ),
        st.sampled_from(["[", "[::1", "h:99999", "h:x/", "a@b@c/d", "%00", "/%00.db", "//x"]),
    ),
)


@given(ADDRESS)
@example("postgresql://h/d?pool_max=nan")
@example("postgresql://h/d?pool_max=inf")
@example("postgresql://[")
@example("postgresql://h/d?schema=\ud800")
def test_an_address_is_read_or_refused(url):
    """With an error of ours that shows no password."""
    for read in (PostgresPlace.of, MilvusPlace.of):
        try:
            read(url)
        except PagefileError as error:
            assert ":p@" not in str(error)  # noqa: PT017 - likewise


@pytest.mark.anyio
@pytest.mark.parametrize("url", ["sqlite:////a\0b.db", "sqlite:///%00", "sqlite:///\ud800.db", "x", "", "sqlite://h/x", "redis://x", "sqlite:////proc/none/x.db"])  # fmt: skip
async def test_a_store_that_cannot_be_opened_says_so(url):
    """And makes no file."""
    with pytest.raises(PagefileError):
        await open_store(url)


# -- headers and small formats --------------------------------------------------------------------------------------------


@given(st.one_of(PIECES, st.sampled_from(["localhost:8780", "[::1]:1", "127.0.0.1", "a.b:", "[::1", "a@b"])))
def test_headers_of_any_text_are_read(text):
    """Host, Accept-Language, Authorization."""
    name = host_name(text)
    assert name == name.lower()
    assert "/" not in name
    is_loopback(text)
    prefers_chinese(text)
    assert presented(text) is None or text.strip().startswith("pf_")


def test_a_key_comes_back_from_its_text():
    """And from nothing that is nearly it."""
    key, written = new_key("n", Scope("t"), created=datetime(2026, 1, 1, tzinfo=UTC))
    found = presented(f" {written}\n")
    assert found is not None
    assert found.is_for(key)
    for wrong in (
        written[:-1],
        written + "a",
        written.upper(),
        written.replace("_", "-"),
        "pf__",
        written + "\0",
    ):
        other = presented(wrong)
        assert other is None or not other.is_for(key)


@given(PIECES)
def test_sizes_and_spans_are_read_or_refused(text):
    """`100MB`, `30d`: nothing else is half a number."""
    for read, least in ((size, 0), (span, timedelta(0))):
        try:
            assert read(text) >= least
        except typer.BadParameter:
            continue


@given(st.one_of(PIECES, st.datetimes(timezones=st.sampled_from([None, UTC])).map(datetime.isoformat)))
def test_a_moment_is_read_or_refused(text):
    """It has a time zone always."""
    try:
        assert when(text).tzinfo is not None
    except typer.BadParameter:
        return


@given(st.one_of(PIECES, st.just("11111111-2222-4333-8444-555555555555"), st.uuids().map(str)))
def test_a_uuid_is_one_or_is_refused(text):
    """In its one spelling."""
    try:
        assert checked_uuid(text) == checked_uuid(checked_uuid(text))
    except HandleNotFoundError:
        return


@given(st.datetimes(), TEXT.filter(lambda text: " " not in text[:1] and text.strip()))
def test_a_cursor_comes_back(at, last):
    """Whatever an id is called."""
    moment = at.replace(tzinfo=UTC)
    assert (moment, last) == behind(cursor_of(moment, last))
