"""Rows of the log, their bytes and their digests.

A row of the log is an `Entry`; all entries of one request of a client form a `Call`.
The body of a window is complete and little-endian:

    u8 format | u8 flags | u16 length of criterion | u32 n | criterion
    f64 start, finish, runtime, cost, processor_time, value, bound
    n i64 rows | n i32 nodes | n f64 lengths | n f64 costs
    JSON of the special fields, such as uses and account, in format 2
    JSON of share, counts and special fields in format 3

Flags: 1 proven, 2 ragged, 4 proven over the starts of slots only. A window without
special fields has format 1, a window of a `HostPool` format 3: ``share`` is what each
part takes of its node, null for whole nodes; ``counts`` the parts on each node, null
for one each.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.request import FIELDS, Request
from slotkern._kernels.windows import (
    ALL_STARTS,
    SLOT_STARTS,
    Window,
    _restore_window,
    body_from_window,
    windows_from_bodies,
)
from slotkern.expressions.limits import Limit
from slotkern.files.archive import read_archive, without_padding, write_archive
from slotkern.files.columns import InputError, MemoryLimit
from slotkern.foundation.amounts import amounts_of
from slotkern.foundation.checks import integer, quote
from slotkern.foundation.special_fields import SPECIAL_FIELDS, special_values
from slotkern.machine.jobs import Compound
from slotkern.pool.share_windows import ShareWindow, restore_share_window

__all__ = [
    "BOOKING_KINDS",
    "END_KINDS",
    "Call",
    "Entry",
    "Head",
    "Step",
    "body_row",
    "booking_row",
    "chain",
    "entry_record",
    "expiring_row",
    "how_text",
    "job_text",
    "nodes_row",
    "pack_arrays",
    "pack_window",
    "plain",
    "request_fields",
    "request_text",
    "to_json",
    "token_digest",
    "unpack_arrays",
    "unpack_window",
    "unpack_windows",
]

#: Kinds of entries whose body is a window, and kinds that end a booking.
BOOKING_KINDS = ("book", "hold")
END_KINDS = ("release", "expire")


class Entry(NamedTuple):
    """One change of the pool.

    The columns `name` to `cost` repeat the body of a window, for SQL. `of` is the
    version of the entry that this entry ends or confirms, `expires` the ledger time in
    microseconds at which a hold ends.
    """

    version: int
    kind: str
    of: int | None = None
    owner: str | None = None
    name: str | None = None
    start: float | None = None
    finish: float | None = None
    nodes: int | None = None
    cost: float | None = None
    expires: int | None = None
    body: bytes | None = None


class Step(NamedTuple):
    """The columns of an `Entry` that replay needs; the others repeat the body."""

    version: int
    kind: str
    of: int | None
    owner: str | None
    name: str | None
    start: float | None
    expires: int | None
    body: bytes | None


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return the columns of an entry for JSON, without its body and missing values."""
    fields = {k: v for k, v in entry._asdict().items() if v is not None}
    fields.pop("body", None)
    return fields


class Call(NamedTuple):
    """One request of a client, which made the entries `first` to `last`.

    `at` is the ledger time in microseconds since 1970, `what` the request as JSON,
    `asked` the digest of the request behind a token, and `answer` the part of the
    answer that the entries do not contain.
    """

    last: int
    first: int
    at: int
    client: int
    what: str
    token: str | None
    asked: bytes | None
    answer: str | None
    chain: bytes


class Head(NamedTuple):
    """The last version, the time and chain of its call, and the last pruned version."""

    version: int
    tick: int
    chain: bytes
    format: int
    pruned: int


# --- entries without their versions, which a turn assigns


def booking_row(
    window: Window, owner: str, expires: int | None = None
) -> tuple[Any, ...]:
    """Return the columns of the entry of a booking."""
    return (
        "book" if expires is None else "hold",
        None,
        owner,
        window.name,
        window.start,
        window.finish,
        len(window),
        window.cost,
        expires,
        pack_window(window),
    )


def expiring_row(row: tuple[Any, ...], expires: int | None) -> tuple[Any, ...]:
    """Return the columns of a booking with another end; None for none."""
    kind = "book" if expires is None else "hold"
    return (kind, *row[1:8], expires, row[9])


def body_row(kind: str, body: bytes, owner: str | None = None) -> tuple[Any, ...]:
    """Return the columns of an entry that has only a body and an owner."""
    return Entry(0, kind, owner=owner, body=body)[1:]


def nodes_row(
    kind: str, nodes: NDArray[Any], owner: str | None = None, **more: Any
) -> tuple[Any, ...]:
    """Return the columns of a change of nodes; `more` are other fields of its body."""
    data = {"nodes": nodes.tolist()} | more
    return body_row(kind, to_json(data).encode(), owner)


# --- windows

_FORMAT, _SPECIAL_FORMAT, _SHARE_FORMAT = 1, 2, 3
_HEADER = struct.Struct("<BBHI")
_TOTALS = struct.Struct("<7d")


@lru_cache(4096)
def _columns(n: int) -> struct.Struct:
    return struct.Struct(f"<{n}q{n}i{n}d{n}d")


def pack_window(window: Window) -> bytes:
    """Return the body of a window; its name is a column."""
    if type(window) is Window and not window.special and sys.byteorder == "little":
        return body_from_window(window)
    state = Window._state(window)  # the share is a part of the JSON
    proven, criterion, shape, parts = state[7:]
    word = criterion.encode()
    flags = proven | (shape == "ragged") << 1 | (window.proven_over != ALL_STARTS) << 2
    columns = [value for column in zip(*parts, strict=True) for value in column]
    form, special = _FORMAT, b""
    if isinstance(window, ShareWindow):
        taken = {"share": window.share, "counts": window.counts}
        form = _SHARE_FORMAT
        special = to_json(taken | {"special": window.special}).encode()
    elif window.special:
        form, special = _SPECIAL_FORMAT, to_json(window.special).encode()
    header = _HEADER.pack(form, flags, len(word), len(parts)) + word
    body: bytes = header + _TOTALS.pack(*state[:7])
    return body + _columns(len(parts)).pack(*columns) + special


def _special_of(data: bytes) -> dict[str, Any] | None:
    """Return the special fields at the end of a body."""
    try:
        given = json.loads(data)
        if not isinstance(given, dict) or not given.keys() <= SPECIAL_FIELDS.keys():
            raise ValueError(f"unknown fields {quote(given)}")
        return special_values(given)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"a window of invalid special fields: {error}") from None


def _share_of(data: bytes, n: int) -> tuple[Any, ...]:
    """Return share, counts and special fields at the end of a body of n nodes."""
    try:
        given = json.loads(data)
        share, counts, special = (given[key] for key in ("share", "counts", "special"))
        if share is not None:
            share = amounts_of("share", share)
        if counts is not None:
            counts = tuple(integer("count", count, 1) for count in counts)
            if len(counts) != n:
                raise ValueError(f"{len(counts)} counts for {n} nodes")
        if special is not None:
            special = _special_of(json.dumps(special).encode())
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ValueError(f"a window of an invalid share: {error}") from None
    return share, counts, special


def unpack_window(body: bytes, name: str | None = None, context: Any = None) -> Window:
    """Return the window of a body.

    Raises
    ------
    ValueError
        If the bytes are not a body of this format.
    """
    try:
        number, flags, length, n = _HEADER.unpack_from(body)
        if number not in (_FORMAT, _SPECIAL_FORMAT, _SHARE_FORMAT):
            raise ValueError(f"a window of format {number}")
        at = _HEADER.size + length
        totals = _TOTALS.unpack_from(body, at)
        first = at + _TOTALS.size
        last = first + _columns(n).size if number != _FORMAT else None
        values = _columns(n).unpack(body[first:last])
        criterion = body[_HEADER.size : at].decode()
    except struct.error as error:
        raise ValueError(f"a window of another length: {error}") from None
    parts = tuple(
        zip(*(values[i * n : (i + 1) * n] for i in range(4)), strict=True),
    )
    shape = "ragged" if flags & 2 else "square"
    over = SLOT_STARTS if flags & 4 else ALL_STARTS
    state = (*totals, bool(flags & 1), criterion, shape, parts, name, context, over)
    if number == _SHARE_FORMAT:
        share, counts, special = _share_of(body[last:], n)
        return restore_share_window((*state, special), share, counts)
    special = None if last is None else _special_of(body[last:])
    return _restore_window(*state, special)


def unpack_windows(
    bodies: list[bytes], names: list[str | None], context: Any = None
) -> list[Window]:
    """Return the windows of many bodies, by compiled code if numbers are stored alike.

    Equal to `unpack_window` of each.
    """
    if len(bodies) != len(names):
        raise ValueError(f"{len(bodies)} windows with {len(names)} names")
    if sys.byteorder == "little":
        try:
            return windows_from_bodies(bodies, names, context)
        except ValueError:
            pass  # some have special fields, or are invalid: each is read by itself
    pairs = zip(bodies, names, strict=True)
    return [unpack_window(body, name, context) for body, name in pairs]


# --- arrays


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return arrays as the bytes of an .npz file without pickles."""
    file = io.BytesIO()
    write_archive(file, arrays)
    return file.getvalue()


def unpack_arrays(body: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of `pack_arrays`; ValueError for other bytes."""
    try:
        return dict(read_archive(io.BytesIO(body), MemoryLimit(0, len(body), 1), False))
    except InputError as fault:
        raise ValueError(fault.reason) from None


# --- requests and digests


def to_json(value: Any) -> str:
    """Return compact JSON; what it cannot express becomes text."""
    return json.dumps(value, separators=(",", ":"), default=str)


def request_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request without those that have no effect.

    Arrays become digests of their bytes, so that equal texts mean equal requests.
    """
    fields = {}
    for name, value in request._fields().items():
        if value is None or (name == "limits" and not value):
            continue
        if name in FIELDS and value == FIELDS[name].default:
            continue
        fields[name] = plain(value)
    return fields


def plain(value: Any) -> Any:
    """Return a value for JSON; an array becomes the digest of its bytes."""
    if isinstance(value, np.ndarray):
        known = hashlib.blake2b(without_padding(value).tobytes(), digest_size=16)
        return f"array {value.dtype} {value.shape} {known.hexdigest()}"
    if isinstance(value, Limit):
        kind = [] if value.kind == "sum" else [value.kind]
        return [plain(value.of), value.side, value.amount, *kind]
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


@lru_cache(4096)
def _cached_text(request: Request, name: str | None) -> str:
    return to_json(request_fields(request))


def request_text(request: Request) -> str:
    """Return a request as JSON. Streams repeat few requests, so texts are cached."""
    try:  # requests of different names are equal, so the name is a part of the key
        return _cached_text(request, request.name)
    except TypeError:  # a field that is not hashable
        return to_json(request_fields(request))


@lru_cache(1024)
def _cached_how(*values: str | int | None) -> str:
    return to_json(values)


def how_text(owner: str, criterion: Any, shape: Any, delay: int | None) -> str:
    """Return the arguments of a search and booking as JSON."""
    if type(criterion) is type(shape) is str:
        return _cached_how(owner, criterion, shape, delay)
    return to_json([owner, plain(criterion), shape, delay])


def job_text(job: Request | Compound) -> str:
    """Return a request, or a job of several parts, as JSON."""
    if not isinstance(job, Compound):
        return request_text(job)
    more = [getattr(job, field, None) for field in ("budget", "gaps")]
    how = to_json([type(job).__name__, job.name, *more, [*job.labels]])
    return f'{{"job":{how},"parts":[{",".join(map(job_text, job.parts))}]}}'


def token_digest(what: str, *more: bytes) -> bytes:
    """Return the digest by which a token recognizes its request."""
    known = hashlib.blake2b(what.encode(), digest_size=16)
    for each in more:
        known.update(len(each).to_bytes(8, "little") + each)
    return known.digest()


_encode = json.JSONEncoder(separators=(",", ":")).encode
_string = json.encoder.encode_basestring_ascii


def _call_text(call: Sequence[Any]) -> str:
    """Return the fields of a call up to `answer` as JSON.

    As `_encode`, which takes most of the time of a booking's digest; all numbers are
    of type int.
    """
    last, first, at, client, what, token, asked, answer = call[:8]
    texts = [
        "null" if token is None else _string(token),
        "null" if asked is None else f'"{asked.hex()}"',
        "null" if answer is None else _string(answer),
    ]
    return f"[{last},{first},{at},{client},{_string(what)},{','.join(texts)}]"


def _entry_text(entry: Entry, size: int) -> str:
    """Return the fields of an entry, with the size of its body, as JSON."""
    version, kind, of, owner, name, start, finish, nodes, cost, expires, _ = entry
    if not (
        (type(start) is float and type(finish) is float and type(cost) is float)
        and (type(owner) is str and of is None and isfinite(start + finish + cost))
    ):  # JSON has other words for numbers that are not finite
        return _encode([*entry[:-1], size])
    title = "null" if name is None else _string(name)
    end = "null" if expires is None else expires
    return (
        f"[{version},{_string(kind)},null,{_string(owner)},{title},{start!r},"
        f"{finish!r},{'null' if nodes is None else nodes},"
        f"{cost!r},{end},{size}]"
    )


def chain(before: bytes, call: Sequence[Any], entries: Sequence[Entry]) -> bytes:
    """Return the digest of a call, its entries and the chain of the call before it.

    `call` has the fields of `Call` up to `answer`.
    """
    pieces = [before, _call_text(call).encode()]
    for entry in entries:
        body = entry[-1] or b""
        pieces += (_entry_text(entry, len(body)).encode(), body)
    return hashlib.blake2b(b"".join(pieces), digest_size=16).digest()
