"""What assistants and coding agents keep of their conversations comes over once; what is not the conversation is left out and counted."""

import json
import zipfile
from datetime import UTC, datetime

import anyio
import pytest

from pagefile.errors import TransferError
from pagefile.integrations.assistant_exports import from_chatgpt, from_claude, from_gemini
from pagefile.integrations.imports import FORMATS, read_dump
from pagefile.integrations.memory_dumps import from_letta, from_zep
from pagefile.integrations.transcripts import from_claude_code, from_codex
from tests.acceptance.cli_calling import pagefile

AT = "2026-03-01T09:00:00.000Z"


def line(kind, content, uuid, **more):
    message = {"role": kind, "content": content}
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "s1",
        "cwd": "/srv/shop",
        "timestamp": AT,
        "message": message,
        **more,
    }


CLAUDE_CODE = [
    {"type": "summary", "summary": "Fixing the till", "leafUuid": "x"},
    line("user", "<command-name>/clear</command-name>", "u0"),
    line("user", "Why does the till crash?", "u1", promptId="p1"),
    line("assistant", [{"type": "thinking", "thinking": "…", "signature": "s"}], "a1"),
    line(
        "assistant",
        [
            {"type": "text", "text": "I will look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat till.py"}},
        ],
        "a2",
    ),
    line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "1/0"}], "u2", toolUseResult={}),
    line("assistant", "Explored", "a3", isSidechain=True),
    line("assistant", [{"type": "text", "text": "It divides by zero."}], "a4"),
    line("user", "This session is being continued from …", "u3", isCompactSummary=True),
    line("user", "Caveat: internal", "u4", isMeta=True),
    line("user", "Fix it.", "u5"),
    line("assistant", [{"type": "text", "text": "Done."}], "a5"),
]


def item(kind, **payload):
    return {"timestamp": AT, "type": "response_item", "payload": {"type": kind, **payload}}


def spoken(role, said):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": said}])


CODEX = [
    {
        "timestamp": AT,
        "type": "session_meta",
        "payload": {"id": "c1", "cwd": "/srv/shop", "cli_version": "0.9"},
    },
    spoken("developer", "Be careful."),
    spoken("user", "<environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context>"),
    spoken("user", "Run the tests."),
    {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": "Run the tests."}},
    item("reasoning", summary=[], encrypted_content="…"),
    item("function_call", name="shell", arguments='{"command": ["pytest"]}', call_id="f1"),
    item("function_call_output", call_id="f1", output='{"output": "3 failed"}'),
    spoken("assistant", "Three fail."),
    {"timestamp": AT, "type": "compacted", "payload": {"message": "Summary …"}},
]


def node(name, parent, role, said, kind="text", **more):
    content = (
        {"content_type": kind, "parts": said}
        if isinstance(said, list)
        else {"content_type": kind, "text": said}
    )
    message = {
        "id": f"m-{name}",
        "author": {"role": role},
        "create_time": 1772355600.5,
        "content": content,
        **more,
    }
    return {name: {"id": name, "parent": parent, "children": [], "message": message}}


CHATGPT = [
    {
        "conversation_id": "g1",
        "title": "Sourdough",
        "current_node": "e",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
            **node("a", "root", "system", [""], metadata={"is_visually_hidden_from_conversation": True}),
            **node("b", "a", "user", ["How long does sourdough rise?", {"content_type": "image_asset_pointer"}], "multimodal_text"),
            **node("old", "b", "assistant", ["Two hours."]),
            **node("c", "b", "assistant", "search('sourdough')", "code", recipient="browser"),
            **node("d", "c", "tool", "12 h at 20 °C", "execution_output"),
            **node("e", "d", "assistant", ["Twelve hours at 20 °C."], recipient="all"),
        },
    }
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "k1",
        "name": "Trip",
        "chat_messages": [
            {
                "uuid": "h1",
                "sender": "human",
                "text": "When is the ferry?",
                "content": [{"type": "text", "text": "When is the ferry?"}],
                "attachments": [{"file_name": "plan.txt", "extracted_content": "Ferry 9:40"}],
                "files": [{"file_name": "map.png"}],
                "created_at": AT,
            },
            {
                "uuid": "h2",
                "sender": "assistant",
                "text": "",
                "content": [
                    {"type": "tool_use", "id": "q", "name": "web_search", "input": {"query": "ferry"}},
                    {"type": "tool_result", "tool_use_id": "q", "content": [{"type": "text", "text": "9:40 daily"}]},
                    {"type": "text", "text": "At 9:40."},
                ],
                "created_at": AT,
            },
        ],
    }
]  # fmt: skip
TAKEOUT = [
    {"header": "Gemini Apps", "title": "Used an app", "time": "2026-03-02T08:00:00Z"},
    {
        "header": "Gemini Apps",
        "title": "Prompted What is a quark?",
        "time": "2026-03-01T08:00:00Z",
        "safeHtmlItem": [{"html": "<p>A <b>particle</b> &amp; more.</p><ul><li>up</li><li>down</li></ul>"}],
    },
]
GEMINI_CLI = {
    "sessionId": "z1",
    "messages": [
        {"id": "1", "type": "info", "content": "Welcome", "timestamp": AT},
        {"id": "2", "type": "user", "content": "List the files.", "timestamp": AT},
        {
            "id": "3",
            "type": "gemini",
            "content": "Two files.",
            "timestamp": AT,
            "toolCalls": [{"id": "t", "name": "ls", "args": {}, "result": [{"functionResponse": {"response": {"output": "a b"}}}]}],
        },
    ],
}  # fmt: skip
LETTA = {
    "agents": [
        {
            "id": "agent-0",
            "messages": [
                {"id": "l0", "role": "system", "content": [{"type": "text", "text": "You are …"}]},
                {"id": "l1", "role": "user", "content": [{"type": "text", "text": "I moved to Bonn."}], "created_at": AT},
                {
                    "id": "l2",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "a thought"}],
                    "tool_calls": [
                        {"id": "s", "function": {"name": "send_message", "arguments": '{"message": "Noted."}'}}
                    ],
                },
                {"id": "l3", "role": "tool", "tool_call_id": "s", "content": [{"type": "text", "text": "OK"}]},
            ],
        }
    ],
    "blocks": [
        {"label": "human", "value": "- Lives in Bonn\n\n- Drinks tea"},
        {"label": "persona", "value": "I am Sam."},
    ],
}  # fmt: skip
ZEP = [
    {
        "thread_id": "t1",
        "user_id": "ada",
        "messages": [
            {"uuid": "z1", "role": "user", "role_type": "user", "content": "I like tea.", "created_at": AT},
            {"uuid": "z2", "role": "assistant", "content": "Noted.", "created_at": AT},
        ],
    },
    {
        "user_id": "ada",
        "edges": [
            {"uuid": "e1", "fact": "Ada likes tea", "valid_at": AT},
            {"uuid": "e2", "fact": "Ada lives in Rome", "invalid_at": AT},
        ],
    },
]
DATA = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "chatgpt": CHATGPT,
    "claude": CLAUDE,
    "gemini": TAKEOUT,
    "letta": LETTA,
    "zep": ZEP,
}


def said(brought):
    return [(turn.user, turn.assistant) for turn in brought.turns]


def test_claude_code():
    brought = from_claude_code(CLAUDE_CODE)
    assert [
        ("Why does the till crash?", "I will look.\n\nIt divides by zero."),
        ("Fix it.", "Done."),
    ] == said(brought)
    first = brought.turns[0]
    assert ("s1", "project:/srv/shop", "p1") == (first.conversation_id, first.user_id, first.id)
    assert datetime(2026, 3, 1, 9, tzinfo=UTC) == first.at
    assert (
        {"tool": "Bash", "input": {"command": "cat till.py"}, "result": "1/0", "call_id": "t1"},
    ) == first.steps
    assert {
        "notes of the program": 2,
        "summaries of the agent's own": 1,
        "messages of subagents": 1,
    } == brought.left_out


def test_a_resumed_session_repeats_nothing():
    copied = [{**one, "sessionId": "s2"} for one in CLAUDE_CODE if "sessionId" in one]
    more = [
        line("user", "And now?", "u9", sessionId="s2"),
        line("assistant", "Nothing.", "a9", sessionId="s2"),
    ]
    brought = from_claude_code([*CLAUDE_CODE, *copied, *more])
    assert [*said(from_claude_code(CLAUDE_CODE)), ("And now?", "Nothing.")] == said(brought)


def test_codex():
    brought = from_codex(CODEX)
    assert [("Run the tests.", "Three fail.")] == said(brought)
    assert ("c1", "project:/srv/shop") == (brought.turns[0].conversation_id, brought.turns[0].user_id)
    assert "shell" == brought.turns[0].steps[0]["tool"]
    assert {"command": ["pytest"]} == brought.turns[0].steps[0]["input"]


def test_codex_without_envelopes():
    older = [
        {"id": "c0", "timestamp": AT},
        *(one["payload"] for one in CODEX[1:] if one["type"] == "response_item"),
    ]
    assert [("Run the tests.", "Three fail.")] == said(from_codex(older))


def test_chatgpt_brings_the_branch_that_is_shown():
    brought = from_chatgpt(CHATGPT)
    assert [("How long does sourdough rise?", "Twelve hours at 20 °C.")] == said(brought)
    assert ["12 h at 20 °C"] == [step["result"] for step in brought.turns[0].steps]
    assert 1 == brought.left_out["images and files"]


def test_a_circle_in_chatgpts_tree_ends():
    chat = {"conversation_id": "g", "current_node": "a", "mapping": node("a", "a", "user", ["Hi"])}
    assert 1 <= len(from_chatgpt([chat]).turns) <= 2


def test_claude():
    brought = from_claude(CLAUDE)
    assert [("When is the ferry?\n[file: plan.txt]\n[file: map.png]", "At 9:40.")] == said(brought)
    assert {"images and files": 1} == brought.left_out
    plan, found = brought.turns[0].steps
    assert ("attachment", "Ferry 9:40") == (plan["tool"], plan["result"])
    assert ("web_search", "9:40 daily") == (found["tool"], found["result"])


def test_gemini():
    brought = from_gemini(TAKEOUT)
    assert [("What is a quark?", "A particle & more.\nup\ndown")] == said(brought)
    assert "gemini:2026-03-01" == brought.turns[0].conversation_id
    assert [("List the files.", "Two files.")] == said(from_gemini(GEMINI_CLI))
    assert "a b" == from_gemini(GEMINI_CLI).turns[0].steps[0]["result"]


def test_letta():
    brought = from_letta(LETTA)
    assert [("I moved to Bonn.", "Noted.")] == said(brought)
    assert ["Lives in Bonn", "Drinks tea"] == [fact.text for fact in brought.facts]
    listed = [
        {"id": "1", "message_type": "user_message", "content": "Hello", "date": AT},
        {"id": "2", "message_type": "reasoning_message", "reasoning": "…"},
        {"id": "3", "message_type": "tool_call_message", "tool_call": {"name": "look", "arguments": "{}", "tool_call_id": "x"}},
        {"id": "4", "message_type": "tool_return_message", "tool_return": "seen", "tool_call_id": "x"},
        {"id": "5", "message_type": "assistant_message", "content": "Hi"},
    ]  # fmt: skip
    assert [("Hello", "Hi")] == said(from_letta(listed))
    assert "seen" == from_letta(listed).turns[0].steps[0]["result"]


def test_zep():
    brought = from_zep(ZEP)
    assert [("I like tea.", "Noted.")] == said(brought)
    assert [("Ada likes tea", "ada")] == [(fact.text, fact.user_id) for fact in brought.facts]
    assert {"facts that are no longer valid": 1} == brought.left_out


@pytest.mark.parametrize("kind", DATA)
def test_another_file_is_refused_with_what_to_give(kind):
    with pytest.raises(TransferError, match="This is not"):
        FORMATS[kind]([{"something": "else"}] if kind != "letta" else {"something": "else"})


@pytest.mark.parametrize("kind", DATA)
def test_importing_twice_changes_nothing(kind, tmp_path):
    """And everything that was imported can be recalled by the user of the MCP server, or of the project."""
    lines = kind in {"claude-code", "codex"}
    file = tmp_path / ("dump.jsonl" if lines else "dump.json")
    data = DATA[kind]
    file.write_text("\n".join(map(json.dumps, data)) if lines else json.dumps(data), encoding="utf-8")
    db = str(tmp_path / "memory.db")
    first, again = (pagefile("import", str(file), "--from", kind, "--json", "--db", db) for _ in range(2))
    assert 0 == first.code, first.err
    assert first.json["turn"] + first.json["fact"] > 0
    assert (0, 0) == (again.json["turn"], again.json["fact"])
    assert first.json["turn"] + first.json["fact"] == again.json["known"]


def test_a_folder_of_sessions_is_one_import(tmp_path):
    folder = tmp_path / "projects" / "-srv-shop"
    folder.mkdir(parents=True)
    (folder / "s1.jsonl").write_text("\n".join(map(json.dumps, CLAUDE_CODE)), encoding="utf-8")
    copied = [{**one, "sessionId": "s2"} for one in CLAUDE_CODE]
    (folder / "s2.jsonl").write_text("\n".join(map(json.dumps, copied)) + '\n{"half', encoding="utf-8")
    (folder / "broken.jsonl").write_text('{"a": 1}', encoding="utf-8")
    asked = ("import", str(tmp_path / "projects"), "--from", "claude-code", "--db", str(tmp_path / "m.db"))
    done = pagefile(*asked, "--json")
    assert 2 == done.json["turn"]
    assert 2 == done.json["left_out"]["copies of turns"]
    assert 1 == done.json["left_out"]["files that cannot be read"]
    assert 1 == done.json["left_out"]["damaged lines"]


def test_a_user_may_be_named_for_a_projects_sessions(tmp_path):
    file = tmp_path / "s1.jsonl"
    file.write_text("\n".join(map(json.dumps, CLAUDE_CODE)), encoding="utf-8")
    db = str(tmp_path / "memory.db")
    assert 0 == pagefile("import", str(file), "--from", "claude-code", "--user-id", "ada", "--db", db).code
    found = pagefile("recall", "till crash", "--user-id", "ada", "--json", "--db", db)
    assert "divides by zero" in found.out


def test_a_zip_archive_is_read_as_it_comes(tmp_path):
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps(CHATGPT))
        archive.writestr("user.json", "{}")
    assert 1 == len(anyio.run(read_dump, file, "chatgpt").turns)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("user.json", "{}")
    with pytest.raises(TransferError, match="no conversations"):
        anyio.run(read_dump, file, "chatgpt")
    file.write_bytes(b"not a zip")
    with pytest.raises(TransferError, match="Cannot read"):
        anyio.run(read_dump, file, "chatgpt")


def test_where_there_is_nothing_it_says_so(tmp_path):
    missing = pagefile("import", str(tmp_path / "nowhere"), "--from", "codex")
    assert 3 == missing.code
    assert "rollout-*.jsonl" in missing.err
    assert 2 == pagefile("import", "--from", "chatgpt").code
