"""The method ``.plot()`` of results: selects the drawing function by the type."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.search import Alternatives
from slotkern._kernels.slots import PreparedSlots
from slotkern._kernels.windows import Window, WindowTable
from slotkern.batch.cycles import Cycles
from slotkern.batch.execution import Execution
from slotkern.batch.schedule import Schedule
from slotkern.communities.result import CommunityRun
from slotkern.compound.plan import Plan
from slotkern.environment.generate import TASK, Environment
from slotkern.fronts import Front
from slotkern.machine.spans import FreeSlots, why_busy
from slotkern.plotting.batch import plot_cycles, plot_schedule
from slotkern.plotting.communities import plot_communities
from slotkern.plotting.flows import plot_replays, plot_trace
from slotkern.plotting.forecast import plot_forecast
from slotkern.plotting.front import plot_front
from slotkern.plotting.gantt import plot_gantt
from slotkern.plotting.holes import plot_holes
from slotkern.plotting.layout import unique_names
from slotkern.pool.host_pool import HostPool
from slotkern.replays.forecast import Forecast
from slotkern.replays.result import Replay
from slotkern.search.holes import Holes
from slotkern.slots import SLOT
from slotkern.traces.free_slots import TraceSlots
from slotkern.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_result"]


def draw_result(thing: Any, *arguments: Any, **options: Any) -> Figure:
    """Draw a result with the function of its type.

    Parameters
    ----------
    thing : object
        A result with a picture, e.g. Window, SlotPool or Schedule.
    *arguments, **options
        Passed on to the drawing function.

    Raises
    ------
    TypeError
        For a type without a picture.
    """
    for kinds, draw in _DRAWERS:
        if isinstance(thing, kinds):
            return draw(thing, *arguments, **options)
    raise TypeError(f"there is no picture of {type(thing).__name__}")


def _windows(thing: Any, slots: Any = None, **options: Any) -> Figure:
    """Draw windows on the given slots, or alone, without free and busy time."""
    if slots is None:
        slots = np.empty(0, SLOT)
        options.setdefault("tasks", np.empty(0, TASK))
    return plot_gantt(slots, thing, **options)


def _alternatives(thing: Alternatives, slots: Any = None, **options: Any) -> Figure:
    return _windows(thing, thing.searched[0] if slots is None else slots, **options)


def _pool(thing: SlotPool | HostPool, windows: Any = None, **options: Any) -> Figure:
    """Draw the free time of a pool, the bookings by owner, and other busy time."""
    if windows is None:
        owned = [
            (f"{owner}, {window.name}" if window.name else owner, window)
            for window, owner in sorted(
                thing._owned_windows(), key=lambda pair: pair[1]
            )
        ]
        windows = unique_names(owned)
    return plot_gantt(thing, windows, **options)


def _free(thing: FreeSlots, windows: Any = None, **options: Any) -> Figure:
    """Draw free slots; busy spans with a reason get one colour per reason."""
    if windows is None:
        spans, reasons, _ = why_busy(thing)
        windows = {}
        for reason in dict.fromkeys(reasons):
            parts = spans[np.array(reasons) == reason]
            start, finish = parts["start"].min(), parts["end"].max()
            windows[reason] = SimpleNamespace(slots=parts, start=start, finish=finish)
    return plot_gantt(thing, windows or None, **options)


def _environment(thing: Environment, windows: Any = None, **options: Any) -> Figure:
    given: dict[str, Any] = {"tasks": thing.tasks, "horizon": thing.horizon}
    return plot_gantt(thing, windows, **given | options)


def _execution(thing: Execution, **options: Any) -> Figure:
    return _windows(thing.runs(), thing.schedule._jobs.prepared, **options)


def _replay(thing: Replay, **options: Any) -> Figure:
    return plot_replays({thing.policy: thing}, **options)


def _community(thing: CommunityRun, **options: Any) -> Figure:
    return plot_communities({thing.name: thing}, **options)


#: Types and their drawing functions; the first match is used.
_DRAWERS: tuple[tuple[Any, Callable[..., Figure]], ...] = (
    (Alternatives, _alternatives),
    (Front, plot_front),
    (Holes, plot_holes),
    (Forecast, plot_forecast),
    ((Window, WindowTable, Plan), _windows),
    ((SlotPool, HostPool), _pool),
    (FreeSlots, _free),
    ((PreparedSlots, TraceSlots), plot_gantt),
    (Environment, _environment),
    (Schedule, plot_schedule),
    (Execution, _execution),
    (Cycles, plot_cycles),
    (Trace, plot_trace),
    (Replay, _replay),
    (CommunityRun, _community),
)
