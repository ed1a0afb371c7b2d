"""What real clients and servers send beside the textbook: whole answers, files by id, base64 in lines, calls without ids, streams that broke off."""

import base64
import json

import anthropic.types
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import FunctionTool, Response

from pagefile.content import Media, Reasoning, message_from, message_json
from pagefile.errors import InvalidArgumentError
from pagefile.shapes.call_order import answer, prepared
from pagefile.shapes.media import area_tokens, sampled_tokens, tile_tokens
from pagefile.shapes.parser import parsed
from pagefile.shapes.renderer import given_back, rendered, written
from pagefile.shapes.skeleton import Filling
from pagefile.shapes.steps import shown_steps, with_own_call_ids
from pagefile.window.budget import tool_texts
from tests.property.shapes.vendors import PNG, is_valid

USER = {"role": "user", "content": "Where is it?"}
ANSWER = {"role": "assistant", "content": "Up there.", "refusal": None}
SHAPES = ["openai", "responses", "anthropic"]


def back(messages, shape=None):
    found = parsed(messages)
    return given_back(found.messages, found.steps, found.blobs, shape)


def shown(messages, shape):
    found = parsed(messages)
    return rendered(found.messages, found.steps, found.blobs, shape)


def completion(*messages) -> ChatCompletion:
    choices = [
        {"index": place, "finish_reason": "stop", "message": one} for place, one in enumerate(messages)
    ]
    return ChatCompletion.model_validate(
        {"id": "x", "choices": choices, "created": 1, "model": "m", "object": "chat.completion"}
    )


def response(*output) -> Response:
    head = {"id": "r", "created_at": 1.0, "model": "m", "object": "response", "tool_choice": "auto"}
    return Response.model_validate({**head, "output": output, "parallel_tool_calls": True, "tools": []})


def call(call_id: str, name: str, arguments: str = "{}") -> dict:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def use(call_id: str = "t", name: str = "look") -> dict:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {}}


def message(*blocks, stop_reason="end_turn") -> anthropic.types.Message:
    usage = {"input_tokens": 1, "output_tokens": 2}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    return anthropic.types.Message.model_validate(
        {**head, "content": blocks, "stop_reason": stop_reason, "usage": usage}
    )


# -- files and images -----------------------------------------------------------------------------------------------

FILES = {
    "openai": [{"type": "file", "file": {"file_id": "file-abc"}}],
    "responses": [
        {"type": "input_file", "file_id": "file-abc"},
        {"type": "input_image", "file_id": "file-img", "detail": "high"},
    ],
    "anthropic": [
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_2"}},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_that_a_provider_keeps_is_sent_there_by_its_id(shape):
    """Nobody else has it, so that others are told its id."""
    messages = [{"role": "user", "content": FILES[shape]}]
    assert shown(messages, shape) == messages
    other = "openai" if shape == "anthropic" else "anthropic"
    sent = str(shown(messages, other))
    assert all(name in sent for name in ("[file: file",))
    assert "file_id" not in sent


@pytest.mark.parametrize(
    "text",
    [
        base64.encodebytes(PNG).decode(),
        base64.b64encode(PNG).decode().rstrip("="),
        base64.b64encode(PNG).decode()[:20] + "\r\n" + base64.b64encode(PNG).decode()[20:],
        "\n" + base64.b64encode(PNG).decode(),
        base64.encodebytes(PNG).decode().replace("=", "").replace("\n", "\r\n"),
    ],
)
@pytest.mark.parametrize("head", ["data:image/png;base64,", "DATA:IMAGE/PNG;BASE64,"])
def test_an_image_is_known_however_its_base64_is_written(head, text):
    """In lines, without padding, in capitals: the bytes are shown, and the text comes back as it was."""
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": head + text}}]}]
    found = parsed(messages)
    assert list(found.blobs.values()) == [PNG]
    assert back(messages) == messages
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert shown(messages, "anthropic")[0]["content"] == [{"type": "image", "source": source}]


def test_lines_of_base64_are_not_stored_beside_the_bytes():
    """A photograph as an e-mail has it is not too long for a message."""
    found = parsed(
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {
                            "url": "data:image/png;base64," + base64.encodebytes(PNG * 99).decode()
                        },
                    }
                ],
            }
        ]
    )
    assert len(str(found.messages[0].given)) < 400


def picture(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return base64.b64encode(head).decode()


@pytest.mark.parametrize(("detail", "tokens"), [("low", 85), ("high", 765), ("auto", 765)])
def test_the_detail_of_an_image_is_kept_and_counted(detail, tokens):
    """OpenAI takes 85 tokens for one in low detail, whatever its size."""
    image = {"url": f"data:image/png;base64,{picture(1024, 1024)}", "detail": detail}
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": image}]}]
    (part,) = parsed(messages).messages[0].parts
    assert part.tokens == tokens
    kept = {} if detail == "auto" else {"detail": detail}
    assert shown(messages, "openai")[0]["content"][0]["image_url"] == {"url": image["url"], **kept}
    assert shown(messages, "responses")[0]["content"][0]["detail"] == detail


def test_an_image_costs_what_the_provider_says_that_it_came_from():
    """Anthropic counts pixels, OpenAI tiles."""
    source = {"type": "base64", "media_type": "image/png", "data": picture(2048, 1536)}
    (part,) = parsed([{"role": "user", "content": [{"type": "image", "source": source}]}]).messages[0].parts
    assert part.tokens == area_tokens(2048, 1536) == 2459
    assert (area_tokens(200, 200), tile_tokens(200, 200)) == (54, 255)


def test_a_document_that_is_text_costs_its_text_and_goes_to_the_chat_api_as_text():
    """That one takes no text files; Anthropic takes them as documents."""
    text = "The quick brown fox. " * 10_000
    source = {"type": "text", "media_type": "text/plain", "data": text}
    messages = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    found = parsed(messages, count=lambda given: len(given.split()))
    (part,) = found.messages[0].parts
    assert isinstance(part, Media)
    assert part.tokens == pytest.approx(40_000, rel=0.02)
    sent = rendered(found.messages, found.steps, found.blobs, "openai")
    assert sent == [{"role": "user", "content": f"[file: text/plain, {len(text):,} bytes]\n{text}"}]
    csv = {"file_data": "data:text/csv;base64," + base64.b64encode(b"a,1").decode(), "filename": "a.csv"}
    (block,) = shown([{"role": "user", "content": [{"type": "file", "file": csv}]}], "anthropic")[0][
        "content"
    ]
    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": "a,1"}


def test_a_long_text_is_counted_by_samples_from_all_over_it():
    """One that gets denser is not taken for its beginning."""
    text = "a" * 100_000 + "b " * 100_000
    assert sampled_tokens(text, lambda piece: piece.count("b")) == pytest.approx(100_000, rel=0.05)


# -- what clients return ----------------------------------------------------------------------------------------------


def test_a_whole_answer_of_a_client_is_opened():
    """The completion of OpenAI Chat, the response of OpenAI Responses, the message of Anthropic."""
    assert back([USER, completion(ANSWER)]) == [USER, ANSWER]
    said = {"type": "output_text", "text": "Up.", "annotations": []}
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [said]},
    ]
    assert back([USER, response(*items)]) == [USER, *items]
    assert answer(parsed([USER, response(*items)]).messages) == "Up."
    assert answer(parsed([USER, message({"type": "text", "text": "Up."})]).messages) == "Up."


CHUNK = ChatCompletionChunk.model_validate(
    {
        "id": "x",
        "choices": [{"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": "He"}}],
        "created": 1,
        "model": "m",
        "object": "chat.completion.chunk",
    }
)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (completion(ANSWER, ANSWER), r"messages\[1\] has 2 choices: give the message of the one"),
        (CHUNK, r"messages\[1\] is a piece of a stream: collect"),
        ({"type": "response.output_text.delta", "delta": "He"}, "is a piece of a stream"),
        ({"type": "content_block_delta", "delta": {"text": "He"}}, "is a piece of a stream"),
        (message({"type": "text", "text": "Up."}).content[0], r"\[1\] is a block of a message \('text'\)"),
        (use(), r"is a block of a message \('tool_use'\), not a message: give {'role': 'assistant'"),
        ({"type": "human", "content": "Hello"}, "has the type 'human', which no provider has"),
        ({"type": "ai", "content": [{"type": "text", "text": "Hello"}]}, "has the type 'ai'"),
    ],
)
def test_a_piece_of_an_answer_is_refused(given, said):
    """It would be kept as something unknown, and what it says would be forgotten: the error says what to give."""
    with pytest.raises(InvalidArgumentError, match=said):
        parsed([USER, given])


def test_items_that_are_not_known_yet_are_kept():
    """Hosted tools, and what OpenAI Responses will have next year."""
    items = [{"type": "hologram_call", "id": "h", "action": {"text": "?"}}, {"type": "compaction", "id": "c"}]
    assert back([USER, *items]) == [USER, *items]


# -- a shape that is named ----------------------------------------------------------------------------------------------

AWKWARD = {
    "an answer of Anthropic's": [USER, message({"type": "text", "text": "Up."})],
    "a refusal": [USER, {"role": "assistant", "content": None, "refusal": "No."}],
    "a name": [{**USER, "name": "ada"}, ANSWER],
    "instructions": [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, USER, ANSWER],
    "something empty": [USER, {"role": "assistant", "content": ""}, ANSWER],
    "two answers": [USER, ANSWER, {"role": "assistant", "content": "Or down."}],
    "a word in between": [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("a", "look")]},
        {"role": "user", "content": "Stop."},
        {"role": "tool", "tool_call_id": "a", "content": "there"},
    ],
    "a parsed value": [
        USER,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "{}", "annotations": [], "parsed": {}}],
        },
    ],
    "parsed arguments": [
        USER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "index": 0,
                    "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "there"},
    ],
    "blocks of text": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, ANSWER],
}
KEYS = {
    "openai": {"role", "content", "name", "refusal", "tool_calls", "tool_call_id"},
    "responses": {"role", "content", "type", "call_id", "name", "arguments", "output", "id", "status"},
    "anthropic": {"role", "content"},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", AWKWARD)
def test_a_named_shape_has_only_what_its_provider_takes(kind, shape):
    """Its own types and fields, its roles, results behind their calls; without a shape it is what came."""
    sent = back(AWKWARD[kind], shape)
    assert "parsed" not in str(sent)
    for one in sent:
        assert is_valid(shape, one)
        assert one.keys() <= KEYS[shape]
        assert one.get("content", "…") not in ("", []) or one.get("tool_calls")
        assert (
            shape == "responses" or one.get("content") is not None or one.get("refusal") or one["tool_calls"]
        )
    roles = [one.get("role") for one in sent]
    if shape == "anthropic":
        assert roles == [("user", "assistant")[place % 2] for place in range(len(roles))]
    if shape == "responses":
        assert "name" not in sent[0]
        assert "'type': 'text'" not in str(sent)
    if kind == "a word in between" and shape == "openai":
        assert roles == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_provider_takes_as_it_came_comes_back_as_it_came(shape):
    """Cache marks, ids and citations are the provider's own, and hosted tools are nobody else's."""
    came = {
        "openai": [{**USER, "name": "ada"}, ANSWER],
        "responses": [
            USER,
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {}},
            ANSWER,
        ],
        "anthropic": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            },
            {"role": "assistant", "content": [use()]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "y"}]},
        ],
    }[shape]
    if shape == "responses":
        came = [*came[:2], {"role": "assistant", "content": "Up there."}]
    assert back(came, shape) == came


def test_each_message_of_a_turn_comes_back_in_its_own_shape():
    """A turn may be begun with one provider and go on with another."""
    asked = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("a", "look")]},
        {"role": "tool", "tool_call_id": "a", "content": "there"},
    ]
    said = [{"role": "assistant", "content": [{"type": "text", "text": "Up."}, use("b")]}]
    first = parsed(asked)
    more = parsed(said, steps=first.steps, before=first.messages)
    again = given_back([*first.messages, *more.messages], [*first.steps, *more.steps], {})
    assert again == [*asked, *said]


def test_a_block_whose_type_is_not_a_word_comes_back():
    """A client may write anything there; like every unknown block, it is left out for other providers."""
    odd = [{"role": "user", "content": [{"type": ["x"], "text": "hi"}]}]
    assert [{"role": "user", "content": "hi"}] == back(odd, "openai")
    assert [] == back(odd, "responses") == back(odd, "anthropic")


# -- streams that broke off -----------------------------------------------------------------------------------------------


def thinking(signature: str) -> dict:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


def test_a_thought_that_nobody_sealed_is_not_sent():
    """A stream that broke off leaves one without a signature, and Anthropic refuses it."""
    messages = [USER, {"role": "assistant", "content": [thinking(""), {"type": "text", "text": "I am"}]}]
    said = {"role": "assistant", "content": [{"type": "text", "text": "I am"}]}
    assert shown(messages, "anthropic")[1] == back(messages, "anthropic")[1] == said
    assert back(messages) == messages


def test_a_message_does_not_end_in_a_thought():
    """Its call was never answered and is left out, so the thought before it is too; the first one led to words."""
    text = {"type": "text", "text": "let me"}
    messages = [USER, {"role": "assistant", "content": [thinking("a"), text, thinking("b"), use()]}]
    assert shown(messages, "anthropic")[1]["content"] == [thinking("a"), text]


# -- calls ----------------------------------------------------------------------------------------------------------------


def test_calls_without_ids_are_answered_in_their_order():
    """Some servers give none."""
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("", "f", '{"a":1}'), call("", "g")]},
        {"role": "tool", "tool_call_id": "", "content": "one"},
        {"role": "tool", "tool_call_id": "", "content": "two"},
        ANSWER,
    ]
    found = parsed(messages)
    steps = [(step.tool, step.input, step.result) for step in found.steps]
    assert steps == [("f", {"a": 1}, "one"), ("g", {}, "two")]
    assert back(messages) == messages
    sent = back(messages, "openai")
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool", "assistant"]
    ids = [one["id"] for one in sent[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in sent[2:4]]
    assert all(ids)


def test_no_arguments_are_an_empty_object():
    """An empty text is what some servers write for them."""
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call("a", "look", "")]},
        {"role": "tool", "tool_call_id": "a", "content": "there"},
    ]
    assert parsed(messages).steps[0].input == {}
    assert shown(messages, "anthropic")[0]["content"][0]["input"] == {}
    assert back(messages, "openai")[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert back(messages) == messages


@pytest.mark.parametrize(
    ("shape", "chars", "most"), [("openai", 40, 64), ("responses", 64, 64), ("anthropic", 128, 128)]
)
@pytest.mark.parametrize("name", ["mcp.查", "mcp.看", "f.g", "x" * 90])
def test_names_and_ids_are_such_as_the_provider_takes(shape, chars, most, name):
    """Letters, digits, _ and -; no longer than it allows; two tools stay two."""
    long = "call:" + "x" * 150
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call(long, name), call(long + "2", "f_h")]},
        {"role": "tool", "tool_call_id": long, "content": "1"},
        {"role": "tool", "tool_call_id": long + "2", "content": "2"},
    ]
    calls = list(_calls(shown(messages, shape)))
    ids = [call_id for call_id, _ in calls]
    assert len(set(ids)) == 2
    assert all(len(call_id) <= chars for call_id in ids)
    sent = calls[0][1]
    assert sent.replace("_", "").replace("-", "").isalnum()
    assert sent.isascii()
    assert 1 <= len(sent) <= most
    assert sent == next(_calls(back(messages, shape)))[1]
    assert (sent == "f_g") == (name == "f.g")


def test_two_names_in_another_script_stay_two():
    """Of a Chinese name no character is left."""
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    one, other = (
        next(
            _calls(
                shown(
                    [{"role": "assistant", "content": None, "tool_calls": [call("a", name)]}, result],
                    "openai",
                )
            )
        )
        for name in ("查", "看")
    )
    assert one != other


def _calls(messages):
    for one in messages:
        for tool_call in one.get("tool_calls", ()):
            yield tool_call["id"], tool_call["function"]["name"]
        if one.get("type") == "function_call":
            yield one["call_id"], one["name"]
        for block in one.get("content") or ():
            if isinstance(block, dict) and block["type"] == "tool_use":
                yield block["id"], block["name"]


def test_an_error_without_a_word_gets_one():
    """Anthropic refuses one whose content is empty."""
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": ""}
    messages = [{"role": "assistant", "content": [use()]}, {"role": "user", "content": [result]}]
    for sent in (shown(messages, "anthropic"), back(messages, "anthropic")):
        assert sent[1]["content"] == [{**result, "content": "error"}]
    assert back(messages) == messages


def test_an_error_in_a_chat_message_is_one_for_anthropic():
    """The chat API has no field for it; who has one, keeps it."""
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call("a", "look")]},
        {"role": "tool", "tool_call_id": "a", "content": "boom", "is_error": True},
    ]
    assert shown(messages, "anthropic")[1]["content"][0]["is_error"] is True
    assert "is_error" not in back(messages, "openai")[1]
    assert back(messages) == messages


def test_what_another_model_thought_is_no_block_of_anthropics():
    """It is kept beside the content, and never sent."""
    messages = [
        USER,
        {"role": "assistant", "content": [use()], "reasoning": "plan", "reasoning_details": [{"id": "rs_1"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
    ]
    found = parsed(messages)
    assert found.messages[1].parts[0] == Reasoning("plan", {})
    assert back(messages, "anthropic")[1] == {"role": "assistant", "content": [use()]}
    assert back(messages) == messages


def test_search_results_stay_search_results_for_anthropic():
    """It cites them; others are told them as text, and so is Anthropic where another text is shown than came."""
    hit = {
        "type": "search_result",
        "source": "https://s",
        "title": "T",
        "content": [{"type": "text", "text": "found"}],
        "citations": {"enabled": True},
    }
    texts = [{"type": "text", "text": "before"}, {"type": "text", "text": "after"}]
    content = [texts[0], hit, hit, texts[1]]
    messages = [
        {"role": "assistant", "content": [use()]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]},
    ]
    found = parsed(messages)
    assert shown(messages, "anthropic") == messages
    assert message_from(json.loads(json.dumps(message_json(found.messages[1])))) == found.messages[1]
    assert "found" in shown(messages, "openai")[1]["content"]
    steps = with_own_call_ids(shown_steps(found.steps, {0: "[archived]"}), "anthropic", set())
    (_, user) = written(prepared(found.messages), Filling(steps), "anthropic")
    assert user["content"][0]["content"] == "[archived]"


def test_a_tool_may_be_a_vendors_object():
    """As messages may: it costs what its JSON costs, wherever it stands."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    plain = {"name": "weather", "parameters": schema, "strict": True, "type": "function"}
    tool = FunctionTool.model_validate(plain)
    assert tool_texts([tool]) == tool_texts([plain])
    assert tool_texts([{"tools": [tool]}]) == tool_texts([{"tools": [plain]}])
