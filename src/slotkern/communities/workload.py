"""Workloads of communities: jobs and nodes, given, generated or from a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import hint_keywords, integer, number, one_of, quote
from slotkern.foundation.logger import log
from slotkern.traces.clean import width_of
from slotkern.traces.free_slots import most_at_once
from slotkern.traces.trace import Trace

__all__ = [
    "COMMUNITY_JOB",
    "COMMUNITY_NODE",
    "CommunityWorkload",
    "community_from_trace",
    "generate_community",
    "validate_jobs",
    "validate_nodes",
]

#: A job. Times are seconds at speed 1; `label` is the required label, or -1 for any.
COMMUNITY_JOB = np.dtype(
    [
        ("submit", "f8"),
        ("run", "f8"),
        ("estimate", "f8"),
        ("processors", "i4"),
        ("home", "i4"),
        ("label", "i4"),
    ],
    align=True,
)
#: A node: its processors, their speed, and a label, such as an operating system.
COMMUNITY_NODE = np.dtype(
    [("processors", "i4"), ("speed", "f8"), ("label", "i4")], align=True
)
ANY_LABEL = -1
LINUX, WINDOWS = 0, 1
DAY = 86400.0
MAX_PROCESSORS = 2**24

#: Processors of 26 clusters similar to those of Grid5000 in 2010.
CLUSTERS = (
    *(102, 186, 40, 68, 144, 24, 52, 40, 92, 16, 112, 158, 240, 184),
    *(340, 60, 128, 50, 80, 66, 98, 112, 100, 90, 160, 114),
)


class CommunityWorkload(NamedTuple):
    """Jobs, sorted by submission, and the nodes that they are submitted to.

    Attributes
    ----------
    jobs : structured array of dtype `COMMUNITY_JOB`
    nodes : structured array of dtype `COMMUNITY_NODE`
    """

    jobs: NDArray[np.void]
    nodes: NDArray[np.void]


@dataclass(frozen=True)
class WorkloadModel:
    """The parameters of a generated workload, explained in `generate_community`.

    `length` multiplies run times; `span`, `gap` and `longest` are in seconds;
    `singles`, `serial` and `windows` are shares.
    """

    jobs: int = 10_201
    span: float = 789_000.0  # for `jobs` jobs on 26 nodes
    scale: float = 0.6  # factor of the clusters' processors
    windows: float = 0.2
    singles: float = 0.55
    tail: float = 1.1  # Pareto exponent of batch sizes
    largest_batch: int = 600
    gap: float = 10.0
    serial: float = 0.62
    widest: int = 340
    length: float = 1.2
    longest: float = 9 * DAY


#: Models by name; "casa" approximates the sizes printed in the paper on CASA.
PRESETS = {
    "casa": WorkloadModel(),
    "light": WorkloadModel(length=0.6),
    "heavy": WorkloadModel(length=2.0),
}


@hint_keywords
def generate_community(
    preset: str = "casa",
    *,
    jobs: int | None = None,
    nodes: int = 26,
    seed: int = 0,
) -> CommunityWorkload:
    """Generate a random workload of a community of clusters.

    Parameters
    ----------
    preset : {"casa", "light", "heavy"}
        "casa": 10,201 jobs in 789,000 s on 26 clusters, like the sample of the Grid5000
        trace in the paper; "light", "heavy": jobs of 1/2 and 5/3 of that length.
    jobs : int, optional
        The number of jobs; the span of time grows in proportion, so the load stays.
    nodes : int
        The number of nodes; the sizes of the 26 clusters repeat, and the span shrinks
        in proportion.
    seed : int
        The seed of the random numbers; equal seeds give equal workloads.

    Returns
    -------
    CommunityWorkload

    Raises
    ------
    ValueError, TypeError
        For an invalid argument; the message names it.

    Notes
    -----
    55% of the batches are single jobs; the others have 2 to 600 jobs (Pareto, exponent
    1.1) with equal numbers of processors and equal lengths, +-30%, and exponential gaps
    whose mean is itself exponential (10 s). 62% of the batches need one processor; the
    others a lognormal number (median 6, sigma 1.15, 60% of them a power of 2, at most
    340). Lengths: 20% lognormal around 25 s, 42% around 500 s, 38% around 4,200 s
    (sigma 1.1, 1.3, 1.5), times 1.2 * processors**-0.15, at most 9 days. 20% of the
    nodes, rounded to a whole number of at least one, have label 1 (Windows), the others
    0 (Linux): 5 and 21 of 26. These nodes are drawn at random; each job requires label
    1 with a probability of 20%. Estimates are exact; the numbers of jobs per home node
    differ by at most one. The parameters were fitted to the published sizes of the
    workload, not to the published comparison of the scenarios.

    Examples
    --------
    >>> import slotkern as sk
    >>> jobs, nodes = sk.generate_community(jobs=1000, seed=1)
    >>> len(jobs), len(nodes), int(nodes["processors"].sum())
    (1000, 26, 1713)
    """
    model = PRESETS[one_of("preset", preset, PRESETS)]
    count = integer("jobs", model.jobs if jobs is None else jobs, least=0, most=10**8)
    size = integer("nodes", nodes, least=1, most=10**7)
    seed = integer("seed", seed, least=0)
    streams = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.Generator(np.random.PCG64(streams[0]))
    grid = _generate_nodes(
        model, size, np.random.Generator(np.random.PCG64(streams[1]))
    )
    flow = np.zeros(count, COMMUNITY_JOB)
    if not count:
        return CommunityWorkload(flow, grid)

    span = model.span * count / model.jobs * len(CLUSTERS) / size
    sizes = _draw_batch_sizes(model, count, rng)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    width = _draw_widths(model, len(sizes), rng)
    length = _draw_lengths(model, width, rng)
    gaps = rng.exponential(model.gap, len(sizes))[batch] * rng.exponential(1, count)
    gaps[first] = 0
    passed = np.cumsum(gaps)
    submit = rng.random(len(sizes))[batch] * span + passed - passed[first][batch]
    run = np.floor(length[batch] * np.exp(0.3 * rng.standard_normal(count)))
    flow["submit"] = submit % span
    flow["run"] = np.clip(run, 1, model.longest)
    flow["estimate"] = flow["run"]
    flow["processors"] = width[batch]
    flow["label"] = np.where(rng.random(count) < model.windows, WINDOWS, LINUX)
    flow = flow[np.argsort(flow["submit"], kind="stable")]
    flow["home"] = rng.permutation(count) % size
    return CommunityWorkload(flow, grid)


def _generate_nodes(
    model: WorkloadModel, size: int, rng: np.random.Generator
) -> NDArray[np.void]:
    """Return nodes with the sizes of the model's clusters and random labels."""
    grid = np.zeros(size, COMMUNITY_NODE)
    whole = np.resize(np.array(CLUSTERS), size)
    grid["processors"] = np.maximum(1, np.rint(whole * model.scale))
    grid["speed"] = 1
    grid["label"] = _draw_labels(size, model.windows, rng, least=1)
    return grid


def _draw_labels(
    size: int, share: float, rng: np.random.Generator, least: int = 0
) -> NDArray[np.bool_]:
    """Draw the nodes with label 1: `share` of all, rounded, but at least `least`."""
    count = max(least, int(np.floor(share * size + 0.5)))
    return rng.permutation(size) < count


def _draw_batch_sizes(
    model: WorkloadModel, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw sizes of batches with `count` jobs in total."""
    tail = np.floor(2 * (1 - rng.random(count)) ** (-1 / model.tail))
    single = rng.random(count) < model.singles
    sizes = np.where(single, 1, np.minimum(tail, model.largest_batch)).astype(np.int64)
    total = np.cumsum(sizes)
    last = int(np.searchsorted(total, count))
    sizes = sizes[: last + 1]
    sizes[-1] -= total[last] - count
    return sizes


def _draw_widths(
    model: WorkloadModel, count: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the numbers of processors of `count` batches."""
    wide = np.exp(np.log(6.0) + 1.15 * rng.standard_normal(count))
    wide = np.maximum(2, np.rint(wide))
    power = np.maximum(2, 2 ** np.rint(np.log2(wide)))
    wide = np.where(rng.random(count) < 0.6, power, wide)
    serial = rng.random(count) < model.serial
    return np.where(serial, 1, np.minimum(wide, model.widest)).astype(np.int64)


def _draw_lengths(
    model: WorkloadModel, width: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the run times in seconds of batches with these numbers of processors."""
    kind = np.searchsorted([0.2, 0.62], rng.random(len(width)), side="right")
    median = np.array([25.0, 500.0, 4200.0])[kind]
    sigma = np.array([1.1, 1.3, 1.5])[kind]
    length = median * np.exp(sigma * rng.standard_normal(len(width)))
    length *= model.length * width.astype(np.float64) ** -0.15
    whole: NDArray[np.float64] = np.clip(np.floor(length), 1, model.longest)
    return whole


@hint_keywords
def community_from_trace(
    trace: Trace,
    *,
    homes: str | int = "partition",
    sample: int = 1,
    offset: int = 0,
    squeeze: float = 1.0,
    windows: float = 0.0,
    estimates: str | float = "exact",
    seed: int = 0,
) -> CommunityWorkload:
    """Return a workload from a trace: its jobs, and the nodes of their submission.

    Parameters
    ----------
    trace : Trace
        From `read_trace`; jobs without a run time above 0, a submission or processors
        are left out.
    homes : {"partition", "origin_site", "user"} or int
        A node for each value of this field of the trace, with the maximum number of
        processors that its jobs use at once; or a number of equal nodes, which share
        the trace's processors and receive the jobs in turn.
    sample, offset : int
        Every `sample`-th job is used (100 in the paper), from job `offset` on.
    squeeze : float
        Factor of the times between submissions (0.01 in the paper).
    windows : float
        The share of nodes with label 1, rounded to a whole number of nodes, which are
        drawn; and the probability that a job requires label 1. All others have 0.
    estimates : {"exact", "user"} or float
        "exact": the run time; "user": the requested time, or the run time if that is
        longer; or the run time times a factor.
    seed : int
        Seed of the random labels.

    Returns
    -------
    CommunityWorkload

    Raises
    ------
    ValueError, TypeError
        For an invalid argument, a trace without jobs, or without the field.

    Notes
    -----
    Every job is submitted at its recorded time. Unlike in `replay`, preceding jobs and
    think times (fields 17 and 18) do not delay a submission; a warning counts the jobs
    that name a preceding job.

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> rows = np.full(3, -1, sk.SWF)
    >>> rows["submit"], rows["run_time"], rows["allocated"] = [0, 5, 9], 10, [1, 2, 4]
    >>> rows["partition"] = [1, 2, 2]
    >>> jobs, nodes = sk.community_from_trace(sk.Trace(rows))
    >>> nodes["processors"].tolist(), jobs["home"].tolist()
    ([1, 6], [0, 1, 1])
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be a Trace, got {type(trace).__name__}")
    step = integer("sample", sample, least=1)
    start = integer("offset", offset, least=0)
    squeeze = number("squeeze", squeeze, above=0)
    share = number("windows", windows, least=0)
    if share > 1:
        raise ValueError(f"windows must be at most 1, got {share:g}")
    rng = np.random.Generator(np.random.PCG64(integer("seed", seed, least=0)))
    rows = trace.jobs
    known = (rows["submit"] >= 0) & (rows["run_time"] > 0)
    rows = rows[known & (width_of(rows, "allocated") > 0)]
    if lost := len(trace.jobs) - len(rows):
        reason = "%d of %d jobs have no known submission, run time or processors"
        log.warning(f"%s: {reason}", trace.source, lost, len(trace.jobs))
    if not len(rows):
        raise ValueError("trace: no job has a submission, a run time and processors")
    rows = rows[np.argsort(rows["submit"], kind="stable")]
    _warn_of_predecessors(trace, rows)
    home, processors = _home_nodes(trace, rows, homes)
    grid = np.zeros(len(processors), COMMUNITY_NODE)
    grid["processors"], grid["speed"] = processors, 1
    grid["label"] = _draw_labels(len(grid), share, rng)
    kept = slice(start, None, step)
    rows, home = rows[kept], home[kept]
    flow = np.zeros(len(rows), COMMUNITY_JOB)
    flow["submit"] = (rows["submit"] - rows["submit"][:1]) * squeeze
    flow["run"] = rows["run_time"]
    flow["estimate"] = _estimates(rows, estimates)
    flow["processors"] = width_of(rows, "allocated")
    flow["home"] = home
    flow["label"] = rng.random(len(flow)) < share
    return CommunityWorkload(flow, grid)


def _warn_of_predecessors(trace: Trace, rows: NDArray[Any]) -> None:
    """Log a warning if jobs name a preceding job, because that is ignored."""
    if "preceding" not in (rows.dtype.names or ()):
        return
    if chained := int((rows["preceding"] > 0).sum()):
        log.warning(
            "%s: %d of %d jobs name a preceding job (field 17); a community does not "
            "wait for its end, but submits them at their recorded times",
            trace.source,
            chained,
            len(rows),
        )


def _home_nodes(
    trace: Trace, rows: NDArray[Any], homes: str | int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the home node of each job, and the processors of each node."""
    if isinstance(homes, str):
        name = one_of("homes", homes, ("partition", "origin_site", "user"))
        if name not in (rows.dtype.names or ()):
            raise ValueError(f"homes: the trace has no field {homes!r}")
        value, home = np.unique(rows[name], return_inverse=True)
        if len(value) == 1 and value[0] == -1:
            raise ValueError(f"homes: field {homes!r} of the trace is unknown (-1)")
        sizes = []
        for k in range(len(value)):
            own = rows[home == k]
            end = own["submit"] + np.maximum(own["wait"], 0) + own["run_time"]
            start = own["submit"] + np.maximum(own["wait"], 0)
            sizes.append(most_at_once(start, end, width_of(own, "allocated")))
        return home.astype(np.int64), np.array(sizes, np.int64)
    count = integer("homes", homes, least=1)
    total = trace.processors or int(width_of(rows, "allocated").max())
    each = np.full(count, total // count)
    each[: total % count] += 1
    if total < count:
        raise ValueError(f"homes: {count} nodes, but the trace has {total} processors")
    return np.arange(len(rows)) % count, each


def _estimates(rows: NDArray[Any], given: str | float) -> NDArray[np.float64]:
    """Return the estimate of each job in seconds."""
    run = rows["run_time"].astype(np.float64)
    if isinstance(given, str):
        kind = one_of("estimates", given, ("exact", "user"))
        return run if kind == "exact" else np.maximum(run, rows["requested_time"])
    return run * number("estimates", given, least=1)


def validate_nodes(given: Any) -> tuple[NDArray[np.void], dict[Any, int]]:
    """Validate nodes; return them and a dictionary from labels to codes.

    Labels may be text; their codes are assigned in order of first occurrence.
    """
    columns = _as_columns("grid", given)
    processors = _read_column("grid", columns, "processors", None)
    grid = np.zeros(len(processors), COMMUNITY_NODE)
    if not len(grid):
        raise ValueError("grid has no nodes")
    _check_integers("grid", "processors", processors, 1, MAX_PROCESSORS)
    grid["processors"] = processors
    speed = _read_column("grid", columns, "speed", 1.0, len(grid))
    _check_numbers("grid", "speed", speed, above=0)
    grid["speed"] = speed
    label = _read_column("grid", columns, "label", 0, len(grid))
    codes: dict[Any, int] = {}
    if label.dtype.kind in "US":
        for word in label.tolist():
            codes.setdefault(word, len(codes))
        grid["label"] = [codes[word] for word in label.tolist()]
    else:
        _check_integers("grid", "label", label, 0, 2**31 - 1)
        grid["label"] = label
    return grid, codes


def validate_jobs(
    given: Any, nodes: NDArray[np.void], codes: Mapping[Any, int]
) -> tuple[tuple[NDArray[Any], ...], NDArray[np.int64] | slice]:
    """Validate jobs; return their columns sorted by submission, and the row of each.

    The columns are those of `COMMUNITY_JOB`, contiguous; `codes` are the label codes.
    """
    columns = _as_columns("jobs", given)
    submit = _read_column("jobs", columns, "submit", None)
    count = len(submit)
    _check_numbers("jobs", "submit", submit)
    run = _read_column("jobs", columns, "run", None, count)
    _check_numbers("jobs", "run", run, least=0)
    if "estimate" in columns:
        estimate = _read_column("jobs", columns, "estimate", None, count)
        _check_numbers("jobs", "estimate", estimate, above=0)
        if (estimate < run).any():
            row = int((estimate < run).argmax())
            raise ValueError(
                f"jobs: row {row}: estimate {estimate[row]} is less than run {run[row]}"
            )
    else:
        estimate = np.maximum(run, 1.0)
    processors = _read_column("jobs", columns, "processors", None, count)
    _check_integers("jobs", "processors", processors, 1, 2**31 - 1)
    home = _read_column("jobs", columns, "home", None, count)
    _check_integers("jobs", "home", home, 0, len(nodes) - 1)
    label = _read_column("jobs", columns, "label", ANY_LABEL, count)
    if label.dtype.kind in "US":
        known = {**codes, "": ANY_LABEL}
        # A label that no node has gets a code of its own: the job fails everywhere.
        unused = len(codes)
        label = np.array([known.get(word, unused) for word in label.tolist()], np.int32)
    else:
        _check_integers("jobs", "label", label, ANY_LABEL, 2**31 - 1)
    total = float(np.abs(submit).max(initial=0))
    total += float(estimate.sum()) / float(nodes["speed"].min())
    if not total <= 2.0**53:
        raise ValueError("jobs: the times add up to more than 2**53 seconds")
    found = (submit, run, estimate, processors, home, label)
    order: NDArray[np.int64] | slice = slice(None)
    if (submit[1:] < submit[:-1]).any():
        order = np.argsort(submit, kind="stable")
    return tuple(
        np.ascontiguousarray(column[order], COMMUNITY_JOB[name])
        for name, column in zip(COMMUNITY_JOB.names or (), found, strict=True)
    ), order


def _as_columns(name: str, given: Any) -> Mapping[str, Any]:
    """Return a structured array or a mapping as a mapping of columns."""
    if isinstance(given, Mapping):
        return given
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        return {field: given[field] for field in given.dtype.names}
    kind = type(given).__name__
    raise TypeError(f"{name} must be a structured array or columns, got {kind}")


def _read_column(
    name: str, columns: Mapping[str, Any], field: str, other: Any, size: int = -1
) -> NDArray[Any]:
    """Return a one-dimensional column of `size` values, or `other` if it is missing."""
    if field not in columns and other is None:
        raise ValueError(f"{name} has no column {field!r}")
    column = np.asarray(columns.get(field, other))
    if column.ndim == 0 and size >= 0:
        column = np.full(size, column)
    if column.ndim != 1 or (size >= 0 and len(column) != size):
        needed = f"{size} values" if size >= 0 else "one dimension"
        raise ValueError(
            f"{name}: column {field!r} has shape {column.shape}; it needs {needed}"
        )
    return np.ascontiguousarray(column)


def _check_numbers(
    name: str,
    field: str,
    column: NDArray[Any],
    *,
    least: float = -np.inf,
    above: float = -np.inf,
) -> None:
    """Raise an error for a column that is not numeric, not finite or out of range."""
    if column.dtype.kind not in "iuf":
        dtype = column.dtype
        raise TypeError(f"{name}: column {field!r} has dtype {dtype}, not numbers")
    if not len(column):
        return
    low, high = column.min(), column.max()  # NaN if any value is NaN
    if not (low >= least and low > above and high < np.inf):
        good = np.isfinite(column) & (column >= least) & (column > above)
        row = int(good.argmin())
        value = quote(column[row].item())
        limit = f" and at least {least:g}" if least > -np.inf else ""
        limit = f" and more than {above:g}" if above > -np.inf else limit
        raise ValueError(
            f"{name}: row {row}: {field} is {value}; it must be finite{limit}"
        )


def _check_integers(
    name: str, field: str, column: NDArray[Any], least: int, most: int
) -> None:
    """Raise an error for a column that is not integer or not within [least, most]."""
    if column.dtype.kind not in "iu":
        dtype = column.dtype
        raise TypeError(f"{name}: column {field!r} has dtype {dtype}, not integers")
    if len(column) and not least <= column.min() <= column.max() <= most:
        row = int(((column < least) | (column > most)).argmax())
        value = column[row].item()
        limits = f"not within [{least}, {most}]"
        raise ValueError(f"{name}: row {row}: {field} is {value}, {limits}")
