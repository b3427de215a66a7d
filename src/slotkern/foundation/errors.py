"""Exceptions of slotkern, and the only conversion of status codes to exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotkern.search.explanation import Explanation

__all__ = [
    "NoWindowError",
    "PoolFileChangedError",
    "SlotError",
    "kernel_error",
    "slot_error",
]


class SlotError(ValueError):
    """A slot that violates a rule of the slot format.

    Attributes
    ----------
    row, field : int, str
        The first invalid row, and its invalid field.
    other : int
        The earlier row that conflicts with it, or `row` itself.
    problem : str
        The description of the error, without the row.
    """

    def __init__(self, problem: str, row: int, field: str, other: int) -> None:
        clash = f"; see row {other}" if other != row else ""
        super().__init__(f"slots, row {row}: {problem}{clash}")
        self.problem, self.row, self.field, self.other = problem, row, field, other

    def __reduce__(self) -> tuple[type[SlotError], tuple[str, int, str, int]]:
        return SlotError, (self.problem, self.row, self.field, self.other)


class NoWindowError(LookupError):
    """No window was found, but ``required=True`` demands one.

    Attributes
    ----------
    explanation : Explanation
        The reason, and changes of the request that would help: the error's text.
    """

    def __init__(self, explanation: Explanation, found_by: str = "exact") -> None:
        text = str(explanation)
        if explanation.fits:
            text = f"method {found_by!r} finds no window. {text}"
        super().__init__(text)
        self.explanation, self.found_by = explanation, found_by

    def __reduce__(self) -> tuple[type[NoWindowError], tuple[Explanation, str]]:
        return NoWindowError, (self.explanation, self.found_by)


class UndecidedError(ValueError):
    """A search spent `max_work` before it found a window or excluded one."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)


class PoolFileChangedError(ValueError):
    """A refusal to save a pool over a file that changed since the pool was loaded.

    Attributes
    ----------
    path : str
        The file.
    loaded, found : str
        The generation that the pool was last loaded or saved as, and that of the file.
    """

    def __init__(self, path: str, loaded: str, found: str) -> None:
        super().__init__(
            f"{path}: the file changed since this pool was loaded: the pool is of "
            f"{loaded}, the file has {found}; load the file again and repeat the "
            "change, save to another path, or overwrite it with overwrite=True "
            "(--force on the command line)"
        )
        self.path, self.loaded, self.found = path, loaded, found

    def __reduce__(self) -> tuple[type[PoolFileChangedError], tuple[str, str, str]]:
        return PoolFileChangedError, (self.path, self.loaded, self.found)


_TOO_SMALL = (
    "volume {volume} is too small: beside times as large as these slots' the fastest "
    "node would take no time at all"
)
_ENDLESS = (
    "slots have an infinite end, so that there may be endlessly many alternatives; "
    "give the request a deadline, or a limit"
)

#: For each status code of base/status.hpp: the exception and the format of its message.
#: The caller passes `doing` and the other names in braces.
TEXTS: dict[str, tuple[type[Exception], str]] = {
    "no_memory": (MemoryError, "not enough memory to {doing}"),
    "internal": (RuntimeError, "an unexpected error while trying to {doing}"),
    "request_not_valid": (ValueError, "the request is not valid"),
    "time_is_nan": (ValueError, "the time must not be NaN"),
    "volume_too_small": (ValueError, _TOO_SMALL),
    "cost_not_valid": (ValueError, "{name}[{row}] = {cost} is {rule}"),
    "value_not_finite": (ValueError, "{name}[{row}] = {value} is not finite"),
    "sum_overflows": (
        ValueError,
        "{what} are so large that their sums overflow: the largest {largest}",
    ),
    "cost_not_integer": (
        ValueError,
        "cost[{row}] = {cost} is not an integer below 2**52, which method 'table' "
        "needs",
    ),
    "table_too_large": (
        ValueError,
        "the table of n, the items and the budget needs more memory than memory_limit "
        "= {memory:.0f} bytes; method 'search' does not",
    ),
    "weight_not_finite": (
        ValueError,
        "limits[{limit}]: weights[{row}] = {weight} is not finite",
    ),
    "weights_overflow": (
        ValueError,
        "limits[{limit}]: weights or amount are so large that their sums overflow",
    ),
    "endless": (ValueError, _ENDLESS),
    "too_many": (
        ValueError,
        "there are more than {many}; give {cap}, or the {asked} a deadline",
    ),
    "too_many_live": (
        ValueError,
        "the slots that are live at once, counted for each performance that is no "
        "faster, are more than {live:,}; give the request a min_performance, a "
        "max_price or a budget",
    ),
    "out_of_work": (
        ValueError,
        "the value of every step, proven, takes more than {work:,} units of work or "
        "{megabytes:.0f} MB; raise max_work",
    ),
    "undecided": (
        UndecidedError,
        "nothing was found within max_work = {work:,} units of work, and it is not "
        "proven that nothing fits; raise max_work, or loosen the limits",
    ),
    "not_free": (ValueError, "{what} cannot be booked: {part} is not free"),
    "not_booked": (
        ValueError,
        "the window cannot be released: {part} is not booked",
    ),
    "criterion_failed": (
        ValueError,
        "criterion {name} raised, or gave no number within 1e290, for the slot of row "
        "{row}: {slot}",
    ),
    "limit_failed": (
        ValueError,
        "the function of a limit raised, or gave no number, for {part}",
    ),
    "end_is_infinite": (
        ValueError,
        "slot row {row}: end is inf, but {name} needs the next task's start",
    ),
}


def kernel_error(code: str, doing: str, **details: Any) -> Exception:
    """Return the exception for the status code of a kernel.

    `doing` is the operation that failed; `details` fill in the message.

    Examples
    --------
    >>> kernel_error("value_not_finite", "choose", name="value", row=2, value=1e999)
    ValueError('value[2] = inf is not finite')
    >>> kernel_error("no_memory", "choose")
    MemoryError('not enough memory to choose')
    """
    kind, text = TEXTS.get(code, TEXTS["internal"])
    return kind(text.format(doing=doing, **details))


def slot_error(code: str, slots: Any, row: int, other: int) -> SlotError:
    """Return the error for an invalid row; `other` is the row it conflicts with."""
    slot, clash = slots[row], slots[other]
    node, start, end = slot["node"], slot["start"], slot["end"]
    of_node = f" (node {node})"
    if code == "node_negative":
        return SlotError(f"node {node} is negative", row, "node", other)
    if code == "not_sorted":
        field = "start" if start != clash["start"] else "node"
        text = (
            f"slots are not sorted by (start, node): ({start}, {node}) comes after "
            f"({clash['start']}, {clash['node']}); make_slots sorts"
        )
        return SlotError(text, row, field, other)
    field, text = {
        "start_not_finite": ("start", f"start {start} is not finite"),
        "end_is_nan": ("end", "end is nan"),
        "end_not_after_start": ("end", f"end {end} is not after start {start}"),
        "performance_not_positive": (
            "performance",
            f"performance {slot['performance']} is not positive and finite",
        ),
        "price_not_valid": (
            "price",
            f"price {slot['price']} is negative or not finite",
        ),
        "performance_differs": (
            "performance",
            f"performance {slot['performance']} differs from {clash['performance']}",
        ),
        "overlap": (
            "start",
            f"start {start} lies before end {clash['end']}: slots of one node overlap",
        ),
    }[code]
    return SlotError(text + of_node, row, field, other)
