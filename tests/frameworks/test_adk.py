"""The adapters' contract with Google's Agent Development Kit."""

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool
from google.genai import types
from pydantic import BaseModel

from pagefile.integrations.adk import PagefilePlugin
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Outcome

from .adk_model import APP, Scripted


class Trip(BaseModel):
    city: str
    days: int


class Adk(AdapterDriver):
    framework, package = "Google ADK", "google-adk"

    def __init__(self, memory):
        super().__init__(memory)
        self.sessions = InMemorySessionService()
        self.plugin = PagefilePlugin(memory)

    async def run(self, task):
        if (
            await self.sessions.get_session(app_name=APP, user_id=task.user, session_id=task.conversation)
            is None
        ):
            await self.sessions.create_session(app_name=APP, user_id=task.user, session_id=task.conversation)
        return await self._run(task, types.Part(text=task.prompt))

    async def resume(self, task):
        session = await self.sessions.get_session(
            app_name=APP, user_id=task.user, session_id=task.conversation
        )
        asked = [
            part.function_call
            for event in session.events
            for part in event.content.parts
            if part.function_call and part.function_call.name == "adk_request_confirmation"
        ]
        response = types.FunctionResponse(id=asked[-1].id, name=asked[-1].name, response={"confirmed": True})
        return await self._run(task, types.Part(function_response=response))

    async def _run(self, task, part):
        tools = [
            FunctionTool(tool, require_confirmation=tool.__name__ in task.approved) for tool in task.tools
        ]
        agent = LlmAgent(
            name="helper",
            model=Scripted(model="scripted", player=task.player),
            instruction="Help.",
            tools=tools,
            output_schema=Trip if task.structured else None,
        )
        runner = Runner(app_name=APP, agent=agent, session_service=self.sessions, plugins=[self.plugin])
        config = RunConfig(streaming_mode=StreamingMode.SSE) if task.stream else None
        texts, pieces, waits = [], [], False
        async for event in runner.run_async(
            user_id=task.user,
            session_id=task.conversation,
            new_message=types.Content(role="user", parts=[part]),
            **({"run_config": config} if config else {}),
        ):
            text = "".join(part.text or "" for part in (event.content.parts if event.content else []))
            (pieces if event.partial else texts).append(text)
            waits = waits or bool(event.long_running_tool_ids)
        return Outcome(texts[-1], pieces, waits=waits)

    async def saved(self, task):
        session = await self.sessions.get_session(
            app_name=APP, user_id=task.user, session_id=task.conversation
        )
        return session.model_dump_json()


class TestAdk(AdapterContract):
    driver = Adk
