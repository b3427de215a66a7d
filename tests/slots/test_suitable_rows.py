"""The kernel's test of single slots, as Python reads it, against its definition."""

from __future__ import annotations

import numpy as np
import oracle
from hypothesis import given
from hypothesis import strategies as st
from strategies import cases

import slotkern as sk
from slotkern._kernels.request import suitable_rows


@given(cases(), st.booleans())
def test_suitable_rows_are_the_proper_slots_of_the_oracle(case, with_columns):
    slots, request = case
    if with_columns:  # fields of another layout
        columns = {name: slots[name] for name in slots.dtype.names}
        slots = sk.make_slots(**columns, load=np.arange(len(slots)))
    filters = {k: request[k] for k in oracle.FILTERS if k in request and k != "proper"}
    first, last = request.get("earliest", -np.inf), request.get("latest", np.inf)
    rows = [
        slot.row
        for slot in oracle.proper_slots(slots, **filters)
        if max(slot.start, first) <= last
    ]
    fields = {name: value for name, value in request.items() if name != "proper"}
    found = suitable_rows(sk.Request(**fields), slots)
    assert found.dtype == np.bool_
    assert np.flatnonzero(found).tolist() == rows
