"""A tariff: the factor that multiplies the price of a part, as a function of time.

The factor is piecewise constant and right-continuous. `Tariff.integral` is the one
expression of the amount that a part is charged for each unit of price, bit for bit that
of ``slotkern/tariff/tariff.hpp``: the whole segments between start and end are a
difference of prefix sums in two doubles, rounded once. Prefix sums in one double would
lose 3 to 4 digits over a year.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.foundation.checks import hint_keywords, quote

__all__ = ["Tariff"]

_INFINITY = float("inf")


class Tariff(HasTable):
    """Tariff(breakpoints, factors)

    A factor of the price that changes at known times while a part runs.

    A part that runs from t for a length L on a slot of price p costs
    ``p * tariff.integral(t, L)``. With base price 1 the factors are the prices
    themselves.

    Parameters
    ----------
    breakpoints : array_like of float, shape (m,)
        Times at which the factor changes, ascending, in units of the clock. `of_prices`
        and `daily` accept dates.
    factors : array_like of float, shape (m + 1,)
        ``factors[0]`` holds before the first breakpoint, ``factors[k]`` from breakpoint
        k - 1 on. Finite and at least 0: add fees to the prices of a market that fall
        below 0.

    Attributes
    ----------
    breakpoints, factors : ndarray of float64
        Read-only; equal neighbours are merged.

    Raises
    ------
    ValueError, TypeError
        For breakpoints that are not finite and ascending, factors that are negative or
        not finite, and numbers of both that do not match; the message contains the
        index and the value.

    Notes
    -----
    A tariff belongs to a node, as its performance does: the column ``tariff`` of a
    `Machine` names the tariff of each node.

    Examples
    --------
    >>> import slotkern as sk
    >>> night = sk.Tariff([6, 22], [0.5, 1, 0.5])  # half the price until 6, from 22 on
    >>> night.integral(20, 6), night.mean(20, 6), night.at(22)
    (4.0, 0.6666666666666666, 0.5)
    """

    __slots__ = ("_sums", "breakpoints", "factors")

    breakpoints: NDArray[np.float64]
    factors: NDArray[np.float64]

    def __init__(self, breakpoints: ArrayLike, factors: ArrayLike) -> None:
        at, values = _numbers("breakpoints", breakpoints), _numbers("factors", factors)
        if len(values) != len(at) + 1:
            raise ValueError(
                f"{len(at)} breakpoints have {len(at) + 1} factors, got {len(values)}"
            )
        _check(np.isfinite(at), at, "breakpoints", "finite")
        _check(np.diff(at, prepend=-_INFINITY) > 0, at, "breakpoints", "ascending")
        _check(np.isfinite(values), values, "factors", "finite")
        _check(values >= 0, values, "factors", "at least 0; add the fees to each price")
        values = values + 0.0  # no negative zero
        changes = np.flatnonzero(values[1:] != values[:-1])
        self.breakpoints = at[changes]
        self.factors = values[np.append(0, changes + 1)]
        self.breakpoints.flags.writeable = self.factors.flags.writeable = False
        self._sums: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @classmethod
    @hint_keywords
    def of_prices(
        cls, table: Any, *, clock: Any = None, outside: float | None = None
    ) -> Tariff:
        """Return the tariff of a table of prices, such as those of a market.

        Parameters
        ----------
        table : table
            As for `Machine`: ``start``, ``price`` (or ``factor``) and, optionally,
            ``end``. Without it, a price holds until the next start and the last one for
            ever. A missing start or end is -inf or inf.
        clock : Clock, optional
            Converts the dates of the table to numbers; without one the table has
            numbers.
        outside : float, optional
            The price at times for which the table has none. Without it, a table that
            lacks a price for any time is refused.

        Raises
        ------
        ValueError, TypeError
            For spans that overlap, prices below 0, and times without a price; the
            message contains the row.

        Examples
        --------
        >>> import slotkern as sk
        >>> clock = sk.Clock("2026-11-27", unit="h", zone="Europe/Berlin")
        >>> spot = {"start": ["2026-11-27 00:00", "2026-11-27 01:00"],
        ...         "end": ["2026-11-27 01:00", "2026-11-27 02:00"],
        ...         "price": [0.09, 0.07]}
        >>> sk.Tariff.of_prices(spot, clock=clock, outside=0.3).factors.tolist()
        [0.3, 0.09, 0.07, 0.3]
        """
        from .tables import tariff_of_table

        return cls(*tariff_of_table(table, "prices", clock, outside))

    @classmethod
    @hint_keywords
    def daily(
        cls,
        factors: Mapping[str, float],
        *,
        clock: Any,
        start: Any,
        end: Any,
        days: str | None = None,
        outside: float | None = None,
    ) -> Tariff:
        """Return a tariff that repeats every day, by the wall clock of a time zone.

        Parameters
        ----------
        factors : mapping of str to float
            The factor from each time of day on, such as ``{"06:00": 0.30, "22:00":
            0.12}``. The last one holds until the first time of the next day.
        clock : Clock
            A clock with a zone. When its clocks change, a night has 23 or 25 hours.
        start, end : date or number
            The span for which the changes are listed.
        days : str, optional
            The days of the week on which the factors hold, such as ``"mon-fri"`` or
            ``"sat,sun"``; by default every day.
        outside : float, optional
            The factor on other days, before `start`, and from `end` on. Without it,
            which is only allowed for every day, the first and the last factor go on.

        Raises
        ------
        ValueError, TypeError
            For times of day and days that are not valid, and a clock without a zone.

        Examples
        --------
        >>> import slotkern as sk
        >>> clock = sk.Clock("2026-10-24", unit="h", zone="Europe/Berlin")
        >>> night = sk.Tariff.daily({"06:00": 0.30, "22:00": 0.12}, clock=clock,
        ...                         start="2026-10-24", end="2026-10-26")
        >>> night.breakpoints.tolist()  # the night of 25 October has 9 hours
        [6.0, 22.0, 31.0, 47.0]
        """
        from .daily import daily_changes

        return cls(*daily_changes(factors, clock, start, end, days, outside))

    @overload
    def integral(self, start: float, length: float) -> float: ...
    @overload
    def integral(self, start: ArrayLike, length: ArrayLike) -> Any: ...
    def integral(self, start: ArrayLike, length: ArrayLike) -> Any:
        """Return the integral of the factor over [start, start + length).

        Parameters
        ----------
        start, length : float or array_like of float
            In time units; arrays are broadcast.

        Returns
        -------
        float or ndarray of float64
            The amount that a part is charged for each unit of price.

        Raises
        ------
        ValueError
            For a start that is NaN, and a length that is NaN or negative.
        """
        t, lengths = spans_of(start, length)
        at, factor = self.breakpoints, self.factors
        end = t + lengths
        i, j = np.searchsorted(at, t, "right"), np.searchsorted(at, end, "left")
        found = factor[i] * lengths
        several = j > i
        if several.any():
            i, j = i[several], j[several]
            head = factor[i] * (at[i] - t[several])
            tail = factor[j] * (end[several] - at[j - 1])
            found = np.asarray(found)
            found[several] = (head + self._between(i, j - 1)) + tail
        return found if t.ndim else float(found)

    @overload
    def mean(self, start: float, length: float) -> float: ...
    @overload
    def mean(self, start: ArrayLike, length: ArrayLike) -> Any: ...
    def mean(self, start: ArrayLike, length: ArrayLike) -> Any:
        """Return the mean factor over [start, start + length), length > 0."""
        found = self.integral(start, length) / np.asarray(length, np.float64)
        return found if found.ndim else float(found)

    @overload
    def at(self, time: float) -> float: ...
    @overload
    def at(self, time: ArrayLike) -> Any: ...
    def at(self, time: ArrayLike) -> Any:
        """Return the factor at a time; at a breakpoint, the one that begins there."""
        times = np.asarray(time, np.float64)
        _check(~np.isnan(times), times, "time", "a number")
        found = self.factors[np.searchsorted(self.breakpoints, times, "right")]
        return found if times.ndim else float(found)

    def segments(
        self, start: float, end: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the edges of the segments within [start, end], and their factors.

        Returns
        -------
        edges : ndarray of float64, shape (k + 1,)
            `start`, the breakpoints between, `end`.
        factors : ndarray of float64, shape (k,)
        """
        first = np.searchsorted(self.breakpoints, start, "right")
        last = np.searchsorted(self.breakpoints, end, "left")
        edges = np.concatenate(([start], self.breakpoints[first:last], [end]))
        return edges, self.factors[first : last + 1]

    def _between(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum of the whole segments from breakpoint i to breakpoint j."""
        at, factor = self.breakpoints, self.factors
        single = np.where(j == i, 0.0, factor[j] * (at[j] - at[i]))
        if not (j > i + 1).any():
            return single
        if self._sums is None:
            self._sums = _prefix_sums(at, factor)
        highs, lows = self._sums
        high = highs[j] - highs[i]
        part = high - highs[j]
        error = (highs[j] - (high - part)) - (highs[i] + part)
        return np.where(j > i + 1, high + (error + (lows[j] - lows[i])), single)

    def _as_table(self) -> Table:
        """Return a table of the factors; each starts at a breakpoint or at -inf."""
        columns = {
            "start": np.append(-_INFINITY, self.breakpoints),
            "factor": self.factors,
        }
        return Table(repr(self), columns, len(self.factors))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tariff):
            return NotImplemented
        return np.array_equal(self.breakpoints, other.breakpoints) and np.array_equal(
            self.factors, other.factors
        )

    def __hash__(self) -> int:
        return hash((self.breakpoints.tobytes(), self.factors.tobytes()))

    def __reduce__(self) -> Any:
        return Tariff, (self.breakpoints, self.factors)

    def __repr__(self) -> str:
        changes, (low, high) = len(self.breakpoints), _extremes(self.factors)
        if not changes:
            return f"Tariff({low:g} at all times)"
        return f"Tariff({changes:,} change{'s' * (changes > 1)}: {low:g} to {high:g})"


def spans_of(
    start: ArrayLike, length: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return starts and lengths as arrays of one shape; refuse wrong numbers."""
    starts, lengths = np.asarray(start, np.float64), np.asarray(length, np.float64)
    _check(~np.isnan(starts), starts, "start", "a number")
    _check(lengths >= 0, lengths, "length", "at least 0")
    starts, lengths = np.broadcast_arrays(starts, lengths)
    return starts, lengths


def _extremes(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _numbers(name: str, values: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iuf"):
        raise TypeError(f"{name} must be a list of numbers, got {quote(values)}")
    return given.astype(np.float64)


def _check(
    fine: NDArray[np.bool_], values: NDArray[np.float64], name: str, rule: str
) -> None:
    if not fine.all():
        k = int(np.argmin(fine))
        at = f"{name}[{k}]" if values.ndim else name
        raise ValueError(f"{at} is {values.flat[k]:g}: must be {rule}")


def _prefix_sums(
    at: NDArray[np.float64], factors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sums of the segments from breakpoint 0 to each, in two doubles."""
    with np.errstate(over="ignore"):
        products = (factors[1:-1] * np.diff(at)).tolist()
    high = low = 0.0
    sums = [(high, low)]
    for segment in products:
        total = high + segment
        part = total - high
        rest = low + ((high - (total - part)) + (segment - part))
        high = total + rest
        low = rest - (high - total)
        sums.append((high, low))
    highs, lows = np.array(sums).T
    return highs, lows
