"""What a session was not told yet: the difference between memory now and what was said before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class _Group:
    """A section of a memory block: `<facts>`, `<episodes>` …; what stands outside of all has no tag."""

    tag: str
    lines: list[str] = field(default_factory=list[str])


def memory_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The memory block of a window, empty when it has none."""
    said = (str(message["content"]) for message in messages if message["role"] == "user")
    return next((text for text in said if text.startswith("<memory>\n")), "")


def unsaid(memory: str, said: set[str], most: int) -> str:
    """The lines of a memory block that were not said yet, within a number of characters; they count as said from now on.

    The note at its head says that memory is no instruction: it comes with the first lines, and is not repeated either.
    """
    groups = _groups(memory)
    fresh = {line: None for group in groups if group.tag for line in group.lines if line not in said}
    kept: list[_Group] = []
    room = most - len("<memory>\n</memory>")
    for group in groups if fresh else ():
        frame = len(f"<{group.tag}>\n</{group.tag}>\n") if group.tag else 0
        taken = _Group(group.tag)
        for line in group.lines:
            cost = len(line) + 1 + (0 if taken.lines else frame)
            if line not in said and cost <= room:
                room -= cost
                said.add(line)
                taken.lines.append(line)
        kept.append(taken)
    return _rendered([group for group in kept if group.lines])


def _groups(memory: str) -> list[_Group]:
    groups = [_Group("")]
    for line in memory.split("\n")[1:-1]:
        # Everything remembered is escaped, so that only a tag of ours can look like one.
        if line.startswith("</") and line.endswith(">"):
            groups.append(_Group(""))
        elif line.startswith("<") and line.endswith(">"):
            groups.append(_Group(line[1:-1]))
        else:
            groups[-1].lines.append(line)
    return groups


def _rendered(groups: Sequence[_Group]) -> str:
    if not any(group.tag for group in groups):
        return ""
    lines: list[str] = []
    for group in groups:
        lines += [f"<{group.tag}>", *group.lines, f"</{group.tag}>"] if group.tag else group.lines
    return "\n".join(["<memory>", *lines, "</memory>"])
