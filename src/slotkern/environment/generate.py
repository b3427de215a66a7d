"""Random environments: nodes, their local tasks, and the free slots between them.

One law serves every study of the papers (Toporkov et al., AEP section 3.1, square
windows section 4.1). A node has a performance, a price near the market price of that
performance, and local tasks that keep it busy for a hypergeometrically distributed
share of the scheduling interval. What the tasks leave free are the slots.

Everything is computed for all nodes at once. A cycle draws from its own stream,
``PCG64(SeedSequence(seed, spawn_key=(cycle,)))``, so that cycle k is the same whoever
computes it and whatever was computed before it. Only arithmetic that IEEE 754 rounds
correctly decides a result; powers come from a correctly rounded table, because pow()
differs by an ulp between machines. (NumPy's normal deviates take log and exp in the
tail of the ziggurat, about once in 3,700 draws; they can touch the last bit of a price
there, never a time.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.checks import hint_keywords, integer, one_of
from slotkern.display import HasPlot
from slotkern.display_table import Table
from slotkern.environment.laws import Load, Price, Uniform, law_of
from slotkern.slots import SLOT

__all__ = ["NODE", "PRESETS", "TASK", "Environment", "generate_environment"]

TASK = np.dtype([("node", "i4"), ("start", "f8"), ("end", "f8")], align=True)
SLOT_NAMES = tuple(SLOT.fields or ())
#: Some 200 bytes each while they are placed.
_MAX_TASKS = 10**7
_NODE_FIELDS = [("node", "i4"), ("performance", "f8"), ("price", "f8")]
NODE = np.dtype(_NODE_FIELDS, align=True)


@dataclass(frozen=True, repr=False)
class Environment(HasPlot):
    """One random environment; stands wherever its `slots` may.

    Attributes
    ----------
    nodes : structured array, shape (nodes,)
        node (int32, 0, 1, ...), performance, price, then the extra columns (float64).
    tasks : structured array
        node, start, end of every local task, sorted by (node, start).
    slots : structured array
        The free slots: the fields of `SLOT` and the extra columns, sorted by
        (start, node). With the tasks they tile [0, horizon) of each node.
    horizon : float
        The end of the scheduling interval.
    """

    nodes: NDArray[Any]
    tasks: NDArray[Any]
    slots: NDArray[Any]
    horizon: float

    def _shown(self) -> Table:
        """The free slots."""
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

#: The papers' environments by name. The ``-natural`` ones replace the price law that
#: fits the printed figures best by one with the same mean and a natural job volume.
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
    """Return the random environment number `cycle` of the stream `seed`.

    Parameters left out come from the preset. The times do not depend on the laws of
    performance, price and extra columns, nor do performances depend on prices.

    Parameters
    ----------
    preset : str
        One of `PRESETS`: "aep" (paper 000), "square" (001), "placement" (003), "vo"
        (002); "aep-natural", "square-natural", "placement-natural".
    nodes : int
        How many nodes.
    interval : int
        Length of the scheduling interval, in whole time units.
    seed, cycle : int
        Both >= 0. Each cycle has a stream of its own.
    load : (low, high) or Load
        The share of the interval that local tasks take on a node.
    task_length : (shortest, longest)
        Local tasks have uniform integer lengths. They are drawn until the node's busy
        time is reached; the last one is cut to what is left.
    whole_tasks : bool
        Whether the cut task keeps at least the shortest length.
    performance : Uniform
        The performance of each node, in units of work per time unit.
    price : Price
        The price of each node, in money per time unit.
    extra : mapping of name to Uniform
        Further columns with one value per node, carried by nodes and slots.
        Mappings with the same keys are accepted for each law.

    Returns
    -------
    Environment
        Nodes, local tasks and free slots.

    Raises
    ------
    ValueError, TypeError
        For an impossible value or another type; the message names the parameter.

    Notes
    -----
    Tasks are placed as Toporkov et al. leave open: with free time F and k tasks, k
    integer cut points uniform on 0..F, with repetition, say how much free time has
    passed before each task; gaps of length zero vanish. O(nodes * tasks per node).

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
    """Return a row of task lengths per node that fill `busy`, padded with zeros.

    The last column is all zeros. With `whole_within` > 0 the last task of a node is
    not cut below `shortest`, as far as the tasks still fit into `whole_within`.
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
    # A random order of the tasks. All but the cut one are exchangeable already, so
    # that it is enough to let the cut one change places with a random task.
    place = (rng.random(busy.size)[loaded] * (last + 1)).astype(np.int64)
    filled[loaded, last] = filled[loaded, place]
    filled[loaded, place] = rest
    return filled


def _place(
    rng: np.random.Generator, lengths: NDArray[np.int64], interval: int
) -> tuple[NDArray[np.int64], ...]:
    """Place each row's tasks in [0, interval).

    Returns node, start, end of the tasks sorted by (node, start), then the same of
    the slots sorted by (start, node). A padded task has no length and stands at the
    very end, so that the last gap of a row needs no special case.
    """
    done = lengths.cumsum(axis=1)
    free = interval - done[:, -1:]
    cuts = (rng.random(lengths.shape) * (free + 1)).astype(np.int64)
    is_task = lengths > 0
    cuts = np.where(is_task, cuts, free)
    cuts.sort(axis=1)
    end = cuts + done
    start = end - lengths
    gap = np.zeros_like(end)  # where the gap before each task begins
    gap[:, 1:] = end[:, :-1]
    is_slot = start > gap
    rows = np.arange(len(lengths))
    task_node = rows.repeat(is_task.sum(axis=1))
    slot_node = rows.repeat(is_slot.sum(axis=1))
    slot_start = gap[is_slot]
    # NumPy sorts integers of 16 bits by radix, which is twice as fast here.
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
    """Return the dtype of slots that carry these further float64 columns."""
    plain = [(name, SLOT[name]) for name in SLOT_NAMES]
    return np.dtype([*plain, *((name, "f8") for name in columns)], align=True)


def _columns(extra: Any) -> dict[str, Uniform]:
    """Return the laws of the extra columns by name."""
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
    """Raise ValueError before the memory of this machine runs out, not after."""
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
