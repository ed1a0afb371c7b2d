"""The part of a page or of a hit that is worth remembering: what answers the question."""

from itertools import pairwise

from pagefile.text.passages import Passage, select, split
from pagefile.text.synopsis.kinds import kind
from pagefile.text.synopsis.markup import visible

#: Longer texts are searched only this far; the archive has the rest.
MOST_CHARS = 400_000
#: Between parts that do not stand together in the text.
_GAP = " … "


def answering(text: str, query: str, most: int) -> str:
    """What of a text answers a query, in at most `most` characters; the beginning if nothing was asked. No HTML tags."""
    read = text[:MOST_CHARS]
    if "</" in read and kind(read) == "html":
        read = "\n".join(line for line in map(str.strip, visible(read).splitlines()) if line)
    if len(read) <= most or not query.strip():
        return read[:most]
    # Small passages: one of the usual size would not fit.
    passages = split(read, target_chars=max(40, most // 4), max_chars=max(40, most))
    chosen = select(passages, query, budget=most, cost=len)
    # Nothing is chosen where nothing may be cut to size.
    return (_joined(chosen) if chosen else read)[:most].strip()


def _joined(chosen: list[Passage]) -> str:
    """The passages in order, with a mark where something is left out."""
    gaps = [_GAP if before.end < after.start else "" for before, after in pairwise(chosen)]
    texts = [passage.text for passage in chosen]
    return "".join(text.strip() + gap if gap else text for text, gap in zip(texts, [*gaps, ""], strict=True))
