"""The plan of a job of several parts: a window for each of its requests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from slotkern._kernels.windows import Window
from slotkern.display import HasPlot
from slotkern.foundation.checks import visible
from slotkern.foundation.hostlists import fold

if TYPE_CHECKING:
    import datetime

    from slotkern.display.table import Table

__all__ = ["Plan", "named", "plan_of_outline", "replaced"]


class Plan(HasPlot, Sequence[Window]):
    """The windows of a job of several parts: a sequence of `Window`, in order of parts.

    Attributes
    ----------
    windows : tuple of Window
        One for each role, stage or option that was taken.
    roles : tuple of str
        What each window is for: the name or number of its stage and role, such as
        ``"train"`` or ``"stage 2/viewer"``.
    options : tuple of (int or None)
        For each window the index of the option that was taken; None without options.
    stages : tuple of int
        For each window the index of its stage; 0 without stages.
    criterion : str
        The criterion of the search.
    name : str or None
        Name of the job.
    start, finish, runtime : float
        First start, last finish, and the time between them.
    cost : float
        Sum of the costs of the windows, rounded once.
    processor_time : float
        Sum of the lengths of all parts.
    proven : bool
        True if no plan of the job has a better value.
    option : int or None
        The index of the option that was taken, if exactly one job with options is
        part of the job.
    start_time, finish_time : datetime or None
        Start and finish as dates; None without a clock.
    duration : timedelta or None
        Runtime; None without a clock.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    >>> job = sk.Chain([sk.Request(2, 3, name="sort"), sk.Request(1, 4)], name="daily")
    >>> plan = sk.find_window(slots, job)
    >>> plan.start, plan.finish, plan.cost, plan.roles
    (0.0, 7.0, 20.0, ('sort', 'stage 2'))
    >>> sk.SlotPool(slots).book(plan, "alice")
    """

    __slots__ = (
        *("windows", "roles", "options", "stages"),
        *("criterion", "name", "proven"),
    )

    def __init__(
        self,
        windows: tuple[Window, ...],
        roles: tuple[str, ...],
        options: tuple[int | None, ...],
        stages: tuple[int, ...],
        criterion: str,
        name: str | None = None,
        proven: bool = True,
    ) -> None:
        self.windows, self.roles = windows, roles
        self.options, self.stages = options, stages
        self.criterion, self.name, self.proven = criterion, name, proven

    @overload
    def __getitem__(self, index: int) -> Window: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Window, ...]: ...
    def __getitem__(self, index: int | slice) -> Window | tuple[Window, ...]:
        return self.windows[index]

    def __len__(self) -> int:
        return len(self.windows)

    def __iter__(self) -> Iterator[Window]:
        return iter(self.windows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self._state() == other._state()

    def __hash__(self) -> int:
        return hash(self.windows)

    def _state(self) -> tuple[Any, ...]:
        return (
            *(self.windows, self.roles, self.options, self.stages),
            *(self.criterion, self.proven),
        )

    @property
    def start(self) -> float:
        """First start."""
        return min(window.start for window in self.windows)

    @property
    def finish(self) -> float:
        """Last finish."""
        return max(window.finish for window in self.windows)

    @property
    def runtime(self) -> float:
        """Finish minus start; of windows with one start the longest runtime."""
        start = self.windows[0].start
        if all(window.start == start for window in self.windows):
            return max(window.runtime for window in self.windows)
        return self.finish - self.start

    @property
    def cost(self) -> float:
        """Sum of the costs of the windows, rounded once."""
        return math.fsum(window.cost for window in self.windows)

    @property
    def processor_time(self) -> float:
        """Sum of the lengths of all parts."""
        return math.fsum(window.processor_time for window in self.windows)

    @property
    def shape(self) -> str:
        """The shape of the windows."""
        return self.windows[0].shape

    @property
    def option(self) -> int | None:
        """The index of the option that was taken, or None."""
        taken = {
            (stage, option)
            for stage, option in zip(self.stages, self.options, strict=True)
            if option is not None
        }
        return taken.pop()[1] if len(taken) == 1 else None

    @property
    def context(self) -> Any:
        """The SlotContext of the searched slots, or None."""
        return self.windows[0].context

    @property
    def clock(self) -> Any:
        """The clock of the searched slots, or None."""
        return self.windows[0].clock

    @property
    def machine(self) -> Any:
        """The machine of the searched slots, or None."""
        return self.windows[0].machine

    @property
    def start_time(self) -> datetime.datetime | None:
        """The start as a date, or None without a clock."""
        return None if self.clock is None else self.clock.datetime(self.start)

    @property
    def finish_time(self) -> datetime.datetime | None:
        """The finish as a date, or None without a clock."""
        return None if self.clock is None else self.clock.datetime(self.finish)

    @property
    def duration(self) -> datetime.timedelta | None:
        """The runtime as a timedelta, or None without a clock."""
        return None if self.clock is None else self.clock.timedelta(self.runtime)

    def role(self, label: str) -> Window:
        """Return the window of a role or stage.

        Raises
        ------
        KeyError
            If the plan has no such role; the message lists the roles.
        """
        if label not in self.roles:
            raise KeyError(f"no role {label!r}; the plan has {', '.join(self.roles)}")
        return self.windows[self.roles.index(label)]

    def by_role(self) -> dict[str, Window]:
        """Return the windows by their roles, for pictures."""
        return dict(zip(self.roles, self.windows, strict=True))

    def value(self, criterion: str) -> float:
        """Return the start, finish, runtime or cost."""
        found: float = getattr(self, criterion)
        return found

    def merged(self) -> Window:
        """Return all parts as one window, for tables with one row for each job.

        All of its parts begin at the first start, whatever their own is.
        """
        parts = [part for window in self for part in window.to_dict()["slots"]]
        value = self.value(self.criterion)
        window = Window.from_dict(
            {
                **{name: getattr(self, name) for name in _TOTALS},
                **{"value": value, "bound": value if self.proven else -math.inf},
                **{"proven": self.proven, "criterion": self.criterion},
                **{"shape": self.shape, "slots": parts, "name": self.name},
            }
        )
        window.context = self.context
        return window

    def _as_table(self) -> Table:
        """Return a row for each part, with its role."""
        from slotkern.display.table import Table

        parts = np.concatenate([window.slots for window in self.windows])
        sizes = [len(window) for window in self.windows]
        columns: dict[str, Any] = {"role": np.repeat(np.array(self.roles), sizes)}
        if any(option is not None for option in self.options):
            taken = [-1 if k is None else k for k in self.options]
            columns["option"] = np.repeat(taken, sizes)
        columns |= {name: parts[name] for name in parts.dtype.names or ()}
        facts = {
            "start": self.start_time or self.start,
            "finish": self.finish_time or self.finish,
            "runtime": self.duration or self.runtime,
            "cost": self.cost,
        }
        called = "" if self.name is None else f" of {self.name}"
        return Table(
            f"Plan{called}: {self.shape} {self.criterion}",
            columns,
            len(parts),
            context=self.context,
            times=("start", "end"),
            facts=facts,
        )

    def outline(self) -> dict[str, Any]:
        """Return all but the windows, for JSON; see `plan_of_outline`."""
        return {name: getattr(self, name) for name in self.__slots__[1:]}

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as Python numbers and text, ready for JSON.

        Each window is that of `Window.to_dict` with ``role``, ``stage`` and ``option``;
        see `from_dict`.
        """
        data: dict[str, Any] = {name: getattr(self, name) for name in _TOTALS}
        data |= {"criterion": self.criterion, "shape": self.shape}
        data |= {"proven": self.proven, "option": self.option}
        if self.name is not None:
            data["name"] = self.name
        if self.clock is not None:
            data["start_time"] = self.clock.datetime(self.start).isoformat()
            data["finish_time"] = self.clock.datetime(self.finish).isoformat()
        data["windows"] = [
            {"role": role, "stage": stage, "option": option, **window.to_dict()}
            for role, stage, option, window in zip(
                self.roles, self.stages, self.options, self.windows, strict=True
            )
        ]
        return data

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Plan:
        """Return the plan from the result of `to_dict`, without clock and machine.

        Raises
        ------
        ValueError, TypeError
            For a missing key or a value of another type; the message has the key.
        """
        try:
            windows = data["windows"]
            if not isinstance(windows, list) or not windows:
                raise ValueError("a plan must have windows")
            return Plan(
                tuple(map(Window.from_dict, windows)),
                tuple(str(window["role"]) for window in windows),
                tuple(window["option"] for window in windows),
                tuple(int(window["stage"]) for window in windows),
                str(data["criterion"]),
                data.get("name"),
                bool(data["proven"]),
            )
        except KeyError as error:
            raise ValueError(f"not a plan: it has no {error}") from None

    def __repr__(self) -> str:
        if self.clock is None:
            times = f"start={_number(self.start)}, finish={_number(self.finish)}"
        else:
            times = f"start={self.start_time}, finish={self.finish_time}"
        shown = [
            f"{role}={list(w.nodes) if w.machine is None else fold(w.names)}"
            for role, w in zip(self.roles, self.windows, strict=True)
        ]
        option = "" if self.option is None else f", option={self.option}"
        return visible(
            f"Plan({self.criterion}: {times}, cost={self.cost:g}{option}, "
            f"{', '.join(shown)})"
        )


_TOTALS = ("start", "finish", "runtime", "cost", "processor_time")


def _number(time: float) -> str:
    return f"{time:g}" if abs(time) < 1e6 else f"{time:.12g}"


def named(plan: Plan | None, name: str | None) -> Plan | None:
    """Give a plan and all its windows the name of the job, if it has one."""
    if plan is None or name is None:
        return plan
    for window in plan.windows:
        window.name = name
    plan.name = name
    return plan


def plan_of_outline(windows: tuple[Window, ...], outline: Mapping[str, Any]) -> Plan:
    """Return the plan of windows and the result of `Plan.outline`, also from JSON."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in outline.items()
    }
    return Plan(windows, **fields)


def replaced(plan: Plan, **changes: Any) -> Plan:
    """Return a copy of a plan with some fields changed."""
    fields = {name: getattr(plan, name) for name in Plan.__slots__}
    return Plan(**(fields | changes))
