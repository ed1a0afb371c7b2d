"""The adapters' contract with the Claude Agent SDK: sessions of its own command, against a stand-in for the Messages API."""

import asyncio
import json
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    tool,
)

from pagefile.integrations.claude_agent import ClaudeMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Give, Outcome, Use
from tests.heavy import heavy
from tests.integration.claude.stub import MessagesStub

# Our own tools are allowed as a whole, on purpose; what the callback is asked about is the agent's tool.
pytestmark = [heavy("claude"), pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked")]

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
OURS = "mcp__pagefile__"


class _Session:
    """One conversation: the command stays, and each task brings its own script."""

    def __init__(self, client, stub):
        self.client, self.stub, self.task = client, stub, None
        self.asked, self.approved = asyncio.Event(), asyncio.Event()


class Claude(AdapterDriver):
    framework, package, prefix = "Claude Agent SDK", "claude-agent-sdk", "mcp__tools__"
    cannot: ClassVar = {
        "memory_in_requests_only": "what a hook adds to a prompt is part of the session's transcript, by design of the SDK",
        "retries": "the command repeats a failed model call by itself, and no hook is told of it",
    }

    def __init__(self, memory):
        super().__init__(memory)
        self.folder = TemporaryDirectory()
        self.sessions = {}
        self.remembered, self.numbers = {}, count()

    async def close(self):
        for session in self.sessions.values():
            await session.client.disconnect()
            session.stub.__exit__(None, None, None)
        self.folder.cleanup()

    async def _session(self, task):
        key = (task.conversation, tuple(task.tools), task.structured, task.stream)
        if key not in self.sessions:
            self.sessions[key] = await self._started(task, next(self.numbers))
        self.sessions[key].task = task
        return self.sessions[key]

    async def _started(self, task, number):
        session = _Session(None, None)
        session.stub = MessagesStub(lambda request: _played(session.task, request)).__enter__()
        if task.conversation not in self.remembered:
            self.remembered[task.conversation] = ClaudeMemory(
                self.memory, user_id=task.user, conversation_id=task.conversation
            )
        options = self.remembered[task.conversation].options(self._options(task, session, number))
        session.client = ClaudeSDKClient(options)
        await session.client.connect()
        return session

    def _options(self, task, session, number):
        home = Path(self.folder.name) / str(number)
        (home / "work").mkdir(parents=True)

        async def may(_name, given, _context):
            session.asked.set()
            await session.approved.wait()
            return PermissionResultAllow(updated_input=given)

        own = create_sdk_mcp_server("tools", tools=[_tool(one) for one in task.tools])
        waiting = {"can_use_tool": may} if task.approved else {}
        allowed = [f"mcp__tools__{one.__name__}" for one in task.tools if one.__name__ not in task.approved]
        return ClaudeAgentOptions(
            model="claude-sonnet-5",
            cwd=str(home / "work"),
            setting_sources=[],
            strict_mcp_config=True,
            mcp_servers={"tools": {**own, "alwaysLoad": True}},
            allowed_tools=allowed,
            include_partial_messages=task.stream,
            output_format={"type": "json_schema", "schema": SCHEMA} if task.structured else None,
            env={
                "ANTHROPIC_BASE_URL": session.stub.url,
                "ANTHROPIC_API_KEY": "sk-stub",
                "HOME": str(home),
                "CLAUDE_CONFIG_DIR": str(home / ".claude"),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_TELEMETRY": "1",
                "IS_SANDBOX": "1",
            },
            **waiting,
        )

    async def run(self, task):
        session = await self._session(task)
        await session.client.query(task.prompt)
        heard = asyncio.ensure_future(_heard(session.client))
        if not task.approved:
            return await heard
        await session.asked.wait()
        session.heard = heard
        return Outcome("", waits=True)

    async def resume(self, task):
        session = await self._session(task)
        session.approved.set()
        return await session.heard

    async def saved(self, task):
        return "".join(file.read_text() for file in Path(self.folder.name).rglob("*.jsonl"))


async def _heard(client):
    pieces, answer = [], ""
    async for message in client.receive_response():
        if isinstance(message, StreamEvent):
            delta = message.event.get("delta", {})
            pieces += [delta["text"]] if delta.get("type") == "text_delta" else []
        elif isinstance(message, ResultMessage):
            answer = message.result or ""
    return Outcome(answer, pieces)


def _played(task, request):
    said = json.dumps({"system": request.get("system"), "messages": request["messages"]}, ensure_ascii=False)
    if len(task.player.requests) == len(task.player.script):
        # After a structured answer the command asks once more.
        return [{"type": "text", "text": "done"}]
    step = task.player.next(said)
    if isinstance(step, Give):
        step = Use((("StructuredOutput", step.value),))
    if not isinstance(step, Use):
        return [{"type": "text", "text": step.text}]
    number = len(task.player.requests)
    calls = [
        {
            "type": "tool_use",
            "id": f"toolu_{id(task) % 10**8}_{number}_{at}",
            "name": name
            if name == "StructuredOutput"
            else f"{OURS}{name}"
            if "tool_history" in name
            else f"mcp__tools__{name}",
            "input": given,
        }
        for at, (name, given) in enumerate(step.calls)
    ]
    return [*([{"type": "text", "text": step.text}] if step.text else []), *calls]


def _tool(function):
    names = [name for name in function.__annotations__ if name != "return"]

    @tool(function.__name__, function.__doc__, dict.fromkeys(names, str))
    async def called(given):
        return {"content": [{"type": "text", "text": function(**given)}]}

    return called


class TestClaude(AdapterContract):
    driver = Claude
