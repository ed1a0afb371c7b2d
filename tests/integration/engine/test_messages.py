"""Turns as they really happened: recorded, extended, given back, forked."""

import base64

import pytest

from pagefile import (
    BudgetError,
    ConflictError,
    InvalidArgumentError,
    Memory,
    NotFoundError,
    PagePurgedError,
    Settings,
)
from pagefile.settings import ArchiveSettings, EmbedderSettings, FactSettings
from pagefile.text.tokens import open_counter
from pagefile.window.measure import recounted
from tests.transcripts import ASKED, CHAT, LOOKED, PICTURE, SAID, SEEN

pytestmark = pytest.mark.anyio


@pytest.fixture
async def memory():
    async with Memory.open("memory://") as opened:
        yield opened


async def test_messages_are_given_back_as_they_came(memory):
    """Equal JSON, and the columns of short-term memory beside it."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.record(messages=CHAT)
    assert (turn.user, turn.assistant, len(turn.steps)) == ("Where is it?", "Up there.", 2)
    assert await chat.messages(turn) == await chat.messages(turn.id) == CHAT
    assert "I will look in both places." in turn.answered


async def test_messages_that_are_the_short_form_are_stored_as_the_short_form(memory):
    """The same turn, whichever way it is given; the same tokens."""
    chat = memory.conversation("c", user_id="ada")
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    given, short = await chat.record(messages=said), await chat.record("Hello", "Hi")
    assert (given.layout, given.tokens) == (None, short.tokens)
    assert await chat.messages(short) == said


async def test_a_turn_grows_message_by_message(memory):
    """A result answers a call of an earlier message, a bulky one is archived, and all of it comes back."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.begin(messages=ASKED)
    for messages in (LOOKED, SEEN, SAID):
        turn = await chat.extend(turn, messages)
    done = await chat.complete(turn)
    asked = "What is this?\n[image: image/png, 8 bytes]"
    assert (done.user, done.assistant, done.status) == (asked, "A cat.", "done")
    assert done.steps[0].page is not None
    assert not done.steps[0].whole
    assert await chat.messages(done) == [*ASKED, *LOOKED, *SEEN, *SAID]
    assert len(done.messages) == 4


async def test_messages_sent_twice_are_added_once(memory):
    """A caller that lost the answer asks again; a caller that holds an old turn adds behind what is there."""
    chat = memory.conversation("c", user_id="ada")
    begun = await chat.begin(messages=ASKED)
    once = await chat.extend(begun, LOOKED)
    assert await chat.extend(begun, LOOKED) == await chat.extend(begun.id, LOOKED, after=1) == once
    assert len((await chat.extend(begun, SEEN)).messages) == 3


async def test_a_loop_with_nothing_new_adds_nothing(memory):
    """The turn comes back as it is, by handle and by id; a turn of no messages at all is still refused."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.extend(await chat.begin(messages=ASKED), LOOKED)
    assert turn == await chat.extend(turn, []) == await chat.extend(turn.id, iter(()), after=1)
    assert turn == await chat.extend(turn, [])
    with pytest.raises(InvalidArgumentError, match="at least one message"):
        await chat.record(messages=[])
    with pytest.raises(InvalidArgumentError, match="at least one message"):
        await chat.begin(messages=[])


async def test_a_window_tells_of_calls_that_wait_for_their_results(memory):
    """No provider takes a call without its result: it is left out of the running turn, and the receipt says which."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.extend(await chat.begin(messages=ASKED), LOOKED)
    window = await chat.context(turn=turn)
    assert "tool_calls" not in str(window.messages)
    assert window.receipt.degraded == (
        f"the call 't1' of 'look' in turn {turn.id} has no result yet: it is left out",
    )
    turn = await chat.extend(turn, SEEN)
    assert (await chat.context(turn=turn)).receipt.degraded == ()


async def test_messages_of_a_race_sent_twice_are_added_once(memory):
    """Who lost the race and tries again with the turn it has finds its messages behind those of the other, calls too."""
    first, second = (memory.conversation("c", user_id="ada") for _ in range(2))
    begun = await first.begin(messages=ASKED)
    await first.extend(begun, [{"role": "assistant", "content": "I look."}])
    once = await second.extend(begun, LOOKED)
    assert len(once.messages) == 3
    assert await second.extend(begun, LOOKED) == await second.extend(begun.id, LOOKED, after=1) == once
    assert len((await second.extend(once, LOOKED)).messages) == 4


async def test_an_answer_that_another_handle_added_is_the_answer(memory):
    """`complete` looks at the messages as they are, not as this handle knew them."""
    first, second = (memory.conversation("c", user_id="ada") for _ in range(2))
    for before in ([], [{"role": "assistant", "content": "Let me see."}]):
        begun = await first.begin(messages=[*ASKED, *before])
        await second.extend(begun.id, SAID)
        done = await first.complete(begun)
        assert (done.assistant, len(done.messages)) == ("A cat.", 2 + len(before))
        assert await first.complete(begun) == await second.complete(begun.id) == done


async def test_an_answer_that_another_handle_added_is_said_once(memory):
    """Given again, it is the same; another one comes behind it."""
    first, second = (memory.conversation("c", user_id="ada") for _ in range(2))
    for given, messages in (("A cat.", 2), ("A dog.", 3)):
        begun = await first.begin(messages=ASKED)
        await second.extend(begun.id, SAID)
        done = await first.complete(begun, given)
        assert (done.assistant, len(done.messages)) == (given, messages)


@pytest.mark.parametrize("chars", [10, 60_000])
async def test_another_result_of_the_same_call_is_refused(memory, chars):
    """Whether it is in the turn or in the archive: it is not taken for the one that is there, and dropped."""
    chat = memory.conversation("c", user_id="ada")
    called = await chat.extend(await chat.begin(messages=ASKED), LOOKED)
    first, second = ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": word * chars}]}] for word in "ab")  # fmt: skip
    answered = await chat.extend(called, first)
    assert answered == await chat.extend(called, first)
    with pytest.raises(ConflictError, match="another result of the call 't1'"):
        await chat.extend(called, second)
    with pytest.raises(ConflictError, match="another result of the call 't1'"):
        await chat.extend(called.id, second, after=2)
    assert await chat.messages(called.id) == [*ASKED, *LOOKED, *first]


async def test_an_answer_given_beside_the_messages_is_said_once(memory):
    """`complete` takes the answer again, or a new one."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.extend(await chat.begin("Who?"), SAID)
    done = await chat.complete(turn, "A cat.")
    assert [message.text for message in done.messages] == ["Who?", "A cat."]
    turn = await chat.extend(await chat.begin("Who?"), SAID)
    assert (await chat.complete(turn, "A dog.")).messages[-1].text == "A dog."


async def test_what_was_said_before_the_answer_is_kept_in_an_open_turn(memory):
    """A turn that is begun with a greeting of the assistant has no answer yet."""
    chat = memory.conversation("c", user_id="ada")
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "One moment."}]
    turn = await chat.begin(messages=said)
    assert (turn.assistant, turn.status) == (None, "open")
    done = await chat.complete(await chat.extend(turn, [{"role": "assistant", "content": "Here I am."}]))
    assert done.assistant == "Here I am."
    assert (await chat.messages(done))[:2] == said


async def test_tokens_are_counted_once_for_a_message_with_several_calls(memory):
    """Two calls in one message share its frame."""
    chat = memory.conversation("c", user_id="ada")
    together = await chat.record(messages=CHAT)
    steps = [{"tool": step.tool, "input": step.input, "result": step.result} for step in together.steps]
    apart = await chat.record("Where is it?", "Up there.", steps=steps)
    count = open_counter().count
    extra = count("I will look in both places.") + count("Be brief.") + 4
    assert together.tokens == apart.tokens - 4 + extra


async def test_nothing_is_written_when_a_message_cannot_be_read(memory):
    """The error names it, and there is no turn."""
    chat = memory.conversation("c", user_id="ada")
    with pytest.raises(InvalidArgumentError, match=r"messages\[1\]"):
        await chat.record(messages=[CHAT[0], {"role": "user", "content": 7}])
    with pytest.raises(InvalidArgumentError, match="at least one message"):
        await chat.record(messages=[{"role": "user", "content": " "}])
    with pytest.raises(InvalidArgumentError, match="either messages or the short form"):
        await chat.record("Hello", messages=CHAT)
    assert await chat.turns() == []


async def test_what_is_too_long_for_a_message_is_refused():
    """What the parts hold is bounded as the short form is; results and files are not part of it."""
    settings = Settings(url="memory://", max_message_chars=200, max_result_chars=300)
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c")
        with pytest.raises(InvalidArgumentError, match=r"messages\[0\] has .* characters"):
            await chat.record(messages=[{"role": "user", "content": "x" * 300}])
        with pytest.raises(InvalidArgumentError, match="The result of 'tool' has 301 characters"):
            await chat.record(messages=[{"role": "tool", "tool_call_id": "a", "content": "x" * 301}])


async def test_a_fork_goes_on_from_an_earlier_turn(memory):
    """The log up to there, under the same ids; the first conversation stays as it is, and recall finds each turn once."""
    chat = memory.conversation("c", user_id="ada")
    first = await chat.record("My cat is called Momo.", "Nice.", id="one")
    second = await chat.record(messages=[*ASKED, *LOOKED, *SEEN, *SAID], id="two")
    await chat.record("And now?", "Now this.", id="three")
    again = await chat.fork(second, before=True)
    also = await chat.fork("two", id="copy")
    assert [turn.id for turn in await again.turns()] == [first.id]
    assert [turn.id for turn in await also.turns()] == ["one", "two"]
    assert await also.messages("two") == await chat.messages("two")
    await again.record("What is this, please?", "A dog.")
    assert len(await chat.turns()) == 3
    found = await memory.recall("Momo the cat", user_id="ada", limit=3)
    assert [hit.id for hit in found].count("one") == 1
    with pytest.raises(ConflictError, match="There is a conversation 'copy' already"):
        await chat.fork("two", id="copy")
    with pytest.raises(NotFoundError, match="There is no turn 'four'"):
        await chat.fork("four")


async def test_pages_of_nobody_can_be_read_in_a_fork():
    """Without a user a page is read in its own conversation only, so the fork has one of its own."""
    settings = Settings(url="memory://", archive=ArchiveSettings(threshold=200, page_from=200))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c")
        turn = await chat.record("Look", "Seen", steps=[{"tool": "look", "result": "word " * 100}])
        fork = await chat.fork(turn)
        page = (await fork.turns())[0].steps[0].page
        assert page != turn.steps[0].page
        assert await fork.load(page) == "word " * 100
        assert page in (await fork.turns())[0].steps[0].result


async def test_a_fork_looks_the_turn_up(memory):
    """Whatever the turn was when the caller got it; one of another conversation is not there."""
    chat, other = memory.conversation("c", user_id="ada"), memory.conversation("d", tenant="other")
    await chat.record("one", "eins")
    begun = await chat.begin("two")
    assert [turn.status for turn in await (await chat.fork(begun)).turns()] == ["done", "open"]
    await chat.complete(begun, "zwei")
    await chat.record("three", "drei")
    fork, before = await chat.fork(begun), await chat.fork(begun, before=True)
    assert [turn.assistant for turn in await fork.turns()] == ["eins", "zwei"]
    assert [turn.assistant for turn in await before.turns()] == ["eins"]
    with pytest.raises(NotFoundError, match="There is no turn"):
        await chat.fork(await other.begin("a secret of others"))


async def test_a_fork_learns_nothing_again():
    """What was read out of its turns and retracted stays retracted; what comes new is learnt."""
    rules = FactSettings(extract="rules")
    async with Memory.open(
        "memory://", settings=Settings(facts=rules, embedder=EmbedderSettings(name="none"))
    ) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.record("I live in Paris.", "ok")
        await memory.settle()
        for fact in await memory.facts("ada"):
            await memory.retract(fact.id)
        fork = await chat.fork(turn)
        await fork.record("I am allergic to peanuts.", "ok")
        await memory.settle()
        held = [fact.text for fact in await memory.facts("ada")]
        assert len(held) == 1
        assert "peanuts" in held[0]
        found = await memory.recall("Paris", user_id="ada")
        assert [hit.id for hit in found].count(turn.id) == 1
        assert turn.id in [hit.id for hit in await fork.recall("Paris")]


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/agent.db"])
async def test_a_fork_stays_whole_when_the_first_conversation_is_forgotten(url, tmp_path):
    """Its pages are its own, those that a checkpoint or a load names too; a search finds each result once."""
    settings = Settings(url=url.format(tmp_path), archive=ArchiveSettings(threshold=200, page_from=200))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user_id="ada")
        text = "the quick brown fox " * 30
        turn = await chat.record("Look", "Seen", steps=[{"tool": "look", "result": text}])
        page = turn.steps[0].page
        await chat.pin(page)
        loaded = {"tool": "load_tool_history", "input": {"uuid": page}, "result": text}
        await chat.record("Again", "Seen", steps=[loaded])
        await chat.checkpoint("They looked.", recent_turns=1)
        last = await chat.record("Go on", "Yes")
        fork = await chat.fork(last)
        assert len(await fork.search_tool_history("quick fox")) == 1
        await memory.forget(conversation_id="c")
        first, second, _ = await fork.turns()
        own = first.steps[0].page
        assert own == second.steps[0].page != page
        assert (await fork.checkpoints())[0].archive_refs == (own,)
        assert own in first.steps[0].result
        assert own in second.steps[0].result
        assert (await fork.page(own)).pinned
        assert await fork.load(own) == text
        assert "quick brown fox" in str((await fork.context("And now?")).messages)
        assert page not in str((await fork.context("And now?")).messages)


async def test_a_fork_has_the_tombstones_of_purged_pages():
    """What is gone is gone there too, and says so."""
    settings = Settings(url="memory://", archive=ArchiveSettings(threshold=200, page_from=200))
    async with Memory.open(settings=settings) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.record("Look", "Seen", steps=[{"tool": "look", "result": "word " * 100}])
        await memory.purge(user_id="ada", uuids=[turn.steps[0].page])
        fork = await chat.fork(turn)
        await memory.forget(conversation_id="c")
        with pytest.raises(PagePurgedError):
            await fork.load((await fork.turns())[0].steps[0].page)


async def test_messages_travel_in_an_export(memory, tmp_path):
    """Layout and bytes: what is imported is given back as it came."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.record(messages=[*ASKED, *LOOKED, *SEEN, *SAID])
    await memory.export(tmp_path / "all.jsonl")
    async with Memory.open("memory://") as other:
        await other.import_(tmp_path / "all.jsonl")
        there = other.conversation("c", user_id="ada")
        assert (await there.turns())[0] == turn
        assert await there.messages(turn.id) == await chat.messages(turn)


async def test_a_picture_is_in_the_windows_of_the_turns_after_it(memory):
    """Its bytes come from the store, in the shape of each provider; the window is made again from the log as it was."""
    chat = memory.conversation("c", user_id="ada")
    await chat.record(messages=[*ASKED, *SAID])
    window = await chat.context("And its colour?")
    url = f"data:image/png;base64,{PICTURE['source']['data']}"
    assert window.messages[1]["content"][0] == {"type": "image_url", "image_url": {"url": url}}
    assert window.for_anthropic()[1][0]["content"][0] == PICTURE
    assert window.for_responses()[1][0]["content"][0] == {
        "type": "input_image",
        "detail": "auto",
        "image_url": url,
    }
    assert window.receipt.degraded == ()
    assert (await chat.replay(window.id)).exact


async def test_pictures_that_no_request_could_carry_are_named(memory, monkeypatch):
    """The newest are shown; the receipt says which are not."""
    monkeypatch.setattr("pagefile.engine.windows.MOST_MEDIA_BYTES", 10)
    chat = memory.conversation("c", user_id="ada")
    for kind in ("image/png", "image/gif"):
        data = base64.b64encode(f"8 {kind[6:]} 8".encode()).decode()
        source = {"type": "base64", "media_type": kind, "data": data}
        await chat.record(
            messages=[{"role": "user", "content": [{"type": "image", "source": source}]}, *SAID]
        )
    window = await chat.context("Which was the first?")
    assert window.messages[1]["content"] == "[image: image/png, 7 bytes]"
    assert window.messages[3]["content"][0]["type"] == "image_url"
    assert window.receipt.degraded == (
        "[image: image/png, 7 bytes] is only named: a window has at most 10 bytes of media",
    )


NAMED = "[image: image/png, 8 bytes]"


def exact_tokens(window) -> int:
    """What messages cost that are texts alone."""
    count = open_counter().count
    texts = [block for message in window.messages for block in _texts_of(message)]
    return 3 + 4 * len(window.messages) + sum(map(count, texts))


def _texts_of(message) -> list[str]:
    content = message["content"]
    texts = [content] if isinstance(content, str) else [block["text"] for block in content]
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [*texts, *(text for function in functions for text in (function["name"], function["arguments"]))]


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
async def test_a_picture_that_does_not_fit_is_named_and_what_is_older_stays(url, tmp_path):
    """The turn says what was shown, the turns before it are there too, and the count is that of what is sent."""
    async with Memory.open(f"sqlite:///{tmp_path}/m.db" if url == "sqlite" else url) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record("My cat is called Momo.", "Nice.", id="old")
        await chat.record(messages=[*ASKED, *SAID], id="picture")
        await chat.record("Thank you.", "You are welcome.", id="new")
        shown = await chat.context("What is it called?", window_tokens=4000)
        assert shown.messages[3]["content"][0]["type"] == "image_url"
        window = await chat.context("What is it called?", window_tokens=200)
        verdicts = {verdict.id: (verdict.form, verdict.reason) for verdict in window.receipt.kept}
        assert verdicts["picture"] == ("full, media named", "fits as full, media named")
        assert verdicts["old"] == verdicts["new"] == ("full", "fits")
        asked = window.messages[3]["content"]
        assert asked == [{"type": "text", "text": NAMED}, {"type": "text", "text": "What is this?"}]
        assert window.for_anthropic()[1][2]["content"] == asked
        assert window.tokens == exact_tokens(window) <= 200
        assert (await chat.replay(window.id)).exact


async def test_the_shortest_form_of_a_turn_names_its_pictures(memory):
    """Without its tools a turn still says that something was shown, by the user and by a tool."""
    chat = memory.conversation("c", user_id="ada")
    seen = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "cat " * 300}, PICTURE],
    }
    turn = [*ASKED, *LOOKED, {"role": "user", "content": [seen]}, *SAID]
    await chat.record(messages=turn, id="picture")
    window = await chat.context("And its colour?", window_tokens=100)
    assert [verdict.form for verdict in window.receipt if verdict.id == "picture"] == ["slim"]
    assert [message["content"] for message in window.messages[1:4]] == [
        [{"type": "text", "text": NAMED}, {"type": "text", "text": "What is this?"}],
        NAMED,
        "A cat.",
    ]
    assert window.tokens == exact_tokens(window)


async def test_the_picture_of_a_running_result_is_named_where_it_does_not_fit(memory):
    """The call and the text of its result stay in the window."""
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.extend(await chat.begin(messages=[{"role": "user", "content": "Look."}]), LOOKED)
    seen = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "a cat"}, PICTURE],
    }
    turn = await chat.extend(turn, [{"role": "user", "content": [seen]}])
    window = await chat.context(turn=turn, window_tokens=150)
    (verdict,) = (one for one in window.receipt if one.block == "steps")
    assert (verdict.kept, verdict.form) == (True, "full, media named")
    assert [message["content"] for message in window.messages[-2:]] == ["a cat", NAMED]


async def test_a_question_whose_picture_does_not_fit_is_refused(memory):
    """An answer about a picture that the model never saw would be worse than none: the error says what to do."""
    chat = memory.conversation("c", user_id="ada")
    await chat.begin(messages=ASKED)
    with pytest.raises(BudgetError, match=r"765 of them for images and files.*raise window_tokens.* smaller"):
        await chat.context(window_tokens=200)


async def test_what_is_only_named_is_counted_as_a_name(memory, monkeypatch):
    """Where no request could carry the bytes, the window has the tokens of the note and not of the picture."""
    monkeypatch.setattr("pagefile.engine.windows.MOST_MEDIA_BYTES", 5)
    chat = memory.conversation("c", user_id="ada")
    await chat.record(messages=[*ASKED, *SAID])
    window = await chat.context("And its colour?")
    assert window.messages[1]["content"][0]["text"] == NAMED
    assert len(window.receipt.degraded) == 1
    assert window.tokens == exact_tokens(window) < 100


RESPONSES = [
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "c2Vj"},
    {"type": "function_call", "call_id": "f1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "f1", "output": "a cat"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "A cat.", "annotations": []}]},
]


@pytest.mark.parametrize("asked", ["What is this?", [{"type": "text", "text": "What is this?"}]])
@pytest.mark.parametrize("rest", [[*LOOKED, *SEEN, *SAID], RESPONSES, CHAT[1:]])
async def test_a_question_that_every_provider_takes_leaves_the_shape_open(memory, asked, rest):
    """Begun with it, and with another of the kind, a turn comes back as it came, whichever provider answers."""
    chat = memory.conversation("c", user_id="ada")
    start = [{"role": "user", "content": asked, "name": "ada"}, {"role": "user", "content": "Be quick."}]
    turn = await chat.begin(messages=start[:1])
    turn = await chat.extend(turn, start[1:])
    for message in rest:
        turn = await chat.extend(turn, [message])
    done = await chat.complete(turn)
    assert [*start, *rest] == await chat.messages(done)


async def test_a_named_shape_is_one_that_its_provider_takes(memory):
    """Equal JSON where it can be sent so; without the call that was never answered where it cannot."""
    chat = memory.conversation("c", user_id="ada")
    whole = await chat.record(messages=[*ASKED, *LOOKED, *SEEN, *SAID])
    assert await chat.messages(whole) == await chat.messages(whole, shape="anthropic")
    cut = await chat.record(messages=[*ASKED, *LOOKED, *SAID])
    assert [*ASKED, *LOOKED, *SAID] == await chat.messages(cut)
    sent = await chat.messages(cut, shape="anthropic")
    assert "tool_use" not in str(sent)
    assert SAID[0]["content"][0] in sent[-1]["content"]


LINES = "\n".join(f"line {number} of the result, with words enough" for number in range(3000))


def called(tool, result, **arguments):
    """A turn in which a tool was called."""
    return [
        {"role": "user", "content": "Which line?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "b", "name": tool, "input": arguments}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": result}]},
        {"role": "assistant", "content": [{"type": "text", "text": "That one."}]},
    ]


@pytest.mark.parametrize(
    "asked",
    [{}, {"offset": 100, "limit": 9000}, {"limit": 500}, {"query": "line 77"}, {"query": "line 77", "limit": 300}],
)  # fmt: skip
@pytest.mark.parametrize("way", ["load", "call_tool", "open turn"])
async def test_what_was_loaded_is_given_back(memory, asked, way):
    """A turn keeps only a note of it, and `messages()` makes it again from the page."""
    chat = memory.conversation("c", user_id="ada")
    page = (await chat.record(messages=called("fetch", LINES))).steps[0].page
    messages = called("load_tool_history", "", uuid=page, **asked)
    turn = await chat.begin(messages=messages[:1]) if way == "open turn" else None
    found = (
        await chat.load(page, **asked)
        if way == "load"
        else await chat.call_tool("load_tool_history", {"uuid": page, **asked}, turn=turn)
    )
    messages[2]["content"][0]["content"] = found
    if turn is None:
        turn = await chat.record(messages=messages)
    else:
        turn = await chat.complete(await chat.extend(turn, messages[1:]))
    # A note that says what the page is, and not the page again.
    assert len(turn.steps[0].result) < 300
    assert messages == await chat.messages(turn)


async def test_what_was_not_loaded_from_the_page_stays_a_note(memory):
    """Nobody is given another text than the one that was recorded."""
    chat = memory.conversation("c", user_id="ada")
    page = (await chat.record(messages=called("fetch", LINES))).steps[0].page
    turn = await chat.record(messages=called("load_tool_history", "my own words", uuid=page))
    shown = (await chat.messages(turn))[2]["content"][0]["content"]
    assert shown == turn.steps[0].result
    assert "12 characters loaded" in shown or "已加载12字" in shown


@pytest.mark.parametrize("tool", ["load_tool_history", "search_tool_history"])
async def test_a_long_answer_of_our_own_tools_is_given_back(memory, tool):
    """It has a page of its own when there is none that it was loaded from."""
    chat = memory.conversation("c", user_id="ada")
    messages = called(tool, [{"type": "text", "text": LINES}, {"type": "text", "text": "end"}], uuid="none")
    turn = await chat.record(messages=messages)
    assert not turn.steps[0].whole
    assert messages == await chat.messages(turn)


async def test_one_missing_picture_costs_only_itself(memory, monkeypatch, caplog):
    """Where its bytes are gone it is named in its place and in the log; the rest is given back, and a fork is made."""
    chat = memory.conversation("c", user_id="ada")
    other = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}}
    more = [{"role": "user", "content": [other, {"type": "text", "text": "And this?"}]}, *SAID]
    turn = await chat.record(messages=[*ASKED, *LOOKED, *SEEN, *SAID, *more])
    media = memory.engine.store.media
    gone = turn.messages[0].parts[0].blob
    load = media.load

    async def lossy(scope, blob):
        return await load(scope, "0" * 64 if blob == gone else blob)

    monkeypatch.setattr(media, "load", lossy)
    fork = await chat.fork(turn)
    for back in (await chat.messages(turn), await fork.messages(turn.id)):
        assert [*LOOKED, *SEEN, *SAID, *more] == back[1:]
        named = [{"type": "text", "text": "[image: image/png, 8 bytes]"}, ASKED[0]["content"][1]]
        assert [{"role": "user", "content": named}] == back[:1]
    assert f"media is only named, because its bytes are gone: image {gone}" in caplog.text
    assert turn.id not in caplog.text


async def test_a_file_by_its_id_is_in_the_window_of_its_provider_and_told_in_the_receipt(memory):
    """The id means nothing elsewhere: the receipt says that others are only told of it."""
    file = {"type": "file", "file": {"file_id": "file-abc"}}
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.begin(messages=[{"role": "user", "content": [{"type": "text", "text": "Read"}, file]}])
    window = await chat.context(turn=turn)
    assert window.messages[-1]["content"][1] == file
    assert window.for_responses()[1][-1]["content"][1] == {"type": "input_file", "file_id": "file-abc"}
    assert window.for_anthropic()[1][-1]["content"][1] == {"type": "text", "text": "[file: file-abc]"}
    assert window.receipt.degraded == (
        "[file: file-abc] is a file at OpenAI: other providers are only told its name",
    )
    assert turn.user == "Read\n[file: file-abc]"


async def test_an_empty_answer_can_be_added(memory):
    """A refusal of Anthropic's has no content; a turn of nothing else is still none."""
    chat = memory.conversation("c", user_id="ada")
    refusal = {"role": "assistant", "content": [], "stop_reason": "refusal"}
    turn = await chat.extend(await chat.begin(messages=ASKED), [refusal])
    done = await chat.complete(turn)
    assert (done.status, done.assistant) == ("done", None)
    assert await chat.messages(done) == [*ASKED, refusal]


async def test_a_done_turn_costs_what_is_sent_of_it(memory):
    """A call that was never answered is counted no more, and the answer is there once."""
    chat = memory.conversation("c", user_id="ada")
    words = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": f'{{"q":"{"word " * 500}"}}'},
    }
    called = {"role": "assistant", "content": "let me look", "tool_calls": [words]}
    turn = await chat.extend(await chat.begin(messages=[{"role": "user", "content": "q"}]), [called])
    done = await chat.complete(turn, "sorry")
    counter = open_counter()
    assert done.tokens == recounted(done, counter.count, counter.name).tokens < 50
    assert [message.text for message in done.messages] == ["q", "let me look", "sorry"]


async def test_a_sealed_thought_costs_what_goes_back(memory):
    """What is encrypted is sent in the running turn, however short its summary is."""
    chat = memory.conversation("c", user_id="ada")
    thought = {**RESPONSES[0], "encrypted_content": "gAAA" * 1000}
    turn = await chat.begin(messages=[{"role": "user", "content": "q"}, thought, *RESPONSES[1:3]])
    window = await chat.context(turn=turn)
    assert thought in window.for_responses()[1]
    assert window.tokens > open_counter().count(thought["encrypted_content"])


async def test_a_document_of_text_costs_its_text(memory):
    """Anthropic is sent all of it, so that a window has to hold all of it."""
    source = {"type": "text", "media_type": "text/plain", "data": "word " * 9000}
    chat = memory.conversation("c", user_id="ada")
    turn = await chat.begin(messages=[{"role": "user", "content": [{"type": "document", "source": source}]}])
    window = await chat.context(turn=turn, window_tokens=16_000)
    assert 9000 <= window.tokens <= 9100
    with pytest.raises(BudgetError):
        await chat.context(turn=turn, window_tokens=8000)


async def test_a_done_turn_with_tool_calls_cannot_be_aborted(memory):
    """It is told as a conflict."""
    chat = memory.conversation("c", user_id="ada")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "seen"}
    turn = await chat.record(messages=[*ASKED, *LOOKED, {"role": "user", "content": [result]}, *SAID])
    with pytest.raises(ConflictError):
        await chat.abort(turn.id)
