"""How a past turn is shown beside a question: both of its sides, neither at the other's cost."""

from datetime import datetime

from pagefile.text.clip import clip
from pagefile.window.render import escape

#: A turn is shown in at most so many characters.
EPISODE_CHARS = 600


def episode_text(at: datetime, user: str | None, assistant: str | None) -> str:
    """One line: when it was said, by the user, and what was answered; each side keeps at least half of the room."""
    said, answered = (" ".join((side or "").split()) for side in (user, assistant))
    half = EPISODE_CHARS // 2
    shown = clip(said, max(half, EPISODE_CHARS - len(answered)))
    reply = clip(answered, max(half, EPISODE_CHARS - len(said)))
    sides = " → ".join(escape(side) for side in (shown, reply) if side)
    return f"- [{at:%Y-%m-%d}] {'' if said else '→ '}{sides}"
