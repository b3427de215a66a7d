"""The JSON object that a search for windows prints with ``--json``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import slotkern as sk
from slotkern._kernels.request import REQUEST_FIELDS
from slotkern.commands.terminal import write

__all__ = ["print_answer", "strict_json"]


def print_answer(
    slots: Path, method: tuple[str, str, str], request: sk.Request, **answer: Any
) -> None:
    """Print the JSON object that docs/json.md describes.

    Parameters
    ----------
    slots : Path
        File of the slots, as given.
    method : tuple of str
        Criterion, shape and method.
    request : Request
    **answer
        Further members of the object.
    """
    heading = {"slotkern": sk.__version__, "file": str(slots)}
    heading |= dict(zip(("criterion", "shape", "method"), method, strict=True))
    fields = {name: getattr(request, name) for name in REQUEST_FIELDS}
    fields["limits"] = [limit.text for limit in request.limits]
    fields |= request.special or {}
    if request.walltime is not None:
        fields["walltime"] = request.walltime
    whole = strict_json(heading | {"request": fields} | answer)
    write(json.dumps(whole, indent=2, allow_nan=False) + "\n")


def strict_json(value: Any) -> Any:
    """Return a value in the types of strict JSON; NaN and infinities become null."""
    match value:
        case dict():
            return {str(key): strict_json(inner) for key, inner in value.items()}
        case list() | tuple():
            return [strict_json(inner) for inner in value]
        case np.ndarray() | np.generic():
            return strict_json(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
