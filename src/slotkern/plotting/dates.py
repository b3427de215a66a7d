"""Ticks at round dates on an axis whose numbers are those of a clock."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.extras import extra
from slotkern.machine.clock import Clock

with extra():
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.ticker import Formatter, Locator

__all__ = ["ConciseDates", "DateScale", "DateTicks"]

# Their parameters have no types.
_locator: Any = AutoDateLocator
_formatter: Any = ConciseDateFormatter
_number: Any = date2num


class DateScale:
    """Numbers of a clock as matplotlib's days, and back: linear, to a microsecond."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.zone = clock, clock.origin.tzinfo
        self.origin = float(_number(clock.origin))
        self.day = clock.duration(dt.timedelta(days=1))

    def days(self, numbers: Any) -> NDArray[np.float64]:
        """What matplotlib counts for these numbers."""
        return np.asarray(numbers, np.float64) / self.day + self.origin

    def numbers(self, days: Any) -> NDArray[np.float64]:
        """What the clock counts for matplotlib's days."""
        return (np.asarray(days, np.float64) - self.origin) * self.day


class DateTicks(Locator):
    """Ticks at whole hours, days, months of the clock's zone."""

    def __init__(self, dates: DateScale, most: int) -> None:
        self.dates = dates
        self.places: Any = _locator(tz=dates.zone, minticks=3, maxticks=most)

    def __call__(self) -> Any:
        axis: Any = self.axis
        return self.tick_values(*axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        clock = self.dates.clock
        low, high = clock.datetime(min(vmin, vmax)), clock.datetime(max(vmin, vmax))
        if low is None or high is None or low == high:
            return np.array([vmin])
        return self.dates.numbers(self.places.tick_values(low, high))


class ConciseDates(Formatter):
    """What the ticks have in common stands once, at the end of the axis."""

    def __init__(self, dates: DateScale) -> None:
        self.dates = dates
        self.ends: list[dt.datetime | None] = []
        self.concise: Any = _formatter(_locator(tz=dates.zone), tz=dates.zone)

    def __call__(self, x: float, pos: int | None = None) -> str:
        return str(self.dates.clock.datetime(x))

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        self.ends = [self.dates.clock.datetime(x) for x in (*values[:1], *values[-1:])]
        return list(self.concise.format_ticks(self.dates.days(values).tolist()))

    def get_offset(self) -> str:
        last = str(self.concise.get_offset())  # of the last tick alone
        for form in ("%Y-%b-%d %H:%M", "%Y-%b-%d", "%Y-%b", "%Y"):
            told = {end.strftime(form) for end in self.ends if end is not None}
            if len(told) == 1 and last.startswith(common := told.pop()):
                return common
        return ""
