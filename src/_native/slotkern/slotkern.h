/* C interface of slotkern, for every language that can call C: a pool of free slots that can be
   searched, booked and released. The functions are defined in slotkern.cpp, which any C++20 compiler
   compiles to a library:

     c++ -std=c++20 -O3 -ffp-contract=off -I INCLUDE -c INCLUDE/slotkern/slotkern.cpp

   or, with CMake, the target slotkern::c. No function throws or ends the program. Several threads
   may use a pool: a mutex runs their calls one at a time. Functions return SLOTKERN_OK, SLOTKERN_NONE
   or an error code, which slotkern_words() describes; on an error nothing has changed. */
#ifndef SLOTKERN_H
#define SLOTKERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface: compare it with slotkern_interface(), the version of the library. */
#define SLOTKERN_INTERFACE 1

enum { SLOTKERN_OK = 0, SLOTKERN_NONE = 1 };           /* success; no window exists */
enum { SLOTKERN_SQUARE = 0, SLOTKERN_RAGGED = 1 };     /* parts end together; each by itself */

/* A free slot of a node. Time and money may have any unit, the same everywhere. */
typedef struct slotkern_slot {
  int32_t node;
  double start, end;
  double performance; /* work per unit of time; positive, the same in all slots of a node */
  double price;       /* per unit of time */
} slotkern_slot;

/* A request for `nodes` nodes at the same time, `volume` units of work on each. A part lasts
   setup + volume / performance, rounded up to a multiple of step (0: not rounded). The other fields
   are limits; slotkern_request_of() sets none of them. */
typedef struct slotkern_request {
  int64_t nodes; /* the fields are written by ci/fields.py */
  double volume; /* Work on each node. */
  double budget; /* Maximum cost of all parts together. */
  double min_performance; /* Minimum performance of every node. */
  double max_price; /* Maximum price per time unit of every single slot (ALP in the papers). */
  double earliest; /* Earliest start of the window. */
  double latest; /* Latest start of the window, not before `earliest`. */
  double deadline; /* Latest end of every part, not before `earliest`. */
  double max_runtime; /* Maximum time from start to finish of the window. */
  double setup; /* Constant part of the length of every part, charged like work. */
  double step; /* Unit to which the length of every part is rounded up; 0 for no rounding. */
} slotkern_request;

typedef struct slotkern_window {
  double start, finish, runtime, cost, processor_time;
} slotkern_window;

/* The time that a window uses of one slot, from the start of the window. */
typedef struct slotkern_part {
  int64_t row; /* of the slots given to slotkern_open() */
  int32_t node;
  double length, cost;
} slotkern_part;

typedef struct slotkern_pool slotkern_pool;

int slotkern_interface(void);

/* Describes a code in a few English words; the text is static. */
const char* slotkern_words(int code);

slotkern_request slotkern_request_of(int64_t nodes, double volume);

/* Creates a pool from slots sorted by (start, node), which are copied. On an error *pool is NULL and,
   unless row is NULL, *row is the index of the first invalid slot. O(count log count). */
int slotkern_open(const slotkern_slot* slots, size_t count, slotkern_pool** pool, size_t* row);

/* Gives nodes a tariff: a factor of their prices that changes at known times, also while a part runs.
   factors[0] holds before breakpoints[0], factors[k] from breakpoints[k - 1] on; there are
   breakpoint_count + 1 factors, at least 0, and breakpoints ascend. A part then costs its price times
   the integral of the factor over its time, and requests with a max_price are refused. A later call
   for a node replaces its tariff; bookings stay as they are. O(slots log slots). */
int slotkern_set_tariff(slotkern_pool* pool, const int32_t* nodes, size_t node_count,
                        const double* breakpoints, size_t breakpoint_count, const double* factors);

/* Destroys a pool; does nothing for NULL. */
void slotkern_close(slotkern_pool* pool);

/* Finds the best window by "first", "start", "finish", "runtime" or "cost"; ties go to the earliest
   start, then the lowest cost, then the smallest nodes. `parts` must have request->nodes elements. */
int slotkern_find(slotkern_pool* pool, const slotkern_request* request, const char* criterion,
                  int shape, slotkern_window* window, slotkern_part* parts);

/* Books, or releases, count parts, ascending by node, from start: all or none. On an error, unless
   failed_part is NULL, *failed_part is the index of the invalid part. */
int slotkern_book(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                  size_t* failed_part);
int slotkern_release(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                     size_t* failed_part);

/* Drops all free time before `now`, which must not decrease. */
int slotkern_advance(slotkern_pool* pool, double now);

/* Writes up to `capacity` free slots, node by node, and the number of all free slots to *count;
   `slots` may be NULL if capacity is 0. */
int slotkern_free(slotkern_pool* pool, slotkern_slot* slots, size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
