"""Reservations as ``scontrol show reservation`` prints them, and their repetitions.

Slurm shows only the next occurrence of a ``DAILY`` or ``WEEKLY`` reservation.
`Reservation.spans` returns all of them until a time, at the same local time of day.

A name may contain blanks and line breaks, so a text could imitate fields. A block is
therefore refused unless the fields of its times are in it exactly once.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from slotkern.foundation.checks import quote
from slotkern.machine import Clock
from slotkern.machine.slurm_values import Row
from slotkern.machine.zones import zone_of

__all__ = ["Reservation", "read_reservations"]

#: The days between two occurrences by flag; an hour is 1/24.
_EVERY = {
    "HOURLY": 1 / 24,
    "DAILY": 1,
    "WEEKDAY": 1,
    "WEEKEND": 1,
    "WEEKLY": 7,
}
#: Maximum number of occurrences of one reservation.
_MOST = 10_000
_TIMES = r"\s+StartTime=(\S+)\s+EndTime=(\S+)\s+Duration=(\S+)\s+Nodes="
_BLOCK = re.compile(
    rf"ReservationName=(?P<name>.*?){_TIMES}(?P<nodes>\S*)\s.*?"
    r"\sFlags=(?P<flags>\S*)(?P<rest>.*)",
    re.S,
)


@dataclass(frozen=True)
class Reservation:
    """A reservation: its next span, in seconds since 1970, nodes, flags and users."""

    name: str
    start: float
    end: float
    nodes: tuple[str, ...]
    flags: frozenset[str]
    users: str

    @property
    def is_repeated(self) -> bool:
        """Return whether more spans follow the next one."""
        return not self.flags.isdisjoint(_EVERY)

    def spans(
        self, now: float, until: float, zone: str | None
    ) -> Iterator[tuple[float, float]]:
        """Yield the spans that begin before `until`.

        A floating reservation begins at `now` and has no end here: its start moves on.
        """
        if "TIME_FLOAT" in self.flags:
            yield min(self.start, now), math.inf
            return
        yield self.start, self.end
        days = next((_EVERY[flag] for flag in _EVERY if flag in self.flags), None)
        if days is None or not math.isfinite(self.end) or self.start >= until:
            return
        if zone is None:
            raise ValueError(
                f"reservation {quote(self.name)} is repeated "
                f"({', '.join(sorted(self.flags & _EVERY.keys()))}), at the same local "
                "time; give the time zone of the cluster (zone, --zone)"
            )
        yield from self._later(until, zone_of(zone), dt.timedelta(days=days))

    def _later(
        self, until: float, zone: dt.tzinfo, step: dt.timedelta
    ) -> Iterator[tuple[float, float]]:
        start, end = (
            dt.datetime.fromtimestamp(t, zone) for t in (self.start, self.end)
        )
        for _ in range(_MOST):
            if step < dt.timedelta(days=1):  # the hours of a day are not local dates
                start, end = (
                    (each.astimezone(dt.UTC) + step).astimezone(zone)
                    for each in (start, end)
                )
            else:
                start, end = start + step, end + step
            if start.timestamp() >= until:
                return
            weekend = start.weekday() >= 5
            if ("WEEKDAY" in self.flags and weekend) or (
                "WEEKEND" in self.flags and not weekend
            ):
                continue
            yield start.timestamp(), end.timestamp()
        raise ValueError(
            f"reservation {quote(self.name)} is repeated more than {_MOST:,} times "
            "until the end of the horizon; choose an earlier end"
        )


def read_reservations(
    text: str, source: str, clock: Clock, most: int
) -> list[Reservation]:
    """Parse the output of ``scontrol show reservation``, with ``-o`` or without.

    Parameters
    ----------
    text, source : str
        The output, and its name in errors.
    clock : Clock
        The clock of local dates.
    most : int
        The largest number of nodes of a reservation.

    Raises
    ------
    ValueError
        For a block that is not a reservation or is ambiguous; the message contains the
        source, the line and the value.
    """
    found = []
    starts = [match.start() for match in re.finditer(r"^ReservationName=", text, re.M)]
    before = text[: starts[0]] if starts else text
    if before.strip() and not before.strip().startswith("No reservations"):
        raise ValueError(
            f"{source}, line 1: {quote(before.strip())} is no output of `scontrol show "
            "reservation`, which begins with ReservationName="
        )
    line, place = 1, 0
    for first, last in pairwise([*starts, len(text)]):
        block = text[first:last].rstrip()
        line, place = line + text.count("\n", place, first), first
        match = _BLOCK.match(block)
        if match is None or len(re.findall(_TIMES, block)) != 1:
            raise ValueError(
                f"{source}, line {line}: {quote(block)} is not one reservation with "
                "StartTime, EndTime, Duration, Nodes and Flags, each once; a name with "
                "blanks and = may imitate them"
            )
        users = re.search(r"\sUsers=(\S*)", match["rest"])
        cells = {
            "StartTime": match[2],
            "EndTime": match[3],
            "Nodes": match["nodes"],
            "Users": users[1] if users else "",
        }
        row = Row(source, line, cells)
        start, end = row.time("StartTime", clock), row.time("EndTime", clock)
        if math.isnan(start):
            raise row.error("StartTime", "is no time")
        end = math.inf if math.isnan(end) else end
        if end < start:
            raise row.error("EndTime", f"is before StartTime {match[2]}")
        flags = frozenset(flag.partition("=")[0] for flag in match["flags"].split(","))
        nodes = tuple(row.hosts("Nodes", most))
        found.append(
            Reservation(match["name"], start, end, nodes, flags, row.text("Users"))
        )
    return found
