"""Explanations: why a request has no window, and the smallest change that would help.

Every figure is the result of an exact search with one limit changed or lifted;
`Explanation` is the record of the figures, and `explain` runs the searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from slotkern._kernels.request import FIELDS, Request, suitable_rows
from slotkern._kernels.slots import filter_rows, prepare_snapshot, resolve_times
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.expressions.filters import columns_of_filter
from slotkern.expressions.limits import Limit
from slotkern.foundation.adapters import adapter
from slotkern.foundation.checks import hint_keywords, integer, visible
from slotkern.foundation.hostlists import abridge
from slotkern.machine.jobs import Compound
from slotkern.pool.host_pool import HostPool
from slotkern.search.capacity_facts import CapacityFacts, capacity_facts
from slotkern.search.group_facts import GroupFacts, group_facts
from slotkern.search.price_facts import PriceFacts, price_facts
from slotkern.search.relaxations import (
    LIFTED,
    RELAXATIONS,
    RelaxedSearches,
    SearchWork,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from slotkern.machine.clock import Clock
    from slotkern.machine.nodes import Machine
    from slotkern.search.blame import CompoundExplanation
    from slotkern.typing import Shape, Slots

__all__ = ["Explanation", "explain"]


#: The largest number of distinct values of a text column that are listed.
_MAX_VALUES = 12


_UNDECIDED = (
    "It is not decided whether a window fits: the search spent its work "
    "(find_window with a larger max_work, or slotkern find --max-work, may decide it)."
)


@dataclass(frozen=True)
class Explanation(HasTable):
    """The reasons why a request has no window, or the limits of the window it has.

    Every figure is the result of an exact search over the same slots. Each "smallest
    change" is sufficient and necessary: with it `find_window` finds a window; with a
    smaller one (for a limit on a sum: smaller by more than 1e-8 of it) it finds none.

    Attributes
    ----------
    fits : bool
        Whether a window exists.
    nodes_total, nodes_fast, nodes_proper : int
        Nodes with slots; those with enough performance; those with a slot that also
        passes the filter and the other limits on single slots.
    slots_total, slots_long : int
        All slots; those that pass all filters and can hold one part between earliest
        and deadline (square: a part as long as on the slot's own node).
    together : int
        The largest number of nodes that can start together, at any cost.
    cheapest : float or None
        The lowest cost of a window of all requested nodes without the budget, which is
        the smallest budget that fits. None if no budget helps.
    earliest_finish : float or None
        The earliest finish without the deadline, which is the smallest deadline that
        fits. None if no deadline helps.
    most_nodes : int
        The largest number of nodes that fits with nothing else changed; 0 if none.
    nearest_nodes : int
        The number of nodes nearest to the requested one that fits with nothing else
        changed; 0 if none. Under limits on sums fewer nodes may fit worse.
    earliest_start, shortest_runtime : float or None
        The earliest start without `latest`, and the shortest runtime without
        `max_runtime`: the smallest values of these that fit. None if the request has no
        such limit, or if changing it does not help.
    without : list of str
        The other limits (numbers but volume, budget and deadline; where, limits,
        within) that each prevent a window alone: without this limit the request fits.
        Empty if the request fits.
    sums : dict of int to float
        The limits that each prevent a window alone: the index in the request, and the
        feasible amount nearest to its own. Empty if the request fits.
    groups : int or None
        The least number of groups of the level `within` with which the request fits.
        None without ``within``, or if no number helps, or if the request fits.
    beyond : dict of int to float
        The limits that no window meets, even with an infinite budget and
        without the other limits: the index in the request, and the amount nearest to
        its own that some window reaches.
    words : dict of str to list of str
        If no slot passes the filter: the sorted values of the text columns that the
        filter names. Columns of more than 12 values are left out.
    request : Request
        The request, with times as numbers of the clock.
    shape : str
        The shape that was searched.
    clock : Clock or None
        The clock of the slots, if any; then times are printed as dates.
    asked : Request or None
        The request as it was given, with dates and durations.
    undecided : bool
        Whether the search for the request itself, under limits on sums, reached its
        work limit. Then `fits` is False, but a window may exist; `find_window` with a
        larger ``max_work`` may decide it.
    complete : bool
        Whether all searches were decided. If not, the reported changes are sufficient,
        but smaller changes, or changes that are not reported, may suffice too.
    prices : PriceFacts or None
        Under tariffs: when the cheapest and the earliest window start, and the tariff
        that makes them cheap or expensive.
    rules : GroupFacts or None
        Under group rules: how many nodes can start together, where and when.
    capacities : CapacityFacts or None
        The capacities and quotas of the pool that delay or prevent a window.
    """

    fits: bool
    nodes_total: int
    nodes_fast: int
    nodes_proper: int
    slots_total: int
    slots_long: int
    together: int
    cheapest: float | None
    earliest_finish: float | None
    earliest_start: float | None
    shortest_runtime: float | None
    most_nodes: int
    nearest_nodes: int
    without: list[str]
    sums: dict[int, float]
    beyond: dict[int, float]
    words: dict[str, list[str]]
    request: Request = field(repr=False)
    shape: str
    clock: Clock | None = field(default=None, repr=False)
    asked: Request | None = field(default=None, repr=False)
    undecided: bool = False
    complete: bool = True
    prices: PriceFacts | None = None
    groups: int | None = None
    rules: GroupFacts | None = None
    capacities: CapacityFacts | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers, ready for JSON, without the request."""
        found = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if name
            not in ("request", "clock", "asked", "prices", "rules", "capacities")
        }
        for facts in (self.prices, self.rules):
            found |= facts._asdict() if facts is not None else {}
        if self.capacities is not None:
            found["capacities"] = [each._asdict() for each in self.capacities.blamed]
        return found

    def changes(self) -> dict[str, float]:
        """Return the smallest change of each limit, or of the nodes, that makes it fit.

        Each change is sufficient by itself. Empty if the request fits.
        """
        if self.fits:
            return {}
        found = {each.name: getattr(self, each.figure) for each in RELAXATIONS}
        changes = {name: x for name, x in found.items() if x is not None}
        changes |= {f"limits[{k}]": amount for k, amount in self.sums.items()}
        if self.groups is not None:
            changes["within"] = self.groups
        if self.nearest_nodes:
            changes["nodes"] = self.nearest_nodes
        return changes

    def _as_table(self) -> Table:
        """Return one row per limit whose change helps; the notes are the text."""
        asked = self.asked or self.request
        helps = {
            name: self._format_change(name, v) for name, v in self.changes().items()
        }
        helps |= dict.fromkeys(self.without, "none")
        columns = {
            "limit": np.array([*helps], np.str_),
            "asked": np.array(
                [self._format_given(asked, name) for name in helps], np.str_
            ),
            "fits_with": np.array([*helps.values()], np.str_),
        }
        heading, *notes = str(self).splitlines()
        return Table(heading, columns if helps else {}, len(helps), notes=notes)

    def __str__(self) -> str:
        if not self.slots_total:
            return "No window fits: there are no slots."
        asked = self.request
        lines = [
            self._describe_nodes(),
            *(
                f"no slot passes the filter: {visible(name)} is one of "
                + visible(", ".join(words))
                for name, words in self.words.items()
            ),
            f"{self.slots_long} of {self.slots_total} slots can hold a part of "
            + self._describe_length(),
            "at most "
            f"{_pluralize(self.together, ' such node is', ' such nodes are')} ever free"
            f" together for that long{self._time_clause()}; "
            f"{'only ' if asked.nodes < self.together else ''}"
            f"{_pluralize(asked.nodes, ' is', ' are')} asked for",
        ]
        if self.rules is not None:
            rules = " and ".join(rule.text for rule in asked.rules)
            lines.append(self.rules.line(asked.within, rules, self.clock))
        if self.cheapest is not None:
            lines.append(self._describe_cheapest(self.cheapest))
        if self.prices is not None:
            lines += self.prices.lines(self.clock, asked.budget)
        if self.capacities is not None:
            lines += self.capacities.lines(self.clock)
        if self.fits:
            return "\n".join(["A window fits.", *lines])
        lines += [
            f"no window keeps {_format_given_limit(limit := asked.limits[k])}, even "
            "with an endless budget and without other limits: it comes to "
            f"{_format_exact(amount)} at {'most' if limit.side == '>=' else 'least'}"
            for k, amount in self.beyond.items()
        ]
        lines.append(self._describe_remedies())
        if not self.complete:
            lines.append("some searches spent their work: smaller changes may help too")
        heading = _UNDECIDED if self.undecided else "No window fits."
        return "\n".join([heading, *lines])

    def _describe_cheapest(self, cost: float) -> str:
        """Compare the lowest cost with the budget, in as many digits as differ."""
        budget = self.request.budget
        text, of = f"{cost:.6g}", f"{budget:g}"
        if float(text) <= float(of) and budget < cost:
            text, of = _format_exact(cost), _format_exact(budget)
        limit = "" if math.isinf(budget) else f"; the budget is {of}"
        return f"the cheapest {self.shape} window costs {text}{limit}"

    def _describe_remedies(self) -> str:
        """List the changes that each make the request fit."""
        remedies = self._remedies()
        changes = self.changes()
        either = [
            "with " + remedies[name].format(self._format_change(name, value))
            for name, value in changes.items()
        ]
        either += [f"without {LIFTED[n]}" for n in self.without if n not in changes]
        if self.capacities is not None:
            either += self.capacities.remedies()
        if either:
            return "it fits " + ", or ".join(either)
        if self.complete:
            return "no change of one limit alone makes it fit"
        return "no change of one limit alone is known to make it fit"

    def _remedies(self) -> dict[str, str]:
        """Return a text for the change of each limit, with a place for the value."""
        remedies = {each.name: each.remedy for each in RELAXATIONS}
        one = self.nearest_nodes == 1
        remedies["nodes"] = "{} node instead" if one else "{} nodes instead"
        for k in self.sums:
            remedies[f"limits[{k}]"] = _format_limit(self.request.limits[k], "{}")
        remedies["within"] = f"distinct({self.request.within}) <= {{}}"
        return remedies

    def _describe_nodes(self) -> str:
        """Count the fast nodes, and those that pass the filter and limits on slots."""
        total, fast, proper = self.nodes_total, self.nodes_fast, self.nodes_proper
        if proper == total:
            return f"all {total} nodes qualify" if total > 1 else "the node qualifies"
        steps = [_pluralize(total, " node has", " nodes have") + " slots"]
        if fast < total:
            least = f"performance >= {self.request.min_performance:g}"
            steps.append(_pluralize(fast, " of them has ", " of them have ") + least)
        if proper < fast:
            passes = _pluralize(proper, " of them passes", " of them pass")
            steps.append(f"{passes} the filter and the limits on slots")
        return ", ".join(steps)

    def _format_given(self, asked: Request, name: str) -> str:
        if name.startswith("limits["):
            limit = asked.limits[int(name[len("limits[") : -1])]
            return _format_given_limit(limit)
        if name == "limits":
            return " and ".join(map(_format_given_limit, asked.limits))
        value = getattr(asked, name)
        return _format_exact(value) if isinstance(value, float) else str(value)

    def _describe_length(self) -> str:
        """Return the size of a part in words: the walltime as given, or the volume."""
        if self.asked is None or self.asked.walltime is None:
            return f"volume {self.request.volume:g}"
        return f"walltime {self.asked.walltime}"

    def _time_clause(self) -> str:
        """Return a clause if the request limits its time."""
        asked = self.request
        limits = -asked.earliest, asked.latest, asked.deadline, asked.max_runtime
        return "" if all(map(math.isinf, limits)) else " in the time allowed"

    def _format_change(self, name: str, value: float) -> str:
        """Format a changed limit; the printed value is sufficient if typed in."""
        if name == "budget":
            return _format_money(value)
        kind = FIELDS[name].kind if name in FIELDS else "number"
        if self.clock is None or kind == "number":
            return _format_exact(value)
        if kind == "duration":
            return str(self.clock.least_timedelta(value))
        return str(self.clock.least_datetime(value))


def _format_money(value: float) -> str:
    """Return the least sufficient amount in whole cents, or with six digits if small.

    An amount is met up to a relative 2^-50, which is the rounding of decimals.
    """
    size = math.floor(math.log10(value)) if value > 0 else 0
    if not math.isfinite(value) or size > 13:  # a float64 may have no cents
        return _format_exact(value)
    unit = Decimal(1).scaleb(-2 if size >= 0 else size - 5)
    near = Decimal(value).quantize(unit)
    while float(near) * (1 + 2.0**-50) < value:
        near += unit
    text = f"{near:f}"
    whole, _, digits = text.partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(2, '0')}" if digits.strip("0") else whole


def _format_exact(value: float) -> str:
    """Format a number with all its digits; integers without a point."""
    return repr(value).removesuffix(".0")


def _pluralize(count: int, one: str, many: str) -> str:
    return f"{count}{one if count == 1 else many}"


def _format_given_limit(limit: Limit) -> str:
    return _format_limit(limit, _format_exact(limit.amount))


def _format_limit(limit: Limit, amount: str) -> str:
    """Format a limit with another amount."""
    of = limit.of if isinstance(limit.of, str) else getattr(limit.of, "name", "array")
    return f"{limit.kind}({of}) {limit.side} {amount}"


def _text_values(
    where: str, table: NDArray[np.void], machine: Machine | None
) -> dict[str, list[str]]:
    """Return the values of the text columns that a filter names, if there are few."""
    found = {}
    for name in sorted(columns_of_filter(where)):
        if name not in (table.dtype.names or ()):  # a node name of the machine
            assert machine is not None
            nodes = np.unique(table["node"])
            names = machine.names[nodes[nodes < len(machine)]].tolist()
            found[name] = [abridge(names)]
        elif table.dtype[name].kind in "UO":
            words = sorted(set(table[name].tolist()))
            if len(words) <= _MAX_VALUES:
                found[name] = list(map(repr, words))
    return found


def _counts(
    table: NDArray[np.void], proper: NDArray[np.bool_] | None, request: Request
) -> dict[str, Any]:
    """Count the nodes and slots that pass the filters of the request."""
    fast = table["performance"] >= request.min_performance
    at_any_time = request.replace(earliest=-math.inf, latest=math.inf)
    good = suitable_rows(at_any_time, table)
    if proper is not None:
        good &= proper
    starts = np.maximum(table["start"], request.earliest)
    ends = np.minimum(table["end"], min(request.deadline, np.finfo(np.float64).max))
    with np.errstate(over="ignore"):  # a length may be infinite
        long = good & (starts + request.length(table["performance"]) <= ends)
    return {
        "nodes_total": len(np.unique(table["node"])),
        "nodes_fast": len(np.unique(table["node"][fast])),
        "nodes_proper": len(np.unique(table["node"][good])),
        "slots_total": len(table),
        "slots_long": int(np.count_nonzero(long)),
    }


def _amounts(
    amount: Callable[[int], float | None], limits: Iterable[int]
) -> dict[int, float]:
    return {k: x for k in limits if (x := amount(k)) is not None}


@overload
def explain(
    slots: Slots,
    request: Request,
    *,
    shape: Shape = "square",
    max_work: int | None = None,
) -> Explanation: ...
@overload
def explain(
    slots: Slots, request: Compound, *, shape: Shape = "square"
) -> CompoundExplanation: ...
@hint_keywords
def explain(
    slots: Slots,
    request: Request | Compound,
    *,
    shape: Shape = "square",
    max_work: int | None = None,
) -> Explanation | CompoundExplanation:
    """Explain why no window fits a request, or which limits bind the one that does.

    Parameters
    ----------
    slots : structured array or SlotPool
        As for `find_window`.
    request : Request, AnyOf, Together or Chain
    shape : {"square", "ragged"}
    max_work : int, optional
        Units of work of all searches of the explanation together, as counted by
        `find_window`; by default each search has a limit of its own. Searches that it
        stops count as undecided. For a `Request` on slots or a `SlotPool`.

    Returns
    -------
    Explanation
        The figures and the smallest changes that help; ``str()`` puts all in words. For
        a job of several parts a `CompoundExplanation`: one for each part, and the part
        or gap that is to blame.

    Raises
    ------
    ValueError, TypeError
        As `find_window`.

    Notes
    -----
    About 2 log2(N) searches for N nodes, because feasibility is monotone in the number
    of nodes, so bisection applies. With limits on sums up to N more searches, and some
    60 for each limit: its amount is within 1e-8 of the smallest change, and equal to it
    if all terms are multiples of one number that is more than 1e-8 of their sum.
    Preparing m slots takes O(m log m).

    Examples
    --------
    >>> import slotkern as sk
    >>> slots = sk.make_slots(
    ...     node=[0, 1], start=[0, 4], end=[9, 9], performance=1, price=2
    ... )
    >>> why = sk.explain(slots, sk.Request(2, 4, budget=10))
    >>> why.fits, why.cheapest, why.most_nodes
    (False, 16.0, 1)
    """
    if max_work is not None:
        integer("max_work", max_work, 0)
        if isinstance(request, Compound) or isinstance(slots, HostPool):
            raise ValueError(
                "max_work limits explanations of a Request on slots or a SlotPool; "
                "omit it for jobs of several parts and for a HostPool"
            )
    if isinstance(request, Compound):
        from slotkern.search.blame import explain_compound

        return explain_compound(slots, request, shape, explain)
    if not isinstance(request, Request):
        raise TypeError(f"request must be a Request, got {type(request).__name__}")
    if isinstance(slots, HostPool):
        found: Explanation = adapter("explain_share")(slots, request, shape)
        return found
    resolved = resolve_times(slots, request, None, True)
    return explain_slots(slots, resolved, shape, request, slots, max_work)


def explain_slots(
    slots: Slots,
    request: Request,
    shape: Shape,
    asked: Request,
    given: Any,
    max_work: int | None = None,
) -> Explanation:
    """Explain a request whose times are numbers; `given` has the clock and machine."""
    capacities = getattr(slots, "_capacities", None)
    table, proper = filter_rows(slots, request.where)
    # A raw array is prepared once; arrays in the request still match it row by row.
    prepared: Any = slots if capacities is not None else prepare_snapshot(slots)
    work = SearchWork(max_work)
    searches = RelaxedSearches(prepared, request, shape, work)
    plain = searches  # without capacities
    if capacities is not None:
        uncounted = request.replace(uses=None, account=None)
        plain = RelaxedSearches(prepare_snapshot(slots), uncounted, shape, work)
    window = searches.find("first")
    undecided = searches.undecided > 0
    indices = range(len(request.limits) if window is None else 0)
    clock, machine = getattr(given, "clock", None), getattr(given, "machine", None)
    counts = _counts(table, proper, request)
    most, nearest = searches.feasible_nodes(counts["nodes_proper"])
    figures: dict[str, Any] = {r.figure: searches.least(r) for r in RELAXATIONS}
    found = Explanation(
        fits=window is not None,
        **counts,
        **figures,
        together=plain.together(counts["nodes_proper"]),
        most_nodes=most,
        nearest_nodes=nearest,
        without=searches.liftable() if window is None else [],
        sums=_amounts(searches.nearest_feasible, indices),
        beyond=_amounts(searches.nearest_reachable, indices),
        words=(
            _text_values(request.where, table, machine)
            if isinstance(request.where, str) and len(table) and not np.any(proper)
            else {}
        ),
        request=request,
        shape=shape,
        clock=clock,
        asked=asked,
        undecided=undecided,
        prices=price_facts(searches.pool, request.earliest, searches.find),
        groups=searches.nearest_groups() if window is None else None,
        rules=group_facts(plain, counts["nodes_proper"]),
        capacities=(
            capacity_facts(slots, request, searches.find("start"), shape, work)
            if capacities is not None
            else None
        ),
    )
    decided = searches.undecided == 0 == plain.undecided
    return found if decided else replace(found, complete=False)
