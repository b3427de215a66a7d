"""What a paper says in words, and whether it comes out: ``[[claim]]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from slotkern.studies.study import Setting
from slotkern.studies.summary import Summary

__all__ = ["ALONG", "AMONG", "Verdict", "verdicts"]


@dataclass(frozen=True)
class Verdict:
    """Whether the means do what a claim says, and what more there is to tell."""

    text: str
    holds: bool
    told: str = ""


#: Claims on one algorithm among others, in the first setting of a sweep.
AMONG: Mapping[str, Callable[[float, Sequence[float]], bool]] = {
    "least": lambda mine, others: mine <= min(others),
    "most": lambda mine, others: mine >= max(others),
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
        return [summary.estimate(each, of, metric).mean for each in settings]

    if kind in AMONG:
        (mine,) = means(name, metric, settings[:1])
        others = [means(o, metric, settings[:1])[0] for o in record["among"]]
        return Verdict(record["text"], AMONG[kind](mine, others))
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
