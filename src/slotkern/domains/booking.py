"""Booking in several domains, all or none.

Input: the windows of each domain. The parts in ledgers are booked first, as holds; then
those in pools of this process; then the holds are confirmed. If a domain refuses, the
parts booked before are released. A process that is killed before it confirms leaves
holds, which end by themselves. Windows of one domain are booked without a hold.

Cost: one call for each pool and two for each ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.windows import Window
from slotkern.foundation.logger import log
from slotkern.ledger.errors import Expired, LedgerError
from slotkern.ledger.shared import Booking, SharedPool

__all__ = ["CONFLICTS", "DomainBooking", "Part", "book_parts", "release_part"]

#: The errors of a domain whose time was taken since the search.
CONFLICTS = (ValueError, Expired)
#: A part as its domain has booked it: `Booking` in a ledger, `Window` in another pool.
Part = Booking | Window


class DomainBooking(NamedTuple):
    """A window that is booked in one domain or several.

    Attributes
    ----------
    window : Window
        The whole window, with the nodes of all domains.
    parts : dict of str to Booking or Window
        What each domain has booked: a `Booking` of a ledger, or a `Window`.
    owner : str or None
    """

    window: Window
    parts: dict[str, Part]
    owner: str | None = None


def book_parts(
    pools: Mapping[str, SlotPool],
    windows: Mapping[str, list[Window]],
    owner: str | None,
    hold: float | str,
) -> dict[str, Sequence[Part]]:
    """Book the windows of each domain, all or none; return what each has booked.

    Raises
    ------
    ValueError, Expired
        If a domain refuses its part, or a hold ended before the others were booked.
    LedgerError
        If a ledger cannot store its part.
    """
    ledgers = [name for name in windows if isinstance(pools[name], SharedPool)]
    order = [*ledgers, *(name for name in windows if name not in ledgers)]
    made: dict[str, Sequence[Part]] = {}
    name = ""
    try:
        for name in order:
            pool, given = pools[name], windows[name]
            if not isinstance(pool, SharedPool):
                pool.book(given, owner)
                made[name] = given
            else:
                delay = hold if len(order) > 1 else None
                made[name] = pool.book(given, owner, hold=delay)
        if len(order) > 1:
            for name in ledgers:
                made[name] = _confirm(pools[name], made[name])
    except BaseException as error:
        error.add_note(f"in the domain {name!r}")
        for other, parts in made.items():
            _roll_back(other, pools[other], parts)
        raise
    return made


def _confirm(pool: SlotPool, parts: Sequence[Part]) -> Sequence[Part]:
    """Confirm the holds of a ledger, all or none."""
    assert isinstance(pool, SharedPool)
    with pool.turn():
        return [pool.confirm(part) for part in parts if isinstance(part, Booking)]


def _roll_back(name: str, pool: SlotPool, parts: Sequence[Part]) -> None:
    for part in parts:
        try:
            release_part(pool, part)
        except (LookupError, ValueError):
            pass  # the hold has ended, or the local manager has released the part
        except LedgerError as error:
            log.warning("%s: a part stays until its hold ends: %s", name, error)


def release_part(pool: SlotPool, part: Part) -> None:
    """Release a part; LookupError or ValueError if it is not booked."""
    what: Any = part  # a `Booking` of a ledger
    pool.release(what)
