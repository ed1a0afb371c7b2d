"""The adapters' contract with the OpenAI Agents SDK."""

import itertools
import json

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from pagefile.integrations.openai_agents import PagefileSession
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Give, Outcome, Use

#: No two calls of a run have the same id.
NUMBERS = itertools.count()


class Trip(BaseModel):
    city: str
    days: int


class Scripted(ScriptedModel):
    """The SDK's own fake, with streams in pieces."""

    async def stream_response(self, *given, **more):
        async for event in super().stream_response(*given, **more):
            if event.type != "response.output_text.delta":
                yield event
                continue
            for at, word in enumerate(event.delta.split(" ")):
                yield event.model_copy(update={"delta": word if not at else f" {word}"})


def model_of(player):
    def answered(call):
        step = player.next(f"{call.system_instructions}\n{json.dumps(call.input, ensure_ascii=False)}")
        if isinstance(step, Give):
            return [assistant_message(json.dumps(step.value))]
        if not isinstance(step, Use):
            return [assistant_message(step.text)]
        number = next(NUMBERS)
        said = [assistant_message(step.text)] if step.text else []
        return [
            *said,
            *(
                function_call(name, given, call_id=f"call_{number}_{at}")
                for at, (name, given) in enumerate(step.calls)
            ),
        ]

    return Scripted([ModelStep.respond(answered) for _ in player.script])


class OpenAIAgents(AdapterDriver):
    framework, package = "OpenAI Agents SDK", "openai-agents"

    def __init__(self, memory):
        super().__init__(memory)
        self.sessions, self.waiting = {}, {}

    def _session(self, task):
        if task.conversation not in self.sessions:
            self.sessions[task.conversation] = PagefileSession(
                self.memory, task.conversation, user_id=task.user
            )
        return self.sessions[task.conversation]

    def _agent(self, task):
        tools = [function_tool(tool, needs_approval=tool.__name__ in task.approved) for tool in task.tools]
        output = Trip if task.structured else None
        agent = Agent(
            "helper", instructions="Help.", model=model_of(task.player), tools=tools, output_type=output
        )
        return self._session(task).equipped(agent)

    async def run(self, task):
        return await self._run(task, self._agent(task), task.prompt)

    async def retry(self, task):
        await self._session(task).pop_item()  # the question that was not answered
        return await self.run(task)

    async def resume(self, task):
        agent, result = self.waiting.pop(task.conversation)
        state = result.to_state()
        for one in result.interruptions:
            state.approve(one)
        return await self._run(task, agent, state)

    async def _run(self, task, agent, given):
        session = self._session(task)
        more = {"session": session, "run_config": session.run_config(RunConfig(tracing_disabled=True))}
        if task.stream:
            streamed = Runner.run_streamed(agent, given, **more)
            pieces = [
                event.data.delta
                async for event in streamed.stream_events()
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            ]
            return Outcome(str(streamed.final_output), pieces)
        result = await Runner.run(agent, given, **more)
        if result.interruptions:
            self.waiting[task.conversation] = agent, result
        return Outcome(str(result.final_output), waits=bool(result.interruptions))

    async def saved(self, task):
        return json.dumps(await self._session(task).get_items())


class TestOpenAIAgents(AdapterContract):
    driver = OpenAIAgents
