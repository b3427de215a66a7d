"""One node of a community of schedulers, as printed in the paper on CASA.

"Exploring decentralized dynamic scheduling for grids and clouds using the
community-aware scheduling algorithm", section 4: Algorithms 1 to 5. This plain Python
class has the inputs, outputs and random numbers of the compiled
`slotkern._kernels.community.Agent`, and is its reference in the tests.

Points that the paper leaves open or contradicts: h_resched selects jobs whose relative
delay is at least mu (Algorithm 4; the text has "greater than"). The mean queueing time
is that of the waiting jobs, and of the ended jobs if none waits (Definition 4; the text
has "jobs already executed"). The RECEIPT of Table 1 answers an ASSIGN, which is sent
again until the RECEIPT arrives. The ASSIGN redeems the promise of the chosen node,
which the algorithm revokes as well. A node that leaves informs others with an infinite
estimate of its own.

Complexity: a message takes O(promises + jobs); the code is not optimized.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from slotkern._kernels.community import Message

__all__ = ["Node", "RandomStream", "Rules"]

NO_TICKET = (0xFFFFFFFF, 0)  # the ticket that refers to no entry
MASK_64 = 2**64 - 1


class RandomStream:
    """A stream of random numbers (splitmix64)."""

    def __init__(self, seed: int, stream: int) -> None:
        self.state = _mix((_mix(seed) + stream) & MASK_64)

    def uniform(self) -> float:
        """Return the next number in [0, 1)."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK_64
        return (_mix(self.state) >> 11) * 2.0**-53


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


def _sum_in_order(numbers: Iterable[float]) -> float:
    """Sum from first to last; sum() rounds differently since Python 3.12."""
    total = 0.0
    for number in numbers:
        total += number
    return total


class Rules(NamedTuple):
    """The coefficients of the paper, with their printed defaults."""

    omega: float = 1.0
    varpi: float = 1.0
    mu: float = 1.0
    whole_node: bool = True
    most_informed: int = 2**32 - 1
    promise_life: float = float("inf")


class CasaJob(NamedTuple):
    """The description of a job that a node receives."""

    processors: int
    estimate: float
    label: int

    @property
    def load(self) -> float:
        """The load of Definition 1, for a job of speed 1."""
        return self.processors * self.estimate


class Round:
    """One attempt of a node to find a node for a job."""

    def __init__(self, job: int, hop: int, is_move: bool) -> None:
        self.job, self.hop, self.is_move = job, hop, is_move
        self.state = "discovering"
        self.offers: list[tuple[int, Any, float]] = []  # node, promise, response
        self.answered: set[int] = set()
        self.contacted = 0
        self.own_times = (0.0, 0.0)  # the requester's estimate and mean queueing time
        self.to, self.promise = 0, NO_TICKET


class Node:
    """A node: its metascheduler and its local queue.

    Each event method returns the actions that it causes, as tuples.
    """

    def __init__(
        self,
        node: int,
        processors: int,
        *,
        speed: float = 1.0,
        label: int = 0,
        seed: int = 0,
        **rules: Any,
    ) -> None:
        self.node, self.processors, self.speed = node, processors, speed
        self.label, self.rules = label, Rules(**rules)
        self.random = RandomStream(seed, node)
        self.jobs: dict[int, CasaJob] = {}
        self.queue: list[tuple[int, int, float]] = []  # job, hop, time of arrival
        self.pending: dict[int, Any] = {}  # the round's ticket, by waiting job
        self.waited: list[float] = []  # waiting times of the ended jobs
        self.promises: dict[Any, tuple[float, float]] = {}  # load, expiry
        self.rounds: dict[Any, Round] = {}
        self.hops: dict[int, int] = {}
        self.present = True
        self.last_ticket = 0
        self.actions: list[tuple[Any, ...]] = []

    # --- events

    def describe(self, job: int, processors: int, estimate: float, label: int) -> None:
        """Store the description of a job."""
        self.jobs[job] = CasaJob(processors, estimate, label)

    def submit(self, job: int) -> list[Any]:
        """Run h_request (Algorithm 1) up to the discovery of neighbours."""
        self._open_round(job, 0, False, (0.0, 0.0))
        return self._take_actions()

    def contact(self, ticket: Any, neighbours: list[int]) -> list[Any]:
        """Send the REQUEST or INFORM of Algorithms 1 and 4 to the neighbours."""
        if (found := self.rounds.get(ticket)) and found.state == "discovering":
            found.state = "collecting"
            own = [] if found.is_move else [self.node]
            found.contacted = len(own) + len(neighbours)
            kind = "inform" if found.is_move else "request"
            for place, node in enumerate([*own, *neighbours]):
                self._send(
                    kind,
                    node,
                    found.job,
                    place=place,
                    contacted=len(neighbours),
                    negotiation=ticket,
                    times=(*found.own_times, 0.0),
                )
            self.actions.append(("decide", ticket))
        return self._take_actions()

    def receive(self, message: Any, now: float) -> list[Any]:
        """Handle a message."""
        for promise, (_, until) in list(self.promises.items()):
            if until <= now:
                del self.promises[promise]
        match message.kind:
            case "request":
                if self._can_accept(message.job):
                    self._accept(message, "accept_request", now)
            case "inform":
                self._on_inform(message, now)
            case "accept_request" | "accept_inform":
                self._on_accept(message)
            case "assign_request" | "assign_inform":
                self._on_assign(message, now)
            case "receipt":
                found = self.rounds.get(message.negotiation)
                if found and found.state == "handing over":
                    del self.rounds[message.negotiation]
                    self.actions.append(("given", found.job, found.hop))
            case "revoke":
                self.promises.pop(message.promise, None)
        return self._take_actions()

    def decide(self, ticket: Any) -> list[Any]:
        """Run h_assign (Algorithm 3)."""
        if (found := self.rounds.get(ticket)) and found.state == "collecting":
            self._assign(ticket, found)
        return self._take_actions()

    def reschedule(self, now: float) -> list[Any]:
        """Run h_resched (Algorithm 4)."""
        if not self.present:
            return self._take_actions()
        mean = self.mean_wait(now)
        chosen = []
        before = 0.0
        for job, hop, entered in self.queue:
            delay = (now - entered) / mean if mean > 0 else 0.0  # Definition 5
            if delay >= self.rules.mu and job not in self.pending:
                estimate = before / self._power() + self._job_time(job)
                chosen.append((delay, job, hop, estimate))
            before += self.jobs[job].load
        chosen.sort(key=lambda each: -each[0])
        for _, job, hop, estimate in chosen[: self.rules.most_informed]:
            self.pending[job] = self._open_round(job, hop, True, (estimate, mean))
        return self._take_actions()

    def resend(self, ticket: Any) -> list[Any]:
        """Send an ASSIGN without RECEIPT again."""
        if (found := self.rounds.get(ticket)) and found.state == "handing over":
            self._hand_over(ticket, found)
        return self._take_actions()

    def retry(self, ticket: Any) -> list[Any]:
        """Start a new round for a suspended job."""
        if (found := self.rounds.get(ticket)) and found.state == "suspended":
            del self.rounds[ticket]
            self.actions.append(("resumed", found.job))
            if not found.is_move:
                self._open_round(found.job, found.hop, False, (0.0, 0.0))
            elif any(each[0] == found.job for each in self.queue):
                self._evict(found.job, found.hop)
        return self._take_actions()

    def leave(self) -> list[Any]:
        """Stop accepting jobs and offer the waiting jobs to other nodes."""
        self.present = False
        for job, hop, _ in self.queue:
            if job not in self.pending:
                self._evict(job, hop)
        return self._take_actions()

    def join(self) -> list[Any]:
        """Accept jobs again; jobs whose rounds are suspended stay in the queue."""
        self.present = True
        for job, _, _ in self.queue:
            ticket = self.pending.get(job)
            if ticket and self.rounds[ticket].state == "suspended":
                del self.rounds[ticket], self.pending[job]
                self.actions.append(("resumed", job))
        return self._take_actions()

    def start(self, job: int) -> bool:
        """Start a waiting job; returns False if the job is not in the queue."""
        if all(each[0] != job for each in self.queue):
            return False
        self._dequeue(job)
        return True

    def ended(self, waited: float) -> None:
        """Record that a job has ended after waiting this long here."""
        self.waited.append(waited)

    # --- observable state

    @property
    def waiting(self) -> list[tuple[int, int, float]]:
        """Job, hop and time of arrival of each waiting job, in queue order."""
        return list(self.queue)

    @property
    def queue_load(self) -> float:
        """The queue's load of Definition 1."""
        return _sum_in_order(self.jobs[job].load for job, _, _ in self.queue)

    @property
    def shadow_load(self) -> float:
        """The load of the shadow queue, Definition 2."""
        return _sum_in_order(load for load, _ in self.promises.values())

    @property
    def negotiations(self) -> int:
        """The number of open rounds."""
        return len(self.rounds)

    def mean_wait(self, now: float) -> float:
        """Compute the mean queueing time of Definition 4."""
        if self.queue:
            entered = _sum_in_order(entered for _, _, entered in self.queue)
            return now - entered / len(self.queue)
        return _sum_in_order(self.waited) / len(self.waited) if self.waited else 0.0

    # --- implementation

    def _take_actions(self) -> list[Any]:
        actions, self.actions = self.actions, []
        return actions

    def _ticket(self) -> tuple[int, int]:
        self.last_ticket += 1
        return (self.node, self.last_ticket)

    def _power(self) -> float:
        return self.speed * self.processors

    def _job_time(self, job: int) -> float:
        described = self.jobs[job]
        if self.rules.whole_node:
            return described.load / self._power()
        return described.estimate / self.speed

    def _can_accept(self, job: int) -> bool:
        described = self.jobs[job]
        fits = described.processors <= self.processors
        return self.present and fits and described.label in (-1, self.label)

    def _send(self, kind: str, to: int, job: int, **fields: Any) -> None:
        empty = {
            "hop": 0,
            "place": 0,
            "contacted": 0,
            "negotiation": NO_TICKET,
            "promise": NO_TICKET,
            "times": (0.0, 0.0, 0.0),
        }
        message = Message(kind, self.node, to, job, **{**empty, **fields})
        self.actions.append(("send", message))

    def _open_round(
        self, job: int, hop: int, is_move: bool, own_times: tuple[float, float]
    ) -> tuple[int, int]:
        ticket = self._ticket()
        self.rounds[ticket] = Round(job, hop, is_move)
        self.rounds[ticket].own_times = own_times
        self.actions.append(("discover", ticket))
        return ticket

    def _evict(self, job: int, hop: int) -> None:
        never = float("inf")
        self.pending[job] = self._open_round(job, hop, True, (never, never))

    def _dequeue(self, job: int) -> tuple[int, int, float]:
        place = [each[0] for each in self.queue].index(job)
        self.pending.pop(job, None)
        return self.queue.pop(place)

    def _times(self, job: int) -> tuple[float, float, float]:
        power = self._power()
        return self._job_time(job), self.queue_load / power, self.shadow_load / power

    def _accept(self, request: Any, kind: str, now: float) -> None:
        """Execute lines 3 to 9 of h_accept (Algorithm 2)."""
        times = self._times(request.job)
        promise = self._ticket()
        load = self.jobs[request.job].load / max(1, request.contacted)
        self.promises[promise] = (load, now + self.rules.promise_life)
        self._send(
            kind,
            request.sender,
            request.job,
            place=request.place,
            negotiation=request.negotiation,
            promise=promise,
            times=times,
        )

    def _on_inform(self, message: Any, now: float) -> None:
        """Run h'_accept (Algorithm 5)."""
        if not self._can_accept(message.job):
            return
        job, queue, shadow = self._times(message.job)
        estimate, mean, _ = message.times
        sooner = job + queue + shadow < estimate
        if sooner and self.mean_wait(now) * self.rules.varpi < mean:
            self._accept(message, "accept_inform", now)

    def _on_accept(self, message: Any) -> None:
        found = self.rounds.get(message.negotiation)
        open_ = found is not None and found.state in ("collecting", "suspended")
        if found is None or not open_:
            self._revoke(message.sender, message.job, message.promise)
        elif message.place in found.answered:
            known = ((node, promise) for node, promise, _ in found.offers)
            if (message.sender, message.promise) not in known:
                self._revoke(message.sender, message.job, message.promise)
        else:
            job, queue, shadow = message.times
            response = job + queue + self.rules.omega * shadow
            found.answered.add(message.place)
            found.offers.append((message.sender, message.promise, response))
            if found.state == "suspended":
                self.actions.append(("resumed", found.job))
                self._assign(message.negotiation, found)

    def _assign(self, ticket: Any, found: Round) -> None:
        if found.is_move and self.pending.get(found.job) != ticket:  # already running
            for node, promise, _ in found.offers:
                self._revoke(node, found.job, promise)
            del self.rounds[ticket]
        elif found.offers:
            chosen = self._draw([response for _, _, response in found.offers])
            for k, (node, promise, _) in enumerate(found.offers):
                if k != chosen:
                    self._revoke(node, found.job, promise)
            if found.is_move:
                self.actions.append(("left", self._dequeue(found.job)[0]))
            found.state = "handing over"
            found.to, found.promise, _ = found.offers[chosen]
            found.hop += 1
            self._hand_over(ticket, found)
        elif found.is_move and self.present:
            del self.rounds[ticket], self.pending[found.job]
        else:
            found.state = "suspended"
            self.actions.append(("suspended", found.job, ticket))

    def _draw(self, responses: list[float]) -> int:
        """Choose an offer by Definition 3, with one number in [0, 1)."""
        total = _sum_in_order(1 / response for response in responses)
        left = self.random.uniform() * total
        for k, response in enumerate(responses[:-1]):
            left -= 1 / response
            if left < 0:
                return k
        return len(responses) - 1

    def _hand_over(self, ticket: Any, found: Round) -> None:
        self._send(
            "assign_inform" if found.is_move else "assign_request",
            found.to,
            found.job,
            hop=found.hop,
            negotiation=ticket,
            promise=found.promise,
        )
        self.actions.append(("resend", ticket))

    def _revoke(self, to: int, job: int, promise: Any) -> None:
        self._send("revoke", to, job, promise=promise)

    def _on_assign(self, message: Any, now: float) -> None:
        self.promises.pop(message.promise, None)
        if self.hops.get(message.job, -1) < message.hop:
            self.hops[message.job] = message.hop
            self.queue.append((message.job, message.hop, now))
            self.actions.append(("came", message.job, message.hop, now))
            if not self.present:
                self._evict(message.job, message.hop)
        self._send(
            "receipt", message.sender, message.job, negotiation=message.negotiation
        )
