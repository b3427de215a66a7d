"""Booking in several domains, all or none.

Input: the windows of each domain. The parts in ledgers are booked first, as holds; then
those in pools of this process; then the holds are confirmed. If a domain refuses, the
parts booked before are released. A process that is killed before it confirms leaves
holds, which end by themselves. Windows of one domain are booked without a hold.

A token finds the parts again, in whatever state a killed process left them: since all
holds are made before the first is confirmed, a confirmed part means that the ledgers
have all others too. `recover_parts` then confirms the rest, or releases all.

Cost: one call for each pool and two for each ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.windows import Window
from slotkern.foundation.logger import log
from slotkern.ledger.errors import Expired, LedgerError
from slotkern.ledger.shared import Booking, SharedPool

__all__ = [
    "CONFLICTS",
    "DomainBooking",
    "Part",
    "book_parts",
    "ledgers_of",
    "recover_parts",
    "release_part",
]

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
    token : str or None
    repeated : bool
        True if the token was known: the answer is that of an earlier call.
    """

    window: Window
    parts: dict[str, Part]
    owner: str | None = None
    token: str | None = None
    repeated: bool = False


def book_parts(
    pools: Mapping[str, SlotPool],
    windows: Mapping[str, list[Window]],
    owner: str | None,
    hold: float | str,
    token: str | None,
) -> dict[str, Sequence[Part]]:
    """Book the windows of each domain, all or none; return what each has booked.

    Raises
    ------
    ValueError, Expired
        If a domain refuses its part, or a hold ended before the others were booked.
    LedgerError
        If a ledger cannot store its part.
    """
    ledgers = ledgers_of({name: pools[name] for name in windows})
    delay = hold if len(windows) > 1 else None
    made: dict[str, Sequence[Part]] = {}
    held: dict[str, list[Booking]] = {}
    name = ""
    try:
        for name, ledger in ledgers.items():
            held[name] = ledger.book(windows[name], owner, hold=delay, token=token)
            made[name] = held[name]
        for name in [each for each in windows if each not in ledgers]:
            pools[name].book(windows[name], owner)
            made[name] = windows[name]
        if delay is not None:
            for name, parts in held.items():
                made[name] = _confirm(ledgers[name], parts)
    except BaseException as error:
        error.add_note(f"in the domain {name!r}")
        for other, booked in made.items():
            _roll_back(other, pools[other], booked)
        raise
    return made


def ledgers_of(pools: Mapping[str, SlotPool]) -> dict[str, SharedPool]:
    """Return the domains that are ledgers."""
    return {n: pool for n, pool in pools.items() if isinstance(pool, SharedPool)}


def _confirm(pool: SharedPool, parts: Sequence[Booking]) -> list[Booking]:
    """Confirm the holds of a ledger, all or none."""
    with pool.turn():
        for part in parts:
            pool.confirm(part)
    return [part._replace(expires=None) for part in parts]


def _roll_back(name: str, pool: SlotPool, parts: Sequence[Part]) -> None:
    for part in parts:
        try:
            release_part(pool, part)
        except LedgerError as error:  # first: some are also a ValueError
            confirmed = isinstance(part, Window) or part.expires is None
            left = "booked" if confirmed else "until its hold ends"
            log.warning("%s: a part stays %s: %s", name, left, error)
        except (LookupError, ValueError):
            pass  # the hold has ended, or the local manager has released the part


def recover_parts(
    ledgers: Mapping[str, SharedPool], token: str
) -> dict[str, list[Booking]] | None:
    """Complete or undo the bookings of a token after its process was killed.

    Returns
    -------
    dict of str to list of Booking, or None
        The parts of each domain, now confirmed; empty if there were some and they are
        released now. None if no ledger has the token.

    Raises
    ------
    LedgerError
        If a ledger cannot be read or written: repeat the call.
    """
    there = {name: pool.bookings_of(token) for name, pool in ledgers.items()}
    found = {name: parts for name, parts in there.items() if parts is not None}
    if not found:
        return None
    complete = all(found.values())
    if complete and any(each.expires is None for p in found.values() for each in p):
        with suppress(Expired):
            return {n: _confirm(ledgers[n], parts) for n, parts in found.items()}
    for name, parts in found.items():
        for part in parts:
            with suppress(LookupError):  # a hold that has ended meanwhile
                ledgers[name].release(part)
    return {}


def release_part(pool: SlotPool, part: Part) -> None:
    """Release a part; LookupError or ValueError if it is not booked."""
    what: Any = part  # a `Booking` of a ledger
    pool.release(what)
