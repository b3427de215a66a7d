"""`SharedPool`: a pool that several processes change at the same time."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slotkern._kernels.pool import Bookings, SlotPool, bookings_from_windows
from slotkern._kernels.slots import SLOT
from slotkern._kernels.windows import Window
from slotkern.foundation.adapters import adapter
from slotkern.ledger.bookings import BookedPool
from slotkern.ledger.calls import Change, Done
from slotkern.ledger.codec import (
    Step,
    body_row,
    booking_row,
    nodes_row,
    plain,
    to_json,
    unpack_arrays,
)
from slotkern.ledger.replay import given
from slotkern.ledger.snapshots import Open, pack_pool, unpack_pool
from slotkern.pool.closures import close_gaps, reopen_gaps
from slotkern.pool.ledger import reservation

if TYPE_CHECKING:
    from slotkern.ledger.log import Store
    from slotkern.typing import Slots, Time

__all__ = ["SharedPool"]


class SharedPool(BookedPool[Bookings], SlotPool):  # type: ignore[misc]  # other results
    """A pool that several processes change at the same time: a `SlotPool` with a log.

    `SlotPool.share` creates its ledger and `SlotPool.open` opens it. All searches work
    as in any pool, in the memory of this process. Each change includes the changes of
    others before it, and is stored before it returns.

    Attributes
    ----------
    version : int
        The number of entries of the log that the pool contains.
    user : str
        The user in the list of calls, and the owner of bookings without one.
    durable : str
        What stored calls survive: "disk" loss of power, "crash" the end of processes.

    Notes
    -----
    The pool is as new as the last call that changed it, or `refresh`. Threads may share
    it. After a fork, parent and child open the ledger again by themselves. `copy` and
    pickles give a plain `SlotPool`, for experiments. `save` writes the current state.

    Examples
    --------
    >>> import slotkern as sk
    >>> from tempfile import mkdtemp
    >>> file = mkdtemp() + "/site.db"
    >>> slots = sk.make_slots(node=[0, 1], start=0, end=9, performance=1, price=2)
    >>> pool = sk.SlotPool(slots).share(file)
    >>> booking = pool.place(sk.Request(2, 4), owner="ann", token="job 7")
    >>> other = sk.SlotPool.open(file)
    >>> other.place(sk.Request(2, 4), owner="ann", token="job 7").repeated
    True
    >>> other.release(booking)
    1
    """

    _plain = SlotPool
    _unpack = staticmethod(unpack_pool)

    def __init__(self, store: Store, user: str | None = None) -> None:
        SlotPool.__init__(self, np.empty(0, SLOT))
        # The number of each open window, once somebody has asked for one.
        self._numbers: dict[Window, int] | None = None
        BookedPool.__init__(self, store, user)

    def handle(self) -> int:
        """Raise TypeError: changes of compiled code would be missing in the log."""
        raise TypeError(
            "a shared pool has no handle, because the log would miss the changes of "
            "compiled code; use copy()"
        )

    def reserve(
        self,
        nodes: Any,
        start: Time,
        end: Time,
        *,
        owner: str | None = None,
        partly: bool = False,
        rule: str | None = None,
    ) -> list[Window]:
        """Book given nodes for a given time; see `SlotPool.reserve`."""
        owner = self._owner(owner)
        what = {"do": "reserve", "how": [owner, partly], "nodes": plain(nodes)}
        if rule is not None:
            what["rule"] = rule
        windows: list[Window] = []

        def change(_now: int) -> Change:
            found, gaps = reservation(self, nodes, start, end, partly, rule)
            self._book_found(found, owner)
            windows.extend(found)
            rows = [booking_row(window, owner) for window in found]
            if len(gaps):
                close_gaps(self, gaps, owner)
                spans = {name: gaps[name].tolist() for name in ("start", "end")}
                rows.append(nodes_row("cover", gaps["node"], owner, **spans))
            return rows, found, None

        self._call(to_json(what | {"start": start, "end": end}), change)
        return windows

    def remove_node(self, node: int | str) -> None:
        """Remove a node with all its time; see `SlotPool.remove_node`."""

        def change(_now: int) -> Change:
            before = self._state()["gone"]
            SlotPool.remove_node(self, node)
            (i,) = np.setdiff1d(self._state()["gone"], before).tolist()
            body = to_json({"node": i}).encode()
            return [body_row("remove", body)], [], None

        self._call(to_json({"do": "remove", "node": plain(node)}), change)

    def add_slots(self, slots: Slots) -> None:
        """Add free slots; see `SlotPool.add_slots`."""

        def add() -> dict[str, NDArray[Any]]:
            rows = len(self.origin)
            SlotPool.add_slots(self, slots)
            return {"slots": self.origin[rows:]}

        self._add(add)

    # --- the plain pool

    def _scheduled(self, done: Done, result: Any) -> Bookings:
        if not done.repeated:
            found: Bookings = result
            return found
        assert done.call is not None
        _, criterion, shape = json.loads(done.call.what)["how"]
        answer = json.loads(done.call.answer or "")
        windows = iter([each.window for each in self._answer(done, None)])
        reason = np.array(answer["reason"], np.uint8)
        items: list[Any] = []
        for i, code in enumerate(answer["reason"]):
            plan = answer["plans"].get(str(i))
            if plan is not None:
                parts = tuple(islice(windows, len(plan["roles"])))
                items.append(adapter("plan_of_outline")(parts, plan))
            else:
                items.append(next(windows) if code == 0 else None)
        return bookings_from_windows(
            items, reason, criterion, shape, answer["names"], self.context
        )

    def _schedule_plain(
        self, jobs: list[Any], criterion: Any, shape: Any, owner: str
    ) -> tuple[Bookings, list[Window], str]:
        done = SlotPool.schedule(self, jobs, criterion, shape=shape, owner=owner)
        return done, _windows_of(done), _answer_of(done)

    def _replace_state(self, pool: SlotPool) -> None:
        SlotPool._replace_state(self, pool)
        self._numbers = None

    def _pack(self, bookings: dict[int, Open]) -> bytes:
        return pack_pool(self, bookings)

    def _open_all(self, bookings: dict[int, Open]) -> None:
        super()._open_all(bookings)
        if self._numbers is not None:
            self._numbers.update({each.window: i for i, each in bookings.items()})

    def _number_of(self, window: Window, owner: str | None) -> int | None:
        if self._numbers is None:
            bookings = self._bookings.items()
            self._numbers = {each.window: i for i, each in bookings}
        return self._numbers.get(window)  # open windows of whole nodes differ

    def _forget(self, number: int) -> Window:
        window = super()._forget(number)
        if self._numbers is not None:
            self._numbers.pop(window, None)
        return window

    def _release_booking(self, number: int) -> None:
        SlotPool.release(self, self._bookings[number].window)
        self._forget(number)

    def _has_covered(self, owner: str) -> bool:
        closed = self.closed
        return bool((~closed["disabled"] & (closed["owner"] == owner)).any())

    def _apply_special(self, entry: Step) -> bool:
        kind = entry.kind
        if kind == "add":
            SlotPool.add_slots(self, unpack_arrays(given(entry.body))["slots"])
        elif kind == "uncover":
            reopen_gaps(self, given(entry.owner))
        elif kind == "remove":
            SlotPool.remove_node(self, json.loads(given(entry.body))["node"])
        elif kind == "cover":
            data = json.loads(given(entry.body))
            gaps = np.array(
                [*zip(data["nodes"], data["start"], data["end"], strict=True)],
                [("node", "i4"), ("start", "f8"), ("end", "f8")],
            )
            close_gaps(self, gaps, given(entry.owner))
        else:
            return False
        return True


def _windows_of(done: Bookings) -> list[Window]:
    """Return the booked windows, those of a plan in the order of its parts."""
    windows: list[Window] = []
    plans = done.plans or {}
    for i, window in enumerate(done):
        if window is not None:
            windows += plans[i].windows if i in plans else [window]
    return windows


def _answer_of(done: Bookings) -> str:
    """Return the part of the result of `schedule` that entries do not contain."""
    plans = {i: plan.outline() for i, plan in (done.plans or {}).items()}
    answer = {"reason": done.reason.tolist(), "names": done.names, "plans": plans}
    return to_json(answer)
