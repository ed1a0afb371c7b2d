"""What finds lasting statements in what users say: our own rules, or any chat model."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pagefile.errors import ModelOutputError
from pagefile.models.prompts import asking
from pagefile.ports import ChatModel, FactExtractor, Proposal, Said
from pagefile.text.fact_rules import said_by, stated
from pagefile.text.sentences import language

if TYPE_CHECKING:
    from pagefile.models.fact_schema import FoundFact, FoundFacts
    from pagefile.text.fact_rules import Stated

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
#: How much of a long message a model is given.
_READ_CHARS = 4_000


class RuleExtractor(FactExtractor):
    """Knows a few ways in which people talk about themselves, in Chinese and English; needs no model and never fails."""

    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        known = {one.speaker for one in said}
        return [
            _proposal(one, found, found.confidence)
            for one in said
            for found in stated(one.text, one.speaker, known)
        ]


class ChatExtractor(FactExtractor):
    """Asks a chat model, in the language of the user."""

    #: A call costs money: one per session is better than one per turn.
    quiet_s = 20.0

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        lines = [
            json.dumps(_line(number, one), ensure_ascii=False) for number, one in enumerate(said, start=1)
        ]
        tongue = language(" ".join(one.text[:_READ_CHARS] for one in said))
        messages = asking("facts", tongue, "\n".join(lines))
        answer = _parsed(await self._model.complete(messages, max_tokens=2_000))
        return [
            _of_speaker(
                _proposal(said[found.turn - 1], found, 0.8 if found.confidence is None else found.confidence),
                said[found.turn - 1].speaker,
            )
            for found in answer.facts
            if found.turn <= len(said)
        ]


def _line(number: int, one: Said) -> dict[str, int | str]:
    who = {} if one.speaker is None else {"speaker": one.speaker}
    return {"turn": number, **who, "text": one.text[:_READ_CHARS]}


def _of_speaker(found: Proposal, speaker: str | None) -> Proposal:
    """A model writes "the user" for every first-person speaker."""
    if speaker is None or found.subject not in {None, "user"}:
        return found
    text, subject = said_by(speaker, found.text, found.subject)
    return replace(found, text=text, subject=subject)


def _proposal(said: Said, found: "Stated | FoundFact", confidence: float) -> Proposal:
    about = found.subject, found.attribute
    return Proposal(said.turn_id, found.quote, found.text, found.category, confidence, *about)


def _parsed(text: str) -> "FoundFacts":
    from pagefile.models import fact_schema  # noqa: PLC0415 - pydantic, which importing Pagefile must not load

    fenced = _FENCE.match(text)
    try:
        return fact_schema.FoundFacts.model_validate_json(fenced[1] if fenced else text.strip())
    except fact_schema.ValidationError as error:
        raise ModelOutputError(
            f"The model's facts do not have the requested form ({error.error_count()} problems)."
        ) from error
