"""A scheduling loop in numba: find and book windows inside one compiled function."""

import numba
import numpy as np

import slotkern as sk
import slotkern.numba as sn


@numba.njit(cache=True)
def place(pool, volumes, nodes):
    """Book a window for each volume and return the starts, NaN if none was found."""
    starts = np.full(len(volumes), np.nan)
    window = sn.window(nodes)
    for i in range(len(volumes)):
        request = sn.request(nodes, volumes[i])
        found = sn.find(pool, request, window, sn.START, sn.RAGGED) == 0
        if found and sn.book(pool, window) == 0:
            starts[i] = window.totals[0]
    return starts


if __name__ == "__main__":
    slots = sk.make_slots(
        node=[0, 1, 2],
        start=[0, 0, 4],
        end=[20, 30, 30],
        performance=[1, 2, 4],
        price=[1, 3, 5],
    )
    pool = sk.SlotPool(slots)
    print(place(pool.handle(), np.full(5, 8.0), 2).tolist())
    print(sum(place.stats.cache_hits.values()), "loaded from the cache")
