"""Times of pictures: dates if the slots have a clock, else plain numbers.

The data stay in the numbers of the clock; only ticks and labels are dates. The night
at the end of daylight saving time is therefore 25 hours wide.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import quote
from slotkern.foundation.context import SlotContext
from slotkern.foundation.extras import extra
from slotkern.machine.clock import Clock, is_number
from slotkern.plotting.style import FONT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TimeAxis", "first_context", "parse_time", "time_bounds"]

TICKS = 8


def first_context(*things: Any) -> SlotContext:
    """Return the first clock, machine and tariffs among some objects, else None."""

    def first(name: str) -> Any:
        found = (getattr(thing, name, None) for thing in things)
        return next((each for each in found if each is not None), None)

    return SlotContext(*map(first, SlotContext._fields))


def parse_time(clock: Clock | None, value: Any, name: str) -> float:
    """Return a time, given as a number or a date, as a number of the clock.

    Raises
    ------
    TypeError
        For a date if there is no clock.
    """
    if clock is not None:
        return clock.time(value, name)
    if not is_number(value):
        raise TypeError(
            f"{name} is {quote(value)}; without a clock it must be a number"
        )
    return float(value)


class TimeAxis:
    """Ticks, labels and texts of times between `first` and `last`.

    Texts are as short as the range allows: dates without a day within one day, numbers
    with four significant digits of the range.
    """

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
        """Label of the axis, with the zone of the clock."""
        return "time" if self.clock is None else f"time ({self.clock.zone or 'UTC'})"

    def format(self, value: float) -> str:
        """Return the text of a time."""
        if self.clock is not None:
            date = self.clock.datetime(value)
            if date is None:
                return ""
            other = date.replace(fold=1 - date.fold).utcoffset()
            is_ambiguous = other != date.utcoffset()  # such a local time occurs twice
            return date.strftime(self.form + ("%z" if is_ambiguous else ""))
        text = f"{value:,.{self.decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text

    def format_span(self, start: float, finish: float) -> str:
        """Return "START to FINISH"; the day only once if it is the same."""
        begin, end = self.format(start), self.format(finish)
        day, _, hour = end.partition(" ")
        if self.clock is not None and hour and begin.startswith(f"{day} "):
            end = hour
        return f"{begin} to {end}"

    def apply_to(self, ax: Axes) -> None:
        """Set ticks, label and pointer format of the horizontal axis."""
        with extra():
            from matplotlib.ticker import FuncFormatter, MaxNLocator

        if self.clock is None:
            ax.xaxis.set_major_locator(MaxNLocator(nbins=TICKS, steps=[1, 2, 5, 10]))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: self.format(x)))
        else:
            from slotkern.plotting.dates import ConciseDates, DateScale, DateTicks

            dates = DateScale(self.clock)
            ax.xaxis.set_major_locator(DateTicks(dates, TICKS))
            ax.xaxis.set_major_formatter(ConciseDates(dates))
            ax.xaxis.get_offset_text().set_fontsize(FONT - 0.5)
        ax.format_xdata = self.format  # type: ignore[assignment,method-assign]
        ax.set_xlabel(self.label, fontsize=FONT, color=INK)


def time_bounds(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and the largest finite time, at least 1 apart if equal."""
    finite = values[np.isfinite(values)]
    first, last = float(finite.min(initial=0)), float(finite.max(initial=0))
    return first, last if last > first else first + 1.0
