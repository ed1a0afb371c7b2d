"""Whose a name is, and who may read it."""

import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections import defaultdict
from dataclasses import dataclass, field

#: Decision 0033: a conversation belongs to its first user, or to no user for good. Everything that the test expects of it hangs on
#: this one word; False plays the rest.
OWNERSHIP = True

#: A name that the test made, and an id that Pagefile made.
NAME = re.compile(r"q([a-z])\d{5,}z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The letter of names that are in texts: nobody but their owner ever sends them.
TEXT = "t"
#: The user of a name that all of a tenant may read: the tenant's own.
EVERYBODY = "*"
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of a tenant; None is nobody."""

    tenant: str
    user: str | None


@dataclass(frozen=True, slots=True)
class Viewer:
    """For whom a call is answered. Without a tenant it must be refused, and may be told nothing of anybody."""

    tenant: str | None = None
    user: str | None = None
    #: Everything of the tenant: the call names neither a user nor a conversation.
    whole: bool = False

    def may_read(self, owner: Owner) -> bool:
        if self.tenant is None or owner.tenant != self.tenant:
            return False
        if self.whole or owner.user in {self.user, EVERYBODY}:
            return True
        return owner.user is None and not OWNERSHIP


NOBODY = Viewer()


@dataclass
class Names:
    """Every name there is, whose it is, and who has said it."""

    owners: dict[str, set[Owner]] = field(default_factory=lambda: defaultdict(set))
    #: What each owner has sent themselves: an id that was guessed is no secret any more.
    said: dict[Owner, set[str]] = field(default_factory=lambda: defaultdict(set))
    _made: int = 0

    def make(self, kind: str, owner: Owner) -> str:
        """A new name of somebody."""
        self._made += 1
        name = f"q{kind}{self._made:05}z"
        self.owners[name].add(owner)
        return name

    def crossed(self, text: str, viewer: Viewer, sent: str = "") -> dict[str, set[Owner]]:
        """The names in an answer that its viewer may not read, and whose they are; what was just sent may be repeated."""
        names = found_in(text) - found_in(sent)
        return {name: self.owners[name] for name in names if not self._is_known(name, viewer)}

    def _is_known(self, name: str, viewer: Viewer) -> bool:
        owners = self.owners.get(name)
        if owners is None or any(viewer.may_read(owner) for owner in owners):
            return True
        said = (names for owner, names in self.said.items() if viewer.may_read(owner))
        return not is_text(name) and any(name in names for names in said)


def is_text(name: str) -> bool:
    """Whether a name is in what somebody said, not in an id."""
    return name[:2] == f"q{TEXT}"


def found_in(text: str) -> set[str]:
    """Every name in a text, those inside of images and files too."""
    text = text.lower() + " ".join(map(_decoded, _BASE64.findall(text)))
    return {found[0] for found in NAME.finditer(text)}


def _decoded(run: str) -> str:
    try:
        return b64decode(run[: len(run) // 4 * 4]).decode("latin-1").lower()
    except NoBase64:
        return ""
