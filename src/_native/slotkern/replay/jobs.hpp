// What a replay knows of its jobs and of its machine, as columns.
//
// A job is a number from 0, in the order of submission; among jobs submitted at one time the
// smaller number comes first. It runs `run`, of which the scheduler knows only `estimate`,
// on `width` processors: 0 <= run <= estimate, estimate > 0, 1 <= width <= processors.
// Time that is blocked (maintenance, advance reservations) is known from the beginning: a
// span in which `width` processors serve no job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace slotkern::replay {

using JobId = std::uint32_t;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct JobColumns {
  const double *submit = nullptr, *run = nullptr, *estimate = nullptr;
  const std::int32_t* width = nullptr;
  std::size_t size = 0;
};

// JobColumns that wait for another one: a job is submitted at the latest of its own submission and
// the end of the job before it plus its think time (fields 17 and 18 of the Standard Workload
// Format). The order of submission is then known only while the jobs run, so that jobs are
// numbered as they are submitted: `given` has the rows in the order of their own submission,
// and the columns that the schedulers read are written row by row.
struct Chain {
  JobColumns given;
  const std::int32_t* before = nullptr;  // the row that each row waits for; -1: none. No circles
  const double* think = nullptr;         // seconds, at least 0
  const std::int32_t* user = nullptr;    // or null
  const double* key = nullptr;           // or null
  // The same columns by number of submission.
  double *submit = nullptr, *run = nullptr, *estimate = nullptr, *key_of = nullptr;
  std::int32_t *width = nullptr, *user_of = nullptr;

  void write(JobId job, std::uint32_t row, double now) const {
    submit[job] = now;
    run[job] = given.run[row], estimate[job] = given.estimate[row];
    width[job] = given.width[row];
    if (user) user_of[job] = user[row];
    if (key) key_of[job] = key[row];
  }
};

struct BlockedSpan {
  double start, end;
  std::int32_t width;
};

}  // namespace slotkern::replay
