// Square windows of many performance groups: branch and bound over ranges of groups, halved
// repeatedly, which prunes most groups without sweeping them.
//
// Relaxation of a range: windows last at least as long as in its fastest group, cost at least as
// much as the same prices there, use no node slower than its slowest group, and a slot's value is
// bounded at the end of the range that makes it larger (`Source::length_effect`). This holds for
// rounded numbers too, because rounding of sums, products and differences is monotone.
//
// The slot of a window that starts last meets all others while they are live for the shortest span.
// Its weight and the n - 1 heaviest live weights therefore bound the window, under any multiplier
// of the budget. If no slot's bound beats the incumbent, the range is pruned. Else its halves are
// examined, the better half first, with only the slots that are live at some remaining start; a
// single group is swept, and so are the groups of a small range that lost few slots. O(slots log
// slots) a range, with fewer slots at each level.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/value/incumbent.hpp"

namespace slotkern {

template <class Shape, class Source>
class GroupRanges {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;

 public:
  static constexpr bool apply = State::kSquare && Source::length_effect != LengthEffect::unknown;

  explicit GroupRanges(State& state) : state_(state), w_(state.work), n_(state.n) {}

  // True if there are enough groups for range bounds to pay, and the options permit them.
  bool should_run() const {
    return w_.plans.size() >= kMinGroups && !state_.options.lite && !state_.options.group_span;
  }

  // Sweeps a sample of distant groups with sweep_listed(), with little work, because a good
  // incumbent makes the ranges small. The sample need not be optimal: all ranges contain its groups
  // again. Returns false at a fault.
  template <class Sweep>
  bool sweep_sample(Sweep sweep_listed) {
    groups_.swap(w_.plans);
    w_.plans.clear();
    for (std::size_t k = 0; k < kSampledGroups; ++k)
      w_.plans.push_back(groups_[(2 * k + 1) * groups_.size() / (2 * kSampledGroups)]);
    std::int64_t& limit = state_.knapsack.limits.work;
    limit = std::min(limit / 4, kSampleWork);
    const bool fine = sweep_listed();
    limit = state_.options.limits.work;
    state_.proven = true, state_.bound = -kInfinity;
    return fine;
  }

  // Calls sweep(plan) for the groups that may contain a window better than the incumbent.
  template <class Sweep>
  void run(Sweep sweep) {
    Range all{0, groups_.size() - 1, kInfinity, 0, 0, {}};
    state_.for_each_usable(relaxed(all), groups_.back().least_others, [&](std::size_t row) {
      all.rows.push_back(row);
      return true;
    });
    if (tighten(all)) divide(all, sweep);
    state_.listed_rows = nullptr;
  }

 private:
  struct Range {
    std::size_t first, last;  // first and last position in groups_
    double bound, lambda, heaviest;  // `heaviest`: sum of the n - 1 heaviest node weights at lambda
    std::vector<std::size_t> rows;  // by time; all slots that a better window may use
    bool is_dense = false;  // few slots were dropped
  };
  static constexpr std::int64_t kSampleWork = 20000;

  struct Live {
    double weight, expiry;
  };

  static constexpr std::size_t kNone = State::kNone, kMinGroups = 256, kSampledGroups = 8,
      kMaxBunch = 16;

  Square relaxed(const Range& range) const {
    return {groups_[range.first].span,
            state_.prepared.groups[groups_[range.last].group].performance};
  }

  template <class Sweep>
  void divide(Range& range, Sweep sweep) {
    if (state_.is_out_of_work()) return state_.mark_unproven(range.bound);
    if (range.first == range.last) return sweep_one(range, sweep);
    // halving would go on to drop few
    if (range.is_dense && range.last - range.first < kMaxBunch) {
      for (std::size_t k = range.first; k <= range.last; ++k) {
        Range one{k, k, range.bound, range.lambda, 0, range.rows};
        if (!tighten(one)) continue;
        if (state_.is_out_of_work()) return state_.mark_unproven(range.bound);
        sweep_one(one, sweep);
      }
      return;
    }
    const std::size_t middle = range.first + (range.last - range.first) / 2;
    Range halves[] = {{range.first, middle, range.bound, range.lambda, 0, range.rows},
                      {middle + 1, range.last, range.bound, range.lambda, 0, range.rows}};
    bool open[] = {tighten(halves[0]), tighten(halves[1])};
    const int better = open[1] && (!open[0] || halves[1].bound > halves[0].bound);
    for (const int half : {better, 1 - better}) {
      Range& one = halves[half];
      if (open[half] && one.bound > state_.cutoff(state_.best, one.lambda)) divide(one, sweep);
      one.rows = {};
    }
  }

  template <class Sweep>
  void sweep_one(const Range& range, Sweep sweep) {
    Plan plan = groups_[range.first];
    plan.bound = range.bound, plan.lambda = range.lambda;
    plan.budget = state_.key_budget(state_.shape_of(plan));
    state_.listed_rows = &range.rows;
    state_.listed_heaviest = range.heaviest;
    sweep(plan);
  }

  // Computes the bound of the range and drops the slots of no better window. Returns false if the
  // range is pruned. For a single group, its sweep drops slots.
  bool tighten(Range& range) {
    poll();
    const std::size_t before = range.rows.size();
    const Square shape = relaxed(range);
    Plan plan = groups_[range.first];
    plan.budget = state_.key_budget(shape);
    if (!list_usable(range, shape, plan.budget)) return false;
    const Items items{w_.node_key.data(), w_.node_value.data(),
                      static_cast<int>(w_.node_value.size())};
    if (!state_.solve_dual(items, plan, range.lambda)) return false;
    range.lambda = plan.lambda;
    const double budget_charge = plan.lambda * plan.budget,
        cutoff = state_.cutoff(state_.best, plan.lambda);
    range.bound = std::min(range.bound, plan.bound);
    if (!(range.bound > cutoff)) return false;
    range.heaviest = 0;
    if (n_ > 1) {
      LagrangianBound::select_heaviest(items, n_ - 1, 1, plan.lambda, w_.heaviest);
      range.heaviest = w_.heaviest.weight;
    }
    if (range.first == range.last) return true;
    filter_rows(range, shape, plan.lambda, budget_charge, cutoff);
    range.is_dense = 16 * range.rows.size() > 15 * before;
    return !range.rows.empty() && range.bound > cutoff;
  }

  // Keeps the rows that a window of the range may use, with their values, and lists their nodes.
  bool list_usable(Range& range, const Square& shape, double budget) {
    const double valued =
        groups_[Source::length_effect == LengthEffect::no_worse ? range.last : range.first].span;
    const PreparedSlots& prepared = state_.prepared;
    node_.resize(prepared.nodes.size(), kNone);
    value_.clear(), w_.node_value.clear(), w_.node_key.clear();
    places_.clear();
    std::size_t kept = 0;
    for (const std::size_t row : range.rows) {
      const Slot& s = prepared.slots[row];
      if (s.price > budget || !state_.is_usable(shape, s, row)) continue;
      double z = 0;
      state_.source.upper_bound(s, row, valued, z);
      z = std::min(z, Source::max_value);
      state_.record_value(z);
      range.rows[kept++] = row;
      value_.push_back(z);
      const auto place = static_cast<std::size_t>(s.place);
      std::size_t& at = node_[place];
      if (at == kNone) {
        at = w_.node_value.size();
        places_.push_back(place);
        w_.node_value.push_back(z), w_.node_key.push_back(s.price);
      } else {
        w_.node_value[at] = std::max(w_.node_value[at], z);
        w_.node_key[at] = std::min(w_.node_key[at], s.price);
      }
    }
    for (const std::size_t place : places_) node_[place] = kNone;
    range.rows.resize(kept);
    return static_cast<int>(w_.node_value.size()) >= n_;
  }

  // Sweeps the slots by start, and keeps those that are live at a start whose bound beats the
  // cutoff.
  void filter_rows(Range& range, const Square& shape, double lambda, double budget_charge,
      double cutoff) {
    const Query& query = state_.query;
    const std::size_t others = static_cast<std::size_t>(n_) - 1;
    live_.clear(), open_starts_.clear(), expiry_.clear();
    double best_bound = -kInfinity;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < range.rows.size(); ++k) {
      const std::size_t row = range.rows[k];
      const Slot& s = state_.prepared.slots[row];
      const double weight = value_[k] - lambda * s.price;
      if (!(weight + range.heaviest + budget_charge > cutoff)) continue;
      const double t = query.start_in(s), expiry = expiry_of(s, shape.span);
      range.rows[kept++] = row;
      expiry_.push_back(expiry);
      double top = weight + budget_charge;
      std::size_t count = 0, dead = 0;
      for (std::size_t j = 0; j < live_.size() && count < others; ++j) {
        if (live_[j].expiry < t) {
          ++dead;
        } else {
          top += live_[j].weight;
          live_[count++] = live_[j];
        }
      }
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(count),
                  live_.begin() + static_cast<std::ptrdiff_t>(count + dead));
      if (count == others && top > cutoff) {
        best_bound = std::max(best_bound, top);
        open_starts_.push_back(t);
      }
      const auto lighter = std::upper_bound(
          live_.begin(), live_.end(), weight,
          [](double x, const Live& slot) { return x > slot.weight; });
      live_.insert(lighter, {weight, expiry});
    }
    range.rows.resize(kept);
    range.bound =
        std::min(range.bound, best_bound + state_.knapsack.noise(n_, lambda * state_.max_key_sum));
    kept = 0;
    for (std::size_t k = 0; k < range.rows.size(); ++k) {
      const double t = query.start_in(state_.prepared.slots[range.rows[k]]);
      const auto next = std::lower_bound(open_starts_.begin(), open_starts_.end(), t);
      if (next != open_starts_.end() && *next <= expiry_[k]) range.rows[kept++] = range.rows[k];
    }
    range.rows.resize(kept);
  }

  // A time after which the slot is not live, however the sum of its test is rounded.
  double expiry_of(const Slot& s, double length) const {
    const double limit = state_.query.limit(s);
    return limit - length + 4 * 0x1p-52 * (std::fabs(limit) + length);
  }

  State& state_;
  ValueWorkspace& w_;
  const int n_;
  std::vector<Plan> groups_;  // fastest first
  // `node_`: by place of the node, its index in the node columns or kNone; `places_`: listed places
  std::vector<std::size_t> node_, places_;
  std::vector<double> value_, expiry_;  // by position in the range's rows
  std::vector<Live> live_;  // by falling weight
  // Starts of the slots whose bound beats the incumbent.
  std::vector<double> open_starts_;
};

}  // namespace slotkern
