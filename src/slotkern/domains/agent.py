"""`DomainAgent`: a domain as a metascheduler in another process sees it.

An agent has the pool of its domain, answers questions about what can matter to a
search, and books parts. Questions and answers are bytes, so that any transport can
carry them and their size is counted. They are pickles, which can run any code when they
are read, so both sides must trust each other. Answers grow with the request, not with
the domain (candidates.py): no answer contains the slots or the machine of the domain.

Parts of a ledger are held by the ledger. Parts of a plain pool are held by the agent,
with their tokens: holds that are due end before the next question is answered. A part
that the local manager has released counts as not booked. Parts that the pool no longer
has, because they are past or were released, are dropped from time to time, so the agent
keeps O(n) for each part that is booked on n nodes.

A part is confirmed and released by its id and its token: an older copy of a ledger, or
a pool that was opened again, may give the id to another booking.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import SlotPool
from slotkern._kernels.request import Request
from slotkern._kernels.slots import SLOT
from slotkern._kernels.windows import Window
from slotkern.domains.candidates import Cell, Outline, UsableSlots
from slotkern.domains.members import JoinedDomains
from slotkern.ledger.bookings import Booking, delay_of
from slotkern.ledger.errors import Expired
from slotkern.ledger.shared import SharedPool

__all__ = ["Candidates", "DomainAgent", "Facts"]

#: Requests whose usable slots are kept until the domain changes.
_KEPT = 4
#: The least number of parts of a plain pool before those that have ended are dropped.
_PARTS = 64


class Facts(NamedTuple):
    """The properties of a domain that a metascheduler needs before it searches.

    `clock`, `columns` and `levels` must be those of the other domains. `starts` are
    quantiles of the starts of free slots.
    """

    clock: Any
    columns: tuple[str, ...]
    levels: tuple[str, ...]
    nodes: int
    is_ledger: bool
    starts: NDArray[np.float64]


class Candidates(NamedTuple):
    """The candidates of a cell, or a start at which to divide it.

    `slots` have the fields of `SLOT`; `names` are those of their nodes.
    """

    slots: NDArray[np.void]
    names: list[str]
    divide: float | None


class _Held(NamedTuple):
    """A part of a plain pool: when its hold ends, and the names of all its domains."""

    end: float
    booking: Booking
    whole: dict[str, Any]


class DomainAgent:
    """DomainAgent(name, source)

    The pool of a domain, which answers the questions of metaschedulers.

    Parameters
    ----------
    name : str
        The name of the domain.
    source : str, path, SlotPool or callable
        A ledger; or a pool, or a function without arguments that returns it.
    """

    def __init__(self, name: str, source: Any) -> None:
        if callable(source):
            source = source()
        pool = source if isinstance(source, SlotPool) else SlotPool.open(source)
        self.name, self.pool = name, pool
        self._view = JoinedDomains({name: pool})
        self._usable: dict[Any, UsableSlots] = {}
        self._version: Any = None
        self._held: dict[int, _Held] = {}
        #: The last part from a start on a node: another one there was released.
        self._last: dict[tuple[int, float], int] = {}
        self._next, self._most = 1, _PARTS

    def answer(self, question: bytes) -> bytes:
        """Return the answer to a question, or the error that it caused, as bytes."""
        name, given = pickle.loads(question)
        try:
            self._end_holds()
            found = True, _ANSWERS[name](self, *given)
        except Exception as error:
            found = False, (error, getattr(error, "__notes__", []))
        return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)

    # --- searches

    def _facts(self) -> Facts:
        slots, machine = self._view.slots, self._view.machine
        columns = tuple(sorted(slots.dtype.names or ()))
        if self._view.tariffs:
            raise ValueError(
                f"domain {self.name!r} has tariffs, which searches over remote domains "
                "do not support: bounds of cells assume constant prices"
            )
        starts = np.sort(slots["start"])
        some = np.unique(starts[:: max(1, len(starts) // 64)])
        levels, nodes = tuple(machine.levels), len(machine)
        ledger = isinstance(self.pool, SharedPool)
        return Facts(self._view.clock, columns, levels, nodes, ledger, some)

    def _outlines(
        self,
        request: Request,
        shape: str,
        cells: Sequence[Cell],
        what: tuple[bool, bool],
    ) -> list[Outline]:
        usable = self._usable_slots(request, shape)
        return [usable.outline(Cell(*cell), *what) for cell in cells]

    def _candidates(
        self,
        request: Request,
        shape: str,
        cells: Sequence[tuple[Cell, float]],
        speed: bool,
        most: int,
    ) -> list[Candidates]:
        """Return the candidates of cells, given with the longest run times there."""
        usable = self._usable_slots(request, shape)
        return [
            self._candidates_of(usable, Cell(*cell), longest, speed, most)
            for cell, longest in cells
        ]

    def _candidates_of(
        self, usable: UsableSlots, cell: Cell, longest: float, speed: bool, most: int
    ) -> Candidates:
        """Return the candidates of a cell; if they are too many, where to divide it."""
        slots, found = self._view.slots, usable.candidates(cell, longest, speed)
        if len(found) > most:
            starts = np.sort(usable.start[found])
            starts = starts[starts > cell.first]
            if len(starts):
                return Candidates(slots[:0], [], float(starts[len(starts) // 2]))
        rows = np.sort(usable.rows[found])
        mine = slots.take(rows)
        table = np.empty(len(mine), SLOT)
        for field in SLOT.names or ():
            table[field] = mine[field]
        names = self._view.machine.names
        return Candidates(table, [str(names[k]) for k in mine["node"].tolist()], None)

    def _usable_slots(self, request: Request, shape: str) -> UsableSlots:
        slots = self._view.slots  # the domain as it is now
        version = self.pool._version
        if version != self._version:
            self._usable.clear()
            self._version = version
        key = request, shape
        if key not in self._usable:
            if len(self._usable) >= _KEPT:
                self._usable.pop(next(iter(self._usable)))
            found = UsableSlots(slots, self._view.machine, request, shape)
            self._usable[key] = found
        return self._usable[key]

    # --- bookings

    def _book(
        self,
        windows: list[dict[str, Any]],
        owner: str | None,
        hold: float | str | None,
        token: str | None,
        whole: dict[str, Any] | None,
    ) -> list[tuple[int, str, Any, bool]]:
        """Book windows given by the names of their nodes; return ids, owners, ends."""
        mine = [self._local(each) for each in windows]
        if isinstance(self.pool, SharedPool):
            made = self.pool._book_part(mine, owner, hold, token, whole)
            return [(b.id, b.owner, b.expires, b.repeated) for b in made]
        seconds = np.inf if hold is None else (delay_of(hold) or 0) / 1e6
        end = None
        if hold is not None:  # an error for a remote end comes before the booking
            end = datetime.fromtimestamp(time.time() + seconds, UTC)
        self.pool.book(mine, owner)
        found: list[tuple[int, str, Any, bool]] = []
        for window in mine:
            booking = Booking(self._next, window, owner or "", token, end)
            until = time.monotonic() + seconds
            self._held[self._next] = _Held(until, booking, whole or {})
            for node in window.nodes:
                self._held.pop(self._last.get((node, window.start), 0), None)
                self._last[node, window.start] = self._next
            found.append((booking.id, booking.owner, end, False))
            self._next += 1
        return found

    def _confirm(self, ids: list[int], token: str | None) -> None:
        ended = [i for i in ids if not self._is_booked(i, token)]
        if ended:
            raise Expired(
                f"there is no hold {ended[0]}, or it has ended; nothing has changed"
            )
        if isinstance(self.pool, SharedPool):
            with self.pool.turn():
                for i in ids:
                    self.pool.confirm(i)
            return
        for i in ids:
            held = self._held[i]
            booking = held.booking._replace(expires=None)
            self._held[i] = held._replace(end=np.inf, booking=booking)

    def _release(self, i: int, token: str | None) -> None:
        if not self._is_booked(i, token):
            raise LookupError(f"booking {i} is not booked; nothing has changed")
        if isinstance(self.pool, SharedPool):
            self.pool.release(i)
        else:
            try:
                self.pool.release(self._held.pop(i).booking.window)
            except ValueError as error:  # the local manager has booked its time
                raise LookupError(str(error)) from None

    def _is_booked(self, i: int, token: str | None) -> bool:
        """Return whether booking i is that of a token, and is still booked."""
        if isinstance(self.pool, SharedPool):
            if token is None:
                return True  # the pool checks the id
            found = self.pool._part_of(token)
            return found is not None and i in {each.id for each in found[0]}
        held = self._held.get(i)
        return held is not None and held.booking.token == token and self._has(held)

    def _has(self, held: _Held) -> bool:
        """Return whether the plain pool still has all nodes of a part."""
        booked, window = self.pool.booked, held.booking.window
        mine = booked["start"] == window.start
        mine &= booked["owner"] == held.booking.owner
        ends = dict(booked[mine][["node", "end"]].tolist())
        return all(
            # The pool moves the end of a part to a border that is a rounding away.
            math.isclose(ends.get(node, math.nan), end, rel_tol=1e-15)
            for node, end in window.slots[["node", "end"]].tolist()
        )

    def _part_of(self, token: str) -> Any:
        """Return the bookings of a token with windows as data, and their whole."""
        if isinstance(self.pool, SharedPool):
            found = self.pool._part_of(token)
        else:
            mine = [h for h in self._held.values() if h.booking.token == token]
            there = [
                each.booking
                for each in mine
                if each.booking.window.finish <= self.pool.now or self._has(each)
            ]
            found = (there, mine[0].whole) if mine else None
        if found is None:
            return None
        windows = [self._view._slots.join({self.name: b.window}) for b in found[0]]
        data = [each.to_dict() for each in windows]
        facts = [(b.id, b.owner, b.expires, b.repeated) for b in found[0]]
        return [*zip(data, facts, strict=True)], found[1]

    def _local(self, data: dict[str, Any]) -> Window:
        """Return a window as the pool numbers its nodes and rows."""
        names = [part["name"] for part in data["slots"]]
        _ = self._view.pool  # the slots as they are now
        ids = self._view.machine.ids(names, "nodes of the window")
        parts = [
            part | {"node": node, "row": 0}
            for part, node in zip(data["slots"], ids.tolist(), strict=True)
        ]
        window = Window.from_dict(data | {"slots": parts})
        local = self._view._slots.split(window, ids)[self.name]
        local.context = self.pool.context
        return local

    def _end_holds(self) -> None:
        now = time.monotonic()
        for i in [i for i, held in self._held.items() if held.end <= now]:
            held = self._held[i]
            with suppress(LookupError):  # the local manager has released it
                self._release(i, held.booking.token)
            self._held.pop(i, None)
        if len(self._held) > self._most:
            self._drop_ended()
            self._most = 2 * len(self._held) + _PARTS

    def _drop_ended(self) -> None:
        """Drop the parts that the pool no longer has."""
        booked = self.pool.booked
        there = set(zip(booked["node"].tolist(), booked["start"].tolist(), strict=True))
        self._held = {
            i: held
            for i, held in self._held.items()
            if (held.booking.window.nodes[0], held.booking.window.start) in there
        }
        self._last = {key: i for key, i in self._last.items() if i in self._held}


_ANSWERS: dict[str, Callable[..., Any]] = {
    "facts": DomainAgent._facts,
    "outlines": DomainAgent._outlines,
    "candidates": DomainAgent._candidates,
    "book": DomainAgent._book,
    "confirm": DomainAgent._confirm,
    "release": DomainAgent._release,
    "part of": DomainAgent._part_of,
}
