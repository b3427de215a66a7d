"""Traces as environments: the jobs of a trace, and the free slots between them.

A process reads and places a trace once, regardless of the number of cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import file_digest
from typing import Any

import numpy as np

from slotkern.environment.generate import NODE, TASK, Environment
from slotkern.studies.fields import as_count, as_number, as_text, only_keys
from slotkern.traces.free_slots import PlacedTrace, node_laws, place_trace
from slotkern.traces.read import read_trace
from slotkern.traces.trace import Trace

__all__ = ["environment_of_trace", "named_trace", "trace_in", "trace_law"]

#: The keys of ``[environment]`` if it names a trace.
_KEYS = (
    *("trace", "clean", "processors", "performance", "price"),
    *("first", "horizon", "step"),
)


def named_trace(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the path and the digest of the trace that ``environment.trace`` names.

    The digest is part of the study's identity, so that a campaign is not continued with
    another trace of the same name.

    Raises
    ------
    ValueError
        If the file cannot be read; the message names the key.
    """
    path = as_text("environment.trace", environment.get("trace"))
    try:
        with open(path, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"environment.trace: {path}: {reason}") from None
    return {"trace": path, "digest": digest}


def trace_in(environment: Mapping[str, Any]) -> Trace:
    """Return the trace of a checked setting, cleaned as requested.

    Raises
    ------
    ValueError
        As `read_trace`; also if the file has changed since the check.
    """
    repairs = tuple(environment.get("clean", ()))
    return _read(environment["trace"], environment["digest"], repairs)


@lru_cache(maxsize=2)
def _read(path: str, digest: str, repairs: tuple[str, ...]) -> Trace:
    try:
        trace = read_trace(path, clean=repairs)
        if named_trace({"trace": path})["digest"] != digest:
            raise ValueError(f"{path} is not the file that the study began with")
    except ValueError as error:
        raise ValueError(f"environment.trace: {error}") from None
    return trace


def trace_law(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check an ``[environment]`` that names a trace, and fill in its defaults.

    Cycle k covers the seconds [first + k * step, first + k * step + horizon).
    """
    only_keys("environment", given, _KEYS)
    law: dict[str, Any] = {**given, **named_trace(given)}
    horizon = as_number("environment.horizon", law.get("horizon", 86400), above=0)
    step = as_number("environment.step", law.get("step", horizon), above=0)
    if "processors" in law:
        as_count("environment.processors", law["processors"])
    submit = trace_in(law).jobs["submit"]
    earliest = float(submit[submit >= 0].min(initial=np.inf))
    first = as_number("environment.first", law.get("first", earliest), least=0)
    law |= {"horizon": horizon, "step": step, "first": first}
    environment_of_trace(law, 0, 0)
    return law


def environment_of_trace(law: Mapping[str, Any], seed: int, cycle: int) -> Environment:
    """Return the free slots of a trace in one cycle, with times from the cycle's start.

    Raises
    ------
    ValueError
        As `slots_from_trace`; also for a cycle after the last job.
    """
    repairs = tuple(law.get("clean", ()))
    horizon, at = law["horizon"], law["first"] + cycle * law["step"]
    try:
        laws = node_laws(law.get("performance", 1.0), law.get("price", 0.0))
        key = law["trace"], law["digest"], repairs, law.get("processors")
        placed = _placed(*key)
        slots = placed.slots(at, horizon, *laws, seed).slots
    except (TypeError, ValueError) as error:
        raise ValueError(f"environment: cycle {cycle}: {error}") from None
    slots["start"] -= at
    slots["end"] -= at
    node, start, end = placed.busy(at, at + horizon)
    order = np.lexsort((start, node))
    tasks = np.zeros(len(node), TASK)
    tasks["node"] = node[order]
    tasks["start"] = start[order].clip(min=at) - at
    tasks["end"] = end[order].clip(max=at + horizon) - at
    nodes = np.zeros(placed.processors, NODE)
    nodes["node"] = np.arange(placed.processors)
    nodes["performance"], nodes["price"] = placed.machine(*laws, seed)
    return Environment(nodes, tasks, slots, horizon)


@lru_cache(maxsize=2)
def _placed(
    path: str, digest: str, repairs: tuple[str, ...], processors: int | None
) -> PlacedTrace:
    return place_trace(_read(path, digest, repairs), processors)
