"""litellm: both protocols, asked and streamed."""

import litellm

messages = [{"role": "user", "content": "How many rows?"}]
for model in ("openai/gpt-5", "anthropic/claude-sonnet-4-5"):
    print(litellm.completion(model=model, messages=messages).choices[0].message.content)
    pieces = litellm.completion(model=model, messages=messages, stream=True)
    print("".join(piece.choices[0].delta.content or "" for piece in pieces))
