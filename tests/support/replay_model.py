"""Reference model of replays, written from the definitions without kernel code.

Jobs are (submit, run, estimate, width), sorted by submission; a blocked span is (start,
end, width). A chain gives for each job the job it waits for, as (job, think time).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Job = tuple[float, float, float, int]
Span = tuple[float, float, int]
Key = Callable[[int, float], float]  # (job, time) -> rank; the smallest comes first


def first(job: int, now: float) -> float:
    """Rank all jobs equally, so the order of submission decides."""
    return 0.0


def least_free(
    busy: Sequence[Span], processors: int, start: float, end: float
) -> float:
    """Return the least number of free processors over [start, end)."""
    moments = [start, *(a for a, _, _ in busy if start < a < end)]
    return min(
        processors - sum(w for a, b, w in busy if a <= moment < b) for moment in moments
    )


def earliest(
    busy: Sequence[Span], processors: int, now: float, estimate: float, width: int
) -> float:
    """Return the earliest start from `now` on with `width` processors always free."""
    for start in sorted({now, *(b for _, b, _ in busy if b > now)}):
        if least_free(busy, processors, start, start + estimate) >= width:
            return start
    raise AssertionError("a job wider than the machine")


def easy_by_counts(
    now: float, processors: int, running: Sequence[Span], queue: Sequence[Job]
) -> list[int]:
    """Run one pass of EASY as its authors describe it, without blocked spans.

    `running` has estimated ends. Returns queue indices in the order of starts.
    """
    running, started = list(running), []
    free = processors - sum(w for _, _, w in running)
    head = 0
    while head < len(queue) and queue[head][3] <= free:
        _, _, estimate, width = queue[head]
        running.append((now, now + estimate, width))
        free -= width
        started.append(head)
        head += 1
    if head == len(queue):
        return started
    shadow = min(
        end
        for _, end, _ in running
        if free + sum(w for _, b, w in running if b <= end) >= queue[head][3]
    )
    extra = free + sum(w for _, b, w in running if b <= shadow) - queue[head][3]
    for k in range(head + 1, len(queue)):
        _, _, estimate, width = queue[k]
        if width > free:
            continue
        if now + estimate > shadow:
            if width > extra:
                continue
            extra -= width
        free -= width
        started.append(k)
    return started


class Model:
    """A machine with its queue and its running jobs."""

    def __init__(
        self,
        jobs: Sequence[Job],
        processors: int,
        policy: str,
        key: Key = first,
        blocked: Sequence[Span] = (),
        chain: Sequence[tuple[int, float] | None] = (),
    ) -> None:
        self.jobs, self.processors, self.policy = jobs, processors, policy
        self.key, self.blocked = key, list(blocked)
        self.chain = list(chain) or [None] * len(jobs)
        self.ended: dict[int, float] = {}
        self.submitted: list[int] = []  # in the order of submission
        self.start: dict[int, float] = {}
        self.promised: dict[int, float] = {}
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.most_waiting = 0
        self.on_change: Callable[[int, float, int], None] = lambda *change: None

    def busy(self, *, but: int = -1) -> list[Span]:
        """Return the busy spans by estimates: running, blocked and reserved."""
        spans = list(self.blocked)
        for job in self.running:
            begin = self.start[job]
            spans.append((begin, begin + self.jobs[job][2], self.jobs[job][3]))
        for job, begin in self.promised.items():
            if job != but:
                spans.append((begin, begin + self.jobs[job][2], self.jobs[job][3]))
        return spans

    def queue(self, now: float) -> list[int]:
        """Return the waiting jobs in the order of the policy."""
        return sorted(
            self.waiting,
            key=lambda job: (self.key(job, now), self.submitted.index(job)),
        )

    def submission(self, job: int) -> float:
        """Return when a job is submitted; inf while the job it waits for has no end."""
        submit = self.jobs[job][0]
        before = self.chain[job]
        if before is None:
            return submit
        return max(submit, self.ended.get(before[0], float("inf")) + before[1])

    def fits(self, job: int, now: float) -> bool:
        """Return True if a job can start now without delaying any reservation."""
        _, _, estimate, width = self.jobs[job]
        free = least_free(self.busy(), self.processors, now, now + estimate)
        return free >= width

    def begin(self, job: int, now: float) -> None:
        """Start a waiting job."""
        self.waiting.remove(job)
        self.promised.pop(job, None)
        self.running.append(job)
        self.start[job] = now
        self.on_change(job, now, self.jobs[job][3])

    def start_ready_jobs(self, now: float) -> None:
        """Start jobs by a policy in which at most the head has a reservation."""
        queue = self.queue(now)
        while queue and self.fits(queue[0], now):
            self.begin(queue.pop(0), now)
        if not queue or self.policy == "none":
            return
        head, *others = queue
        if self.policy == "easy":
            _, _, estimate, width = self.jobs[head]
            self.promised[head] = earliest(
                self.busy(), self.processors, now, estimate, width
            )
        for job in others:
            if self.fits(job, now):
                self.begin(job, now)
        self.promised.pop(head, None)

    def compress(self, now: float) -> None:
        """Move reservations forward in the order of the queue."""
        for job in self.queue(now):
            _, _, estimate, width = self.jobs[job]
            begin = earliest(self.busy(but=job), self.processors, now, estimate, width)
            assert begin <= self.promised[job]
            self.promised[job] = begin

    def run(self) -> list[float]:
        """Replay all jobs, and return their starts."""
        coming = list(range(len(self.jobs)))
        while coming or self.waiting or self.running:
            times = [self.start[job] + self.jobs[job][1] for job in self.running]
            times += [self.submission(job) for job in coming]
            times += self.promised.values()
            if self.waiting:
                times += [end for _, end, _ in self.blocked if end > self.now]
            now = self.now = min(times)
            early = False
            for job in list(self.running):
                if self.start[job] + self.jobs[job][1] == now:
                    self.running.remove(job)
                    self.ended[job] = now
                    self.on_change(job, now, -self.jobs[job][3])
                    early |= self.start[job] + self.jobs[job][2] > now
            if self.policy == "conservative" and early:
                self.compress(now)
            for job in [job for job in coming if self.submission(job) == now]:
                coming.remove(job)
                self.submitted.append(job)
                self.waiting.append(job)
                if self.policy == "conservative":
                    _, _, estimate, width = self.jobs[job]
                    self.promised[job] = earliest(
                        self.busy(), self.processors, now, estimate, width
                    )
            if self.policy == "conservative":
                for job in sorted(self.waiting, key=self.submitted.index):
                    if self.promised[job] == now:
                        self.begin(job, now)
            else:
                self.start_ready_jobs(now)
            self.most_waiting = max(self.most_waiting, len(self.waiting))
        return [self.start[job] for job in range(len(self.jobs))]

    now = float("-inf")
