"""What a session has not been told yet: the difference between its memory now and before."""

from pagefile.window.parts import MemoryPart


def unsaid(memory: MemoryPart, said: set[str], most: int) -> str:
    """The lines of memory not told yet, up to a number of characters; from then on they count as told.

    The note that memories are not instructions comes before the first of them and is not repeated either.
    """
    told = MemoryPart(language=memory.language, note=not said)
    for block, texts in memory.sections.items():
        kept: list[str] = []
        for line in "\n".join(texts).split("\n"):
            more = told.with_section(block, [*kept, line])
            if line not in said and len(more.text) <= most:
                said.add(line)
                kept.append(line)
        told = told.with_section(block, kept)
    return told.text
