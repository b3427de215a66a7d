// Repeated searches for the cheapest ragged window: by cells of time with cached cost bounds
// (pool/cost_search.hpp), or by a sweep. The result is the same; pool/adaptive_budget.hpp decides
// by counted effort which way is cheaper for queries of this width.
//
// A changing pool owns one cache. For slots that do not change, CostCachePool holds up to 4 caches,
// because each search changes its cache: up to 4 concurrent threads own one each, and further
// threads use sweeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/pool/cost_search.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

// The free spans by node, and the prices by row of the origin array.
struct FreeTimeView {
  const std::vector<double>& prices;
  const AvailabilityTimeline& spans;
};

// True if the query can be searched by cells: cheapest ragged window without setup, mask or limits.
inline bool can_use_cost_cache(const PreparedSlots& prepared, const Query& query, int criterion,
                               ShapeKind shape) {
  return finds_cheapest(criterion) && shape == ShapeKind::ragged && !query.has_overhead() &&
         !query.mask && !query.limits && !query.groups && !prepared.tariffs &&
         query.n <= static_cast<std::int64_t>(prepared.nodes.size()) &&
         CostBoundCache::is_applicable(prepared);
}

// Returns the row of bounds for the query, building the cache if needed. The table is null if
// bounds do not pay yet or memory ran out.
template <class Free>
CostBoundCache::RowLease acquire_cost_row(const PreparedSlots& prepared, const Query& query,
                                          CostBoundCache& costs, Free free) {
  if (!costs.should_use(prepared, query.volume)) return {};
  try {
    if (!costs.covers(query.volume) || costs.is_outgrown(prepared)) {
      if (prepared.slots.size() > kLongRunningSlots) enable_interrupts();
      const FreeTimeView time = free();
      costs.build(prepared, time.prices, time.spans, query.volume);
    }
    return costs.find_or_create_row(query.n, costs.cells().class_of(query.volume));
  } catch (const std::bad_alloc&) {
    costs.reset();
    return {};
  }
}

inline CostScratch& cost_scratch() {
  static thread_local CostScratch scratch;
  return scratch;
}

// Searches by cells within the budget, else by a sweep with the incumbent as ceiling. free()
// returns the FreeTimeView. `least`: no window costs less.
template <class Free>
Status search_cheapest(const PreparedSlots& prepared, const Query& query, CostBoundCache& costs,
                       double least, Workspace& work, Found& found, Free free) {
  if (prepared.is_long_running(query, ShapeKind::ragged)) enable_interrupts();
  work.effort = 0;
  const std::size_t budget = costs.budget_for(query).budget(prepared.options.cell_search_credit);
  CostBoundCache::RowLease row{};
  if (budget > 0) row = acquire_cost_row(prepared, query, costs, free);
  LowestCost goal;
  if (!row.table) {
    const bool any = detail::improve_cheapest(prepared, query, least, goal.best, work, found);
    costs.record_sweep(query, work.effort, CostSearch::usual_effort(query));
    work.effort += costs.take_effort();
    return any ? Status::ok : Status::none;
  }
  goal.budget = query.max_cost();
  const FreeTimeView time = free();
  CostSearch search(costs.cells(), row, prepared, time.prices, time.spans.free(), query, goal,
                    cost_scratch(), budget / CostSearch::kEffort);
  const bool all = search.run();
  work.effort = search.effort() + row.new_cells / 8;
  costs.record_cell_search(query, all, work.effort, search.was_mostly_build());
  work.effort += costs.take_effort();
  if (!all)
    return detail::improve_cheapest(prepared, query, least, goal.best, work, found) ? Status::ok
                                                                             : Status::none;
  if (goal.best.found) search.extract_window(found, work.parts);
  return goal.best.found ? Status::ok : Status::none;
}

// Cost bounds for slots that do not change, for several threads. Nothing is allocated before the
// first search. Memory: up to 40 bytes for each slot, and what pool/cost_bounds.hpp and
// pool/max_work.hpp state for each cache in use.
class CostCachePool {
  struct CacheEntry {
    std::atomic<bool> is_leased{false};
    CostBoundCache costs;
  };
  static constexpr std::size_t kMaxEntries = 4;

 public:
  // A thread's exclusive use of a cache, from its first search that needs one until destruction.
  class Lease {
   public:
    explicit Lease(CostCachePool& memory) : memory_(memory) {}
    ~Lease() {
      if (entry_) entry_->is_leased.store(false, std::memory_order_release);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // As find() of window/find.hpp.
    Answer find(const PreparedSlots& prepared, const Query& given, int criterion,
                ShapeKind shape) noexcept {
      return run_search(given, [&](Workspace& work, Found& found) {
        const Query query = prepared.normalized_for_search(given);
        if (criterion < 0 || criterion >= kBuiltins) return Status::request_not_valid;
        if (const Status status = prepared.check(query); status != Status::ok) return status;
        if (!can_use_cost_cache(prepared, query, criterion, shape) || !acquire())
          return search_validated(prepared, query, criterion, shape, work, found);
        return search_cheapest(prepared, query, entry_->costs, -kInfinity, work, found,
                               [&] { return memory_.free_time(prepared); });
      });
    }

   private:
    // Returns true if this lease has a cache, after acquiring a free one if needed.
    bool acquire() {
      if (entry_) return true;
      CacheEntry* const entries = memory_.entries();
      for (std::size_t k = 0; entries && k < kMaxEntries; ++k) {
        if (entries[k].is_leased.load(std::memory_order_relaxed) ||
            entries[k].is_leased.exchange(true, std::memory_order_acquire))
          continue;
        entry_ = &entries[k];
        return true;
      }
      return false;
    }

    CostCachePool& memory_;
    CacheEntry* entry_ = nullptr;
  };

  // Drops all caches. Call while no thread searches, before the slots change.
  void clear() {
    entries_.drop();
    free_.drop();
  }

 private:
  struct Free {
    std::vector<double> prices;
    AvailabilityTimeline spans;
  };

  CacheEntry* entries() {
    try {
      return entries_.get([] { return std::make_unique<CacheEntry[]>(kMaxEntries); }).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  FreeTimeView free_time(const PreparedSlots& prepared) {
    const Free& free = free_.get([&] {
      Free all;
      all.prices.reserve(prepared.slots.size());
      all.spans.reset(prepared.nodes);
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Slot& slot = prepared.slots[i];
        all.prices.push_back(slot.price);
        all.spans.append_free(static_cast<std::size_t>(slot.place), {slot.start, slot.end, i});
      }
      return all;
    });
    return {free.prices, free.spans};
  }

  Lazy<std::unique_ptr<CacheEntry[]>> entries_;
  Lazy<Free> free_;
};

// As find() and find_windows() of window/find.hpp, with cached cost bounds.
inline Answer find_window(const PreparedSlots& prepared, CostCachePool& memory, const Query& query,
                   int criterion, ShapeKind shape) noexcept {
  return CostCachePool::Lease(memory).find(prepared, query, criterion, shape);
}

inline Status find_windows(const PreparedSlots& prepared, CostCachePool& memory,
                        const std::vector<Query>& queries, int criterion, ShapeKind shape,
                        unsigned threads, WindowTable& out, std::size_t& failed_query) noexcept {
  return find_windows_with(prepared, queries, shape, threads, out, failed_query, [&] {
    return [&, lease = CostCachePool::Lease(memory)](const Query& query) mutable {
      return lease.find(prepared, query, criterion, shape);
    };
  });
}

}  // namespace slotkern
