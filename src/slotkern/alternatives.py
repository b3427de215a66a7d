"""Several windows for one request: by one sweep, or the best, cut, the best again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern._alternatives import ENDLESS, Alternatives, first_alternatives, gather
from slotkern._core import PreparedSlots, Request, Window, find_window, settled_slots

__all__ = ["Alternatives", "cut_window", "find_alternatives"]


def find_alternatives(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any = "first",
    *,
    shape: str = "square",
    method: str = "exact",
    limit: int | None = None,
    **options: Any,
) -> Alternatives:
    """Windows for one request that share no slot time.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`. Neither is changed.
    request : Request
        What the job asks for.
    criterion : optional
        ``"first"`` finds all windows of the papers' CSA (ragged, by AMP) and
        MultipleBest (square, by FirstFit) in one sweep. Any other criterion that
        `find_window` takes: the best window, then the best of what is left when it is
        cut out, and so on.
    shape : {"square", "ragged"}
        As for `find_window`.
    method : {"exact", "lite", "published"}
        As for `find_window`; anything but ``"exact"`` searches and cuts repeatedly.
    limit : int, optional
        The most windows; None for all.
    **options
        As for `find_window`.

    Returns
    -------
    Alternatives
        A sequence of windows in the order they were found; empty when nothing fits.
        ``Window.slots["row"]`` is the row of the array passed.

    Raises
    ------
    ValueError, TypeError
        As `find_window`; also for a limit below 0, and for slots with an infinite end
        when neither the deadline nor a limit bounds the number of windows.

    Notes
    -----
    One sweep: O((m + k n) log m) expected for k windows of n parts from m slots, square
    times the performance groups that can fit the budget; 32 bytes for each slot and
    part and 32 for each node of each such group. The general scheme: k searches and
    cuts of O(m) each. CSA: "Slot Selection and Co-allocation Algorithms for Economic
    Scheduling in Distributed Computing", section 3.1; MultipleBest: "Optimization of
    Resources Selection for Jobs Scheduling in Heterogeneous Distributed Computing
    Environments", section 4.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1, 2], start=[0, 0, 4], end=[10, 10, 12],
    ...                       performance=[1, 2, 4], price=[1, 3, 5])
    >>> found = sk.find_alternatives(slots, sk.Request(2, 8))
    >>> [window.nodes for window in found]
    [(0, 1)]
    >>> sk.find_alternatives(slots, sk.Request(1, 8), "cost").cost
    array([ 8., 10., 10., 10., 10., 12., 12.])
    """
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, (int, np.integer)):
            raise TypeError(f"limit must be an integer or None, got {limit!r}")
        if limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
    if isinstance(criterion, str) and criterion == "first" and method == "exact":
        if options:  # their names and values
            find_window(slots, request, "first", shape=shape, **options)
        return first_alternatives(slots, request, shape, limit)
    return _best_and_cut(slots, request, criterion, shape, method, limit, options)


def _best_and_cut(
    slots: NDArray[np.void] | PreparedSlots,
    request: Request,
    criterion: Any,
    shape: str,
    method: str,
    limit: int | None,
    options: dict[str, Any],
) -> Alternatives:
    """The general scheme: every window is the best of what the ones before leave."""
    source, table, origin = settled_slots(slots)
    if origin is None:
        origin = np.arange(len(table))
    if limit is None and np.isinf(request.deadline) and np.isinf(table["end"]).any():
        raise ValueError(ENDLESS)
    windows: list[Window] = []
    origins: list[NDArray[np.intp]] = []
    where = request.where if isinstance(request.where, np.ndarray) else None
    while limit is None or len(windows) < limit:
        asked = request if where is None else request.replace(where=where[origin])
        value = criterion[origin] if isinstance(criterion, np.ndarray) else criterion
        window = find_window(
            source, asked, value, shape=shape, method=method, **options
        )
        if window is None:
            break
        windows.append(window)
        origins.append(origin)
        table, kept = cut_window(table, window)
        origin, source = origin[kept], table
    name = criterion if isinstance(criterion, str) else type(criterion).__name__
    if windows:
        name = windows[0].criterion
    return gather(windows, request.nodes, name, shape, origins)


def cut_window(
    slots: NDArray[np.void], window: Window
) -> tuple[NDArray[np.void], NDArray[np.intp]]:
    """The slots that a window leaves free, with the remnants of those it is cut from.

    Parameters
    ----------
    slots : structured array, shape (m,)
        The array the window was found in.
    window : Window

    Returns
    -------
    slots : structured array
        Sorted by (start, node); a rest of at most 4 ulp of the end is no slot.
    rows : ndarray of int
        For each the row of `slots` that it is (a part of).
    """
    parts = window.slots
    rows = parts["row"]
    ends = slots["end"][rows]
    finish = parts["end"].copy()
    rounding = ends - finish <= 4 * 2.0**-52 * np.abs(finish)
    finish[rounding] = ends[rounding]
    left, right = slots[rows], slots[rows]
    left["end"], right["start"] = window.start, finish
    whole = np.ones(len(slots), bool)
    whole[rows] = False
    kept = np.flatnonzero(whole)
    has_left, has_right = left["start"] < left["end"], right["start"] < right["end"]
    table = np.concatenate([slots[kept], left[has_left], right[has_right]])
    origin = np.concatenate([kept, rows[has_left], rows[has_right]])
    order = np.lexsort((table["node"], table["start"]))
    return table[order], origin[order]
