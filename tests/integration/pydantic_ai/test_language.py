"""A PydanticAI agent with all defaults is spoken to in the language of its user."""

import pytest

from pagefile.integrations.pydantic_ai import PagefileMemory
from tests.speaking import EN, ZH

from .agents import Script


@pytest.mark.parametrize("talk", [ZH, EN], ids=["zh", "en"])
async def test_every_request_is_in_the_language_of_the_user(memory, talk):
    """The guide, placeholders, notes, memory, what our tools answer and how they are described."""
    script = Script(
        ("search_docs", {"query": talk.query}),
        ("get_toc", {}),
        talk.reply,
        ("load_tool_history", {"uuid": "-"}),
        ("search_tool_history", {"query": "-"}),
        ("recall", {"query": "-"}),
        ("remember", {"text": talk.fact}),
        ("get_toc", {}),
        talk.reply,
    )
    agent = script.agent(PagefileMemory(memory, user_id="ada"), instructions=talk.instructions)

    @agent.tool_plain(description=talk.query)
    def search_docs(query: str) -> str:
        return talk.document(12_000)

    @agent.tool_plain(description=talk.query)
    def get_toc() -> list[str]:
        return [talk.chapter]

    schemas = []

    def listening(messages, info, respond=script._respond):
        schemas.append(info.function_tools)
        return respond(messages, info)

    script.model.function = listening
    first = await agent.run(talk.first, conversation_id="c")
    await agent.run(talk.asking, conversation_id="c", message_history=first.all_messages())
    assert 9 == len(script.sent)
    for sent, offered in zip(script.sent, schemas, strict=True):
        texts = [sent.instructions, *sent.said, *sent.returned, *sent.answered]
        assert [] == talk.foreign("\n".join(texts))
        assert 8 == len(offered)
        for tool in offered:
            about = tool.parameters_json_schema["properties"].values()
            assert [] == talk.foreign(
                "\n".join([tool.description, *(one.get("description", "") for one in about)])
            )
    assert "📎" in script.sent[-1].text
