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

struct Jobs {
  const double *submit = nullptr, *run = nullptr, *estimate = nullptr;
  const std::int32_t* width = nullptr;
  std::size_t size = 0;
};

struct BlockedSpan {
  double start, end;
  std::int32_t width;
};

}  // namespace slotkern::replay
