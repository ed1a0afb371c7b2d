"""Who said something, where no answer came: a summary must not tell it as if it had been dealt with."""

import re
from collections.abc import Mapping

from pagefile.text.sentences import Language

#: The user, in a turn whose answer failed or was stopped.
UNANSWERED: Mapping[Language, str] = {"en": "user (unanswered)", "zh": "用户（未获回答）"}
_TOLD = re.compile(
    r"(?i)\bunanswered\b|\b(?:not|never|n't) (?:been |yet )?answered\b|\bno (?:answer|reply|response)\b|未获?[得]?[到]?回[答复应]|没有?(?:得到)?回[答复应]"
)


def says_unanswered(text: str) -> bool:
    """Whether a summary says that something was not answered, in words of its own too."""
    return _TOLD.search(text) is not None
