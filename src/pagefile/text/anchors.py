"""What a summary must not lose: exact details that a paraphrase cannot restore (`anchors.toml`)."""

import re

from pagefile.text.tables import filled, table

_TABLE = table("pagefile.text", "anchors")
_ANCHOR = re.compile("|".join(f"(?:{filled(kind, _TABLE['parts'])})" for kind in _TABLE["kinds"]))


def anchors(text: str) -> list[str]:
    """Numbers with units, dates, times, money, names, ids, paths, addresses and titles, in order, once each."""
    found = (match.group().rstrip(" .,") for match in _ANCHOR.finditer(text))
    return [anchor for anchor in dict.fromkeys(found) if anchor not in _TABLE["no_names"]]
