"""Booking in several domains, all or none.

Input: the windows of each domain. The parts in ledgers are booked first, as holds; then
those in pools of this process; then the holds are confirmed. If a domain refuses, the
parts booked before are released. A process that is killed before it confirms leaves
holds, which end by themselves. Windows of one domain are booked without a hold, unless
the domain is in another process: there a call may be carried out after its caller has
given it up, and a hold ends all the same.

A token finds the parts again, in whatever state a killed process left them: since all
holds are made before the first is confirmed, a confirmed part means that the ledgers
have all others too. `recover_parts` then confirms the rest, or releases all. Each
ledger stores with its part the names of all domains that take part, and the digest of
the request. So a part whose others cannot be found is not taken for a whole, and a
token is not taken for that of another request.

An interrupt may come between a booking and its record. Parts of several ledgers
therefore always have a token, by which they are found again, and the calls of pools are
recorded by the same instruction that makes them.

Cost: one call for each pool and two for each ledger.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeGuard

from slotkern._kernels.windows import Window
from slotkern.foundation.checks import quote
from slotkern.foundation.logger import log
from slotkern.ledger.bookings import Booking
from slotkern.ledger.errors import Expired, LedgerError, TokenUsed, Unknown
from slotkern.ledger.shared import SharedPool

__all__ = [
    "CONFLICTS",
    "DomainBooking",
    "Ledger",
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


class Ledger(Protocol):
    """The calls of a domain that can hold a part, such as a `SharedPool`."""

    def _book_part(
        self,
        windows: list[Window],
        owner: str | None,
        hold: float | str | None,
        token: str | None,
        part: dict[str, Any] | None = None,
    ) -> list[Booking]: ...

    def _part_of(self, token: str) -> tuple[list[Booking], dict[str, Any]] | None: ...

    def release(self, window: Booking) -> Any: ...


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
    pools: Mapping[str, Any],
    windows: Mapping[str, list[Window]],
    owner: str | None,
    hold: float | str,
    token: str | None,
    asked: str | None = None,
    holds_always: bool = False,
) -> dict[str, Sequence[Part]]:
    """Book the windows of each domain, all or none; return what each has booked.

    `asked` is the digest of the request that the token identifies. `holds_always`: make
    a hold first for windows of one domain too.

    Raises
    ------
    ValueError, Expired
        If a domain refuses its part, or a hold ended before the others were booked.
    LedgerError
        If a ledger cannot store its part.
    """
    ledgers = ledgers_of({name: pools[name] for name in windows})
    delay = None
    if len(windows) > 1 or holds_always:
        delay = hold
        token = secrets.token_hex(16) if token is None else token
    whole = {"domains": [*windows], "asked": asked}
    held: dict[str, list[Booking] | None] = {}
    done: dict[str, list[None]] = {}
    name = ""
    try:
        for name, ledger in ledgers.items():
            held[name] = None
            held[name] = ledger._book_part(windows[name], owner, delay, token, whole)
        for name in [each for each in windows if each not in ledgers]:
            done[name] = []
            # one call of compiled code books and records: no interrupt in between
            done[name].extend(map(pools[name].book, [windows[name]], [owner]))
        for name, parts in held.items():
            if delay is not None and parts is not None:
                held[name] = _confirm(ledgers[name], parts)
    except BaseException as error:
        error.add_note(f"in the domain {name!r}")
        for other, booked in held.items():
            unknown = isinstance(error, Unknown) or not isinstance(error, Exception)
            if booked is None and token is not None and unknown:
                booked = _find_part(other, ledgers[other], token)
            _roll_back(other, ledgers[other], booked or [])
        for other, calls in done.items():
            _roll_back(other, pools[other], windows[other] if calls else [])
        raise
    return {name: held.get(name) or windows[name] for name in windows}


def ledgers_of(pools: Mapping[str, Any]) -> dict[str, Ledger]:
    """Return the domains that are ledgers."""
    return {name: pool for name, pool in pools.items() if _is_ledger(pool)}


def _is_ledger(pool: Any) -> TypeGuard[Ledger]:
    return hasattr(pool, "_book_part")


def _confirm(pool: Any, parts: Sequence[Booking]) -> list[Booking]:
    """Confirm the holds of a ledger, all or none."""
    if not isinstance(pool, SharedPool):
        pool.confirm(parts)
    else:
        with pool.turn():
            for part in parts:
                pool.confirm(part)
    return [part._replace(expires=None) for part in parts]


def _find_part(name: str, ledger: Ledger, token: str) -> list[Booking]:
    """Return the part that a call has booked whose answer was lost."""
    try:
        found = ledger._part_of(token)
    except LedgerError as error:
        log.warning("%s: a part may stay booked until its hold ends: %s", name, error)
        return []
    # A token of a local manager has no domains: its bookings are not parts.
    return found[0] if found is not None and "domains" in found[1] else []


def _roll_back(name: str, pool: Any, parts: Sequence[Part]) -> None:
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
    ledgers: Mapping[str, Ledger], token: str, asked: str | None = None
) -> dict[str, list[Booking]] | None:
    """Complete or undo the bookings of a token after its process was killed.

    Returns
    -------
    dict of str to list of Booking, or None
        The parts of each domain, now confirmed; empty if there were some and they are
        released now. None if no ledger has the token.

    Raises
    ------
    ValueError
        If a domain that takes part is not among these.
    TokenUsed
        If `asked` is given and is not the digest that was stored with the token; if
        the ledgers have parts of different bookings with this token.
    LedgerError
        If a ledger cannot be read or written: repeat the call.
    """
    there = {name: ledger._part_of(token) for name, ledger in ledgers.items()}
    # a token of a local manager has no domains: its bookings are not parts
    known = {n: each for n, each in there.items() if each and "domains" in each[1]}
    if not known:
        return None
    # A call that came late has its own domains: once its parts have ended, it is none
    # of the booking.
    live = [whole for parts, whole in known.values() if parts]
    known = {n: e for n, e in known.items() if e[0] or not live or e[1] in live}
    found = {name: each[0] for name, each in known.items()}
    whole, *others = (each[1] for each in known.values())
    job = token.rpartition("#")[0] or token  # the token of `book` has no attempts
    if asked is not None and whole.get("asked", asked) != asked:
        raise TokenUsed(
            f"the token {quote(job)} belongs to another request; nothing has changed"
        )
    if any(each != whole for each in others):
        raise TokenUsed(
            f"the token {quote(job)} belongs to different bookings in "
            f"{', '.join(map(repr, known))}; nothing has changed"
        )
    missing = [name for name in whole["domains"] if name not in ledgers]
    if missing:
        raise ValueError(
            f"the booking of the token {quote(job)} also has parts in "
            f"{', '.join(map(repr, missing))}, which are not among these domains; "
            "nothing has changed: add them and repeat the call"
        )
    complete = all(found.values()) and len(found) == len(whole["domains"])
    if complete and any(each.expires is None for p in found.values() for each in p):
        with suppress(Expired):
            return {n: _confirm(ledgers[n], parts) for n, parts in found.items()}
    for name, parts in found.items():
        for part in parts:
            with suppress(LookupError):  # a hold that has ended meanwhile
                ledgers[name].release(part)
    return {}


def release_part(pool: Any, part: Part) -> None:
    """Release a part; LookupError or ValueError if it is not booked."""
    pool.release(part)
