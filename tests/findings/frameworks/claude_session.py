"""Sessions of the Claude Agent SDK's own command, against a stand-in for the Messages API."""

import json

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

from tests.integration.claude.stub import last_said


def options(stub, folder, **more):
    """Options that keep the command inside `folder` and away from everything but the stand-in."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    return ClaudeAgentOptions(
        model="claude-sonnet-5",
        cwd=str(work),
        setting_sources=[],
        strict_mcp_config=True,
        env={
            "ANTHROPIC_BASE_URL": stub.url,
            "ANTHROPIC_API_KEY": "sk-stub",
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        },
        **more,
    )


def text(words):
    return {"type": "text", "text": words}


def use(name, given, number=1):
    return {"type": "tool_use", "id": f"toolu_{name}_{number}", "name": name, "input": given}


def answers_a_tool(request):
    """Whether the last message brings what a tool returned."""
    return any(block.get("type") == "tool_result" for block in last_said(request))


def last_words(request):
    return json.dumps(last_said(request))


async def ask(client, prompt):
    """One prompt and its result."""
    await client.query(prompt)
    return await result_of(client)


async def result_of(client):
    """What the session says next when it stops."""
    return [message async for message in client.receive_response() if isinstance(message, ResultMessage)][-1]


async def logged(memory):
    """All turns of the user's only conversation."""
    (head,) = await memory.conversations(user_id="ada")
    return await memory.conversation(head.scope.conversation, user_id="ada").turns()
