"""Exceptions of slotkern. Bindings raise them for the status codes of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slotkern.search.explanation import Explanation

__all__ = [
    "NoWindowError",
    "PoolFileChangedError",
    "SlotError",
    "UndecidedError",
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

    def __init__(self, message: str = "") -> None:  # inspect.signature needs it
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


#: The fields of a slot.
FIELDS = "node", "start", "end", "performance", "price"


def slot_error(code: str, text: str, slots: Any, row: int, other: int) -> SlotError:
    """Return the error for an invalid row; `other` is the row it conflicts with.

    `text` is the format of the message for the status code of the kernel. It names
    fields of the row, and those of the other row with the prefix ``other_``.
    """
    slot, clash = slots[row], slots[other]
    field = code.partition("_")[0]
    if code == "overlap" or code == "not_sorted":
        same = code == "not_sorted" and slot["start"] == clash["start"]
        field = "node" if same else "start"
    fields = {name: slot[name] for name in FIELDS}
    fields |= {f"other_{name}": clash[name] for name in FIELDS}
    return SlotError(text.format(**fields), row, field, other)
