"""Times of pictures: dates on a calendar where there is a clock, else plain numbers.

What is drawn stays in the clock's numbers; only ticks and words are dates, so that a
night of 25 hours is 25 hours wide.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import shown
from slotkern.extras import extra
from slotkern.machine.clock import Clock, is_number
from slotkern.plotting.style import FONT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from slotkern.machine.terms import Terms

__all__ = ["TimeAxis", "first_terms", "parse_time", "time_bounds"]

TICKS = 8


def first_terms(*things: Any) -> Terms:
    """The first clock and the first machine that some things have."""

    def first(name: str) -> Any:
        found = (getattr(thing, name, None) for thing in things)
        return next((each for each in found if each is not None), None)

    return first("clock"), first("machine")


def parse_time(clock: Clock | None, value: Any, name: str) -> float:
    """A time, given as a number or as a date, in the clock's numbers.

    Raises
    ------
    TypeError
        For a date without a clock.
    """
    if clock is not None:
        return clock.time(value, name)
    if not is_number(value):
        raise TypeError(f"{name} is {shown(value)}, but there is no clock: no number")
    return float(value)


class TimeAxis:
    """How the times between two are told."""

    def __init__(self, clock: Clock | None, first: float, last: float) -> None:
        self.clock = clock
        self.decimals = max(0, 3 - math.floor(math.log10(last - first)))
        if clock is None:
            return
        edges = [clock.datetime(first), clock.datetime(last)]
        begin, end = (edge for edge in edges if edge is not None)
        self.form = "%H:%M" if end - begin >= dt.timedelta(minutes=10) else "%H:%M:%S"
        if begin.year != end.year:
            self.form = f"%Y-%m-%d {self.form}"
        elif begin.date() != end.date():
            self.form = f"%m-%d {self.form}"

    @property
    def label(self) -> str:
        """What stands beside an axis."""
        return "time" if self.clock is None else f"time ({self.clock.zone or 'UTC'})"

    def words(self, value: float) -> str:
        """A time in words, as short as the others allow."""
        if self.clock is not None:
            date = self.clock.datetime(value)
            if date is None:
                return ""
            other = date.replace(fold=1 - date.fold).utcoffset()
            twice = other != date.utcoffset()  # which of the two must be said
            return date.strftime(self.form + ("%z" if twice else ""))
        text = f"{value:,.{self.decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    def span(self, start: float, finish: float) -> str:
        """Two times in words; the day once, if it is the same."""
        begin, end = self.words(start), self.words(finish)
        day, _, hour = end.partition(" ")
        if self.clock is not None and hour and begin.startswith(f"{day} "):
            end = hour
        return f"{begin} to {end}"

    def dress(self, ax: Axes) -> None:
        """Ticks and label of the axis across, and what the pointer is told."""
        with extra():
            from matplotlib.ticker import FuncFormatter, MaxNLocator

        if self.clock is None:
            ax.xaxis.set_major_locator(MaxNLocator(nbins=TICKS, steps=[1, 2, 5, 10]))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: self.words(x)))
        else:
            from slotkern.plotting.dates import ConciseDates, DateScale, DateTicks

            dates = DateScale(self.clock)
            ax.xaxis.set_major_locator(DateTicks(dates, TICKS))
            ax.xaxis.set_major_formatter(ConciseDates(dates))
            ax.xaxis.get_offset_text().set_fontsize(FONT - 0.5)
        ax.format_xdata = self.words  # type: ignore[assignment,method-assign]
        ax.set_xlabel(self.label, fontsize=FONT, color=INK)


def time_bounds(values: NDArray[np.float64]) -> tuple[float, float]:
    """The first and the last of some times, never the same."""
    known = values[np.isfinite(values)]
    first, last = float(known.min(initial=0)), float(known.max(initial=0))
    return first, last if last > first else first + 1.0
