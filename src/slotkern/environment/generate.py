"""Random environments: nodes, their local tasks, and the free slots between them.

All studies of the papers use one model (Toporkov et al., AEP section 3.1, square
windows section 4.1). A node has a performance, a price near the market price of that
performance, and local tasks that occupy a hypergeometrically distributed share of the
scheduling interval. The slots are the free time between the tasks.

All nodes are computed at once with numpy. Each cycle draws from its own random stream,
``PCG64(SeedSequence(seed, spawn_key=(cycle,)))``, so cycle k does not depend on other
cycles or on the process that computes it. Results are reproducible on all machines,
because they use only operations that IEEE 754 rounds correctly; powers are computed in
decimals and rounded correctly, because pow() differs by an ulp between machines. (About
once in 3,700 draws, the normal deviates of numpy use log and exp, which may change the
last bit of a price but never a time.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.display import HasPlot
from slotkern.display.table import Table
from slotkern.environment.laws import Load, Price, Uniform, law_of
from slotkern.foundation.checks import hint_keywords, integer, one_of
from slotkern.slots import SLOT

__all__ = ["NODE", "PRESETS", "TASK", "Environment", "generate_environment"]

TASK = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)
SLOT_NAMES = tuple(SLOT.fields or ())
#: The most local tasks; each needs about 200 bytes during placement.
_MAX_TASKS = 10**7
_NODE_FIELDS = [("node", "i4"), ("performance", "f8"), ("price", "f8")]
NODE = np.dtype(_NODE_FIELDS, align=True)


@dataclass(frozen=True, repr=False)
class Environment(HasPlot):
    """A random environment; all functions that take slots accept it.

    Attributes
    ----------
    nodes : structured array, shape (nodes,)
        The fields node (int32, from 0), performance, price, and the extra columns
        (float64).
    tasks : structured array
        The fields node, start, end of all local tasks, sorted by (node, start).
    slots : structured array
        The free slots: the fields of `SLOT` and the extra columns, sorted by
        (start, node). Slots and tasks partition [0, horizon) of each node.
    horizon : float
        The end of the scheduling interval.
    """

    nodes: NDArray[Any]
    tasks: NDArray[Any]
    slots: NDArray[Any]
    horizon: float

    def _as_table(self) -> Table:
        """Return the free slots as a table."""
        return Table.from_array(repr(self), self.slots)

    def __repr__(self) -> str:
        return (
            f"Environment({len(self.slots)} slots of {len(self.nodes)} nodes, "
            f"{len(self.tasks)} tasks, horizon={self.horizon:g})"
        )


_INTEGER_PERFORMANCE = Uniform(2, 10, integer=True)
_AEP: dict[str, Any] = {
    "nodes": 100,
    "interval": 600,
    "load": Load(0.1, 0.5),
    "task_length": (10, 105),
    "whole_tasks": False,
    "performance": _INTEGER_PERFORMANCE,
    "price": Price(1.10),
    "extra": {},
}
_SQUARE: dict[str, Any] = {
    "nodes": 100,
    "interval": 1200,
    "load": Load(0.0, 0.3),
    "task_length": (10, 217),
    "whole_tasks": True,
    "performance": _INTEGER_PERFORMANCE,
    "price": Price(0.115),
    "extra": {"q": Uniform(0, 10)},
}

#: The environments of the papers by name. Those named ``-natural`` replace the price
#: distribution that fits the printed figures best by one with the same mean and a
#: natural job volume.
PRESETS: dict[str, dict[str, Any]] = {
    "aep": _AEP,
    "aep-natural": _AEP | {"price": Price(1.05, 1.05)},
    "square": _SQUARE,
    "square-natural": _SQUARE | {"price": Price(0.1035, 1.05)},
    "placement": _SQUARE,
    "placement-natural": _SQUARE | {"price": Price(0.1035, 1.05)},
    "vo": _AEP | {"nodes": 24, "load": Load(0.0, 0.3), "price": Price(1.0, 1.05)},
}


@hint_keywords
def generate_environment(
    preset: str = "aep",
    *,
    nodes: int | None = None,
    interval: int | None = None,
    seed: int = 0,
    cycle: int = 0,
    load: Load | tuple[float, float] | Mapping[str, Any] | None = None,
    task_length: tuple[int, int] | None = None,
    whole_tasks: bool | None = None,
    performance: Uniform | Mapping[str, Any] | None = None,
    price: Price | Mapping[str, Any] | None = None,
    extra: Mapping[str, Uniform | Mapping[str, Any]] | None = None,
) -> Environment:
    """Generate the random environment of number `cycle` for a seed.

    Parameters left out are those of the preset. Times do not depend on the
    distributions of performance, price and extra columns, and performances do not
    depend on prices.

    Parameters
    ----------
    preset : str
        One of `PRESETS`: "aep" (paper 000), "square" (001), "placement" (003), "vo"
        (002); "aep-natural", "square-natural", "placement-natural".
    nodes : int
        The number of nodes.
    interval : int
        The length of the scheduling interval, in whole time units.
    seed, cycle : int
        Integers >= 0. Each cycle has an independent random stream.
    load : (low, high) or Load
        The share of the interval that local tasks occupy on a node.
    task_length : (shortest, longest)
        The uniform integer lengths of local tasks. Tasks are drawn until the busy time
        of the node is reached; the last one is cut to the remaining time.
    whole_tasks : bool
        If True, the cut task keeps at least the shortest length.
    performance : Uniform
        The performance of each node, in units of work per time unit.
    price : Price
        The price of each node, in money per time unit.
    extra : mapping of name to Uniform
        Further columns with one value per node, in nodes and slots. Each distribution
        may also be a mapping with its fields as keys.

    Returns
    -------
    Environment
        Nodes, local tasks and free slots.

    Raises
    ------
    ValueError, TypeError
        For an invalid value or type; the message contains the parameter.

    Notes
    -----
    The papers do not specify the placement of tasks. Here, with free time F and k
    tasks, k integers are drawn uniformly from 0..F with repetition; sorted, they are
    the free time before each task. Gaps of length zero are skipped.
    O(nodes * tasks per node).

    Examples
    --------
    >>> import slotkern as sk
    >>> environment = sk.generate_environment("aep", nodes=3, seed=1)
    >>> environment.horizon
    600.0
    >>> bool((environment.slots["end"] > environment.slots["start"]).all())
    True
    """
    one_of("preset", preset, PRESETS)
    own = {
        "nodes": nodes,
        "interval": interval,
        "load": load,
        "task_length": task_length,
        "whole_tasks": whole_tasks,
        "performance": performance,
        "price": price,
        "extra": extra,
    }
    own = {name: value for name, value in own.items() if value is not None}
    setting = PRESETS[preset] | own

    n = integer("nodes", setting["nodes"], least=1)
    length = integer("interval", setting["interval"], least=1)
    shortest, longest = _lengths(setting["task_length"])
    whole = setting["whole_tasks"]
    if not isinstance(whole, bool):
        raise TypeError(f"whole_tasks must be true or false, not {whole!r}")
    load_law = law_of(Load, "load", setting["load"])
    load_law.check("load")
    performance_law = law_of(Uniform, "performance", setting["performance"])
    performance_law.check("performance", positive=True)
    price_law = law_of(Price, "price", setting["price"])
    price_law.check("price")
    columns = _columns(setting["extra"])
    _check_size(n, length, load_law, (shortest, longest))

    spawned = np.random.SeedSequence(
        integer("seed", seed, least=0),
        spawn_key=(integer("cycle", cycle, least=0),),
    )
    rng = np.random.Generator(np.random.PCG64(spawned))
    busy = load_law.draw(rng, n, length)
    shape = _draw_lengths(rng, busy, shortest, longest, length if whole else 0)
    task_node, task_start, task_end, slot_node, slot_start, slot_end = _place(
        rng, shape, length
    )

    node_dtype = np.dtype(
        [*_NODE_FIELDS, *((name, "f8") for name in columns)], align=True
    )
    node = np.zeros(n, node_dtype)
    node["node"] = np.arange(n)
    node["performance"] = performance_law.draw(rng, n)
    node["price"] = price_law.draw(rng, node["performance"])
    for name, law in columns.items():
        node[name] = law.draw(rng, n)

    tasks = np.zeros(task_node.size, TASK)
    tasks["node"], tasks["start"], tasks["end"] = task_node, task_start, task_end
    slots = np.zeros(slot_node.size, _slot_dtype(tuple(columns)))
    slots["node"], slots["start"], slots["end"] = slot_node, slot_start, slot_end
    for name in ("performance", "price", *columns):
        slots[name] = node[name][slot_node]
    return Environment(node, tasks, slots, float(length))


def _draw_lengths(
    rng: np.random.Generator,
    busy: NDArray[np.int64],
    shortest: int,
    longest: int,
    whole_within: int,
) -> NDArray[np.int64]:
    """Draw the task lengths of each node, one row per node, padded with zeros.

    The sum of a row is the `busy` time of the node; the last column is zero. With
    `whole_within` > 0, the last task of a node is not cut below `shortest`, provided
    that the tasks fit into `whole_within`.
    """
    rows = np.arange(busy.size)
    width = int(busy.max()) * 2 // (shortest + longest) + 2
    size = (busy.size, width)
    lengths = rng.integers(shortest, longest, size, endpoint=True)
    total = lengths.cumsum(axis=1)
    while (total[:, -1] < busy).any():
        more = rng.integers(shortest, longest, size, endpoint=True)
        lengths = np.concatenate((lengths, more), axis=1)
        total = lengths.cumsum(axis=1)
    before = total - lengths
    needed = before < busy[:, None]
    count = needed.sum(axis=1)
    most = int(count.max())
    filled = np.zeros((busy.size, most + 1), np.int64)
    np.multiply(lengths[:, :most], needed[:, :most], out=filled[:, :most])

    loaded = rows[count > 0]
    last = count[loaded] - 1
    used = before[loaded, last]
    rest = busy[loaded] - used
    if whole_within:
        rest = np.minimum(np.maximum(rest, shortest), whole_within - used)
    # The order must be random. All tasks except the cut one are exchangeable, so it
    # suffices to swap the cut task with a random one.
    place = (rng.random(busy.size)[loaded] * (last + 1)).astype(np.int64)
    filled[loaded, last] = filled[loaded, place]
    filled[loaded, place] = rest
    return filled


def _place(
    rng: np.random.Generator, lengths: NDArray[np.int64], interval: int
) -> tuple[NDArray[np.int64], ...]:
    """Place the tasks of each row in [0, interval).

    Returns node, start, end of the tasks sorted by (node, start), then node, start, end
    of the slots sorted by (start, node). Padding tasks have length 0 and are placed at
    the end of the interval, so the last gap of a row needs no special case.
    """
    done = lengths.cumsum(axis=1)
    free = interval - done[:, -1:]
    cuts = (rng.random(lengths.shape) * (free + 1)).astype(np.int64)
    is_task = lengths > 0
    cuts = np.where(is_task, cuts, free)
    cuts.sort(axis=1)
    end = cuts + done
    start = end - lengths
    gap = np.zeros_like(end)  # the start of the gap before each task
    gap[:, 1:] = end[:, :-1]
    is_slot = start > gap
    rows = np.arange(len(lengths))
    task_node = rows.repeat(is_task.sum(axis=1))
    slot_node = rows.repeat(is_slot.sum(axis=1))
    slot_start = gap[is_slot]
    # numpy sorts 16-bit integers by radix, which is twice as fast here.
    short = slot_start.astype(np.uint16) if interval < 2**16 else slot_start
    order = short.argsort(kind="stable")
    return (
        task_node,
        start[is_task],
        end[is_task],
        slot_node[order],
        slot_start[order],
        start[is_slot][order],
    )


@lru_cache(maxsize=64)
def _slot_dtype(columns: tuple[str, ...]) -> np.dtype[Any]:
    """Return the dtype of slots with further float64 columns."""
    plain = [(name, SLOT[name]) for name in SLOT_NAMES]
    return np.dtype([*plain, *((name, "f8") for name in columns)], align=True)


def _columns(extra: Any) -> dict[str, Uniform]:
    """Check the distributions of the extra columns, and return them by name."""
    if not isinstance(extra, Mapping):
        raise TypeError(f"extra must map names to uniform laws, not {extra!r}")
    columns: dict[str, Uniform] = {}
    for name, value in extra.items():
        if not isinstance(name, str) or not name.isidentifier() or name in SLOT_NAMES:
            raise ValueError(f"extra: {name!r} cannot be the name of a column")
        columns[name] = law_of(Uniform, f"extra {name!r}", value)
        columns[name].check(f"extra {name!r}", positive=False)
    return columns


def _check_size(
    nodes: int, interval: int, load: Load, lengths: tuple[int, int]
) -> None:
    """Raise ValueError for environments that would need too much memory."""
    for name, value in (("interval", interval), ("task_length", lengths[1])):
        if value > 2**53:
            raise ValueError(f"{name}: {value} exceeds 2**53")
    tasks = nodes * (1 + 2 * load.high * interval / sum(lengths))
    if tasks > _MAX_TASKS:
        raise ValueError(
            f"nodes: {nodes} nodes on an interval of {interval} have some {tasks:.3g} "
            f"local tasks, more than {_MAX_TASKS:.3g}"
        )


def _lengths(value: Any) -> tuple[int, int]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"task_length must be (shortest, longest), not {value!r}")
    shortest, longest = (integer("task_length", v, least=1) for v in value)
    if shortest > longest:
        raise ValueError(f"task_length: shortest {shortest} exceeds longest {longest}")
    return shortest, longest
