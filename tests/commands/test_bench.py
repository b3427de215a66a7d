"""Streams of jobs for benchmarks."""

from slotkern.commands.streams import stream


def test_streams_are_of_different_jobs_and_repeatable() -> None:
    jobs = stream(100, (1, 2), nodes=3, volume=10, budget=50)
    assert jobs == stream(100, (1, 2), nodes=3, volume=10, budget=50)
    assert jobs != stream(100, (1, 3), nodes=3, volume=10, budget=50)
    assert len(set(jobs)) == 100
    volumes = [job.volume for job in jobs]
    assert 8 <= min(volumes) < 9 < 11 < max(volumes) <= 12
