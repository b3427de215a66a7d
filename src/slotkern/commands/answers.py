"""The JSON object that a search for windows prints with ``--json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import slotkern as sk
from slotkern.commands.terminal import write
from slotkern.search.records import request_record, strict_json

__all__ = ["print_answer"]


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
    whole = strict_json(heading | {"request": request_record(request)} | answer)
    write(json.dumps(whole, indent=2, allow_nan=False) + "\n")
