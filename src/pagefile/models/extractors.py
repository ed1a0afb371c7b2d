"""What finds lasting statements in what users say: our own rules, or any chat model."""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pagefile.errors import ModelOutputError
from pagefile.models.prompts import asking
from pagefile.ports import ChatModel, FactExtractor, Proposal, Said
from pagefile.shapes.skeleton import as_list, as_object
from pagefile.text.fact_guard import content, doubt, verbatim
from pagefile.text.fact_rules import said_by, stated
from pagefile.text.sentences import language

if TYPE_CHECKING:
    from pagefile.models.fact_schema import FoundFact
    from pagefile.text.fact_rules import Stated

logger = logging.getLogger("pagefile")

_OPENS = re.compile(r"[\[{]")
#: How much of a long message a model is given, and how much of its answer is read.
_READ_CHARS, _ANSWER_CHARS = 4_000, 20_000


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
    """Asks a chat model, in the language of the user, and checks what it says: at least what the rules find is found."""

    #: A call costs money: one per session is better than one per turn.
    quiet_s = 20.0

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._rules = RuleExtractor()

    async def extract(self, said: Sequence[Said]) -> list[Proposal]:
        lines = [
            json.dumps(_line(number, one), ensure_ascii=False) for number, one in enumerate(said, start=1)
        ]
        tongue = language(" ".join(one.text[:_READ_CHARS] for one in said))
        messages = asking("facts", tongue, "\n".join(lines))
        answer = _parsed(await self._model.complete(messages, max_tokens=2_000))
        known = await self._rules.extract(said)
        believed = (
            one
            for found in answer
            if found.turn <= len(said) and (one := _believed(said[found.turn - 1], found))
        )
        order = {one.turn_id: place for place, one in enumerate(said)}
        return sorted(_merged(known, believed), key=lambda one: order[one.turn_id])


def _believed(said: Said, found: "FoundFact") -> Proposal | None:
    """A model's statement as a proposal; None if the message does not bear it out."""
    quote = verbatim(found.quote, said.text)
    reason = "its quote is not in its turn" if quote is None else doubt(found.text, quote, said.text)
    if quote is None or reason is not None:
        logger.info("a model's fact was not believed: %s", reason)
        return None
    confidence = 0.8 if found.confidence is None else found.confidence
    return _of_speaker(replace(_proposal(said, found, confidence), quote=quote), said.speaker)


def _merged(by_rules: Sequence[Proposal], believed: Iterable[Proposal]) -> list[Proposal]:
    """What both found: of the same statement the model's wording; of the same attribute what a rule says, which is exact."""
    found = list(by_rules)
    for one in believed:
        beside = [at for at, other in enumerate(by_rules) if other.turn_id == one.turn_id]
        same = next((at for at in beside if content(found[at].text) == content(one.text)), None)
        if same is not None:
            found[same] = replace(found[same], text=one.text)
        elif one.attribute is None or all(found[at].attribute != one.attribute for at in beside):
            found.append(one)
    return found


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
    about = found.subject, found.attribute, getattr(found, "ends", None)
    return Proposal(said.turn_id, found.quote, found.text, found.category, confidence, *about)


def _parsed(text: str) -> list["FoundFact"]:
    """The facts in a model's answer, whatever it says around them; one that does not have the form that was asked for is left out."""
    from pagefile.models import fact_schema  # noqa: PLC0415 - pydantic, which importing Pagefile must not load

    told, items = False, list[object]()
    for value in _values(text[:_ANSWER_CHARS]):
        facts = as_list((as_object(value) or {}).get("facts"))
        told = told or facts is not None
        items += as_list(value) or [value] if facts is None else facts
    kept = list["FoundFact"]()
    for item in items:
        try:
            kept.append(fact_schema.FoundFact.model_validate(item))
        except fact_schema.ValidationError:
            continue
    if not kept and (items or not told):
        raise ModelOutputError(
            f"The model's facts do not have the requested form ({len(items)} of another form)."
        )
    return kept


def _values(text: str) -> Iterator[object]:
    """Every JSON object and array in a text; of one that breaks off, those in it that are whole."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (opening := _OPENS.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, opening.start())
            yield value
        except (ValueError, RecursionError):
            at = opening.end()
