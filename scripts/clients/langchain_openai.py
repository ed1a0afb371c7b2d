"""LangChain's models of OpenAI: asked, streamed, and over Responses."""

from langchain_openai import ChatOpenAI

QUESTION = "How many rows?"
model = ChatOpenAI(model="gpt-5")
print(model.invoke(QUESTION).content)
print("".join(piece.content for piece in model.stream(QUESTION)))
print(ChatOpenAI(model="gpt-5", use_responses_api=True).invoke(QUESTION).text)
