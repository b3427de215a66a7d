"""Small cases rich in ties and exact fits, for comparison with exhaustive search."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from oracle import INF, length_on, proper_slots, terms_of, window_of

SLOT = np.dtype(
    [("node", "i4")]
    + [(name, "f8") for name in ("start", "end", "performance", "price")],
    align=True,
)
SHAPES = ("ragged", "square")
NODE_IDS = (0, 1, 2, 5, 40, 41, 2**31 - 1)
TIME_UNITS = (1.0, 0.1, 1 / 3)
ORIGINS = (0.0, 0.0, 0.0, 1.7e9)
# Some differ but are equal in single precision; some differ relatively by an ulp of a
# late time over a part's length; some differ by little, but more than any rounding.
PERFORMANCES = (
    (1.0,),
    (1.0, 2.0, 3.0, 4.0),
    (0.3, 0.7, 0.9, 2.1),
    (0.1, 1 / 3, 7.3),
    (1.0, 3.0, 3.0 + 1e-10, 3.0 - 1e-10),
    (3.0, 3.0 * (1 - 2e-7), 3.0 * (1 - 1e-9)),
    (2.0, 2.0 + 1e-5, 2.0 + 1e-3, 2.1),
)
PRICES = (
    (0.0,),
    (1.0,),
    (0.0, 1.0, 2.0, 3.0),
    (0.1, 0.3, 0.7, 0.9),
    (1 / 3, 5.0),
    (2.0, 2.0 + 1e-10, 2.0 - 1e-10),
)


class Case(NamedTuple):
    """Slots and a request as keyword arguments; `proper` is the evaluated filter."""

    slots: np.ndarray
    request: dict[str, Any]


class Picker:
    """Picks options by the digits of one drawn number: one draw serves many picks."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, options):
        self.number, digit = divmod(self.number, len(options))
        return options[digit]

    def sometimes(self) -> bool:
        """Return True in one of five cases."""
        return self(range(5)) == 4


pickers = st.binary(min_size=16, max_size=16).map(
    lambda digits: Picker(int.from_bytes(digits))
)


@st.composite
def slot_arrays(draw, max_nodes: int = 5, max_per_node: int = 3) -> np.ndarray:
    """Draw slots of a few nodes: some touch, have equal ends or prices, or no end.

    Fast nodes are often expensive, so that slow windows compete with short ones.
    """
    pick = draw(pickers)
    exponent = pick((0, 0, 1, 2))
    origin, unit = pick(ORIGINS), pick(TIME_UNITS)
    performances, prices = pick(PERFORMANCES), pick(PRICES)
    first = pick(((0,), (0, 1, 2, 3), (-4, -1, 0, 3)))
    ids = list(NODE_IDS)
    rows = []
    for _ in range(max_nodes - pick((0, 0, 0, 1, 1, 2, 2, 3, max_nodes))):
        node = ids.pop(pick(range(len(ids))))
        pick_slot = draw(pickers)
        performance, now = pick_slot(performances), pick_slot(first)
        for last in reversed(range(pick_slot(range(max_per_node)) + 1)):
            length = pick_slot(range(1, 7))
            start, end = origin + now * unit, origin + (now + length) * unit
            if not last and pick_slot(range(8)) == 7:
                end = INF
            price = pick_slot(prices) * performance**exponent
            rows.append((node, start, end, performance, price))
            now += length + pick_slot((0, 0, 1, 3))
    rows.sort(key=lambda row: (row[1], row[0]))
    return np.array(rows, dtype=SLOT)


def latest(slots: np.ndarray) -> float:
    """Return the largest finite absolute value of all times."""
    times = np.abs([slots["start"], slots["end"]])
    return float(times[times < INF].max())


def just_below(number: float) -> float:
    """Return the next smaller float."""
    return float(np.nextafter(number, -INF))


@st.composite
def requests(draw, slots: np.ndarray, charged: bool = True) -> dict[str, Any]:
    """Draw a request whose limits are often met exactly or missed by one bit.

    `charged`: some requests have a setup time and lengths in whole steps.
    """
    pick = draw(pickers)
    count = len(np.unique(slots["node"]))
    nodes = pick((2, 3, 1, count, 4, count + 1)) or 1
    if not len(slots):
        return {"nodes": nodes, "volume": 1.0}
    slot = pick(slots)
    length = slot["end"] - slot["start"] if slot["end"] < INF else 1.0
    volume = float(pick((1.0, 0.5, 1 / 3, 0.25, 0.1)) * length * slot["performance"])
    request: dict[str, Any] = {"nodes": nodes, "volume": volume}
    if pick.sometimes():
        earliest = pick(slots)[pick(("start", "end"))] + pick((0.0, 0.5))
        if earliest < INF:
            request["earliest"] = float(earliest)
    earliest = request.get("earliest", -INF)
    if pick.sometimes():  # some slot is exactly long enough from the earliest start
        slot = pick(slots)
        length = slot["end"] - max(slot["start"], earliest)
        least = np.spacing(latest(slots)) * slots["performance"].max()
        if least < length * slot["performance"] < INF:  # smaller volumes are rejected
            request["volume"] = volume = float(slot["performance"] * length)
    if pick.sometimes():
        request["min_performance"] = float(pick(slots)["performance"])
    if pick.sometimes():
        request["max_price"] = float(pick(slots)["price"])
    charge = draw(pickers)
    if charged and charge.sometimes():  # a slot holds some whole steps
        length = volume / float(charge(slots)["performance"])
        request["step"] = charge((1.0, 0.5, 1 / 3, 0.1, 0.0, 2.0)) * length
        request["setup"] = charge((0.0, 0.0, 0.5, 1.0, 0.1)) * length
        request["volume"] = volume = charge((1.0, 0.5, 0.9)) * volume

    def some_length() -> float:
        return length_on(float(pick(slots)["performance"]), *terms_of(request))

    if pick.sometimes():
        finish = max(pick(slots)["start"], earliest) + some_length()
        request["deadline"] = pick((float(finish), just_below(finish)))
    pick = draw(pickers)
    if pick.sometimes():
        last = max(float(pick(slots)["start"]), earliest)
        request["latest"] = max(pick((last, just_below(last))), earliest)
    if pick.sometimes():
        request["max_runtime"] = pick((some_length(), just_below(some_length())))
    if pick.sometimes():
        request["proper"] = np.array([pick((True, False)) for _ in slots])
    if pick((False, True)):
        request["budget"] = pick_budget(pick, slots, request)
    return request


def pick_budget(pick: Picker, slots: np.ndarray, request: dict[str, Any]) -> float:
    """Pick the cost of n of the slots in one of the shapes, one bit less, or 0."""
    usable = proper_slots(slots)
    if len(usable) < request["nodes"] or pick(range(10)) == 9:
        return 0.0
    shape, exact = pick(SHAPES), pick((True, True, True, False))
    parts = [usable.pop(pick(range(len(usable)))) for _ in range(request["nodes"])]
    cost = window_of(0.0, parts, shape, *terms_of(request)).cost
    return cost if exact else max(just_below(cost), 0.0)


@st.composite
def cases(draw, charged: bool = True, **sizes: int) -> Case:
    """Draw slots and a request."""
    slots = draw(slot_arrays(**sizes))
    return Case(slots, draw(requests(slots, charged)))


@st.composite
def rival_groups(draw) -> Case:
    """Draw groups that compete at one start: slower ones are cheaper or too short."""
    pick = draw(pickers)
    nodes, starts = pick((1, 2, 2, 3)), pick(((0.0,), (0.0, 1.0)))
    rows = []
    for node in range(nodes + pick(range(1, 6))):
        pick_slot = draw(pickers)
        performance, start = pick_slot((1.0, 2.0, 3.0, 4.0)), pick_slot(starts)
        end = start + 12.0 / pick_slot((1.0, 2.0, 3.0, 4.0))
        price = pick_slot((0.0, 0.5, 1.0, 2.0)) * performance ** pick_slot((1, 1, 2))
        rows.append((node, start, end, performance, price))
    rows.sort(key=lambda row: (row[1], row[0]))
    request = {"nodes": nodes, "volume": 12.0}
    if pick.sometimes():
        request["earliest"] = 1.0
    slots = np.array(rows, dtype=SLOT)
    if pick.sometimes():
        request["budget"] = pick_budget(pick, slots, request)
    return Case(slots, request)
