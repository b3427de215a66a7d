"""Claims: statements of a paper about means or medians, and whether they hold.

A claim is a ``[[claim]]`` table. A comparison is decided if it is at least three
standard errors from equality over at least six cycles; otherwise the verdict is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from slotkern.studies.study import Setting
from slotkern.studies.summary import Estimate, Summary

__all__ = [
    "ADVANTAGE_CLAIMS",
    "NUMBER_CLAIMS",
    "RIVAL_CLAIMS",
    "TREND_CLAIMS",
    "Verdict",
    "verdicts",
]


#: With fewer cycles the error of a mean is too uncertain for a decision.
_MIN_CYCLES = 6


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: its text, the decision, and figures in words.

    `holds` is None if the data do not decide the claim; see `_decide`.
    """

    text: str
    holds: bool | None
    details: str = ""


#: Claims on one algorithm and others: the required signs of its difference to each.
#: "like" has both signs: the metric is within a share, `within`, of that of each of
#: them.
RIVAL_CLAIMS: Mapping[str, Sequence[float]] = {
    "least": (-1.0,),
    "most": (1.0,),
    "like": (-1.0, 1.0),
}
#: Claims on one algorithm's mean and a number: the margin by which the mean meets them.
NUMBER_CLAIMS: Mapping[str, Callable[[float, float, float], float]] = {
    "near": lambda mine, at, within: within - abs(mine - at),
    "above": lambda mine, at, within: mine - (at - within),
    "below": lambda mine, at, within: at + within - mine,
}
#: Claims on one algorithm's advantage over others by one metric, compared with another.
ADVANTAGE_CLAIMS = ("gaining",)
#: Claims on one algorithm's means along a varied value.
TREND_CLAIMS = ("rising", "falling", "peak", "crossing")


def verdicts(summary: Summary) -> list[Verdict]:
    """Return the verdicts on the study's claims, in its order."""
    return [_verdict(summary, record) for record in summary.study.claims]


def lines(settings: Sequence[Setting], along: str | None) -> list[list[Setting]]:
    """Group settings that differ in one varied value only, by default the first.

    Each group is in the order of the file.
    """
    path = next(iter(settings[0].values)) if along is None else along
    found: dict[str, list[Setting]] = {}
    for setting in settings:
        rest = {name: v for name, v in setting.values.items() if name != path}
        found.setdefault(repr(rest), []).append(setting)
    return list(found.values())


def _verdict(summary: Summary, record: Mapping[str, Any]) -> Verdict:
    settings = summary.study.sweep_of(record)
    kind = record["is"]
    if kind in RIVAL_CLAIMS or kind in NUMBER_CLAIMS or kind in ADVANTAGE_CLAIMS:
        return _decide_each(summary, record, settings)
    along = lines(settings, record.get("along"))
    if kind in ("rising", "falling"):
        return _decide_trend(summary, record, along)
    decide = _decide_peak if kind == "peak" else _decide_crossing
    answers = [decide(summary, record, line) for line in along]
    words = dict.fromkeys(details for _, details in answers if details)
    holds = _combine(answer for answer, _ in answers)
    return Verdict(record["text"], holds, ", ".join(words))


def _decide_each(
    summary: Summary, record: Mapping[str, Any], settings: Sequence[Setting]
) -> Verdict:
    """Decide a claim in every setting of a sweep; report the least favourable one."""
    compare = _compare_rivals if record["is"] in RIVAL_CLAIMS else _compare_number
    if record["is"] in ADVANTAGE_CLAIMS:
        compare = _compare_advantages
    found = [compare(summary, record, setting) for setting in settings]
    even = record["is"] not in ("above", "below", *ADVANTAGE_CLAIMS)
    answers = [_decide(margin, even) for margin, _ in found]
    against = sum(m.count > 0 and not _fulfilled(m, even) for m, _ in found)
    worst = min(range(len(found)), key=lambda k: _in_errors(found[k][0]))
    details = found[worst][1]
    if len(settings) > 1:
        details = f"{settings[worst].label}: {details}"
    if len(settings) > 1 and against:
        details = (
            f"not in {against} of {len(settings)} settings, {answers.count(False)} "
            f"of them by more than three standard errors; {details}"
        )
    return Verdict(record["text"], _combine(answers), details)


def _compare_rivals(
    summary: Summary, record: Mapping[str, Any], setting: Setting
) -> tuple[Estimate, str]:
    """Return the least margin over the rivals, and the means in words."""
    name, metric, among = (record[key] for key in ("algorithm", "metric", "among"))
    signs, times = RIVAL_CLAIMS[record["is"]], record.get("times", 1)
    within = record.get("within", 0) if record["is"] == "like" else 0
    # Below (1 + within) times the other, and above (1 - within) times it.
    limits = [(sign, times * (1 - sign * within)) for sign in signs]
    mine = _mean_or_median(summary, record, setting, name)
    others = [_mean_or_median(summary, record, setting, other) for other in among]
    margins = []
    for rival, other in zip(among, others, strict=True):
        for sign, factor in limits:
            if record.get("of") == "median":
                count = min(mine.count, other.count)
                lead = Estimate(mine.mean - factor * other.mean, 0.0, count)
            else:
                lead = summary.lead(setting, name, rival, metric, factor)
            margins.append(replace(lead, mean=sign * lead.mean))
    yes, cycles = summary.cycles_where(
        setting,
        metric,
        (name, *among),
        lambda row: all(
            sign * (row[0] - factor * other) >= 0
            for other in row[1:]
            for sign, factor in limits
        ),
    )
    beside = ", ".join(_format_mean(other, times) for other in others)
    details = f"{_format_mean(mine)} and {beside}; in {yes} of {cycles} cycles"
    return min(margins, key=_in_errors), details


def _compare_number(
    summary: Summary, record: Mapping[str, Any], setting: Setting
) -> tuple[Estimate, str]:
    """Return the margin by which the mean meets the number, and the mean in words."""
    mine = _mean_or_median(summary, record, setting, record["algorithm"])
    margin = NUMBER_CLAIMS[record["is"]](
        mine.mean, record["at"], record.get("within", 0)
    )
    return replace(mine, mean=margin), _format_mean(mine)


def _compare_advantages(
    summary: Summary, record: Mapping[str, Any], setting: Setting
) -> tuple[Estimate, str]:
    """Return the margin between the advantages over a rival by two metrics.

    An advantage is one minus the ratio of the means.
    """
    name, metric, other = (record[key] for key in ("algorithm", "metric", "other"))
    found = [
        summary.gain(setting, name, rival, metric, other) for rival in record["among"]
    ]
    margin, first, second = min(found, key=lambda each: _in_errors(each[0]))
    details = f"{first:.2%} and {second:.2%}" if margin.count else "none"
    return margin, details


def _format_mean(mean: Estimate, times: float = 1.0) -> str:
    return f"{times * mean.mean:.4g}" if mean.count else "none"


def _decide(margin: Estimate, even: bool = True) -> bool | None:
    """Return whether a margin is positive, or with `even` zero; None if undecided.

    Decided margins are at least three standard errors from zero, over enough cycles.
    """
    if margin.count < _MIN_CYCLES or abs(margin.mean) < 3 * margin.error:
        return None
    return _fulfilled(margin, even)


def _fulfilled(margin: Estimate, even: bool = True) -> bool:
    return margin.mean > 0 or (even and margin.mean == 0)


def _in_errors(margin: Estimate) -> float:
    """Return a margin in standard errors: the least favourable one has the least."""
    if margin.mean == 0:
        return 0.0
    if margin.error > 0:
        return margin.mean / margin.error
    return math.copysign(math.inf, margin.mean) if margin.count else -math.inf


def _combine(answers: Iterable[bool | None]) -> bool | None:
    """Combine answers: False if one is False, None if one is open, else True."""
    given = set(answers)
    return next((answer for answer in (False, None) if answer in given), True)


def _decide_peak(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool | None, str]:
    """Return whether the largest mean is at the claimed place, and its place."""
    found = [
        _mean_or_median(summary, record, each, record["algorithm"]) for each in line
    ]
    top = next(each for each in line if _varied_value(record, each) == record["at"])
    rest = [each for each in line if each is not top]
    holds = _combine(_decide(_step(summary, record, each, top)) for each in rest)
    at = max(range(len(found)), key=lambda k: found[k].mean)
    return holds, f"at {_varied_value(record, line[at])}"


def _decide_crossing(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool | None, str]:
    """Return whether two metrics' curves cross exactly once, and where in words."""
    name, other = record["algorithm"], {**record, "metric": record["other"]}
    pairs = [
        [_mean_or_median(summary, each, setting, name) for each in (record, other)]
        for setting in line
    ]
    over = [one.mean > two.mean for one, two in pairs]
    turns = [k for k, (a, b) in enumerate(pairwise(over)) if a != b]
    at = [_varied_value(record, setting) for setting in line]
    details = [f"between {at[k]} and {at[k + 1]}" for k in turns]
    enough = min(each.count for pair in pairs for each in pair) >= _MIN_CYCLES
    return len(turns) == 1 if enough else None, ", ".join(details)


def _decide_trend(
    summary: Summary, record: Mapping[str, Any], along: Sequence[Sequence[Setting]]
) -> Verdict:
    """Decide a monotone trend: no step against it, and a significant total change.

    Steps are compared over the same cycles. Reports the largest step against the trend.
    """
    sign = 1 if record["is"] == "rising" else -1

    def climb(a: Setting, b: Setting) -> Estimate:
        step = _step(summary, record, a, b)
        return replace(step, mean=sign * step.mean)

    steps = [(climb(a, b), a, b) for line in along for a, b in pairwise(line)]
    against = [each for each in steps if not _fulfilled(each[0])]
    if not against:
        ways = [(climb(line[0], line[-1]), line[0], line[-1]) for line in along]
        least, a, b = min(
            ways, key=lambda each: (each[0].count >= _MIN_CYCLES, _in_errors(each[0]))
        )
        holds = _combine(_decide(way) for way, _, _ in ways)
        details = "" if holds else f"only {_format_step(sign, least, a, b)}"
        return Verdict(record["text"], holds, details)
    clear = [step for step, _, _ in against if _decide(step) is False]
    furthest, a, b = min(against, key=lambda each: each[0].mean)
    return Verdict(
        record["text"],
        False if clear else None,
        f"not in {len(against)} of {len(steps)} steps, {len(clear)} of them by more "
        f"than three standard errors; {_format_step(sign, furthest, a, b)}",
    )


def _format_step(sign: int, step: Estimate, a: Setting, b: Setting) -> str:
    by = f"{sign * step.mean:+.3g} ±{step.error:.1g}"
    return f"from {a.label} to {b.label} by {by} in {step.count} cycles"


def _step(
    summary: Summary, record: Mapping[str, Any], before: Setting, after: Setting
) -> Estimate:
    name = record["algorithm"]
    if record.get("of") != "median":
        return summary.step(before, after, name, record["metric"])
    a, b = (_mean_or_median(summary, record, each, name) for each in (before, after))
    return Estimate(b.mean - a.mean, 0.0, min(a.count, b.count))


def _mean_or_median(
    summary: Summary, record: Mapping[str, Any], setting: Setting, name: str
) -> Estimate:
    """Return the mean of the record's metric, or its median (with error 0)."""
    if record.get("of") != "median":
        return summary.estimate(setting, name, record["metric"])
    median = summary.median(setting, name, record["metric"])
    return Estimate(median.middle, 0.0, median.count)


def _varied_value(record: Mapping[str, Any], setting: Setting) -> Any:
    return setting.values[record.get("along", next(iter(setting.values)))]
