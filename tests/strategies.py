"""Small cases rich in ties and exact fits, for comparison with exhaustive search."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from oracle import INF, proper_slots, window_of

SLOT = np.dtype(
    [("node", "i4")]
    + [(name, "f8") for name in ("start", "end", "performance", "price")],
    align=True,
)
SHAPES = ("ragged", "square")
NODE_IDS = (0, 1, 2, 5, 40, 41, 2**31 - 1)
TIME_UNITS = (1.0, 0.1, 1 / 3)
ORIGINS = (0.0, 0.0, 0.0, 1.7e9)
# The last of each are different numbers, but the same in single precision.
PERFORMANCES = (
    (1.0,),
    (1.0, 2.0, 3.0, 4.0),
    (0.3, 0.7, 0.9, 2.1),
    (0.1, 1 / 3, 7.3),
    (1.0, 3.0, 3.0 + 1e-10, 3.0 - 1e-10),
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


@st.composite
def slot_arrays(draw, max_nodes: int = 5, max_per_node: int = 3) -> np.ndarray:
    """Slots of a few nodes: touching ones, equal ends, endless ones, equal prices."""
    unit = draw(st.sampled_from(TIME_UNITS))
    origin = draw(st.sampled_from(ORIGINS))
    performances = st.sampled_from(draw(st.sampled_from(PERFORMANCES)))
    prices = st.sampled_from(draw(st.sampled_from(PRICES)))
    first = st.sampled_from(draw(st.sampled_from(((0,), (0, 1, 2, 3), (-4, -1, 0, 3)))))
    ids = draw(st.permutations(NODE_IDS))
    size = max_nodes - draw(st.sampled_from((0, 0, 0, 1, 1, 2, 2, 3, max_nodes)))
    rows = []
    for node in ids[:size]:
        performance, now = draw(performances), draw(first)
        for last in reversed(range(draw(st.integers(1, max_per_node)))):
            length = draw(st.integers(1, 6))
            endless = not last and draw(st.integers(0, 7)) == 7
            start, end = origin + now * unit, origin + (now + length) * unit
            end = INF if endless else end
            rows.append((node, start, end, performance, draw(prices)))
            now += length + draw(st.sampled_from((0, 0, 1, 3)))
    rows.sort(key=lambda row: (row[1], row[0]))
    return np.array(rows, dtype=SLOT)


def just_below(number: float) -> float:
    return float(np.nextafter(number, -INF))


@st.composite
def requests(draw, slots: np.ndarray) -> dict[str, Any]:
    """A request whose limits are often met exactly, or missed by one bit."""
    count = len(np.unique(slots["node"]))
    nodes = draw(st.sampled_from((2, 3, 1, count, 4, count + 1))) or 1
    if not len(slots):
        return {"nodes": nodes, "volume": 1.0}
    row = st.sampled_from(slots)
    slot = draw(row)
    length = slot["end"] - slot["start"] if slot["end"] < INF else 1.0
    share = draw(st.sampled_from((1.0, 0.5, 1 / 3, 0.25, 0.1)))
    volume = float(share * length * slot["performance"])
    request: dict[str, Any] = {"nodes": nodes, "volume": volume}
    sometimes = st.sampled_from((False, False, False, False, True))
    if draw(sometimes):
        request["earliest"] = float(
            draw(row)[draw(st.sampled_from(("start", "end")))]
            + draw(st.sampled_from((0.0, 0.5)))
        )
        if request["earliest"] == INF:
            del request["earliest"]
    earliest = request.get("earliest", 0.0)
    if draw(sometimes):  # a slot that is just long enough from the earliest start
        slot = draw(row)
        length = slot["end"] - max(slot["start"], earliest)
        if 0 < length < INF:
            request["volume"] = volume = float(slot["performance"] * length)
    if draw(sometimes):
        request["min_performance"] = float(draw(row)["performance"])
    if draw(sometimes):
        request["max_price"] = float(draw(row)["price"])
    if draw(sometimes):
        request["proper"] = np.array(
            draw(st.lists(st.booleans(), min_size=len(slots), max_size=len(slots)))
        )
    if draw(sometimes):
        finish = max(draw(row)["start"], earliest) + volume / draw(row)["performance"]
        request["deadline"] = float(finish)
        if draw(st.booleans()):
            request["deadline"] = just_below(finish)
    if draw(st.booleans()):
        request["budget"] = draw(budgets(slots, request))
    return request


@st.composite
def budgets(draw, slots: np.ndarray, request: dict[str, Any]) -> float:
    """What n of the slots cost in one of the shapes, or one bit less, or nothing."""
    usable = proper_slots(slots)
    if len(usable) < request["nodes"] or draw(st.integers(0, 9)) == 9:
        return 0.0
    parts = draw(st.permutations(usable))[: request["nodes"]]
    shape = draw(st.sampled_from(SHAPES))
    cost = window_of(0.0, parts, shape, request["volume"]).cost
    return max(just_below(cost), 0.0) if draw(st.integers(0, 3)) == 3 else cost


@st.composite
def cases(draw, **sizes: int) -> Case:
    slots = draw(slot_arrays(**sizes))
    return Case(slots, draw(requests(slots)))
