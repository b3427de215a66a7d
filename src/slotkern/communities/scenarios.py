"""Scenarios of communities: isolated nodes, a central scheduler, or the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.community import PLACEMENTS
from slotkern.foundation.checks import integer, number, one_of
from slotkern.foundation.extras import extra

__all__ = ["SCENARIOS", "Centralized", "Community", "Independent", "resolve_scenario"]

#: Default lifetime of an offer (s) if messages, and thus revocations, may be lost.
DEFAULT_PROMISE_LIFE = 3600.0


@dataclass(frozen=True)
class Independent:
    """Each job runs on the node to which it is submitted (the paper's Ind)."""

    def options(self, nodes: int, seed: int) -> dict[str, Any]:
        """Return the keyword arguments of the kernel for this scenario."""
        return {"placement": "home"}


@dataclass(frozen=True)
class Centralized:
    """A central scheduler with full information uses BestFit (the paper's Cen).

    A job goes to the node, among those that can start it now, which then has the fewest
    free processors.

    Attributes
    ----------
    fallback : {"most-free", "least-load", "central-fcfs", "central-scan"}
        The rule if no node can start the job now; the paper does not define it. The job
        is queued at the suitable node with the most free processors, or with the least
        queued load; or it waits in a central queue, which is served first come first
        served, or from which every job that fits is started.
    host : int, optional
        The node that hosts the central scheduler, for the share of jobs that run there;
        by default drawn with the seed.
    decision : float
        Seconds that the scheduler needs to place a job, one job after another in the
        order of submission; the job waits until then. 0: no delay.
    """

    fallback: Literal["most-free", "least-load", "central-fcfs", "central-scan"] = (
        "most-free"
    )
    host: int | None = None
    decision: float = 0.0

    def __post_init__(self) -> None:
        """Validate the fields."""
        number("decision", self.decision, least=0)
        one_of(
            "fallback", self.fallback, [word for word in PLACEMENTS if word != "home"]
        )
        if self.host is not None:
            integer("host", self.host, least=0)

    def options(self, nodes: int, seed: int) -> dict[str, Any]:
        """Return the keyword arguments of the kernel for this scenario."""
        if self.host is not None:
            integer("host", self.host, most=nodes - 1)
        return {"placement": self.fallback, "decision": float(self.decision)}


@dataclass(frozen=True, eq=False)
class Community:
    """Nodes that negotiate by the community-aware scheduling algorithm (CASA).

    Attributes
    ----------
    neighbours : {"all"}, int, or a graph
        The nodes that a node asks for offers: all nodes (the paper's Dec-G); a number
        of nodes, drawn again for each job (6: Dec-P); or its neighbours in a graph,
        given as a networkx graph of node numbers, or as a mapping or sequence of each
        node's neighbours.
    omega : float
        Weight of the shadow queue when a requester compares offers (Definition 3).
    varpi : float
        Weight of a node's own mean queueing time: a node offers to take over a waiting
        job only if `varpi` times that mean is below the requester's (Algorithm 5).
    mu : float
        Minimum queueing time of a job to be moved, as a multiple of the mean
        (Definition 5). Equality suffices, as in Algorithm 4; the paper's text has
        "greater than".
    job_time : {"node", "job"}
        The run time of a job in an offer: its load divided by the power of the whole
        node, as printed (Algorithm 2); or its estimate divided by the speed.
    most_informed : int, optional
        Maximum number of jobs that a node tries to move at one time (section 3).
    cycle : float
        Seconds between two times at which a node processes its messages; 0: at once.
    window : float
        Seconds for which a requester collects offers; it should cover a cycle and two
        latencies.
    interval : float
        Seconds between two reschedulings of a node; inf: none.
    discovery, discovery_each : float
        Seconds to discover the neighbours: a constant, plus a time for each neighbour.
    latency : float
        Latency of a message to another node, in seconds.
    latency_law : {"constant", "exponential"}
        With exponential latencies messages may arrive out of order.
    loss : float
        The probability that a message is lost, below 1.
    resend : float
        Seconds after which an ASSIGN without a RECEIPT is sent again, if `loss` > 0.
    retry, retries : float, int
        A job without an offer is tried again every `retry` seconds, at most `retries`
        times. 0: such a job stays suspended, and counts as failed at the end.
    promise_life : float, optional
        Seconds after which an offer that was not revoked expires. By default offers do
        not expire if `loss` is 0, else after an hour.
    willing : array of bool, shape (jobs, nodes), or function, optional
        Administrative preferences (section 3): True if the node makes an offer for a
        job that it could run, new or to be moved. A function ``(now, job, node)``, with
        the row of the job in the given jobs, is compiled by numba; a ``numba.cfunc`` of
        ``int64(float64, int64, int64)`` is used directly. It is called without the GIL
        for each REQUEST or INFORM, and must depend on its arguments alone.

    References
    ----------
    Y. Huang, N. Bessis, P. Norrington, P. Kuonen and B. Hirsbrunner, "Exploring
    decentralized dynamic scheduling for grids and clouds using the community-aware
    scheduling algorithm", Future Generation Computer Systems, 2011.
    """

    neighbours: Any = "all"
    omega: float = 1.0
    varpi: float = 1.0
    mu: float = 1.0
    job_time: Literal["node", "job"] = "node"
    most_informed: int | None = None
    cycle: float = 60.0
    window: float = 60.0
    interval: float = 600.0
    discovery: float = 0.0
    discovery_each: float = 0.0
    latency: float = 0.1
    latency_law: Literal["constant", "exponential"] = "constant"
    loss: float = 0.0
    resend: float = 10.0
    retry: float = 600.0
    retries: int = 0
    promise_life: float | None = None
    willing: Any = None

    def __post_init__(self) -> None:
        """Validate the fields."""
        one_of("job_time", self.job_time, ("node", "job"))
        one_of("latency_law", self.latency_law, ("constant", "exponential"))
        for name in ("varpi", "mu", "cycle", "discovery", "discovery_each", "latency"):
            number(name, getattr(self, name), least=0)
        if number("omega", self.omega, least=0) > 1:
            raise ValueError(f"omega must be at most 1, got {self.omega}")
        for name in ("window", "resend", "retry"):
            number(name, getattr(self, name), above=0)
        number("interval", self.interval, above=0, finite=False)
        if number("loss", self.loss, least=0) >= 1:
            raise ValueError(f"loss must be below 1, got {self.loss}")
        integer("retries", self.retries, least=0, most=2**31)
        if self.most_informed is not None:
            integer("most_informed", self.most_informed, least=0, most=2**31)
        if self.promise_life is not None:
            number("promise_life", self.promise_life, above=0, finite=False)
        if isinstance(self.neighbours, str):
            one_of("neighbours", self.neighbours, ("all",))
        if not (self.willing is None or callable(self.willing)):
            table = np.asarray(self.willing)
            if table.dtype.kind != "b" or table.ndim != 2:
                raise TypeError(
                    "willing must be a function or an array of bool, shape (jobs, "
                    f"nodes), got {table.dtype}, shape {table.shape}"
                )

    def options(self, nodes: int, seed: int) -> dict[str, Any]:
        """Return the keyword arguments of the kernel for this scenario."""
        life = self.promise_life
        if life is None:
            life = DEFAULT_PROMISE_LIFE if self.loss > 0 else np.inf
        most = self.most_informed
        rules = {
            "omega": self.omega,
            "varpi": self.varpi,
            "mu": self.mu,
            "whole_node": self.job_time == "node",
            "most_informed": 2**32 - 1 if most is None else most,
            "promise_life": life,
        }
        settings = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in (*rules, *_TRANSLATED)
        }
        settings["latency_varies"] = self.latency_law == "exponential"
        settings["seed"] = seed
        return {**self._neighbour_options(nodes), "rules": rules, "settings": settings}

    def preferences(self, row: NDArray[np.int64], nodes: int) -> dict[str, Any]:
        """Return the keyword arguments of the kernel that define `willing`.

        `row` is the row of each sorted job in the given jobs.
        """
        if self.willing is None:
            return {}
        if callable(self.willing):
            return {"row": row, "function": _compile_preference(self.willing).address}
        table = np.asarray(self.willing)
        if table.shape != (len(row), nodes):
            raise ValueError(
                f"willing has shape {table.shape}, but there are {len(row)} jobs and "
                f"{nodes} nodes"
            )
        return {"row": row, "willing": np.ascontiguousarray(table).view(np.uint8)}

    def _neighbour_options(self, nodes: int) -> dict[str, Any]:
        """Return the number of drawn neighbours (0: all nodes), or the graph."""
        given = self.neighbours
        if isinstance(given, str):
            return {"drawn": 0}
        if hasattr(given, "adjacency"):
            given = {node: list(near) for node, near in given.adjacency()}
        if isinstance(given, Mapping):
            return _graph_arrays(given, nodes)
        if isinstance(given, Iterable):
            return _graph_arrays(dict(enumerate(given)), nodes)
        return {"drawn": integer("neighbours", given, least=1, most=2**31)}


#: Fields that the kernel receives in another form.
_TRANSLATED = ("neighbours", "job_time", "latency_law", "willing")


@lru_cache(maxsize=64)
def _compile_preference(function: Any) -> Any:
    """Return the function compiled for the kernel, with attribute ``address``."""
    if hasattr(function, "address"):
        return function
    with extra():
        import numba
        from numba.core.errors import NumbaError

    inner = function if hasattr(function, "py_func") else numba.njit(function)

    def answer(now: float, job: int, node: int) -> int:
        return 1 if inner(now, job, node) else 0

    try:
        return numba.cfunc("int64(float64, int64, int64)")(answer)
    except NumbaError as error:
        words = " ".join(str(error).split())
        raise ValueError(f"willing: numba cannot compile it: {words}") from None


def _graph_arrays(given: Mapping[Any, Iterable[Any]], nodes: int) -> dict[str, Any]:
    """Return the neighbours of each node in compressed rows: `first` and `to`."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for node, others in given.items():
        row = near[_node_index("a node", node, nodes)]
        for other in others:
            at = _node_index(f"a neighbour of node {node!r}", other, nodes)
            if at != node and at not in row:
                row.append(at)
    first: NDArray[np.uint64] = np.cumsum([0, *map(len, near)]).astype(np.uint64)
    to = np.array([other for row in near for other in sorted(row)], np.uint32)
    return {"first": first, "to": to}


def _node_index(role: str, value: Any, nodes: int) -> int:
    try:
        return integer("neighbours", value, least=0, most=nodes - 1)
    except (TypeError, ValueError):
        raise ValueError(
            f"neighbours: {role} is {value!r}, but the grid has nodes 0 to {nodes - 1}"
        ) from None


#: Scenarios by name: those of the paper.
SCENARIOS: dict[str, Independent | Centralized | Community] = {
    "ind": Independent(),
    "cen": Centralized(),
    "dec-g": Community(neighbours="all"),
    "dec-p": Community(neighbours=6),
}


def resolve_scenario(given: Any) -> tuple[str, Independent | Centralized | Community]:
    """Return the name and the scenario for a scenario or the name of one."""
    if isinstance(given, Independent | Centralized | Community):
        return type(given).__name__.lower(), given
    name = one_of("scenario", given, SCENARIOS)
    return name, SCENARIOS[name]
