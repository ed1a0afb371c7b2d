"""What must hold for every request, whatever a thread and a log look like."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from pagefile.integrations.langchain.messages import exchanges, tool_uses
from pagefile.integrations.langchain.view import (
    fitted,
    message_tokens,
    native_history,
    plain_view,
    request_tokens,
    system_with,
)
from pagefile.integrations.shortening import cut_to
from pagefile.text.tokens import EstimateCounter

from .models import check_order

count = EstimateCounter().count

texts = st.text(st.sampled_from("ab 词语。\n<>&"), min_size=1, max_size=60)
long_texts = st.tuples(texts, st.integers(1, 60)).map(lambda pair: pair[0] * pair[1])


@st.composite
def turns(draw):
    """A user message and what came of it: tool loops, several calls at once, an answer."""
    messages = [HumanMessage(draw(texts), id=f"h{draw(st.integers(0, 10**9))}")]
    for loop in range(draw(st.integers(0, 2))):
        ids = [f"c{loop}-{n}" for n in range(draw(st.integers(1, 2)))]
        messages.append(AIMessage("", tool_calls=[{"name": "t", "args": {"q": "x"}, "id": i} for i in ids]))
        messages += [ToolMessage(draw(long_texts), tool_call_id=i, name="t") for i in ids]
    return messages


@st.composite
def threads(draw):
    """Answered turns, and one that is being answered."""
    earlier = [[*draw(turns()), AIMessage(draw(long_texts))] for _ in range(draw(st.integers(0, 4)))]
    summary = [HumanMessage("so far", additional_kwargs={"lc_source": "summarization"})]
    before = summary if draw(st.booleans()) else []
    return [*before, *(message for turn in earlier for message in turn), *draw(turns())]


@settings(max_examples=60)
@given(threads(), st.integers(20, 3000), st.booleans())
def test_a_request_fits_and_stays_in_order(messages, budget, remembered):
    """Never over budget while there is something to give up; pairs stay together; no message is changed."""
    before = [message.model_copy(deep=True) for message in messages]
    view = plain_view(SystemMessage("You help."), messages)
    if remembered:
        view = replace(view, memory="<memory>\n" + "fact " * 30 + "</memory>", less_memory="", turn_id="t")
    fits = fitted(view, budget, count)
    sent = fits.messages()
    check_order([SystemMessage("You help."), *sent])
    assert before == messages
    assert messages[-1].type != "human" or sent[-1] is messages[-1]
    over = request_tokens([fits.system, *sent], count) > budget
    if over:
        assert () == fits.history
        assert "" == fits.memory
        assert all(len(use.returned.text) <= 260 for use in tool_uses(fits.tail))
    kept = [message for message in sent if message.name != "memory_context"]
    assert [m.id for m in kept if m.type == "human"] == [
        m.id for m in messages[len(messages) - len(kept) :] if m.type == "human"
    ] or fits.preamble


@settings(max_examples=40)
@given(threads(), st.integers(20, 3000))
def test_more_room_never_shows_less(messages, budget):
    """A larger window keeps every turn that a smaller one keeps."""
    view = plain_view(None, messages)
    small, large = (len(fitted(view, room, count).history) for room in (budget, budget + 500))
    assert small <= large


@given(long_texts, st.integers(0, 500))
def test_a_cut_keeps_to_its_tokens(text, tokens):
    """Where two hundred characters would be too much, they are what is left."""
    cut = cut_to(text, tokens, count)
    assert count(cut) <= tokens or len(cut) <= 200


@given(threads())
def test_reading_loses_no_message(messages):
    """Preamble and turns together are the thread, in its order."""
    preamble, found = exchanges(messages)
    assert messages == [*preamble, *(message for exchange in found for message in exchange.messages)]


def test_memory_in_a_thread_is_nobodys_words():
    """A memory message that somebody else put into the state is dropped, not doubled."""
    messages = [
        SystemMessage("<memory>\nold\n</memory>", name="memory_context"),
        HumanMessage("hi", id="m1"),
        HumanMessage("<memory>\nold\n</memory>", name="memory_context"),
    ]
    assert (([], ["hi"])) == (exchanges(messages)[0], [e.asked.text for e in exchanges(messages)[1]])


def test_a_turn_that_was_given_up_leaves_no_loose_ends():
    """Calls that nobody answered would be refused; what was answered stays."""
    loose = [
        HumanMessage("one", id="m1"),
        AIMessage("", tool_calls=[{"name": "t", "args": {}, "id": "a"}]),
        ToolMessage("fine", tool_call_id="a"),
        AIMessage(
            "", tool_calls=[{"name": "t", "args": {}, "id": "b"}, {"name": "t", "args": {}, "id": "c"}]
        ),
        ToolMessage("only one of two", tool_call_id="b"),
    ]
    _, found = exchanges([*loose, HumanMessage("two", id="m2"), AIMessage("ok")])
    (group, _) = native_history(found, [None, None], [])
    assert loose[:3] == list(group)


def test_nothing_is_before_a_turn_that_had_to_go():
    """A history has no holes: what is older than a turn left out is left out too, given up or not."""
    talk = [m for n in range(3) for m in (HumanMessage(f"q{n}", id=f"m{n}"), AIMessage(f"a{n}"))]
    _, found = exchanges(talk)
    assert [] == native_history(found, [None, "m1", "m2"], [])
    assert [(talk[4], talk[5])] == native_history(found, [None, "m1", None], [])


def test_a_system_message_in_blocks_keeps_its_blocks():
    """What a provider was told to cache stays where it was."""
    block = {"type": "text", "text": "BASE", "cache_control": {"type": "ephemeral"}}
    told = SystemMessage([block])
    changed = system_with(told, "more")
    assert [block, {"type": "text", "text": "\n\nmore"}] == changed.content
    assert [block] == told.content
    assert told is system_with(told, "")
    assert "more" == system_with(None, "more").text


def test_what_cannot_be_counted_has_a_price():
    """A picture is no free ride, and a call is paid once."""
    picture = HumanMessage([{"type": "text", "text": "see"}, {"type": "image", "url": "x"}])
    assert message_tokens(picture, count) > 1000
    call = {"name": "t", "args": {"q": "x"}, "id": "a"}
    plain = AIMessage("", tool_calls=[call])
    blocks = AIMessage([{"type": "tool_use", "id": "a", "name": "t", "input": {"q": "x"}}], tool_calls=[call])
    assert message_tokens(plain, count) == message_tokens(blocks, count)
