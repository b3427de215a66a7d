# Internal declarations: windows and tables of windows.
from slotkern._kernels.headers cimport Answer, CWindowTable, Part


cdef class Window:
    cdef readonly double start, finish, runtime, cost, processor_time, value, bound
    cdef readonly bint proven
    cdef readonly str proven_over  # the starts to which `proven` and `bound` refer
    cdef readonly str criterion, shape
    cdef readonly object effort
    cdef public object name, context  # name of the request; SlotContext of the slots, or None
    cdef Part* parts
    cdef Py_ssize_t count
    cdef object table
    cdef public dict special  # special fields of the request, or None: see Request


cdef Window window_from_answer(const Answer& answer, Py_ssize_t n, str criterion, str shape)


cdef class WindowTable:
    cdef CWindowTable windows
    cdef readonly str criterion, shape
    cdef readonly str proven_over  # as in Window; None: all starts
    cdef readonly list names  # names of the requests, or None if no request has one
    cdef public object context  # SlotContext of the searched slots, or None
    cdef object row_table, part_table
    cdef list specials  # special fields of the requests, or None if no request has one
    cdef str item_noun(self)
    cdef Window window(self, size_t i)
    cdef WindowTable select_rows(self, object rows)
    cdef object flat_parts(self)
    cdef dict leading_columns(self)


cdef WindowTable table_from_windows(type kind, object windows, str criterion, str shape)
