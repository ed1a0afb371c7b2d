"""Which earlier answers no longer hold after a call that may have changed something.

An answer is dropped unless the two calls are known to be about different things: another file, another id.
A call made in vain costs little, an answer from before one's own change costs the run.
"""

import re
from collections.abc import Sequence
from itertools import product

from pagefile.tiers.workspace.calls import ToolCall
from pagefile.tiers.workspace.results import Plain
from pagefile.tiers.workspace.tool_names import effect, is_web, named, texts_in

_HOST = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
_PARTS = re.compile(r"[\\/]+")
#: A shorter text in another call may be there by chance.
_TELLING_CHARS = 3


def affects(change: ToolCall, read: ToolCall) -> bool:
    """Whether a call may have changed what another one read."""
    if _mentions(change, read):
        return True
    places = _places(change.arguments)
    if is_web(*read):
        # Programs and files do not change the web; a call that changes something there may.
        return effect(*change) == "changes" and (not places or _same_host(places, _places(read.arguments)))
    lasting = effect(*read) == "toc" and not _places(read.arguments)
    return not lasting and not _elsewhere(change, read)


def touches(change: ToolCall, source: str) -> bool:
    """Whether a call changes the file or the page that something was read from."""
    if effect(*change) != "changes":
        return False
    places = filter(None, map(_parts, _places(change.arguments)))
    return any(_contains(_parts(source), place) for place in places)


def overlap(one: str, other: str) -> bool:
    """Whether two paths or URLs may be the same, or one inside the other."""
    if any(mark in one + other for mark in ("*", "..", "~")):
        return True
    short, long = sorted((_parts(one), _parts(other)), key=len)
    if _contains(long, short):
        return True
    files = all("." in parts[-1] for parts in (short, long))
    # A path from the root and one from an unknown directory: only two different files are surely apart.
    return one.startswith("/") != other.startswith("/") and not files


def _mentions(change: ToolCall, read: ToolCall) -> bool:
    told = list(texts_in(change.arguments))
    wanted = (text for text in texts_in(read.arguments) if len(text) >= _TELLING_CHARS)
    runs = effect(*change) == "runs"
    return any(text in told or (runs and any(text in code for code in told)) for text in wanted)


def _elsewhere(change: ToolCall, read: ToolCall) -> bool:
    """Whether both name what they are about, and it is not the same."""
    if effect(*change) == "runs":
        return False
    changed, seen = _places(change.arguments), _places(read.arguments)
    if changed and seen:
        return not any(overlap(one, other) for one, other in product(changed, seen))
    ids, others = named(change.arguments, "identity"), named(read.arguments, "identity")
    return bool(ids.keys() & others.keys()) and all(
        ids[key] != others[key] for key in ids.keys() & others.keys()
    )


def _same_host(some: Sequence[str], others: Sequence[str]) -> bool:
    hosts = {host[1].casefold() for url in some if (host := _HOST.match(url))}
    return any(host[1].casefold() in hosts for url in others if (host := _HOST.match(url)))


def _places(arguments: Plain) -> list[str]:
    return [text for value in named(arguments, "location").values() for text in texts_in(value)]


def _contains(long: Sequence[str], short: Sequence[str]) -> bool:
    return any(long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1))


def _parts(path: str) -> Sequence[str]:
    return [part.casefold() for part in _PARTS.split(path.strip()) if part not in ("", ".")]
