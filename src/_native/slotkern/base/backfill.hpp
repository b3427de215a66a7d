// The kinds of backfilling, with one numbering for batches, replays and communities.
#pragma once

namespace slotkern {

// Which jobs may start before jobs that precede them in the queue.
enum class Backfill : int {
  none = 0,      // no job
  easy,          // a job that does not delay the reservation of the first waiting job
  first_fit,     // every job that fits now; no job has a reservation
  conservative,  // a job that delays no reservation; every waiting job has one
};

}  // namespace slotkern
