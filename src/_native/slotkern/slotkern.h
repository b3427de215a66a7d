/* slotkern in plain C, for whatever language can call C: a pool of free slots that is searched,
   booked and released. The functions are in slotkern.cpp, which any C++20 compiler makes a library
   of:

     c++ -std=c++20 -O3 -ffp-contract=off -I INCLUDE -c INCLUDE/slotkern/slotkern.cpp

   or, with CMake, the target slotkern::c. No function throws or ends the program; a pool may be used
   by several threads, one call at a time. What a function returns is SLOTKERN_OK, SLOTKERN_NONE or
   the code of a mistake, of which slotkern_words tells; after a mistake nothing has changed. */
#ifndef SLOTKERN_H
#define SLOTKERN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts what callers are compiled against: compare it with slotkern_interface(). */
#define SLOTKERN_INTERFACE 1

enum { SLOTKERN_OK = 0, SLOTKERN_NONE = 1 };           /* done; no window exists */
enum { SLOTKERN_SQUARE = 0, SLOTKERN_RAGGED = 1 };     /* parts end together, or each by itself */

/* A free slot of a node. Times and money are in any unit. */
typedef struct slotkern_slot {
  int32_t node;
  double start, end;
  double performance; /* positive, the same in all slots of a node */
  double price;       /* of a unit of time */
} slotkern_slot;

/* How many nodes for how much work: a part lasts setup + volume / performance, rounded up to a
   multiple of step. slotkern_request_of makes one without further limits. */
typedef struct slotkern_request {
  int64_t nodes;
  double volume;
  double budget;
  double min_performance, max_price;
  double earliest, latest; /* start */
  double deadline, max_runtime;
  double setup, step;
} slotkern_request;

typedef struct slotkern_window {
  double start, finish, runtime, cost, processor_time;
} slotkern_window;

/* What a window takes of one slot, from the start of the window on. */
typedef struct slotkern_part {
  int64_t row; /* of the slots that the pool was opened with */
  int32_t node;
  double length, cost;
} slotkern_part;

typedef struct slotkern_pool slotkern_pool;

int slotkern_interface(void);

/* What a code means, in a few English words. */
const char* slotkern_words(int code);

slotkern_request slotkern_request_of(int64_t nodes, double volume);

/* Makes a pool of slots, sorted by start, then node, which are copied. After a mistake *pool is NULL
   and *row, where row is not NULL, the first bad one. O(count log count). */
int slotkern_open(const slotkern_slot* slots, size_t count, slotkern_pool** pool, size_t* row);

/* Frees a pool, or NULL. */
void slotkern_close(slotkern_pool* pool);

/* Finds the best window by "first", "start", "finish", "runtime" or "cost"; ties go to the earliest
   start, then the lowest cost, then the smallest nodes. `parts` has room for request->nodes. */
int slotkern_find(slotkern_pool* pool, const slotkern_request* request, const char* criterion,
                  int shape, slotkern_window* window, slotkern_part* parts);

/* Books count parts, ascending by node, from start on, or gives them back: all or none. After a mistake
   *bad, where bad is not NULL, is the part at fault. */
int slotkern_book(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                  size_t* bad);
int slotkern_release(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                     size_t* bad);

/* Drops all free time before now. Time does not go back. */
int slotkern_advance(slotkern_pool* pool, double now);

/* Writes the first `room` free slots, node by node, and how many there are to *count; `slots` may be
   NULL where room is 0. */
int slotkern_free(slotkern_pool* pool, slotkern_slot* slots, size_t room, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
