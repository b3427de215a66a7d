// The status codes of kernels and the reasons of requests without a window, with their texts: the
// one list for C, C++ and Python.
//
// A row of SLOTKERN_STATUSES: code, Python exception, text for C and C++, and the format of the
// exception's message, whose fields the binding fills in. Rows keep their order, because compiled
// programs refer to codes by number; new codes are appended. A row of SLOTKERN_REASONS: code,
// stored in files as a number, and meaning.
#pragma once

#define SLOTKERN_UNEXPECTED "an unexpected error while trying to {doing}"

// clang-format off
#define SLOTKERN_STATUSES(X) \
  X(ok, RuntimeError, "done", SLOTKERN_UNEXPECTED) \
  X(none, RuntimeError, "no window exists", SLOTKERN_UNEXPECTED) \
  X(no_memory, MemoryError, "not enough memory", "not enough memory to {doing}") \
  /* a bug: an unexpected exception */ \
  X(internal, RuntimeError, "an unexpected error", SLOTKERN_UNEXPECTED) \
  /* a signal arrived: run its handlers, then perhaps start again */ \
  X(interrupted, RuntimeError, "interrupted", SLOTKERN_UNEXPECTED) \
  /* slots: an invalid row; other_* are fields of the row it conflicts with */ \
  X(node_negative, SlotError, "a node is negative", "node {node} is negative") \
  X(start_not_finite, SlotError, "a start is not finite", \
    "start {start} is not finite (node {node})") \
  X(end_is_nan, SlotError, "an end is NaN", "end is nan (node {node})") \
  X(end_not_after_start, SlotError, "an end is not after its start", \
    "end {end} is not after start {start} (node {node})") \
  X(performance_not_positive, SlotError, "a performance is not positive and finite", \
    "performance {performance} is not positive and finite (node {node})") \
  X(price_not_valid, SlotError, "a price is negative or not finite", \
    "price {price} is negative or not finite (node {node})") \
  X(not_sorted, SlotError, "slots are not sorted by start, then node", \
    "slots are not sorted by (start, node): ({start}, {node}) comes after " \
    "({other_start}, {other_node}); make_slots sorts") \
  X(performance_differs, SlotError, "slots of one node differ in performance", \
    "performance {performance} differs from {other_performance} (node {node})") \
  X(overlap, SlotError, "slots of one node overlap", \
    "start {start} lies before end {other_end}: slots of one node overlap (node {node})") \
  /* searches: an invalid request; a part is at most half an ulp of the time long */ \
  X(volume_too_small, ValueError, "the volume is too small beside times so large", \
    "volume {volume} is too small: beside times as large as these slots' the fastest node would " \
    "take no time at all") \
  /* choices: invalid items */ \
  X(cost_not_valid, ValueError, "a cost is negative or not finite", \
    "{name}[{row}] = {cost} is {rule}") \
  X(value_not_finite, ValueError, "a value is not finite", \
    "{name}[{row}] = {value} is not finite") \
  X(sum_overflows, ValueError, "sums overflow", \
    "{what} are so large that their sums overflow: the largest {largest}") \
  X(cost_not_integer, ValueError, "a cost is not an integer below 2^52", \
    "cost[{row}] = {cost} is not an integer below 2**52, which method 'table' needs") \
  X(table_too_large, ValueError, "the table is too large", \
    "the table of n, the items and the budget needs more memory than memory_limit = " \
    "{memory:.0f} bytes; method 'search' does not") \
  X(weight_not_finite, ValueError, "a weight is not finite", \
    "limits[{limit}]: weights[{row}] = {weight} is not finite") \
  X(weights_overflow, ValueError, "sums of weights overflow", \
    "limits[{limit}]: weights or amount are so large that their sums overflow") \
  /* searches for alternatives */ \
  X(endless, ValueError, "there are endlessly many alternatives", \
    "slots have an infinite end, so that there may be endlessly many alternatives; give the " \
    "request a deadline, or a limit") \
  X(too_many, ValueError, "there are too many alternatives", \
    "there are more than {many}; give {cap}, or the {asked} a deadline") \
  X(too_many_live, ValueError, "too many slots are live at once", \
    "the slots that are live at once, counted for each performance that is no faster, are more " \
    "than {live:,}; give the request a min_performance, a max_price or a budget") \
  /* pools: an invalid window */ \
  X(not_free, ValueError, "a part is not free", \
    "{what} cannot be booked: {part} is not free") \
  X(not_booked, ValueError, "a part is not booked", \
    "the window cannot be released: {part} is not booked") \
  /* searches by values */ \
  X(criterion_failed, ValueError, "a criterion failed", \
    "criterion {name} raised, or gave no number within 1e290, for the slot of row {row}: {slot}") \
  X(end_is_infinite, ValueError, "an end is infinite", \
    "slot row {row}: end is inf, but {name} needs the next task's start") \
  /* the work limit was reached before every step had its value */ \
  X(out_of_work, ValueError, "the allowed work is done", \
    "the value of every step, proven, takes more than {work:,} units of work or " \
    "{megabytes:.0f} MB; raise max_work") \
  X(limit_failed, ValueError, "the function of a limit failed", \
    "the function of a limit raised, or gave no number, for {part}") \
  /* requests of callers other than Python, whose binding validates them first */ \
  X(request_not_valid, ValueError, "the request is not valid", "the request is not valid") \
  X(time_is_nan, ValueError, "a time is NaN", "the time must not be NaN") \
  /* a search under limits spent its work without a window, and did not prove that none exists */ \
  X(undecided, UndecidedError, "no window was found within the allowed work", \
    "nothing was found within max_work = {work:,} units of work, and it is not proven that " \
    "nothing fits; raise max_work, or loosen the limits") \
  X(line_not_valid, ValueError, "a line of a trace is not valid", "a line is not valid") \
  /* group rules, in a search that has no exact method for them */ \
  X(groups_not_supported, ValueError, "this search does not support these group rules", \
    "group rules (within, distinct, most) are not supported {where}")

#define SLOTKERN_REASONS(X) \
  X(booked, "the request has a window") \
  X(nodes, "fewer nodes of the required performance than requested") \
  X(budget, "a window exists, but not within the budget") \
  X(time, "never enough suitable slots free at one time") \
  X(volume, "so small that a part would not advance the clock") \
  X(limit, "windows exist, but the limit of the batch leaves none for this job") \
  X(limits, "a window exists, but not under the limits on sums") \
  X(undecided, "the search under limits spent its work: a window may exist") \
  X(groups, "a window exists, but not under the group rules") \
  /* of pools with capacities and quotas, which kernels do not keep */ \
  X(cap, "a window exists, but none for which a capacity has enough") \
  X(quota, "a window exists, but none for which a quota has enough")
// clang-format on
