"""Several windows for one request that share no slot time.

Two schemes: one sweep that finds all windows of CSA or MultipleBest; or repeated
searches for the best window, with each window cut out before the next search.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.search import (
    MAX_PARTS,
    Alternatives,
    alternatives_from_windows,
    current_slots,
    endless_error,
    find_window,
    first_alternatives,
    too_many_error,
)
from slotkern._kernels.slots import (
    PreparedSlots,
    as_slot_array,
    has_tariffs,
    resolve_times,
)
from slotkern._kernels.windows import Window
from slotkern.foundation.checks import integer
from slotkern.foundation.context import context_of
from slotkern.foundation.errors import UndecidedError
from slotkern.machine.jobs import check_single
from slotkern.search.criteria import Minimize, minimize

if TYPE_CHECKING:
    from slotkern.typing import Criterion, Method, Shape, Slots

__all__ = ["Alternatives", "find_alternatives"]


def find_alternatives(
    slots: Slots,
    request: Request,
    criterion: Criterion = "first",
    *,
    shape: Shape = "square",
    method: Method = "exact",
    limit: int | None = None,
    **options: Any,
) -> Alternatives:
    """Find windows for one request that share no slot time.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`. Neither is changed.
    request : Request
        The job.
    criterion : optional
        ``"first"`` finds all windows of the papers' CSA (ragged, by AMP) and
        MultipleBest (square, by FirstFit) in one sweep. Any other criterion that
        `find_window` takes: the best window, then the best window of the remaining
        slot time, and so on.
    shape : {"square", "ragged"}
        As for `find_window`.
    method : {"exact", "lite", "published"}
        As for `find_window`; anything but ``"exact"`` searches and cuts repeatedly.
    limit : int, optional
        The largest number of windows; None for all.
    **options
        As for `find_window`.

    Returns
    -------
    Alternatives
        A sequence of windows in the order they were found; empty if nothing fits.
        ``Window.slots["row"]`` is the row of the array passed.

    Raises
    ------
    ValueError, TypeError
        As `find_window`; also for a limit below 0, for slots with an infinite end if
        neither the deadline nor a limit bounds the number of windows, for more than
        4,000,000 parts, and for square windows if the live slots of all performance
        groups take more than 256 MB.
    UndecidedError
        If a search under limits reached `max_work` before it found a window, so that
        more alternatives may exist.

    Notes
    -----
    One sweep: O((m + k n) log m) expected for k windows of n parts from m slots; square
    windows: times the number of performance groups that can fit the budget. Memory: 56
    bytes for each slot and part, and at most 32 for each live slot of each such group.
    The general scheme: k searches in a `SlotPool` of a copy of the slots, in which each
    window is booked.
    CSA: "Slot Selection and Co-allocation Algorithms for Economic Scheduling in
    Distributed Computing", section 3.1; MultipleBest: "Optimization of Resources
    Selection for Jobs Scheduling in Heterogeneous Distributed Computing Environments",
    section 4.

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
    check_single(request, "find_alternatives")
    if limit is not None:
        limit = integer("limit", limit, least=0)
    one_sweep = isinstance(criterion, str) and criterion == "first"
    # Under tariffs a step without a window may have one later, so each is searched.
    one_sweep = one_sweep and not has_tariffs(slots)
    if one_sweep and method == "exact" and not (request.limits or request.rules):
        if options:  # checks their names and values
            find_window(slots, request, "first", shape=shape, **options)
        return first_alternatives(slots, request, shape, limit)
    return _best_and_cut(slots, request, criterion, shape, method, limit, options)


def _best_and_cut(
    slots: Slots,
    request: Request,
    criterion: Any,
    shape: Shape,
    method: Method,
    limit: int | None,
    options: dict[str, Any],
) -> Alternatives:
    """Find the best window, book it in a copy of the slots, and repeat."""
    options = {"shape": shape, "method": method, **options}
    request = resolve_times(slots, request)
    window = find_window(slots, request, criterion, **options)
    name = criterion if isinstance(criterion, str) else type(criterion).__name__
    windows: list[Window] = []
    searched = current_slots(slots)
    if window is not None and limit != 0:
        name = window.criterion
        table = (
            slots.slots if isinstance(slots, PreparedSlots) else as_slot_array(slots)
        )
        if (
            limit is None
            and np.isinf(min(request.deadline, request.latest))
            and np.isinf(table["end"]).any()
        ):
            raise endless_error()
        named, request, criterion = _arrays_as_fields(table, request, criterion)
        if named is table and isinstance(slots, SlotPool):
            pool = copy.copy(slots)
        else:
            context = context_of(slots)
            pool = SlotPool(named, **({} if context is None else context._asdict()))
        while window is not None:
            windows.append(window)
            if len(windows) == limit:
                break
            pool.book(window)
            try:
                window = find_window(pool, request, criterion, **options)
            except UndecidedError as error:
                raise _undecided_after(len(windows), error) from None
            if window is not None and (len(windows) + 1) * len(window) > MAX_PARTS:
                raise too_many_error(len(window))
    return alternatives_from_windows(windows, request.nodes, name, shape, searched)


def _undecided_after(count: int, error: UndecidedError) -> UndecidedError:
    found = "one alternative" if count == 1 else f"{count:,} alternatives"
    hint = f"limit={count} returns what was found before"
    return UndecidedError(f"after {found}: {error}; {hint}")


def _arrays_as_fields(
    table: NDArray[np.void], request: Request, criterion: Any
) -> tuple[NDArray[np.void], Request, Any]:
    """Store arrays with one value per row as fields, which remnants inherit."""
    value = criterion.criterion if isinstance(criterion, Minimize) else criterion
    sums = [limit.of for limit in request.limits]
    arrays = [a for a in (request.where, value, *sums) if isinstance(a, np.ndarray)]
    if not arrays:
        return table, request, criterion
    dtype: Any = table.dtype
    names = [*dtype.names]
    offsets = [dtype.fields[name][1] for name in names]  # compiled criteria use them
    formats = [dtype[name] for name in names]
    size = dtype.itemsize + -dtype.itemsize % 8
    for k, array in enumerate(arrays):
        names.append(f"{max(names, key=len)}_")  # longer than any other, hence unique
        offsets.append(size + 8 * k)
        formats.append(array.dtype)
    wide = np.zeros(
        len(table),
        {
            "names": names,
            "offsets": offsets,
            "formats": formats,
            "itemsize": size + 8 * len(arrays),
        },
    )
    for name in dtype.names:
        wide[name] = table[name]
    for name, array in zip(names[-len(arrays) :], arrays, strict=True):
        wide[name] = array
        if array is request.where:
            request = request.replace(where=name)
        elif any(array is of for of in sums):
            request = request.replace(
                limits=[
                    replace(limit, of=name) if limit.of is array else limit
                    for limit in request.limits
                ]
            )
        elif isinstance(criterion, Minimize):
            criterion = minimize(name)
        else:
            criterion = name
    return wide, request, criterion
