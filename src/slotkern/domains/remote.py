"""`RemoteDomains`: a metascheduler over domains in other processes, exact and frugal.

Each domain has an agent (agent.py) with its pool, in a worker of dask or in this
process. Searches ask the agents for what can matter (rounds.py), so what is moved grows
with the request and not with the domains. Windows are booked all or none as those of
`Domains` are (booking.py): each agent holds its part, then all confirm.

A worker that dies during a booking raises `Unknown`, and the parts of the others are
released. If its domain is a ledger, `book` opens it again, by the source that was
given, and releases its part, a hold or one that was confirmed just before. If no worker
can open it, the note of the error has the token with which `recover` completes or
undoes the booking later. A plain pool dies with its worker.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from slotkern._kernels.request import Request
from slotkern._kernels.slots import resolve_times
from slotkern._kernels.windows import Window
from slotkern.domains.agent import DomainAgent, Facts
from slotkern.domains.booking import (
    DomainBooking,
    Ledger,
    Part,
    book_parts,
    recover_parts,
    release_part,
)
from slotkern.domains.placing import HOLD, Placing
from slotkern.domains.rounds import Traffic, Transport, ask_all, check_request, search
from slotkern.foundation.checks import meant, quote
from slotkern.foundation.context import SlotContext
from slotkern.foundation.extras import extra
from slotkern.foundation.logger import log
from slotkern.ledger.bookings import Booking
from slotkern.ledger.errors import LedgerError, Unknown
from slotkern.machine.nodes import Machine, quoted_names

if TYPE_CHECKING:
    from slotkern.typing import BuiltIn, Shape

__all__ = ["RemoteDomain", "RemoteDomains", "remote_domain"]

#: Seconds in which a worker of dask must open a domain again.
_REOPEN = 30.0


class RemoteDomain:
    """The place of a domain in another process; see `remote_domain`."""

    def __init__(self, start: Callable[[str], Transport]) -> None:
        self._start = start


def remote_domain(client: Any, source: Any, worker: str | None = None) -> RemoteDomain:
    """Return a domain whose pool is in a worker of dask.

    Parameters
    ----------
    client : distributed.Client
    source : str, path, SlotPool or callable
        A ledger, by its file on the worker or its URL; or a pool; or a function without
        arguments that returns a pool in the worker, for example ``functools.partial(
        sk.SlotPool.load, "cern.npz")``.
    worker : str, optional
        The address or name of the worker; by default dask chooses one.

    Returns
    -------
    RemoteDomain
        A member of `RemoteDomains`. The worker opens the pool when it is added.

    Examples
    --------
    >>> import slotkern as sk
    >>> from distributed import Client  # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")  # doctest: +SKIP
    >>> domains = sk.RemoteDomains(  # doctest: +SKIP
    ...     {"cern": sk.remote_domain(client, "postgresql://cern/pool", "worker-1")})
    """

    seconds: float | None = None  # unlimited at first

    def start(name: str) -> Transport:
        nonlocal seconds
        with extra():
            import distributed  # noqa: F401
        options: dict[str, Any] = {"actor": True, "pure": False}
        if worker is not None:
            options |= {"workers": [worker], "allow_other_workers": False}
        begun = client.submit(DomainAgent, name, source, **options)
        try:
            actor = begun.result(timeout=seconds)
        except BaseException:
            begun.cancel()
            raise
        seconds = _REOPEN

        def send(question: bytes) -> Callable[[], bytes]:
            future = _lost_is_unknown(name, lambda: actor.answer(question))
            return lambda: _lost_is_unknown(name, future.result)

        return send

    return RemoteDomain(start)


def _lost_is_unknown(name: str, call: Callable[[], Any]) -> Any:
    """Call an actor; a lost connection is the error `Unknown`."""
    try:
        return call()
    except Exception as error:
        raise Unknown(
            f"the worker of the domain {name!r} does not answer: "
            f"{type(error).__name__}: {error}"
        ) from error


def _start(name: str, source: Any) -> Transport:
    """Start the agent of a domain."""
    if isinstance(source, RemoteDomain):
        return source._start(name)
    agent = DomainAgent(name, source)
    return lambda question: lambda: agent.answer(question)


class _RemoteLedger:
    """The calls of a domain that `book_parts` and `recover_parts` need."""

    def __init__(self, domains: RemoteDomains, name: str) -> None:
        self._domains, self._name = domains, name

    def _ask(self, question: str, *given: Any) -> Any:
        return self._domains._ask(question, *given, only=[self._name])[self._name]

    def _book_part(
        self,
        windows: list[Window],
        owner: str | None,
        hold: float | str | None,
        token: str | None,
        part: dict[str, Any] | None = None,
    ) -> list[Booking]:
        data = [each.to_dict() for each in windows]
        made = self._ask("book", data, owner, hold, token, part)
        return [
            Booking(i, window, whose, token, end, repeated)
            for window, (i, whose, end, repeated) in zip(windows, made, strict=True)
        ]

    def _part_of(self, token: str) -> tuple[list[Booking], dict[str, Any]] | None:
        found = self._ask("part of", token)
        if found is None:
            return None
        clock = self._domains._clock
        bookings = [
            Booking(i, _window_of([data], clock), whose, token, end, repeated)
            for data, (i, whose, end, repeated) in found[0]
        ]
        return bookings, found[1]

    def confirm(self, parts: Iterable[Booking]) -> None:
        given = [*parts]
        self._ask("confirm", [each.id for each in given], given[0].token)

    def release(self, window: Booking) -> None:
        self._ask("release", window.id, window.token)


class RemoteDomains(Placing):
    """RemoteDomains(domains)

    Domains in other processes or on other machines, searched and booked as one pool.

    Windows are those of `Domains` with the same pools, but neither slots nor machines
    are moved: each domain sends bounds and the few slots that can be in the window.

    Parameters
    ----------
    domains : mapping of str to RemoteDomain, SlotPool, str or path
        The names and places of the domains: `remote_domain`, a pool or a ledger of
        this process, or the file or URL of a ledger.

    Attributes
    ----------
    traffic : Traffic
        Rounds, questions and bytes sent and received since the start.

    Raises
    ------
    TypeError, ValueError
        As for `Domains`; for a domain with tariffs.
    slotkern.ledger.Unknown
        From all calls: if a worker does not answer.

    See Also
    --------
    Domains : All pools in this process, with all searches.

    Notes
    -----
    *Searches* take the criteria start, finish, runtime and cost, both shapes, all
    numeric fields of a request, `where`, and rules on the level ``domain``. Others are
    refused, because any slot may be in their windows; see `slotkern.domains.rounds`.

    *Cost.* One round of questions for bounds, and usually one or two for candidates. An
    answer has O(n) bounds for each of 32 cells, and O(n) slots of 40 bytes and the
    names of their nodes; more for slots of many performances. A domain takes O(m log m)
    for its m slots after a change, and O(m) for each cell.

    *Trust.* Questions and answers are pickles, which can run any code when they are
    read: use only schedulers, workers and clients of dask that you trust.

    *Threads.* One thread at a time may use a `RemoteDomains`.

    Examples
    --------
    >>> import slotkern as sk
    >>> def site(nodes, price):
    ...     return sk.SlotPool(sk.make_slots(
    ...         node=range(nodes), start=0, end=9, performance=1, price=price))
    >>> domains = sk.RemoteDomains({"cern": site(2, 3), "jinr": site(900, 1)})
    >>> window = domains.find(sk.Request(3, 4), "cost")
    >>> window.names
    ('jinr/0', 'jinr/1', 'jinr/2')
    >>> booking = domains.book(window, "ann")
    >>> domains.find(sk.Request(901, 5), "start").start
    4.0
    >>> domains.release(booking)
    """

    def __init__(self, domains: Mapping[str, Any]) -> None:
        if not isinstance(domains, Mapping) or not domains:
            raise TypeError(
                "domains must be a mapping of names to remote domains, one or more, "
                f"got {quote(domains)}"
            )
        self.traffic = Traffic()
        self._transports: dict[str, Transport] = {}
        for name, source in domains.items():
            if not isinstance(name, str) or not name or "/" in name:
                raise ValueError(
                    "the name of a domain must be text without '/' and not empty, got "
                    f"{quote(name)}"
                )
            self._transports[name] = _start(name, source)
        self._sources = {**domains}
        self._facts: dict[str, Facts] = self._ask("facts")
        _check_facts(self._facts)
        self._clock = next(iter(self._facts.values())).clock

    def __iter__(self) -> Iterator[str]:
        return iter(self._transports)

    def __len__(self) -> int:
        return len(self._transports)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{n}: {f.nodes:,} nodes" for n, f in self._facts.items())
        return f"RemoteDomains({nodes})"

    def reconnect(self, name: str, source: Any) -> None:
        """Open a domain again, after its worker has died.

        Parameters
        ----------
        name : str
            The name of the domain.
        source : RemoteDomain, SlotPool, str or path
            As for `RemoteDomains`. The same ledger; a plain pool has lost its bookings.

        Raises
        ------
        ValueError
            If the clock or the levels are not those of the other domains. Nothing has
            changed then.
        """
        self._ledger(name)  # an error for an unknown name
        transport = _start(name, source)
        facts = self._facts | ask_all({name: transport}, self.traffic, "facts")
        _check_facts(facts)
        self._transports[name], self._facts = transport, facts
        self._sources[name] = source

    def find(
        self, request: Request, criterion: Any = "finish", *, shape: Any = "square"
    ) -> Window | None:
        """Return the best window over all domains; see `SlotPool.find`.

        Raises
        ------
        ValueError, TypeError
            For a search that cannot be exact without all slots; the message contains
            the criterion or limit.
        slotkern.ledger.Unknown
            If a worker does not answer.
        """
        check_request(request, criterion, shape)
        clock: Any = SlotContext(self._clock)
        given = resolve_times(clock, request)
        if given.budget < 0 or given.earliest > given.latest:
            return None
        return search(
            self._transports, self._facts, self.traffic, given, criterion, shape
        )

    def book(
        self,
        window: Window,
        owner: str | None = None,
        *,
        hold: float | str = HOLD,
    ) -> DomainBooking:
        """Book a window in its domains, all or none.

        Parameters
        ----------
        window : Window
            A window that was found in these domains.
        owner : str, optional
        hold : float (seconds) or duration
            The time after which a part ends that was not confirmed, because this
            process or a worker was killed.

        Raises
        ------
        ValueError
            If a part is no longer free; no domain has changed then.
        slotkern.ledger.Unknown
            If a worker does not answer: the parts of the others are released. A ledger
            is opened again as it was given, and its part is released, which may have
            been confirmed just before. If this fails, a note of the error has a token:
            call `reconnect`, then `recover` with the token.
        slotkern.ledger.LedgerError
            If a ledger could not store its part.
        """
        return self._book(window, owner, hold, None, None)

    def schedule(
        self,
        requests: Iterable[Request],
        criterion: BuiltIn = "start",
        *,
        shape: Shape = "square",
        owner: str | None = None,
        hold: float | str = HOLD,
    ) -> list[DomainBooking | None]:
        """Find and book a window for each request, in order.

        Parameters
        ----------
        requests : iterable of Request
        criterion, shape
            As for `find`.
        owner, hold
            As for `book`.

        Returns
        -------
        list of DomainBooking and None
            None for a request without a window.

        Raises
        ------
        ValueError, TypeError, slotkern.ledger.LedgerError
            As for `place`. The windows booked before are released, unless their domain
            does not answer. If this process is killed, they stay booked.

        Notes
        -----
        A search and a booking for each request. `slotkern.schedule_batch` and other
        functions that take slots are refused: they need the slots of all domains.
        """
        booked: list[DomainBooking | None] = []
        try:
            for request in requests:
                booked.append(
                    self.place(request, criterion, shape=shape, owner=owner, hold=hold)
                )
        except BaseException as error:
            for each in booked:
                if each is not None and not self._undo(each):
                    token = cast(Booking, next(iter(each.parts.values()))).token
                    error.add_note(
                        f"{quote(each)} may stay booked: recover({token!r}) completes "
                        "or undoes the booking"
                    )
            raise
        return booked

    def release(self, booking: DomainBooking) -> None:
        """Release a booking in all its domains.

        Raises
        ------
        ValueError
            If no domain has it. Domains that have released it already are skipped.
        slotkern.ledger.LedgerError
            If a domain does not answer, or cannot store it: the others have released
            their parts; repeat the call.
        """
        if not isinstance(booking, DomainBooking):
            raise TypeError(f"only bookings can be released, got {quote(booking)}")
        if any(isinstance(part, Window) for part in booking.parts.values()):
            raise TypeError(f"{quote(booking)} was made by Domains: release it there")
        released, failed = 0, None
        for name, part in booking.parts.items():
            try:
                release_part(self._ledger(name), part)
            except LedgerError as error:
                failed = failed or error
            except LookupError as error:
                log.info("%s: %s", name, error)
            else:
                released += 1
        if failed is not None:
            raise failed
        if not released:
            raise ValueError(f"{quote(booking)} is booked in no domain")

    # --- helpers

    def _ask(self, name: str, *given: Any, only: Iterable[str] = ()) -> dict[str, Any]:
        chosen = {each: self._transports[each] for each in only} or self._transports
        return ask_all(chosen, self.traffic, name, *given)

    def _ledger(self, name: str) -> _RemoteLedger:
        if name not in self._transports:
            raise ValueError(
                f"{quote(name)} is not one of {', '.join(self._transports)}"
                f"{meant(name, self._transports)}"
            )
        return _RemoteLedger(self, name)

    def _book(
        self,
        window: Window,
        owner: str | None,
        hold: float | str,
        token: str | None,
        asked: str | None = None,
    ) -> DomainBooking:
        if not isinstance(window, Window):
            raise TypeError(f"only windows can be booked, got {quote(window)}")
        if window.machine is None:
            raise ValueError(f"{quote(window)} was not found in these domains")
        split = _split(window, self._clock)
        order = [name for name in self._transports if name in split]
        pools = {name: self._ledger(name) for name in [*order, *split]}
        windows = {name: [split[name]] for name in order}
        known = secrets.token_hex(16) if token is None else token
        made: Mapping[str, Sequence[Part]]
        try:
            made = book_parts(pools, windows, owner, hold, known, asked, True)
        except Unknown as error:
            found = self._recovered(known, order)
            if found is None:
                error.add_note(f"recover({known!r}) completes or undoes the booking")
                raise
            if not found:
                error.add_note("its parts are released")
                raise
            made = found
        return DomainBooking(window, {n: parts[0] for n, parts in made.items()}, owner)

    def _recover(
        self, token: str, asked: str | None = None
    ) -> tuple[DomainBooking | None, str]:
        if asked is None and isinstance(token, str):
            parts = recover_parts(self._ledgers(asked), token)  # a token of `book`
            if parts is not None:
                return self._repeated(parts, token) if parts else None, token
        return super()._recover(token, asked)

    def _recovered(
        self, token: str, domains: Iterable[str]
    ) -> dict[str, list[Booking]] | None:
        """Complete or undo a booking after a worker has died.

        Opens the ledgers again whose workers do not answer. Returns the parts, as
        `recover_parts` does; None if a domain cannot be opened again.
        """
        parts = {name: self._ledger(name) for name in domains}
        for name, ledger in parts.items():
            try:
                ledger._part_of(token)
            except Unknown:
                if not self._facts[name].is_ledger:
                    return None
                try:
                    self.reconnect(name, self._sources[name])
                except Exception as error:
                    log.warning("%s: cannot be opened again: %s", name, error)
                    return None
        try:
            return recover_parts(parts, token) or {}
        except LedgerError as error:
            log.warning("%s", error)
            return None

    def _undo(self, booking: DomainBooking) -> bool:
        """Release a booking; False if a domain does not answer and keeps its part."""
        try:
            self.release(booking)
        except (LedgerError, ValueError) as error:
            log.warning("%s stays booked: %s", quote(booking), error)
            return False
        return True

    def _find(self, request: Request, criterion: Any, shape: Any) -> Window | None:
        return self.find(request, criterion, shape=shape)

    def _ledgers(self, asked: str | None) -> dict[str, Ledger]:
        for name, facts in self._facts.items():
            if asked is not None and not facts.is_ledger:
                raise ValueError(
                    f"domain {name!r} is a pool of its process, which loses its tokens "
                    "with it: share it as a ledger (SlotPool.share)"
                )
        return {name: self._ledger(name) for name in self._transports}

    def _repeated(
        self, parts: Mapping[str, list[Booking]], token: str
    ) -> DomainBooking:
        mine = {name: parts[name][0] for name in self._transports if name in parts}
        window = _window_of([b.window.to_dict() for b in mine.values()], self._clock)
        owner = next(iter(mine.values())).owner
        return DomainBooking(window, {**mine}, owner, token, True)


def _check_facts(facts: Mapping[str, Facts]) -> None:
    """Raise ValueError if two domains have different clocks or levels."""
    (first, one), *others = facts.items()
    for name, other in others:
        for what in ("clock", "levels"):
            if getattr(one, what) != getattr(other, what):
                raise ValueError(
                    f"the domains {first!r} and {name!r} must have the same {what}, "
                    f"got {quote(getattr(one, what))} and "
                    f"{quote(getattr(other, what))}"
                )


def _split(window: Window, clock: Any) -> dict[str, Window]:
    """Return the part of a window in each domain, by the names of its nodes."""
    data = window.to_dict()
    by_domain: dict[str, list[dict[str, Any]]] = {}
    for part in data["slots"]:
        by_domain.setdefault(part["name"].partition("/")[0], []).append(part)
    return {
        name: _window_of([data | {"slots": parts}], clock)
        for name, parts in by_domain.items()
    }


def _window_of(data: list[dict[str, Any]], clock: Any) -> Window:
    """Return the window of all parts of these windows, with the names of its nodes."""
    given = [part for each in data for part in each["slots"]]
    names = [part["name"] for part in given]
    parts = [part | {"node": k, "row": k} for k, part in enumerate(given)]
    lengths = [part["length"] for part in parts]
    first = data[0]
    window = Window.from_dict(
        first
        | {
            "slots": parts,
            "runtime": max(lengths),
            "finish": first["start"] + max(lengths),
            "cost": math.fsum(part["cost"] for part in parts),
            "processor_time": math.fsum(lengths),
        }
    )
    machine = Machine({"name": quoted_names(np.array(names))})
    window.context = SlotContext(clock, machine)
    return window
