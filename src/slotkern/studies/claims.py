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
    """Whether the means do what a claim says, and what more there is to tell.

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
#: Claims on the means of one algorithm along a varied value, whatever the others are.
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
    kind = record["is"]
    if kind in AMONG:
        names = (record["algorithm"], *record["among"])
        mine, *others = (_means(summary, settings[:1], n, record) for n in names)
        return Verdict(record["text"], AMONG[kind](mine[0], [o for (o,) in others]))
    along = lines(settings, record.get("along"))
    if kind in ("rising", "falling"):
        return _steady(summary, record, along)
    ask = _peak if kind == "peak" else _crossing
    answers = [ask(summary, record, line) for line in along]
    told = dict.fromkeys(words for _, words in answers if words)
    return Verdict(record["text"], all(yes for yes, _ in answers), ", ".join(told))


def _peak(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool, str]:
    """Whether the largest mean is where it is said to be, and where it is."""
    means = _means(summary, line, record["algorithm"], record)
    at = _place(record, line[max(range(len(means)), key=means.__getitem__)])
    return at == record["at"], f"at {at}"


def _crossing(
    summary: Summary, record: Mapping[str, Any], line: Sequence[Setting]
) -> tuple[bool, str]:
    """Whether two metrics' curves cross once, and between which places they cross."""
    name, other = record["algorithm"], {"metric": record["other"]}
    pair = (_means(summary, line, name, each) for each in (record, other))
    over = [a > b for a, b in zip(*pair, strict=True)]
    turns = [k for k, (a, b) in enumerate(pairwise(over)) if a != b]
    at = [_place(record, setting) for setting in line]
    told = [f"between {at[k]} and {at[k + 1]}" for k in turns]
    return len(turns) == 1, ", ".join(told)


def _steady(
    summary: Summary, record: Mapping[str, Any], along: Sequence[Sequence[Setting]]
) -> Verdict:
    """Whether no step goes the other way, over the same cycles; if so, the furthest."""
    name, metric = record["algorithm"], record["metric"]
    sign = 1 if record["is"] == "rising" else -1
    steps = [
        (summary.step(a, b, name, metric), a, b)
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


def _means(
    summary: Summary, line: Sequence[Setting], name: str, record: Mapping[str, Any]
) -> list[float]:
    return [summary.estimate(each, name, record["metric"]).mean for each in line]


def _place(record: Mapping[str, Any], setting: Setting) -> Any:
    return setting.values[record.get("along", next(iter(setting.values)))]
