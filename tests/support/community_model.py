"""A slow community, event by event: the plain twin's nodes, one heap, no shortcuts.

Nothing here is shared with the kernel. Jobs are (submit, run, estimate, processors,
home, label), sorted by submission; nodes (processors, speed, label); changes (time,
node, joins).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import floor
from typing import Any

from slotkern.published.casa import Lots, Node

CLASSES = (
    *("end", "message", "discovery", "decision", "resending", "retrial"),
    *("rescheduling", "change", "submission"),
)
ON_ARRIVAL = ("assign_request", "assign_inform", "receipt", "revoke")


def whole(seconds: float) -> float:
    return floor(seconds * 2**20) / 2**20


class Model:
    """A run; `start` and `ran_on` tell what became of the jobs."""

    def __init__(
        self,
        jobs: Sequence[tuple[Any, ...]],
        nodes: Sequence[tuple[int, float, int]],
        near: Sequence[Sequence[int]],
        settings: dict[str, Any],
        rules: dict[str, Any],
        changes: Sequence[tuple[float, int, bool]] = (),
    ) -> None:
        self.jobs, self.profiles, self.near, self.s = jobs, nodes, near, settings
        seed = settings["seed"]
        self.present = [True] * len(nodes)
        for _, node, joins in reversed(changes):
            self.present[node] = not joins
        self.nodes, self.phase, self.heap = [], [], []
        self.serial, self.now = 0, 0.0
        self.network = Lots(seed, 0xFFFFFFFE)
        for k, (processors, speed, label) in enumerate(nodes):
            lots = Lots(seed, 0x100000000 + k)
            self.phase.append(whole(lots.uniform() * settings["cycle"]))
            at = whole(lots.uniform() * settings["interval"])
            if at < float("inf"):
                self.at(at, "rescheduling", k)
            node = Node(k, processors, speed=speed, label=label, seed=seed, **rules)
            for job, (_, _, estimate, width, _, wanted) in enumerate(jobs):
                node.describe(job, width, estimate, wanted)
            if not self.present[k]:
                node.leave()
            self.nodes.append(node)
        for time, node, joins in changes:
            self.at(time, "change", node, joins)
        for job in range(len(jobs)):
            self.at(jobs[job][0], "submission", jobs[job][4], job)
        self.free = [processors for processors, _, _ in nodes]
        self.live = len(jobs)
        self.tries = [0] * len(jobs)
        self.start: dict[int, float] = {}
        self.ran_on: dict[int, int] = {}
        self.sent: dict[str, int] = {}
        self.end: dict[int, float] = {}

    def at(self, time: float, kind: str, node: int, what: Any = None) -> None:
        self.serial += 1
        order = CLASSES.index(kind)
        heapq.heappush(self.heap, (time, order, self.serial, kind, node, what))

    def tick(self, node: int, time: float) -> float:
        cycle, k = self.s["cycle"], 0
        if not cycle:
            return time
        while self.phase[node] + k * cycle < time:
            k += 1
        while self.phase[node] + (k - 1) * cycle >= time:
            k -= 1
        return self.phase[node] + k * cycle

    def do(self, k: int, asked: Sequence[Any]) -> None:
        look = False
        for what, *rest in asked:
            if what == "send":
                self.send(rest[0])
            elif what == "discover":
                self.at(self.now + self.s["discovery"], "discovery", k, rest[0])
            elif what == "decide":
                time = self.tick(k, self.now + self.s["window"])
                self.at(time, "decision", k, rest[0])
            elif what == "resend":
                if self.s["loss"]:
                    self.at(self.now + self.s["resend"], "resending", k, rest[0])
            elif what in ("came", "left"):
                look = True
            elif what == "suspended":
                self.live -= 1
                job, ticket = rest
                if self.tries[job] < self.s["retries"]:
                    self.tries[job] += 1
                    self.at(self.now + self.s["retry"], "retrial", k, ticket)
            elif what == "resumed":
                self.live += 1
        if look:
            self.look(k)

    def send(self, message: Any) -> None:
        self.sent[message.kind] = self.sent.get(message.kind, 0) + 1
        time = self.now
        if message.sender != message.receiver:
            if self.s["loss"] and self.network.uniform() < self.s["loss"]:
                return
            time += self.s["latency"]
        if message.kind not in ON_ARRIVAL:
            time = self.tick(message.receiver, time)
        self.at(time, "message", message.receiver, message)

    def look(self, k: int) -> None:
        node = self.nodes[k]
        while node.present and node.waiting:
            job, _, entered = node.waiting[0]
            _, run, _, width, _, _ = self.jobs[job]
            if width > self.free[k]:
                break
            node.start(job)
            assert job not in self.start
            self.free[k] -= width
            self.start[job], self.ran_on[job] = self.now, k
            end = self.now + run / self.profiles[k][1]
            heapq.heappush(self.heap, (end, 0, job, "end", k, (job, entered)))

    def run(self) -> None:
        while self.heap:
            self.now, _, _, kind, k, what = heapq.heappop(self.heap)
            node = self.nodes[k]
            if kind == "end":
                job, entered = what
                self.free[k] += self.jobs[job][3]
                self.end[job] = self.now
                node.ended(self.start[job] - entered)
                self.live -= 1
                self.look(k)
            elif kind == "message":
                self.do(k, node.receive(what, self.now))
            elif kind == "discovery":
                near = [other for other in self.near[k] if self.present[other]]
                self.do(k, node.contact(what, near))
            elif kind == "decision":
                self.do(k, node.decide(what))
            elif kind == "resending":
                self.do(k, node.resend(what))
            elif kind == "retrial":
                self.do(k, node.retry(what))
            elif kind == "rescheduling":
                self.do(k, node.reschedule(self.now))
                if self.live > 0:
                    self.at(self.now + self.s["interval"], "rescheduling", k)
            elif kind == "change":
                if self.present[k] != what:
                    self.present[k] = what
                    self.do(k, node.join() if what else node.leave())
                    self.look(k)
            else:
                self.do(k, node.submit(what))


def first_come(
    jobs: Sequence[tuple[Any, ...]], nodes: Sequence[tuple[int, float, int]]
) -> list[float | None]:
    """Starts where every job stays at home; None: its home cannot run it."""
    start: list[float | None] = [None] * len(jobs)
    for k, (processors, speed, label) in enumerate(nodes):
        ends: list[tuple[float, int]] = []
        head = float("-inf")
        for job, (submit, run, _, width, home, wanted) in enumerate(jobs):
            if home != k or width > processors or wanted not in (-1, label):
                continue
            times = [max(submit, head)]
            times += sorted(end for end, _ in ends if end > times[0])
            for now in times:
                used = sum(w for end, w in ends if end > now)
                if used + width <= processors:
                    break
            start[job] = head = now
            ends.append((now + run / speed, width))
    return start
