"""An independent check of a ledger: it reads the rows alone.

Nothing here uses the code that writes ledgers or the kernels of pools: bodies, chains
and overlaps are computed again from their definitions in `slotkern.ledger.codec`. All
rows are read in one transaction, so a ledger can be checked while others write.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import struct
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from slotkern.ledger.check_caps import Charge, CountedRules
from slotkern.ledger.check_shares import BodyShare, HostAmounts

__all__ = ["Report", "check_ledger"]

#: The number of violations after which the check stops.
_MOST = 100
#: Errors of bytes that are not what they should be.
_BROKEN = (
    *(ValueError, TypeError, LookupError, EOFError, OSError),
    *(struct.error, zipfile.BadZipFile, OverflowError, RecursionError),
)
_BOOKS, _ENDS = ("book", "hold"), ("release", "expire")


@dataclass
class Report:
    """The result of `SharedPool.check`.

    Attributes
    ----------
    version, calls, bookings, open : int
        The last version; the number of calls, of bookings, and of those that have
        neither ended nor passed.
    violations : list of str
        What is wrong, in the order of the log; empty if the ledger is sound.
    """

    version: int = 0
    calls: int = 0
    bookings: int = 0
    open: int = 0
    violations: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return True if the ledger is sound."""
        return not self.violations

    def __str__(self) -> str:
        """Return a line of counts and a line for each violation."""
        state = "sound" if self else f"{len(self.violations):,} violations"
        counts = f"version {self.version:,}, {self.calls:,} calls, "
        counts += f"{self.bookings:,} bookings, {self.open:,} open"
        return "\n".join([f"{state}: {counts}", *self.violations])


class _Stop(Exception):
    """The report has enough violations."""


class _Booked(NamedTuple):
    owner: str
    name: str
    expires: int | None
    body: bytes
    finish: float
    parts: list[tuple[int, float, float]]  # node, start, end
    charge: Charge | None  # of capacities; None for a reservation
    taken: BodyShare | None  # of shares; None for whole nodes of slots


def check_ledger(where: Path | str) -> Report:
    """Check all rows of a ledger in a file or at a URL; see `SharedPool.check`."""
    report = Report()
    with _sqlite(where) if isinstance(where, Path) else _postgres(where) as rows:
        try:
            _Judge(rows, report).judge()
        except _Stop:
            report.violations.append("more violations were not listed")
        except sqlite3.DatabaseError as error:
            report.violations.append(f"SQLite: {error}")
    return report


#: Returns the rows of a SELECT, which has ``?`` for values.
_Rows = Callable[..., Iterator[Any]]


@contextmanager
def _sqlite(path: Path) -> Iterator[_Rows]:
    if not path.exists():
        raise FileNotFoundError(2, "no such ledger", str(path))
    where = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(where, uri=True, isolation_level=None)) as connection:

        def rows(statement: str, *values: Any) -> Iterator[Any]:
            if not connection.in_transaction:
                connection.execute("BEGIN")
                (problem,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
                if problem != "ok":
                    raise sqlite3.DatabaseError(problem)
            return connection.execute(statement, values)

        yield rows


@contextmanager
def _postgres(url: str) -> Iterator[_Rows]:
    from slotkern.ledger.places import parse_url
    from slotkern.ledger.postgres import connect, ledger_errors

    address = parse_url(url)
    with ledger_errors(address.name), closing(connect(address)) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

        def rows(statement: str, *values: Any) -> Iterator[Any]:
            query = statement.replace("?", "%s").encode()
            if values:
                yield from connection.cursor(binary=True).execute(query, values)
                return
            with connection.cursor(f"c{next(numbers)}", binary=True) as cursor:
                cursor.itersize = 1000  # not all rows at once
                yield from cursor.execute(query)

        numbers = count()
        yield rows


class _Judge:
    """The state that the log describes, in plain Python."""

    def __init__(self, rows: _Rows, report: Report) -> None:
        self.rows, self.report = rows, report
        self.now = -np.inf
        self.slots: list[tuple[int, float, float]] = []  # node, start, end of each row
        self.gone: set[int] = set()
        self.open: dict[int, _Booked] = {}
        self.spans: dict[int, list[tuple[float, float, int]]] = {}  # of each node
        # Closed time of each node: start, end, owner, and True if disabled.
        self.closed: dict[int, list[tuple[float, float, str, bool]]] = {}
        self.caps = CountedRules()
        self.hosts: HostAmounts | None = None  # in a ledger of shares

    def fault(self, text: str) -> None:
        self.report.violations.append(text)
        if len(self.report.violations) >= _MOST:
            raise _Stop

    def judge(self) -> None:
        head = next(self.rows("SELECT version, tick, chain, pruned FROM head"), None)
        if head is None:
            self.fault("the head is missing")
            return
        version, tick, chain, pruned = head
        self.report.version = version
        (base,) = next(
            self.rows("SELECT count(*) FROM snapshots WHERE version = ?", pruned)
        )
        if not base:
            self.fault(f"there is no snapshot at version {pruned}, the first one kept")
            return
        snapshots = [v for (v,) in self.rows("SELECT version FROM snapshots")]
        try:
            self._start(pruned)
        except _BROKEN as error:
            self.fault(f"the snapshot {pruned} cannot be read: {error!r}")
            return
        last, at, known = pruned, 0, self._snapshot_chain(pruned)
        for call, entries in self._calls():
            self.report.calls += 1
            if call[1] != last + 1 or [e[0] for e in entries] != [
                *range(call[1], call[0] + 1)
            ]:
                self.fault(f"call {call[0]}: entries after version {last} are missing")
            if call[2] < at:
                self.fault(f"call {call[0]}: its time is before that of call {last}")
            known = _chain(known, call, entries)
            if known != call[8]:
                self.fault(f"call {call[0]}: the chain of digests breaks here")
                known = call[8]
            last, at = call[0], call[2]
            for entry in entries:
                self._entry(entry, at)
                if entry[0] in snapshots and entry[0] != last:
                    self.fault(f"the snapshot {entry[0]} divides call {last}")
            if last in snapshots and last != pruned:
                self._compare(last, known)
        (stray,) = next(self.rows("SELECT max(version) FROM entries"))
        if (last, at or tick, known) != (version, tick, chain) or (
            stray is not None and stray != last
        ):
            self.fault(f"the head is at version {version}, the log ends at {last}")
        live = [each for each in self.open.values() if each.finish > self.now]
        self.report.open = len(live)

    def _calls(self) -> Iterator[tuple[Any, list[Any]]]:
        entries = self.rows(
            "SELECT version, kind, of, owner, name, start, finish, nodes, cost, "
            "expires, body FROM entries ORDER BY version"
        )
        waiting = next(entries, None)
        for call in self.rows(
            "SELECT last, first, at, client, what, token, asked, answer, chain "
            "FROM calls ORDER BY last"
        ):
            mine = []
            while waiting is not None and waiting[0] <= call[0]:
                mine.append(waiting)
                waiting = next(entries, None)
            yield call, mine

    # --- snapshots

    def _snapshot(self, version: int) -> dict[str, Any]:
        (body,) = next(
            self.rows("SELECT body FROM snapshots WHERE version = ?", version)
        )
        return _arrays(body)

    def _snapshot_chain(self, version: int) -> bytes:
        rows = self.rows("SELECT chain FROM snapshots WHERE version = ?", version)
        chain: bytes = next(rows)[0]
        return chain

    def _start(self, version: int) -> None:
        arrays = self._snapshot(version)
        self.now = _now(arrays)
        if "resources" in arrays:
            self.hosts = HostAmounts(arrays)
        else:
            self.gone = set(arrays["gone"].tolist())
            self._add(arrays["origin"])
        for node, start, end, owner, disabled in arrays.get("closed", np.empty(0)):
            row = (float(start), float(end), str(owner), bool(disabled))
            self.closed.setdefault(int(node), []).append(row)
        self.caps.set_rules(_rules(arrays))
        for number, booked in _open_bookings(arrays).items():
            exceeded = self._occupy(number, booked)
            if exceeded and self.hosts is not None:
                self.fault(f"the snapshot {version}, {number}: {exceeded}")
        if self.hosts is not None:
            self.hosts.reserve_all(arrays)

    def _compare(self, version: int, chain: bytes) -> None:
        if self._snapshot_chain(version) != chain:
            self.fault(f"the snapshot {version} has another chain than the log")
        try:
            arrays = self._snapshot(version)
            theirs = _open_bookings(arrays)
            now, rules = _now(arrays), _rules(arrays)
            slots = self._different_slots(arrays)
        except _BROKEN as error:
            self.fault(f"the snapshot {version} cannot be read: {error!r}")
            return
        mine = {
            i: each._replace(parts=[])
            for i, each in self.open.items()
            if each.finish > self.now
        }
        theirs = {i: each._replace(parts=[]) for i, each in theirs.items()}
        if mine != theirs or now != self.now:
            self.fault(f"the snapshot {version} has other bookings than the log")
        if slots:
            self.fault(f"the snapshot {version} has other {slots} than the log")
        if rules != self.caps.rules:
            self.fault(f"the snapshot {version} has other capacities than the log")

    def _different_slots(self, arrays: dict[str, Any]) -> str:
        """Return what differs in the slots, or the amounts of nodes; "" for nothing."""
        if self.hosts is not None:
            nodes = arrays["rows booked"]["row"].tolist()
            amounts = arrays["rows booked_amounts"].tolist()
            other = HostAmounts(arrays)
            other.reserve_all(arrays)
            booked = zip(nodes, amounts, strict=True)
            return self.hosts.differences(other, booked, self.now)
        gone = set(arrays["gone"].tolist())
        rows = len(arrays["origin"])
        return "slots" if rows != len(self.slots) or gone != self.gone else ""

    # --- entries

    def _entry(self, entry: Any, at: int) -> None:
        version, kind, of, owner, name = entry[:5]
        try:
            if kind in _BOOKS:
                self._book(entry, at)
            elif kind in _ENDS or kind == "confirm":
                self._change(version, kind, of, at)
            elif kind == "advance":
                if not entry[5] > self.now:
                    self.fault(f"version {version}: the time goes back to {entry[5]}")
                self.now = entry[5]
            elif kind == "add":
                if self.hosts is None:
                    self._add(_arrays(entry[10])["slots"])
                else:
                    self.hosts.add(_arrays(entry[10])["amounts"])
            elif kind == "caps":
                self.caps.set_rules(json.loads(entry[10])["rules"])
            elif self.hosts is not None and kind in ("cover", "uncover"):
                self._reserve(kind, owner, entry[10])
            elif kind == "uncover":
                self._open_nodes(list(self.closed), owner)
            elif kind in ("remove", "disable", "enable", "cover"):
                self._nodes(kind, json.loads(entry[10]), owner)
            elif kind != "note" and not kind.startswith("x-"):
                self.fault(f"version {version}: the kind {kind!r} is unknown")
        except _BROKEN as error:
            self.fault(f"version {version} ({kind} {name or ''}): {error!r}")

    def _book(self, entry: Any, at: int) -> None:
        version, kind, _, owner, name, *columns, expires, body = entry
        self.report.bookings += 1
        totals, parts, charge, taken = _window(body)
        if (taken is None) != (self.hosts is None):
            raise ValueError("a window of another kind than the ledger")
        if columns != [totals[0], totals[1], len(parts), totals[3]]:
            self.fault(f"version {version}: the columns differ from the body")
        if (kind == "hold") != (expires is not None) or (expires or at) < at:
            self.fault(f"version {version}: a {kind} that ends at {expires}")
        if not owner:
            self.fault(f"version {version}: a booking without an owner")
        if totals[0] < self.now:
            self.fault(f"version {version}: the booking starts before {self.now}")
        spans = []
        for row, node, length in parts:
            span = (node, totals[0], totals[0] + length)
            spans.append(span)
            if not self._has_slot(row, span):
                self.fault(f"version {version}: node {node} has no slot at {span[1]}")
            if node in self.gone:
                self.fault(f"version {version}: node {node} was removed")
            for start, end, _, _ in self.closed.get(node, []):
                if start < span[2] and span[1] < end and end > self.now:
                    self.fault(f"version {version}: node {node} is closed")
        what = owner, name or "", expires, body, totals[1], spans, charge, taken
        exceeded = self._occupy(version, _Booked(*what))
        if exceeded:
            self.fault(f"version {version}: more than a capacity has: {exceeded}")

    def _has_slot(self, row: int, span: tuple[int, float, float]) -> bool:
        """Return whether a row is the node's, and contains the span."""
        if self.hosts is not None:  # the amounts over time are checked later
            return row == span[0] and span[1] < span[2]
        if not 0 <= row < len(self.slots):
            return False
        node, start, end = self.slots[row]
        return node == span[0] and start <= span[1] < span[2] <= end

    def _occupy(self, number: int, booked: _Booked) -> str:
        """Book the parts; return the capacity that is exceeded, "" for none."""
        self.open[number] = booked
        charge = booked.charge
        exceeded = "" if charge is None else self.caps.take(number, charge)
        if self.hosts is not None:
            assert booked.taken is not None
            return self.hosts.take(number, booked.parts, booked.taken) or exceeded
        for node, start, end in booked.parts:
            spans = self.spans.setdefault(node, [])
            i = bisect_left(spans, (start, end, number))
            for other in spans[max(i - 1, 0) : i + 1]:
                if other[0] < end and start < other[1]:
                    self.fault(
                        f"version {number}: node {node} is booked twice from "
                        f"{max(start, other[0])}, first by {other[2]}"
                    )
            spans.insert(i, (start, end, number))
        return exceeded

    def _change(self, version: int, kind: str, of: int, at: int) -> None:
        booked = self.open.get(of)
        if booked is None:
            self.fault(f"version {version}: {kind} of {of}, which is not booked")
            return
        expires = booked.expires
        if kind == "confirm":
            if expires is None or expires <= at:
                self.fault(f"version {version}: {of} could not be confirmed any more")
            self.open[of] = booked._replace(expires=None)
            return
        if kind == "expire" and (expires is None or expires > at):
            self.fault(f"version {version}: {of} ends before its time")
        del self.open[of]
        if booked.charge is not None:
            self.caps.give_back(of)
        if self.hosts is not None:
            self.hosts.give_back(of)
            return
        for node, start, end in booked.parts:
            self.spans[node].remove((start, end, of))

    def _reserve(self, kind: str, owner: str, body: bytes) -> None:
        """Withhold amounts of a ledger of shares, or give them back."""
        assert self.hosts is not None
        if kind == "uncover":
            self.hosts.end_reservations(owner)
            return
        arrays = _arrays(body)
        spans = arrays["spans"][["row", "start", "end"]].tolist()
        self.hosts.reserve(owner, spans, arrays["amounts"].tolist())

    def _add(self, slots: Any) -> None:
        columns = (slots[name].tolist() for name in ("node", "start", "end"))
        self.slots.extend(zip(*columns, strict=True))

    def _nodes(self, kind: str, data: Any, owner: str) -> None:
        if kind == "remove":
            self.gone.add(data["node"])
        elif kind == "enable":
            self._open_nodes(data["nodes"], None)
        elif kind == "cover":
            for node, *span in zip(
                data["nodes"], data["start"], data["end"], strict=True
            ):
                self.closed.setdefault(node, []).append((*span, owner, False))
        else:
            start = self.now if data["start"] is None else data["start"]
            end = np.inf if data["end"] is None else data["end"]
            for node in data["nodes"]:
                self.closed.setdefault(node, []).append((start, end, owner, True))

    def _open_nodes(self, nodes: list[int], owner: str | None) -> None:
        """End what `disable` closed, or with an owner the reservations of the owner."""
        for node in nodes:
            self.closed[node] = [
                row
                for row in self.closed.get(node, [])
                if (not row[3] if owner is None else row[3] or row[2] != owner)
            ]


def _arrays(body: bytes) -> dict[str, Any]:
    """Return the arrays of an .npz file."""
    with np.load(io.BytesIO(body), allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _now(arrays: dict[str, Any]) -> float:
    """Return the time of the pool of a snapshot, of slots or of shares."""
    return float(arrays["rows now" if "resources" in arrays else "now"])


def _rules(arrays: dict[str, Any]) -> list[Any]:
    """Return the capacities and quotas of a snapshot."""
    if "capacities" not in arrays:
        return []
    rules: list[Any] = json.loads(str(arrays["capacities"].tolist()))["rules"]
    return rules


_Window = tuple[
    tuple[float, ...], list[tuple[int, int, float]], Charge | None, BodyShare | None
]


def _window(body: bytes) -> _Window:
    """Return seven totals; row, node and length of the parts; the charge; the share."""
    number, _, length, n = struct.unpack_from("<BBHI", body)
    totals = struct.unpack_from("<7d", body, 8 + length)
    at = 64 + length
    end = at + 28 * n
    is_long = len(body) > end
    if number not in (1, 2, 3) or n < 1 or len(body) < end or is_long != (number > 1):
        raise ValueError("not a body of a window")
    rows = struct.unpack_from(f"<{n}q", body, at)
    nodes = struct.unpack_from(f"<{n}i", body, at + 8 * n)
    lengths = struct.unpack_from(f"<{n}d", body, at + 12 * n)
    if len(set(nodes)) < n:
        raise ValueError("a node occurs twice")
    special, taken, count = json.loads(body[end:]) if number > 1 else {}, None, n
    if number == 3:
        counts = special["counts"] or [1] * n
        if len(counts) != n or min(counts) < 1:
            raise ValueError(f"{counts} parts on {n} nodes")
        taken, count = BodyShare(special["share"], counts), sum(counts)
        special = special["special"] or {}
    charge = None
    if body[8 : 8 + length] != b"reserved":
        used = special.get("uses") or {}
        charge = Charge(totals[0], totals[1], count, used, special.get("account"))
    return totals, [*zip(rows, nodes, lengths, strict=True)], charge, taken


def _open_bookings(arrays: dict[str, Any]) -> dict[int, _Booked]:
    """Return the bookings of a snapshot."""
    data, first, found = arrays["open bodies"].tobytes(), 0, {}
    names = ("open", "open owner", "open name", "open expires", "open size")
    columns = (arrays[name].tolist() for name in names)
    for number, owner, name, expires, size in zip(*columns, strict=True):
        body = data[first : first + size]
        first += size
        totals, parts, charge, taken = _window(body)
        spans = [(node, totals[0], totals[0] + length) for _, node, length in parts]
        row = (owner, name, expires or None, body, totals[1], spans, charge, taken)
        found[number] = _Booked(*row)
    return found


def _chain(before: bytes, call: Any, entries: list[Any]) -> bytes:
    """Return the digest of a call and of the chain before it."""
    last, first, at, client, what, token, asked, answer, _ = call
    digest = hashlib.blake2b(before, digest_size=16)
    asked = None if asked is None else asked.hex()
    row: list[Any] = [last, first, at, client, what, token, asked, answer]
    digest.update(json.dumps(row, separators=(",", ":")).encode())
    for entry in entries:
        body = entry[10] or b""
        if isinstance(body, str):  # changed by SQL
            body = body.encode()
        row = [*entry[:10], len(body)]
        digest.update(json.dumps(row, separators=(",", ":")).encode() + body)
    return digest.digest()
