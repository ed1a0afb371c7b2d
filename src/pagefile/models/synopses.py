"""Lets a model describe large tool results, instead of an extract."""

from pagefile.models.prompts import prompt
from pagefile.ports import ChatModel
from pagefile.text.clip import clip
from pagefile.text.scripts import language

#: What a model reads of a result: its head and tail.
_READ_CHARS = 12_000
_MAX_CHARS = 400


class ChatSynopsis:
    """Asks a chat model what a result is about, in the language of the result."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def __call__(self, text: str) -> str:
        system = prompt("synopsis", language(text[:4000])).replace("{max_chars}", str(_MAX_CHARS))
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": clip(text, _READ_CHARS)},
        ]
        answer = await self._model.complete(messages, max_tokens=2 * _MAX_CHARS)
        return " ".join(answer.split())
