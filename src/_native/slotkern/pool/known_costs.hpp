// Searches for the cheapest windows that learn from those before.
//
// A pool that changes knows costs by cells of time (pool/cost_bounds.hpp); so do slots that stay,
// once so many searches for the cheapest windows have come that it pays. Which of the two ways a
// search goes is counted for each number of nodes (pool/cost_account.hpp); the answer is the same.
//
// Threads that search at the same time each learn at a desk of their own, and where there is none
// left they sweep.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
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

// What is known of costs; null: it does not pay to ask, or there is no memory now. `cells`: how
// many are new.
template <class Free>
CostBounds::Table* known_costs(const PreparedSlots& prepared, const Query& query,
                               CostBounds& costs, Free free, std::size_t& cells) {
  cells = 0;
  if (!costs.pays(prepared, query.volume)) return nullptr;
  try {
    if (!costs.tells(query.volume)) {
      if (prepared.slots.size() > kManySlots) expect_long();
      const FreeTime time = free();
      costs.build(prepared, time.prices, time.spans, query.volume);
    }
    const std::uint8_t c = costs.cells().class_of(query.volume);
    if (costs.makes_row(query.n, c)) cells = costs.cells().size();
    return &costs.table(query.n, c);
  } catch (const std::bad_alloc&) {
    costs.forget();
    return nullptr;
  }
}

// search_checked() of such a search: by cells where that pays. free(): what is free.
template <class Free>
Status search_cheapest(const PreparedSlots& prepared, const Query& query, CostBounds& costs,
                       double least, Workspace& work, Found& found, Free free) {
  if (prepared.heavy(query, ShapeKind::ragged)) expect_long();
  std::size_t cells = 0;
  CostBounds::Table* known = nullptr;
  const std::size_t allowed = costs.account(query.n).allowed();
  if (allowed > 0) known = known_costs(prepared, query, costs, free, cells);
  if (!known) {
    work.effort = 0;
    const bool any = detail::search_on(prepared, query, least, {}, work, found);
    costs.swept(query.n, work.effort);
    return any ? Status::ok : Status::none;
  }
  static thread_local CostScratch scratch;
  LowestCost goal;
  goal.budget = detail::most_money(query);
  const FreeTime time = free();
  CostSearch search(costs.cells(), *known, prepared, time.prices, time.spans.free(), query, goal,
                    scratch, allowed / CostSearch::kEffort);
  const bool all = search.run();
  costs.account(query.n).asked(all, search.effort() + cells / 8, search.learnt());
  if (!all)
    return detail::search_on(prepared, query, least, goal.best, work, found) ? Status::ok
                                                                             : Status::none;
  if (goal.best.found) search.take(found, work.parts);
  return goal.best.found ? Status::ok : Status::none;
}

// What searches for the cheapest windows of slots that stay have learnt. Nothing until the first.
class CostMemory {
  struct Desk {
    std::mutex taken;
    CostBounds costs;
  };
  static constexpr std::size_t kDesks = 4;

 public:
  // A thread's, for as long as it searches.
  class Seat {
   public:
    explicit Seat(CostMemory& memory) : memory_(memory) {}

    Answer find(const PreparedSlots& prepared, const Query& query, int criterion,
                ShapeKind shape) noexcept {
      return answer_of(query, [&](Workspace& work, Found& found) {
        return search(prepared, query, criterion, shape, work, found);
      });
    }

   private:
    // As that of window/search.hpp.
    Status search(const PreparedSlots& prepared, const Query& asked, int criterion,
                  ShapeKind shape, Workspace& work, Found& found) {
      const Query query = prepared.as_searched(asked);
      if (criterion < 0 || criterion >= kBuiltins) return Status::request_not_valid;
      if (const Status status = prepared.check(query); status != Status::ok) return status;
      if (!costs_may_tell(prepared, query, criterion, shape) || !sit_down())
        return search_checked(prepared, query, criterion, shape, work, found);
      return search_cheapest(prepared, query, *costs_, -kInfinity, work, found,
                             [&] { return memory_.free_time(prepared); });
    }

    // Whether there is a desk.
    bool sit_down() {
      if (costs_) return true;
      Desk* const desks = memory_.desks();
      for (std::size_t k = 0; desks && k < kDesks; ++k) {
        std::unique_lock lock(desks[k].taken, std::try_to_lock);
        if (!lock) continue;
        taken_ = std::move(lock);
        costs_ = &desks[k].costs;
        return true;
      }
      return false;
    }

    CostMemory& memory_;
    std::unique_lock<std::mutex> taken_;
    CostBounds* costs_ = nullptr;
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
