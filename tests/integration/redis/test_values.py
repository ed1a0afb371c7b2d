"""What is in Redis: the key and JSON of a session, for half an hour, and nothing that is not ours is believed."""

import json

import pytest

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.ports import CachedSession
from pagefile.records import Scope
from pagefile.stores import open_sessions
from pagefile.stores.redis import RedisOptions, RedisSessions
from tests.servers.valkey import ValkeyServer
from tests.waiting import until

CHAT = Scope(conversation="conv_1")
KEY = "short_term_memory:session:conv_1"
LABEL = "short_term_memory:version:{short_term_memory:session:conv_1}"
VALUE = {"meta": {"conversation_id": "conv_1"}, "user_snapshot": {"allergies": ["青霉素"]}}


@pytest.fixture
def cache(server, redis, opened):
    return opened(server.url)


async def test_another_program_reads_plain_json_at_the_document_s_key(cache, redis):
    """`GET short_term_memory:session:<conversation id>` is the SessionValue."""
    await cache.put(CHAT, VALUE, version=1)
    text = await redis.get(KEY)
    assert VALUE == json.loads(text)
    assert "青霉素" in text
    assert {KEY, LABEL} == set(await redis.keys())


async def test_a_read_is_one_question(cache, redis):
    """One round trip for the value and its label, and nothing is written: a wire of a millisecond costs it once."""
    await cache.put(CHAT, VALUE, version=1)
    await redis.config_resetstat()
    assert VALUE == (await cache.get(CHAT)).value
    asked = {
        name.removeprefix("cmdstat_"): one["calls"]
        for name, one in (await redis.info("commandstats")).items()
    }
    assert {"mget": 1} == {
        name: calls for name, calls in asked.items() if not name.startswith(("config", "info"))
    }


async def test_other_tenants_have_keys_of_their_own(cache, redis):
    """With the tenant's colons escaped."""
    await cache.put(Scope("a:b", "ada", "c:d"), VALUE, version=1)
    assert VALUE == json.loads(await redis.get("short_term_memory:tenant:a%3Ab:session:c:d"))


async def test_a_value_lives_for_1800_seconds_by_the_server_s_clock(cache, redis):
    """The label as long as the value; a write starts over, a late one does not."""
    await cache.put(CHAT, VALUE, version=1)
    assert 1_790_000 < await redis.pttl(KEY) <= 1_800_000
    assert await redis.pexpiretime(KEY) == await redis.pexpiretime(LABEL)
    await redis.pexpire(KEY, 50_000)
    await redis.pexpire(LABEL, 50_000)
    assert not await cache.put(CHAT, VALUE, version=1)
    assert await redis.pttl(KEY) <= 50_000
    assert await cache.put(CHAT, VALUE, version=2)
    assert 1_790_000 < await redis.pttl(KEY)
    assert 1_790_000 < await redis.pttl(LABEL)


async def nothing_in(redis):
    return not await redis.keys()


@pytest.mark.waits
async def test_the_server_lets_values_expire(server, redis, opened):
    """Nothing of ours stays behind."""
    cache = opened(server.url, ttl_s=0.05)
    await cache.put(CHAT, VALUE, version=1)
    await until(lambda: nothing_in(redis))
    assert await cache.get(CHAT) is None
    assert await cache.put(CHAT, VALUE, version=1)


async def damage_by_other_json(redis):
    await redis.set(KEY, json.dumps({"meta": "somebody else's"}))


async def damage_by_no_json(redis):
    await redis.set(KEY, "{")


async def damage_by_another_type(redis):
    await redis.delete(KEY)
    await redis.rpush(KEY, "a", "b")


async def damage_by_another_type_of_label(redis):
    await redis.delete(LABEL)
    await redis.hset(LABEL, "a", "b")


async def damage_by_no_label(redis):
    await redis.delete(LABEL)


async def damage_by_a_wrong_label(redis):
    await redis.set(LABEL, "99999999999999999999999 " + "0" * 40)


async def damage_by_a_value_from_another_key(redis):
    await redis.copy(KEY, "other")
    await redis.delete(KEY)
    digest = await redis.eval("return redis.sha1hex('other' .. redis.call('GET', 'other'))", 0)
    await redis.rename("other", KEY)
    await redis.set(LABEL, f"5 {digest}")


async def forgery(redis, text):
    await redis.set(KEY, text)
    await redis.eval(
        "redis.call('SET', KEYS[2], '4 ' .. redis.sha1hex(KEYS[1] .. ARGV[1]))", 2, KEY, LABEL, text
    )


async def damage_by_a_forged_text(redis):
    await forgery(redis, "not JSON \N{SNOWMAN}")


async def damage_by_a_forged_list(redis):
    await forgery(redis, "[1]")


@pytest.mark.parametrize(
    "damage",
    [
        damage_by_other_json,
        damage_by_no_json,
        damage_by_another_type,
        damage_by_another_type_of_label,
        damage_by_no_label,
        damage_by_a_wrong_label,
        damage_by_a_value_from_another_key,
        damage_by_a_forged_text,
        damage_by_a_forged_list,
    ],
)
async def test_what_is_not_ours_is_a_miss_and_gives_way(cache, redis, damage):
    """Whatever another program did to the keys: no error, and the next put mends it."""
    await cache.put(CHAT, VALUE, version=5)
    await damage(redis)
    assert await cache.get(CHAT) is None
    assert await cache.put(CHAT, VALUE, version=5)
    assert CachedSession(VALUE, 5) == await cache.get(CHAT)
    assert 0 == cache.errors


async def test_the_script_comes_back_by_itself(cache, redis):
    """When the server has forgotten it."""
    await cache.put(CHAT, VALUE, version=1)
    await redis.script_flush()
    assert await cache.put(CHAT, VALUE, version=2)
    assert 0 == cache.errors


async def test_a_unix_socket_leads_to_the_same_server(cache, server, redis, opened):
    """And to the same values."""
    await cache.put(CHAT, VALUE, version=1)
    assert CachedSession(VALUE, 1) == await opened(server.unix_url).get(CHAT)


async def test_a_password_opens_the_server_and_is_never_shown(opened, caplog):
    """The right one works; a wrong one is a miss, and neither is in the log."""
    with ValkeyServer(settings={"requirepass": "s3cr/t"}) as guarded:
        url = guarded.url.replace("//", "//:s3cr%2Ft@")
        assert await opened(url).put(CHAT, VALUE, version=1)
        for wrong in (guarded.url, url.replace("s3cr", "wr0ng")):
            cache = opened(wrong)
            assert await cache.get(CHAT) is None
            assert not await cache.put(CHAT, VALUE, version=2)
            assert 1 == cache.errors
    assert 2 == len(caplog.records)
    assert [] == [word for word in ("s3cr", "wr0ng") if word in caplog.text]


@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "http://h", "memory://", "redis:/h", "sqlite://:s3cret@h/x", "s3cret"]
)
def test_unknown_urls_are_told_the_known_ones(url):
    """Without repeating what may be a password."""
    with pytest.raises(SettingsError, match="redis://") as caught:
        open_sessions(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:s3cret/x@h:1/0",
        "redis://:s3cret?x@h:1/0",
        "redis://:s3cret#x@h:1/0",
        "redis://u:s3cret",
        "redis://h:1/0?socket_timeout=s3cret",
        "redis://h:1/0?s3cret=1",
        "redis://[s3cret",
    ],
)
def test_urls_that_cannot_be_read_keep_their_secrets(url):
    """When it is opened, and not when it is first used."""
    with pytest.raises(SettingsError) as caught:
        open_sessions(url)
    assert "s3cret" not in f"{caught.value!r} {caught.value.__cause__!r}"
    assert not isinstance(caught.value, MissingExtraError)


@pytest.mark.parametrize(
    "url", ["redis://localhost", "rediss://u:p%40@h:6380/3", "unix:///tmp/redis.sock?db=1"]
)
async def test_opening_connects_to_nothing(url):
    """There need not be a server yet."""
    cache = open_sessions(url)
    assert isinstance(cache, RedisSessions)
    await cache.close()


@pytest.mark.parametrize("options", [{"ttl_s": 0}, {"timeout_s": 0}, {"connections": 0}])
def test_options_that_make_no_sense_are_refused(options):
    """At once."""
    with pytest.raises(SettingsError):
        RedisOptions(**options)
