// The functions of slotkern.h. Beyond the C++ headers: ownership of the slots, texts of codes.
#include "slotkern/slotkern.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "slotkern/pool/schedule.hpp"

using namespace slotkern;

struct slotkern_pool {
  std::vector<slotkern_slot> rows;
  PreparedSlots prepared;
  SlotPool pool;
  std::vector<Tariff> tariffs;
  std::map<std::int32_t, std::int32_t> tariff_of;  // by node; index in `tariffs`
  std::mutex mutex;
};

namespace {

static_assert(SLOTKERN_OK == static_cast<int>(Status::ok));
static_assert(SLOTKERN_NONE == static_cast<int>(Status::none));
static_assert(SLOTKERN_SQUARE == static_cast<int>(ShapeKind::square));
static_assert(SLOTKERN_RAGGED == static_cast<int>(ShapeKind::ragged));

constexpr int kRefused = static_cast<int>(Status::request_not_valid);

using TariffOf = std::map<std::int32_t, std::int32_t>;  // by node; index in a list of tariffs

// Prepares the slots with the tariffs of their nodes, and writes the prices of the rows.
Fault prepare(const std::vector<slotkern_slot>& rows, const std::vector<Tariff>& tariffs,
              const TariffOf& tariff_of, PreparedSlots& prepared, std::vector<double>& prices) {
  SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(slotkern_slot), view.size = rows.size();
  view.node = offsetof(slotkern_slot, node), view.start = offsetof(slotkern_slot, start);
  view.end = offsetof(slotkern_slot, end), view.price = offsetof(slotkern_slot, price);
  view.performance = offsetof(slotkern_slot, performance);
  const Fault fault = prepare_slots(prepared, view, true, ShapeKind::square, 0);
  if (fault.status != Status::ok) return fault;
  prices.resize(rows.size());
  std::ranges::transform(rows, prices.begin(), &slotkern_slot::price);
  std::vector<std::int32_t> by_place;
  for (const Node& node : prepared.nodes) {
    const auto found = tariff_of.find(node.id);
    by_place.push_back(found == tariff_of.end() ? -1 : found->second);
  }
  return {set_tariffs(prepared, tariffs, by_place, 0)};
}

// Removes the tariffs that no node has, so that tariffs set again and again do not accumulate.
void drop_unused(std::vector<Tariff>& tariffs, TariffOf& tariff_of) {
  std::vector<std::int32_t> place(tariffs.size(), -1);
  std::vector<Tariff> used;
  for (auto& [node, tariff] : tariff_of) {
    std::int32_t& at = place[static_cast<std::size_t>(tariff)];
    if (at < 0) {
      at = static_cast<std::int32_t>(used.size());
      used.push_back(std::move(tariffs[static_cast<std::size_t>(tariff)]));
    }
    tariff = at;
  }
  tariffs.swap(used);
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

}  // namespace

extern "C" {

int slotkern_interface(void) { return SLOTKERN_INTERFACE; }

const char* slotkern_words(int code) {
  return code >= 0 && code < kStatuses ? kStatusTexts[code].words : "no code of slotkern";
}

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
    std::vector<double> prices;
    Fault fault = prepare(owner->rows, {}, {}, owner->prepared, prices);
    if (fault.status == Status::ok)
      fault.status = open_pool(owner->pool, owner->prepared, prices, nullptr);
    if (fault.status == Status::ok) *pool = owner.release();
    else if (row) *row = fault.row;
    return fault.status;
  }));
}

int slotkern_set_tariff(slotkern_pool* pool, const int32_t* nodes, size_t node_count,
                        const double* breakpoints, size_t breakpoint_count,
                        const double* factors) {
  if (!pool || !nodes || !factors || (!breakpoints && breakpoint_count)) return kRefused;
  return run_locked(pool, [&] {
    Tariff tariff;
    Status status = tariff.set({breakpoints, breakpoint_count}, {factors, breakpoint_count + 1});
    if (status != Status::ok) return status;
    std::vector<Tariff> tariffs = pool->tariffs;
    TariffOf tariff_of = pool->tariff_of;
    tariffs.push_back(std::move(tariff));
    for (std::size_t i = 0; i < node_count; ++i) {
      if (pool->pool.place_of(nodes[i]) < 0) return Status::request_not_valid;
      tariff_of[nodes[i]] = static_cast<std::int32_t>(tariffs.size() - 1);
    }
    drop_unused(tariffs, tariff_of);
    PreparedSlots fresh;
    std::vector<double> prices;
    status = prepare(pool->rows, tariffs, tariff_of, fresh, prices).status;
    PoolState state;
    if (status == Status::ok) status = state_of(pool->pool, state);
    state.first_new_span = state.free.size();
    if (status == Status::ok) status = extend_pool(pool->pool, fresh, prices, state);
    if (status != Status::ok) return status;
    pool->tariffs.swap(tariffs), pool->tariff_of.swap(tariff_of);
    return Status::ok;
  });
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
