"""The kernel of replays against a slow model of the definitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_model import Job, Model, Span, easy_by_counts, first

from slotkern._kernels.replay import BACKFILLING, replay

PROCESSORS = 7


def columns(jobs: list[Job], blocked: list[Span]) -> list[Any]:
    submit, run, estimate = (
        np.array([job[k] for job in jobs], np.float64) for k in range(3)
    )
    width = np.array([job[3] for job in jobs], np.int32)
    spans = [np.array([span[k] for span in blocked], np.float64) for k in range(2)]
    taken = np.array([span[2] for span in blocked], np.int32)
    return [submit, run, estimate, width, PROCESSORS, *spans, taken]


def check_conservation(
    jobs: list[Job], blocked: list[Span], found: tuple[Any, ...]
) -> None:
    """Check that no processor runs two jobs at once, and the starts and widths."""
    start, first_span, count, spans, _ = found
    taken: list[tuple[int, float, float]] = []
    over = max((b + job[1] for b, job in zip(start, jobs, strict=True)), default=-99)
    everything = [
        *((start[i], start[i] + job[1], job[3]) for i, job in enumerate(jobs)),
        *blocked,
    ]
    for (begin, end, width), where, number in zip(
        everything, first_span, count, strict=True
    ):
        held = [
            node
            for low, size in spans[where : where + number].tolist()
            for node in range(low, low + size)
        ]
        if begin <= over:  # spans that begin later occupy no processors
            assert len(set(held)) == len(held) == width
        assert all(0 <= node < PROCESSORS for node in held)
        taken += [(node, begin, end) for node in held if end > begin]
    taken.sort()
    for (node, _, end), (other, begin, _) in pairwise(taken):
        assert node != other or end <= begin
    assert all(begin >= job[0] for begin, job in zip(start, jobs, strict=True))


def flow(draw: Any) -> list[Job]:
    whole = st.integers(0, 12)
    times = draw(st.sampled_from([whole, whole, st.floats(0, 12, width=32)]))
    jobs = []
    for _ in range(draw(st.integers(0, 14))):
        estimate = draw(st.integers(1, 9))
        run = draw(st.sampled_from([estimate, estimate, 0, draw(times)]))
        run = min(float(run), float(estimate))
        width = draw(st.integers(1, PROCESSORS))
        jobs.append((float(draw(times)), run, float(estimate), width))
    return sorted(jobs, key=lambda job: job[0])


def spans_of(draw: Any) -> list[Span]:
    left, spans = PROCESSORS, []
    for _ in range(draw(st.integers(0, 3))):
        width = draw(st.integers(0, left))
        left -= width
        start = draw(st.integers(-3, 25))
        if width:
            spans.append((float(start), float(start + draw(st.integers(1, 9))), width))
    return spans


FLOWS = st.composite(flow)()
SPANS = st.composite(spans_of)()


@pytest.mark.parametrize("backfill", BACKFILLING)
@given(jobs=FLOWS, blocked=SPANS, order=st.permutations(range(14)), ties=st.booleans())
def test_random_flows(
    backfill: str, jobs: list[Job], blocked: list[Span], order: list[int], ties: bool
) -> None:
    for key in (None, np.array(order[: len(jobs)], np.float64) // (3 if ties else 1)):
        by = first if key is None else lambda job, now, key=key: float(key[job])
        model = Model(jobs, PROCESSORS, backfill, by, blocked)
        expected = model.run()
        found = replay(*columns(jobs, blocked), backfill, key=key)
        assert found[0].tolist() == expected
        assert found[4] == model.most_waiting
        check_conservation(jobs, blocked, found)
        counted = replay(*columns(jobs, blocked), backfill, key=key, nodes=False)
        assert counted[0].tolist() == expected
        assert counted[3].size == 0


def chain_of(draw: Any) -> tuple[list[Job], list[tuple[int, float] | None]]:
    """Return jobs, and for some the earlier job that they wait for, with think time."""
    jobs = draw(FLOWS)
    chain: list[tuple[int, float] | None] = []
    for job in range(len(jobs)):
        before = draw(st.integers(-job - 1, job - 1)) if job else -1
        think = float(draw(st.sampled_from([0, 0, 1, 5])))
        chain.append((before, think) if before >= 0 else None)
    return jobs, chain


@pytest.mark.parametrize("backfill", BACKFILLING)
@given(
    flow=st.composite(chain_of)(),
    blocked=SPANS,
    order=st.permutations(range(14)),
    turned=st.booleans(),
)
def test_jobs_that_wait_for_others(
    backfill: str, flow: Any, blocked: list[Span], order: list[int], turned: bool
) -> None:
    jobs, chain = flow
    if turned:  # jobs also wait for jobs with larger indices
        size = len(jobs)
        chain = [c and (size - 1 - c[0], c[1]) for c in reversed(chain)]
    before = np.array([-1 if c is None else c[0] for c in chain], np.int32)
    think = np.array([0.0 if c is None else c[1] for c in chain])
    for key in (None, np.array(order[: len(jobs)], np.float64) // 3):
        by = first if key is None else lambda job, now, key=key: float(key[job])
        model = Model(jobs, PROCESSORS, backfill, by, blocked, chain)
        expected = model.run()
        found = replay(
            *columns(jobs, blocked), backfill, key=key, before=before, think=think
        )
        assert found[0].tolist() == expected
        assert found[4] == model.most_waiting
        check_conservation(jobs, blocked, found)


@given(jobs=FLOWS)
def test_easy_agrees_with_its_original_definition(jobs: list[Job]) -> None:
    class ByCounts(Model):
        def look(self, now: float) -> None:
            queue = self.queue(now)
            running = [span for span in self.busy() if span[1] > now]
            waiting = [self.jobs[job] for job in queue]
            for place in easy_by_counts(now, PROCESSORS, running, waiting):
                self.begin(queue[place], now)

    assert (
        ByCounts(jobs, PROCESSORS, "easy").run()
        == Model(jobs, PROCESSORS, "easy").run()
    )


class Shares(Model):
    """A model with an independent implementation of the multifactor priority."""

    weights = (1.0, 0.5, 2.0)
    longest_wait, half_life, users = 20.0, 6.0, 3

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.history: list[tuple[float, int, int]] = []
        self.key = lambda job, now: -self.priority(job, now)
        self.on_change = lambda job, now, width: self.history.append(
            (now, job % self.users, width)
        )

    def used(self, now: float, user: int | None) -> float:
        """Return processor seconds, halved at every multiple of the half life."""
        origin = self.jobs[0][0]
        total, running, last = 0.0, 0, origin
        changes = [c for c in self.history if user is None or c[1] == user]
        for moment, width in [*((t, w) for t, _, w in changes), (now, 0)]:
            while True:
                passed = int((last - origin) // self.half_life) + 1
                halving = origin + passed * self.half_life
                if halving > moment:
                    break
                total = (total + running * (halving - last)) / 2
                last = halving
            total += running * (moment - last)
            running, last = running + width, moment
        return total

    def priority(self, job: int, now: float) -> float:
        age, size, share = self.weights
        submit, _, _, width = self.jobs[job]
        everybody = self.used(now, None)
        used = self.used(now, job % self.users) / everybody if everybody else 0.0
        return (
            age * min((now - submit) / self.longest_wait, 1.0)
            + size * (width / self.processors)
            + share * (1 / (1 + self.users * used))
        )


@pytest.mark.parametrize("backfill", BACKFILLING)
@given(jobs=FLOWS)
def test_multifactor_priority(backfill: str, jobs: list[Job]) -> None:
    jobs = [tuple(map(round, job)) for job in jobs]  # sums of integers are exact
    jobs.sort(key=lambda job: job[0])
    model = Shares(jobs, PROCESSORS, backfill)
    expected = model.run()
    numbers = (*Shares.weights, Shares.longest_wait, Shares.half_life, Shares.users)
    user = np.arange(len(jobs), dtype=np.int32) % Shares.users
    found = replay(*columns(jobs, []), backfill, user=user, multifactor=numbers)
    assert found[0].tolist() == expected
    check_conservation(jobs, [], found)
