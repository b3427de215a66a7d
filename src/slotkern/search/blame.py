"""Explanations of jobs of several parts: which part, or which gap, is to blame.

A part is to blame if it does not fit by itself. Otherwise a role is to blame if the
others fit without it, a gap if the chain fits without its upper limit, and the budget
of roles if they fit without it. All are results of exact searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slotkern.compound.find import find_best
from slotkern.compound.jobs import AnyOf, Chain, Together
from slotkern.compound.search import CompoundSearch
from slotkern.display import HasTable
from slotkern.display.table import Table
from slotkern.foundation.checks import visible

if TYPE_CHECKING:
    from slotkern.compound.plan import Plan
    from slotkern.search.explanation import Explanation

__all__ = ["CompoundExplanation", "explain_compound"]


@dataclass(frozen=True)
class CompoundExplanation(HasTable):
    """The reasons why a job of several parts has no plan.

    Attributes
    ----------
    fits : bool
        Whether a plan exists.
    kind : {"AnyOf", "Together", "Chain"}
    parts : dict of str to Explanation or CompoundExplanation
        The explanation of each part by itself, by its label.
    blame : list of str
        The labels of the parts that are to blame: those that do not fit by themselves;
        otherwise, for Together, the roles without which the others fit; for a chain
        ``"gap k"``, the gap after stage k, if the chain fits without the upper limit
        of it. Empty if the job fits.
    cheapest : float or None
        The lowest cost of roles without their common budget; None without a budget, or
        if the roles do not fit.
    budget : float
        The common budget of the roles.
    reached : int
        For a chain, the number of stages from the first on that fit.
    """

    fits: bool
    kind: str
    parts: dict[str, Explanation | CompoundExplanation]
    blame: list[str]
    cheapest: float | None = None
    budget: float = math.inf
    reached: int = 0

    def __str__(self) -> str:
        if self.fits:
            return f"The {self.kind} fits."
        lines = [f"The {self.kind} does not fit."]
        alone = [label for label in self.parts if not self.parts[label].fits]
        word = {"AnyOf": "option", "Together": "role", "Chain": "stage"}[self.kind]
        for label in alone:
            known = label if label.startswith(f"{word} ") else f"{word} {label!r}"
            lines.append(f"{known} by itself:")
            lines += [f"  {line}" for line in str(self.parts[label]).splitlines()]
        if self.cheapest is not None and self.cheapest > self.budget:
            lines.append(
                f"the roles together cost at least {self.cheapest:.6g}; their common "
                f"budget is {self.budget:g}"
            )
        elif not alone and self.kind == "Together":
            lines.append(
                "each role fits by itself, but they never fit at the same time"
            )
            lines += [f"without role {label!r} the others fit" for label in self.blame]
        elif not alone and self.kind == "Chain":
            lines.append(
                f"each stage fits by itself; in this order the first {self.reached} of "
                f"{len(self.parts)} fit"
            )
            lines += [
                f"without the upper limit of {label} the chain fits"
                for label in self.blame
            ]
        return "\n".join(map(visible, lines))

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as Python numbers and text, ready for JSON."""
        return {
            "fits": self.fits,
            "kind": self.kind,
            "blame": list(self.blame),
            "cheapest": self.cheapest,
            "budget": None if self.budget == math.inf else self.budget,
            "reached": self.reached,
            "parts": {label: part.to_dict() for label, part in self.parts.items()},
        }

    def _as_table(self) -> Table:
        """Return a row for each part."""
        labels = list(self.parts)
        columns = {
            "part": np.array(labels, np.str_),
            "fits": np.array([part.fits for part in self.parts.values()]),
            "to blame": np.array([label in self.blame for label in labels]),
        }
        return Table(str(self).splitlines()[0], columns, len(labels))


def explain_compound(
    slots: Any, job: Any, shape: str, explain: Callable[..., Any]
) -> CompoundExplanation:
    """Explain a job of several parts; `explain` explains each part."""
    search = CompoundSearch(slots, job, shape)

    def plan_of(other: Any, **limits: Any) -> Plan | None:
        criterion = "finish" if isinstance(other, Chain) else "start"
        return find_best(search, other, criterion, **limits)

    parts = {
        label: explain(slots, part, shape=shape)
        for label, part in zip(job.labels, job.parts, strict=True)
    }
    if plan_of(job) is not None:
        return CompoundExplanation(True, type(job).__name__, parts, [])
    blame = [label for label, part in parts.items() if not part.fits]
    if isinstance(job, AnyOf):
        return CompoundExplanation(False, "AnyOf", parts, blame)
    if isinstance(job, Together):
        return _of_roles(search, job, parts, blame, plan_of)
    return _of_stages(job, parts, blame, plan_of)


def _of_roles(
    search: CompoundSearch,
    job: Together,
    parts: dict[str, Any],
    blame: list[str],
    plan_of: Callable[..., Plan | None],
) -> CompoundExplanation:
    cheapest = None
    if job.budget < math.inf and not blame and not search.has_tariffs:
        free = find_best(search, job.replace(budget=math.inf), "cost")
        cheapest = None if free is None else free.cost
    if not blame and cheapest is None and len(job.roles) > 1:
        for k, label in enumerate(job.labels):
            others = job.replace(roles=job.roles[:k] + job.roles[k + 1 :])
            if plan_of(others) is not None:
                blame.append(label)
    return CompoundExplanation(
        False, "Together", parts, blame, cheapest=cheapest, budget=job.budget
    )


def _of_stages(
    job: Chain,
    parts: dict[str, Any],
    blame: list[str],
    plan_of: Callable[..., Plan | None],
) -> CompoundExplanation:
    reached = 0
    for count in range(1, len(job.stages)):
        first = job.replace(stages=job.stages[:count], gap=list(job.gaps[: count - 1]))
        if plan_of(first) is None:
            break
        reached = count
    if not blame:
        for k, (least, most) in enumerate(job.gaps):
            if most != math.inf:
                gaps: list[Any] = list(job.gaps)
                gaps[k] = least, math.inf
                if plan_of(job.replace(gap=gaps)) is not None:
                    blame.append(f"gap {k + 1}")
    return CompoundExplanation(False, "Chain", parts, blame, reached=reached)
