"""Random slots and requests of few distinct values, with many ties."""

from __future__ import annotations

import numpy as np

import slotkern as sk


def random_slots(seed, nodes=12, slots=6, step=20, first=0):
    """Return slots with integer times, often touching or starting together."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.integers(0, nodes * step, (nodes, 2 * slots)), axis=1)
    keep = edges[:, ::2] < edges[:, 1::2]
    node = np.broadcast_to(np.arange(nodes)[:, None], keep.shape)
    performance = np.broadcast_to(rng.integers(1, 5, nodes)[:, None], keep.shape)
    price = rng.choice([0.5, 1, 1, 2, 3], keep.shape)
    return sk.make_slots(
        node=first + 3 * node[keep],
        start=edges[:, ::2][keep],
        end=edges[:, 1::2][keep],
        performance=performance[keep],
        price=price[keep],
        tag=rng.integers(0, 9, keep.sum()),
    )


def random_terms(rng):
    """Return setup, step and limits of few distinct values, so that caches are hit."""
    return {
        "setup": float(rng.choice([0, 2])),
        "step": float(rng.choice([0, 4])),
        "latest": float(rng.choice([np.inf, 80])),
        "max_runtime": float(rng.choice([np.inf, 9])),
    }


def random_request(rng, most_nodes=4):
    """Return a request of few distinct values."""
    return sk.Request(
        int(rng.integers(1, most_nodes + 1)),
        float(rng.choice([2, 5, 9, 14, 30])) * float(rng.choice([1, 1, 0.7])),
        budget=float(rng.choice([np.inf, 20, 40, 80])),
        min_performance=float(rng.choice([0, 0, 0, 2])),
        earliest=float(rng.choice([0, 0, 0, 30, 55.5])),
        deadline=float(rng.choice([np.inf, np.inf, 150])),
        max_price=float(rng.choice([np.inf, np.inf, 1])),
        **random_terms(rng) if rng.random() < 0.3 else {},
    )


def assert_same_but_rows(found, expected):
    """Assert that two windows are equal, except for their row numbers."""
    assert (found is None) == (expected is None)
    if found is not None:
        for name in ("start", "finish", "cost", "processor_time", "value", "nodes"):
            assert getattr(found, name) == getattr(expected, name)
        assert found.slots["end"].tolist() == expected.slots["end"].tolist()
