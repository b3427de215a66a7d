"""Working times by nodes and by interval, as in Tables 1 and 2 of the AEP paper.

Toporkov et al. time every algorithm on random environments, once over the number
of nodes and once over the length of the scheduling interval. Here `published`, the
algorithms as printed, and the kernels run on the same environments, on this machine,
in turn, and must give the same answers. Every figure is a median over environments, of
CPU time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE_HEAD
from rich.table import Table

import slotkern as sk

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScalingReport", "scaling", "stream"]

#: The papers' names and our criteria, in the order of Tables 1 and 2.
ALGORITHMS = {
    "AMP": "first",
    "MinRuntime": "runtime",
    "MinFinishTime": "finish",
    "MinProcTime": "processor_time",
    "MinCost": "cost",
}
CSA = "CSA"
#: What is compared, and the method of `find_window` that reaches it.
ENGINES = {"published": "published", "kernels": "exact"}
#: The job of 000, section 3.1: time is needed for 310 / performance.
BASE_JOB = sk.Request(5, 310.0, budget=1500.0)
NODES = (50, 100, 200, 300, 400)
INTERVALS = (600, 1200, 1800, 2400, 3000, 3600)

#: Jobs of a stream that are searched in each environment by the kernels.
JOBS = 32
#: CSA as published takes seconds where the others take milliseconds: every fifth cycle.
CSA_EVERY = 5


def stream(
    count: int,
    seed: int | Sequence[int],
    *,
    nodes: int = BASE_JOB.nodes,
    volume: float = BASE_JOB.volume,
    budget: float = BASE_JOB.budget,
) -> list[Any]:
    """Return requests around a base job: volumes and budgets within a fifth of it.

    Parameters
    ----------
    count : int
        How many.
    seed : int or sequence of int
        The same seed, the same jobs.
    nodes, volume, budget
        The base job; by default that of 000, section 3.1.

    Examples
    --------
    >>> import slotkern.commands.bench
    >>> [job.nodes for job in slotkern.commands.bench.stream(3, seed=1)]
    [5, 5, 5]
    """
    rng = np.random.default_rng(seed)
    factors = rng.uniform(0.8, 1.2, (count, 2))
    return [
        sk.Request(nodes, volume * size, budget=budget * size * wealth)
        for size, wealth in factors.tolist()
    ]


@dataclass(frozen=True)
class Sweep:
    """Median times in seconds over one axis: `times[engine][algorithm][i]`.

    `calls[engine][algorithm]` is what the call alone takes: a search of two slots. It
    is next to nothing for a CSA, which is left out.
    """

    axis: str
    values: tuple[int, ...]
    slots: npt.NDArray[np.float64]
    preparation: npt.NDArray[np.float64]
    alternatives: npt.NDArray[np.float64]
    times: dict[str, dict[str, npt.NDArray[np.float64]]]
    calls: dict[str, dict[str, float]]

    @property
    def algorithms(self) -> list[str]:
        """The rows, in the papers' order."""
        return list(self.times["published"])

    def exponent(self, engine: str, algorithm: str) -> float:
        """Slope of log time, less the call, over log nodes or log slots."""
        x = self.slots if self.axis == "interval" else np.array(self.values, float)
        call = self.calls[engine].get(algorithm, 0.0)
        return growth_exponent(x, self.times[engine][algorithm] - call)


def growth_exponent(x: npt.ArrayLike, time: npt.NDArray[np.float64]) -> float:
    """Fit time = c * x**k by least squares of the logarithms and return k.

    Examples
    --------
    >>> import numpy as np
    >>> from slotkern.commands.bench import growth_exponent
    >>> round(growth_exponent([1, 2, 4], np.array([3.0, 12.0, 48.0])), 6)
    2.0
    """
    if not (time > 0).all():
        return float("nan")
    log_x = np.log(np.asarray(x, float))
    log_x -= log_x.mean()
    return float(log_x @ np.log(time) / (log_x @ log_x))


@dataclass(frozen=True)
class ScalingReport:
    """What `scaling` measured: tables for reading, figures for looking."""

    by_nodes: Sweep
    by_interval: Sweep
    cycles: int

    def tables(self) -> list[Table]:
        """Return Tables 1 and 2 of 000, then the growth exponents."""
        return [
            _sweep_table("Table 1. CPU nodes number", self.by_nodes, self.cycles),
            _sweep_table(
                "Table 2. Scheduling interval length", self.by_interval, self.cycles
            ),
            self._exponents(),
        ]

    def _exponents(self) -> Table:
        table = Table(
            title="Growth exponents of the time",
            box=SIMPLE_HEAD,
            caption="Least squares of the logarithms, less the time of a call: "
            "a search of two slots.",
        )
        table.add_column("")
        for engine in ENGINES:
            table.add_column(f"{engine}, in nodes", justify="right")
            table.add_column("in slots", justify="right")
            table.add_column("call, us", justify="right")
        for name in self.by_nodes.algorithms:
            cells = []
            for engine in ENGINES:
                for sweep in (self.by_nodes, self.by_interval):
                    cells.append(_cell(sweep.exponent(engine, name), 1, 2))
                call = self.by_nodes.calls[engine].get(name, np.nan)
                cells.append(_cell(call, 1e6))
            table.add_row(name, *cells)
        return table

    def save_figures(self, folder: str | Path) -> list[Path]:
        """Draw time by nodes and time by interval into `folder`; return the paths."""
        from matplotlib.figure import Figure

        from slotkern.plotting.gantt import save_figure

        paths = []
        for sweep in (self.by_nodes, self.by_interval):
            figure = Figure(figsize=(8, 5.2), dpi=150, layout="constrained")
            _draw(figure.add_subplot(), sweep)
            path = Path(folder) / f"time_by_{sweep.axis}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            save_figure(figure, path)
            paths.append(path)
        return paths


def scaling(
    *,
    cycles: int = 20,
    seed: int = 0,
    nodes: Sequence[int] = NODES,
    intervals: Sequence[int] = INTERVALS,
) -> ScalingReport:
    """Measure all algorithms of Tables 1 and 2 of 000 on this machine.

    Parameters
    ----------
    cycles : int
        Random environments for each size; the papers took 1,000.
    seed : int
        Seed of environments and jobs.
    nodes, intervals : sequence of int
        The columns: by default the papers'. By nodes the interval is 600; by interval
        there are 100 nodes.

    Returns
    -------
    ScalingReport

    Raises
    ------
    AssertionError
        If a kernel and the published algorithm differ in an answer.
    """
    calls = _call_times()  # numba compiles here, outside of all other times
    return ScalingReport(
        _sweep("nodes", tuple(nodes), cycles, seed, calls),
        _sweep("interval", tuple(intervals), cycles, seed, calls),
        cycles,
    )


def _call_times() -> dict[str, dict[str, float]]:
    """What a call takes when there is next to nothing to search: two slots."""
    slots = sk.make_slots(node=[0, 1], start=0, end=1000, performance=1, price=1)
    pool, job = sk.SlotPool(slots), sk.Request(2, 310.0)
    calls: dict[str, dict[str, float]] = {engine: {} for engine in ENGINES}
    for name, criterion in ALGORITHMS.items():
        for engine, method in ENGINES.items():
            searched = slots if engine == "published" else pool
            times = [
                _timed(_search, searched, [job] * 9, criterion, method)[0] / 9
                for _ in range(30)
            ]
            calls[engine][name] = float(np.median(times))
    return calls


def _sweep(
    axis: str,
    values: tuple[int, ...],
    cycles: int,
    seed: int,
    calls: dict[str, dict[str, float]],
) -> Sweep:
    points: list[dict[str, list[float]]] = [{} for _ in values]
    for cycle in range(cycles):  # all sizes in turn: the machine's speed drifts
        for value, point in zip(values, points, strict=True):
            size = {"nodes": 100, "interval": 600} | {axis: value}
            _measure(point, size["nodes"], size["interval"], (seed, cycle))

    def median(key: str) -> npt.NDArray[np.float64]:
        return np.array([np.median(point[key]) for point in points])

    return Sweep(
        axis,
        values,
        np.array([np.mean(point["slots"]) for point in points]),
        median("preparation"),
        np.array([np.mean(point["alternatives"]) for point in points]),
        {
            engine: {name: median(f"{engine} {name}") for name in (CSA, *ALGORITHMS)}
            for engine in ENGINES
        },
        calls,
    )


def _measure(
    point: dict[str, list[float]], nodes: int, interval: int, cycle: tuple[int, int]
) -> None:
    """Add the measurements of one environment, the engines in turn."""
    slots = sk.generate_environment(
        nodes=nodes, interval=interval, seed=cycle[0], cycle=cycle[1]
    ).slots
    jobs = stream(JOBS, cycle)

    def note(key: str, value: float) -> None:
        point.setdefault(key, []).append(value)

    note("slots", slots.size)
    seconds, pool = _timed(sk.SlotPool, slots)
    note("preparation", seconds)
    for name, criterion in ALGORITHMS.items():
        seconds, printed = _timed(_search, slots, jobs[:1], criterion, "published")
        note(f"published {name}", seconds)
        seconds, windows = _timed(_search, pool, jobs, criterion, "exact")
        note(f"kernels {name}", seconds / len(jobs))
        _same(criterion, printed[0], windows[0])
    if cycle[1] % CSA_EVERY == 0:
        starts = []
        for engine, method in ENGINES.items():
            seconds, alternatives = _timed(
                sk.find_alternatives,
                *(pool, BASE_JOB, "first"),
                shape="ragged",
                method=method,
            )
            note(f"{engine} {CSA}", seconds)
            starts.append([window.start for window in alternatives])
        assert starts[0] == starts[1], "CSA: published and exact differ"
        note("alternatives", len(starts[0]))


def _search(slots: Any, jobs: list[Any], criterion: str, method: str) -> list[Any]:
    """One window for each job, by one call each, as a scheduler would ask."""
    find = sk.find_window
    return [find(slots, job, criterion, shape="ragged", method=method) for job in jobs]


def _timed(call: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, Any]:
    """Return the seconds of CPU time that a call took, and its result.

    On a busy machine a long call is interrupted more often than a short one, so that
    wall-clock ratios would flatter the short ones.
    """
    begin = thread_time_ns()
    result = call(*given, **options)
    return (thread_time_ns() - begin) * 1e-9, result


def _same(criterion: str, printed: Any, fast: Any) -> None:
    """Fail unless both engines found nothing, or windows of the same value."""
    values = [None if window is None else window.value for window in (printed, fast)]
    same = values[0] == values[1]
    if criterion == "processor_time":  # 000's is a random search: at best the best
        same = printed is None or (
            fast is not None and fast.value <= printed.value * (1 + 1e-12)
        )
    assert same, f"{criterion}: published and exact differ: {values}"


def _cell(value: float, scale: float, decimals: int | None = None) -> str:
    """A number with so many decimals; by default with three significant digits."""
    value *= scale
    if np.isnan(value):
        return "-"
    if decimals is None:
        decimals = int(np.clip(2 - np.floor(np.log10(max(value, 1e-9))), 0, 4))
    return f"{value:,.{decimals}f}"


def _sweep_table(title: str, sweep: Sweep, cycles: int) -> Table:
    table = Table(
        title=title,
        box=SIMPLE_HEAD,
        caption=f"Medians over {cycles} environments (CSA: a fifth of them). "
        "The kernels search a prepared SlotPool, whose time is given once.",
    )
    table.add_column(title.split(". ")[1])
    for value in sweep.values:
        table.add_column(str(value), justify="right")

    def add(
        name: str, values: Any, scale: float = 1, decimals: int | None = None
    ) -> None:
        table.add_row(name, *(_cell(value, scale, decimals) for value in values))

    add("Number of slots", sweep.slots, 1, 1)
    published, kernels = sweep.times["published"], sweep.times["kernels"]
    add("CSA: Alternatives Num", sweep.alternatives, 1, 1)
    for name in sweep.algorithms:
        table.add_section()
        if name == CSA:
            add(
                f"{name} per Alt, published, ms",
                published[name] / sweep.alternatives,
                1e3,
            )
            add(f"{name} per Alt, kernels, us", kernels[name] / sweep.alternatives, 1e6)
        add(f"{name}, published, ms", published[name], 1e3)
        add(f"{name}, kernels, us", kernels[name], 1e6)
        add("  times faster", published[name] / kernels[name], 1, 0)
    table.add_section()
    add("SlotPool, once, us", sweep.preparation, 1e6)
    return table


def _draw(ax: Axes, sweep: Sweep) -> None:
    """One line for each engine and algorithm, labelled where it ends."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    from slotkern.plotting.gantt import FAINT, INK, WINDOW_COLOURS

    ends: list[tuple[float, str, str]] = []
    for engine, style in zip(ENGINES, ("-", "--"), strict=True):
        for i, (name, times) in enumerate(sweep.times[engine].items()):
            colour = WINDOW_COLOURS[i]
            ax.plot(
                sweep.values, times * 1e3, style, color=colour, marker="o", ms=3, lw=1.4
            )
            ends.append((float(times[-1]) * 1e3, f"{name}, {engine}", colour))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ends.sort()
    low, high = np.log10(ax.get_ylim())
    levels = _spread(np.log10([end for end, _, _ in ends]), 0.042 * (high - low))
    for level, (_, words, colour) in zip(levels, ends, strict=True):
        ax.annotate(
            words,
            (sweep.values[-1], 10**level),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
            annotation_clip=False,
        )
    what = "nodes" if sweep.axis == "nodes" else "length of the scheduling interval"
    ax.set_xlabel(what, color=INK)
    ax.set_title(f"Working time in ms by {what}", loc="left", fontsize=11, color=INK)
    ax.set_xticks(sweep.values, [str(value) for value in sweep.values])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    ax.grid(axis="y", color="#E3E7EC", lw=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(colors=FAINT, labelcolor=INK, labelsize=8.5)


def _spread(wanted: npt.NDArray[np.float64], gap: float) -> list[float]:
    """Places at least `gap` apart that are nearest to the wanted, ascending ones."""
    blocks: list[list[float]] = []  # each: how many, and their mean without the gaps
    for i, place in enumerate(wanted.tolist()):
        blocks.append([1, place - i * gap])
        while len(blocks) > 1 and blocks[-2][1] > blocks[-1][1]:
            count, mean = blocks.pop()
            before, other = blocks.pop()
            both = before + count
            blocks.append([both, (before * other + count * mean) / both])
    means = [mean for count, mean in blocks for _ in range(int(count))]
    return [mean + i * gap for i, mean in enumerate(means)]
