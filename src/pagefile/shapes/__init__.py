"""The message shapes of providers' clients, and the one used by turns.

`parsed` takes messages of OpenAI Chat, OpenAI Responses or Anthropic as they come; `given_back` returns them
as equal JSON, and `rendered` converts them to what any of the three providers accepts.
"""

from pagefile.shapes.anthropic import alternating, beginning_with_user
from pagefile.shapes.call_order import answer, answered_steps, calls_of, prepared, question, waiting_steps
from pagefile.shapes.media import keeper, named, note, shown_tokens
from pagefile.shapes.message_reader import MAX_TOOL_CHARS, plain_json, step_tool
from pagefile.shapes.openai import laid_out, short
from pagefile.shapes.parser import Parsed, cleaned, listed, parsed
from pagefile.shapes.renderer import given_back, is_sent, rendered, written
from pagefile.shapes.skeleton import Filling
from pagefile.shapes.steps import ShownStep, fitted_tool, shown_steps, with_own_call_ids
from pagefile.shapes.tool_arguments import compact

__all__ = [
    "MAX_TOOL_CHARS",
    "Filling",
    "Parsed",
    "ShownStep",
    "alternating",
    "answer",
    "answered_steps",
    "beginning_with_user",
    "calls_of",
    "cleaned",
    "compact",
    "fitted_tool",
    "given_back",
    "is_sent",
    "keeper",
    "laid_out",
    "listed",
    "named",
    "note",
    "parsed",
    "plain_json",
    "prepared",
    "question",
    "rendered",
    "short",
    "shown_steps",
    "shown_tokens",
    "step_tool",
    "waiting_steps",
    "with_own_call_ids",
    "written",
]
