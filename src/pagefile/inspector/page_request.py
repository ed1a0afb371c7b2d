"""A request for a page of the inspector: whose memory it is about, and how texts, numbers and times are formatted for its reader."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypedDict
from urllib.parse import urlencode

from pagefile.engine import Conversation, Memory
from pagefile.errors import InvalidArgumentError
from pagefile.inspector import urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.records import DEFAULT_TENANT, Scope, checked_text
from pagefile.text.tables import table

#: In every link where it matters, remembered in a cookie, or true only once.
_SAID_APART = frozenset({"tenant", "user_id", "conversation_id", "lang", "theme", "done"})


class Owner(TypedDict):
    """A user, or everybody of a tenant."""

    user_id: str | None
    tenant: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to the inspector. The three ids were checked against the caller's key beforehand."""

    tenant: str | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    #: Ids fixed by the caller's key, which the reader cannot choose.
    bound: frozenset[str] = frozenset()

    @property
    def owner(self) -> Owner:
        """Whose memory, as the verbs of a memory take it."""
        return {"user_id": self.user_id, "tenant": self.tenant}

    @property
    def query(self) -> dict[str, str]:
        """What the query string says besides whose memory it is about, for links to the same page."""
        return {name: value for name, value in self.values.items() if name not in _SAID_APART}

    def text(self, name: str) -> str | None:
        """A value with surrounding whitespace removed; None if it is empty."""
        return checked_text(self.values.get(name, ""), name).strip() or None

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 10_000_000) -> int:
        """A whole number, clamped to its bounds."""
        given = self.text(name)
        if given is None:
            return default
        if not given.isdecimal() or len(given) > 12 or not given.isascii():
            raise InvalidArgumentError(f"{name} must be a whole number, not {given[:40]!r}.")
        return max(least, min(most, int(given)))

    def choice(self, name: str, *known: str) -> str:
        """One of the known words; the first unless another is given."""
        given = self.text(name)
        return given if given in known else known[0]

    def day(self, name: str, *, after: bool = False) -> datetime | None:
        """A day as a moment: its beginning, or with `after` its end, in UTC."""
        given = self.text(name)
        if given is None:
            return None
        try:
            day = datetime.combine(date.fromisoformat(given), time(), UTC)
            return day + timedelta(days=1) if after else day
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f"{name} must be a day such as 2026-05-31, not {given[:40]!r}."
            ) from error

    def flag(self, name: str) -> bool:
        return self.text(name) is not None

    def to(self, path: str, /, **values: object) -> str:
        """A link on this site, for the same tenant."""
        tenant = {} if self.tenant in {None, DEFAULT_TENANT} else {"tenant": self.tenant}
        given = {key: str(value) for key, value in {**tenant, **values}.items() if value not in {None, ""}}
        return f"{path}?{urlencode(given)}" if given else path

    def here(self, path: str, /, **values: object) -> str:
        """A link for the same user and conversation."""
        return self.to(path, **{"user_id": self.user_id, "conversation_id": self.conversation_id, **values})


def chat_of(memory: Memory, asked: PageRequest) -> Conversation:
    if asked.conversation_id is None:
        raise InvalidArgumentError("Which conversation? Choose one from the list.")
    return memory.conversation(asked.conversation_id, **asked.owner)


Language = Literal["en", "zh"]
Theme = Literal["auto", "light", "dark"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: The engine's reasons, and the keys of their translations.
_REASONS = {
    r"never cut": "why.never_cut",
    r"fits": "why.fits",
    r"fits as (?P<form>\w+)": "why.fits_as",
    r"over budget": "why.over_budget",
    r"over its own budget of (?P<n>\d+) tokens": "why.own_budget",
    r"fits, worth (?P<worth>\S+) for (?P<n>\d+) tokens": "why.worth",
    r"not worth its tokens: worth (?P<worth>\S+) for (?P<n>\d+) tokens": "why.not_worth",
    r"paged out in step (?P<step>\d+), when the results were too much for (?P<n>\d+) tokens: "
    r"(?P<left>\d+) of (?P<all>\d+) characters stay, those that the last calls point to": "why.paged_out",
    r"not read: older than what fits": "why.not_read",
    r"behind a newer turn that did not fit": "why.behind",
    r"past turns were searched by word only: the encoder is still being loaded": "why.loading",
    r"(?P<n>\d+) facts of lower rank": "why.lower_rank",
    r"covers (?P<turns>\d+) turns up to (?P<seq>\d+); (?P<kept>\d+) of (?P<all>\d+) anchors survive, "
    r"(?P<beside>\d+) of them beside the summary": "why.covers",
}


def words() -> Mapping[str, Sequence[str]]:
    """Every text of the pages: a key, then English and Chinese side by side, so that neither can be forgotten."""
    return table("pagefile.inspector", "words")


@dataclass(frozen=True, slots=True)
class Reader:
    """Formats texts, numbers and times for one reader."""

    asked: PageRequest
    now: datetime
    language: Language = "en"
    theme: Theme = "auto"
    #: The path of the page, for links to itself.
    path: str = "/"
    #: The CSRF token for forms.
    token: str = ""
    #: Whether the reader is signed in with a key.
    signed_in: bool = False

    def say(self, key: str, **values: object) -> str:
        text = words()[key][0 if self.language == "en" else 1]
        return text.format(**values) if values else text

    def known(self, key: str, otherwise: str) -> str:
        """A text that may not exist, as with names that come from the engine."""
        return self.say(key) if key in words() else otherwise

    def reason(self, text: str) -> str:
        """A reason of the engine in the reader's language; an unknown one is shown as it is."""
        matches = ((re.fullmatch(pattern, text), key) for pattern, key in _REASONS.items())
        return next((self.say(key, **self._named(found)) for found, key in matches if found), text)

    def _named(self, found: re.Match[str]) -> dict[str, str]:
        values = found.groupdict()
        return {**values, "form": self.form(values["form"])} if "form" in values else values

    def form(self, name: str) -> str:
        """In which form a candidate is in the window, in words."""
        return self.known(f"form.{name.replace(' ', '_')}", name)

    def number(self, value: float) -> str:
        if isinstance(value, int) or value.is_integer():
            return f"{int(value):,}"
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"

    def signed(self, value: int) -> str:
        return f"{value:+,}".replace("-", "−") if value else "±0"

    def percent(self, share: float) -> str:
        return f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"

    def count(self, key: str, value: int) -> str:
        """A count with its noun: `1 turn`, `2 turns`, `2 轮`."""
        one = self.language == "en" and value == 1
        return self.say(f"{key}.one" if one else key, n=self.number(value))

    def size(self, size: int) -> str:
        if size < 1000:
            return f"{size} B"
        amount, units = size / 1000, ["kB", "MB", "GB"]
        while amount >= 999.5 and len(units) > 1:
            amount, units = round(amount) / 1000, units[1:]
        return f"{amount:.1f} {units[0]}" if amount < 99.5 else f"{amount:,.0f} {units[0]}"

    def ago(self, at: datetime) -> str:
        past = (self.now - at).total_seconds()
        if past < _MINUTE:
            return self.say("time.now" if past > -_MINUTE else "time.later")
        if past >= 30 * _DAY:
            return self.day(at)
        units = ((_DAY, "time.days"), (_HOUR, "time.hours"), (_MINUTE, "time.minutes"))
        seconds, key = next(unit for unit in units if past >= unit[0])
        return self.say(key, n=int(past // seconds))

    def day(self, at: datetime) -> str:
        at = at.astimezone(UTC)
        return f"{at.year}年{at.month}月{at.day}日" if self.language == "zh" else f"{at.day} {at:%b %Y}"

    def time(self, at: datetime, *, exact: bool = False) -> Element:
        """A readable time, with the exact one as an attribute and a tooltip."""
        at = at.astimezone(UTC)
        shown = f"{self.day(at)} {at:%H:%M} UTC" if exact else self.ago(at)
        return el("time", shown, datetime=at.isoformat(), title=f"{at:%Y-%m-%d %H:%M:%S} UTC")

    def link(self, path: str, /, *inside: Content, **values: object) -> Element:
        return el("a", *inside, href=self.asked.to(path, **values))

    def here(self, path: str, /, *inside: Content, **values: object) -> Element:
        return el("a", *inside, href=self.asked.here(path, **values))

    def turn(self, inside: Content, turn_id: str, scope: Scope) -> Element:
        """A link to a turn in the timeline of its conversation."""
        place = {"conversation_id": scope.conversation, "user_id": scope.user, "turn": turn_id}
        return el("a", inside, href=f"{self.asked.to(urls.CONVERSATION, **place)}#here")

    def crumb(self, path: str, text: str, **values: object) -> tuple[str, str]:
        return self.asked.here(path, **values), text
