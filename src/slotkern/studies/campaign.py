"""Campaigns: thousands of cycles, computed in parallel and resumable.

A campaign is divided into chunks of consecutive cycles. A chunk's contents do not
depend on the process that computes it. The process that started the campaign writes
each finished chunk to a file of its own, first under a temporary name. A file with its
final name is therefore complete, and a campaign resumes by computing the missing
chunks.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slotkern.files.atomic import make_folder, open_atomic
from slotkern.foundation.extras import extra
from slotkern.studies.experiment import compute, experiment_of
from slotkern.studies.fields import as_count
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Campaign", "Chunk", "run"]

#: The papers' algorithms are slow: their chunks are shorter by at least this factor.
_PUBLISHED_FACTOR = 10

#: The largest number of worker processes per processor of the machine.
_WORKERS_PER_PROCESSOR = 16


@dataclass(frozen=True)
class Chunk:
    """Cycles first..last-1 of one setting, for its exact or published algorithms."""

    setting: Setting
    published: bool
    first: int
    last: int

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """The algorithms that run on each of these cycles."""
        return self.setting.published if self.published else self.setting.exact

    @property
    def file_name(self) -> str:
        """The name of the file with the results."""
        return next(self.file_names(self.last, self.last))

    def file_names(self, least: int, most: int) -> Iterator[str]:
        """Yield the names of chunks with this `first` and a `last` in least..most."""
        part = "published" if self.published else "cycles"
        for last in range(least, most + 1):
            yield f"{self.setting.name}.{part}-{self.first:07d}-{last:07d}.parquet"


@dataclass(frozen=True)
class Campaign:
    """The results of a study's cycles in a folder.

    Attributes
    ----------
    study : Study
        The study that was run.
    folder : Path
        ``cycles/*.parquet`` holds one row per cycle and algorithm (any Parquet reader
        can read the folder ``cycles`` as one data set); ``study.json`` identifies the
        study.
    cycles, published_cycles : int
        The number of cycles, and of the first cycles on which the published algorithms
        ran.
    """

    study: Study
    folder: Path
    cycles: int
    published_cycles: int

    def chunks(
        self, setting: Setting, *, published: bool = False, start: int = 0
    ) -> Iterator[Chunk]:
        """Yield the chunks of one setting in order, from the one with cycle `start`.

        A chunk of published algorithms is part of one chunk of the exact ones.
        """
        cycles, step = setting.cycles(self.cycles), self._step(published)
        if published:
            cycles = min(cycles, self.published_cycles)
        if setting.published if published else setting.exact:
            for first in range(start - start % step, cycles, step):
                yield Chunk(setting, published, first, min(first + step, cycles))

    def _step(self, published: bool) -> int:
        """Return the number of cycles of a chunk, except for the last one."""
        whole = self.study.chunk
        if not published:
            return whole
        short = max(1, whole // _PUBLISHED_FACTOR)
        return next(step for step in range(short, 0, -1) if whole % step == 0)

    def all_chunks(self) -> Iterator[Chunk]:
        """Yield every chunk of the campaign, those of published algorithms last."""
        for published in (False, True):
            for setting in self.study.settings:
                yield from self.chunks(setting, published=published)

    def missing_chunks(self) -> Iterator[Chunk]:
        """Yield the chunks that are not on disk yet."""
        return (c for c in self.all_chunks() if not self.path(c).exists())

    def path(self, chunk: Chunk) -> Path:
        """Return the file with a chunk's cycles, or the one to write if there is none.

        A campaign with more cycles may have written a longer file, which has them too.
        """
        folder = self.folder / "cycles"
        end = chunk.first + self._step(chunk.published)
        candidates = (folder / name for name in chunk.file_names(chunk.last, end))
        return next((p for p in candidates if p.exists()), folder / chunk.file_name)

    def read(self, chunk: Chunk) -> dict[str, NDArray[Any]]:
        """Return a finished chunk's columns, each of shape (cycles, algorithms)."""
        with extra():
            import pyarrow as pa
            import pyarrow.parquet as parquet

        path = self.path(chunk)
        try:
            table = parquet.ParquetFile(path, page_checksum_verification=True).read()
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{path} is damaged: {reason}; without it, its cycles run again"
            ) from None
        width, rows = len(chunk.algorithms), chunk.last - chunk.first
        return {
            name: table.column(name).to_numpy().reshape(-1, width)[:rows]
            for name in chunk.setting.metrics
        }


def run(
    study: Study,
    cycles: int | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: Any = None,
    published_cycles: int | None = None,
    progress: bool = False,
) -> Campaign:
    """Run the cycles of a study that are missing in its folder.

    Parameters
    ----------
    study : Study
        The study to run; see `load_study`.
    cycles : int, optional
        The number of cycles; by default the study's own number. The settings of a sweep
        with a ``share`` run that share of them, at least one. A finished campaign can
        be continued with more cycles.
    out : path, optional
        The folder of the results, ``out/NAME`` by default. If it contains part of the
        same study, only the missing cycles are computed, and the results equal those
        of an uninterrupted run.
    workers : int
        The number of processes (joblib's loky), at most 16 for each processor of this
        machine; the results do not depend on it.
    cluster : str or dask.distributed.Client, optional
        The address of a dask scheduler, or a client of one: its workers then compute
        the chunks, and `workers` is ignored. They send the results back; only the
        calling process needs access to the folder.
    published_cycles : int, optional
        The number of first cycles on which the papers' algorithms run; by default the
        study's own number.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Campaign
        The campaign, complete on disk.

    Raises
    ------
    ValueError
        For a number out of range, for a folder with results of another study or another
        version of slotkern, and for a study with a published algorithm that does not
        exist.

    Notes
    -----
    Memory does not grow with the number of cycles. A campaign that is killed loses at
    most the chunks in progress (``study.chunk`` cycles each).

    Examples
    --------
    >>> import tempfile
    >>> from slotkern import studies
    >>> study = studies.load_study("aep")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     campaign = studies.run(study, 5, out=folder, published_cycles=0)
    ...     len(list((campaign.folder / "cycles").glob("*.parquet")))
    12
    """
    campaign = Campaign(
        study,
        Path("out") / study.name if out is None else Path(out),
        as_count("cycles", study.cycles if cycles is None else cycles),
        as_count(
            "published_cycles",
            study.published_cycles if published_cycles is None else published_cycles,
            0,
        ),
    )
    most = _WORKERS_PER_PROCESSOR * (os.cpu_count() or 1)
    if as_count("workers", workers) > most:
        raise ValueError(
            f"workers: {workers} is more than {most}, {_WORKERS_PER_PROCESSOR} for "
            "each processor of this machine"
        )
    if campaign.published_cycles:
        for setting in study.settings:
            experiment_of(study.experiment).dry_run(setting)
    _claim_folder(campaign)
    if next(campaign.missing_chunks(), None) is None:
        return campaign
    with _Progress(campaign, shown=progress) as bar:
        missing = campaign.missing_chunks()
        for chunk, results in _compute_all(missing, workers, cluster):
            _write(campaign, chunk, results)
            bar.advance(chunk.last - chunk.first)
    return campaign


def _compute_all(
    chunks: Iterable[Chunk], workers: int, cluster: Any
) -> Iterator[tuple[Chunk, dict[str, NDArray[Any]]]]:
    """Yield chunks and their results as they finish, in any order."""
    with extra():
        import joblib

    with contextlib.ExitStack() as stack:
        if cluster is not None:
            client = cluster
            if isinstance(cluster, str):
                with extra():
                    from distributed import Client

                client = stack.enter_context(Client(cluster))
            stack.enter_context(joblib.parallel_config("dask", client=client))
        parallel = joblib.Parallel(
            workers, batch_size=1, return_as="generator_unordered"
        )
        yield from parallel(
            joblib.delayed(_compute)(chunk, sys.path) for chunk in chunks
        )


def _compute(
    chunk: Chunk, modules: Sequence[str]
) -> tuple[Chunk, dict[str, NDArray[Any]]]:
    """Run one chunk in a worker process.

    A worker that was started before the study was written imports the study's own
    modules from the caller's folders.
    """
    sys.path += [folder for folder in modules if folder not in sys.path]
    setting = replace(chunk.setting, algorithms=chunk.algorithms)
    return chunk, compute(setting, chunk.first, chunk.last)


def _write(campaign: Campaign, chunk: Chunk, results: dict[str, NDArray[Any]]) -> None:
    """Write a chunk's file atomically."""
    with extra():
        import pyarrow as pa
        import pyarrow.parquet as parquet

    names = [algorithm.name for algorithm in chunk.algorithms]
    cycles = np.arange(chunk.first, chunk.last, dtype=np.int32)
    rows = cycles.size * len(names)
    code: Any = pa.array(np.tile(np.arange(len(names), dtype=np.int32), cycles.size))
    columns: dict[str, Any] = {
        "setting": pa.array([chunk.setting.name] * rows).dictionary_encode(),
        "cycle": pa.array(cycles.repeat(len(names))),
        "algorithm": pa.DictionaryArray.from_arrays(code, pa.array(names)),
    }
    # All files have the same columns, so that they form one data set.
    for name in campaign.study.columns:
        none = np.full(rows, np.nan)
        columns[name] = pa.array(results.get(name, none).ravel())
    path = campaign.path(chunk)
    # Remove shorter files of a campaign with fewer cycles, because all files form one
    # data set. If the process is killed in between, the cycles are computed again.
    for name in chunk.file_names(chunk.first + 1, chunk.last - 1):
        path.with_name(name).unlink(missing_ok=True)
    with open_atomic(path) as file:
        parquet.write_table(pa.table(columns), file, write_page_checksum=True)


def _claim_folder(campaign: Campaign) -> None:
    """Record this study and the version of slotkern in the folder.

    Raises ValueError if the folder has results of another study or version. Without
    results, the record of another study is replaced.
    """
    from slotkern import __version__

    make_folder(campaign.folder / "cycles")
    path = campaign.folder / "study.json"
    mine = {"slotkern": __version__, **campaign.study.identity}
    mine = json.loads(json.dumps(mine))
    if path.exists():
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        difference = _difference("", theirs, mine)
        computed = any((campaign.folder / "cycles").glob("*.parquet"))
        if difference and computed:
            raise ValueError(
                f"{campaign.folder} holds the results of another study: {difference}; "
                "choose another folder"
            )
        if not difference:
            return
    with open_atomic(path) as file:
        file.write(json.dumps(mine, indent=1).encode())


def _difference(where: str, theirs: Any, mine: Any) -> str:
    """Describe the first difference between two plain values; '' if they are equal."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for key in theirs | mine:
            name = f"{where}.{key}" if where else key
            found = _difference(name, theirs.get(key), mine.get(key))
            if found:
                return found
        return ""
    if isinstance(theirs, list) and isinstance(mine, list):
        for index in range(max(len(theirs), len(mine))):
            pair = [
                part[index] if index < len(part) else None for part in (theirs, mine)
            ]
            found = _difference(f"{where}[{index}]", *pair)
            if found:
                return found
        return ""
    return "" if theirs == mine else f"there {where} is {theirs!r}, here {mine!r}"


class _Progress:
    """A progress bar in cycles, with rate and remaining time, or no output."""

    def __init__(self, campaign: Campaign, *, shown: bool) -> None:
        self._bar: Any = None
        if not shown:
            return
        with extra():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("cycles, {task.fields[rate]:.0f}/s, left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        left = sum(chunk.last - chunk.first for chunk in campaign.missing_chunks())
        total = sum(chunk.last - chunk.first for chunk in campaign.all_chunks())
        self._task = self._bar.add_task(
            campaign.study.name, total=total, completed=total - left, rate=0.0
        )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, cycles: int) -> None:
        """Advance the bar by the number of cycles that were written."""
        if self._bar is not None:
            speed = self._bar.tasks[self._task].speed or 0.0
            self._bar.update(self._task, advance=cycles, rate=speed)
