"""Campaigns: thousands of cycles, in parallel, on disk as they finish, resumable.

A campaign is cut into chunks of consecutive cycles. Whoever computes a chunk, its
contents are the same; the process that started the campaign writes each one, as soon
as it is finished, to a file of its own, first under a temporary name. A file with its
final name is therefore complete, and a campaign resumes by computing what is missing.
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

from slotkern.extras import extra
from slotkern.files.atomic import make_folder, open_atomic
from slotkern.studies.experiment import compute, experiment_of
from slotkern.studies.fields import as_count
from slotkern.studies.study import Algorithm, Setting, Study

__all__ = ["Campaign", "Chunk", "run"]

#: The papers' own algorithms are slow: their chunks are at least this much shorter.
_SHORTER = 10

#: So many worker processes at most for each processor of the machine.
_WORKERS = 16


@dataclass(frozen=True)
class Chunk:
    """Consecutive cycles of one setting: exact algorithms, or published ones."""

    setting: Setting
    published: bool
    first: int
    last: int

    @property
    def algorithms(self) -> tuple[Algorithm, ...]:
        """What runs on each of these cycles."""
        return self.setting.published if self.published else self.setting.exact

    @property
    def file_name(self) -> str:
        """The name of the file that holds the results."""
        return next(self.file_names(self.last, self.last))

    def file_names(self, least: int, most: int) -> Iterator[str]:
        """Yield the names of those that begin alike and end so soon and so late."""
        part = "published" if self.published else "cycles"
        for last in range(least, most + 1):
            yield f"{self.setting.name}.{part}-{self.first:07d}-{last:07d}.parquet"


@dataclass(frozen=True)
class Campaign:
    """The results of a study's cycles in a folder.

    Attributes
    ----------
    study : Study
        What was run.
    folder : Path
        ``cycles/*.parquet`` holds one row per cycle and algorithm (any Parquet reader
        takes the folder ``cycles`` as one data set), ``study.json`` what was run.
    cycles, published_cycles : int
        How many cycles; on how many of them the published algorithms ran.
    """

    study: Study
    folder: Path
    cycles: int
    published_cycles: int

    def chunks(
        self, setting: Setting, *, published: bool = False, start: int = 0
    ) -> Iterator[Chunk]:
        """Yield the chunks of one setting from a cycle on, in their order.

        A chunk of published algorithms lies within one of the exact ones.
        """
        cycles, step = setting.cycles(self.cycles), self._step(published)
        if published:
            cycles = min(cycles, self.published_cycles)
        if setting.published if published else setting.exact:
            for first in range(start - start % step, cycles, step):
                yield Chunk(setting, published, first, min(first + step, cycles))

    def _step(self, published: bool) -> int:
        """Return how many cycles a chunk has, if it is not the last."""
        whole = self.study.chunk
        if not published:
            return whole
        short = max(1, whole // _SHORTER)
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
        """Return where a chunk's results are, perhaps before others, or will be."""
        folder = self.folder / "cycles"
        end = chunk.first + self._step(chunk.published)
        held = (folder / name for name in chunk.file_names(chunk.last, end))
        return next((p for p in held if p.exists()), folder / chunk.file_name)

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
    """Run the cycles of a study that are not yet in its folder.

    Parameters
    ----------
    study : Study
        What to run; see `load_study`.
    cycles : int, optional
        How many cycles; the study's own number if not given. A sweep with a share runs
        that share of them. A finished campaign can be continued with more cycles.
    out : path, optional
        The folder of the results, ``out/NAME`` if not given. If it holds part of the
        same study, only what is missing is computed, and the results are those of an
        uninterrupted run.
    workers : int
        How many processes (joblib's loky), at most 16 for each processor of this
        machine; the results do not depend on it.
    cluster : str or dask.distributed.Client, optional
        The address of a dask scheduler, or a client of one: its workers then do the
        work, and `workers` does not matter. They send results back; only the calling
        process needs to see the folder.
    published_cycles : int, optional
        On how many of the first cycles the papers' own algorithms run; the study's own
        number if not given.
    progress : bool
        Show a progress bar on stderr.

    Returns
    -------
    Campaign
        Where the results are.

    Raises
    ------
    ValueError
        For an impossible number, for a folder with results of something else, and for
        a study that asks the algorithms for something that does not exist.

    Notes
    -----
    Memory does not grow with the number of cycles. Killed at any moment, a campaign
    loses at most the chunks in work (``study.chunk`` cycles each).

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
    most = _WORKERS * (os.cpu_count() or 1)
    if as_count("workers", workers) > most:
        raise ValueError(
            f"workers: {workers} is more than {most}, {_WORKERS} for each processor of "
            "this machine"
        )
    if campaign.published_cycles:
        for setting in study.settings:
            experiment_of(study.experiment).rehearse(setting)
    _claim(campaign)
    if next(campaign.missing_chunks(), None) is None:
        return campaign
    with _Progress(campaign, shown=progress) as bar:
        missing = campaign.missing_chunks()
        for chunk, results in _computed(missing, workers, cluster):
            _write(campaign, chunk, results)
            bar.advance(chunk.last - chunk.first)
    return campaign


def _computed(
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
    """Run one chunk; what a worker process calls.

    A worker that is older than the study finds the study's own modules in the folders
    where the caller finds them.
    """
    sys.path += [folder for folder in modules if folder not in sys.path]
    setting = replace(chunk.setting, algorithms=chunk.algorithms)
    return chunk, compute(setting, chunk.first, chunk.last)


def _write(campaign: Campaign, chunk: Chunk, results: dict[str, NDArray[Any]]) -> None:
    """Write a chunk's file: complete, or not at all."""
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
    # All files have the same columns, so that they are one data set.
    for name in campaign.study.columns:
        none = np.full(rows, np.nan)
        columns[name] = pa.array(results.get(name, none).ravel())
    path = campaign.path(chunk)
    # Of a campaign that had fewer cycles: all files together are one data set. Killed
    # between, what is missing is computed again.
    for name in chunk.file_names(chunk.first + 1, chunk.last - 1):
        path.with_name(name).unlink(missing_ok=True)
    with open_atomic(path) as file:
        parquet.write_table(pa.table(columns), file, write_page_checksum=True)


def _claim(campaign: Campaign) -> None:
    """Make the folder this study's, or raise ValueError if it is another one's."""
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
    """Return words for the first difference between two plain values, or ''."""
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
    """A progress bar in cycles, with rate and time left, or nothing."""

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
        """Tell the bar that these many cycles are on disk."""
        if self._bar is not None:
            speed = self._bar.tasks[self._task].speed or 0.0
            self._bar.update(self._task, advance=cycles, rate=speed)
