"""Messages of three vendors, taken apart and put together again."""

import base64
from datetime import UTC, datetime

import pytest

from pagefile.content import Media, Reasoning, Text, ToolCall, ToolResult, message_json
from pagefile.errors import InvalidArgumentError
from pagefile.records import Scope, Step, Turn, plain_layout
from pagefile.shapes.call_order import answer, prepared, question
from pagefile.shapes.media import IMAGE_TOKENS, pixels, tile_tokens
from pagefile.shapes.openai import short
from pagefile.shapes.parser import parsed
from pagefile.shapes.renderer import given_back, rendered, written
from pagefile.shapes.skeleton import Filling
from pagefile.shapes.steps import shown_steps
from tests.transcripts import CALLS, CHAT

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def back(found):
    return given_back(found.messages, found.steps, found.blobs)


def shown(found, shape, blobs=None):
    return rendered(found.messages, found.steps, found.blobs if blobs is None else blobs, shape)


def test_what_was_said_beside_the_calls_and_between_them_is_there():
    """Text, several calls in one message, a developer's message in the middle: each in its place."""
    found = parsed(CHAT)
    assert found.messages[1].parts == (Text("I will look in both places."), ToolCall(0), ToolCall(1))
    assert found.messages[2].parts == (ToolResult(1),)
    assert [step.result for step in found.steps] == ["there", "not there"]
    assert [step.input for step in found.steps] == [{"where": "up"}, {"where": "down"}]
    assert CHAT == back(found)


def test_question_and_answer_are_what_document_001_reads():
    """The first words of the user; the last of the assistant, after the tools if there are any."""
    found = parsed(CHAT)
    assert (question(found.messages), answer(found.messages)) == ("Where is it?", "Up there.")
    silent = parsed(CHAT[:-1])
    assert answer(silent.messages) == "I will look in both places."


def test_a_provider_gets_each_result_right_behind_its_call():
    """OpenAI refuses what is between a call and its result."""
    found = parsed(CHAT)
    roles = [message["role"] for message in shown(found, "openai")]
    assert roles == ["user", "assistant", "tool", "tool", "developer", "assistant"]


def test_a_call_that_was_never_answered_is_left_out():
    """And what was said beside it stays."""
    found = parsed(CHAT[:2])
    assert shown(found, "anthropic")[1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "I will look in both places."}],
    }


def test_a_result_without_its_call_gets_one():
    """A provider refuses a result that answers nothing."""
    found = parsed([{"role": "tool", "tool_call_id": "x", "content": "42"}])
    call, result = shown(found, "openai")
    assert call["tool_calls"][0]["id"] == result["tool_call_id"] == "x"


def test_a_call_that_is_made_for_a_result_has_no_arguments():
    """Providers refuse `null`: what is not known is an empty object, and the tool has its name where the result tells it."""
    found = parsed([{"role": "tool", "tool_call_id": "x", "name": "look", "content": "42"}])
    call = {"name": "look", "arguments": "{}"}
    assert shown(found, "openai")[0]["tool_calls"] == [{"id": "x", "type": "function", "function": call}]
    assert shown(found, "responses")[0] == {"type": "function_call", "call_id": "x", **call}
    used = {"type": "tool_use", "id": "x", "name": "look", "input": {}}
    assert shown(found, "anthropic")[0]["content"] == [used]


def test_thoughts_go_back_to_the_provider_that_sealed_them_and_to_no_other():
    """A signature means nothing elsewhere."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "EqQB"}
    found = parsed([{"role": "assistant", "content": [thought, {"type": "text", "text": "yes"}]}])
    assert found.messages[0].parts[0] == Reasoning("hm", {"type": "thinking", "signature": "EqQB"})
    assert shown(found, "anthropic")[0]["content"][0] == thought
    assert shown(found, "openai") == [{"role": "assistant", "content": "yes"}]


def test_nothing_bulky_is_stored_twice():
    """Texts are in the parts, results in the steps, bytes in the blobs; the skeleton only points at them."""
    data = base64.b64encode(b"GIF89a" + b"x" * 900).decode()
    messages = [
        {"role": "user", "name": "ada", "content": [{"type": "text", "text": "words " * 100}]},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{data}"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [dict(CALLS[1])]},
        {
            "role": "tool",
            "tool_call_id": "b",
            "name": "look",
            "content": [{"type": "text", "text": "much " * 100}],
        },
    ]
    found = parsed(messages)
    kept = str([message_json(message) for message in found.messages])
    assert (kept.count("words words"), kept.count("much much"), kept.count("xxxx"), data in kept) == (
        50,
        0,
        0,
        False,
    )
    assert messages == back(found)


def test_a_result_that_is_replaced_is_shown_in_its_place():
    """A placeholder takes the place of the text; the call and its id stay."""
    found = parsed([*CHAT[:2], CHAT[2], CHAT[4]])
    steps = shown_steps(found.steps, {1: "[archived]"})
    messages = written(prepared(found.messages), Filling(steps), "openai")
    assert messages[3] == {"role": "tool", "tool_call_id": "b", "content": "[archived]"}


def test_the_picture_of_a_result_follows_it_in_openai_chat():
    """A tool's message takes only text there; the other two providers show it in the result."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    blocks = [{"type": "text", "text": "a cat"}, {"type": "image", "source": source}]
    found = parsed(
        [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": blocks}]},
            {"role": "assistant", "content": "A cat."},
        ]
    )
    url = "data:image/png;base64,iVBORw0KGgo="
    chat = shown(found, "openai")
    assert [message["role"] for message in chat] == ["user", "assistant", "tool", "user", "assistant"]
    assert chat[2]["content"] == "a cat"
    assert chat[3]["content"] == [{"type": "image_url", "image_url": {"url": url}}]
    assert shown(found, "anthropic")[2]["content"][0]["content"] == blocks
    assert shown(found, "responses")[2]["output"] == [
        {"type": "input_text", "text": "a cat"},
        {"type": "input_image", "detail": "auto", "image_url": url},
    ]


def test_a_thought_that_led_to_nothing_is_left_out():
    """OpenAI refuses reasoning whose call is not behind it."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    call = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "there"}
    asked = {"role": "user", "content": "Where?"}
    assert shown(parsed([asked, thought, call]), "responses") == [asked]
    assert shown(parsed([asked, thought, call, output]), "responses") == [asked, thought, call, output]


def test_an_image_that_is_not_at_hand_is_named():
    """A window may leave bytes out."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    found = parsed([{"role": "user", "content": [{"type": "image", "source": source}]}])
    assert isinstance(found.messages[0].parts[0], Media)
    assert shown(found, "anthropic", {})[0]["content"] == [
        {"type": "text", "text": "[image: image/png, 8 bytes]"}
    ]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("hello", "messages must be a list of messages, not str"),
        ([7], r"^messages\[0\] is the number 7"),
        ([{"content"}], r"^messages\[0\] is a set: give a mapping"),
        ([{"content": "?"}], r"messages\[0\] has neither a role nor a type"),
        ([CHAT[0], {"role": "user", "content": 7}], r"messages\[1\] has a content that is the number 7"),
        ([{"role": "critic", "content": "no"}], r"messages\[0\] has the role 'critic'"),
        ([{"role": "user", "content": "a\0b"}], r"messages\[0\] cannot be stored: it has a NUL character"),
        ([{"role": "user", "content": ["a"]}], r"messages\[0\] has a text in its content"),
        (
            [CHAT[0], {"role": "user", "content": "?", "tags": {"a", "b"}}],
            r"messages\[1\] .*a set has no order: give a list",
        ),
        (
            [{"role": "user", "content": "?", "metadata": [{7: "seven"}]}],
            r"messages\[0\] .*the key 7 is not a text: give '7'",
        ),
        (
            [{"role": "user", "content": [({"type": "text", "text": "?", None: 1})]}],
            r"messages\[0\] .*the key None is not a text",
        ),
        (
            [CHAT[1], {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
            r"messages\[1\] is in the shape of Anthropic, those before it are in that of OpenAI Chat",
        ),
    ],
)
def test_what_cannot_be_read_is_named(messages, said):
    """The error says which message it is, and what to give instead."""
    with pytest.raises(InvalidArgumentError, match=said):
        parsed(messages)


def test_whatever_iterates_in_order_is_a_list():
    """Vendors' clients take tuples and iterators, and so does a turn."""
    text = {"type": "text", "text": "Hello"}
    for content in ((text,), iter([text]), {"one": text}.values()):
        assert [{"role": "user", "content": [text]}] == back(parsed([{"role": "user", "content": content}]))


def test_what_a_tool_returned_is_cleaned_and_not_refused():
    """Tools are not under the caller's control."""
    found = parsed([CHAT[1], {"role": "tool", "tool_call_id": "a", "content": "a\0b\ud800"}])
    assert found.steps[0].result == "a␀b?"


def test_the_short_form_is_rendered_as_before():
    """Windows and their hashes do not change: an empty content beside a call, call ids that are unique."""
    steps = (Step("look", {"where": "上"}, "there", "a"), Step("look", None, "", "a"))
    turn = Turn("t", Scope(), 1, "done", "Where?", "There.", steps, NOW, NOW, 0, 0, 0, "none")
    user, said = {"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}

    def called(call_id: str, arguments: str, result: str) -> list[dict]:
        function = {"name": "look", "arguments": arguments}
        calls = [{"id": call_id, "type": "function", "function": function}]
        return [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]

    second = called("a_2", "null", "")
    assert turn.messages == plain_layout("Where?", range(2), "There.")
    expected = [user, *called("a", '{"where":"上"}', "there"), *second, said]
    assert rendered(turn.messages, turn.steps, {}, "openai") == expected
    assert short("Where?", shown_steps(steps, {}).values(), "There.") == expected
    replaced = shown_steps(steps, {0: "…"}).values()
    assert short("Where?", replaced, None) == [user, *called("a", '{"where":"上"}', "…"), *second]


def test_pixels_are_read_from_the_head_of_a_picture():
    """PNG, GIF, JPEG and the three kinds of WebP; anything else has none."""
    png = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big")
    jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x01\xe0\x02\x80\x03"
    webp = b"RIFF\0\0\0\0WEBP"
    lossy = webp + b"VP8 " + b"\0" * 10 + b"\x80\x02\xe0\x01"
    lossless = webp + b"VP8L" + b"\0\0\0\0\x2f" + ((639) | (479 << 14)).to_bytes(4, "little")
    extended = webp + b"VP8X" + b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
    gif = b"GIF89a\x80\x02\xe0\x01"
    assert [pixels(data) for data in (png, jpeg, lossy, lossless, extended, gif)] == [(640, 480)] * 6
    assert [pixels(data) for data in (b"", b"%PDF", png[:17], webp + b"what")] == [None] * 4
    # 640 × 480 takes two tiles of 512, 1024 × 1024 four of the shrunk picture, as OpenAI's own examples say.
    assert (tile_tokens(640, 480), tile_tokens(1024, 1024), tile_tokens(2048, 4096)) == (
        425,
        IMAGE_TOKENS,
        1105,
    )
