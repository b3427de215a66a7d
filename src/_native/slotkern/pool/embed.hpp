// Plain C functions on a pool, for callers that have only addresses (numba, Cython).
//
// A request is an array of doubles in the order of RequestField; fields omitted at the end mean no
// limit. `limits` is the number under which the pool's handle registered the sum limits, 0 for none;
// an unknown number is refused. A window is five totals (start, finish, runtime, cost, processor
// time) and n parts: origin row, node, length, cost. Each function locks the pool's mutex and
// returns a Status as a number: 0 is success; otherwise nothing has changed.
//
// kInterface is the version of the order and meaning of arguments and fields. Fields added at the
// end do not change it; a request with more fields than this version has is refused, because
// ignoring a field could violate it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "slotkern/pool/schedule.hpp"

namespace slotkern {

inline constexpr int kInterface = 1;

// The positions of the fields: nodes, those of request_fields.def, and the number of the limits.
struct RequestField {
#define SLOTKERN_REQUEST_FIELD(name, ...) name,
#define SLOTKERN_REQUEST_LIMITS limits,
  enum : int {
    nodes,
#include "slotkern/slots/request_fields.def"
    count
  };
};

struct PoolHandle {
  SlotPool* pool = nullptr;
  std::shared_mutex* mutex = nullptr;
  // By number - 1; null if the limits were dropped. Guarded by the mutex.
  std::vector<const SumConstraints*> limits = {};
};

namespace detail {

inline std::vector<Part> parts_of(std::int64_t n, const std::int64_t* rows,
                                  const std::int32_t* nodes, const double* lengths) {
  std::vector<Part> parts;
  for (std::int64_t i = 0; i < n; ++i)
    parts.push_back({static_cast<std::size_t>(rows[i]), nodes[i], lengths[i], 0});
  return parts;
}

// Returns false if the numbers are not a request; searches validate the rest.
inline bool read_request(const double* request, std::int64_t fields, Query& query) {
  const double nodes = fields > 0 ? request[RequestField::nodes] : 0;
  if (!(nodes >= 1 && nodes <= 0x7FFFFFFF) || nodes != std::floor(nodes)) return false;
  if (fields > RequestField::count) return false;
  query.n = static_cast<std::int64_t>(nodes);
#define SLOTKERN_REQUEST_FIELD(name, ...) \
  if (RequestField::name < fields) query.name = request[RequestField::name];
#include "slotkern/slots/request_fields.def"
  query.deadline = std::min(query.deadline, kMaxTime);
  return true;
}

// Returns false if the limits are not registered.
inline bool read_limits(const PoolHandle& handle, const double* request, std::int64_t fields,
                        Query& query) {
  const double number = fields > RequestField::limits ? request[RequestField::limits] : 0;
  if (number == 0) return true;
  if (!(number >= 1 && number <= static_cast<double>(handle.limits.size())) ||
      number != std::floor(number))
    return false;
  query.limits = handle.limits[static_cast<std::size_t>(number) - 1];
  return query.limits != nullptr;
}

// Writes the first `fields` fields of a request without limits.
inline void fill_request(double* request, std::int64_t fields, std::int64_t nodes,
                         double volume) noexcept {
  Query open;
  open.volume = volume;
  double all[RequestField::count] = {static_cast<double>(nodes)};
#define SLOTKERN_REQUEST_FIELD(name, ...) all[RequestField::name] = open.name;
#include "slotkern/slots/request_fields.def"
  all[RequestField::deadline] = kInfinity;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(fields, RequestField::count); ++i)
    request[i] = all[i];
}

// Calls book() or release() with the parts given by their columns.
template <class Change>
int change(const PoolHandle* handle, std::int64_t n, const std::int64_t* rows,
           const std::int32_t* nodes, const double* lengths, Change change) noexcept {
  if (!handle || n < 1 || !rows || !nodes || !lengths)
    return static_cast<int>(Status::request_not_valid);
  return static_cast<int>(guarded([&] {
    const std::vector<Part> parts = parts_of(n, rows, nodes, lengths);
    const std::lock_guard lock(*handle->mutex);
    return change(*handle->pool, parts);
  }));
}

}  // namespace detail

}  // namespace slotkern

inline int slotkern_find(void* pool, const double* request, std::int64_t fields, int criterion,
                         int shape, double* totals, std::int64_t* rows, std::int32_t* nodes,
                         double* lengths, double* costs) noexcept {
  using namespace slotkern;
  const auto* handle = static_cast<const PoolHandle*>(pool);
  Query query;
  if (!handle || !request || !totals || !rows || !nodes || !lengths || !costs ||
      (shape != static_cast<int>(ShapeKind::square) &&
       shape != static_cast<int>(ShapeKind::ragged)) ||
      !detail::read_request(request, fields, query))
    return static_cast<int>(Status::request_not_valid);
  Answer answer;
  const Status status = guarded([&] {
    const std::lock_guard lock(*handle->mutex);
    if (!detail::read_limits(*handle, request, fields, query)) return Status::request_not_valid;
    answer = find_window(*handle->pool, query, criterion, static_cast<ShapeKind>(shape));
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

inline int slotkern_book(void* handle, double start, std::int64_t n, const std::int64_t* rows,
                         const std::int32_t* nodes, const double* lengths) noexcept {
  using namespace slotkern;
  std::size_t failed_part = 0;
  return detail::change(static_cast<const PoolHandle*>(handle), n, rows, nodes, lengths,
                        [&](SlotPool& pool, const std::vector<Part>& parts) {
                          return pool.book(start, parts.data(), parts.size(), failed_part);
                        });
}

inline int slotkern_release(void* handle, double start, std::int64_t n, const std::int64_t* rows,
                            const std::int32_t* nodes, const double* lengths) noexcept {
  using namespace slotkern;
  std::size_t failed_part = 0;
  return detail::change(static_cast<const PoolHandle*>(handle), n, rows, nodes, lengths,
                        [&](SlotPool& pool, const std::vector<Part>& parts) {
                          return pool.release(start, parts.data(), parts.size(), failed_part);
                        });
}
