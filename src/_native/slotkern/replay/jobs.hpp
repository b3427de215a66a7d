// The input of a replay: jobs and blocked time, as columns. Times are in seconds.
//
// A job is numbered from 0 in the order of submission; this order breaks ties of time. It runs for
// `run` seconds on `width` processors; the scheduler sees only `estimate`:
// 0 <= run <= estimate, estimate > 0, 1 <= width <= processors.
// Blocked time (maintenance, advance reservations) is given from the beginning: a span during
// which `width` processors run no job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace slotkern::replay {

using JobId = std::uint32_t;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// The columns of all jobs, indexed by job.
struct JobColumns {
  const double *submit = nullptr, *run = nullptr, *estimate = nullptr;
  const std::int32_t* width = nullptr;
  std::size_t size = 0;
};

// Jobs that depend on another job: a job is submitted at the later of its own submission time and
// the end of the preceding job plus a think time (fields 17 and 18 of the Standard Workload
// Format). The order of submission results from the replay, so jobs are numbered as they are
// submitted: `given` has the rows in the order of their own submission times, and write() copies
// each row to the columns that the schedulers read.
struct Chain {
  JobColumns given;
  const std::int32_t* before = nullptr;  // row that each row depends on; -1: none. Acyclic
  const double* think = nullptr;         // seconds, at least 0
  const std::int32_t* user = nullptr;    // of each row, or null
  const double* key = nullptr;           // of each row, or null
  // The same columns, indexed by job.
  double *submit = nullptr, *run = nullptr, *estimate = nullptr, *key_of = nullptr;
  std::int32_t *width = nullptr, *user_of = nullptr;

  // Numbers the row as `job`, submitted at `now`, and copies its columns.
  void write(JobId job, std::uint32_t row, double now) const {
    submit[job] = now;
    run[job] = given.run[row], estimate[job] = given.estimate[row];
    width[job] = given.width[row];
    if (user) user_of[job] = user[row];
    if (key) key_of[job] = key[row];
  }
};

// A span of time during which `width` processors run no job.
struct BlockedSpan {
  double start, end;
  std::int32_t width;
};

}  // namespace slotkern::replay
