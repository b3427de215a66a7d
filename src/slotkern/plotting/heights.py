"""Heights of bars in rows of shared nodes: parts that run at one time are stacked.

The height of a part is the largest part of any resource that it takes of its node. Each
part gets the lowest place that no earlier part occupies; if a stack is higher than its
row, because parts take different resources, the bars of the row are scaled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["part_heights", "partly_free", "stack_parts"]


def part_heights(windows: list[Any]) -> npt.NDArray[np.float64]:
    """Return the height of each part of the windows: 1 for a whole node."""
    heights = [
        np.asarray(getattr(window, "heights", np.ones(len(window.slots))), np.float64)
        for window in windows
    ]
    return np.concatenate(heights) if heights else np.empty(0)


def partly_free(slots: Any) -> Any:
    """Return the spans in which anything of a node is free, for pools of shared nodes.

    Other slots are returned as they are.
    """
    amounts = getattr(slots, "amounts", None)
    if amounts is None or not hasattr(slots, "resources"):
        return getattr(slots, "slots", slots)
    some = np.zeros(len(amounts), bool)
    for name in slots.resources:
        some |= amounts[name] > 0
    return amounts[some][["node", "start", "end"]]


def stack_parts(
    row: npt.NDArray[np.intp],
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    height: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the top and the height of each part as shares of its row.

    O(p * k) for p parts if k of them run at one time on a row.
    """
    top, scale = np.zeros(len(row)), np.ones(int(row.max(initial=-1)) + 1)
    order = np.lexsort((start, row))
    running: list[int] = []
    for i in order.tolist():
        running = [k for k in running if row[k] == row[i] and end[k] > start[i]]
        running.sort(key=lambda k: top[k])
        at = 0.0
        for k in running:
            if at + height[i] <= top[k] + 1e-9:
                break
            at = max(at, top[k] + height[k])
        top[i] = at
        scale[row[i]] = max(scale[row[i]], at + height[i])
        running.append(i)
    return top / scale[row], height / scale[row]
