"""Ledgers: pools that several processes change at the same time.

A ledger is a log of all changes and snapshots of the pool, in an SQLite file or in a
schema of a PostgreSQL database.
`SlotPool.share` creates a ledger and `SlotPool.open` opens one.
"""

from slotkern.ledger.bookings import Booking
from slotkern.ledger.check import Report
from slotkern.ledger.errors import (
    Busy,
    Corrupt,
    Elsewhere,
    Expired,
    LedgerError,
    NotYours,
    OtherFormat,
    Taken,
    TokenUsed,
    Unknown,
)
from slotkern.ledger.hosts import SharedHostPool
from slotkern.ledger.shared import SharedPool

__all__ = [
    "Booking",
    "Busy",
    "Corrupt",
    "Elsewhere",
    "Expired",
    "LedgerError",
    "NotYours",
    "OtherFormat",
    "Report",
    "SharedHostPool",
    "SharedPool",
    "Taken",
    "TokenUsed",
    "Unknown",
]
