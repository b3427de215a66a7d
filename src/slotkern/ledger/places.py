"""Places of ledgers: files of SQLite, and URLs of PostgreSQL databases.

The store of a place is imported when it is used, because PostgreSQL needs an extra.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from slotkern.files.atomic import AnyPath, as_path

if TYPE_CHECKING:
    from slotkern.ledger.log import Store

__all__ = ["as_place", "create_ledger", "is_url", "open_store"]

_SCHEMES = ("postgresql://", "postgres://")


def is_url(where: object) -> bool:
    """Return whether a place is the URL of a database."""
    return isinstance(where, str) and where.startswith(_SCHEMES)


def as_place(where: AnyPath) -> Path | str:
    """Return a URL unchanged and anything else as a path."""
    return where if isinstance(where, str) and is_url(where) else as_path(where)


def create_ledger(where: Path | str, snapshot: bytes, clock: str) -> None:
    """Create a ledger with a first snapshot; FileExistsError if there is one."""
    if isinstance(where, Path):
        from slotkern.ledger import sqlite

        sqlite.create(where, snapshot, clock)
    else:
        from slotkern.ledger import postgres

        postgres.create(where, snapshot, clock)


def open_store(
    where: Path | str, durable: str, patience: float, readonly: bool
) -> Store:
    """Open the store of an existing ledger."""
    if isinstance(where, Path):
        from slotkern.ledger.sqlite import SqliteStore

        return SqliteStore(where, durable, patience, readonly)
    from slotkern.ledger.postgres import PostgresStore

    return PostgresStore(where, durable, patience, readonly)
