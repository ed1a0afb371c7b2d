"""The shapes in which providers' clients have messages, and the one in which a turn holds them.

`parsed` takes messages of OpenAI Chat, OpenAI Responses or Anthropic as they come; `given_back` returns them as equal JSON, and
`rendered` makes of them what any of the three providers takes.
"""

from pagefile.shapes.answers import answer, question
from pagefile.shapes.filling import Filling
from pagefile.shapes.pairing import answered_steps
from pagefile.shapes.parsing import Parsed, listed, parsed
from pagefile.shapes.reading import plain_json
from pagefile.shapes.rendering import given_back, own_shape, rendered, turn_messages, with_own_call_ids
from pagefile.shapes.spelling import compact

__all__ = [
    "Filling",
    "Parsed",
    "answer",
    "answered_steps",
    "compact",
    "given_back",
    "listed",
    "own_shape",
    "parsed",
    "plain_json",
    "question",
    "rendered",
    "turn_messages",
    "with_own_call_ids",
]
