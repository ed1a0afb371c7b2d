"""What holds for the data of each tenant: what is removed before it is stored, and how long it is kept.

The settings name tenants by patterns, and the first that fits applies: `clinic=email+phone, *=secret`.
"""

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pagefile.errors import InvalidArgumentError, SettingsError
from pagefile.json_values import texts_in
from pagefile.lru import Lru
from pagefile.ports import ItemKey, ItemStore, ItemWrite, Meter
from pagefile.records import JsonValue, Scope
from pagefile.settings import Settings
from pagefile.shapes.message_reader import plain_json
from pagefile.text.redaction import KINDS, Redaction
from pagefile.tiers.base import off_loop

#: From this many characters on, a text would block the event loop for too long.
_THREAD_FROM_CHARS = 20_000
#: Stands for all kinds.
_ALL = "all"
#: Tenants whose rules are remembered.
_TENANTS = 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of the settings, checked."""

    redact: Sequence[tuple[str, frozenset[str]]] = ()
    retention: Sequence[tuple[str, float]] = ()
    _kinds: Lru[str, frozenset[str]] = field(default_factory=lambda: Lru(_TENANTS))

    @classmethod
    def of(cls, settings: Settings) -> "Policy":
        given = settings.policy
        redact = [(pattern, _kinds(what)) for pattern, what in _parts("policy.redact", given.redact)]
        retention = [(pattern, _days(what)) for pattern, what in _parts("policy.retention", given.retention)]
        return cls(redact, retention)

    def kinds(self, tenant: str) -> frozenset[str]:
        """What is removed from a tenant's texts."""
        if not self.redact:
            return frozenset()
        if tenant not in self._kinds:
            self._kinds[tenant] = next(
                (kinds for pattern, kinds in self.redact if fnmatchcase(tenant, pattern)), frozenset[str]()
            )
        return self._kinds[tenant]

    def unused(self, tenants: Collection[str]) -> list[str]:
        """Patterns that fit none of these tenants, which may be misspelled."""
        patterns = dict.fromkeys(pattern for pattern, _ in (*self.redact, *self.retention))
        return [one for one in patterns if not any(fnmatchcase(tenant, one) for tenant in tenants)]

    def days(self, tenant: str) -> float:
        """How long a tenant's turns are kept; 0: forever."""
        return next((days for pattern, days in self.retention if fnmatchcase(tenant, pattern)), 0.0)


def _parts(setting: str, text: str | None) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in (text or "").split(","):
        pattern, sign, what = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not sign or not pattern or not what:
            raise SettingsError(f"{setting} has {part.strip()!r}: write tenant=value, where * is any tenant.")
        found.append((pattern, what))
    return found


def _kinds(text: str) -> frozenset[str]:
    named = {piece.strip() for piece in text.split("+")}
    if unknown := sorted(named - {*KINDS, _ALL, "none"}):
        raise SettingsError(
            f"policy.redact has {unknown[0]!r}: write {', '.join(KINDS)}, all or none, joined by +."
        )
    return frozenset(KINDS) if _ALL in named else frozenset(named - {"none"})


def _days(text: str) -> float:
    try:
        days = float(text.removesuffix("d"))
    except ValueError:
        days = -1.0
    if not 0 <= days < 1e6:
        raise SettingsError(
            f"policy.retention has {text!r}: write a number of days, such as 90; 0 keeps everything."
        )
    return days


def redacting_items(items: ItemStore, redactor: "Redactor") -> ItemStore:
    """The same items, of whose values nothing is written that may not be stored."""
    made, write = copy(items), items.write

    async def redacted(
        scope: Scope,
        writes: Sequence[ItemWrite],
        *,
        now: datetime,
        expected: Mapping[ItemKey, JsonValue] | None = None,
    ) -> None:
        allowed = [replace(one, value=await redactor.clean(scope.tenant, one.value)) for one in writes]
        await write(scope, allowed, now=now, expected=expected)

    made.write = redacted
    return made


class Redactor:
    """Applies the policy to what comes in, and counts what was removed."""

    def __init__(self, policy: Policy, meter: Meter) -> None:
        self._policy = policy
        self._meter = meter

    def applies(self, tenant: str) -> bool:
        return bool(self._policy.kinds(tenant))

    def value(self, tenant: str, value: Any, *, exact: bool = False) -> Any:
        """A text or a JSON value without what may not be stored; the very same one where nothing is removed from this tenant's.

        Of an `exact` one, which a provider reads, ids and bytes stay.
        """
        kinds = self._policy.kinds(tenant)
        if not kinds or value is None:
            return value
        redaction = Redaction(kinds)
        made = redaction.value(value, exact=exact)
        for kind, count in redaction.counts.items():
            self._meter.count("pagefile_redacted_total", count, kind=kind)
        return made

    async def clean(self, tenant: str, value: Any, *, exact: bool = False) -> Any:
        """The same as `value`; what would take long is done in a thread."""
        if not self.applies(tenant):
            return value
        size = sum(map(len, texts_in(value)))
        return await off_loop(partial(self.value, tenant, value, exact=exact), size, _THREAD_FROM_CHARS)

    async def messages(self, tenant: str, messages: Sequence[object]) -> Sequence[object]:
        """The same for messages of a provider's client."""
        if not self.applies(tenant):
            return messages
        plain = [plain_json(message, number) for number, message in enumerate(messages)]
        return await self.clean(tenant, plain, exact=True)

    def check(self, tenant: str, value: Any, where: str) -> None:
        """Refuse what is taken as it is, such as an export with its digests, if something in it may not be stored."""
        redaction = Redaction(self._policy.kinds(tenant))
        redaction.value(value, exact=True)
        if redaction.counts:
            found = ", ".join(sorted(redaction.counts))
            raise InvalidArgumentError(
                f"{where} contains what the setting policy.redact removes for tenant {tenant!r} ({found}): an export is stored as "
                "it is, so remove it there first, or import into a tenant without this rule."
            )
