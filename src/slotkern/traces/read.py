"""Reading and writing of workload traces: Standard and Grid Workload Format, sacct.

Files of the two formats are read in pieces by a compiled parser, in one pass and
O(bytes). Output of ``sacct -P`` is recognized by its first line.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.replay import LineError, TraceParser, format_rows
from slotkern.files.atomic import AnyPath, as_path, open_atomic, refuse_folder
from slotkern.foundation.checks import hint_keywords, integer, one_of
from slotkern.foundation.logger import log
from slotkern.traces.clean import clean_trace, repair_names
from slotkern.traces.sacct import is_sacct, jobs_of_sacct
from slotkern.traces.trace import GWF, SWF, WORDS, Trace

__all__ = ["is_sacct_file", "read_trace", "write_trace"]

#: The default limit for the size of a decompressed trace, in bytes.
MAX_BYTES = 2**30
_CHUNK = 2**18


@hint_keywords
def read_trace(
    path: AnyPath,
    *,
    clean: str | tuple[str, ...] | list[str] = (),
    errors: Literal["raise", "skip"] = "raise",
    max_bytes: int = MAX_BYTES,
    zone: str | None = None,
) -> Trace:
    """Read a workload trace.

    Parameters
    ----------
    path : path
        ``.swf`` (Standard Workload Format) or ``.gwf`` (Grid Workload Format), or
        either compressed: ``.swf.gz``, ``.gwf.gz``. Comment lines begin with ``;``, in
        the Grid Workload Format with ``#``. A file of any other suffix, such as
        ``.txt``, is read if its first line is that of ``sacct -P``: ``JobID|...``, with
        Submit, Start, End (or Elapsed), State and AllocCPUS.
    clean : str or sequence of str
        Repairs, in this order: ``"partial"``, ``"cancelled"``, ``"unknown"``,
        ``"zero-run"``, ``"too-wide"`` leave out jobs, ``"overrun"`` cuts run times,
        ``"order"`` sorts; see `clean_trace`.
    errors : {"raise", "skip"}
        The treatment of a malformed line: an error, or skipped and counted.
    max_bytes : int
        The largest allowed size of the decompressed file, in bytes.
    zone : str, optional
        The time zone of the local dates of ``sacct``; without it they are read as UTC.
        Not for the other formats.

    Returns
    -------
    Trace
        The jobs, one per row of ``.jobs``, and the header. Lines of the Standard
        Workload Format may have up to 64 further fields that the header names, by
        comments such as ``; 18: used_GPUs`` or by a first line of names. They become
        columns after the 18 of the format: numbers, or dictionary codes of ``.words``.

    Raises
    ------
    ValueError
        For a line of fewer than 18 (29) numbers or of a different number of fields than
        the first, a number beyond 2**53, a fraction in an integer field, a job
        submitted before the start of the trace; for a file that is empty, invalid gzip
        or larger than `max_bytes`, or in which ``errors="skip"`` leaves no job. The
        message contains the file, the line and the field.
    OSError
        If the file cannot be opened.

    Notes
    -----
    One pass, O(bytes); the file is read in pieces. Memory: 152 bytes per job (240 in
    the Grid Workload Format), twice that during a copy, and the comments.

    References
    ----------
    S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job
    schedulers", JSSPP 1999; D. Feitelson, "The Standard Workload Format", Parallel
    Workloads Archive; A. Iosup et al., "The Grid Workloads Archive", FGCS 24(7), 2008.

    Examples
    --------
    >>> import slotkern as sk
    >>> trace = sk.read_trace("KTH-SP2-1996-2.swf.gz")  # doctest: +SKIP
    >>> trace.jobs["run_time"].mean()  # doctest: +SKIP
    """
    one_of("errors", errors, ("raise", "skip"))
    max_bytes = integer("max_bytes", max_bytes, least=1)
    repair_names(clean)
    source = str(as_path(path))
    if is_sacct_file(source):
        return _read_sacct(source, clean, zone, errors == "skip", max_bytes)
    if zone is not None:
        raise ValueError(
            f"{source}: zone is for the output of sacct -P, but the first line has no "
            "heading JobID; leave zone out for other traces"
        )
    grid, packed = _kind(source)
    dtype, words, comment = (GWF, WORDS, "#") if grid else (SWF, (), ";")
    parser = TraceParser(dtype, words, comment, errors == "skip", not grid)
    size = 0
    try:
        with open(source, "rb") as file:
            for chunk in _chunks(file, packed):
                size += len(chunk)
                if size > max_bytes:
                    raise LineError(
                        f"more than {max_bytes:,} bytes when unpacked; "
                        "max_bytes= sets the limit"
                    )
                parser.feed(chunk)
        if size == 0:
            raise LineError("the file is empty")
        jobs, more_words = _with_further(parser.finish(), parser)
        jobs, early = _without_early(jobs, parser, errors == "skip")
    except LineError as error:
        place = ", " if str(error).startswith("line") else ": "
        count = re.search(r": (\d+) fields, not 18$", str(error))
        hint = ""
        if count and int(count[1]) > 18 and not grid:
            hint = (
                " (further fields need names: comments such as '; 18: gpus', or a "
                "first line of names)"
            )
        raise ValueError(f"{source}{place}{error}{hint}") from None
    trace = Trace(
        jobs,
        _header(parser.comments),
        parser.comments,
        {**parser.words, **more_words},
        source,
        parser.skipped + early,
        parser.remarks,
    )
    return _repaired(trace, clean)


def _repaired(trace: Trace, clean: Any) -> Trace:
    """Report the lines left out, and clean the trace."""
    source = trace.source
    if trace.skipped and not len(trace):
        first = (
            trace.remarks[0] if trace.remarks else "submitted before the trace begins"
        )
        raise ValueError(
            f"{source}: errors='skip' leaves no job: all {trace.skipped:,} lines are "
            f"malformed, the first: {first}"
        )
    if trace.skipped:
        first = f": {trace.remarks[0]}" if trace.remarks else ""
        log.warning("%s: %d lines left out%s", source, trace.skipped, first)
    return clean_trace(trace, clean) if clean else trace


def is_sacct_file(path: AnyPath) -> bool:
    """Return whether a file without a suffix of a trace is output of ``sacct -P``.

    Raises
    ------
    ValueError
        If such a file is empty: ``sacct`` prints errors elsewhere, and then nothing.
    OSError
        If the file cannot be read.
    """
    source = str(as_path(path))
    if Path(source.lower().removesuffix(".gz")).suffix in (".swf", ".gwf"):
        return False
    with open(source, "rb") as file:
        head = file.read(2**12)
    if not head:
        raise ValueError(f"{source}: the file is empty")
    return is_sacct(head.removeprefix(codecs.BOM_UTF8))


def _read_sacct(
    source: str, clean: Any, zone: str | None, skip: bool, max_bytes: int
) -> Trace:
    with open(source, "rb") as file:
        data = file.read(max_bytes + 1)
    try:
        if len(data) > max_bytes:
            raise LineError(f"more than {max_bytes:,} bytes; max_bytes= sets the limit")
        found = jobs_of_sacct(
            data.decode("utf-8-sig", "replace"), source, zone, skip=skip
        )
    except LineError as error:
        place = ", " if str(error).startswith("line") else ": "
        raise ValueError(f"{source}{place}{error}") from None
    trace = Trace(
        found.jobs,
        found.header,
        words=found.words,
        source=source,
        skipped=found.skipped,
        remarks=found.remarks,
    )
    return _repaired(trace, clean)


def write_trace(
    path: AnyPath,
    jobs: Trace | NDArray[Any],
    *,
    header: Mapping[str, str] | None = None,
) -> None:
    """Write jobs in the Standard Workload Format, atomically.

    Parameters
    ----------
    path : path
        ``.swf``, or ``.swf.gz`` to compress it; an existing file is replaced.
    jobs : Trace or structured array
        Jobs with fields of `SWF`; missing fields are unknown, further fields are left
        out. Words are written as their codes.
    header : mapping of str to str, optional
        The lines of the header; by default those of the trace.

    Raises
    ------
    ValueError
        For another suffix, and for values that the format cannot represent.
    TypeError
        If the jobs are not a structured array.
    OSError
        If the file cannot be written; an existing file is unchanged.

    Notes
    -----
    Reading the file restores the same numbers, bit by bit. O(n).

    Examples
    --------
    >>> import numpy as np, slotkern as sk
    >>> jobs = np.zeros(1, [("job", "i8"), ("submit", "f8"), ("run_time", "f8")])
    >>> sk.write_trace("small.swf", jobs)
    >>> sk.read_trace("small.swf").jobs["wait"]
    array([-1.])
    """
    if isinstance(path, Trace | np.ndarray):
        raise TypeError("write_trace(path, jobs): the path comes first")
    target = str(as_path(path))
    grid, packed = _kind(target)
    if grid:
        raise ValueError(f"{target}: only the Standard Workload Format is written")
    if header is None:
        header = jobs.header if isinstance(jobs, Trace) else {}
    data = trace_text(jobs.jobs if isinstance(jobs, Trace) else jobs, header)
    with open_atomic(path) as file:
        file.write(gzip.compress(data, 6, mtime=0) if packed else data)


def trace_text(jobs: NDArray[Any], header: Mapping[str, str]) -> bytes:
    """Format jobs and a header as the text of a Standard Workload Format file."""
    if not isinstance(jobs, np.ndarray) or jobs.dtype.names is None:
        raise TypeError(f"jobs must be a structured array, got {type(jobs).__name__}")
    rows = np.full(len(jobs), -1, SWF)
    for name in set(SWF.names or ()) & set(jobs.dtype.names):
        column = np.asarray(jobs[name])
        bad = ~(np.abs(column) <= 2.0**53)
        if SWF[name].kind == "i":
            bad |= column != np.floor(column)
        if bad.any():
            row = int(bad.argmax())
            what = "an integer" if SWF[name].kind == "i" else "a number"
            reason = f"{name} {column[row]} is not {what} within 2**53"
            raise ValueError(f"jobs: row {row}: {reason}")
        rows[name] = column
    lines = [
        f"; {name}: {part}"
        for name, text in header.items()
        for part in str(text).split("\n")
    ]
    top = "".join(line.replace("\r", " ") + "\n" for line in lines)
    return top.encode("latin-1", "replace") + format_rows(rows)


def _kind(path: str) -> tuple[bool, bool]:
    """Return whether a file is in the Grid Workload Format, and if it is compressed."""
    name = Path(path).name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix not in (".swf", ".gwf"):
        refuse_folder(Path(path))
        known = ".swf, .gwf, .swf.gz, .gwf.gz"
        raise ValueError(
            f"{path}: the suffix is not one of {known}, and the first line is not that "
            "of `sacct -P`"
        )
    return suffix == ".gwf", packed


def _chunks(file: BinaryIO, packed: bool) -> Iterator[bytes]:
    stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    try:
        yield stream.read(_CHUNK).removeprefix(codecs.BOM_UTF8)
        while chunk := stream.read(_CHUNK):
            yield chunk
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LineError(f"not a valid gzip file: {error}") from None


def _with_further(
    jobs: NDArray[Any], parser: TraceParser
) -> tuple[NDArray[Any], dict[str, tuple[str, ...]]]:
    """Return the jobs with the fields beyond the format, and their words.

    A field of numbers becomes a column of float64, any other a column of dictionary
    codes. A name that is a duplicate or no identifier is replaced by ``field_19`` (the
    number of the field from 1).
    """
    further = parser.further()
    if not further:
        return jobs, {}
    lines = re.findall(
        r"^[;#\s]*(\d{1,3})[ \t]*:[ \t]*(\w{1,60})", parser.comments, re.M
    )
    titles = {int(number): name for number, name in lines}
    titles |= dict(enumerate(parser.names))
    taken, columns, words = set(jobs.dtype.names or ()), {}, {}
    for k, (codes, texts) in enumerate(further, len(taken)):
        name = titles.get(k, "")
        if not name.isidentifier() or name in taken:
            name = f"field_{k + 1}"
        taken.add(name)
        try:
            columns[name] = np.array([float(text) for text in texts])[codes]
        except ValueError:
            columns[name], words[name] = codes, texts
    more = [(name, column.dtype.str) for name, column in columns.items()]
    dtype = jobs.dtype.descr + more
    wide = np.empty(len(jobs), dtype)
    for name in jobs.dtype.names or ():
        wide[name] = jobs[name]
    for name, column in columns.items():
        wide[name] = column
    log.info("fields beyond the format are kept as %s", ", ".join(columns))
    return wide, words


def _without_early(
    jobs: NDArray[Any], parser: TraceParser, skip: bool
) -> tuple[NDArray[Any], int]:
    """Refuse, or leave out, jobs submitted before the start of the trace.

    A submission of -1 is unknown and kept. Returns the jobs and the number left out.
    """
    early = (jobs["submit"] < 0) & (jobs["submit"] != -1)
    if not early.any():
        return jobs, 0
    if not skip:
        row = int(early.argmax())
        reason = f"submit {jobs['submit'][row]:.17g} is before the trace begins"
        raise LineError(f"line {parser.line_of(row)}: {reason}")
    return jobs[~early], int(early.sum())


def _header(comments: str) -> dict[str, str]:
    header: dict[str, str] = {}
    for line in comments.splitlines():
        found = re.match(r"[;#]+\s*([A-Za-z][\w .()/-]{0,60}?)\s*:\s*(.*?)\s*$", line)
        if found:
            name, text = found.groups()
            header[name] = f"{header[name]}\n{text}" if name in header else text
    return header
