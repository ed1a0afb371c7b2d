"""The adapters' contract with PydanticAI."""

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolApproved
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from pagefile.integrations.pydantic_ai import PagefileMemory
from pagefile.testing.contracts.adapters import AdapterContract, AdapterDriver, Give, Outcome, Use


class Trip(BaseModel):
    city: str
    days: int


def _scripted(player):
    def played(messages, info):
        texts = [info.instructions or ""]
        for message in messages:
            texts += [
                str(getattr(part, "content", None) or getattr(part, "args", "")) for part in message.parts
            ]
        step = player.next("\n".join(texts))
        if isinstance(step, Give):
            step = Use(((info.output_tools[0].name, step.value),))
        return step

    def answered(messages, info):
        step = played(messages, info)
        if not isinstance(step, Use):
            return ModelResponse([TextPart(step.text)])
        number = len(player.requests)
        calls = [
            ToolCallPart(name, given, f"call_{number}_{at}") for at, (name, given) in enumerate(step.calls)
        ]
        return ModelResponse([*([TextPart(step.text)] if step.text else []), *calls])

    async def streamed(messages, info):
        step = played(messages, info)
        if isinstance(step, Use):
            yield {at: DeltaToolCall(name, str(given)) for at, (name, given) in enumerate(step.calls)}
            return
        first, *rest = step.text.split(" ")
        yield first
        for word in rest:
            yield f" {word}"

    return FunctionModel(answered, stream_function=streamed)


class PydanticAI(AdapterDriver):
    framework, package = "PydanticAI", "pydantic-ai-slim"

    def __init__(self, memory):
        super().__init__(memory)
        self.histories = {}

    def _agent(self, task):
        output = Trip if task.structured else [str, DeferredToolRequests] if task.approved else str
        tools = [Tool(tool, requires_approval=tool.__name__ in task.approved) for tool in task.tools]
        memory = PagefileMemory(self.memory, user_id=task.user, conversation_id=task.conversation)
        return Agent(_scripted(task.player), output_type=output, tools=tools, capabilities=[memory])

    async def run(self, task):
        return await self._run(task, task.prompt)

    async def resume(self, task):
        last = self.histories[task.conversation][-1]
        calls = [part for part in last.parts if isinstance(part, ToolCallPart)]
        approvals = {call.tool_call_id: ToolApproved() for call in calls}
        return await self._run(task, None, deferred_tool_results=DeferredToolResults(approvals=approvals))

    async def _run(self, task, prompt, **more):
        agent, history = self._agent(task), self.histories.get(task.conversation)
        if task.stream:
            async with agent.run_stream(prompt, message_history=history, **more) as streamed:
                pieces = [piece async for piece in streamed.stream_text(delta=True, debounce_by=None)]
            self.histories[task.conversation] = streamed.all_messages()
            return Outcome("".join(pieces), pieces)
        result = await agent.run(prompt, message_history=history, **more)
        self.histories[task.conversation] = result.all_messages()
        return Outcome(str(result.output), waits=isinstance(result.output, DeferredToolRequests))

    async def saved(self, task):
        return ModelMessagesTypeAdapter.dump_json(self.histories[task.conversation]).decode()


class TestPydanticAI(AdapterContract):
    driver = PydanticAI
