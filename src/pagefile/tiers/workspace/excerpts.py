"""The part of a page or of a hit that is worth remembering: what answers the question."""

from pagefile.text.passages import matching
from pagefile.text.synopsis.kinds import kind
from pagefile.text.synopsis.markup import visible

#: Longer texts are searched only this far, which takes about a second; the archive has the rest.
MOST_CHARS = 400_000


def answering(text: str, query: str, most: int) -> str:
    """What of a text answers a query, in at most `most` characters; the beginning if nothing was asked. No HTML tags."""
    read = text[:MOST_CHARS]
    if "</" in read and kind(read) == "html":
        read = "\n".join(line for line in map(str.strip, visible(read).splitlines()) if line)
    if len(read) <= most or not query.strip():
        return read[:most]
    return matching(read, query, most)[:most].strip() or read[:most]
