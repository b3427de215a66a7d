"""The trace that a setting names: read once in each process, and never mistaken."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import file_digest
from typing import Any

from slotkern.studies.fields import as_text
from slotkern.traces.read import Trace, read_trace

__all__ = ["named_trace", "trace_in"]


def named_trace(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what identifies the trace that ``environment.trace`` names.

    The digest makes it part of the study: a campaign is not continued with another
    trace of the same name.

    Raises
    ------
    ValueError
        If there is no such file, or it is no trace: the message names the key.
    """
    path = as_text("environment.trace", environment.get("trace"))
    try:
        with open(path, "rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"environment.trace: {path}: {reason}") from None
    return {"trace": path, "digest": digest}


def trace_in(environment: Mapping[str, Any]) -> Trace:
    """Return the trace of a checked setting, with its repairs.

    Raises
    ------
    ValueError
        As `read_trace`; also if the file has been changed since.
    """
    repairs = tuple(environment.get("clean", ()))
    return _read(environment["trace"], environment["digest"], repairs)


@lru_cache(maxsize=2)
def _read(path: str, digest: str, repairs: tuple[str, ...]) -> Trace:
    try:
        trace = read_trace(path, clean=repairs)
        if named_trace({"trace": path})["digest"] != digest:
            raise ValueError(f"{path} is not the file that the study began with")
    except ValueError as error:
        raise ValueError(f"environment.trace: {error}") from None
    return trace
