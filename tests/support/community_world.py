"""A few nodes of a community, and a network whose behaviour a script determines.

Messages are in a bag: each of them may be delivered next, twice, or never; timers fire
in any order. The world counts independently of the nodes which of them holds each job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from oracle import add

NODES = ((2, 1.0, 0), (4, 2.0, 0), (8, 1.0, 1), (1, 1.0, 0), (16, 0.5, 0))
JOBS = ((1, 4.0, 0), (2, 8.0, 0), (4, 2.0, -1), (8, 16.0, 1), (1, 1.0, 0), (16, 4.0, 1))


class World:
    """Nodes made by `make(node, processors, speed=, label=, seed=)`, and their jobs."""

    def __init__(self, make: Callable[..., Any], rules: dict[str, Any]) -> None:
        self.nodes = [
            make(k, size, speed=speed, label=label, seed=7, **rules)
            for k, (size, speed, label) in enumerate(NODES)
        ]
        self.now = 0.0
        self.bag: list[Any] = []
        self.timers: list[tuple[str, int, Any]] = []
        self.handed_in: list[int] = []
        self.started: Counter[int] = Counter()
        self.suspended: Counter[int] = Counter()
        self.log: list[Any] = []
        for node in self.nodes:
            for job, (size, estimate, label) in enumerate(JOBS):
                node.describe(job, size, estimate, label)

    def do(self, k: int, actions: Sequence[Any]) -> None:
        """Record the actions that node k requests."""
        for what, *rest in actions:
            if what == "send":
                message = rest[0]
                self.bag.append(message)
                self.log.append((*message[:7], message.times))
                continue
            ticket = rest.pop() if what in TIMED else None
            self.log.append((what, k, *rest))
            if ticket is not None:
                self.timers.append((what, k, ticket))
            if what == "suspended":
                self.suspended[rest[0]] += 1
            elif what == "resumed":
                self.suspended[rest[0]] -= 1

    def deliver(self, message: Any) -> None:
        """Deliver a message to its receiver."""
        k = message.receiver
        self.do(k, self.nodes[k].receive(message, self.now))

    def fire(self, timer: tuple[str, int, Any], choice: int = 0) -> None:
        """Fire a timer; `choice` selects the number of neighbours of a discovery."""
        what, k, ticket = timer
        node = self.nodes[k]
        match what:
            case "discover":
                near = [(k + 1 + i) % len(NODES) for i in range(4)]
                self.do(k, node.contact(ticket, near[: (4, 2, 1)[choice % 3]]))
            case "decide":
                self.do(k, node.decide(ticket))
            case "resend":
                self.do(k, node.resend(ticket))
            case "suspended":
                self.do(k, node.retry(ticket))

    def start(self, k: int) -> None:
        """Start the head of the queue of node k, and end it at once."""
        if self.nodes[k].waiting:
            job, _, entered = self.nodes[k].waiting[0]
            assert self.nodes[k].start(job)
            self.started[job] += 1
            self.nodes[k].ended(self.now - entered)

    def play(self, script: Sequence[int]) -> None:
        """Perform one step per number of the script, and check after each."""
        for step in script:
            kind, choice = step % 16, step // 16
            k = choice % len(NODES)
            if kind < 2 and len(self.handed_in) < len(JOBS):
                job = len(self.handed_in)
                self.handed_in.append(job)
                self.do(k, self.nodes[k].submit(job))
            elif kind < 7 and self.bag:
                self.deliver(self.bag.pop(choice % len(self.bag)))
            elif kind == 7 and self.bag:
                self.deliver(
                    self.bag[choice % len(self.bag)]
                )  # stays in the bag: a duplicate
            elif kind == 8 and self.bag:
                self.bag.pop(choice % len(self.bag))
            elif kind == 11 and self.timers:
                self.fire(self.timers[choice % len(self.timers)], choice)  # too early
            elif kind < 11 and self.timers:
                self.fire(self.timers.pop(choice % len(self.timers)), choice)
            elif kind == 12:
                self.do(k, self.nodes[k].reschedule(self.now))
            elif kind == 13:
                self.start(k)
            elif kind == 14:
                self.now += 1 + choice
            elif kind == 15:
                change = self.nodes[k].leave if choice % 2 else self.nodes[k].join
                self.do(k, change())
            self.check()

    def check(self) -> None:
        """Assert that no job is in two queues, or queued and started, or run twice."""
        places = Counter(job for node in self.nodes for job, _, _ in node.waiting)
        for job in self.handed_in:
            assert places[job] + self.started[job] <= 1, job

    def deliver_all(self) -> None:
        """Deliver all messages and fire all timers, then check where each job is."""
        for _ in range(200):
            while self.bag:
                self.deliver(self.bag.pop(0))
                self.check()
            timers = [each for each in self.timers if each[0] != "suspended"]
            self.timers = [each for each in self.timers if each[0] == "suspended"]
            if not timers:
                break
            for timer in timers:
                if timer[0] == "decide":
                    while self.bag:  # all offers arrive before the decision
                        self.deliver(self.bag.pop(0))
                self.fire(timer)
        assert not self.bag
        places = Counter(job for node in self.nodes for job, _, _ in node.waiting)
        for job in self.handed_in:
            holders = places[job] + self.started[job]
            assert holders == 1 or (holders == 0 and self.suspended[job] == 1), job
        for node in self.nodes:
            assert node.queue_load == add(
                JOBS[job][0] * JOBS[job][1] for job, _, _ in node.waiting
            )


TIMED = ("discover", "decide", "resend", "suspended")
