"""Jobs of several parts: options, roles that start together, and stages in order.

They nest in one order: a `Chain` of `AnyOf` of `Together` of `Request`. All of them are
immutable. A job holds requests only; `slotkern.compound.find` searches for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from slotkern._kernels.request import Request
from slotkern.foundation.checks import number, quote
from slotkern.machine.calendar import duration_of
from slotkern.machine.clock import is_number
from slotkern.machine.jobs import Compound

if TYPE_CHECKING:
    from slotkern.typing import Duration

__all__ = ["AnyOf", "Chain", "Job", "Together", "check_job", "requests_in"]


def _parts(kind: type[Compound], parts: Any, word: str) -> tuple[Any, ...]:
    """Check the parts of a job; the names of a mapping become those of its requests."""
    if isinstance(parts, Mapping):
        parts = [_named(part, name) for name, part in parts.items()]
    if isinstance(parts, Request | Compound | str) or not hasattr(parts, "__iter__"):
        raise TypeError(
            f"{kind.__name__} needs a list of {word}s, got {type(parts).__name__}"
        )
    found = tuple(parts)
    if not found:
        raise ValueError(f"{kind.__name__} needs at least one {word}")
    for i, part in enumerate(found):
        if not isinstance(part, (Request, *_ALLOWED[kind.__name__])):
            allowed = ", ".join(["Request", *_ALLOWED_NAMES[kind.__name__]])
            raise TypeError(
                f"{kind.__name__}, {word} {i + 1} has type {type(part).__name__}; "
                f"allowed: {allowed} (jobs nest as Chain of AnyOf of Together of "
                "Request)"
            )
    return found


def _named(part: Any, name: Any) -> Any:
    if not isinstance(part, Request | Compound):
        return part  # refused later, with its position
    return part if part.name == name else part.replace(name=str(name))


def _check_name(name: Any) -> None:
    if name is not None and not (isinstance(name, str) and name):
        raise TypeError(f"name must be text, got {quote(name)}")


def _labels(parts: Sequence[Any], word: str) -> tuple[str, ...]:
    """Return the name of each part, or its kind and number; all are different."""
    names = [part.name or f"{word} {i}" for i, part in enumerate(parts, 1)]
    return tuple(
        name if names.count(name) == 1 else f"{name} ({word} {i})"
        for i, name in enumerate(names, 1)
    )


@dataclass(frozen=True)
class Together(Compound):
    """Roles that start at the same time on different nodes.

    Parameters
    ----------
    roles : sequence of Request, or mapping of name to Request
        Each with its own nodes, volume, filter and limits. No node serves two roles.
    budget : float, optional
        Maximum cost of all roles together, besides the budgets of the roles.
    name : str, optional
        Name of the job and of all its windows.

    Raises
    ------
    ValueError, TypeError
        For roles that are not requests, or an invalid budget.

    Notes
    -----
    *Roles with different candidates* (filters such as ``"kind == 'gpu'"`` that share no
    node): the common start is found by leapfrog. All roles are searched from one time
    on, and the latest of their starts is the next time, until all begin at it. A role
    has no start in between, so none is skipped. Costs, finishes and runtimes are
    compared at all common starts, up to a lower bound.

    *Roles with common candidates*: at each common start, the cheapest windows of the
    roles are the optimum if they share no node. Otherwise an assignment of least cost
    distributes the nodes. The roles must then have no budgets and limits of their own.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1, 2], start=[0, 0, 3], end=9, performance=1, price=1,
    ...     kind=["cpu", "cpu", "gpu"],
    ... )
    >>> job = sk.Together([
    ...     sk.Request(2, 4, where="kind == 'cpu'", name="solver"),
    ...     sk.Request(1, 5, where="kind == 'gpu'", name="viewer"),
    ... ])
    >>> sk.find_window(slots, job, "start")
    Plan(start: start=3, finish=8, cost=13, solver=[0, 1], viewer=[2])
    """

    roles: tuple[Request, ...]
    budget: float = math.inf
    name: str | None = None
    word: ClassVar[str] = "role"

    def __init__(
        self,
        roles: Sequence[Request] | Mapping[str, Request],
        *,
        budget: float = math.inf,
        name: str | None = None,
    ) -> None:
        _check_name(name)
        amount = number("budget", budget, least=0, finite=False)
        object.__setattr__(self, "roles", _parts(Together, roles, "role"))
        object.__setattr__(self, "budget", amount)
        object.__setattr__(self, "name", name)

    @property
    def parts(self) -> tuple[Request, ...]:
        """The roles."""
        return self.roles

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each role, or its number."""
        return _labels(self.roles, "role")

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, without cached facts."""
        return {"roles": self.roles, "budget": self.budget, "name": self.name}

    def replace(self, **changes: Any) -> Together:
        """Return a copy with other roles, budget or name."""
        fields: dict[str, Any] = self.__getstate__() | changes
        return Together(fields.pop("roles"), **fields)

    def __repr__(self) -> str:
        more = "" if self.budget == math.inf else f", budget={self.budget!r}"
        return f"Together({list(self.roles)!r}{more}{_name_of(self)})"


@dataclass(frozen=True)
class AnyOf(Compound):
    """Several options for one job: a moldable job, planned by its best option.

    Parameters
    ----------
    options : sequence of Request or Together, or mapping of name to those
        By the criterion of the search, the option with the best window is taken; of
        equal ones the first.
    name : str, optional
        Name of the job and of its windows.

    Raises
    ------
    ValueError, TypeError
        For options that are neither Request nor Together.

    Notes
    -----
    One search for each option; later ones are limited to windows that are at least as
    good as the best so far.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1], start=[0, 3], end=20, performance=1, price=1
    ... )
    >>> job = sk.AnyOf([sk.Request(1, 8), sk.Request(2, 4)])
    >>> sk.find_window(slots, job, "finish").option
    1
    """

    options: tuple[Request | Together, ...]
    name: str | None = None
    word: ClassVar[str] = "option"

    def __init__(
        self,
        options: Sequence[Request | Together] | Mapping[str, Request | Together],
        *,
        name: str | None = None,
    ) -> None:
        _check_name(name)
        object.__setattr__(self, "options", _parts(AnyOf, options, "option"))
        object.__setattr__(self, "name", name)

    @property
    def parts(self) -> tuple[Request | Together, ...]:
        """The options."""
        return self.options

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each option, or its number."""
        return _labels(self.options, "option")

    def replace(self, **changes: Any) -> AnyOf:
        """Return a copy with other options or another name."""
        fields: Any = {"options": self.options, "name": self.name} | changes
        return AnyOf(fields["options"], name=fields["name"])

    def __repr__(self) -> str:
        return f"AnyOf({list(self.options)!r}{_name_of(self)})"


@dataclass(frozen=True)
class Chain(Compound):
    """Stages that follow each other: each starts after the previous one has finished.

    Parameters
    ----------
    stages : sequence of Request, Together or AnyOf, or mapping of name to those
        In order of time.
    gap : duration, pair of durations, or list of those
        The time between the finish of a stage and the start of the next one. A number
        or a text such as ``"30min"`` is the least gap; a tuple ``(least, most)`` also
        limits it from above. A list has one entry for each joint. The default 0 means:
        any time afterwards; ``(0, 0)`` means: at once.
    name : str, optional
        Name of the job and of all its windows.

    Raises
    ------
    ValueError, TypeError
        For other stages, and gaps that are negative, in wrong order or in wrong number.

    Notes
    -----
    Found by criterion ``"finish"`` only: the exact earliest finish of the last stage.
    If a gap has an upper limit, a stage may have to start later than it could, also
    between starts of slots; `starts` gives the intervals. Such a stage must not have
    limits on sums.

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1], start=[0, 7], end=20, performance=1, price=1
    ... )
    >>> job = sk.Chain([sk.Request(1, 2), sk.Request(2, 4)], gap=(0, 0))
    >>> plan = sk.find_window(slots, job, "finish")
    >>> [(window.start, window.finish) for window in plan]
    [(5.0, 7.0), (7.0, 11.0)]
    """

    stages: tuple[Request | Together | AnyOf, ...]
    gaps: tuple[tuple[Any, Any], ...]
    name: str | None = None
    word: ClassVar[str] = "stage"

    def __init__(
        self,
        stages: Sequence[Request | Together | AnyOf]
        | Mapping[str, Request | Together | AnyOf],
        *,
        gap: Duration
        | tuple[Duration, Duration]
        | list[Duration | tuple[Duration, Duration]] = 0.0,
        name: str | None = None,
    ) -> None:
        _check_name(name)
        found = _parts(Chain, stages, "stage")
        joints = len(found) - 1
        given = gap if isinstance(gap, list) else [gap] * joints
        if len(given) != joints:
            raise ValueError(
                f"gap has {len(given)} entries for the {joints} joints of "
                f"{len(found)} stages; a tuple is one pair (least, most)"
            )
        object.__setattr__(self, "stages", found)
        object.__setattr__(self, "gaps", tuple(map(_gap, given)))
        object.__setattr__(self, "name", name)

    @property
    def parts(self) -> tuple[Request | Together | AnyOf, ...]:
        """The stages."""
        return self.stages

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of each stage, or its number."""
        return _labels(self.stages, "stage")

    def gaps_in(self, clock: Any) -> list[tuple[float, float]]:
        """Return the least and the largest gap of each joint as numbers of a clock."""
        return [
            (_length(least, clock), _length(most, clock)) for least, most in self.gaps
        ]

    def replace(self, **changes: Any) -> Chain:
        """Return a copy with other stages, gap or name."""
        fields: dict[str, Any] = {"stages": self.stages, "gap": list(self.gaps)}
        fields |= {"name": self.name} | changes
        return Chain(fields.pop("stages"), **fields)

    def __repr__(self) -> str:
        gaps = [
            least if most == math.inf else (least, most) for least, most in self.gaps
        ]
        shown: Any = gaps if len(set(map(repr, gaps))) > 1 else (gaps or [0.0])[0]
        more = "" if shown == 0.0 else f", gap={shown!r}"
        return f"Chain({list(self.stages)!r}{more}{_name_of(self)})"


Job: TypeAlias = Request | Together | AnyOf | Chain

_ALLOWED: dict[str, tuple[type[Any], ...]] = {
    "Together": (),
    "AnyOf": (Together,),
    "Chain": (Together, AnyOf),
}
_ALLOWED_NAMES = {
    kind: [allowed.__name__ for allowed in found] for kind, found in _ALLOWED.items()
}


def _name_of(job: Compound) -> str:
    return "" if job.name is None else f", name={job.name!r}"


def _gap(gap: Any) -> tuple[Any, Any]:
    """Check a gap; return the pair (least, most)."""
    least, most = gap if isinstance(gap, tuple) and len(gap) == 2 else (gap, math.inf)
    if isinstance(least, tuple):
        raise ValueError(f"a gap must be a pair (least, most), got {quote(gap)}")
    for end in (least, most):
        if is_number(end):
            number("gap", end, least=0, finite=end is least)
        else:
            duration_of(end, "gap")
    if is_number(least) and is_number(most) and least > most:
        raise ValueError(f"gap {quote(gap)}: the least gap exceeds the largest one")
    return tuple(float(end) if is_number(end) else end for end in (least, most))  # type: ignore[return-value]


def _length(gap: Any, clock: Any) -> float:
    if is_number(gap):
        return float(gap)
    if clock is None:
        raise ValueError(
            f"gap is {quote(gap)}, but these slots have no clock; give a number"
        )
    return float(clock.duration(gap, "gap"))


def check_job(job: Any, name: str = "request") -> None:
    """Raise TypeError for a value that is not a job."""
    if not isinstance(job, Request | Compound):
        raise TypeError(
            f"{name} must be a Request, AnyOf, Together or Chain, got "
            f"{type(job).__name__}"
        )


def requests_in(job: Job) -> Iterator[Request]:
    """Yield the requests of a job, in order."""
    if isinstance(job, Request):
        yield job
    else:
        for part in job.parts:
            yield from requests_in(part)
