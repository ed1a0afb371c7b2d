"""The secrets of API keys: made here, hashed here, compared here, and kept nowhere.

A secret has 256 random bits, so it cannot be guessed and a plain hash is enough: password hashes are slow only because
passwords can be guessed.
"""

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass
from datetime import datetime

from pagefile.records import ApiKey, Scope

_ID_ALPHABET = string.ascii_lowercase + string.digits
_ID_CHARS = 12
_SECRET_ALPHABET = string.ascii_letters + string.digits
#: 62 ** 43 > 2 ** 256.
_SECRET_CHARS = 43
_WRITTEN = re.compile(rf"pf_([a-z0-9]{{{_ID_CHARS}}})_([A-Za-z0-9]{{{_SECRET_CHARS}}})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Presented:
    id: str
    _secret: str

    def __repr__(self) -> str:
        return f"Presented({self.id!r})"

    def is_for(self, key: ApiKey | None) -> bool:
        """Whether it is this key, compared in constant time; rejecting None takes as long."""
        expected = "" if key is None else key.digest
        return hmac.compare_digest(digest(self._secret).encode(), expected.encode())


def presented(written: str) -> Presented | None:
    """The key in the text `pf_<id>_<secret>`, None when there is none."""
    found = _WRITTEN.fullmatch(written.strip())
    return None if found is None else Presented(found[1], found[2])


def is_key(text: str) -> bool:
    """Whether a header's value has the form of a key of ours, right or wrong."""
    scheme, _, token = text.strip().partition(" ")
    return (token.strip() if scheme.lower() == "bearer" else scheme).startswith("pf_")


def new_key(
    name: str, scope: Scope, *, created: datetime, expires: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, which cannot be shown a second time."""
    key_id, secret = _drawn(_ID_ALPHABET, _ID_CHARS), _drawn(_SECRET_ALPHABET, _SECRET_CHARS)
    key = ApiKey(key_id, name, Scope(scope.tenant, scope.user), digest(secret), created, expires)
    return key, f"pf_{key_id}_{secret}"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _drawn(alphabet: str, count: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(count))
