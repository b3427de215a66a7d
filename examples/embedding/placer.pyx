# cython: language_level=3
"""A scheduling loop in Cython that creates no Python objects for requests and windows."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from slotkern cimport embed

embed.need_interface(embed.INTERFACE)


def place(pool, double[::1] volumes, int nodes):
    """Book the earliest window for each volume and return the starts, -1 if none was found."""
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, got {nodes}")
    cdef void* slots = embed.address_of(pool)
    cdef int criterion = embed.criterion_of("start")
    cdef double[embed.REQUEST_FIELDS] request
    cdef double[embed.TOTALS] window
    cdef int64_t[::1] rows = np.empty(nodes, np.int64)
    cdef int32_t[::1] ids = np.empty(nodes, np.int32)
    cdef double[::1] lengths = np.empty(nodes), costs = np.empty(nodes)
    starts = np.full(len(volumes), -1.0)
    cdef double[::1] found = starts
    cdef Py_ssize_t i
    embed.fill_request(request, embed.REQUEST_FIELDS, nodes, 0.0)
    with nogil:
        for i in range(volumes.shape[0]):
            request[embed.VOLUME] = volumes[i]
            if embed.find(slots, request, embed.REQUEST_FIELDS, criterion, embed.RAGGED,
                          window, &rows[0], &ids[0], &lengths[0], &costs[0]):
                continue
            if embed.book(slots, window[embed.START], nodes, &rows[0], &ids[0], &lengths[0]):
                continue
            found[i] = window[embed.START]
    return starts
