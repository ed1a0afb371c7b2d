"""Characters that a model reads and no person sees, and lines that look like another speaker's."""

import re
import unicodedata

#: Tag characters, zero-width ones, fillers, and marks that turn the direction of writing. Joiners stay: scripts and emoji need them.
_UNSEEN = (
    "\U000e0000-\U000e00ff\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a"
)
#: Selectors choose the form of the character before them. A run of them is writing that nobody sees.
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_INVISIBLE = re.compile(
    f"[{_UNSEEN}]|(?<=[{_SELECTORS}])[{_SELECTORS}]"
    # Letters have no other forms; ideographs, digits and emoji do.
    f"|(?<=[A-Za-z\\s])[{_SELECTORS}]|(?<![\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)
#: Most texts have none of these, and one look says so.
_MAY_BE_UNSEEN = re.compile(f"[{_UNSEEN}{_SELECTORS}]")
#: Everything that some reader takes for the end of a line.
_LINE = re.compile("[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_SPEAKER = re.compile(
    r"[\W_]*(?:system|developer|user|human|assistant|ai|model|bot|tool|function|系统|开发者|用户|助手|助理|模型|工具|函数|人类)[\W_]{0,4}:",
    re.IGNORECASE,
)
#: A label is at the beginning of a line.
_LABEL_CHARS = 40


def without_unseen(text: str) -> str:
    return text if text.isascii() or _MAY_BE_UNSEEN.search(text) is None else _INVISIBLE.sub("", text)


def set_off(text: str) -> str:
    """The text with two spaces before every line that begins like the message of a speaker."""
    return _LINE.sub(lambda found: f"  {found[0]}" if _speaks(found[0]) else found[0], text)


def _speaks(line: str) -> bool:
    start = without_unseen(line[:_LABEL_CHARS])
    # Full-width letters and colons look the same to a model.
    return _SPEAKER.match(start if start.isascii() else unicodedata.normalize("NFKC", start)) is not None
