"""Reference model of a community: the plain Python nodes, events in one heap.

It shares no code with the kernel. Jobs are (submit, run, estimate, processors, home,
label), sorted by submission; nodes are (processors, speed, label); changes are (time,
node, joins).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import floor
from typing import Any

from oracle import add

from slotkern.published.casa import Node, RandomStream

CLASSES = (
    *("end", "message", "discovery", "decision", "resending", "retrial"),
    *("rescheduling", "change", "submission"),
)
ON_ARRIVAL = ("assign_request", "assign_inform", "receipt", "revoke")


def whole(seconds: float) -> float:
    """Round down to multiples of 2**-20 s."""
    return floor(seconds * 2**20) / 2**20


class Model:
    """A run of a community; `start` and `ran_on` contain the results of the jobs."""

    def __init__(
        self,
        jobs: Sequence[tuple[Any, ...]],
        nodes: Sequence[tuple[int, float, int]],
        near: Sequence[Sequence[int]],
        settings: dict[str, Any],
        rules: dict[str, Any],
        changes: Sequence[tuple[float, int, bool]] = (),
        policy: str = "fcfs",
    ) -> None:
        self.jobs, self.profiles, self.near, self.s = jobs, nodes, near, settings
        self.overtaking, _, self.order = policy.rpartition("-")
        if policy in ("easy", "first-fit"):
            self.overtaking, self.order = policy, ""
        self.running: list[list[int]] = [[] for _ in nodes]
        seed = settings["seed"]
        self.present = [True] * len(nodes)
        for _, node, joins in reversed(changes):
            self.present[node] = not joins
        self.nodes, self.phase, self.heap = [], [], []
        self.serial, self.now = 0, 0.0
        self.network = RandomStream(seed, 0xFFFFFFFE)
        for k, (processors, speed, label) in enumerate(nodes):
            lots = RandomStream(seed, 0x100000000 + k)
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
        self.marked: dict[int, None] = {}  # nodes to schedule after all events of now

    def at(self, time: float, kind: str, node: int, what: Any = None) -> None:
        """Add an event; events of one time are ordered by class, then by addition."""
        self.serial += 1
        order = CLASSES.index(kind)
        heapq.heappush(self.heap, (time, order, self.serial, kind, node, what))

    def tick(self, node: int, time: float) -> float:
        """Return the first scheduling cycle of a node at or after a time."""
        cycle, k = self.s["cycle"], 0
        if not cycle:
            return time
        while self.phase[node] + k * cycle < time:
            k += 1
        while self.phase[node] + (k - 1) * cycle >= time:
            k -= 1
        return self.phase[node] + k * cycle

    def do(self, k: int, actions: Sequence[Any]) -> None:
        """Perform the actions that node k requests."""
        for what, *rest in actions:
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
                self.marked[k] = None
            elif what == "suspended":
                self.live -= 1
                job, ticket = rest
                if self.tries[job] < self.s["retries"]:
                    self.tries[job] += 1
                    self.at(self.now + self.s["retry"], "retrial", k, ticket)
            elif what == "resumed":
                self.live += 1

    def send(self, message: Any) -> None:
        """Count a message and schedule its arrival, unless the network loses it."""
        self.sent[message.kind] = self.sent.get(message.kind, 0) + 1
        time = self.now
        if message.sender != message.receiver:
            if self.s["loss"] and self.network.uniform() < self.s["loss"]:
                return
            time += self.s["latency"]
        if message.kind not in ON_ARRIVAL:
            time = self.tick(message.receiver, time)
        self.at(time, "message", message.receiver, message)

    def begin(self, k: int, job: int) -> None:
        """Start a job on node k now."""
        node, (_, run, _, width, _, _) = self.nodes[k], self.jobs[job]
        entered = next(each[2] for each in node.waiting if each[0] == job)
        node.start(job)
        assert job not in self.start
        self.free[k] -= width
        self.running[k].append(job)
        self.start[job], self.ran_on[job] = self.now, k
        end = self.now + run / self.profiles[k][1]
        heapq.heappush(self.heap, (end, 0, job, "end", k, (job, entered)))

    def shadow(self, k: int, head: int) -> tuple[float, int]:
        """Return the head's shadow time and the processors that are extra then."""
        speed, free = self.profiles[k][1], self.free[k]
        ends = sorted(
            (self.start[j] + self.jobs[j][2] / speed, j) for j in self.running[k]
        )
        for i, (end, job) in enumerate(ends):
            free += self.jobs[job][3]
            last = i + 1 == len(ends) or ends[i + 1][0] > end
            if last and free >= self.jobs[head][3]:
                return end, free - self.jobs[head][3]
        raise AssertionError(head)

    def look(self, k: int) -> None:
        """Start all jobs of node k that its local policy allows to start now."""
        if not self.nodes[k].present:
            return
        queue = [each[0] for each in self.nodes[k].waiting]
        if self.order == "sjf":
            queue.sort(key=lambda job: (self.jobs[job][2], job))
        while queue and self.jobs[queue[0]][3] <= self.free[k]:
            self.begin(k, queue.pop(0))
        if not queue or not self.overtaking:
            return
        head, *others = queue
        until, extra = float("inf"), 0
        if self.overtaking == "easy":
            until, extra = self.shadow(k, head)
        for job in others:
            width = self.jobs[job][3]
            end = self.now + self.jobs[job][2] / self.profiles[k][1]
            if width > self.free[k] or (end > until and width > extra):
                continue
            if end > until:
                extra -= width
            self.begin(k, job)

    def run(self) -> None:
        """Process all events."""
        while self.heap or self.marked:
            if self.marked and not (self.heap and self.heap[0][0] == self.now):
                looking, self.marked = self.marked, {}
                for k in looking:
                    self.look(k)
                continue
            self.now, _, _, kind, k, what = heapq.heappop(self.heap)
            node = self.nodes[k]
            if kind == "end":
                ended = [(k, what)]
                while self.heap and self.heap[0][:2] == (self.now, 0):
                    ended.append(heapq.heappop(self.heap)[4:])
                for k, (job, entered) in ended:
                    self.free[k] += self.jobs[job][3]
                    self.running[k].remove(job)
                    self.end[job] = self.now
                    self.nodes[k].ended(self.start[job] - entered)
                    self.live -= 1
                self.marked |= dict.fromkeys(each[0] for each in ended)
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
                    self.marked[k] = None
            else:
                self.do(k, node.submit(what))


class Direct:
    """A scenario without a protocol: `how` is "home", or the fallback of a centre.

    `placed` contains start and node of started jobs, `failed` the reasons of others.
    """

    def __init__(
        self,
        jobs: Sequence[tuple[Any, ...]],
        nodes: Sequence[tuple[int, float, int]],
        how: str,
        changes: Sequence[tuple[float, int, bool]] = (),
        decision: float = 0.0,
    ) -> None:
        self.jobs, self.nodes, self.how = jobs, nodes, how
        self.decision = decision
        self.undecided: list[int] = []
        self.here = [True] * len(nodes)
        for _, k, joins in reversed(changes):
            self.here[k] = not joins
        self.free = [processors for processors, _, _ in nodes]
        self.queues: list[list[int]] = [[] for _ in nodes]
        self.centre: list[int] = []
        self.placed: dict[int, tuple[float, int]] = {}
        self.came: set[int] = set()  # jobs that entered a queue
        self.failed: dict[int, str] = {}
        self.heap: list[tuple[Any, ...]] = []
        for job, row in enumerate(jobs):
            self.heap.append((row[0], 3, job))
        for k, change in enumerate(changes):
            self.heap.append((change[0], 1, k))
        heapq.heapify(self.heap)
        self.marked: dict[int, None] = {}  # nodes to schedule after all events of now
        while self.heap or self.marked:
            if self.marked and not (self.heap and self.heap[0][0] == self.now):
                looking, self.marked = self.marked, {}
                for k in looking:
                    self.look_now(k)
                continue
            self.now, what, job = heapq.heappop(self.heap)[:3]
            if what == 0:
                self.end(job)
            elif what == 1:
                self.change(*changes[job][1:])
            elif what == 2:
                self.undecided.pop(0)
                if self.undecided:
                    self.decide_next()
                self.place(job)
            else:
                self.decide(job)
        for k, queue in enumerate(self.queues):
            assert not (queue and self.here[k])
        for job in range(len(jobs)):
            if job not in self.placed:
                self.failed[job] = "stranded" if job in self.came else "no node"

    def could(self, k: int, job: int) -> bool:
        """Return True if node k is large enough for a job and has its label."""
        width, label = self.jobs[job][3], self.jobs[job][5]
        return bool(width <= self.nodes[k][0] and label in (-1, self.nodes[k][2]))

    def load(self, k: int) -> float:
        """Return the estimated seconds of the queued work of node k."""
        total = add(self.jobs[j][2] * self.jobs[j][3] for j in self.queues[k])
        return float(total / (self.nodes[k][0] * self.nodes[k][1]))

    def enqueue(self, k: int, job: int) -> None:
        """Add a job to the queue of node k."""
        self.came.add(job)
        self.queues[k].append(job)
        self.look(k)

    def look(self, k: int) -> None:
        """Schedule node k: at once by a centre, else after all events of this time."""
        if self.how == "home":
            self.marked[k] = None
        else:
            self.look_now(k)

    def look_now(self, k: int) -> None:
        """Start jobs from the head of the queue while enough processors are free."""
        queue = self.queues[k]
        while self.here[k] and queue and self.jobs[queue[0]][3] <= self.free[k]:
            job = queue.pop(0)
            self.free[k] -= self.jobs[job][3]
            assert job not in self.placed
            self.placed[job] = (self.now, k)
            end = self.now + self.jobs[job][1] / self.nodes[k][1]
            heapq.heappush(self.heap, (end, 0, job))

    def able(self, job: int) -> list[int]:
        """Return the present nodes that can run a job."""
        return [k for k, here in enumerate(self.here) if here and self.could(k, job)]

    def best_fit(self, job: int) -> Any:
        """Return the idle-queue node with the fewest free processors that fits."""
        width = self.jobs[job][3]
        fits = [
            (self.free[k] - width, k)
            for k in self.able(job)
            if self.free[k] >= width and not self.queues[k]
        ]
        return min(fits)[1] if fits else None

    def decide(self, job: int) -> None:
        """Place a job; if decisions take time, after those of all earlier jobs."""
        if self.decision == 0:
            return self.place(job)
        self.undecided.append(job)
        if len(self.undecided) == 1:
            self.decide_next()
        return None

    def decide_next(self) -> None:
        """Schedule the end of the next decision."""
        ready = self.now + self.decision
        heapq.heappush(self.heap, (ready, 2, self.undecided[0]))

    def place(self, job: int) -> None:
        """Assign a job to a queue by the rule of the scenario."""
        home = self.jobs[job][4]
        if self.how == "home":
            if self.could(home, job):
                self.enqueue(home, job)
        elif self.how.startswith("central") or not self.able(job):
            if any(self.could(k, job) for k in range(len(self.nodes))):
                self.centre.append(job)
            if self.how.startswith("central"):
                self.drain()
        else:
            k = self.best_fit(job)
            if k is None and self.how == "most-free":
                k = min(self.able(job), key=lambda k: (-self.free[k], k))
            elif k is None:
                k = min(self.able(job), key=lambda k: (self.load(k), k))
            self.enqueue(k, job)

    def drain(self) -> None:
        """Move jobs from the central queue to nodes that fit."""
        for job in list(self.centre):
            k = self.best_fit(job)
            if k is not None:
                self.centre.remove(job)
                self.enqueue(k, job)
            elif self.how == "central-fcfs" and self.able(job):
                return

    def end(self, job: int) -> None:
        """End all jobs that end now, then schedule each of their nodes."""
        ended = [job]
        while self.heap and self.heap[0][:2] == (self.now, 0):
            ended.append(heapq.heappop(self.heap)[2])
        for job in ended:
            self.free[self.placed[job][1]] += self.jobs[job][3]
        for k in dict.fromkeys(self.placed[job][1] for job in ended):
            self.look(k)
        if self.how.startswith("central"):
            self.drain()

    def change(self, k: int, joins: bool) -> None:
        """Let node k join or leave; place the jobs of its queue again."""
        if self.here[k] == joins:
            return
        self.here[k] = joins
        again: list[int] = []
        if joins:
            self.look(k)
            if not self.how.startswith("central"):
                again, self.centre = self.centre, []
        elif self.how != "home":
            again, self.queues[k] = self.queues[k], []
        for job in again:
            self.decide(job)
        if self.how.startswith("central"):
            self.drain()
