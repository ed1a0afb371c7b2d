"""How a past turn is shown beside a question: both of its sides, neither at the other's cost."""

from collections.abc import Callable
from datetime import datetime

from pagefile.text.clip import clip
from pagefile.window.candidates import Form
from pagefile.window.render import escape

Count = Callable[[str], int]

#: A turn is shown in at most so many characters: in full, and when there is less room.
EPISODE_CHARS = {"full": 600, "shorter": 240, "short": 100}


def episode_forms(at: datetime, user: str | None, assistant: str | None, count: Count) -> tuple[Form, ...]:
    """A past turn, from the fullest form to the shortest; equal ones stand once."""
    forms: dict[str, Form] = {}
    for name, chars in EPISODE_CHARS.items():
        text = episode_text(at, user, assistant, chars)
        if text not in forms:
            forms[text] = Form(count(text), text=text, name=name)
    return tuple(forms.values())


def episode_text(at: datetime, user: str | None, assistant: str | None, chars: int) -> str:
    """One line: when it was said, what the user said and what was answered; each side keeps at least half of the room."""
    said, answered = (" ".join((side or "").split()) for side in (user, assistant))
    half = chars // 2
    shown = clip(said, max(half, chars - len(answered)))
    reply = clip(answered, max(half, chars - len(said)))
    sides = " → ".join(escape(side) for side in (shown, reply) if side)
    return f"- [{at:%Y-%m-%d}] {'' if said else '→ '}{sides}"
