"""The least window of a job at prices of node-time, in plain Python.

The same definition as ``batch/least_window.hpp``, one part and one start at a time.
Sums are added in the documented order, so that results agree bit for bit, ties
included.
"""

from __future__ import annotations

import math
from itertools import combinations


class Rates:
    """The rate of each node's time: the sum of the rates of spans, in their order."""

    def __init__(self, nodes, spans):
        self.times, self.rates, self.sums = {}, {}, {}
        for k in range(nodes):
            mine = [(a, b, rate) for node, a, b, rate in spans if node == k]
            if not mine:
                continue
            times = sorted({t for a, b, _ in mine for t in (a, b)})
            rates = [sum(r for a, b, r in mine if a <= t < b) for t in times]
            sums = [0.0]
            for i in range(len(times) - 1):
                sums.append(sums[i] + rates[i] * (times[i + 1] - times[i]))
            self.times[k], self.rates[k], self.sums[k] = times, rates, sums

    def until(self, node, t):
        """Return the integral of the rate from before all spans until t."""
        before = [i for i, each in enumerate(self.times[node]) if each <= t]
        if not before:
            return 0.0
        i = before[-1]
        rate = self.rates[node][i]
        return self.sums[node][i] + rate * (t - self.times[node][i])

    def integral(self, node, t, length):
        """Return the integral over a part; 0 on a node without spans."""
        if node not in self.times:
            return 0.0
        return self.until(node, t + length) - self.until(node, t)

    def turns(self, node, length):
        """Return the starts at which the slope of the integral rises."""
        if node not in self.times:
            return []
        pairs = zip([0.0, *self.rates[node]], self.rates[node], strict=False)
        steps = zip(self.times[node], pairs, strict=True)
        return [
            t if after < before else t - length
            for t, (before, after) in steps
            if before != after
        ]


def part_amount(measure, row, length, price):
    """Return the amount of a part on a row."""
    if not isinstance(measure, str):
        return measure[row]
    return {"cost": length * price, "processor_time": length}.get(measure, 0.0)


def weights(measure):
    """Return the amounts of a unit of start and of length."""
    known = {"start": (1.0, 0.0), "finish": (1.0, 1.0), "runtime": (0.0, 1.0)}
    return known.get(measure, (0.0, 0.0)) if isinstance(measure, str) else (0.0, 0.0)


class Model:
    """One job: its request, usable rows and lengths; slots; target and expense."""

    def __init__(
        self, request, usable, own, slots, target, expense, sign, origin, square
    ):
        self.request, self.usable, self.own, self.slots = request, usable, own, slots
        self.target, self.expense = target, expense
        self.sign, self.origin, self.square = sign, origin, square

    def least(self, free, rates, factor, spans):
        """Return the bound and the windows from the least on, as the kernel does."""
        self.rates, self.factor = rates, factor
        #: True if the n least amounts exceed the budget at the least start of a span.
        self.is_tight = False
        self.priced = bool(rates.times)
        levels = [math.inf]
        if self.square or weights(self.target)[1] or weights(self.expense)[1]:
            levels = sorted(
                {self.own[r] for r in range(len(self.own)) if self.usable[r]}
            )
        bound, found = math.inf, []
        for level in levels:
            parts = self.parts(free, level)
            turns = self.turns(parts)
            size = -(-len(turns) // spans) or 1
            for first in range(0, len(turns), size):
                lower, best = self.choose(parts, turns[first : first + size], level)
                bound = min(bound, lower)
                if best is not None and (
                    level == math.inf or level in [self.own[row] for row in best[2]]
                ):
                    found.append(self.window(*best))
        found.sort(key=lambda each: each[0])
        return bound, found[:spans]

    def parts(self, free, level):
        """Return row, node, length, first and last start, and own amount of parts."""
        parts = []
        for row, start, end in free:
            if not self.usable[row] or self.own[row] > level:
                continue
            length = level if self.square else self.own[row]
            end = min(end, self.request.deadline)
            first = max(start, self.request.earliest)
            last = min(end - length, self.request.latest)
            if last + length > end:
                last = math.nextafter(last, -math.inf)
            if first <= last:
                price = self.slots["price"][row]
                amount = self.sign * part_amount(self.target, row, length, price)
                if self.factor:
                    amount += self.factor * part_amount(
                        self.expense, row, length, price
                    )
                node = int(self.slots["node"][row])
                parts.append((row, node, length, first, last, amount))
        enough = len({part[1] for part in parts}) >= self.request.nodes
        as_long = level == math.inf or any(self.own[part[0]] == level for part in parts)
        return parts if enough and as_long else []

    def turns(self, parts):
        """Return all starts at which the least total may be, ascending."""
        turns = {part[3] for part in parts}
        if self.priced:
            for _, node, length, first, last, _ in parts:
                turns.add(last)
                some = self.rates.turns(node, length)
                turns |= {t for t in some if first <= t <= last}
        return sorted(turns)

    def choose(self, parts, turns, level):
        """Return a lower bound at some starts, and total, start, rows of the best."""
        best, limit = None, self.request.budget * (1 + 2.0**-50)
        n, tight = self.request.nodes, False
        plain = math.inf, None
        for t in turns:
            live = sorted(
                (self.amount(part, t), part[1], part[0], part[2])
                for part in parts
                if part[3] <= t <= part[4]
            )
            if len(live) < n:
                continue
            total = self.total(live[:n], t, level)
            if total < plain[0]:
                plain = total, live[:n], t
            for some in combinations(live, n):
                if self.money(some) <= limit:
                    whole = self.total(some, t, level)
                    if best is None or whole < best[0]:
                        best = whole, t, [each[2] for each in some]
        if plain[1] is not None:
            tight = self.money(plain[1]) > limit
            if not tight:  # the n least amounts at the earliest of the least starts
                best = plain[0], plain[2], [each[2] for each in plain[1]]
        self.is_tight = self.is_tight or tight
        return (math.inf if best is None else best[0]), best

    def amount(self, part, t):
        """Return the amount of a part from t on."""
        _, node, length, _, _, amount = part
        if not self.priced or node not in self.rates.times:
            return amount
        return amount + self.rates.integral(node, t, length)

    def money(self, some):
        """Return the money of live parts, rounded once."""
        return math.fsum(
            length * self.slots["price"][row] for _, _, row, length in some
        )

    def total(self, some, t, level):
        """Return the total of live parts: amounts in their order, then the rest."""
        total = some[0][0]
        for each in some[1:]:
            total += each[0]
        start, length = weights(self.target)
        whole = self.sign * start * (t - self.origin)
        length *= self.sign
        if self.factor:
            more, longer = weights(self.expense)
            whole += self.factor * more * t
            length += self.factor * longer
        return total + (whole + length * level if length else whole)

    def window(self, total, start, rows):
        """Return total, start, rows, ends, signed target and expense of a window."""
        rows = sorted(rows)
        longest = max(self.own[row] for row in rows)
        lengths = [longest if self.square else self.own[row] for row in rows]
        amounts = []
        for measure, since in (
            (self.target, start - self.origin),
            (self.expense, start),
        ):
            parts = 0.0
            for row, length in zip(rows, lengths, strict=True):
                parts += part_amount(measure, row, length, self.slots["price"][row])
            of_start, of_length = weights(measure)
            amounts.append(of_start * since + of_length * longest + parts)
        ends = [start + length for length in lengths]
        return total, start, rows, ends, self.sign * amounts[0], amounts[1]
