"""Capacities and quotas of a pool: methods of pools that define and list them.

The rules and the free amounts are in `slotkern._kernels.caps`. A capacity or a quota is
a step function of time, here a list of (time, amount or None) in ascending order: the
amount from each time on, None for no limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.caps import NODES, RESERVED, CapacityRule, Caps
from slotkern.foundation.amounts import whole_number
from slotkern.foundation.checks import meant, quote, row_label
from slotkern.machine.clock import Clock, is_number
from slotkern.machine.frames import columns_of, source_name
from slotkern.pool.ledger import time_of
from slotkern.tariffs.daily import daily_changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slotkern._kernels.pool import SlotPool
    from slotkern._kernels.windows import Window
    from slotkern.pool.host_pool import HostPool
    from slotkern.typing import Time

    _Pool: TypeAlias = SlotPool | HostPool

__all__ = [
    "check_weeks",
    "define",
    "extend_weeks",
    "has_weeks",
    "quota",
    "replace_rules",
    "set_cap",
    "table",
]

_Steps = Sequence[tuple[float, int | None]]

_WHEN = re.compile(
    r"(?P<days>[A-Za-z]{3}(?:[-,][A-Za-z]{3})*)?\s*"
    r"(?:(?P<first>\d{1,2}:\d{2})\s*-\s*(?P<last>\d{1,2}:\d{2}))?"
)


def define(pool: _Pool, caps: Mapping[str, Any]) -> None:
    """Define the capacities of a new pool: an amount, or a table of amounts by time."""
    if not hasattr(caps, "items"):
        raise TypeError(
            "caps must be a mapping of names to amounts, such as {'matlab': 10}; got "
            f"{quote(caps)}"
        )
    for name, amount in caps.items():
        set_cap(pool, name, amount)


def set_cap(
    self: _Pool,
    name: str,
    amount: Any,
    start: Time | None = None,
    end: Time | None = None,
) -> None:
    """Set a capacity of the pool, such as a number of licences, for a time.

    Requests name what they use of it from their start to their finish:
    ``Request(..., uses={"matlab": 2})``. Searches and bookings keep it.

    Parameters
    ----------
    name : str
        The capacity. A new one has no limit at other times.
    amount : int or table
        A whole number; or a table with the columns start, end and amount for all time:
        at other times the amount is 0.
    start, end : float, date or str, optional
        The span [start, end); by default without a bound.

    Raises
    ------
    ValueError, TypeError
        For an amount that is not a whole number, a span that does not end after it
        starts, and rows of a table that overlap; the message contains the row. Also if
        parts are booked without an owner, because their uses are not known.

    Notes
    -----
    An amount that is smaller than what is booked releases nothing: until bookings end,
    no more fits. Reservations (`reserve`) use no capacity. O(bookings).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=99, performance=1, price=1)
    >>> pool = sk.SlotPool(slots, caps={"matlab": 10})
    >>> pool.set_cap("matlab", 4, 8, 18)
    >>> job = sk.Request(1, 5, uses={"matlab": 6})
    >>> pool.find(job, "start").start, pool.find(job.replace(earliest=6)).start
    (0.0, 18.0)
    """
    if not isinstance(name, str) or not name or "\0" in name:
        raise TypeError(f"name must be text, got {quote(name)}")
    if name == NODES:
        raise ValueError("quota limits nodes; a capacity has another name")
    if not is_number(amount) and not isinstance(amount, (str, bytes)):
        if start is not None or end is not None:
            raise ValueError("a table has its own start and end")
        steps = _steps_of_table(self, name, amount)
    else:
        first = -math.inf if start is None else time_of(self.clock, start, "start")
        last = math.inf if end is None else time_of(self.clock, end, "end")
        if not first < last:
            raise ValueError(f"end {end} does not lie after start {start}")
        found = whole_number(f"amount of {name}", amount)
        old = [r.steps for r in _rules(self) if r.account is None and r.what == name]
        steps = _replaced(old[0] if old else [(-math.inf, None)], first, last, found)
    _set(self, CapacityRule(name, None, False, None, steps))


def quota(
    self: _Pool,
    what: str,
    amount: int | None,
    *,
    account: str = "*",
    each: bool = False,
    when: str | None = None,
) -> None:
    """Limit what the windows of an account use at the same time.

    The account is that of the request: ``Request(..., account="physics")``. All
    capacities and quotas that count a window must hold.

    Parameters
    ----------
    what : str
        "nodes", or a capacity of the pool.
    amount : int or None
        A whole number; None removes the quota with the same other arguments.
    account : str
        The account that it counts; "*" for all windows, also those without an account.
    each : bool
        With ``account="*"``: every account has this quota by itself. Windows without an
        account count as those of one account.
    when : str, optional
        The hours of the week in which it holds, by the clock of the pool:
        ``"Mon-Fri 08:00-18:00"``, ``"Sat,Sun"`` or ``"22:00-06:00"``. By default it
        always holds.

    Raises
    ------
    ValueError, TypeError
        For a capacity that the pool does not have, an amount that is not a whole
        number, hours that are not understood, and hours for a pool without a clock with
        a zone, or with slots that have no end.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=99, performance=1, price=1)
    >>> pool = sk.SlotPool(slots)
    >>> pool.quota("nodes", 2, each=True)
    >>> jobs = [sk.Request(2, 5, account=name) for name in ("ann", "ann", "bob")]
    >>> pool.schedule(jobs).start.tolist()
    [0.0, 5.0, 10.0]
    """
    names = {rule.what for rule in _rules(self) if rule.account is None}
    if not isinstance(what, str) or (what != NODES and what not in names):
        known = ", ".join(map(repr, (NODES, *sorted(names))))
        raise ValueError(
            f"a quota limits {known}; got {quote(what)}{meant(what, (NODES, *names))}"
        )
    if not isinstance(account, str) or not account or "\0" in account:
        raise TypeError(f"account must be text, got {quote(account)}")
    if each and account != "*":
        raise ValueError(f"each=True is for account='*', got {quote(account)}")
    if amount is None:
        caps, key = _of_pool(self), (what, account, bool(each), when)
        kept = [rule for rule in caps.rules if rule.key != key]
        if len(kept) == len(caps.rules):
            raise ValueError("the pool has no such quota")
        caps.set_rules(kept)
        return
    found = whole_number(f"quota of {what}", amount)
    steps: _Steps = [(-math.inf, found)]
    if when is not None:
        steps = _steps_of_week(self, self.origin, when, found)
    weekly = None if when is None else found
    _set(self, CapacityRule(what, account, bool(each), when, steps, weekly))


def table(self: _Pool) -> NDArray[np.void]:
    """The capacities and quotas from `now` on, by time.

    Returns
    -------
    structured array
        One row for each span with constant amounts: name (of the capacity, or "nodes"),
        account (empty for a capacity), when, each, start, end, amount (inf: no limit),
        used; with a clock also start_time and end_time, as text in its zone. For a
        quota of every account by itself the rows of each account with bookings, or
        one for "*" if no account has some.
    """
    rows: list[tuple[Any, ...]] = []
    for rule in _rules(self):
        # Searches create counters too: list those that count a booking.
        spans = {account: rule.spans(account) for account in [*rule.counters]}
        booked: dict[Any, Any] = {
            account: found
            for account, found in spans.items()
            if rule.each and any(used for *_, used in found)
        }
        for account, found in (booked or {None: rule.spans()}).items():
            who = (rule.account or "") if account is None else account
            rows += [
                (rule.what, who, rule.when or "", rule.each, start, end, limit, used)
                for start, end, limit, used in found
            ]
    columns = [*zip(*rows, strict=True)] if rows else [()] * 8
    fields = {
        name: np.array(values, np.str_)
        for name, values in zip(("name", "account", "when"), columns[:3], strict=True)
    }
    fields["each"] = np.array(columns[3], np.bool_)
    fields["start"] = np.array(columns[4], np.float64)
    fields["end"] = np.array(columns[5], np.float64)
    limits = [math.inf if limit is None else limit for limit in columns[6]]
    fields["amount"] = np.array(limits, np.float64)
    fields["used"] = np.array(columns[7], np.int64)
    if self.clock is not None:
        for name in ("start", "end"):
            fields[f"{name}_time"] = self.clock.text(fields[name])
    found = np.empty(len(rows), [(name, c.dtype) for name, c in fields.items()])
    for name, column in fields.items():
        found[name] = column
    return found


def check_weeks(pool: _Pool, slots: NDArray[np.void]) -> None:
    """Raise ValueError if quotas at hours of the week do not support slots to add."""
    for rule in _rules(pool):
        if rule.when is not None and rule.weekly is not None:
            _steps_of_week(pool, slots, rule.when, rule.weekly)


def extend_weeks(pool: _Pool) -> None:
    """Compute the hours of all quotas again after slots were added."""
    caps = _of_pool(pool)
    caps.set_rules([_extended(pool, rule) for rule in caps.rules])


def has_weeks(pool: _Pool) -> bool:
    """Return whether quotas hold at hours of the week, which new slots extend."""
    return any(rule.when is not None for rule in _rules(pool))


def replace_rules(pool: _Pool, rules: Sequence[CapacityRule]) -> None:
    """Replace all capacities and quotas of a pool."""
    caps = _of_pool(pool)
    caps.set_rules(rules)
    if pool._capacities is None:
        pool._capacities = caps


def _extended(pool: _Pool, rule: CapacityRule) -> CapacityRule:
    if rule.when is None or rule.weekly is None:
        return rule
    steps = _steps_of_week(pool, pool.origin, rule.when, rule.weekly)
    return CapacityRule(*rule.key, steps, rule.weekly)


def _rules(pool: _Pool) -> Sequence[CapacityRule]:
    return () if pool._capacities is None else pool._capacities.rules


def _of_pool(pool: _Pool) -> Caps:
    """Return the capacities of a pool; the first call counts its owned windows."""
    if pool._capacities is not None:
        return pool._capacities
    if len(pool.booked) and (pool.booked["owner"] == "").any():
        raise ValueError(
            "parts are booked without an owner, and what they use is not known: set "
            "capacities and quotas before, or give bookings an owner"
        )
    charges = [
        (window, (_parts(window), window.uses, window.account))
        for window, _ in pool._owned_windows()
        if window.criterion != RESERVED
    ]
    return Caps((), charges, pool.now)


def _parts(window: Window) -> int:
    """Return the number of parts; a node of a `HostPool` may hold several."""
    counts = getattr(window, "counts", None)
    return len(window) if counts is None else sum(counts)


def _set(pool: _Pool, rule: CapacityRule) -> None:
    caps = _of_pool(pool)
    caps.set_rule(rule)
    if pool._capacities is None:
        pool._capacities = caps


def _replaced(steps: _Steps, first: float, last: float, amount: int) -> _Steps:
    """Return steps with another amount in [first, last)."""
    before = [(time, value) for time, value in steps if time < first]
    at_last = next(value for time, value in reversed(steps) if time <= last)
    after = [(time, value) for time, value in steps if time > last]
    found = [*before, (first, amount)]
    if last < math.inf:
        found += [(last, at_last), *after]
    return _joined(found)


def _joined(steps: _Steps) -> _Steps:
    """Return steps without those that do not change the amount."""
    kept = [steps[0]]
    kept += [step for old, step in pairwise(steps) if old[1] != step[1]]
    return kept


def _steps_of_table(pool: _Pool, name: str, given: Any) -> _Steps:
    """Return the steps of a table with the columns start, end and amount."""
    what = source_name(given, f"caps[{name!r}]")
    columns = columns_of(given, what)
    needed = "start", "end", "amount"
    for column in needed:
        if column not in columns:
            raise ValueError(
                f"{what} has no column {column!r}; it has "
                f"{', '.join(columns) or 'none'}{meant(column, columns)}"
            )
    for column in columns:
        if column not in needed:
            raise ValueError(
                f"{what}: unknown column {column!r}{meant(column, needed)}"
            )
    size = max(np.size(columns[column]) for column in needed)
    rows = []
    for row in range(size):
        place = f"{what}, {row_label(what, row)}"
        values = [np.ravel(columns[column]) for column in needed]
        start, end, amount = (
            each[row if len(each) == size else 0].item() for each in values
        )
        first, last = (
            time_of(pool.clock, time, f"{place}, {column}")
            for time, column in ((start, "start"), (end, "end"))
        )
        if not first < last:
            raise ValueError(f"{place}: end {end} does not lie after start {start}")
        rows.append((first, last, whole_number(f"{place}, amount", amount), row))
    rows.sort()
    for one, two in pairwise(rows):
        if two[0] < one[1]:
            raise ValueError(
                f"{what}, {row_label(what, two[3])}: overlaps {row_label(what, one[3])}"
            )
    steps: list[tuple[float, int | None]] = [(-math.inf, 0)]
    for first, last, amount, _ in rows:
        if steps[-1][0] == first:
            steps.pop()
        steps += [(first, amount), (last, 0)]
    return _joined(steps)


def _steps_of_week(
    pool: _Pool, slots: NDArray[np.void], when: Any, amount: int
) -> _Steps:
    """Return the steps of an amount at hours of the week, in the time of slots."""
    found = _WHEN.fullmatch(when.strip()) if isinstance(when, str) else None
    if not found or not when.strip():
        raise ValueError(
            "when must be days, hours or both, such as 'Mon-Fri 08:00-18:00'; got "
            f"{quote(when)}"
        )
    if not isinstance(pool.clock, Clock) or pool.clock._zone is None:
        raise ValueError(
            f"when={when!r} needs the zone of a clock: SlotPool(slots, "
            "clock=Clock(origin, zone=...))"
        )
    if not len(slots):
        return [(-math.inf, None)]
    start, end = float(slots["start"].min()), float(slots["end"].max())
    if not math.isfinite(end):
        raise ValueError(f"when={when!r} needs slots that end")
    hours = {"00:00": 1.0}
    if found["first"]:
        first, last = found["first"].zfill(5), found["last"].zfill(5)
        last = "00:00" if last == "24:00" else last
        if first == last:
            raise ValueError(f"when={when!r}: the hours have no length")
        hours = {first: 1.0, last: 0.0}
    times, inside = daily_changes(hours, pool.clock, start, end, found["days"], 0.0)
    steps: list[tuple[float, int | None]] = [(-math.inf, None)]
    for time, holds in zip(times.tolist(), inside[1:].tolist(), strict=True):
        if steps[-1][0] == time:
            steps.pop()
        steps.append((time, amount if holds else None))
    return _joined(steps)
