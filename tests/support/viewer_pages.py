"""Pools whose pages the tests of the viewer open, and colours of pages."""

from __future__ import annotations

from typing import Any

import slotkern as sk

FREE, BUSY, BLUE = (237, 243, 249), (132, 141, 152), (0, 114, 178)


def named_pool() -> sk.SlotPool:
    """Return six named nodes in a zone whose clocks go back in the second night."""
    table = sk.Machine(
        {"name": [f"anna{i}" for i in range(6)], "performance": [1, 1, 2, 2, 3, 3]}
    )
    busy = {
        "node": ["anna0", "anna1", "anna2", "anna5"],
        "start": ["2026-10-24 13:00", "2026-10-24 20:00"] * 2,
        "end": ["2026-10-24 18:00", "2026-10-25 04:00"] * 2,
    }
    return sk.SlotPool(
        sk.free_slots(
            table,
            busy,
            start="2026-10-24 12:00",
            end="2026-10-26",
            zone="Europe/Berlin",
            unit="h",
        )
    )


def three_windows(pool: sk.SlotPool) -> dict[str, Any]:
    job = sk.Request(3, walltime="4:00:00")
    return {name: pool.find(job, name) for name in ("start", "finish", "cost")}
