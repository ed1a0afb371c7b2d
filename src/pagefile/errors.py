"""Every error Pagefile raises, so that a caller can catch the one they can act on.

PagefileError
├── SettingsError (ValueError)
│   └── MissingExtraError (ImportError)
├── InvalidTurnError (ValueError)
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
│   └── VectorHomeError
├── TransferError (ValueError)
├── TierError
└── ModelError
    ├── ModelUnavailableError
    └── ModelOutputError

The docstring of each class is its default message. `code` is the stable name that the HTTP service
puts into its problem documents.
"""

from typing import ClassVar


class PagefileError(Exception):
    """Something went wrong inside Pagefile."""

    code: ClassVar[str] = "pagefile-error"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class SettingsError(PagefileError, ValueError):
    """A setting is unknown or has a value that cannot be used."""

    code = "settings"


class MissingExtraError(SettingsError, ImportError):
    """An optional part of Pagefile is not installed."""

    code = "missing-extra"

    @classmethod
    def of(cls, extra: str, what: str) -> "MissingExtraError":
        """The error that names the exact command which mends it."""
        return cls(f"{what} needs an optional part: run `pip install 'pagefile[{extra}]'`.")


class InvalidTurnError(PagefileError, ValueError):
    """What was given cannot be recorded as a turn."""

    code = "invalid-turn"


class FactRejectedError(InvalidTurnError):
    """The statement was not kept."""

    code = "fact-rejected"


class BudgetError(PagefileError, ValueError):
    """What must never be cut is larger than the window."""

    code = "budget"


class NotFoundError(PagefileError, LookupError):
    """There is no such record."""

    code = "not-found"


class HandleNotFoundError(NotFoundError):
    """No archived page has this uuid, or it belongs to somebody else."""

    code = "handle-not-found"


class PagePurgedError(HandleNotFoundError):
    """The archived page was purged; only its summary is left."""

    code = "page-purged"


class ClosedError(PagefileError):
    """This memory is closed: use it inside `async with Memory.open(…)`."""

    code = "closed"


class NotOpenError(ClosedError, AttributeError):
    """This memory is not open yet: use `async with Memory.open(…) as memory`, or `memory = await Memory.connect(…)`."""

    code = "not-open"


class AccessError(PagefileError):
    """This key may not do that."""

    code = "forbidden"


class UnauthorizedError(AccessError):
    """A valid API key is needed."""

    code = "unauthorized"


class TooManyRequestsError(PagefileError):
    """Too many requests: wait a moment, then go on."""

    code = "too-many-requests"

    def __init__(self, message: str | None = None, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        #: When the next request is welcome.
        self.retry_after_s = retry_after_s


class StoreError(PagefileError):
    """The store refused or failed."""

    code = "store"


class StoreUnavailableError(StoreError):
    """The store cannot be reached or opened."""

    code = "store-unavailable"


class StoreFullError(StoreError):
    """The disk is full: free a few megabytes and try again. Erasing should work all the same on SQLite, which keeps room for it.
    Everything already recorded is safe.
    """

    code = "store-full"


class StoreCorruptError(StoreError):
    """The database file is damaged or is not a Pagefile database."""

    code = "store-corrupt"


class ConflictError(StoreError):
    """The record exists already with other contents, or has moved on."""

    code = "conflict"


class ErasedError(ConflictError):
    """What this was made from was erased in the meantime, so it was not written."""

    code = "erased"


class SchemaVersionError(StoreError):
    """The database was written by a newer version of Pagefile."""

    code = "schema-version"


class VectorHomeError(StoreError):
    """The vectors cannot be kept or searched there."""

    code = "vector-home"


class TransferError(PagefileError, ValueError):
    """The file is not a Pagefile export, or is damaged."""

    code = "transfer"


class TierError(PagefileError):
    """A tier from outside could not do what it had to."""

    code = "tier"


class ModelError(PagefileError):
    """A model failed."""

    code = "model"


class ModelUnavailableError(ModelError):
    """The model cannot be reached."""

    code = "model-unavailable"


class ModelOutputError(ModelError):
    """The model answered with something that cannot be used."""

    code = "model-output"
