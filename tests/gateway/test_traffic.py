"""The inspector's page of the gateway's traffic, and what requests cost."""

import httpx
import pytest

from pagefile.errors import SettingsError
from pagefile.gateway.prices import Prices, Usage, read_prices, usage_of
from pagefile.inspector import urls
from pagefile.settings import ServiceSettings
from tests.gateway.behind import behind, new_text
from tests.gateway.scripts import QUESTION, asked, echo, streamed
from tests.gateway.upstream import Fault

PRICES = """
currency = "EUR"
["gpt-5"]
input = 1000
output = 2000
["claude"]
input = 3
output = 15
"""


@pytest.fixture
def prices(tmp_path):
    (tmp_path / "prices.toml").write_text(PRICES)
    return {"prices": str(tmp_path / "prices.toml")}


def requests_of(here, **options):
    return httpx.get(here.url + urls.twin(urls.GATEWAY), **options).json()


def test_a_request_is_on_the_page_when_it_is_over(tmp_path, prices):
    """Model, latency, tokens, price, status, and where it is in the log."""
    with behind(echo, tmp_path, gateway=prices) as here:
        asked(here.openai(), QUESTION, user="ada")
        (one,) = requests_of(here)["requests"]
        assert ("gpt-5", "chat", "recorded", 200) == tuple(
            one[name] for name in ("model", "protocol", "status", "code")
        )
        assert (10, 5, 0.02) == (one["tokens_in"], one["tokens_out"], pytest.approx(one["price"]))
        assert one["seconds"] > one["window_s"] > 0
        page = httpx.get(here.url + urls.GATEWAY)
        assert "3" == page.headers["refresh"]
        assert "0.02 EUR" in page.text
        for path in (urls.CONVERSATION, urls.CALL):
            (href,) = {
                part.split('"')[0] for part in page.text.split('href="') if part.startswith(f"{path}?")
            }
            assert "Where do I live?" in httpx.get(here.url + href.replace("&amp;", "&")).text
        assert "Where do I live?" not in page.text


def test_a_page_that_is_paused_stays_as_it_is(tmp_path):
    with behind(echo, tmp_path) as here:
        assert "refresh" not in httpx.get(here.url + urls.GATEWAY, params={"paused": "yes"}).headers


@pytest.mark.parametrize(
    ("fault", "code"), [(Fault(status=529), 529), (Fault(cut_after=2), None)], ids=["refused", "cut"]
)
def test_what_went_wrong_is_told(tmp_path, fault, code):
    with behind(lambda _: fault, tmp_path) as here:
        with pytest.raises(Exception, match=r".*"):
            streamed(here.openai(), QUESTION)
        (one,) = requests_of(here)["requests"]
        assert code == one["code"]
        assert ("529" if code else "broken off") in httpx.get(here.url + urls.GATEWAY).text


def test_everybody_sees_only_their_own(tmp_path):
    with behind(echo, tmp_path, service=ServiceSettings(require_keys=True)) as here:
        with here.memory() as memory:
            keys = {name: new_text(memory, name, name) for name in ("ada", "eve")}
        asked(here.openai(default_headers={"x-pagefile-key": keys["ada"]}), QUESTION)
        for name, count in (("ada", 1), ("eve", 0)):
            headers = {"x-pagefile-key": keys[name], "authorization": f"Bearer {keys[name]}"}
            assert count == len(requests_of(here, headers=headers)["requests"])
        assert 401 == httpx.get(here.url + urls.twin(urls.GATEWAY)).status_code


def test_without_a_provider_the_page_says_what_to_do(tmp_path):
    with behind(echo, tmp_path, gateway={"openai_url": None, "anthropic_url": None}) as here:
        assert "gateway.openai_url" in httpx.get(here.url + urls.GATEWAY).text


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({}, None),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(9, 2, 4),
        ),
        (
            {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}},
            Usage(9, 2, 4),
        ),
        (
            {
                "input_tokens": 1,
                "output_tokens": 2,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 3,
            },
            Usage(9, 2, 5, 3),
        ),
        ({"prompt_tokens": "many", "completion_tokens": None}, Usage(0, 0)),
    ],
)
def test_tokens_as_providers_count_them(told, usage):
    assert usage == usage_of(told)


def test_a_price_is_that_of_the_longest_name():
    prices = Prices(
        "USD",
        {
            "gpt-5": {"input": 1.0, "output": 10.0, "cached": 0.1},
            "gpt-5-mini": {"input": 0.5, "output": 2.0, "written": 4.0},
        },
    )
    assert 20.0 == prices.of("gpt-5-2026-01-01", Usage(10_000_000, 1_000_000))
    assert pytest.approx(0.1) == prices.of("gpt-5", Usage(1_000_000, 0, cached=1_000_000))
    assert 4.5 == prices.of("gpt-5-mini", Usage(2_000_000, 0, cached=1_000_000, written=1_000_000))
    assert prices.of("other", Usage(1, 1)) is None
    assert prices.of("gpt-5", None) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "cannot be read"),
        ('["gpt-5"]\ninput = 1\noutput = 2', "currency"),
        ('currency = "USD"\n["gpt-5"]\ninput = 1', "input and output"),
        ('currency = "USD"\n["gpt-5"]\ninput = -1\noutput = 1', "0 or more"),
        ('currency = "USD"\n["gpt-5"]\ninput = 1\noutput = nan', "0 or more"),
        ('currency = "USD"\ngpt-5 = 1', "input and output"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(tmp_path, text, says):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=says):
        read_prices(str(path))


def test_a_table_that_is_not_there_is_refused():
    with pytest.raises(SettingsError, match="cannot be read"):
        read_prices("nowhere.toml")
