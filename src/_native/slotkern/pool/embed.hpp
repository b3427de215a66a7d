// Plain C functions on a pool, for callers that know nothing but addresses (numba, Cython).
//
// A request is as many doubles as RequestField names, of which a caller may know the first few
// only: the rest mean no limit. Limits on sums over the parts are told by the number that the
// pool's door knows them by, 0 for none; a number that it does not know is refused. A window is
// five totals (start, finish, runtime, cost, processor time) and n parts: origin row, node,
// length, cost. Each function waits for its turn at the pool and returns a Status as a number:
// 0 is success, and otherwise nothing has changed.
//
// kInterface counts what callers are compiled against: the order and meaning of arguments and
// fields. What is only added behind leaves it as it is; a request of more fields than are known here
// is refused, for it may want what nobody looks at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "slotkern/pool/schedule.hpp"

namespace slotkern {

inline constexpr int kInterface = 1;

enum RequestField {
  kNodes, kVolume, kBudget, kMinPerformance, kEarliest, kDeadline, kMaxPrice,
  kSetup, kStep, kLatest, kMaxRuntime, kLimits
};
inline constexpr int kRequestFields = kLimits + 1;

struct PoolHandle {
  SlotPool* pool = nullptr;
  std::shared_mutex* mutex = nullptr;
  // By number, from 1 on; null where they hold no more. As the pool, only with the mutex.
  std::vector<const PartLimits*> limits = {};
};

namespace detail {

inline std::vector<Part> parts_of(std::int64_t n, const std::int64_t* rows,
                                  const std::int32_t* nodes, const double* lengths) {
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < n; ++i)
    parts.push_back({static_cast<std::size_t>(rows[i]), nodes[i], lengths[i], 0});
  return parts;
}

// False where the numbers are no request at all; searches look at the rest.
inline bool read_request(const double* request, std::int64_t fields, Query& query) {
  const auto field = [&](int i, double otherwise) { return i < fields ? request[i] : otherwise; };
  const double nodes = field(kNodes, 0);
  if (!(nodes >= 1 && nodes <= 0x7FFFFFFF) || nodes != std::floor(nodes)) return false;
  if (fields > kRequestFields) return false;
  query.n = static_cast<std::int64_t>(nodes);
  query.volume = field(kVolume, 0);
  query.budget = field(kBudget, query.budget);
  query.min_performance = field(kMinPerformance, query.min_performance);
  query.earliest = field(kEarliest, query.earliest);
  query.deadline = std::min(field(kDeadline, query.deadline), query.deadline);
  query.max_price = field(kMaxPrice, query.max_price);
  query.setup = field(kSetup, query.setup);
  query.step = field(kStep, query.step);
  query.latest = field(kLatest, query.latest);
  query.max_runtime = field(kMaxRuntime, query.max_runtime);
  return true;
}

// Whether a request's limits are known.
inline bool read_limits(const PoolHandle& door, const double* request, std::int64_t fields,
                        Query& query) {
  const double number = fields > kLimits ? request[kLimits] : 0;
  if (number == 0) return true;
  if (!(number >= 1 && number <= static_cast<double>(door.limits.size())) ||
      number != std::floor(number))
    return false;
  query.limits = door.limits[static_cast<std::size_t>(number) - 1];
  return query.limits != nullptr;
}

// book() or release() of a window that is told by its columns.
template <class Change>
int change(const PoolHandle* door, std::int64_t n, const std::int64_t* rows,
           const std::int32_t* nodes, const double* lengths, Change change) noexcept {
  if (!door || n < 1 || !rows || !nodes || !lengths)
    return static_cast<int>(Status::request_not_valid);
  return static_cast<int>(guarded([&] {
    const std::vector<Part> parts = parts_of(n, rows, nodes, lengths);
    const std::lock_guard lock(*door->mutex);
    return change(*door->pool, parts);
  }));
}

}  // namespace detail

}  // namespace slotkern

inline int slotkern_find(void* pool, const double* request, std::int64_t fields, int criterion,
                         int shape, double* totals, std::int64_t* rows, std::int32_t* nodes,
                         double* lengths, double* costs) noexcept {
  using namespace slotkern;
  const auto* door = static_cast<const PoolHandle*>(pool);
  Query query;
  if (!door || !request || !totals || !rows || !nodes || !lengths || !costs ||
      (shape != static_cast<int>(ShapeKind::square) &&
       shape != static_cast<int>(ShapeKind::ragged)) ||
      !detail::read_request(request, fields, query))
    return static_cast<int>(Status::request_not_valid);
  Answer answer;
  const Status status = guarded([&] {
    const std::lock_guard lock(*door->mutex);
    if (!detail::read_limits(*door, request, fields, query)) return Status::request_not_valid;
    answer = find(*door->pool, query, criterion, static_cast<ShapeKind>(shape));
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
  std::size_t bad = 0;
  return detail::change(static_cast<const PoolHandle*>(door), n, rows, nodes, lengths,
                        [&](SlotPool& pool, const std::vector<Part>& parts) {
                          return pool.book(start, parts.data(), parts.size(), bad);
                        });
}

inline int slotkern_release(void* door, double start, std::int64_t n, const std::int64_t* rows,
                            const std::int32_t* nodes, const double* lengths) noexcept {
  using namespace slotkern;
  std::size_t bad = 0;
  return detail::change(static_cast<const PoolHandle*>(door), n, rows, nodes, lengths,
                        [&](SlotPool& pool, const std::vector<Part>& parts) {
                          return pool.release(start, parts.data(), parts.size(), bad);
                        });
}
