"""Every error Pagefile raises, so that a caller can catch the one they can act on.

PagefileError
├── SettingsError (ValueError)
│   └── MissingExtraError (ImportError)
├── InvalidArgumentError (ValueError)
│   └── FactRejectedError
├── BudgetError (ValueError)
├── NotFoundError (LookupError)
│   └── HandleNotFoundError
│       └── PagePurgedError
├── ClosedError
│   └── NotOpenError (AttributeError)
├── AccessError
│   └── UnauthorizedError
├── TooManyRequestsError
├── StoreError
│   ├── StoreUnavailableError
│   ├── StoreFullError
│   ├── StoreCorruptError
│   ├── ConflictError
│   │   └── ErasedError
│   ├── SchemaVersionError
│   └── VectorIndexError
├── TransferError (ValueError)
├── TierError
└── ModelError
    ├── ModelUnavailableError
    │   └── ModelBusyError
    └── ModelOutputError

The docstring of each class is its default message. `code` is the stable name that the HTTP service puts into its problem
documents. It follows from the name of the class; a subclass defined elsewhere has its parent's.
"""

import re
from typing import ClassVar


class PagefileError(Exception):
    """Something went wrong inside Pagefile."""

    code: ClassVar[str] = "pagefile-error"

    def __init_subclass__(cls, code: str | None = None) -> None:
        if cls.__module__ == __name__:
            cls.code = code or re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class SettingsError(PagefileError, ValueError):
    """A setting is unknown or has a value that cannot be used."""


class MissingExtraError(SettingsError, ImportError):
    """An optional part of Pagefile is not installed."""

    @classmethod
    def of(cls, extra: str, what: str) -> "MissingExtraError":
        """The error that names the exact command which mends it."""
        return cls(
            f"{what} needs an optional part: run `pip install 'pagefile[{extra}]'`, or in a clone `pip install '.[{extra}]'`."
        )


class InvalidArgumentError(PagefileError, ValueError):
    """An argument has a value that cannot be used."""


class FactRejectedError(InvalidArgumentError):
    """The statement was not kept."""


class BudgetError(PagefileError, ValueError):
    """What must never be cut is larger than the window."""


class NotFoundError(PagefileError, LookupError):
    """There is no such record."""


class HandleNotFoundError(NotFoundError):
    """No archived page has this uuid, or it belongs to another user."""


class PagePurgedError(HandleNotFoundError):
    """The archived page was purged; only its summary is left."""

    def __init__(self, message: str | None = None, **left: str) -> None:
        super().__init__(message)
        #: What is left of the page, to tell a model in its language.
        self.left = left


class ClosedError(PagefileError):
    """This memory is closed, or its event loop has ended: open one again with `Memory.open(…)` or `Memory.connect(…)`."""


class NotOpenError(ClosedError, AttributeError):
    """This memory is not open yet: use `async with Memory.open(…) as memory`, or `memory = await Memory.connect(…)`."""


class AccessError(PagefileError, code="forbidden"):
    """This key does not allow that."""


class UnauthorizedError(AccessError):
    """A valid API key is needed."""


class TooManyRequestsError(PagefileError):
    """Too many requests: wait a moment, then go on."""

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        #: When the next request is welcome.
        self.retry_after_s = retry_after_s


class StoreError(PagefileError):
    """The store refused or failed."""


class StoreUnavailableError(StoreError):
    """The store cannot be reached or opened."""


class StoreFullError(StoreError):
    """The disk is full: free a few megabytes and try again. Erasing should work all the same on SQLite, which keeps room for it.
    Everything already recorded is safe.
    """


class StoreCorruptError(StoreError):
    """The database file is damaged or is not a Pagefile database."""


class ConflictError(StoreError):
    """The record already exists with different content, or was changed in the meantime."""


class ErasedError(ConflictError):
    """What this was made from was erased in the meantime, so it was not written."""


class SchemaVersionError(StoreError):
    """The database was written by a newer version of Pagefile."""


class VectorIndexError(StoreError):
    """Vectors cannot be stored or searched in this index."""


class TransferError(PagefileError, ValueError):
    """The file is not a Pagefile export, or is damaged."""


class TierError(PagefileError):
    """A custom tier failed."""


class ModelError(PagefileError):
    """A model failed."""


class ModelUnavailableError(ModelError):
    """The model cannot be reached."""


class ModelBusyError(ModelUnavailableError, TooManyRequestsError):
    """The model accepts no more requests for now: wait, then ask again."""


class ModelOutputError(ModelError):
    """The model answered with something that cannot be used."""
