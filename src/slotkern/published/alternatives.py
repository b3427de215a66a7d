"""Schemes that find several windows for one job by searching and cutting repeatedly.

CSA ("Slot selection and co-allocation algorithms for economic scheduling in distributed
computing", section 3.1) repeats AMP; MultipleBest ("Optimization of resources selection
for jobs scheduling in heterogeneous distributed computing environments", section 4)
repeats FirstFit. The remnants of a cut slot are inserted into the list in order.

Complexity: k + 1 searches of the whole list for k windows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .algorithms import find
from .job import Job

Window = tuple[float, NDArray[np.int64], NDArray[np.float64]]


class Scheme(NamedTuple):
    """A published scheme: its name, the paper and section, and the function.

    The function has the parameters of `all_windows`, with the shape bound.
    """

    name: str
    paper: str
    search: Callable[..., list[Window]]


def cut(
    slots: NDArray[np.void],
    rows: NDArray[np.int64],
    start: float,
    finish: NDArray[np.float64],
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return the list without these parts, and the original row of each of its slots.

    The papers speak of "cutting" a window from the list without defining what becomes
    of the remnants of its slots; here they return to the list.
    """
    ends = slots["end"][rows]
    rounding = ends - finish <= 4 * 2.0**-52 * np.abs(finish)
    left, right = slots[rows], slots[rows]
    left["end"], right["start"] = start, np.where(rounding, ends, finish)
    others = np.setdiff1d(np.arange(len(slots)), rows)
    table = np.concatenate([slots[others], left, right])
    origin = np.concatenate([others, rows, rows])
    order = np.lexsort((table["node"], table["start"]))
    order = order[(table["start"] < table["end"])[order]]
    return table[order], origin[order]


def all_windows(
    slots: NDArray[np.void],
    *,
    shape: str,
    nodes: int,
    volume: float,
    setup: float = 0.0,
    step: float = 0.0,
    limit: int | None = None,
    **job: Any,
) -> list[Window]:
    """Repeat AMP (ragged) or FirstFit (square) until it finds nothing.

    Parameters
    ----------
    slots : structured array
        As for `slotkern.published.find`.
    shape : {"ragged", "square"}
        CSA, or MultipleBest.
    nodes, volume, setup, step, **job
        As for `slotkern.published.find`.
    limit : int, optional
        The largest number of windows.

    Returns
    -------
    list of (start, rows, finish)
        In order of discovery: the start, the rows of `slots`, cheapest first, and the
        end of each part.
    """
    job |= {"nodes": nodes, "volume": volume, "setup": setup, "step": step}
    run = Job(nodes, volume, np.inf, -np.inf, np.inf, setup, step)
    windows: list[Window] = []
    table, origin = slots, np.arange(len(slots))
    while limit is None or len(windows) < limit:
        found = find(table, criterion="first", shape=shape, **job)
        if found is None:
            break
        start, rows = found.start, found.rows
        lengths = run.lengths(table["performance"][rows])
        if shape == "square":
            lengths = np.full(nodes, lengths.max())
        windows.append((start, origin[rows], start + lengths))
        table, kept = cut(table, rows, start, start + lengths)
        origin = origin[kept]
    return windows


#: Every published scheme for several windows, by shape.
SCHEMES = {
    "ragged": Scheme(
        "CSA",
        "Slot selection and co-allocation algorithms for economic scheduling, 3.1",
        partial(all_windows, shape="ragged"),
    ),
    "square": Scheme(
        "MultipleBest",
        "Optimization of resources selection for jobs scheduling, 4",
        partial(all_windows, shape="square"),
    ),
}
