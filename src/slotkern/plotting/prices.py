"""Prices over time below a Gantt picture: a line for each tariff, and for none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.plotting.style import FAINT, FONT, INK, escape_label
from slotkern.tariffs.mapping import Tariffs
from slotkern.tariffs.tariff import Tariff

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PRICE_HEIGHT", "PriceRange", "draw_prices", "price_ranges", "tariffs_of"]

#: Height of the axes of prices, in inches.
PRICE_HEIGHT = 0.8
#: More lines are drawn as one range from the lowest to the highest price.
MAX_LINES = 4
_NO_TARIFF = Tariff([], [1])
_LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")


class PriceRange(NamedTuple):
    """The lowest and the highest price of some nodes between consecutive times.

    Attributes
    ----------
    name : str
    edges : ndarray of float64, shape (k + 1,)
    low, high : ndarray of float64, shape (k,)
    """

    name: str
    edges: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def tariffs_of(slots: Any, windows: Iterable[Any] = ()) -> Tariffs | None:
    """Return the tariffs that the column ``tariff`` of slots names.

    They are those of the slots or, for a plain array, of the first window with some.
    """
    rows = getattr(slots, "slots", slots)
    if "tariff" not in (getattr(rows, "dtype", rows).names or ()):
        return None
    names = {*np.unique(rows["tariff"]).tolist()} - {""}
    for each in (slots, *windows):
        owner = getattr(each, "context", each)
        tariffs: Tariffs | None = getattr(owner, "tariffs", None)
        if tariffs and names <= tariffs.keys():
            return tariffs
    return None


def price_ranges(
    slots: NDArray[Any], tariffs: Tariffs, first: float, last: float
) -> list[PriceRange]:
    """Return the prices within [first, last] of the nodes of each tariff in `slots`.

    Nodes of one tariff have a range if their base prices differ; nodes without a tariff
    have one price at all times. More than four tariffs have one range together. Empty
    if no node has a tariff.
    """
    names = np.unique(slots["tariff"]).tolist()
    if not any(names):
        return []
    found = []
    for name in names:
        base = slots["price"][slots["tariff"] == name]
        edges, factors = (tariffs[name] if name else _NO_TARIFF).segments(first, last)
        low, high = base.min() * factors, base.max() * factors
        found.append(PriceRange(name or "no tariff", edges, low, high))
    if len(found) <= MAX_LINES:
        return found
    edges = np.unique(np.concatenate([each.edges for each in found]))
    rows = [np.searchsorted(each.edges, edges[:-1], "right") - 1 for each in found]
    low = np.min([each.low[row] for each, row in zip(found, rows, strict=True)], axis=0)
    high = np.max(
        [each.high[row] for each, row in zip(found, rows, strict=True)], axis=0
    )
    named = f"{sum(map(bool, names)):,} tariffs"
    return [PriceRange(named if all(names) else f"{named}, none", edges, low, high)]


def draw_prices(ax: Axes, ranges: list[PriceRange], unit: str | None) -> None:
    """Draw prices as steps, and ranges of prices as areas.

    The label of the axis has the time unit of the prices, if there is one.
    """
    has_range = False
    for each, style in zip(ranges, _LINE_STYLES, strict=False):
        if (each.low < each.high).any():
            ax.stairs(
                each.high,
                each.edges,
                baseline=each.low,
                fill=True,
                color=FAINT,
                alpha=0.35,
                linewidth=0,
                label=None if has_range else "cheapest to dearest node",
            )
            has_range = True
        label = escape_label(each.name)
        line: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": style}
        ax.stairs(each.high, each.edges, baseline=None, label=label, **line)
    top = max((float(each.high.max()) for each in ranges), default=0.0)
    ax.set_ylim(0, 1.15 * top or 1)
    label = "price" if unit is None else f"price per {unit}"
    ax.set_ylabel(label, fontsize=FONT, color=INK)
    ax.tick_params(axis="both", length=0, labelsize=FONT - 0.5)
    ax.tick_params(axis="x", length=3, color=FAINT)
    ax.yaxis.get_major_locator().set_params(nbins=3)  # type: ignore[call-arg]
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(FAINT)
    ax.grid(axis="y", color=FAINT, alpha=0.3, linewidth=0.5)
    if len(ranges) > 1 or has_range or ranges[0].name != "price":
        ax.legend(
            loc="lower right",
            bbox_to_anchor=(1.0, 0.93),
            ncols=len(ranges) + has_range,
            frameon=False,
            fontsize=FONT - 0.5,
            labelcolor=INK,
            handlelength=1.8,
            borderaxespad=0,
        )
