"""What is read of a transcript: the model's own words since a prompt, each once."""

import json

from tests.heavy import heavy, is_there

if is_there("claude"):
    from pagefile.integrations.claude_code.shapes import Transcript, pictured

pytestmark = heavy("claude")

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}


def line(kind, *blocks, **more):
    return json.dumps({"type": kind, "message": {"content": list(blocks)}, **more}) + "\n"


def test_what_was_said_since_the_prompt(tmp_path):
    """Nothing of earlier prompts and of sub-agents, thoughts with their signature, and nothing twice."""
    file = tmp_path / "t.jsonl"
    earlier = line("assistant", {"type": "text", "text": "old"}) + line("user", promptId="p2")
    inner = line("assistant", {"type": "text", "text": "inner"}, isSidechain=True)
    file.write_text(earlier + inner + line("assistant", THOUGHT) + line("assistant", CALL)[:-9])
    transcript = Transcript("p2")
    transcript.read(str(file))
    assert [THOUGHT] == [said.json("anthropic")["content"][0] for said in transcript.said]
    with file.open("a") as more:
        more.write(line("assistant", CALL)[-9:] + line("assistant", {"type": "text", "text": "done"}))
    transcript.read(str(file))
    assert [THOUGHT, CALL, {"type": "text", "text": "done"}] == [
        said.json("anthropic")["content"][0] for said in transcript.said
    ]


def test_a_transcript_that_is_not_there(tmp_path):
    """There is none before the first answer."""
    transcript = Transcript("p")
    transcript.read(str(tmp_path / "none.jsonl"))
    assert [] == transcript.said


def test_lines_that_are_none(tmp_path):
    """What is not a line of a transcript is passed over, and what comes behind it is read."""
    bad = ["{", "[]", "7", "[" * 100_000, '{"type": "assistant"}', '{"type": "assistant", "message": [1]}']
    bad += ['{"type": "assistant", "message": {"content": [1, null, {"type": [2]}, {}]}}', "\xff\x00"]
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join([line("user", promptId="p").strip(), *bad, line("assistant", CALL)]))
    transcript = Transcript("p")
    transcript.read(str(file))
    assert CALL == transcript.said[-1].json("anthropic")["content"][0]


def test_pictures_of_answers():
    """Images of Read and of MCP tools, as blocks that the log knows."""
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    read = {"type": "image", "file": {"base64": "aGVsbG8=", "type": "image/png"}}
    mcp = [{"type": "text", "text": "a"}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    assert [[block]] * 4 == [pictured(one) for one in (read, mcp, [block], {"content": mcp})]
    assert [] == pictured({"stdout": "a"})
