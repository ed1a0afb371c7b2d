"""What is embedded of a turn and of a question, and how several texts become one vector.

A turn is the mean of its two sides: joined into one text they retrieve less, and so does either alone. A
question is the mean of itself and its form as a statement, which is what it looks for
(`docs/decisions/0012-recall-fusion.md`).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pagefile.text.speech import as_statement

#: The topic of a side is usually at its beginning.
SAID_CHARS = 500
ANSWER_CHARS = 300


def embedded_texts(user: str | None, assistant: str | None) -> tuple[str, ...]:
    """The texts whose vectors make up that of a turn: what the user said and the head of the answer."""
    said, answered = (user or "").strip(), (assistant or "").strip()
    return tuple(text for text in (said[:SAID_CHARS], answered[:ANSWER_CHARS]) if text)


def question_texts(question: str) -> tuple[str, ...]:
    """The texts whose vectors make up that of a question: as asked, and as a statement if that differs."""
    asked = question.strip()[:SAID_CHARS]
    return tuple(dict.fromkeys(text for text in (asked, as_statement(asked)) if text))


def blended(vectors: Sequence[Sequence[float] | npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """The normalised mean of unit-length vectors; zeros for zeros."""
    mean = np.mean(np.asarray(vectors, dtype=np.float32), axis=0)
    length = float(np.linalg.norm(mean))
    return (mean / length if length else mean).astype(np.float32)
