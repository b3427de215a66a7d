"""Errors of ledgers. After each of them but `Unknown` the ledger is unchanged.

Only `compact` may have dropped entries when the file cannot become smaller.
"""

from __future__ import annotations

__all__ = [
    "Busy",
    "Corrupt",
    "Elsewhere",
    "Expired",
    "LedgerError",
    "NotYours",
    "OtherFormat",
    "Taken",
    "TokenUsed",
    "Unknown",
]


class LedgerError(Exception):
    """The ledger could not store a call. The base of all errors of ledgers."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class Busy(LedgerError, TimeoutError):
    """Other writers held the lock for longer than `patience`."""


class Taken(LedgerError, ValueError):
    """A window is no longer free."""


class TokenUsed(LedgerError, ValueError):
    """The token belongs to another request."""


class Expired(LedgerError, LookupError):
    """The hold ended before it was confirmed."""


class NotYours(LedgerError, PermissionError):
    """The booking belongs to another owner."""


class Unknown(LedgerError, ConnectionError):
    """It is not known whether the call was stored: repeat it with the same token."""


class Corrupt(LedgerError, ValueError):
    """The log contradicts itself, or is not the log that this pool has read."""


class OtherFormat(LedgerError, ValueError):
    """The file is not a ledger, or a ledger of another version of slotkern."""


class Elsewhere(LedgerError, OSError):
    """The file system can be written by several machines, which SQLite cannot order."""
