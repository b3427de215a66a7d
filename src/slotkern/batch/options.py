"""The options of a batch in the form that the kernel takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy as np

    from slotkern.typing import Shape

__all__ = ["BatchOptions", "Measure"]

#: A name of `MEASURES` of the binding, or a float64 column with one value a slot.
Measure = str | NDArray["np.float64"]


@dataclass(frozen=True)
class BatchOptions:
    """The checked options of `schedule_batch`.

    Attributes
    ----------
    shape : {"ragged", "square"}
    criterion : str
        The criterion of the alternatives, or "own".
    slices : list of int
        The first job of each sub-batch, and the number of sliced jobs.
    order : ndarray of int64 or None
        The jobs by priority; None for the order of the batch.
    target, expense : Measure
        What is optimized, and what is limited.
    target_name, expense_name : str
        Their names as given.
    maximize : bool
        Whether the target is maximized.
    limit : float or None
        The largest expense of the batch; None: eq. (5) for each sub-batch.
    gap, max_work : float, int
        The accuracy and the counted work of each choice.
    most : int
        The largest number of alternatives of a job.
    max_bytes : int
        The largest size of all alternatives.
    """

    shape: Shape
    criterion: str
    slices: list[int]
    order: NDArray[np.int64] | None
    target: Measure
    expense: Measure
    target_name: str
    expense_name: str
    maximize: bool
    limit: float | None
    gap: float
    max_work: int
    most: int
    max_bytes: int
