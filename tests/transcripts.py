"""Conversations in the shapes of the vendors."""

CALLS = [
    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"where":"up"}'}},
    {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"where": "down"}'}},
]
CHAT = [
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": "I will look in both places.", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "b", "content": "not there"},
    {"role": "developer", "content": "Be brief."},
    {"role": "tool", "tool_call_id": "a", "content": "there"},
    {"role": "assistant", "content": "Up there.", "refusal": None},
]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
ASKED = [{"role": "user", "content": [PICTURE, {"type": "text", "text": "What is this?"}]}]
LOOKED = [
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A picture.", "signature": "EqQB"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "picture"}},
        ],
    }
]
SEEN = [
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a cat " * 2000}]}
]
SAID = [{"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}]


ADDRESS = "data:image/png;base64," + PICTURE["source"]["data"]
TRANSCRIPTS = {
    "chat": CHAT,
    "chat, one call": [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": None, "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "there"},
        {"role": "assistant", "content": "Up there."},
    ],
    "chat, asked late": [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "a", "content": "a long line\n" * 1000},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ADDRESS}}]},
        {"role": "tool", "tool_call_id": "b", "content": "another long line\n" * 1000},
        {"role": "user", "content": "What now?"},
        {"role": "assistant", "content": "Nothing."},
    ],
    "chat, a short form at first": [
        {"role": "assistant", "content": "", "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "there"},
        {"role": "user", "content": "What now?"},
        {"role": "assistant", "content": "Nothing."},
    ],
    "responses": [
        {"role": "user", "content": "Fix it", "type": "message"},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Read both"}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a.py"}'},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": '{"path":"b.py"}'},
        {"type": "function_call_output", "call_id": "c2", "output": "def b(): ..."},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "def a(): ..."},
                {"type": "input_image", "image_url": ADDRESS, "detail": "auto"},
            ],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "Done.", "annotations": []}]},
    ],
    "anthropic": [*ASKED, *LOOKED, *SEEN, *SAID],
    "anthropic, a picture in a result": [
        {"role": "user", "content": "What is on the screen?"},
        *LOOKED,
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a screen"}, PICTURE],
                },
                {"type": "text", "text": "Hurry."},
            ],
        },
        *SAID,
    ],
}
