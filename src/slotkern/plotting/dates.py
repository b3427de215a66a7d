"""Ticks at round dates on an axis whose numbers are those of a clock.

The data stay in the numbers of the clock; only ticks and labels are dates. `DateScale`
converts between the clock's numbers and matplotlib's days, which are linear in each
other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.extras import extra
from slotkern.machine.clock import Clock

with extra():
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.ticker import Formatter, Locator

__all__ = ["ConciseDates", "DateScale", "DateTicks"]

# matplotlib does not annotate their parameters.
_locator: Any = AutoDateLocator
_formatter: Any = ConciseDateFormatter
_number: Any = date2num


class DateScale:
    """Linear conversion between numbers of a clock and matplotlib's days.

    It is exact to a microsecond.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock, self.zone = clock, clock.origin.tzinfo
        self.origin = float(_number(clock.origin))
        self.day = clock.duration(dt.timedelta(days=1))

    def to_days(self, numbers: Any) -> NDArray[np.float64]:
        """Return matplotlib's days for numbers of the clock."""
        return np.asarray(numbers, np.float64) / self.day + self.origin

    def to_numbers(self, days: Any) -> NDArray[np.float64]:
        """Return numbers of the clock for matplotlib's days."""
        return (np.asarray(days, np.float64) - self.origin) * self.day


class DateTicks(Locator):
    """A locator of ticks at whole hours, days and months in the zone of the clock."""

    def __init__(self, dates: DateScale, most: int) -> None:
        self.dates = dates
        self.locator: Any = _locator(tz=dates.zone, minticks=3, maxticks=most)

    def __call__(self) -> Any:
        axis: Any = self.axis
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        clock = self.dates.clock
        low, high = clock.datetime(min(vmin, vmax)), clock.datetime(max(vmin, vmax))
        if low is None or high is None or low == high:
            return np.array([vmin])
        return self.dates.to_numbers(self.locator.tick_values(low, high))


class ConciseDates(Formatter):
    """A formatter of dates; prints their common part once, at the end of the axis."""

    def __init__(self, dates: DateScale) -> None:
        self.dates = dates
        self.ends: list[dt.datetime | None] = []
        # The first day of a month has its number too, "Dec-01" and not "Dec".
        zeros = ["", "%Y", "%b-%d", "%b-%d", "%H:%M", "%H:%M"]
        self.concise: Any = _formatter(
            _locator(tz=dates.zone), tz=dates.zone, zero_formats=zeros
        )

    def __call__(self, x: float, pos: int | None = None) -> str:
        return str(self.dates.clock.datetime(x))

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        self.ends = [self.dates.clock.datetime(x) for x in (*values[:1], *values[-1:])]
        return list(self.concise.format_ticks(self.dates.to_days(values).tolist()))

    def get_offset(self) -> str:
        last = str(self.concise.get_offset())  # derived from the last tick only
        for form in ("%Y-%b-%d %H:%M", "%Y-%b-%d", "%Y-%b", "%Y"):
            texts = {end.strftime(form) for end in self.ends if end is not None}
            if len(texts) == 1 and last.startswith(common := texts.pop()):
                return common
        return ""
