"""How a past turn is shown beside a question: both sides, neither at the other's expense."""

from collections.abc import Callable
from datetime import datetime

from pagefile.text.clip import clip
from pagefile.window.candidates import Form
from pagefile.window.render import escape

Count = Callable[[str], int]

#: The maximum number of characters of a turn, by form.
EPISODE_CHARS = {"full": 600, "shorter": 240, "short": 100}


def episode_forms(at: datetime, user: str | None, assistant: str | None, count: Count) -> tuple[Form, ...]:
    """A past turn, from the fullest form to the shortest, without duplicates."""
    forms: dict[str, Form] = {}
    for name, chars in EPISODE_CHARS.items():
        text = episode_text(at, user, assistant, chars)
        if text not in forms:
            forms[text] = Form(count(text), text=text, name=name)
    return tuple(forms.values())


def episode_text(at: datetime, user: str | None, assistant: str | None, chars: int) -> str:
    """One line: the date, what the user said and what was answered; each side gets at least half of the room."""
    said, answered = (" ".join((side or "").split()) for side in (user, assistant))
    half = chars // 2
    shown = clip(said, max(half, chars - len(answered)))
    reply = clip(answered, max(half, chars - len(said)))
    sides = " → ".join(escape(side) for side in (shown, reply) if side)
    return f"- [{at:%Y-%m-%d}] {'' if said else '→ '}{sides}"
