"""Means and standard errors of a campaign, next to the published numbers.

Chunk files are read one by one in the order of their cycles, and only their moments are
kept: memory does not grow with the number of cycles, and the numbers do not depend on
the order or the place of the computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slotkern.studies.campaign import Campaign, Chunk
from slotkern.studies.experiment import Metric, describe
from slotkern.studies.papers import published
from slotkern.studies.study import Algorithm, Setting

__all__ = ["Comparison", "Estimate", "Median", "Summary", "TwinComparison"]


@dataclass(frozen=True)
class Estimate:
    """A mean over the cycles that have a value, with its standard error."""

    mean: float
    error: float
    count: int
    missing: int = 0


@dataclass(frozen=True)
class Median:
    """A median over the cycles, and its confidence interval of at least 95%.

    The interval is between two order statistics, so it holds for any distribution; NaN
    with fewer than six values.
    """

    middle: float
    low: float
    high: float
    count: int

    @classmethod
    def from_values(cls, values: NDArray[np.float64]) -> Median:
        """Return the median of the values that are not NaN."""
        known = np.sort(values[~np.isnan(values)])
        count = len(known)
        if not count:
            return cls(math.nan, math.nan, math.nan, 0)
        # Binomial probabilities relative to the middle one, which avoids underflow.
        middle = count // 2
        step = np.arange(middle, dtype=np.float64)
        left = np.cumprod((middle - step) / (count - middle + 1 + step))[::-1]
        total = 2 * left.sum() + (1 if count % 2 == 0 else 2)
        k = int((np.cumsum(left) <= 0.025 * total).sum())
        low, high = (known[k - 1], known[count - k]) if k else (math.nan, math.nan)
        return cls(float(np.median(known)), float(low), float(high), count)


@dataclass(frozen=True)
class Comparison:
    """One number of the report, next to the published number, if there is one.

    With `best` the number is the advantage of that algorithm, as a share or, with
    `ratio`, as the ratio of the larger to the smaller mean. `twin` is the same number
    by the paper's own algorithm on the first cycles, and `remarks` are indices of the
    study's remarks on this number.
    """

    label: str
    algorithm: str
    metric: str
    setting: Setting
    obtained: Estimate
    published: float | None
    best: str | None = None
    twin: Estimate | None = None
    remarks: tuple[int, ...] = ()
    ratio: bool = False

    @property
    def percent(self) -> bool:
        """True if the number is a share, which is printed as a percentage."""
        return self.best is not None and not self.ratio

    @property
    def difference(self) -> float | None:
        """The obtained minus the published number."""
        return None if self.published is None else self.obtained.mean - self.published

    @property
    def agrees(self) -> bool | None:
        """True if the difference is within three standard errors of the obtained mean.

        None if there is nothing to compare.
        """
        if self.difference is None or not self.obtained.count:
            return None
        return bool(abs(self.difference) <= 3 * self.obtained.error + 1e-9)


@dataclass(frozen=True)
class TwinComparison:
    """An exact search compared with its published twin on the same first cycles.

    `gain` is the mean improvement by the exact search over the cycles in which both
    found a window; `better` and `worse` count these cycles by sign, and `only` counts
    those in which only the exact search found a window.
    """

    algorithm: Algorithm
    metric: str
    exact: Estimate
    twin: Estimate
    gain: Estimate
    better: int
    worse: int
    only: int


class Summary:
    """Estimates of a finished campaign, computed on first use.

    Parameters
    ----------
    campaign : Campaign
        A campaign whose chunks are all on disk.

    Examples
    --------
    >>> import tempfile
    >>> from slotkern import studies
    >>> from slotkern.studies.summary import Summary
    >>> study = studies.load_study("aep")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     campaign = studies.run(study, 5, out=folder, published_cycles=0)
    ...     Summary(campaign).estimate(study.settings[0], "amp", "start").mean
    0.0
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.study = campaign.study
        self._moments: dict[tuple[str, bool], _Moments] = {}

    def metric(self, name: str) -> Metric:
        """Return the description of a metric."""
        return describe(self.study, name)

    def place(self, setting: Setting) -> str:
        """Return a text that distinguishes a setting from the study's others."""
        alike = [s for s in self.study.settings if not s.values]
        if setting.values or len(alike) < 2:
            return setting.label
        return setting.sweep.replace("_", " ")

    def estimate(self, setting: Setting, algorithm: str, metric: str) -> Estimate:
        """Return the mean of a metric of an algorithm in a setting."""
        published = _is_published(setting, algorithm)
        key = setting.name, published
        if key not in self._moments:
            chunks = self.campaign.chunks(setting, published=published)
            self._moments[key] = _gather(map(self._columns, chunks))
        return self._moments[key].estimate(f"{algorithm}.{metric}")

    def median(self, setting: Setting, algorithm: str, metric: str) -> Median:
        """Return the median of a metric of an algorithm in a setting.

        Memory: one number per cycle.
        """
        columns = [one for (one,) in self._joined(setting, metric, algorithm)]
        return Median.from_values(np.concatenate(columns) if columns else np.empty(0))

    def cycles_where(
        self,
        setting: Setting,
        metric: str,
        names: Sequence[str],
        holds: Callable[[Sequence[float]], bool],
    ) -> tuple[int, int]:
        """Count the cycles in which a condition holds; returns (count, all cycles).

        Only cycles in which each of the algorithms has a value are counted.
        """
        holding = total = 0
        for columns in self._joined(setting, metric, *names):
            rows = np.stack(columns, axis=1)
            rows = rows[~np.isnan(rows).any(axis=1)]
            total += len(rows)
            holding += sum(bool(holds(row)) for row in rows.tolist())
        return holding, total

    def advantage(
        self, setting: Setting, best: str, other: str, metric: str
    ) -> Estimate:
        """Return 1 - smaller/larger of two algorithms' means over their common cycles.

        The standard error is that of a ratio of means over the same cycles.
        """
        moments = _Moments()
        for a, b in self._joined(setting, metric, best, other):
            both = ~np.isnan(a) & ~np.isnan(b)
            x_values, y_values = np.where(both, a, np.nan), np.where(both, b, np.nan)
            moments.add("x", x_values)
            moments.add("y", y_values)
            moments.add("plus", x_values + y_values)
            moments.add("minus", x_values - y_values)
        x, y = moments.estimate("x"), moments.estimate("y")
        if self.metric(metric).more_is_better:
            x, y = y, x
        if not x.count or not y.mean:
            return Estimate(math.nan, math.nan, 0, x.missing)
        ratio = x.mean / y.mean
        covariance = (moments.variance("plus") - moments.variance("minus")) / 4
        vx, vy = x.error**2 * x.count, y.error**2 * y.count
        variance = vx - 2 * ratio * covariance + ratio**2 * vy
        error = math.sqrt(max(variance, 0.0) / x.count) / abs(y.mean)
        return Estimate(1 - ratio, error, x.count, x.missing)

    def step(
        self, before: Setting, after: Setting, algorithm: str, metric: str
    ) -> Estimate:
        """Return the increase of an algorithm's metric from one setting to another.

        The mean is taken over the cycles in which both settings have a value.
        """
        moments, name = _Moments(), f"{algorithm}.{metric}"
        pairs = [
            self.campaign.chunks(each, published=_is_published(each, algorithm))
            for each in (before, after)
        ]
        for a, b in zip(*pairs, strict=True):
            moments.add(name, self._columns(b)[name] - self._columns(a)[name])
        return moments.estimate(name)

    def lead(
        self, setting: Setting, name: str, other: str, metric: str, times: float = 1.0
    ) -> Estimate:
        """Return the mean of an algorithm's metric minus `times` another's.

        The mean is taken over the cycles in which both have a value.
        """
        moments = _Moments()
        for here, there in self._joined(setting, metric, name, other):
            moments.add(metric, here - times * there)
        return moments.estimate(metric)

    def gain(
        self, setting: Setting, name: str, rival: str, metric: str, other: str
    ) -> tuple[Estimate, float, float]:
        """Return the difference of an algorithm's advantages by two metrics.

        An advantage over a rival is one minus the ratio of the means, over the cycles
        with all four values. Returns the difference, with the error of the linearized
        ratios, and the two advantages.
        """
        joined = zip(
            self._joined(setting, metric, name, rival),
            self._joined(setting, other, name, rival),
            strict=True,
        )
        parts = [np.stack([*a, *b], axis=1) for a, b in joined]
        rows = np.concatenate(parts) if parts else np.empty((0, 4))
        rows = rows[~np.isnan(rows).any(axis=1)]
        if not len(rows):
            return Estimate(math.nan, math.nan, 0), math.nan, math.nan
        mine, theirs, mine_other, theirs_other = rows.T
        by, by_other = (
            mine.mean() / theirs.mean(),
            mine_other.mean() / theirs_other.mean(),
        )
        spread = (mine_other - by_other * theirs_other) / theirs_other.mean()
        spread -= (mine - by * theirs) / theirs.mean()
        error = spread.std(ddof=1) / math.sqrt(len(rows)) if len(rows) > 1 else math.nan
        gain = Estimate(float(by_other - by), float(error), len(rows))
        return gain, float(1 - by), float(1 - by_other)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The rows that the study's tables ``[[compare]]`` define, in their order."""
        rows: list[Comparison] = []
        for record in self.study.compare:
            rows.extend(self._compared(record))
        return rows

    def compare_twins(self, setting: Setting) -> list[TwinComparison]:
        """Compare each algorithm that has a twin with its twin."""
        return [
            self._compare_twin(setting, algorithm, algorithm.twin.name)
            for algorithm in setting.algorithms
            if algorithm.twin is not None and self.campaign.published_cycles > 0
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the estimate of every algorithm and metric in every setting."""
        for setting in self.study.settings:
            published = setting.published if self.campaign.published_cycles else ()
            for algorithm in (*setting.exact, *published):
                for metric in setting.metrics:
                    got = self.estimate(setting, algorithm.name, metric)
                    medians: dict[str, float] = {}
                    if metric in self.study.medians:
                        found = self.median(setting, algorithm.name, metric)
                        medians = {
                            "median": found.middle,
                            "median_low": found.low,
                            "median_high": found.high,
                        }
                    yield {
                        "setting": setting.name,
                        **setting.values,
                        "algorithm": algorithm.name,
                        "metric": metric,
                        "mean": got.mean,
                        "standard_error": got.error,
                        "cycles": got.count,
                        "missing": got.missing,
                        **medians,
                    }

    def _columns(self, chunk: Chunk) -> dict[str, NDArray[np.float64]]:
        """Return one array of cycles for each ``algorithm.metric`` of a chunk."""
        arrays = self.campaign.read(chunk)
        return {
            f"{algorithm.name}.{metric}": values[:, index].astype(np.float64)
            for metric, values in arrays.items()
            for index, algorithm in enumerate(chunk.algorithms)
        }

    def _compare_twin(
        self, setting: Setting, algorithm: Algorithm, twin: str
    ) -> TwinComparison:
        name, metric = algorithm.name, algorithm.aim
        sign = 1.0 if self.metric(metric).more_is_better else -1.0
        moments = _Moments()
        better = worse = only = 0
        for here, there in self._joined(setting, metric, name, twin):
            gain = sign * (here - there)
            # Sums in another order differ by rounding, which is not a gain.
            noise = 1e-9 * np.abs(there)
            better += int((gain > noise).sum())
            worse += int((gain < -noise).sum())
            only += int((~np.isnan(here) & np.isnan(there)).sum())
            moments.add("exact", here)
            moments.add("twin", there)
            moments.add("gain", gain)
        exact, paper, gained = map(moments.estimate, ("exact", "twin", "gain"))
        return TwinComparison(
            algorithm, metric, exact, paper, gained, better, worse, only
        )

    def _joined(
        self, setting: Setting, metric: str, *names: str
    ) -> Iterator[list[NDArray[np.float64]]]:
        """Yield, per chunk, a metric of several algorithms on the same cycles."""
        published = [_is_published(setting, name) for name in names]
        whole: Chunk | None = None
        exact: dict[str, NDArray[np.float64]] = {}
        for chunk in self.campaign.chunks(setting, published=any(published)):
            columns = self._columns(chunk)
            if any(published) and not all(published):
                if whole is None or chunk.first >= whole.last:
                    whole = next(self.campaign.chunks(setting, start=chunk.first))
                    exact = self._columns(whole)
                part = slice(chunk.first - whole.first, chunk.last - whole.first)
                columns |= {name: values[part] for name, values in exact.items()}
            yield [columns[f"{name}.{metric}"] for name in names]

    def _compared(self, record: Mapping[str, Any]) -> Iterator[Comparison]:
        """Yield the rows of one ``[[compare]]`` table."""
        settings = self.study.sweep_of(record)
        figures = published(record.get("published", {}))
        if isinstance(figures, list) and len(settings) == 1:
            figures = dict(zip(record["against"], figures, strict=True))
        if not isinstance(figures, Mapping):
            figures = dict.fromkeys(record["against"], figures)
        running = settings[0].algorithms
        rows = []
        for name in record.get("against", figures):
            figure = figures.get(name)
            if isinstance(figure, str):  # the paper gives no number
                continue
            along = figure if isinstance(figure, list) else [figure] * len(settings)
            readings = [name]
            if "best" not in record:
                readings += [a.name for a in running if a.beside == name]
            rows += [
                self._row(record, setting, reading, number)
                for setting, number in zip(settings, along, strict=True)
                for reading in readings
            ]
        if record.get("worst"):  # the algorithm with the largest distance to the best
            rows = [max(rows, key=lambda row: row.obtained.mean)]
        yield from rows

    def _row(
        self,
        record: Mapping[str, Any],
        setting: Setting,
        name: str,
        figure: float | None,
    ) -> Comparison:
        """Make one row: a mean, or the advantage of the best over another."""
        labels = {a.name: a.label for a in setting.algorithms}
        metric, best = record["metric"], record.get("best")
        known = self.metric(metric)
        ratio = bool(record.get("ratio"))
        twin = None
        if best is None:
            obtained = self.estimate(setting, name, metric)
            if not known.shared and self._has_twin(setting, name):
                twin = self.estimate(setting, f"{name}.published", metric)
            label = known.label if known.shared else f"{known.label}, {labels[name]}"
        else:
            obtained = self.advantage(setting, best, name, metric)
            shown = _as_ratio if ratio else (lambda share: share)
            if self._has_twin(setting, best) and self._has_twin(setting, name):
                pair = f"{best}.published", f"{name}.published"
                twin = shown(self.advantage(setting, *pair, metric))
            obtained = shown(obtained)
            words = "{} against {}, times" if ratio else "{} better than {}"
            label = f"{known.label}, {words.format(labels[best], labels[name])}"
        where = self.place(setting)
        if where:
            label += f", {where}"
        row = Comparison(
            label, name, metric, setting, obtained, figure, best, twin, ratio=ratio
        )
        beside = {a.beside for a in setting.algorithms if a.name == name}
        return replace(row, remarks=tuple(self._remarks(row, {name, best} | beside)))

    def _remarks(self, row: Comparison, concerned: set[str | None]) -> Iterator[int]:
        """Yield the remarks on a row; "unmatched" ones only if the numbers differ."""
        for index, remark in enumerate(self.study.remarks):
            of_this = row.metric in remark.get("metrics", ()) and (
                concerned & set(remark.get("algorithms", ()))
            )
            if of_this and (remark["kind"] != "unmatched" or row.agrees is False):
                yield index

    def _has_twin(self, setting: Setting, name: str) -> bool:
        """Return whether the published twin of an algorithm ran."""
        return self.campaign.published_cycles > 0 and any(
            a.name == name and a.twin is not None for a in setting.algorithms
        )


class _Moments:
    """Counts, means and sums of squared deviations of named columns."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, int, float, float]] = {}

    def add(self, name: str, values: NDArray[np.float64]) -> None:
        """Merge a chunk's values; NaN counts as missing (Chan et al., pairwise)."""
        found = values[~np.isnan(values)]
        count, missing, mean, squares = self._of.get(name, (0, 0, 0.0, 0.0))
        missing += values.size - found.size
        if found.size:
            here = float(found.mean())
            total = count + found.size
            shift = here - mean
            squares += float(((found - here) ** 2).sum())
            squares += shift**2 * count * found.size / total
            mean += shift * found.size / total
            count = total
        self._of[name] = count, missing, mean, squares

    def variance(self, name: str) -> float:
        """Return the sample variance, NaN with fewer than two values."""
        count, _, _, squares = self._of[name]
        return squares / (count - 1) if count > 1 else math.nan

    def estimate(self, name: str) -> Estimate:
        """Return mean and standard error of a column."""
        count, missing, mean, _ = self._of.get(name, (0, 0, math.nan, 0.0))
        if not count:
            return Estimate(math.nan, math.nan, 0, missing)
        return Estimate(mean, math.sqrt(self.variance(name) / count), count, missing)


def _as_ratio(share: Estimate) -> Estimate:
    """Convert an advantage 1 - smaller/larger to larger/smaller, perhaps inf."""
    rest = 1 - share.mean
    if not rest:
        return replace(share, mean=math.inf, error=math.nan)
    return replace(share, mean=1 / rest, error=share.error / rest**2)


def _is_published(setting: Setting, name: str) -> bool:
    """Return whether an algorithm is a published one, run on the first cycles."""
    return any(algorithm.name == name for algorithm in setting.published)


def _gather(chunks: Iterable[Mapping[str, NDArray[np.float64]]]) -> _Moments:
    moments = _Moments()
    for columns in chunks:
        for name, values in columns.items():
            moments.add(name, values)
    return moments
