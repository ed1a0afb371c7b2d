"""What a session was not told yet: the difference between memory now and what was said before."""

from pagefile.window.parts import MemoryPart


def unsaid(memory: MemoryPart, said: set[str], most: int) -> str:
    """The lines of memory that were not said yet, within a number of characters; they count as said from now on.

    The note that memory is no instruction comes with the first of them, and is not repeated either.
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
