# Internal declarations: conversion of spans for the bindings that change pools.
from libc.stdint cimport int32_t
from libcpp.vector cimport vector


cdef extern from "slotkern/pool/availability.hpp" namespace "slotkern" nogil:
    cdef struct Span:
        double start, end
        size_t origin_row


cdef int fill_spans(object table, vector[int32_t]& nodes, vector[Span]& spans) except -1
cdef object span_table(const vector[int32_t]& nodes, const vector[Span]& spans)
cdef vector[double] prices_of(object table) except *
