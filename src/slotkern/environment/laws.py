"""Distributions of random environments: uniform values, market prices, and loads.

Powers are correctly rounded here, because pow() differs by an ulp between machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slotkern.foundation.checks import integer, number, one_of

__all__ = ["Load", "Price", "Uniform", "law_of"]

#: The upper bound of market prices, such that prices with a deviation do not overflow.
_MAX_PRICE = 1e300


@dataclass(frozen=True)
class Uniform:
    """A uniform distribution on [low, high], of integers or (default) real numbers."""

    low: float
    high: float
    integer: bool = False

    def check(self, name: str, *, positive: bool) -> None:
        """Raise ValueError or TypeError with the parameter for invalid bounds."""
        if not isinstance(self.integer, bool):
            raise TypeError(f"{name}: integer must be true or false, not {self!r}")
        for end, bound in (("low", self.low), ("high", self.high)):
            number(f"{name}: {end}", bound)
            if self.integer and bound != int(bound):
                raise ValueError(f"{name}: {end}: {bound} is not an integer")
        if self.low > self.high:
            raise ValueError(f"{name}: low {self.low} exceeds high {self.high}")
        if positive and self.low <= 0:
            raise ValueError(f"{name} must be positive, but its low is {self.low}")

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw `size` independent values."""
        if self.integer:
            drawn = rng.integers(int(self.low), int(self.high), size, endpoint=True)
            return drawn.astype(np.float64)
        return self.low + (self.high - self.low) * rng.random(size)


@dataclass(frozen=True)
class Price:
    """A price distribution: level * performance**exponent * (1 + deviation * N(0, 1)).

    A price is drawn again if it is not above the least of 0.02 * level * performance
    and 0.5 * level * performance**exponent. With the deviation 0.2 and exponent 1 of
    the papers this happens less than once in a million draws.
    """

    level: float = 1.0
    exponent: float = 1.0
    deviation: float = 0.2

    def check(self, name: str) -> None:
        """Raise ValueError with the parameter for invalid values."""
        for field in fields(self):
            number(f"{name}: {field.name}", getattr(self, field.name))
        if self.level <= 0:
            raise ValueError(f"{name}: level must be positive, not {self.level}")
        if not -8 <= self.exponent <= 8:
            raise ValueError(f"{name}: exponent {self.exponent} is not within [-8, 8]")
        if not 0 <= self.deviation <= 10:
            raise ValueError(f"{name}: deviation {self.deviation} is not in [0, 10]")

    def draw(
        self, rng: np.random.Generator, performance: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Draw a price for each node, given the performances."""
        with np.errstate(over="ignore", under="ignore"):
            market = self.level * _power(performance, self.exponent)
        wrong = np.flatnonzero(~((market > 0) & (market < _MAX_PRICE)))
        if wrong.size:
            raise ValueError(
                f"price: {self.level} * performance**{self.exponent} is "
                f"{market[wrong[0]]} for performance {performance[wrong[0]]}"
            )
        least = np.minimum(0.02 * self.level * performance, 0.5 * market)
        price = market * (1.0 + self.deviation * rng.standard_normal(market.size))
        while (low := np.flatnonzero(price <= least)).size:
            deviate = rng.standard_normal(low.size)
            price[low] = market[low] * (1.0 + self.deviation * deviate)
        return price


@dataclass(frozen=True)
class Load:
    """The share of the interval that local tasks occupy on a node, in [low, high].

    ``"hypergeometric"``: low + (high - low) * H / max H, with the hypergeometric number
    H of good items in ``draws`` draws from ``population`` items, ``good`` of them good.
    ``"uniform"``: a real uniform share; the other fields are not used.
    """

    low: float
    high: float
    law: str = "hypergeometric"
    population: int = 6
    good: int = 3
    draws: int = 3

    def check(self, name: str) -> None:
        """Raise ValueError with the parameter for invalid values."""
        for end, bound in (("low", self.low), ("high", self.high)):
            number(f"{name}: {end}", bound)
            if not 0 <= bound <= 1:
                raise ValueError(f"{name}: {end}: {bound} is not within [0, 1]")
        if self.low > self.high:
            raise ValueError(f"{name}: low {self.low} exceeds high {self.high}")
        one_of(f"{name}: law", self.law, ("hypergeometric", "uniform"))
        for part in ("population", "good", "draws"):
            integer(f"{name}: {part}", getattr(self, part), least=1)
        if max(self.good, self.draws) > self.population:
            raise ValueError(
                f"{name}: good {self.good} and draws {self.draws} cannot exceed "
                f"population {self.population}"
            )

    def draw(
        self, rng: np.random.Generator, nodes: int, interval: int
    ) -> NDArray[np.int64]:
        """Draw the busy time of each node, in whole time units."""
        if self.law == "uniform":
            share = rng.random(nodes)
        else:
            bad = self.population - self.good
            hits = rng.hypergeometric(self.good, bad, self.draws, nodes)
            share = hits / min(self.good, self.draws)
        busy = np.rint((self.low + (self.high - self.low) * share) * interval)
        return busy.astype(np.int64)


_L = TypeVar("_L", Uniform, Price, Load)


def law_of(kind: type[_L], name: str, value: Any) -> _L:
    """Convert a mapping, or a pair for `Load`, to a distribution; return one as is."""
    if isinstance(value, kind):
        return value
    known = [field.name for field in fields(kind)]
    if isinstance(value, Mapping):
        for key in value:
            if key not in known:
                raise ValueError(
                    f"{name}: unknown key {key!r}; known are {', '.join(known)}"
                )
        try:
            return kind(**value)
        except TypeError:
            raise ValueError(
                f"{name}: {dict(value)!r} lacks one of {', '.join(known)}"
            ) from None
    if kind is Load and isinstance(value, (tuple, list)) and len(value) == 2:
        return kind(*value)
    raise TypeError(f"{name}: {value!r} is not a {kind.__name__} law")


def _power(base: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Return base**exponent, correctly rounded, the same bits on every machine."""
    if exponent == 1.0:
        return base
    distinct, index = np.unique(base, return_inverse=True)
    return np.array([_exact_power(b, exponent) for b in distinct.tolist()])[index]


@lru_cache(maxsize=4096)
def _exact_power(base: float, exponent: float) -> float:
    return float(Context(prec=40).power(Decimal(base), Decimal(str(exponent))))
