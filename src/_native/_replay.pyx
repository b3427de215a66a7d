"""Binding of replays: takes validated columns, returns starts and processors."""

import numpy as np

cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from cpython.pycapsule cimport PyCapsule_GetPointer

from slotkern._base cimport InterruptScope, Status, attempt, status_error

cnp.import_array()

cdef extern from "slotkern/base/backfill.hpp" namespace "slotkern" nogil:
    cdef enum class Backfill(int):
        none
        easy
        first_fit
        conservative

cdef extern from "slotkern/replay/replay.hpp" namespace "slotkern::replay" nogil:
    cdef cppclass JobColumns:
        const double* submit
        const double* run
        const double* estimate
        const int32_t* width
        size_t size

    cdef cppclass Chain:
        JobColumns given
        const int32_t* before
        const double* think
        const int32_t* user
        const double* key
        double* submit
        double* run
        double* estimate
        double* key_of
        int32_t* width
        int32_t* user_of

    cdef cppclass BlockedSpan:
        double start, end
        int32_t width

    cdef cppclass Machine:
        int32_t processors
        vector[BlockedSpan] blocked

    cdef struct ProcessorSpan:
        int32_t first, count

    cdef cppclass Placement:
        vector[uint64_t] first
        vector[uint32_t] count
        vector[ProcessorSpan] spans

    ctypedef void (*KeyFunction)(void*, double, const uint32_t*, size_t, double*) noexcept

    cdef cppclass QueueOrder:
        const double* fixed
        KeyFunction changing
        void* data

    cdef cppclass Usage:
        Usage(size_t, double, double)

    cdef cppclass Multifactor:
        double age, size, share, longest_wait
        const int32_t* user
        JobColumns jobs
        double processors
        Usage usage

    KeyFunction multifactor_keys "slotkern::replay::Multifactor::keys"

    ctypedef int32_t (*PriorityFunction)(
        double, double, double, int64_t, int64_t, double*) noexcept

    cdef cppclass UserPriority:
        PriorityFunction function
        const int32_t* user
        JobColumns jobs
        cbool failed
        uint32_t failed_job

    KeyFunction user_keys "slotkern::replay::UserPriority::keys"

    cdef cppclass CppReplay "slotkern::replay::Replay":
        CppReplay(const JobColumns&, const Machine&, Backfill, const QueueOrder&, Usage*,
                  const int32_t*, cbool, const Chain&) except +
        Status run(size_t) noexcept
        const vector[uint32_t]& row_of()
        const vector[double]& start()
        const Placement& placement()
        size_t submitted()
        size_t most_waiting()

cdef extern from *:
    """
    #include <memory>
    #include "slotkern/replay/replay.hpp"
    namespace slotkern::replay {
    // Cython cannot write this initialization.
    inline std::unique_ptr<Multifactor> make_multifactor(
        double age, double size, double share, double longest_wait, const std::int32_t* user,
        const JobColumns& jobs, double processors, std::size_t users, double origin,
        double half_life) {
      return std::unique_ptr<Multifactor>(new Multifactor{
          age, size, share, longest_wait, user, jobs, processors, Usage(users, origin, half_life)});
    }
    }
    """
    unique_ptr[Multifactor] make_multifactor "slotkern::replay::make_multifactor"(
        double, double, double, double, const int32_t*, const JobColumns&, double, size_t, double,
        double) except +

#: The kinds of backfilling, by name.
BACKFILLING = {"none": <int>Backfill.none, "easy": <int>Backfill.easy,
               "first-fit": <int>Backfill.first_fit,
               "conservative": <int>Backfill.conservative}

#: The signature of a compiled priority function, and the name of its capsule.
PRIORITY_SIGNATURE = "int32(float64,float64,float64,int64,int64,float64*)"

# Time steps between two polls for signals: a few hundred microseconds, or a tenth of a second
# with thousands of waiting jobs.
cdef size_t EVENTS = 512


cdef int fill(cnp.ndarray to, const void* source) except -1:
    """Fill the array from `source`; memcpy requires valid addresses even for 0 bytes."""
    if to.size:
        memcpy(cnp.PyArray_DATA(to), source, to.nbytes)
    return 0


def replay(const double[::1] submit not None, const double[::1] run not None,
           const double[::1] estimate not None, const int32_t[::1] width not None,
           int32_t processors,
           const double[::1] blocked_start not None, const double[::1] blocked_end not None,
           const int32_t[::1] blocked_width not None, str backfill not None, *,
           const int32_t[::1] user=None, const double[::1] key=None, multifactor=None,
           function=None, bint nodes=True,
           const int32_t[::1] before=None, const double[::1] think=None, progress=None):
    """Replay jobs that are sorted by submission; all arguments must be valid.

    Parameters
    ----------
    submit, run, estimate, width : ndarray
        One entry for each job.
    user : ndarray of int32, optional
        The user of each job, from 0; needed for priorities that depend on users.
    key : ndarray of float64, optional
        Queue order: the smallest key first; by default the order of submission.
    multifactor : tuple, optional
        The weights of age, size and share, longest wait, half-life, and number of users.
    function : capsule, optional
        A compiled priority function.
    before, think : ndarray of int32, of float64, optional
        The row that each row depends on, or -1 (acyclic), and the seconds from the end of
        that job to the submission.
    progress : callable, optional
        Called at intervals with the number of submitted jobs.

    Returns
    -------
    start : ndarray of float64
    first, count : ndarray of int64
        The spans of processors of each job, then of each blocked span.
    spans : ndarray of int32, shape (spans, 2)
        First processor and number of processors.
    most_waiting : int
    """
    cdef JobColumns jobs
    jobs.size = submit.shape[0]
    if jobs.size:
        jobs.submit, jobs.run, jobs.estimate = &submit[0], &run[0], &estimate[0]
        jobs.width = &width[0]
    cdef const int32_t* users = NULL
    cdef const double* keys = NULL
    if user is not None and user.shape[0]:
        users = &user[0]
    if key is not None and key.shape[0]:
        keys = &key[0]
    cdef Chain chain
    cdef double[:, ::1] times
    cdef int32_t[:, ::1] numbers
    if before is not None and jobs.size:
        times, numbers = np.empty((4, jobs.size)), np.empty((2, jobs.size), np.int32)
        chain.given, chain.before, chain.think = jobs, &before[0], &think[0]
        chain.user, chain.key = users, keys
        chain.submit, chain.run, chain.estimate = &times[0, 0], &times[1, 0], &times[2, 0]
        chain.key_of, chain.width, chain.user_of = &times[3, 0], &numbers[0, 0], &numbers[1, 0]
        jobs.submit, jobs.run, jobs.estimate = chain.submit, chain.run, chain.estimate
        jobs.width = chain.width
        if users:
            users = chain.user_of
        if keys:
            keys = chain.key_of
    cdef Machine machine
    machine.processors = processors
    cdef BlockedSpan span
    cdef Py_ssize_t i
    for i in range(blocked_start.shape[0]):
        span.start, span.end, span.width = blocked_start[i], blocked_end[i], blocked_width[i]
        machine.blocked.push_back(span)

    cdef QueueOrder order
    cdef unique_ptr[Multifactor] weights
    cdef UserPriority own
    cdef Usage* usage = NULL
    own.failed = False
    if keys:
        order.fixed = keys
    elif multifactor is not None and jobs.size:
        age, size, share, longest_wait, half_life, count = multifactor
        weights = make_multifactor(age, size, share, longest_wait, users, jobs, processors,
                                   count, submit[0], half_life)
        usage = &weights.get().usage
        order.changing, order.data = multifactor_keys, weights.get()
    elif function is not None:
        own.function = <PriorityFunction>PyCapsule_GetPointer(
            function, PRIORITY_SIGNATURE.encode())
        own.user, own.jobs = users, jobs
        order.changing, order.data = user_keys, &own

    cdef unique_ptr[CppReplay] machinery
    cdef Backfill kind = <Backfill><int>BACKFILLING[backfill]
    machinery.reset(new CppReplay(jobs, machine, kind, order, usage, users, nodes,
                                  chain))
    cdef Status status = Status.ok
    cdef InterruptScope interrupts
    cdef size_t slices = 0
    cdef CppReplay* it = machinery.get()
    while attempt(interrupts, status):
        with nogil:
            status = it.run(EVENTS)
        if own.failed:
            raise ValueError(f"the priority of job {own.failed_job} (from 0, in the order of "
                             "submission) raised or is not a number")
        slices += 1
        if progress is not None and (slices % 64 == 0 or status == Status.ok):
            progress(it.submitted())
    if status != Status.ok:
        raise status_error(status, "replay the jobs")

    start = np.empty(jobs.size)
    cdef const Placement* placement = &it.placement()
    first = np.empty(placement.first.size(), np.int64)
    number = np.empty(placement.count.size(), np.uint32)
    spans = np.empty((placement.spans.size(), 2), np.int32)
    fill(start, it.start().data())
    fill(first, placement.first.data())
    fill(number, placement.count.data())
    fill(spans, placement.spans.data())
    if chain.before:
        rows = np.empty(jobs.size, np.uint32)
        fill(rows, it.row_of().data())
        for column in (start, first, number):  # blocked spans stay behind the jobs
            if len(column):
                column[rows] = column[:jobs.size].copy()
    return start, first, number.astype(np.int64), spans, it.most_waiting()
