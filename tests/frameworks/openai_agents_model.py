"""A scripted model for the OpenAI Agents SDK."""

import itertools
import json

from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from pagefile.testing.contracts.adapters import Give, Use

#: No two calls of a run have the same id.
NUMBERS = itertools.count()


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
