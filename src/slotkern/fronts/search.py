"""The searches of a front by two goals: the whole front, or at most n points of it.

Both losses are minimized (a maximized sum is negated). A point of the front has the
least first loss among the windows whose second loss is below that of the previous
point, and then the least second loss among those. The limits on the losses are limits
of the request (`latest`, `deadline`, `max_runtime`, `budget`, `limits`), so every
search is a `find_window` and its proof of optimality proves the point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from slotkern._kernels.request import Request
from slotkern._kernels.search import CRITERIA, find_window
from slotkern._kernels.slots import PreparedSlots, has_tariffs
from slotkern._kernels.windows import Window
from slotkern.fronts.goals import LAST_SUM, Goal, bound_to_loss

if TYPE_CHECKING:
    from slotkern.typing import Shape

__all__ = ["FrontSearch", "Point", "Points"]

#: Searches that lower the second loss before a search by the second goal is made.
_STEPS = 2
#: Lower halves of a gap that are searched in turn under tariffs.
_HALVINGS = 8


class Point(NamedTuple):
    """A point of the front: a window and its losses.

    Attributes
    ----------
    first, second : float
        The losses.
    least : float
        A lower bound on the first loss of windows whose second loss is no larger.
    proven : bool
        Whether it is proven that no window dominates this one.
    """

    first: float
    second: float
    least: float
    window: Window
    proven: bool


class Points(NamedTuple):
    """Points by ascending first loss, and the least losses in each gap or None.

    A gap of None is proven to be empty.
    """

    points: list[Point]
    gaps: list[tuple[float, float] | None]

    def swapped(self) -> Points:
        """Return the points by ascending second loss, which becomes the first."""
        points = [
            point._replace(first=point.second, second=point.first)
            for point in reversed(self.points)
        ]
        gaps = [None if gap is None else gap[::-1] for gap in reversed(self.gaps)]
        return Points(points, gaps)


@dataclass
class Gap:
    """A gap of the front between two neighbouring points, while it is searched.

    Windows in it have second losses above `low` and below that of `left`.
    """

    left: Point
    right: Point
    low: float
    halvings: int = 0  # lower halves that were searched in turn without a result
    is_done: bool = False  # the search of this gap has ended


class FrontSearch:
    """The searches of one front: `first` is minimized while `second` is limited.

    `margin` is the relative rounding error of sums; `closed` has the pairs of windows
    with a proven empty gap; `cache` stores the searches by the limit on the second
    loss.
    """

    def __init__(
        self,
        pool: PreparedSlots,
        request: Request,
        shape: Shape,
        first: Goal,
        second: Goal,
        options: dict[str, Any],
    ) -> None:
        self.pool, self.request, self.shape = pool, request, shape
        self.first, self.second, self.options = first, second, options
        # The kernels round costs up to n times.
        self.margin = 2.0**-47 + request.nodes * 2.0**-50
        self.closed: set[tuple[int, int]] = set()
        self.lowest = -math.inf  # the least second loss of all windows
        self.cache: dict[float, tuple[Window | None, float]] = {}
        # Under tariffs windows are endlessly close to each other: the next one is none.
        self.halvings = _HALVINGS if has_tariffs(pool) else 1

    def best(self, goal: Goal, request: Request) -> tuple[Window | None, float]:
        """Return the window of least loss, and a lower bound on the loss of all."""
        swept = isinstance(goal.search, str) and goal.search in CRITERIA
        how = {} if swept and not request.limits else self.options
        window = find_window(self.pool, request, goal.search, shape=self.shape, **how)
        if window is None:
            return None, math.inf
        loss = goal.loss(window)
        if window.proven:
            return window, loss
        return window, min(loss, bound_to_loss(goal, window.bound))

    def best_limited(self, most: float) -> tuple[Window | None, float]:
        """Return `best` by the first goal, with the second loss limited; cached."""
        if most not in self.cache:
            request = self.request
            if most < math.inf:
                request = self.second.limit_to(request, most)
            self.cache[most] = self.best(self.first, request)
        return self.cache[most]

    def point(self, most: float) -> Point | None:
        """Find the point of least first loss whose second loss is at most this."""
        window, least = self.best_limited(most)
        if window is None:
            return None
        return self.by_steps(window, least) or self.by_limit(window, least)

    def by_steps(self, window: Window, least: float) -> Point | None:
        """Find the point by a few searches that limit the second loss further.

        The search that returns a larger first loss is also the first search of the next
        point. None if the first goal is not a sum, or if many windows have equal sums.
        """
        first, second = self.first, self.second
        if first.rank > LAST_SUM:
            return None
        for _ in range(_STEPS):
            loss, lower = first.loss(window), second.loss(window)
            if window.proven:
                least = loss
            if self.is_last(lower):
                return Point(loss, lower, least, window, window.proven)
            following, bound = self.best_limited(self.largest_below(lower))
            if following is None or first.loss(following) > self.largest_equal(
                first, loss
            ):
                proven = window.proven and bound > loss
                return Point(loss, lower, least, window, proven)
            window, least = following, bound
        return None

    def by_limit(self, window: Window, least: float) -> Point:
        """Find the point by a search by the second goal that limits the first loss."""
        first, second = self.first, self.second
        within = self.largest_equal(first, first.loss(window))
        better, _ = self.best(second, first.limit_to(self.request, within))
        chosen = better or window
        proven = window.proven and better is not None and better.proven
        loss = first.loss(chosen)
        least = loss if window.proven else least  # the order of its sum may differ
        return Point(loss, second.loss(chosen), least, chosen, proven)

    def largest_equal(self, goal: Goal, loss: float) -> float:
        """Return the largest loss that counts as equal to this one."""
        return loss if goal.exact else loss + self.margin * abs(loss)

    def largest_below(self, loss: float) -> float:
        """Return the largest second loss that counts as less than this one."""
        if self.second.exact or loss == 0:
            return math.nextafter(loss, -math.inf)
        return loss - self.margin * abs(loss)

    def find_ends(self) -> tuple[Point | None, float]:
        """Return the first point, and a lower bound on all second losses."""
        window, bound = self.best(self.second, self.request)
        if window is None:
            return None, math.inf
        self.lowest = self.second.loss(window)
        return self.point(math.inf), bound

    def is_last(self, loss: float) -> bool:
        """Return whether this is the least second loss of all windows."""
        return loss <= self.largest_equal(
            self.second, self.largest_equal(self.second, self.lowest)
        )

    def all_points(self) -> Points:
        """Find the whole front, from the least first loss to the least second loss."""
        point, bound = self.find_ends()
        points: list[Point] = []
        while point is not None:
            points.append(point)
            if self.is_last(point.second):
                break
            following = self.point(self.largest_below(point.second))
            if following is None or following.second >= point.second:
                break  # the two differ by rounding only
            if following.least >= following.first:
                self.mark_empty(point, following)
            point = following
        return self.collect(points, [], bound)

    def some_points(self, most: int) -> Points:
        """Find at most n points: both ends, then one in the largest gap at a time."""
        first, bound = self.find_ends()
        if first is None:
            return Points([], [])
        last = None
        if not self.is_last(first.second):
            last = self.point(self.largest_equal(self.second, self.lowest))
        if last is None or last.second >= first.second:
            return self.collect([first], [], bound)
        points, gaps = [first, last], [Gap(first, last, last.second)]
        across, up = last.first - first.first, first.second - last.second

        def area(gap: Gap) -> float:
            wide = (gap.right.first - gap.left.first) / across
            return wide * ((gap.left.second - gap.low) / up)

        while len(points) < most:
            open_gaps = [gap for gap in gaps if not gap.is_done]
            if not open_gaps:
                break
            gap = max(open_gaps, key=area)  # ties: the first one
            found = self.search_gap(gap)
            if found is not None:
                points.append(found)
                gaps.append(self.split(gap, found))
        return self.collect(points, gaps, bound)

    def search_gap(self, gap: Gap) -> Point | None:
        """Find a point in a gap; None if its lower half, or all of it, is empty."""
        most = self.largest_below(gap.left.second)
        middle = gap.low + (gap.left.second - gap.low) / 2
        if gap.halvings < self.halvings and gap.low < middle < most:
            most, gap.halvings = middle, gap.halvings + 1
        else:
            gap.is_done = True
        found = self.point(most)
        if found is None or found.first >= gap.right.first:
            if found is None or found.least >= gap.right.first:
                gap.low = max(gap.low, most)
                if gap.is_done:
                    self.mark_empty(gap.left, gap.right)
            else:
                gap.is_done = True  # not proven: further searches cannot decide it
            return None
        gap.halvings = 0
        if found.second <= gap.low and gap.low == gap.right.second:
            gap.is_done = True  # the two differ by rounding only
        return found

    def split(self, gap: Gap, found: Point) -> Gap:
        """Shrink a gap to its left part at a new point, and return the right part."""
        right = Gap(found, gap.right, gap.right.second)
        proven = found.least >= found.first
        if gap.is_done and proven:
            self.mark_empty(gap.left, found)
        elif proven:
            middle = gap.low + (gap.left.second - gap.low) / 2
            gap.low = max(found.second, middle)
        gap.is_done = gap.is_done or not proven
        gap.right = found
        return right

    def mark_empty(self, left: Point, right: Point) -> None:
        """Record that no window lies between two points."""
        self.closed.add((id(left.window), id(right.window)))

    def collect(self, points: list[Point], gaps: list[Gap], lowest: float) -> Points:
        """Return the points that are not dominated, with the bounds of their gaps."""
        kept: list[Point] = []
        for point in sorted(points, key=lambda point: (point.first, point.second)):
            if not kept or point.second < kept[-1].second:
                kept.append(point)
        lows = {(id(g.left.window), id(g.right.window)): g.low for g in gaps}
        least = min((point.least for point in points), default=0.0)
        between: list[tuple[float, float] | None] = []
        for left, right in pairwise(kept):
            pair = id(left.window), id(right.window)
            if pair in self.closed:
                between.append(None)
            elif pair in lows:
                between.append((left.first, lows[pair]))
            else:
                between.append((least, lowest))
        return Points(kept, between)
