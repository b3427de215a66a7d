"""Levels of slots: the group of each row, for group rules such as ``most(rack) <= 4``.

A level is a column whose values are equal on all slots of a node; its values are the
groups. `rules_of` converts the group rules of a request to those of the kernel, and
`groups_of` a column to numbers. Two levels nest if each group of one lies in one group
of the other; rules on levels that do not nest are refused, because the greedy choice of
``most`` is exact for nested groups only (a laminar matroid).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slotkern.expressions.syntax import no_column
from slotkern.foundation.checks import quote, row_label

if TYPE_CHECKING:
    from slotkern._kernels.request import Request

__all__ = [
    "LevelGroups",
    "Rule",
    "check_nesting",
    "groups_of",
    "is_empty_cell",
    "rules_of",
]


class Rule(NamedTuple):
    """A group rule of the kernel.

    `kind` is "max_groups" or "min_groups", a bound on the number of groups that the
    parts touch, or "max_parts", the largest number of parts in one group.
    """

    kind: str
    level: str
    bound: int

    @property
    def text(self) -> str:
        """The rule as a limit of `Request`."""
        kind, side = next(pair for pair, name in _KINDS.items() if name == self.kind)
        return f"{kind}({self.level}) {side} {self.bound}"


class LevelGroups(NamedTuple):
    """The number of the group of each row, int32 from 0, and the number of groups."""

    of_row: NDArray[np.int32]
    groups: int


_KINDS = {
    ("distinct", "<="): "max_groups",
    ("distinct", ">="): "min_groups",
    ("most", "<="): "max_parts",
}


def rules_of(request: Request) -> tuple[Rule, ...]:
    """Return the group rules of a request; `within` is the first.

    Examples
    --------
    >>> import slotkern as sk
    >>> from slotkern.expressions.groups import rules_of
    >>> rules_of(sk.Request(4, 1, within="site", limits="most(rack) <= 2"))[0]
    Rule(kind='max_groups', level='site', bound=1)
    """
    rules = [] if request.within is None else [Rule("max_groups", request.within, 1)]
    rules += [
        Rule(_KINDS[limit.kind, limit.side], limit.of, int(limit.amount))
        for limit in request.limits
        if limit.kind != "sum"
    ]
    return tuple(rules)


def groups_of(level: str, slots: NDArray[Any]) -> LevelGroups:
    """Return the group of each slot by a level.

    Parameters
    ----------
    level : str
        A column with equal values on all slots of a node.
    slots : structured array, shape (m,)

    Returns
    -------
    LevelGroups
        Groups are numbered by their values, ascending.

    Raises
    ------
    ValueError
        For an unknown column, an empty cell, and a node with two values; the message
        contains the rows.

    Notes
    -----
    O(m log m) for node ids that do not ascend; values are sorted once for each node.

    Examples
    --------
    >>> import slotkern as sk
    >>> from slotkern.expressions.groups import groups_of
    >>> slots = sk.make_slots(node=[0, 1, 2], start=0, end=9, performance=1, price=1,
    ...                       rack=["r2", "r1", "r2"])
    >>> groups_of("rack", slots).of_row.tolist()
    [1, 0, 1]
    """
    what = f"level {level!r}"
    names = slots.dtype.names or ()
    if level not in names:
        raise ValueError(f"{what}: {no_column(level, names)}")
    if level in ("start", "end"):
        raise ValueError(f"{what} is a time of a slot; a level is a column of nodes")
    column = slots[level]
    if column.ndim != 1:
        raise ValueError(f"{what} must have one value a slot, not {column.shape[1:]}")
    ids = slots["node"]
    if (ids[1:] > ids[:-1]).all():  # one slot for each node, as of a machine
        first = node = np.arange(len(slots))
    else:
        _, first, node = np.unique(ids, return_index=True, return_inverse=True)
    own = column[first]
    other = np.flatnonzero(column != own[node])
    empty = np.flatnonzero(is_empty_cell(own))
    if empty.size:
        row = int(first[empty[0]])
        raise ValueError(
            f"{what} is empty in row {row} (node {slots['node'][row]}): each node "
            "needs a group; fill the column, or filter these nodes before the search"
        )
    if other.size:
        row = int(other[0])
        start = int(first[node[row]])
        raise ValueError(
            f"{what}: node {slots['node'][row]} is {quote(column[start].item())} in "
            f"row {start} and {quote(column[row].item())} in row {row}; all slots of "
            "a node have one group"
        )
    values, codes = np.unique(own, return_inverse=True)
    return LevelGroups(codes[node].astype(np.int32), len(values))


def is_empty_cell(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells are empty: NaN, NaT, None, or text without a character."""
    kind = column.dtype.kind
    empty: NDArray[np.bool_] = np.zeros(len(column), np.bool_)
    if kind in "fc":
        empty = np.isnan(column)
    elif kind in "mM":
        empty = np.isnat(column)
    elif kind in "US":
        empty = np.strings.str_len(np.strings.strip(column)) == 0
    elif kind == "O":
        for row, cell in enumerate(column.tolist()):
            no_text = isinstance(cell, str) and not cell.strip()
            empty[row] = cell is None or bool(cell != cell) or no_text
    return empty


def check_nesting(
    levels: Iterable[str], columns: Any, what: str, ordered: bool = False
) -> None:
    """Raise ValueError for two levels that do not nest.

    Parameters
    ----------
    levels : iterable of str
    columns : mapping of str to array, or structured array
        One row for each node, or for each slot, without empty cells.
    what : str
        The name of the table in errors.
    ordered : bool
        True: the levels are given from the finest to the coarsest.

    Notes
    -----
    O(m log m) for each pair of levels.
    """
    for fine, coarse in itertools.combinations(dict.fromkeys(levels), 2):
        crossing = _crossing(columns[fine], columns[coarse])
        if crossing is None:
            continue
        back = None if ordered else _crossing(columns[coarse], columns[fine])
        if not ordered and back is None:
            continue
        one, other = crossing
        group = quote(columns[fine][one].item())
        parts = [quote(columns[coarse][row].item()) for row in crossing]
        remedy = (
            f"list the levels from the finest to the coarsest, or rename {fine}s that "
            "have the same name"
            if ordered
            else "rules on levels that cross are not supported"
        )
        raise ValueError(
            f"{what}: {fine} {group} lies in {coarse} {parts[0]} "
            f"({row_label(what, one)}) and in {coarse} {parts[1]} "
            f"({row_label(what, other)}); {remedy}"
        )


def _crossing(fine: NDArray[Any], coarse: NDArray[Any]) -> tuple[int, int] | None:
    """Return two rows of one group of `fine` in different groups of `coarse`."""
    _, first, group = np.unique(fine, return_index=True, return_inverse=True)
    other = np.flatnonzero(coarse != coarse[first][group])
    return (int(first[group[other[0]]]), int(other[0])) if other.size else None
