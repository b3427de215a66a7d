// The cheapest window of a shape under limits on sums over the parts.
//
// Under the sieve's multipliers (window/within_sieve.hpp) a set that is new at a step costs no
// less than the step's slot and the n - 1 least of the others. Steps are asked by rising bound,
// not by time: the first one mostly has the best set, and what it costs rules out nearly all
// others, and at the next steps nearly all slots. The knapsack's answers are good up to a
// tolerance: last of all the starts where a set may cost as little are searched exactly, by time,
// for the cheapest set by the tie rule.
//
// Exact as long as the work suffices (Query::max_work). O(slots * limits) a pivot, O(live
// slots) a step that passes the sieve, and few knapsacks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/goals.hpp"
#include "slotkern/window/within_sieve.hpp"

namespace slotkern {

// Raises goal.best, the canonical window there into `chosen`, in cost order.
template <class Shape>
class CheapestSweep {
 public:
  bool proven = true;
  double bound = kInfinity;  // of totals, where they are not proven

  CheapestSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                LowestCost& goal, WithinScratch& work, std::vector<Entry>& chosen)
      : prepared_(prepared), query_(query), shape_(shape), goal_(goal), w_(work),
        chosen_(chosen), sieve_(work), live_(prepared, query, shape, work),
        n_(static_cast<std::size_t>(query.n)) {
    w_.ties.clear();
  }

  std::size_t failed() const { return live_.failed; }
  WithinSieve& sieve() { return sieve_; }

  // Whether it found something better than goal.best.
  bool run() {
    if (!sieve_.build(prepared_, query_, shape_, live_)) return false;
    // A low ceiling early: first a few slots only.
    const double few = goal_.best.found ? kInfinity : sieve_.most_for(kFew * n_);
    pass(few);
    if (few < kInfinity && !(most_sum() < few)) pass(kInfinity);
    if (better_) settle();
    return better_;
  }

 private:
  double most_sum() const { return shape_.most_sum(goal_.ceiling()); }
  double start(std::size_t place) const {
    return query_.start_in(prepared_.slots[w_.all.row[place]]);
  }

  // Over all slots that a window with a sum of keys up to `probe` may hold.
  void pass(double probe) {
    list_steps(std::min(probe, most_sum()));
    for (const WithinScratch::Step& step : w_.steps) {
      if (sieve_.stops_sum(step.bound, most_sum())) return;
      if (detail::overworked(query_, w_)) return give_up(sieve_.least_keys(step.bound));
      ask(step);
    }
  }

  // The slots that pass, and the steps among them by rising bound.
  void list_steps(double most) {
    w_.places.clear(), w_.steps.clear(), w_.others.clear();
    if (sieve_.stops_all(most)) return;
    double soonest = kInfinity;
    for (std::size_t place = 0; place < w_.all.size(); ++place) {
      const double weight = w_.weight[place];
      if (sieve_.stops_weight(weight, most)) continue;
      poll();
      w_.places.push_back(place);
      const double t = start(place);
      if (t > soonest) {
        soonest = kInfinity;
        std::erase_if(w_.others, [&](const WithinScratch::Other& other) {
          if (!live_.still(w_.all, other.place, t)) return true;
          soonest = std::min(soonest, w_.all.until[other.place]);
          return false;
        });
      }
      if (w_.others.size() + 1 >= n_) {
        double sum = weight - sieve_.charged();
        for (std::size_t i = 0; i + 1 < n_; ++i) sum += w_.others[i].weight;
        if (!sieve_.stops_sum(sum, most))
          add_step({sum, n_ > 1 ? w_.others[n_ - 2].weight : kInfinity, place, true});
      }
      soonest = std::min(soonest, w_.all.until[place]);
      const auto at = std::upper_bound(
          w_.others.begin(), w_.others.end(), weight,
          [](double w, const WithinScratch::Other& other) { return w < other.weight; });
      w_.others.insert(at, {weight, place});
    }
    std::sort(w_.steps.begin(), w_.steps.end(), [](const auto& a, const auto& b) {
      return a.bound < b.bound || (a.bound == b.bound && a.place < b.place);
    });
  }

  // Behind the first few, the steps of one start become one, of any sets at that start.
  void add_step(const WithinScratch::Step& step) {
    const std::size_t size = w_.steps.size(), few = detail::kOneByOne;
    const double t = start(step.place);
    if (size <= few || start(w_.steps[size - 1 - few].place) < t) {
      w_.steps.push_back(step);
      return;
    }
    WithinScratch::Step& before = w_.steps.back();
    before = {std::min(before.bound, step.bound), step.last, step.place, false};
  }

  // Sets that hold the step's slot and others that came before it, or any up to that slot.
  void ask(const WithinScratch::Step& step) {
    Best& best = goal_.best;
    const double t = start(step.place), most = most_sum();
    // Ties matter only where they start earlier, and nothing is cheaper than free.
    const bool earlier = !best.found || t < best.start;
    if (best.found && best.total <= 0 && !earlier) return;
    poll();
    w_.knapsack.work += static_cast<std::int64_t>(w_.places.size()) / 2;
    live_.clear();
    for (const std::size_t place : w_.places) {
      if (place >= step.place || (step.alone && n_ == 1)) break;
      const bool stops = step.alone
                             ? sieve_.stops_sum(step.bound - step.last + w_.weight[place], most)
                             : sieve_.stops_weight(w_.weight[place], most);
      if (!stops && live_.still(w_.all, place, t))
        w_.live.push(w_.all, place);
    }
    w_.live.push(w_.all, step.place);
    const bool any = live_.solve_cheap(step.alone, goal_.ceiling(), incumbent(), 0, query_.max_work);
    if (!w_.knapsack.complete) give_up(live_.least_sum());
    if (!any) return;
    w_.ties.push_back({t, live_.least_sum()});
    const double total = live_.total();
    if (!best.found || total < best.total || (total == best.total && earlier)) record(t, total);
  }

  // The cheapest set of all, of the earliest start: nothing is missed for the tolerance.
  void settle() {
    const Best& best = goal_.best;
    std::sort(w_.ties.begin(), w_.ties.end(), [](const auto& a, const auto& b) {
      return a.start < b.start || (a.start == b.start && a.sum < b.sum);
    });
    double done = -kInfinity;
    for (const WithinScratch::Tie& tie : w_.ties) {
      if (tie.start == done || shape_.total(tie.sum) > best.total) continue;
      done = tie.start;
      live_.clear();
      for (std::size_t place = 0; place < w_.all.size() && !(start(place) > tie.start); ++place)
        if (!sieve_.stops_weight(w_.weight[place], most_sum()) &&
            live_.still(w_.all, place, tie.start))
          w_.live.push(w_.all, place);
      const double most = best.total;
      // For its multipliers.
      live_.solve_cheap(false, most, incumbent(), 0, w_.knapsack.work + kLeast);
      const std::int64_t left = std::max(kLeast, query_.max_work - w_.knapsack.work);
      if (live_.cheapest(most, tie.start <= best.start, left)) record(tie.start, live_.total());
      if (!live_.finished) give_up(most / shape_.total(1) * (1 - 1e-11));
    }
  }

  // A little worse than the best: the knapsack's answers are good up to a tolerance.
  double incumbent() const {
    if (!goal_.best.found) return kInfinity;
    const double sum = goal_.best.total / shape_.total(1);
    return sum + 1e-11 * sum + std::numeric_limits<double>::min();
  }

  // No set that is left undecided has a smaller sum of keys.
  void give_up(double sum) {
    proven = false;
    bound = std::min(bound, shape_.total(sum) * (1 - 1e-12));
  }

  void record(double t, double total) {
    Best& best = goal_.best;
    better_ = best.found = true;
    best.start = t;
    best.total = total;
    chosen_ = live_.entries();
  }

  static constexpr std::size_t kFew = 4;  // times n
  static constexpr std::int64_t kLeast = 1 << 12;

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  LowestCost& goal_;
  WithinScratch& w_;
  std::vector<Entry>& chosen_;
  WithinSieve sieve_;
  LiveWithin<Shape> live_;
  const std::size_t n_;
  bool better_ = false;
};

}  // namespace slotkern
