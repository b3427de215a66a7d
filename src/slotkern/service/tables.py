"""Tables of jobs as bodies of requests: streams of Arrow with a row for each job.

The columns are those of a file of jobs of the command line (`rows_of`), without those
of jobs of several parts. A stream of few bytes can need much memory: by compression,
by texts of many rows that share their bytes, and by types without bytes. So compressed
streams, other types than those of `_is_allowed` and long texts are refused before any
value is converted. Cost: linear in the bytes of the body, where a dictionary counts
again for each batch of rows, and in the cells of the table.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from slotkern._kernels.request import Request
from slotkern.files.arrow import arrow_file, pyarrow
from slotkern.files.columns import InputError, distinct_names, row_place
from slotkern.foundation.checks import quote
from slotkern.machine.frames import FileColumns, columns_of
from slotkern.machine.jobs import COMPOUND_COLUMNS, request_of_row, rows_of
from slotkern.service.inputs import MOST_TEXT
from slotkern.service.problems import Problem

__all__ = ["ARROW", "JobTable", "read_job_table"]

#: The type of a stream of Arrow, as a body and as a response.
ARROW = "application/vnd.apache.arrow.stream"

#: Bytes of all texts of a table in memory, where each row is as wide as the longest.
_MOST_TEXT_BYTES = 2**25
_BODY = "body"  # the name of the table in errors
_COMPRESSION = 3  # the position of this field in a RecordBatch of Arrow's format
_VERSION = 4  # V5; older streams may be compressed in another way


class JobTable(NamedTuple):
    """A table of jobs: its columns, for errors, and the request of each row."""

    columns: FileColumns
    requests: list[Request]


def read_job_table(data: bytes, most: int) -> JobTable:
    """Return the jobs of a stream of Arrow.

    Parameters
    ----------
    data : bytes
        The body of a request.
    most : int
        The number of jobs that are allowed.

    Raises
    ------
    Problem
        413 for more jobs or longer texts than are allowed.
    ValueError, TypeError
        For other bytes, compressed ones, and invalid tables; the message contains the
        row, the column and the value.
    """
    try:
        table = _table_of(data, most)
        _check_texts(table)
        columns = _columns_of(table)
    except InputError as fault:
        raise fault.error(_BODY, row_place) from None
    except (Problem, ModuleNotFoundError):
        raise
    except Exception as error:  # any error of the parser
        reason = " ".join(str(error).split())
        raise ValueError(f"the body is no table of Arrow: {reason:.200}") from None
    for name in COMPOUND_COLUMNS:
        if name in columns:
            raise ValueError(
                f"{_BODY}: the column {name!r} makes jobs of several parts, which a "
                "service does not support"
            )
    rows = rows_of(columns, name=_BODY)
    requests = [request_of_row(row, i, _BODY) for i, row in enumerate(rows)]
    return JobTable(columns, requests)


def _table_of(data: bytes, most: int) -> Any:
    """Return the table of a stream whose types and number of rows are allowed."""
    pa, ipc, source = pyarrow(), pyarrow("ipc"), arrow_file(data)
    for message in ipc.MessageReader.open_stream(arrow_file(data)):
        if _is_compressed(message.metadata.to_pybytes(), message.type):
            raise InputError("the stream is compressed or older than Arrow 1.0")
    with ipc.open_stream(source) as stream:
        schema = stream.schema
        distinct_names(schema.names)
        for field in schema:
            if not _is_allowed(field.type):
                raise InputError(
                    f"column {field.name!r:.80} is of type {field.type!s:.80}; allowed "
                    "are numbers, texts, dates, durations and dictionaries of texts"
                )
        batches, count = [], 0
        for batch in stream:
            count += batch.num_rows
            if count > most:
                raise Problem(
                    413, f"the body has {count} jobs; at most {most} are allowed"
                )
            batch.validate(full=True)
            batches.append(batch)
    if source.tell() != len(data):  # another table, whose jobs would be lost
        raise InputError(f"{len(data) - source.tell():,} bytes follow the table")
    return pa.Table.from_batches(batches, schema)


def _columns_of(table: Any) -> FileColumns:
    """Convert a table to columns; the error of a value has the name of its column."""
    found: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            found |= columns_of({name: column}, _BODY)
        except pyarrow().ArrowException as error:  # such as a date that is too late
            reason = " ".join(str(error).split())
            raise InputError(f"column {name!r:.80}: {reason:.200}") from None
    return FileColumns(found, _BODY)


def _is_compressed(message: bytes, kind: str) -> bool:
    """Return whether the metadata of a message of Arrow may have compressed buffers.

    pyarrow does not report it before it allocates what the stream claims to need. The
    metadata are flatbuffers that pyarrow has verified.
    """

    def target(at: int) -> int:
        found: int = at + struct.unpack_from("<I", message, at)[0]
        return found

    def field(table: int, number: int) -> int:
        """Return the position of a field; 0 if it is absent."""
        (back,) = struct.unpack_from("<i", message, table)
        (size,) = struct.unpack_from("<H", message, table - back)
        at = 4 + 2 * number
        offset: int = 0
        if at < size:
            (offset,) = struct.unpack_from("<H", message, table - back + at)
        return table + offset if offset else 0

    root = target(0)
    at = field(root, 0)
    if not at or struct.unpack_from("<h", message, at)[0] != _VERSION:
        return True
    if kind not in ("record batch", "dictionary"):
        return False
    header = target(field(root, 2))
    if kind == "dictionary":
        header = target(field(header, 1))
    return field(header, _COMPRESSION) != 0


def _is_allowed(kind: Any) -> bool:
    """Return whether a column may be of a type of Arrow."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return _is_text(kind) or any(
        test(kind)
        for test in (
            *(types.is_integer, types.is_floating, types.is_boolean, types.is_null),
            *(types.is_timestamp, types.is_date, types.is_duration),
        )
    )


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _check_texts(table: Any) -> None:
    """Refuse texts with a NUL, long ones, and more than fit in the allowed memory."""
    pa, pc = pyarrow(), pyarrow("compute")
    size = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        row = 0
        longest = 0
        for chunk in column.chunks:
            words, rows = chunk, None
            if pa.types.is_dictionary(chunk.type):
                words, rows = chunk.dictionary, chunk.indices
            if not _is_text(words.type):
                break
            lengths, nul = pc.utf8_length(words), pc.match_substring(words, "\0")
            if rows is not None:
                lengths, nul = pc.take(lengths, rows), pc.take(nul, rows)
            if pc.any(nul).as_py():
                at = row + pc.index(nul, True).as_py()
                raise InputError(f"column {name!r:.80}: the text has a NUL", at)
            most = pc.max(lengths).as_py() or 0
            if most > MOST_TEXT:
                raise InputError(
                    f"column {name!r:.80}: the text has {most:,} characters, and at "
                    f"most {MOST_TEXT:,} are allowed",
                    row + pc.index(lengths, most).as_py(),
                )
            row, longest = row + len(chunk), max(longest, most)
        size += 4 * longest * table.num_rows
        if size > _MOST_TEXT_BYTES:
            raise Problem(
                413,
                f"the texts of the table, up to the column {quote(name)}, would take "
                f"{size:,} bytes in memory; at most {_MOST_TEXT_BYTES:,} are allowed",
            )
