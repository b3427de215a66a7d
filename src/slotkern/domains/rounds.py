"""A search over domains in other processes, in rounds of questions.

Input: the agents of the domains, and a request. Output: the window that a search of the
joined pool returns.

Time is divided into cells. In the first round each domain returns bounds for each cell
(candidates.py): how many parts can run, the n lowest costs and the n shortest lengths.
Together they give a lower bound on the value of any window that starts in the cell.
Cells are then visited by this bound: in a round each domain returns its candidates for
two cells, and the kernel searches among the candidates of all domains for a start in
the cell. A cell with too many candidates is divided instead. The search ends when no
other cell can contain a better window.

*Why it is exact.* The candidates of all domains contain the best window that starts in
the cell. A cell is not visited only if its bound excludes a window, or a better one:
bounds compare (value, start), the first two numbers of the tie rule, and windows of
different cells have different starts. Bounds use the arithmetic of the kernel, and sums
are rounded once, so a bound is never above the value that it bounds.

The criterion "first" is refused. Its window consists of the slots that happen to come
first at the earliest start and not of the best, so no slot before it can be left out.
So are limits on sums and rules on groups other than domains, because a slot that
replaces another may be in another group or have another value. Custom criteria, value
arrays and filters by arrays need all slots.

*Cost.* Bytes: cells * n for each domain for the bounds, and the candidates. Rounds: one
for the bounds, and usually one or two for candidates.
"""

from __future__ import annotations

import heapq
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.slots import SLOT
from slotkern._kernels.windows import Window
from slotkern.domains.agent import Candidates, Facts
from slotkern.domains.candidates import Cell, Outline
from slotkern.domains.joined import LEVEL
from slotkern.foundation.checks import one_of, quote
from slotkern.machine.nodes import Machine, quoted_names

__all__ = ["CRITERIA", "Traffic", "Transport", "ask_all", "search"]

#: The criteria of searches over remote domains.
CRITERIA = ("start", "finish", "runtime", "cost")
#: Cells of the first round.
_CELLS = 32
#: A cell is divided if a domain has more candidates than a * n + b.
_MOST = 8, 64
#: Cells whose candidates are asked for in one round.
_WIDTH = 2

#: Sends a question to an agent; the result returns its answer when it is called.
Transport = Callable[[bytes], Callable[[], bytes]]


class Traffic:
    """Counts of what was moved between a metascheduler and its domains.

    Attributes
    ----------
    rounds : int
        Groups of questions that were sent at the same time.
    questions : int
    sent, received : int
        Bytes of all questions, and of all answers.
    """

    def __init__(self) -> None:
        self.rounds = self.questions = self.sent = self.received = 0

    def __repr__(self) -> str:
        return (
            f"Traffic(rounds={self.rounds}, questions={self.questions}, "
            f"sent={self.sent}, received={self.received})"
        )


def ask_all(
    transports: Mapping[str, Transport],
    traffic: Traffic,
    name: str,
    *given: Any,
) -> dict[str, Any]:
    """Ask all domains the same question at the same time; return their answers."""
    question = pickle.dumps((name, given), pickle.HIGHEST_PROTOCOL)
    traffic.rounds += 1
    waiting = {domain: send(question) for domain, send in transports.items()}
    found = {}
    for domain, wait in waiting.items():
        answer = wait()
        traffic.questions += 1
        traffic.sent += len(question)
        traffic.received += len(answer)
        fine, value = pickle.loads(answer)
        if not fine:
            error, notes = value
            for note in [*notes, f"in the domain {domain!r}"]:
                error.add_note(note)
            raise error
        found[domain] = value
    return found


def check_request(request: Any, criterion: Any, shape: str) -> None:
    """Raise an error for a search whose answer the candidates may not contain."""
    if not isinstance(request, Request):
        raise TypeError(
            f"searches over remote domains take a Request, got {quote(request)}"
        )
    if not isinstance(criterion, str):
        raise TypeError(
            f"criteria over remote domains are {', '.join(CRITERIA)}, got "
            f"{quote(criterion)}"
        )
    if criterion == "first":
        raise ValueError(
            "the criterion 'first' is not possible over remote domains, because any "
            "slot may be in its window: use 'start'"
        )
    one_of("criterion", criterion, CRITERIA)
    one_of("shape", shape, ("square", "ragged"))
    if request.where is not None and not isinstance(request.where, str):
        raise TypeError("where must be an expression over remote domains, got an array")
    for limit in request.limits:
        if limit.kind == "sum" or limit.of != LEVEL:
            raise ValueError(
                f"the limit {limit.text or quote(limit)} is not possible over remote "
                f"domains, because it excludes no slots by itself: only rules on the "
                f"level {LEVEL!r} are"
            )
    if request.within not in (None, LEVEL):
        raise ValueError(
            f"within={request.within!r} is not possible over remote domains: only "
            f"{LEVEL!r} is"
        )
    if request.special is not None and {*request.special} - {"within"}:
        names = ", ".join(sorted({*request.special} - {"within"}))
        raise ValueError(f"{names}: not possible over remote domains")


def first_cells(request: Request, facts: Mapping[str, Facts]) -> list[Cell]:
    """Divide the possible starts into cells by the starts of slots."""
    low, high = request.earliest, request.latest
    starts = np.sort(np.concatenate([each.starts for each in facts.values()]))
    starts = starts[(starts > low) & (starts <= high)]
    edges = np.unique(starts[:: max(1, len(starts) // _CELLS)]).tolist()
    firsts = [low, *edges]
    lasts = [*(math.nextafter(edge, -math.inf) for edge in edges), high]
    return [Cell(a, b) for a, b in zip(firsts, lasts, strict=True)]


class _Rank(NamedTuple):
    """A lower bound of (value, start), or those of a window."""

    value: float
    start: float


def search(
    transports: Mapping[str, Transport],
    facts: Mapping[str, Facts],
    traffic: Traffic,
    request: Request,
    criterion: str,
    shape: str,
) -> Window | None:
    """Return the best window over all domains; see the module."""
    most = _MOST[0] * request.nodes + _MOST[1]
    costs = criterion == "cost" or request.budget < math.inf
    speed = criterion in ("finish", "runtime")
    lengths = speed or (costs and shape == "square")
    queue: list[tuple[_Rank, int, Cell, float]] = []
    number = count()
    best: Window | None = None

    def add(cells: Sequence[Cell]) -> None:
        what = costs, lengths
        found = ask_all(
            transports, traffic, "outlines", request, shape, [*map(tuple, cells)], what
        )
        for k, cell in enumerate(cells):
            outlines = [found[name][k] for name in transports]
            rank = _bound(request, criterion, shape, outlines)
            if rank is not None:
                slowest = min(each.slowest for each in outlines)
                longest = float(request.length(slowest))
                longest = min(longest, request.max_runtime)
                heapq.heappush(queue, (rank, next(number), cell, longest))

    def is_open() -> bool:
        return bool(queue) and (best is None or queue[0][0] <= _rank(best))

    add(first_cells(request, facts))
    while is_open():
        chosen: list[tuple[_Rank, int, Cell, float]] = []
        while is_open() and len(chosen) < _WIDTH:
            chosen.append(heapq.heappop(queue))
        divided: list[Cell] = []
        what = [(tuple(cell), longest) for _, _, cell, longest in chosen]
        answers = ask_all(
            transports, traffic, "candidates", request, shape, what, speed, most
        )
        for k, (_, _, cell, _) in enumerate(chosen):
            found = {name: each[k] for name, each in answers.items()}
            edges = [each.divide for each in found.values() if each.divide is not None]
            if edges:
                middle = sorted(edges)[len(edges) // 2]
                divided.append(Cell(cell.first, math.nextafter(middle, -math.inf)))
                divided.append(Cell(middle, cell.last))
                continue
            window = _best_in(found, facts, request, cell, criterion, shape)
            if window is not None and (best is None or _rank(window) < _rank(best)):
                best = window
        if divided:
            add(divided)
    return best


def _rank(window: Window) -> _Rank:
    return _Rank(window.value, window.start)


def _bound(
    request: Request, criterion: str, shape: str, outlines: Sequence[Outline]
) -> _Rank | None:
    """Return a lower bound on windows that start in a cell; None if there is none."""
    n = request.nodes
    counts = [each.running for each in outlines]
    within = request.within == LEVEL
    if (max(counts) if within else sum(counts)) < n:
        return None
    first = min(each.first for each in outlines)
    lengths = np.sort(np.concatenate([each.lengths for each in outlines]))[:n]
    keys = np.sort(np.concatenate([each.keys for each in outlines]))[:n]
    cost = math.fsum(keys.tolist())
    if shape == "square" and len(keys):
        cost *= float(lengths[-1])
    if len(keys) and cost > request.budget * (1 + 1e-12):
        return None
    if criterion == "start":
        return _Rank(first, first)
    if criterion == "cost":
        return _Rank(cost, first)
    runtime = float(lengths[-1])
    return _Rank(runtime if criterion == "runtime" else first + runtime, first)


def _best_in(
    found: Mapping[str, Candidates],
    facts: Mapping[str, Facts],
    request: Request,
    cell: Cell,
    criterion: str,
    shape: str,
) -> Window | None:
    """Search among the candidates of all domains for a start in the cell."""
    names: list[str] = []
    tables: list[NDArray[np.void]] = []
    width = max(map(len, found))
    dtype = np.dtype(
        [*((field, SLOT[field]) for field in SLOT.names or ()), (LEVEL, f"U{width}")],
        align=True,
    )
    for domain, each in found.items():
        ids, at = np.unique(each.slots["node"], return_index=True)
        table = np.empty(len(each.slots), dtype)
        for field in SLOT.names or ():
            table[field] = each.slots[field]
        table["node"] = len(names) + np.searchsorted(ids, each.slots["node"])
        table[LEVEL] = domain
        names += [each.names[k] for k in at.tolist()]
        tables.append(table)
    slots = np.concatenate(tables)
    if len(names) < request.nodes:
        return None
    slots = slots[np.lexsort((slots["node"], slots["start"]))]
    machine = Machine({"name": quoted_names(np.array(names))})
    clock = next(iter(facts.values())).clock
    pool = SlotPool(slots, clock=clock, machine=machine)
    given = request.replace(
        earliest=max(cell.first, request.earliest),
        latest=min(cell.last, request.latest),
        where=None,
    )
    options: dict[str, Any] = {"criterion": criterion, "shape": shape}
    window: Window | None = pool.find(given, **options)
    return window
