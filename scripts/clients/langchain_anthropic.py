"""LangChain's models of Anthropic: asked, and streamed."""

from langchain_anthropic import ChatAnthropic

QUESTION = "How many rows?"
model = ChatAnthropic(model="claude-sonnet-4-5")
print(model.invoke(QUESTION).content)
print("".join(piece.text for piece in model.stream(QUESTION)))
