// Plain C functions on a pool, for callers that know nothing but addresses (numba).
//
// A request is seven doubles: nodes, volume, budget, least performance, earliest, deadline,
// highest price. A window is five totals (start, finish, runtime, cost, processor time) and n
// parts: origin row, node, length, cost. Each function waits for its turn at the pool and
// returns a Status as a number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "slotkern/pool/schedule.hpp"

namespace slotkern {

struct PoolDoor {
  void* pool = nullptr;
  void* timeline = nullptr;
  std::shared_mutex* mutex = nullptr;

  Timeline& line() const { return *static_cast<Timeline*>(timeline); }
};

namespace detail {

inline std::vector<Part> parts_of(std::int64_t n, const std::int64_t* rows,
                                  const std::int32_t* nodes, const double* lengths) {
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < n; ++i)
    parts.push_back({static_cast<std::size_t>(rows[i]), nodes[i], lengths[i], 0});
  return parts;
}

}  // namespace detail

}  // namespace slotkern

inline int slotkern_find(void* door, const double* request, int criterion, int shape,
                         double* totals, std::int64_t* rows, std::int32_t* nodes,
                         double* lengths, double* costs) noexcept {
  using namespace slotkern;
  const PoolDoor& pool = *static_cast<PoolDoor*>(door);
  Query query;
  query.n = static_cast<std::int64_t>(request[0]);
  query.volume = request[1];
  query.budget = request[2];
  query.min_performance = request[3];
  query.earliest = request[4];
  query.deadline = std::min(request[5], std::numeric_limits<double>::max());
  query.max_price = request[6];
  Answer answer;
  const Status status = guarded([&] {
    const std::lock_guard lock(*pool.mutex);
    answer = find(pool.line(), query, criterion, static_cast<Shape>(shape));
    return answer.status;
  });
  if (status != Status::ok) return static_cast<int>(status);
  const Found& found = answer.found;
  const double values[] = {found.start, found.start + found.runtime, found.runtime, found.cost,
                           found.processor_time};
  std::copy(values, values + 5, totals);
  for (std::int64_t i = 0; i < query.n; ++i) {
    rows[i] = static_cast<std::int64_t>(answer.parts[i].row);
    nodes[i] = answer.parts[i].node;
    lengths[i] = answer.parts[i].length;
    costs[i] = answer.parts[i].cost;
  }
  return 0;
}

inline int slotkern_book(void* door, double start, std::int64_t n, const std::int64_t* rows,
                         const std::int32_t* nodes, const double* lengths) noexcept {
  using namespace slotkern;
  const PoolDoor& pool = *static_cast<PoolDoor*>(door);
  return static_cast<int>(guarded([&] {
    const std::vector<Part> parts = detail::parts_of(n, rows, nodes, lengths);
    std::size_t bad;
    const std::lock_guard lock(*pool.mutex);
    return pool.line().book(start, parts.data(), parts.size(), bad);
  }));
}

inline int slotkern_release(void* door, double start, std::int64_t n, const std::int64_t* rows,
                            const std::int32_t* nodes, const double* lengths) noexcept {
  using namespace slotkern;
  const PoolDoor& pool = *static_cast<PoolDoor*>(door);
  return static_cast<int>(guarded([&] {
    const std::vector<Part> parts = detail::parts_of(n, rows, nodes, lengths);
    std::size_t bad;
    const std::lock_guard lock(*pool.mutex);
    return pool.line().release(start, parts.data(), parts.size(), bad);
  }));
}
