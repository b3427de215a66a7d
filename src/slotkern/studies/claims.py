"""What a paper says in words, and whether it comes out: ``[[claim]]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from slotkern.studies.study import Setting
from slotkern.studies.summary import Estimate, Summary

__all__ = ["ALONG", "AMONG", "AT", "Verdict", "verdicts"]


@dataclass(frozen=True)
class Verdict:
    """Whether the means (or medians) do what a claim says, and what more to tell.

    `holds` is None where what goes against it is no more than three standard errors.
    """

    text: str
    holds: bool | None
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
#: Claims on one algorithm's means along a varied value, whatever the others are.
ALONG = ("rising", "falling", "peak", "crossing")


def verdicts(summary: Summary) -> list[Verdict]:
    """Return what becomes of the study's claims, in its order."""
    return [_verdict(summary, record) for record in summary.study.claims]


def lines(settings: Sequence[Setting], along: str | None) -> list[list[Setting]]:
    """Return the settings that differ in one varied value alone, the first by default.

    Each line has the order of the file.
    """
    path = next(iter(settings[0].values)) if along is None else along
    found: dict[str, list[Setting]] = {}
    for setting in settings:
        rest = {name: v for name, v in setting.values.items() if name != path}
        found.setdefault(repr(rest), []).append(setting)
    return list(found.values())


def _verdict(summary: Summary, record: Mapping[str, Any]) -> Verdict:
    settings = summary.study.sweep_of(record)
    name, metric, kind = record["algorithm"], record["metric"], record["is"]
    if kind in AMONG:
        times = record.get("times", 1)
        mine = _middle(summary, record, settings[0], name)
        others = [
            times * _middle(summary, record, settings[0], o) for o in record["among"]
        ]
        cycles = summary.cycles_where(
            settings[0],
            metric,
            (name, *record["among"]),
            lambda row: AMONG[kind](row[0], [times * other for other in row[1:]]),
        )
        told = f"{mine:.4g} and {_listed(others)}; in {cycles[0]} of {cycles[1]} cycles"
        return Verdict(record["text"], AMONG[kind](mine, others), told)
    if kind in AT:
        mine = _middle(summary, record, settings[0], name)
        holds = AT[kind](mine, record["at"], record.get("within", 0))
        return Verdict(record["text"], holds, f"{mine:.4g}")
    along = lines(settings, record.get("along"))
    if kind in ("rising", "falling"):
        return _steady(summary, record, along)
    ask = _peak if kind == "peak" else _crossing
    answers = [ask(summary, record, line) for line in along]
    words = dict.fromkeys(told for _, told in answers if told)
    return Verdict(record["text"], all(yes for yes, _ in answers), ", ".join(words))


def _peak(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool, str]:
    """Whether the largest is where it is said to be, and where it is."""
    found = [_middle(summary, record, each, record["algorithm"]) for each in line]
    at = _place(record, line[max(range(len(found)), key=found.__getitem__)])
    return at == record["at"], f"at {at}"


def _crossing(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool, str]:
    """Whether two metrics' curves cross once, and between which places they cross."""
    other = {**record, "metric": record["other"]}
    over = [
        _middle(summary, record, each, record["algorithm"])
        > _middle(summary, other, each, record["algorithm"])
        for each in line
    ]
    turns = [k for k, (a, b) in enumerate(pairwise(over)) if a != b]
    at = [_place(record, setting) for setting in line]
    told = [f"between {at[k]} and {at[k + 1]}" for k in turns]
    return len(turns) == 1, ", ".join(told)


def _steady(
    summary: Summary, record: Mapping[str, Any], along: Sequence[Sequence[Setting]]
) -> Verdict:
    """Whether no step goes the other way, over the same cycles; if so, the furthest."""
    sign = 1 if record["is"] == "rising" else -1
    steps = [
        (_step(summary, record, a, b), a, b)
        for line in along
        for a, b in pairwise(line)
    ]
    against = [each for each in steps if not sign * each[0].mean >= 0]
    if not against:
        return Verdict(record["text"], True)
    clear = [e for e, _, _ in against if not abs(e.mean) <= 3 * e.error]
    furthest, a, b = max(against, key=lambda each: -sign * each[0].mean)
    return Verdict(
        record["text"],
        False if clear else None,
        f"not in {len(against)} of {len(steps)} steps, {len(clear)} of them by more "
        f"than three standard errors; from {a.label} to {b.label} by "
        f"{furthest.mean:+.3g} ±{furthest.error:.1g}",
    )


def _step(
    summary: Summary, record: Mapping[str, Any], before: Setting, after: Setting
) -> Estimate:
    name = record["algorithm"]
    if record.get("of") != "median":
        return summary.step(before, after, name, record["metric"])
    ends = [_middle(summary, record, each, name) for each in (before, after)]
    return Estimate(ends[1] - ends[0], 0.0, 1)


def _middle(
    summary: Summary, record: Mapping[str, Any], setting: Setting, name: str
) -> float:
    """The mean of the record's metric, or its median if the record asks for that."""
    if record.get("of") == "median":
        return summary.median(setting, name, record["metric"]).middle
    return summary.estimate(setting, name, record["metric"]).mean


def _place(record: Mapping[str, Any], setting: Setting) -> Any:
    return setting.values[record.get("along", next(iter(setting.values)))]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
