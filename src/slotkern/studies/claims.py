"""What a paper says in words, and whether it comes out: ``[[claim]]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from slotkern.studies.study import Setting
from slotkern.studies.summary import Summary

__all__ = ["ALONG", "AMONG", "AT", "Verdict", "verdicts"]


@dataclass(frozen=True)
class Verdict:
    """Whether the means (or medians) do what a claim says, and what more to tell."""

    text: str
    holds: bool
    told: str = ""


#: Claims on one algorithm among others, in the first setting of a sweep.
AMONG: Mapping[str, Callable[[float, Sequence[float]], bool]] = {
    "least": lambda mine, others: mine <= min(others),
    "most": lambda mine, others: mine >= max(others),
}
#: Claims on one algorithm's mean and a number, in the first setting of a sweep.
AT: Mapping[str, Callable[[float, float, float], bool]] = {
    "near": lambda mine, at, within: abs(mine - at) <= within,
    "above": lambda mine, at, within: mine > at - within,
    "below": lambda mine, at, within: mine < at + within,
}
#: Claims on the means of one algorithm along a sweep.
ALONG = ("rising", "falling", "peak", "crossing")


def verdicts(summary: Summary) -> list[Verdict]:
    """Return what becomes of the study's claims, in its order."""
    return [_verdict(summary, record) for record in summary.study.claims]


def _verdict(summary: Summary, record: Mapping[str, Any]) -> Verdict:
    settings = summary.study.sweep_of(record)
    name, metric, kind = record["algorithm"], record["metric"], record["is"]

    def means(of: str, metric: str, settings: Sequence[Setting]) -> list[float]:
        if record.get("of") == "median":
            return [summary.median(each, of, metric).middle for each in settings]
        return [summary.estimate(each, of, metric).mean for each in settings]

    if kind in AMONG:
        times = record.get("times", 1)
        (mine,) = means(name, metric, settings[:1])
        others = [times * means(o, metric, settings[:1])[0] for o in record["among"]]
        cycles = summary.cycles_where(
            settings[0],
            metric,
            (name, *record["among"]),
            lambda row: AMONG[kind](row[0], [times * other for other in row[1:]]),
        )
        told = f"{mine:.4g} and {_listed(others)}; in {cycles[0]} of {cycles[1]} cycles"
        return Verdict(record["text"], AMONG[kind](mine, others), told)
    if kind in AT:
        (mine,) = means(name, metric, settings[:1])
        holds = AT[kind](mine, record["at"], record.get("within", 0))
        return Verdict(record["text"], holds, f"{mine:.4g}")
    line = means(name, metric, settings)
    places = [next(iter(setting.values.values())) for setting in settings]
    if kind == "peak":
        at = places[max(range(len(line)), key=line.__getitem__)]
        return Verdict(record["text"], at == record["at"], f"at {at}")
    if kind == "crossing":
        other = means(name, record["other"], settings)
        over = [a > b for a, b in zip(line, other, strict=True)]
        turns = [k for k, (a, b) in enumerate(pairwise(over)) if a != b]
        told = [f"between {places[k]} and {places[k + 1]}" for k in turns]
        return Verdict(record["text"], len(turns) == 1, ", ".join(told))
    steps = [b - a for a, b in pairwise(line)]
    holds = all(step >= 0 if kind == "rising" else step <= 0 for step in steps)
    return Verdict(record["text"], holds)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
