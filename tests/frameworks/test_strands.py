"""The adapters' contract with Strands Agents."""

import json

from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models import Model

from pagefile.integrations.strands import PagefilePlugin
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Give, Outcome, Use


class Trip(BaseModel):
    """A journey."""

    city: str
    days: int


class Scripted(Model):
    def __init__(self, player):
        self.player = player

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, output_model, prompt, system_prompt=None, **more):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        step = self.player.next(f"{system_prompt}\n{json.dumps(messages)}")
        if isinstance(step, Give):
            step = Use((("Trip", step.value),))
        yield {"messageStart": {"role": "assistant"}}
        if text := step.text:
            yield {"contentBlockStart": {"start": {}}}
            for at, word in enumerate(text.split(" ")):
                yield {"contentBlockDelta": {"delta": {"text": word if not at else f" {word}"}}}
            yield {"contentBlockStop": {}}
        calls = step.calls if isinstance(step, Use) else ()
        for at, (name, given) in enumerate(calls):
            use = {"name": name, "toolUseId": f"call_{len(self.player.requests)}_{at}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class Strands(AdapterDriver):
    framework, package = "Strands Agents", "strands-agents"

    def __init__(self, memory):
        super().__init__(memory)
        self.messages, self.waiting = {}, {}

    def _agent(self, task):
        agent = Agent(
            Scripted(task.player),
            tools=[tool(one) for one in task.tools],
            messages=list(self.messages.get(task.conversation, [])),
            system_prompt="Help.",
            callback_handler=None,
            retry_strategy=None,
            plugins=[PagefilePlugin(self.memory, task.conversation, user_id=task.user)],
        )

        def asked(event: BeforeToolCallEvent):
            if event.tool_use["name"] in task.approved:
                event.interrupt("approve", reason=event.tool_use["name"])

        agent.add_hook(asked, BeforeToolCallEvent)
        return agent

    async def run(self, task):
        return await self._run(task, self._agent(task), task.prompt)

    async def resume(self, task):
        agent, interrupts = self.waiting.pop(task.conversation)
        answers = [{"interruptResponse": {"interruptId": one.id, "response": "yes"}} for one in interrupts]
        return await self._run(task, agent, answers)

    async def _run(self, task, agent, given):
        if task.stream:
            pieces = [event["data"] async for event in agent.stream_async(given) if "data" in event]
            self.messages[task.conversation] = agent.messages
            return Outcome("".join(pieces), pieces)
        more = {"structured_output_model": Trip} if task.structured else {}
        ended = await agent.invoke_async(given, **more)
        if ended.stop_reason == "interrupt":
            self.waiting[task.conversation] = agent, ended.interrupts
            return Outcome("", waits=True)
        self.messages[task.conversation] = agent.messages
        return Outcome(str(ended).strip())

    async def saved(self, task):
        return json.dumps(self.messages[task.conversation])


class TestStrands(AdapterContract):
    driver = Strands
