// The functions of slotkern.h. Beyond the C++ headers: ownership of the slots, texts of codes.
#include "slotkern/slotkern.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "slotkern/pool/schedule.hpp"

using namespace slotkern;

struct slotkern_pool {
  std::vector<slotkern_slot> rows;
  PreparedSlots prepared;
  SlotPool pool;
  std::mutex mutex;
};

namespace {

static_assert(SLOTKERN_OK == static_cast<int>(Status::ok));
static_assert(SLOTKERN_NONE == static_cast<int>(Status::none));
static_assert(SLOTKERN_SQUARE == static_cast<int>(ShapeKind::square));
static_assert(SLOTKERN_RAGGED == static_cast<int>(ShapeKind::ragged));

constexpr int kRefused = static_cast<int>(Status::request_not_valid);

Fault open(slotkern_pool& owner) {
  SlotView view;
  view.base = reinterpret_cast<const char*>(owner.rows.data());
  view.stride = sizeof(slotkern_slot), view.size = owner.rows.size();
  view.node = offsetof(slotkern_slot, node), view.start = offsetof(slotkern_slot, start);
  view.end = offsetof(slotkern_slot, end), view.price = offsetof(slotkern_slot, price);
  view.performance = offsetof(slotkern_slot, performance);
  const Fault fault = prepare_slots(owner.prepared, view, true, ShapeKind::square, 0);
  if (fault.status != Status::ok) return fault;
  std::vector<double> prices(owner.rows.size());
  std::ranges::transform(owner.rows, prices.begin(), &slotkern_slot::price);
  return {open_pool(owner.pool, owner.prepared, prices, nullptr)};
}

// Runs f under the mutex of the pool and converts exceptions to status codes.
template <class F>
int run_locked(slotkern_pool* pool, F f) noexcept {
  return static_cast<int>(guarded([&] {
    const std::lock_guard lock(pool->mutex);
    return f();
  }));
}

using Change = Status(SlotPool&, double, const Part*, std::size_t, std::size_t&) noexcept;

int change(slotkern_pool* pool, double start, const slotkern_part* parts, std::size_t count,
           std::size_t* failed_part, Change* change) noexcept {
  if (!pool || !parts || !count) return kRefused;
  return run_locked(pool, [&] {
    std::vector<Part> taken(count);
    for (std::size_t i = 0; i < count; ++i)
      taken[i] = {static_cast<std::size_t>(parts[i].row), parts[i].node, parts[i].length, 0};
    std::size_t fault = 0;
    const Status status = change(pool->pool, start, taken.data(), count, fault);
    if (failed_part && status != Status::ok) *failed_part = fault;
    return status;
  });
}

const char* words(Status status) {
  switch (status) {
    case Status::ok: return "done";
    case Status::none: return "no window exists";
    case Status::no_memory: return "not enough memory";
    case Status::internal: return "an unexpected error";
    case Status::interrupted: return "interrupted";
    case Status::node_negative: return "a node is negative";
    case Status::start_not_finite: return "a start is not finite";
    case Status::end_is_nan: return "an end is NaN";
    case Status::end_not_after_start: return "an end is not after its start";
    case Status::performance_not_positive: return "a performance is not positive and finite";
    case Status::price_not_valid: return "a price is negative or not finite";
    case Status::not_sorted: return "slots are not sorted by start, then node";
    case Status::performance_differs: return "slots of one node differ in performance";
    case Status::overlap: return "slots of one node overlap";
    case Status::volume_too_small: return "the volume is too small beside times so large";
    case Status::cost_not_valid: return "a cost is negative or not finite";
    case Status::value_not_finite: return "a value is not finite";
    case Status::sum_overflows: return "sums overflow";
    case Status::cost_not_integer: return "a cost is not an integer below 2^52";
    case Status::table_too_large: return "the table is too large";
    case Status::weight_not_finite: return "a weight is not finite";
    case Status::weights_overflow: return "sums of weights overflow";
    case Status::endless: return "there are endlessly many alternatives";
    case Status::too_many: return "there are too many alternatives";
    case Status::too_many_live: return "too many slots are live at once";
    case Status::not_free: return "a part is not free";
    case Status::not_booked: return "a part is not booked";
    case Status::criterion_failed: return "a criterion failed";
    case Status::end_is_infinite: return "an end is infinite";
    case Status::out_of_work: return "the allowed work is done";
    case Status::limit_failed: return "the function of a limit failed";
    case Status::request_not_valid: return "the request is not valid";
    case Status::time_is_nan: return "a time is NaN";
    case Status::undecided: return "no window was found within the allowed work";
  }
  return "no code of slotkern";
}

}  // namespace

extern "C" {

int slotkern_interface(void) { return SLOTKERN_INTERFACE; }

const char* slotkern_words(int code) { return words(static_cast<Status>(code)); }

slotkern_request slotkern_request_of(int64_t nodes, double volume) {
  const Query open;
  slotkern_request request;
#define SLOTKERN_REQUEST_FIELD(name, ...) request.name = open.name;
#include "slotkern/slots/request_fields.def"
  request.nodes = nodes, request.volume = volume;
  return request;
}

int slotkern_open(const slotkern_slot* slots, size_t count, slotkern_pool** pool, size_t* row) {
  if (!pool) return kRefused;
  *pool = nullptr;
  if (!slots && count) return kRefused;
  return static_cast<int>(guarded([&] {
    auto owner = std::make_unique<slotkern_pool>();
    owner->rows.assign(slots, slots + count);
    const Fault fault = open(*owner);
    if (fault.status == Status::ok) *pool = owner.release();
    else if (row) *row = fault.row;
    return fault.status;
  }));
}

void slotkern_close(slotkern_pool* pool) { delete pool; }

int slotkern_find(slotkern_pool* pool, const slotkern_request* request, const char* criterion,
                  int shape, slotkern_window* window, slotkern_part* parts) {
  if (!pool || !request || !criterion || !window || !parts ||
      (shape != SLOTKERN_SQUARE && shape != SLOTKERN_RAGGED))
    return kRefused;
  Query query;
  query.n = request->nodes;
#define SLOTKERN_REQUEST_FIELD(name, ...) query.name = request->name;
#include "slotkern/slots/request_fields.def"
  query.deadline = std::min(query.deadline, kMaxTime);
  return run_locked(pool, [&] {
    const Answer answer =
        find_window(pool->pool, query, criterion_index(criterion), static_cast<ShapeKind>(shape));
    if (answer.status != Status::ok) return answer.status;
    const Found& found = answer.found;
    *window = {found.start, found.start + found.runtime, found.runtime, found.cost,
               found.processor_time};
    for (std::int64_t i = 0; i < query.n; ++i) {
      const Part& part = answer.parts[i];
      parts[i] = {static_cast<int64_t>(part.row), part.node, part.length, part.cost};
    }
    return Status::ok;
  });
}

int slotkern_book(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                  size_t* failed_part) {
  return change(pool, start, parts, count, failed_part, book);
}

int slotkern_release(slotkern_pool* pool, double start, const slotkern_part* parts, size_t count,
                     size_t* failed_part) {
  return change(pool, start, parts, count, failed_part, release);
}

int slotkern_advance(slotkern_pool* pool, double now) {
  if (!pool) return kRefused;
  return run_locked(pool, [&] { return advance(pool->pool, now); });
}

int slotkern_free(slotkern_pool* pool, slotkern_slot* slots, size_t capacity, size_t* count) {
  if (!pool || !count || (!slots && capacity)) return kRefused;
  return run_locked(pool, [&] {
    PoolState state;
    if (const Status status = state_of(pool->pool, state); status != Status::ok) return status;
    *count = state.free.size();
    for (std::size_t i = 0; i < std::min(capacity, *count); ++i) {
      slots[i] = pool->rows[state.free[i].origin_row];
      slots[i].start = state.free[i].start, slots[i].end = state.free[i].end;
    }
    return Status::ok;
  });
}

}  // extern "C"
