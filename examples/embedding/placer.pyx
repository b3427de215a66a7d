# cython: language_level=3
# distutils: language = c++
"""A scheduling loop in Cython: no Python object for a request or a window."""
from slotkern._core cimport PreparedSlots
from slotkern._kernels cimport Answer, Query, Shape, Status


def earliest(PreparedSlots pool, double[::1] volumes, int nodes):
    """Start of the earliest window for each volume; -1 where there is none."""
    cdef Query query
    cdef Answer answer
    cdef list starts = []
    query.n = nodes
    for volume in volumes:
        query.volume = volume
        answer = pool.search(query, 1, Shape.ragged)  # 1: "start" in slotkern.CRITERIA
        starts.append(answer.found.start if answer.status == Status.ok else -1.0)
    return starts
