"""What the service does with every request it also does with the gateway's: spans, metrics, limits, repeated requests."""

import asyncio

import anthropic
import httpx
import openai
import pytest

from pagefile.errors import StoreUnavailableError
from pagefile.gateway.session import Call
from pagefile.settings import ServiceSettings
from tests.gateway.behind import behind
from tests.gateway.scripts import QUESTION, asked, echo, streamed
from tests.gateway.upstream import Fault

BODY = {"model": "gpt-5", "messages": QUESTION}


@pytest.mark.parametrize("ask", [asked, streamed])
def test_a_span_has_the_names_of_generative_ai(tmp_path, spans, ask):
    with behind(echo, tmp_path, service=ServiceSettings(tracing=True)) as here:
        options = {"stream_options": {"include_usage": True}} if ask is streamed else {}
        ask(here.openai(), QUESTION, **options)
    (span,) = spans.get_finished_spans()
    assert "chat gpt-5" == span.name
    told = span.attributes
    assert ("chat", "openai", "gpt-5") == tuple(
        told[f"gen_ai.{name}"] for name in ("operation.name", "provider.name", "request.model")
    )
    assert (10, 5) == (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"])
    assert "Where do I live?" not in span.to_json()


def test_requests_are_counted(tmp_path):
    with behind(echo, tmp_path) as here:
        asked(here.openai(), QUESTION)
        told = httpx.get(f"{here.url}/metrics").text
        assert 'pagefile_gateway_requests_total{protocol="chat",status="recorded"} 1.0' in told
        assert "pagefile_gateway_window_seconds_count 1.0" in told


def test_the_bill_is_where_the_header_says(tmp_path):
    """The inspector shows what the model saw of a request, and why."""
    with behind(echo, tmp_path) as here:
        raw = here.openai().chat.completions.with_raw_response.create(
            model="gpt-5", messages=QUESTION, user="ada"
        )
        page = httpx.get(here.url + raw.headers["x-pagefile-bill"])
        assert 200 == page.status_code
        assert "Where do I live?" in page.text


def test_requests_are_limited(tmp_path):
    """Too many requests, and bodies that are too large, do not reach the provider."""
    service = ServiceSettings(requests_per_minute=2, max_body_bytes=10_000)
    with behind(echo, tmp_path, service=service) as here:
        url = f"{here.url}/v1/chat/completions"
        assert 413 == httpx.post(url, json={**BODY, "padding": "x" * 20_000}).status_code
        assert [200, 200, 429] == [httpx.post(url, json=BODY).status_code for _ in range(3)]
        assert 2 == len(here.upstream.requests)


def test_a_request_that_is_sent_twice_is_carried_out_once(tmp_path):
    with behind(echo, tmp_path) as here:
        headers = {"idempotency-key": "stainless-retry-1"}
        url = f"{here.url}/v1/chat/completions"
        first, second = (httpx.post(url, json=BODY, headers=headers) for _ in range(2))
        assert first.content == second.content
        assert "true" == second.headers["idempotency-replayed"]
        assert 1 == len(here.upstream.requests)
        assert 1 == sum(map(len, here.talks()))


def test_a_slow_memory_of_one_user_costs_no_other_the_memory(tmp_path, monkeypatch):
    prepare = Call.prepare

    async def slow(call):
        if call.who.user == "ada":
            await asyncio.sleep(30)
        return await prepare(call)

    monkeypatch.setattr(Call, "prepare", slow)
    with behind(echo, tmp_path, gateway={"deadline_s": 3.0}) as here:
        url = f"{here.url}/v1/chat/completions"
        answers = [
            httpx.post(url, json=BODY, headers={"x-pagefile-user": name}, timeout=30)
            for name in ("ada", "bob")
        ]
        assert ["bypassed", "recorded"] == [answer.headers["x-pagefile-status"] for answer in answers]


def test_an_error_that_is_to_be_raised_is_told(tmp_path, monkeypatch):
    async def failing(_):
        raise StoreUnavailableError("The database is away.")

    monkeypatch.setattr(Call, "prepare", failing)
    with behind(echo, tmp_path, on_tier_error="raise") as here:
        answer = httpx.post(f"{here.url}/v1/chat/completions", json=BODY)
        assert (503, "application/problem+json") == (answer.status_code, answer.headers["content-type"])


def test_a_page_of_another_site_cannot_spend_tokens(tmp_path):
    with behind(echo, tmp_path) as here:
        url = f"{here.url}/v1/chat/completions"
        assert 403 == httpx.post(url, json=BODY, headers={"origin": "https://evil.example"}).status_code
        assert 415 == httpx.post(url, content="{}", headers={"content-type": "text/plain"}).status_code
        assert [] == here.upstream.requests


def test_a_provider_that_is_not_there(tmp_path, caplog):
    """The answer is an error in the providers' words, and the turn waits to be asked again. Where it should be, only the log says."""
    with behind(echo, tmp_path, gateway={"openai_url": "http://u:secret@127.0.0.1:9/v1"}) as here:
        answer = httpx.post(f"{here.url}/v1/chat/completions", json=BODY)
        assert (502, "upstream_unreachable") == (answer.status_code, answer.json()["error"]["code"])
        told = "The provider cannot be reached: look at gateway.openai_url."
        assert told == answer.json()["error"]["message"]
        lines = [record.getMessage() for record in caplog.records if record.name == "pagefile.service"]
        assert [
            "a provider failed: ConnectError (gateway.openai_url is http://u:***@127.0.0.1:9/v1)"
        ] == lines
        assert [["open"]] == [[turn[2] for turn in talk] for talk in here.talks()]


def test_a_provider_that_falls_silent_is_an_error_for_the_client(tmp_path):
    """In an event, since a proxy in between may end the stream as if it were complete."""
    with behind(lambda _: Fault(stalls_after=2, stall_s=3), tmp_path, gateway={"timeout_s": 1.0}) as here:
        with pytest.raises(openai.APIError, match=r"sent nothing for 1 s \(gateway.timeout_s\)"):
            list(here.openai().chat.completions.create(model="gpt-5", messages=QUESTION, stream=True))
        heard = []
        with pytest.raises(openai.APIConnectionError):
            for event in here.openai().responses.create(model="gpt-5", input="hi", stream=True):
                heard.append((event.type, getattr(event, "message", "")))  # noqa: PERF401 - the stream raises at its end
        assert ("error", "The provider sent nothing for 1 s (gateway.timeout_s).") == heard[-1]
        with pytest.raises(anthropic.APIStatusError, match="sent nothing for 1 s"):
            list(
                here.anthropic().messages.create(
                    model="claude-x", max_tokens=9, messages=QUESTION, stream=True
                )
            )


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (httpx.PoolTimeout(""), 504, "No connection to the provider became free in 5 s (gateway.timeout_s)."),
        (httpx.WriteTimeout(""), 504, "The provider took nothing for 5 s (gateway.timeout_s)."),
        (httpx.ReadTimeout(""), 504, "The provider sent nothing for 5 s (gateway.timeout_s)."),
        (httpx.ConnectTimeout(""), 504, "The provider cannot be reached: look at gateway.openai_url."),
    ],
)
def test_each_way_to_wait_has_words_of_its_own(tmp_path, monkeypatch, error, status, told):
    def failing(*_, **__):
        raise error

    with behind(echo, tmp_path, gateway={"timeout_s": 5.0}) as here:
        monkeypatch.setattr(httpx.AsyncClient, "stream", failing)
        answer = httpx.post(f"{here.url}/v1/chat/completions", json=BODY)
        assert (status, told) == (answer.status_code, answer.json()["error"]["message"])


def test_what_fails_is_said_in_words(tmp_path):
    """A provider that is slow, and one that closes."""
    with behind(lambda _: Fault(sleep_s=2), tmp_path, gateway={"timeout_s": 0.5}) as here:
        answer = httpx.post(f"{here.url}/v1/chat/completions", json=BODY)
        assert (504, "The provider sent nothing for 0.5 s (gateway.timeout_s).") == (
            answer.status_code,
            answer.json()["error"]["message"],
        )


def test_a_slow_provider_costs_nothing_but_time(tmp_path):
    with behind(lambda _: Fault(sleep_s=0.3, said=echo({"messages": QUESTION})), tmp_path) as here:
        assert "answer 1" == asked(here.openai(), QUESTION).choices[0].message.content


def test_a_provider_that_breaks_off_is_one_line_in_the_log(tmp_path, caplog):
    """It is no failure of ours, and the client learns of it: the connection is closed before the end."""
    with behind(lambda _: Fault(cut_after=2), tmp_path) as here:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{here.url}/v1/chat/completions", json={**BODY, "stream": True})
        told = [record for record in caplog.records if record.name == "pagefile.service"]
    assert ["a provider broke off: RemoteProtocolError"] == [record.getMessage() for record in told]
    assert all(record.exc_info is None for record in caplog.records)


def test_the_status_says_whether_memory_took_part(tmp_path):
    """Only the day was added to the first request, and nothing left out of it; the second one has what the first said."""
    with behind(echo, tmp_path) as here:
        said = [
            here.openai()
            .chat.completions.with_raw_response.create(
                model="gpt-5", messages=[{"role": "user", "content": text}], user="ada"
            )
            .headers["x-pagefile-status"]
            for text in ("I am allergic to peanuts.", "What am I allergic to?")
        ]
        assert ["recorded", "memory"] == said
        assert "I am allergic to peanuts." in str(here.upstream.last["messages"])
