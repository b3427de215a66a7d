// Searches for the cheapest windows that learn from those before.
//
// A pool that changes knows costs by cells of time (pool/cost_bounds.hpp); so do slots that stay,
// once so many searches for the cheapest windows have come that it pays. Which of the two ways a
// search goes is counted for numbers of nodes like its own (pool/cost_account.hpp); the answer is
// the same.
//
// Threads that search at the same time each learn at a desk of their own, and where none is left
// they sweep.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "slotkern/base/made_once.hpp"
#include "slotkern/pool/cost_search.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

// Free spans by node, and the prices by row of the origin array.
struct FreeTime {
  const std::vector<double>& prices;
  const PoolSpans& spans;
};

// Whether a search is one for the cheapest window, of which costs by cells may tell.
inline bool costs_may_tell(const PreparedSlots& prepared, const Query& query, int criterion,
                           ShapeKind shape) {
  return finds_cheapest(criterion) && shape == ShapeKind::ragged && !query.charged() &&
         !query.mask && !query.limits &&
         query.n <= static_cast<std::int64_t>(prepared.nodes.size()) && CostBounds::fits(prepared);
}

// What is known of costs; no table: it does not pay to ask, or there is no memory now.
template <class Free>
CostBounds::Known known_costs(const PreparedSlots& prepared, const Query& query, CostBounds& costs,
                              Free free) {
  if (!costs.pays(prepared, query.volume)) return {};
  try {
    if (!costs.tells(query.volume)) {
      if (prepared.slots.size() > kManySlots) expect_long();
      const FreeTime time = free();
      costs.build(prepared, time.prices, time.spans, query.volume);
    }
    return costs.known(query.n, costs.cells().class_of(query.volume));
  } catch (const std::bad_alloc&) {
    costs.forget();
    return {};
  }
}

inline CostScratch& cost_scratch() {
  static thread_local CostScratch scratch;
  return scratch;
}

// search_checked() of such a search: by cells where that pays. free(): what is free.
template <class Free>
Status search_cheapest(const PreparedSlots& prepared, const Query& query, CostBounds& costs,
                       double least, Workspace& work, Found& found, Free free) {
  if (prepared.heavy(query, ShapeKind::ragged)) expect_long();
  work.effort = 0;
  const std::size_t allowed = costs.account(query).allowed();
  CostBounds::Known known{};
  if (allowed > 0) known = known_costs(prepared, query, costs, free);
  LowestCost goal;
  if (!known.table) {
    const bool any = detail::search_on(prepared, query, least, goal.best, work, found);
    costs.swept(query, work.effort);
    return any ? Status::ok : Status::none;
  }
  goal.budget = query.most_money();
  const FreeTime time = free();
  CostSearch search(costs.cells(), known, prepared, time.prices, time.spans.free(), query, goal,
                    cost_scratch(), allowed / CostSearch::kEffort);
  const bool all = search.run();
  work.effort = search.effort() + known.made / 8;
  costs.account(query).asked(all, work.effort, search.learnt());
  if (!all)
    return detail::search_on(prepared, query, least, goal.best, work, found) ? Status::ok
                                                                             : Status::none;
  if (goal.best.found) search.take(found, work.parts);
  return goal.best.found ? Status::ok : Status::none;
}

// What searches for the cheapest windows of slots that stay have learnt. Nothing until the first.
// Memory: up to 40 bytes a slot, and for each desk, which a thread has for as long as it searches,
// what pool/cost_bounds.hpp and pool/cell_work.hpp say.
class CostMemory {
  struct Desk {
    std::atomic<bool> taken{false};
    CostBounds costs;
  };
  static constexpr std::size_t kDesks = 4;

 public:
  // A thread's, with a desk from its first search for a cheapest window on, where one is left.
  class Seat {
   public:
    explicit Seat(CostMemory& memory) : memory_(memory) {}
    ~Seat() {
      if (desk_) desk_->taken.store(false, std::memory_order_release);
    }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

    // As that of window/find.hpp.
    Answer find(const PreparedSlots& prepared, const Query& asked, int criterion,
                ShapeKind shape) noexcept {
      return answer_of(asked, [&](Workspace& work, Found& found) {
        const Query query = prepared.as_searched(asked);
        if (criterion < 0 || criterion >= kBuiltins) return Status::request_not_valid;
        if (const Status status = prepared.check(query); status != Status::ok) return status;
        if (!costs_may_tell(prepared, query, criterion, shape) || !sit_down())
          return search_checked(prepared, query, criterion, shape, work, found);
        return search_cheapest(prepared, query, desk_->costs, -kInfinity, work, found,
                               [&] { return memory_.free_time(prepared); });
      });
    }

   private:
    // Whether there is a desk.
    bool sit_down() {
      if (desk_) return true;
      Desk* const desks = memory_.desks();
      for (std::size_t k = 0; desks && k < kDesks; ++k) {
        if (desks[k].taken.load(std::memory_order_relaxed) ||
            desks[k].taken.exchange(true, std::memory_order_acquire))
          continue;
        desk_ = &desks[k];
        return true;
      }
      return false;
    }

    CostMemory& memory_;
    Desk* desk_ = nullptr;
  };

  // While nobody searches: the slots are about to change.
  void forget() {
    desks_.drop();
    free_.drop();
  }

 private:
  struct Free {
    std::vector<double> prices;
    PoolSpans spans;
  };

  Desk* desks() {
    try {
      return desks_.get([] { return std::make_unique<Desk[]>(kDesks); }).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  FreeTime free_time(const PreparedSlots& prepared) {
    const Free& free = free_.get([&] {
      Free all;
      all.prices.reserve(prepared.slots.size());
      all.spans.open(prepared.nodes);
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Slot& slot = prepared.slots[i];
        all.prices.push_back(slot.price);
        all.spans.add(static_cast<std::size_t>(slot.place), {slot.start, slot.end, i});
      }
      return all;
    });
    return {free.prices, free.spans};
  }

  MadeOnce<std::unique_ptr<Desk[]>> desks_;
  MadeOnce<Free> free_;
};

// find() and find_many() of window/find.hpp, that learn.
inline Answer find(const PreparedSlots& prepared, CostMemory& memory, const Query& query,
                   int criterion, ShapeKind shape) noexcept {
  return CostMemory::Seat(memory).find(prepared, query, criterion, shape);
}

inline Status find_many(const PreparedSlots& prepared, CostMemory& memory,
                        const std::vector<Query>& queries, int criterion, ShapeKind shape,
                        unsigned threads, WindowTable& out, std::size_t& wrong) noexcept {
  return find_many_by(prepared, queries, shape, threads, out, wrong, [&] {
    return [&, seat = CostMemory::Seat(memory)](const Query& query) mutable {
      return seat.find(prepared, query, criterion, shape);
    };
  });
}

}  // namespace slotkern
