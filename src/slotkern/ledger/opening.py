"""Ledgers created and opened: the functions behind `SlotPool.share` and `open`.

The store of a place is imported when it is used, because PostgreSQL needs an extra.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from slotkern._kernels.pool import SlotPool
from slotkern.files.atomic import AnyPath
from slotkern.foundation.checks import number, one_of, quote
from slotkern.ledger.errors import LedgerError, OtherFormat
from slotkern.ledger.hosts import SharedHostPool, first_host_snapshot
from slotkern.ledger.places import as_place
from slotkern.ledger.shared import SharedPool
from slotkern.ledger.snapshots import first_snapshot
from slotkern.pool.host_pool import HostPool

if TYPE_CHECKING:
    from slotkern.ledger.log import Store

__all__ = ["open_ledger", "share_pool"]

#: The number of replayed entries after which opening stores a snapshot for the next.
SNAPSHOT_AFTER = 20_000


#: The class of a shared pool for each kind of a ledger.
KINDS: dict[str, type[SharedPool | SharedHostPool]] = {
    "": SharedPool,
    "shares": SharedHostPool,
}


def share_pool(
    pool: SlotPool | HostPool, where: AnyPath, user: str | None
) -> SharedPool | SharedHostPool:
    """Create a ledger of a pool; see `SlotPool.share`."""
    if isinstance(pool, SharedPool | SharedHostPool):
        raise TypeError(
            "this pool has a ledger: backup(path) copies it, and copy().share(path) "
            "creates another, in which holds are bookings"
        )
    place = as_place(where)
    clock = "" if pool.clock is None else json.dumps(pool.clock.to_dict())
    meta = {"clock": clock}
    if isinstance(pool, HostPool):
        _create(place, first_host_snapshot(pool), meta | {"kind": "shares"})
    else:
        _create(place, first_snapshot(pool), meta)
    return open_ledger(place, user, "disk", 30.0, False)


def open_ledger(
    where: AnyPath, user: str | None, durable: str, patience: float, readonly: bool
) -> SharedPool | SharedHostPool:
    """Open a ledger of any kind; see `SlotPool.open`."""
    one_of("durable", durable, ("disk", "crash"))
    patience = number("patience", patience)
    store = _open_store(as_place(where), durable, patience, readonly)
    kind = store.kind()
    if kind not in KINDS:
        store.close()
        raise OtherFormat(
            f"{store.name} books {quote(kind)}, which this program does not know: use "
            "a newer version"
        )
    pool = KINDS[kind](store, user)
    if pool.replayed >= SNAPSHOT_AFTER and not readonly:
        with suppress(LedgerError):  # the ledger is busy: the next opening stores it
            pool.snapshot()
    return pool


def _create(where: Path | str, snapshot: bytes, meta: dict[str, str]) -> None:
    """Create a ledger with a first snapshot; FileExistsError if there is one."""
    if isinstance(where, Path):
        from slotkern.ledger import sqlite

        sqlite.create(where, snapshot, meta)
    else:
        from slotkern.ledger import postgres

        postgres.create(where, snapshot, meta)


def _open_store(
    where: Path | str, durable: str, patience: float, readonly: bool
) -> Store:
    """Open the store of an existing ledger."""
    if isinstance(where, Path):
        from slotkern.ledger.sqlite import SqliteStore

        return SqliteStore(where, durable, patience, readonly)
    from slotkern.ledger.postgres import PostgresStore

    return PostgresStore(where, durable, patience, readonly)
