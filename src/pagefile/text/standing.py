"""What somebody wants from now on, and which requests it applies to.

"Always say which version" and "I prefer few dependencies" share no word with "Which libraries would you use?", and yet decide how that is
to be answered. So a turn that says such a thing counts more where something is to be done, and no more where the past is asked about.
"""

import re

from pagefile.text.tables import table

_TABLE = table("pagefile.text", "standing")
_INSTRUCTION, _PREFERENCE, _TASK, _PAST = (
    re.compile(_TABLE[name], re.IGNORECASE) for name in ("instruction", "preference", "task", "past")
)
#: A wish is at the beginning of what is said, a request too.
_READ_CHARS = 600


def lasts(text: str) -> bool:
    """Whether somebody says how things are to be done from now on, or what they prefer."""
    begin = text[:_READ_CHARS]
    return _INSTRUCTION.search(begin) is not None or _PREFERENCE.search(begin) is not None


def is_task(message: str) -> bool:
    """Whether something is to be done or suggested; questions about what was said and done already are none."""
    begin = message[:_READ_CHARS]
    return _TASK.search(begin) is not None and _PAST.search(begin) is None
