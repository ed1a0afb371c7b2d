"""The message shapes of providers' clients, and the one used by turns.

`parser.parsed` takes messages of OpenAI Chat, OpenAI Responses or Anthropic as they come; `renderer.given_back`
returns them as equal JSON, and `renderer.rendered` converts them to what any of the three providers accepts.
"""
