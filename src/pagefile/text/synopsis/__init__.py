"""What a page says about itself while out of the window: 200 to 500 characters, written without a model.

Chooses how a text is described, and ensures that a synopsis is never empty and never too long.
"""

from collections.abc import Callable

from pagefile.records import JsonValue
from pagefile.text.sentences import language
from pagefile.text.synopsis.kinds import Kind, recognise
from pagefile.text.synopsis.lines import describe_code, describe_log, describe_search
from pagefile.text.synopsis.markup import describe_html, describe_markdown, describe_xml, visible
from pagefile.text.synopsis.structured import describe_csv, describe_json, describe_jsonl, describe_yaml
from pagefile.text.synopsis.wording import Voice, plain_text, prose, squeeze

#: The minimum length of a synopsis, if the text has that much to say.
LEAST_CHARS = 200


_DESCRIBE: dict[Kind, Callable[[str, JsonValue, Voice], list[str]]] = {
    "json": describe_json,
    "jsonl": describe_jsonl,
    "csv": describe_csv,
    "tsv": describe_csv,
    "html": describe_html,
    "markdown": describe_markdown,
    "xml": describe_xml,
    "yaml": describe_yaml,
    "log": describe_log,
    "code": describe_code,
    "search": describe_search,
}


def synopsis(text: str, *, max_chars: int = 500) -> str:
    """What the text is and says, on one line of at most `max_chars` characters, the most useful first.

    Never empty unless the text or `max_chars` is; deterministic. Data, documents, logs, code and search
    results are described by their shape, other text by its own sentences, in the language of the text. Images
    are named, never shown.
    """
    if not text or max_chars <= 0:
        return ""
    middle = len(text) // 2
    say = Voice(language(text[:4000] + text[middle : middle + 2000]) == "zh")
    found = recognise(text)
    describe = _DESCRIBE.get(found.kind)
    described = say.assemble(describe(text, found.value, say), max_chars) if describe else ""
    said = "" if describe else prose(text, max_chars)
    if len(described or said) >= min(LEAST_CHARS, max_chars, len(text)):
        return described or said
    # A synopsis that is too short is extended, or replaced, by the beginning of the text.
    head = text[:8000]
    seen = visible(head) if "</" in head else head
    opening = squeeze(plain_text(seen), max_chars) or squeeze(head, max_chars)
    if not described:
        blank = say(f"空白文本，{len(text):,} 字符", f"Blank text of {len(text):,} characters")
        return max(said, opening, key=len) or blank[:max_chars]
    label = say("开头：", " Begins: ")
    room = max_chars - len(described) - len(label)
    if room < 20 or not opening:
        return described
    return described + label + squeeze(opening, min(room, LEAST_CHARS + 100))
