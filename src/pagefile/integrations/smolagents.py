"""smolagents: memory for an agent, with its steps as they are.

```python
agent = PagefileMemory(memory, "conv-1", user_id="ada").attach(ToolCallingAgent(tools, model))
agent.run("What am I allergic to?", reset=False)
```

smolagents waits in threads: give it a `BlockingMemory`.
"""

import base64
import io
import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pagefile.blocking import BlockingMemory
from pagefile.engine import Memory
from pagefile.engine.arguments import result_text
from pagefile.errors import MissingExtraError
from pagefile.gateway.exchanges import Json
from pagefile.integrations.door import (
    Door,
    Request,
    Shown,
    assistant,
    calls_of,
    image,
    plain,
    result,
    user,
    whose,
)
from pagefile.lru import Lru

try:
    from smolagents import MultiStepAgent, Tool
    from smolagents.agents import populate_template
    from smolagents.memory import ActionStep, FinalAnswerStep, MemoryStep, PlanningStep, TaskStep, ToolCall
    from smolagents.models import ChatMessage, MessageRole
except ImportError as error:
    raise MissingExtraError.of("smolagents", "The smolagents integration") from error

#: The tool by which an agent answers.
_ANSWERING = "final_answer"
#: How many results are known one by one; a step has them all in one text.
_RESULTS = 10_000
#: Where the task is in a text for managed agents.
_SPLIT = "\0"
_TYPES = frozenset({"string", "boolean", "integer", "number", "array", "object"})


class PagefileMemory:
    """The memory of one conversation: every model call gets its window, every task becomes a turn.

    Nothing of memory is in the agent's steps. An agent without earlier steps, such as one that is run without `reset=False`, sees
    the earlier turns of the log.

    Args:
        conversation_id: which conversation the agent leads.
        user_id: whose memory it is; without one, nothing is shared between conversations.
        window_tokens: memory never makes a request larger than this; by default the memory's setting.
        tools: False offers none of our tools: then tool results stay in requests.
        timeout_s: how long a call waits for the memory before the run continues without it.
    """

    def __init__(
        self,
        memory: Memory | BlockingMemory,
        conversation_id: str,
        *,
        user_id: str | None = None,
        tenant: str | None = None,
        window_tokens: int | None = None,
        tools: bool = True,
        timeout_s: float = 5.0,
    ) -> None:
        self._door = Door(memory, "smolagents", window_tokens=window_tokens, timeout_s=timeout_s, tools=tools)
        self._who, self._offers = whose(user_id, conversation_id, tenant), tools
        self._results: Lru[str, list[str]] = Lru(_RESULTS)

    def attach(self, agent: MultiStepAgent) -> MultiStepAgent:
        """The agent itself, with memory."""
        whole = cast("Any", agent)
        inner: Any = whole.model
        whole.model = copy(inner)
        whole.model.generate = partial(self._generate, whole, inner.generate)
        if hasattr(inner, "generate_stream"):
            whole.model.generate_stream = partial(self._stream, whole, inner.generate_stream)
        if hasattr(whole, "execute_tool_call"):
            whole.execute_tool_call = partial(self._executed, whole.execute_tool_call)
        whole.step_callbacks.register(FinalAnswerStep, self._ended)
        for name, schema in self._door.tool_schemas(self._who).items() if self._offers else ():
            whole.tools.setdefault(name, _MemoryTool(partial(self._answered, name), schema))
        return agent

    def _answered(self, tool: str, arguments: dict[str, Any]) -> str:
        return self._door.answer_blocking(tool, arguments, self._who)

    def _executed(self, inner: Any, tool_name: str, arguments: Any) -> Any:
        found = inner(tool_name, arguments)
        self._results.setdefault(_call_key(tool_name, arguments), []).append(str(found).strip())
        return found

    # -- model calls ------------------------------------------------------------------------------------------------------

    def _generate(
        self, agent: Any, inner: Any, messages: list[ChatMessage], *given: Any, **more: Any
    ) -> ChatMessage:
        return inner(self._window(agent, messages), *given, **more)

    def _stream(
        self, agent: Any, inner: Any, messages: list[ChatMessage], *given: Any, **more: Any
    ) -> Iterator[Any]:
        yield from inner(self._window(agent, messages), *given, **more)

    def _window(self, agent: Any, messages: list[ChatMessage]) -> list[ChatMessage]:
        own: list[MemoryStep] = list(agent.memory.steps)
        # Plans, and answers after the last step, are asked for in messages of their own.
        if _is_managed(agent, own) or len(messages) != len(agent.write_memory_to_messages()):
            return messages
        system = agent.memory.system_prompt.to_messages()
        request = self._door.request_blocking(
            self._who, self._told(own), agent.memory.system_prompt.system_prompt
        )
        return messages if request is None else [*_with_system(system, request), *_sent(request.shown, own)]

    def _ended(self, step: MemoryStep, agent: Any) -> None:
        if _is_managed(agent, agent.memory.steps):
            return
        answer = cast("FinalAnswerStep", step).output
        told = self._told([*agent.memory.steps])
        text = answer if isinstance(answer, str) else result_text(answer)
        last = told[-1][-1] if told and told[-1] else {}
        self._door.finish_blocking(self._who, told, None if last.get("content") == text else text)

    # -- steps as messages --------------------------------------------------------------------------------------------------

    def _told(self, steps: Sequence[MemoryStep]) -> list[list[Json]]:
        told = [self._step_told(step) for step in steps]
        for at, step in enumerate(steps):
            later = next((place for place in range(at + 1, len(told)) if told[place]), None)
            if isinstance(step, TaskStep) and later is not None and told[at] == told[later]:
                # The task was run again because its first run broke off.
                told[at] = []
        return told

    def _step_told(self, step: MemoryStep) -> list[Json]:
        if isinstance(step, TaskStep):
            pictures = [_picture(one) for one in step.task_images or ()]
            return [user([{"type": "text", "text": step.task}, *pictures] if pictures else step.task)]
        if isinstance(step, PlanningStep):
            return [assistant(step.plan)]
        if not isinstance(step, ActionStep):
            return []
        made = _calls(step)
        calls = [call for call in made if call.name != _ANSWERING]
        answers = [call.arguments for call in made if call.name == _ANSWERING]
        text = step.model_output if isinstance(step.model_output, str) else ""
        if answers and not text:
            text = _answer_text(answers[-1])
        if not text and not calls:
            return []
        said = assistant(text, [(call.id, call.name, call.arguments) for call in calls])
        return [said, *(result(call.id, self._result(step, call)) for call in calls)]

    def _result(self, step: ActionStep, call: Any) -> str:
        known = self._results.get(_call_key(call.name, call.arguments), [])
        whole = step.observations or ("" if step.error is None else str(step.error))
        # An equal call may have had another result before.
        return next((text for text in reversed(known) if text in whole), whole)


def _is_managed(agent: Any, steps: Sequence[MemoryStep]) -> bool:
    """Whether another agent asks: smolagents puts what it asks into a text for managed agents."""
    template = str(agent.prompt_templates["managed_agent"]["task"])
    before = populate_template(template, {"name": agent.name, "task": _SPLIT}).partition(_SPLIT)[0]
    asked = next((step.task for step in reversed(steps) if isinstance(step, TaskStep)), "")
    return bool(before.strip()) and asked.startswith(before)


def _calls(step: ActionStep) -> list[ToolCall]:
    """The calls of a step; of one whose tool raised, smolagents keeps only what the model said."""
    said = None if step.tool_calls else step.model_output_message
    return step.tool_calls or [
        ToolCall(name=call.function.name, arguments=call.function.arguments, id=call.id)
        for call in (said.tool_calls if said is not None else None) or ()
    ]


def _answer_text(given: Any) -> str:
    answer: Any = cast("dict[str, Any]", given).get("answer", given) if isinstance(given, dict) else given
    return answer if isinstance(answer, str) else result_text(answer)


def _call_key(tool: str, arguments: Any) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True, default=str)}"


def _picture(given: Any) -> Json:
    data = io.BytesIO()
    given.save(data, format="PNG")
    return image("image/png", base64.b64encode(data.getvalue()).decode())


def _with_system(system: Sequence[ChatMessage], request: Request) -> list[ChatMessage]:
    return [*system, *([_message(MessageRole.SYSTEM, request.system)] if request.system else [])]


def _sent(shown: Sequence[Shown], own: Sequence[MemoryStep]) -> list[ChatMessage]:
    """The messages of the steps as memory shows them; the steps themselves are never changed."""
    found: list[ChatMessage] = []
    for one in shown:
        if one.at is None:
            found += _of_log(one.message)
            continue
        step = own[one.at]
        if one.results and isinstance(step, ActionStep):
            step = replace(step, observations="\n".join(one.results.values()))
        found += [*([_message(MessageRole.USER, one.memory)] if one.memory else []), *step.to_messages()]
    return found


def _of_log(message: Json) -> list[ChatMessage]:
    if message["role"] == "tool":
        return [_message(MessageRole.TOOL_RESPONSE, f"Observation:\n{plain(message)}")]
    text = plain(message)
    said = [_message(message["role"], text)] if text else []
    calls = [{"id": call_id, "name": name, "arguments": given} for call_id, name, given in calls_of(message)]
    return [*said, *([_message(MessageRole.TOOL_CALL, f"Calling tools:\n{calls}")] if calls else [])]


def _message(role: Any, text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole(role), content=[{"type": "text", "text": text}])


class _MemoryTool(Tool):
    skip_forward_signature_validation = True

    def __init__(self, answer: Any, schema: dict[str, Any]) -> None:
        self.name, self.description = schema["name"], schema["description"]
        parameters = schema["parameters"]
        required = set(parameters.get("required", ()))
        self.inputs = {
            name: {
                "type": given["type"] if given.get("type") in _TYPES else "any",
                "description": given.get("description", name),
                **({} if name in required else {"nullable": True}),
            }
            for name, given in parameters["properties"].items()
        }
        self.output_type = "string"
        self._answer = answer
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        return self._answer({name: value for name, value in arguments.items() if value is not None})


__all__ = ["PagefileMemory"]
