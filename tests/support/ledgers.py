"""Ledgers of small pools, and the state of a pool as plain Python values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk

#: Returns the place of a new ledger.
NewPlace = Callable[[], Path | str]


def nodes(count: int = 4, end: float = 100.0, **columns: Any) -> np.ndarray:
    """Return one slot from 0 to `end` on each of some alike nodes."""
    return sk.make_slots(
        node=range(count), start=0, end=end, performance=1, price=1, **columns
    )


def new_ledger(place: Path | str, count: int = 4, end: float = 100.0) -> sk.SharedPool:
    """Return the shared pool of a new ledger: at a URL, or ``site.db`` in a folder."""
    where = place / "site.db" if isinstance(place, Path) and place.is_dir() else place
    return sk.SlotPool(nodes(count, end)).share(where, user="ann")


def reopened(pool: sk.SharedPool, **options: Any) -> sk.SharedPool:
    """Return another pool of the same ledger."""
    return sk.SlotPool.open(pool._store.where, **options)


def state_of(pool: sk.SlotPool) -> dict[str, Any]:
    """Return all that defines a pool; equal pools have equal values."""
    origin, state, now, _ = pool._full_state_and_closures()
    found: dict[str, Any] = {name: rows.tolist() for name, rows in state.items()}
    owned = [(w, w.name, owner) for w, owner in pool._owned_windows()]
    found["owned"] = sorted(owned, key=lambda pair: (pair[0].start, pair[0].nodes))
    found["closed"] = sorted(pool.closed.tolist())
    return found | {"origin": origin.tolist(), "now": now}


def assert_followed(pool: sk.SharedPool) -> None:
    """Assert that memory and log agree, and that the check finds no violation."""
    pool.refresh()
    with sk.SlotPool.open(pool._store.where) as other:
        assert state_of(other) == state_of(pool)
        assert other.version == pool.version
    report = pool.check()
    assert report, str(report)
