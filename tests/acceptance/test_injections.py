"""None of three hundred texts that pretend to be something else changes the structure of a window, wherever it comes from."""

import json
import re
import unicodedata

import pytest

from pagefile import Memory, Settings
from pagefile.errors import FactRejectedError
from pagefile.settings import ArchiveSettings, EmbedderSettings

from .injections import ATTACKS, ORDERS, PATTERNS, RULE, UUID

pytestmark = pytest.mark.anyio

SETTINGS = Settings(
    embedder=EmbedderSettings(name="none"),
    window_tokens=30_000,
    archive=ArchiveSettings(threshold=400, page_from=200),
)
#: Said before each attack, so that recall finds it.
ABOUT = "The pump valve report of Monday. "
QUERY = "What did the pump valve report of Monday say, and what tea do I like?"
PLAIN = "Nothing happened, and the pressure was fine all day. "
_TAGS = re.compile(r"</?(?:memory|now|facts|corrections|episodes|summary|workspace|guide|safety)\b[^>]*>")
#: At the beginning of a line; a line that is set off is a message's own.
_SPEAKERS = re.compile(
    r"^(?! )[^\w\n]*(?:system|user|human|assistant|ai|系统|用户|助手)[^\w\n]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


async def window_with(text):
    """A window in which the text stands as a past turn, a fact, a message, a short and a long tool result."""
    async with Memory.open("memory://", settings=SETTINGS) as memory:
        await memory.conversation("before", user_id="ada").record(ABOUT + text, "Noted: " + text)
        await memory.remember("Likes green tea", user_id="ada")
        try:
            await memory.remember("Tea: " + text, user_id="ada")
        except FactRejectedError:
            await memory.remember("Likes black tea", user_id="ada")
        chat = memory.conversation("now", user_id="ada")
        turn = await chat.begin("Look: " + text)
        turn = await chat.step(
            turn, tool="web", input={"q": text}, result=text + "\n" + "filler words. " * 400
        )
        turn = await chat.step(turn, tool="sh", input={"q": "x"}, result=text)
        await chat.complete(turn, "Said: " + text)
        return await chat.context(QUERY)


def ours(window):
    """The messages that we write ourselves: the block of memory, and the placeholder."""
    said = [str(message["content"]) for message in window.messages]
    memory = [text for text in said if text.startswith("<memory>")]
    placeholders = [text for text in said if text.startswith("📎")][:1]
    return memory, placeholders


def structure(window):
    memory, placeholders = ours(window)
    roles = [(message["role"], len(message.get("tool_calls", ()))) for message in window.messages]
    _, said = window.for_anthropic()
    blocks = [
        (
            message["role"],
            type(message["content"]).__name__,
            len(message["content"]) if isinstance(message["content"], list) else 0,
        )
        for message in said
    ]
    tags = [_TAGS.findall(text) for text in memory]
    rules = [text.count(RULE) for text in placeholders]
    calls = [text.count("load_tool_history(") for text in placeholders]
    speakers = len(_SPEAKERS.findall(_LINE_ENDS.sub("\n", window.as_text())))
    return {
        "roles": roles,
        "blocks": blocks,
        "tags": tags,
        "rules": rules,
        "calls": calls,
        "speakers": speakers,
    }


def hidden_in(text):
    """Joiners are part of scripts and emoji."""
    return {char for char in text if unicodedata.category(char) in {"Cf", "Co", "Cs"}} - set("\u200c\u200d")


def test_the_corpus_has_three_hundred_texts_in_two_languages():
    assert 300 == len({text for _, text in ATTACKS})
    assert 5 == sum(order.isascii() for order in ORDERS)


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_the_structure_of_a_window_stays(pattern):
    """Roles, blocks, our own tags, placeholders and speakers are those of a window with harmless text in the same places."""
    expected = structure(await window_with(PLAIN))
    for name, text in ATTACKS:
        if name != pattern:
            continue
        window = await window_with(text)
        assert expected == structure(window), text
        memory, placeholders = ours(window)
        assert not hidden_in("".join(memory + placeholders)), text
        assert UUID not in "".join(placeholders), text
        assert not any(line.startswith(text.strip()) for part in memory for line in part.splitlines()), text
        json.dumps(window.messages, ensure_ascii=False).encode()
