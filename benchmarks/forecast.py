"""Calibration of forecasts on a trace: how often a job starts within the forecast band.

    python benchmarks/forecast.py TRACE.swf.gz [--sample 400] [--runs 300] [--seed 1]

The trace is replayed under EASY and conservative backfilling with the true lengths, and
jobs that had to wait are drawn at random from its last nine tenths. Each is forecast at
its submission, from the jobs that run and wait then: with all shares of the requested
length equally likely, with the shares of the last jobs that have ended, and with jobs
of the last eight weeks arriving after it. Printed are the percentages of jobs that
start before, in and after the band of 80%, and no later than the promise; and the
medians of the width of the band and of the distance from the median forecast to the
start, as a percentage of the wait that conservative backfilling promises.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import slotkern as sk
from slotkern.replays.forecast import QUANTILES, Arrivals, History, sample_starts
from slotkern.replays.queue_state import QueueState

#: Ended jobs whose shares are drawn, and the seconds of submissions that may follow.
PAST_JOBS, PAST_SECONDS = 5000, 8 * 7 * 86400.0
KINDS = ("uniform", "history", "history, arrivals")


def state_at(jobs: Any, k: int, processors: int) -> QueueState:
    """Return the jobs that run and wait when job k is submitted, and job k."""
    now = jobs["submit"][k]
    before = jobs[:k]
    running = before[(before["start"] < now) & (before["end"] > now)]
    running = np.sort(running, order="start", kind="stable")
    waiting = before[before["start"] >= now]
    every = np.concatenate([running, waiting, jobs[k : k + 1]])
    elapsed = np.where(every["start"] < now, now - every["start"], 0.0)
    return QueueState(
        processors,
        np.empty((0, 3)),
        every["processors"].astype(np.int32),
        elapsed,
        every["estimate"] - elapsed,
        np.unique(every["user"], return_inverse=True)[1],
        len(running),
    )


def calibrate(
    trace: sk.Trace, name: str, sample: int, runs: int, seed: int
) -> dict[str, Any]:
    """Return the forecasts and the true waits of a sample of jobs, by kind."""
    done = sk.replay(trace, policy=name, nodes=False)
    jobs, policy = done.jobs, sk.POLICIES[name]
    processors = int(done.cluster.processors.sum())
    waited = np.flatnonzero(jobs["wait"] > 0)
    waited = waited[waited > len(jobs) // 10]
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(waited, min(sample, len(waited)), replace=False))
    found: dict[str, Any] = {kind: [] for kind in KINDS}
    for k in chosen.tolist():
        now, state = jobs["submit"][k], state_at(jobs, k, processors)
        ended = jobs[:k][jobs["end"][:k] <= now][-PAST_JOBS:]
        known = History.of_jobs(ended["run"], ended["estimate"])
        rows = jobs["row"][:k][jobs["submit"][:k] > now - PAST_SECONDS]
        past = sk.Trace(trace.jobs[np.sort(rows)], trace.header)
        later = Arrivals.of_trace(past, processors, 1.0)
        for kind, law, after in zip(
            KINDS, (None, known, known), (None, None, later), strict=True
        ):
            promise, starts = sample_starts(state, policy, law, runs, k, later=after)
            band = np.quantile(starts, QUANTILES, method="inverted_cdf")
            found[kind].append((*band, promise, jobs["wait"][k]))
    return {kind: np.array(rows) for kind, rows in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--sample", type=int, default=400)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    trace = sk.read_trace(given.trace)
    print(f"{given.trace}: {given.sample} jobs that waited, {given.runs} runs each")
    print(
        "policy, lengths: % before, in, after the band; % by the promise; width, error"
    )
    for name in ("easy", "conservative"):
        found = calibrate(trace, name, given.sample, given.runs, given.seed)
        for kind, rows in found.items():
            low, middle, high, promise, wait = rows.T
            per_promise = 100 / np.maximum(promise, 1.0)
            shares = (wait < low, (low <= wait) & (wait <= high), wait > high)
            figures = [100 * each.mean() for each in (*shares, wait <= promise)]
            figures.append(np.median((high - low) * per_promise))
            figures.append(np.median(np.abs(wait - middle) * per_promise))
            print(f"{name:13} {kind:18}", *(f"{each:6.1f}" for each in figures))


if __name__ == "__main__":
    main()
