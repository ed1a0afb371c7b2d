"""The answers of the tools in words, for models: what clients without structured results show them."""

from collections.abc import Callable, Mapping
from typing import Any

from pagefile.mcp.tools import CONTEXT_TOOL, FACTS_TOOL, RECORD_TOOL
from pagefile.standalone.tools import CORRECT_TOOL, RECALL_TOOL, RETRACT_TOOL, SAVE_TOOL
from pagefile.text.sentences import clip
from pagefile.window.parts import escape
from pagefile.window.placeholder import LOAD_TOOL, SEARCH_TOOL

Json = Mapping[str, Any]
Words = Mapping[str, str]

#: How much of a turn, of a passage, of an id and of its own argument a model is shown.
_TURN_CHARS, _PASSAGE_CHARS, _ID_CHARS, _GIVEN_CHARS = 800, 400, 8, 200


def _recalled(answer: Json, words: Words, asked: Json) -> str:
    # Dated, and escaped like all memory.
    found = [f"[{hit['at'][:10]}] {escape(clip(hit['text'], _TURN_CHARS))}" for hit in answer["items"]]
    return "\n\n".join(found) or _nothing(words, asked)


def _searched(answer: Json, words: Words, asked: Json) -> str:
    found = [
        f'{hit["tool"]}, load_tool_history(uuid="{hit["uuid"]}", offset={hit["start"]}):\n'
        f"{escape(clip(hit['passage'], _PASSAGE_CHARS))}"
        for hit in answer["items"]
    ]
    return "\n\n".join(found) or _nothing(words, asked)


def _nothing(words: Words, asked: Json) -> str:
    return words["nothing_found"].format(query=clip(str(asked.get("query", "")), _GIVEN_CHARS))


def _changed(name: str) -> Callable[[Json, Words, Json], str]:
    def told(answer: Json, words: Words, asked: Json) -> str:
        return words[name].format(text=answer["text"], id=answer["id"][:_ID_CHARS])

    return told


def _listed(answer: Json, words: Words, asked: Json) -> str:
    facts = [_fact(fact) for fact in answer["items"]]
    if answer["next"]:
        facts.append(f'[{FACTS_TOOL}(after="{answer["next"]}") …]')
    return "\n".join(facts) or words["no_facts"]


def _fact(fact: Json) -> str:
    ended = " †" if fact["retracted"] or fact["valid_to"] else ""
    kind = f" ({fact['category']})" if fact["category"] else ""
    return f"- {fact['id'][:_ID_CHARS]}{ended}: {escape(fact['text'])}{kind}"


def _loaded(answer: Json, words: Words, asked: Json) -> str:
    if answer["next"] is None:
        return answer["text"]
    call = f'{LOAD_TOOL}(uuid="{answer["uuid"]}", offset={answer["next"]})'
    return f"{answer['text']}\n{words['read_on'].format(chars=answer['length'], call=call)}"


def _recorded(answer: Json, words: Words, asked: Json) -> str:
    return words["recorded"].format(id=answer["id"], conversation=answer["conversation_id"])


def _context(answer: Json, words: Words, asked: Json) -> str:
    return answer["text"]


WORDS: Mapping[str, Callable[[Json, Words, Json], str]] = {
    RECALL_TOOL: _recalled,
    SAVE_TOOL: _changed("remembered"),
    FACTS_TOOL: _listed,
    CORRECT_TOOL: _changed("corrected"),
    RETRACT_TOOL: _changed("retracted"),
    SEARCH_TOOL: _searched,
    LOAD_TOOL: _loaded,
    RECORD_TOOL: _recorded,
    CONTEXT_TOOL: _context,
}
