"""Models behind OpenAI's protocol."""

import sys
from contextlib import aclosing
from dataclasses import fields

import pytest

from pagefile import Memory, PagefileError, Settings
from pagefile.models import OpenAIChat
from pagefile.settings import FactSettings, ModelSettings
from tests.findings.marks import finding

from .openai_stub import CompletionsStub
from .promises import promised

ASKED = [{"role": "user", "content": "hello"}]
FACTS = (
    '{"facts": [{"turn": 1, "quote": "I prefer trains to planes", '
    '"text": "The user prefers trains.", "category": "preference", "confidence": 0.9}]}'
)


#: What the model writes, whatever it is asked for but facts.
SUMMARY = "A fine summary by the model: the user prefers trains to planes, numbers 0, 1, 2 and 3."


def like_gpt_5(request):
    """Refuses what models of the class of GPT-5 refuse, and answers otherwise."""
    if "max_tokens" in request:
        return 400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    if request.get("temperature", 1) != 1:
        return 400, "Unsupported value: 'temperature' does not support 0 with this model."
    return FACTS if "JSON" in str(request["messages"][0]) else SUMMARY


@pytest.fixture
def gpt_5():
    with CompletionsStub(like_gpt_5) as stub:
        yield stub


def chat_of(stub):
    return OpenAIChat("gpt-5", base_url=f"{stub.url}/v1", api_key="k")


# -- F12: models of the class of GPT-5 ---------------------------------------------------------------------------------


@finding("frameworks-F12")
async def test_a_model_that_refuses_parameters_answers(gpt_5):
    """A model that takes neither `max_tokens` nor a temperature answers, and still has a limit."""
    chat = chat_of(gpt_5)
    try:
        with promised("the model answers"):
            assert SUMMARY == await chat.complete(ASKED, max_tokens=100)
    finally:
        await chat.close()
    assert 100 == gpt_5.requests[-1]["max_completion_tokens"]


@finding("frameworks-F12")
async def test_a_model_that_refuses_parameters_streams(gpt_5):
    """Such a model can be streamed."""
    chat = chat_of(gpt_5)
    pieces = [piece.text async for piece in chat.stream(ASKED)]
    await chat.close()
    assert SUMMARY == "".join(pieces).strip()


@pytest.fixture
async def by_gpt_5(gpt_5):
    model = ModelSettings(name="gpt-5", base_url=f"{gpt_5.url}/v1", api_key="k")
    settings = Settings(language="en", model=model, facts=FactSettings(extract="model"))
    async with Memory.open("memory://", settings=settings, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        for number in range(4):
            await chat.record(user=f"I prefer trains to planes, number {number}.", assistant="Noted.")
        yield memory


@finding("frameworks-F12")
async def test_such_a_model_writes_the_summaries(by_gpt_5):
    """The summary of a checkpoint is the model's."""
    checkpoint = await by_gpt_5.conversation("c", user_id="ada").checkpoint(recent_turns=1)
    assert SUMMARY in checkpoint.summary


@finding("frameworks-F12")
async def test_such_a_model_finds_the_facts(by_gpt_5):
    """The facts that the model read out of the conversation are kept."""
    await by_gpt_5.settle()
    assert "The user prefers trains." in [fact.text for fact in await by_gpt_5.facts("ada")]


@finding("frameworks-F12")
async def test_a_refusal_is_told_in_the_servers_words():
    """Whoever reads the error learns what the server said."""
    with CompletionsStub(lambda _: (400, "This account may not use the model.")) as stub:
        chat = chat_of(stub)
        with pytest.raises(PagefileError) as caught:
            await chat.complete(ASKED, max_tokens=100)
        await chat.close()
    assert "This account may not use the model." in str(caught.value)


def differing(one, other):
    """The fields that tell two checkpoints of equal turns apart, beside those that always do."""
    names = {field.name for field in fields(one)} - {"id", "scope", "created", "summary", "tokens"}
    return sorted(name for name in names if getattr(one, name) != getattr(other, name))


@finding("frameworks-F12")
async def test_a_checkpoint_says_that_its_summary_was_extracted():
    """Beside its words, a checkpoint made without the model differs from one that the model made."""
    made = []
    for answer in (SUMMARY, (500, "down")):
        with CompletionsStub(lambda _, answer=answer: answer) as stub:
            model = ModelSettings(name="m", base_url=f"{stub.url}/v1", api_key="k")
            settings = Settings(language="en", model=model)
            async with Memory.open("memory://", settings=settings, embedder="none") as memory:
                chat = memory.conversation("c", user_id="ada")
                await chat.record(user="I prefer trains.", assistant="Noted.")
                await chat.record(user="And tea.", assistant="Noted.")
                made.append(await chat.checkpoint(recent_turns=1))
    assert SUMMARY in made[0].summary
    assert "trains" in made[1].summary
    assert differing(*made)


# -- F13: the extra `openai` alone --------------------------------------------------------------------------------------


@pytest.fixture
def without_httpx(monkeypatch):
    """The extra `openai` brings its client and what that is made of, and not `httpx`."""
    monkeypatch.setitem(sys.modules, "httpx", None)


@finding("frameworks-F13")
@pytest.mark.usefixtures("without_httpx")
@pytest.mark.parametrize("told", [(500, "down"), "one two BROKEN"], ids=["refused", "garbled"])
async def test_a_broken_stream_is_an_error_of_ours(told):
    """With the extra `openai` alone, a stream that is refused or garbled ends in an error of Pagefile's."""
    with CompletionsStub(lambda _: told) as stub:
        chat = chat_of(stub)
        raised = await _raised(chat)
        await chat.close()
    assert isinstance(raised, PagefileError)


@finding("frameworks-F13")
@pytest.mark.usefixtures("without_httpx")
async def test_a_server_that_is_not_there_is_an_error_of_ours():
    """With the extra `openai` alone, a server that cannot be reached is an error of Pagefile's."""
    with CompletionsStub(lambda _: "x") as stub:
        chat = chat_of(stub)
    raised = await _raised(chat)
    await chat.close()
    assert isinstance(raised, PagefileError)


@finding("frameworks-F13")
@pytest.mark.usefixtures("without_httpx")
async def test_leaving_a_stream_early_raises_nothing():
    """With the extra `openai` alone, whoever has heard enough may leave."""
    with CompletionsStub(lambda _: "one two three") as stub:
        chat = chat_of(stub)
        with promised("the stream is left"):
            async with aclosing(chat.stream(ASKED)) as pieces:
                assert "one" == (await anext(pieces)).text.strip()
        await chat.close()


@finding("frameworks-F13")
@pytest.mark.usefixtures("without_httpx")
async def test_a_whole_stream_comes_through():
    """With the extra `openai` alone, a stream that ends well is heard to its end."""
    with CompletionsStub(lambda _: "one two three") as stub:
        chat = chat_of(stub)
        pieces = [piece.text async for piece in chat.stream(ASKED)]
        await chat.close()
    assert "one two three" == "".join(pieces).strip()


async def _raised(chat):
    try:
        async for _ in chat.stream(ASKED):
            pass
    except Exception as error:
        return error
    return None
