"""The prompt of a call, part by part in the colours of its blocks, and its candidates in words instead of ids."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pagefile.engine import Memory
from pagefile.engine.turn_search import turns_by_id
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import Reader
from pagefile.records import Fact, Scope, Turn
from pagefile.window.candidates import MEMORY, Block, ShownTurn
from pagefile.window.parts import Parts, chat_turn
from pagefile.window.receipt import Receipt, Verdict

#: Turns before the question that are shown without being asked for, and candidates that are looked up.
_TURNS_OPEN, LOOKED_UP = 2, 400
_SNIPPET = 140
#: Characters of each part that are shown at once.
_CLIP = 300
_EPISODE, _FACT, _CHUNK = "episode:", "fact:", "chunk:"
_OF_TURNS: frozenset[Block] = frozenset({"recent", "older", "episodes", "current", "steps"})


@dataclass(frozen=True, slots=True)
class Sources:
    """What the candidates of a window are: turns, facts and the summary, by the ids in the receipt."""

    turns: Mapping[str, Turn] = field(default_factory=dict[str, Turn])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])


async def sources_of(memory: Memory, scope: Scope, *receipts: Receipt) -> Sources:
    """Look up what receipts name, as far as their tables are shown."""
    found = [one for receipt in receipts for one in receipt.verdicts[:LOOKED_UP]]
    ids = {_turn_id(one) for one in found if one.block in _OF_TURNS}
    turns = await turns_by_id(memory, sorted(ids), user_id=scope.user, tenant=scope.tenant)
    facts: dict[str, Fact] = {}
    if scope.user is not None and any(one.id.startswith(_FACT) for one in found):
        known = await memory.facts(scope.user, scope.tenant, history=True)
        facts = {f"{_FACT}{fact.id}": fact for fact in known}
    return Sources(turns, {one.id: facts[one.id] for one in found if one.id in facts})


def _turn_id(one: Verdict) -> str:
    return one.id.removeprefix(_EPISODE)


# -- candidates ----------------------------------------------------------------------------------------------------------


def candidate(one: Verdict, sources: Sources, reader: Reader) -> Content:
    """A candidate by its first words, with a link to where they were said; its id where nothing else is known."""
    turn, fact = sources.turns.get(_turn_id(one)), sources.facts.get(one.id)
    if fact is not None:
        return reader.link(urls.FACTS, fact.text[:_SNIPPET], user_id=fact.scope.user)
    if turn is not None and one.block in _OF_TURNS:
        words = " ".join(turn.text.split())[:_SNIPPET] or turn.id
        return [reader.turn(words, turn.id, turn.scope), el("small", f"#{turn.seq}" if turn.seq else "")]
    if one.id.startswith(_CHUNK):
        return one.id.removeprefix(_CHUNK).partition(":")[2] or one.id
    if one.block in {one.id, "summary"}:
        return reader.say(f"block.{one.block}.about")
    return el("code", one.id)


# -- the prompt ------------------------------------------------------------------------------------------------------------


def prompt(parts: Parts, receipt: Receipt, sources: Sources, reader: Reader) -> list[Content]:
    """Everything that was sent, in order, each part in the colour of its block."""
    blocks: dict[str, Block] = {_turn_id(one): one.block for one in receipt if one.kept}
    memory = [_section(block, "\n".join(parts.memory.sections.get(block, ())), reader) for block in MEMORY]
    before, near = parts.turns[:-_TURNS_OPEN], parts.turns[-_TURNS_OPEN:]
    head: list[tuple[Block, str]] = [
        ("instructions", parts.instructions),
        ("guide", parts.guide),
        ("safety", parts.profile),
        ("summary", parts.summary),
        ("today", parts.today),
    ]
    made: list[Content] = [_section(block, text, reader) for block, text in head]
    if parts.placement == "head":
        made.append(memory)
    if before:
        inner = _turns(before, blocks, parts, sources, reader)
        made.append(el("details", el("summary", reader.say("prompt.turns", n=len(before))), inner))
    made += _turns(near, blocks, parts, sources, reader)
    if parts.placement == "tail":
        made.append(memory)
    if parts.current is not None:
        made.append(_turn("current", parts.current, parts, sources, reader))
    return made


def _section(block: Block, text: str, reader: Reader) -> Element | None:
    if not text.strip():
        return None
    return el("section", _title(block, reader), ui.said(text, reader, shown=_CLIP), class_=f"part p-{block}")


def _title(block: Block, reader: Reader, link: Content = None) -> Element:
    return el("h3", ui.key_of(block, reader), " ", link, class_="role")


def _turns(
    turns: Sequence[ShownTurn], blocks: Mapping[str, Block], parts: Parts, sources: Sources, reader: Reader
) -> list[Content]:
    return [_turn(blocks.get(turn.turn_id, "recent"), turn, parts, sources, reader) for turn in turns]


def _turn(block: Block, shown: ShownTurn, parts: Parts, sources: Sources, reader: Reader) -> Element:
    turn = sources.turns.get(shown.turn_id)
    link = None if turn is None else reader.turn(f"#{turn.seq}", turn.id, turn.scope)
    messages: Iterable[Mapping[str, object]] = chat_turn(shown, parts.blobs)
    inside = [ui.message(one, reader, level="h4", shown=_CLIP) for one in messages]
    return el("section", _title(block, reader, link), inside, class_=f"part p-{block}")
