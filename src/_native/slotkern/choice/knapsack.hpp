// Choose exactly n of m items, the most value within the budget (2018, section 3.3, eq. 1), for
// real costs and values, exactly.
//
// Stages, each only if the one before left the question open:
//   1. the Lagrange bound and the best set it meets within the budget; 1-swaps improve that;
//   2. items whose exchange costs more than (bound - incumbent) are decided; the rest is the core;
//   3. depth-first search, limited; 4. core lists, limited; 2-swaps;
//   5. for integer costs the table over the core once the others have spent a share of its
//      work, which is known beforehand; else the lists to their end.
// A set is within the budget if the sum of its costs in ascending order is; wherever a sum in
// another order comes close to the budget, that test decides. Work is counted, never timed: one
// unit is a node of the search, a state of the lists, half an exchange of two items, 64 cells of the table.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "slotkern/choice/core.hpp"
#include "slotkern/choice/table.hpp"

namespace slotkern {

// Items that must be among the chosen; choosing `pick` others comes on top.
struct Forced {
  int count = 0;  // 0, 1 or 2
  double costs[2] = {0, 0};
  double value = 0;

  double cost() const { return costs[0] + costs[1]; }
};

struct Limits {
  std::int64_t work = std::numeric_limits<std::int64_t>::max();
  double memory = 268435456;
  bool table = true;  // may be tried
};

// Scale of the values, from which rounding errors are judged, and whether they are integers.
struct ValueScale {
  double largest = 0;
  bool integers = true;

  static ValueScale of(const double* value, int count) {
    ValueScale scale;
    for (int i = 0; i < count; ++i) {
      scale.largest = std::max(scale.largest, std::fabs(value[i]));
      scale.integers &= value[i] == std::floor(value[i]);
    }
    return scale;
  }
};

class Knapsack {
 public:
  double gap = 0;       // relative; 1e-12 at least
  ValueScale scale;     // of all values that will be seen
  Limits limits;

  // What the last call left.
  double best = -kInfinity;
  double bound = kInfinity;
  bool complete = true;      // no set beats `best` by more than the tolerance
  std::vector<int> chosen;   // without the forced item
  std::int64_t work = 0;     // grows over all calls

  KnapsackTable table;  // also at the caller's disposal between calls

  // A set of `pick` items that, with the forced one, beats `incumbent`. False if there is none
  // (or none was found: see `complete`).
  bool solve(const Items& items, int pick, double budget, const Forced& forced, double incumbent,
             double first_lambda = 0) {
    start(items, pick, budget, forced, incumbent);
    if (pick == 0 || pick > items.count) return trivial();
    const auto fits_side = [&](const Side& side) { return fits(side.chosen, side.cost); };
    const double stop = tolerance_.beat(incumbent) - forced.value;
    if (!lagrange_.solve(items, pick, room_, first_lambda, stop, fits_side)) {
      bound = -kInfinity;
      return false;
    }
    bound = lagrange_.bound + forced.value;
    consider(lagrange_.under.chosen, lagrange_.under.cost, lagrange_.under.value + forced.value);
    if (lagrange_.closed) return found_;
    tolerance_.noise = noise(pick, lagrange_.lambda * room_);
    if (open() && incumbent == -kInfinity) {
      stand_on(lagrange_.under.chosen);
      one_swaps();
    }
    if (open()) search();
    conclude();
    return found_;
  }

  // What a bound of n items must exceed to be worth a look, where it holds the term `money` =
  // lambda * budget.
  double beat(int n, double incumbent, double money) const {
    Tolerance tolerance = tolerance_of(n);
    tolerance.noise = noise(n, money);
    return tolerance.beat(incumbent);
  }

  double lambda() const { return lagrange_.lambda; }

  // The same for items that lie by falling weight = value - lambda * cost already: a short
  // depth-first search first, solve() only if that does not settle it.
  bool improve(const Items& items, const double* weight, int pick, double budget, double lambda,
               const Forced& forced, double incumbent) {
    start(items, pick, budget, forced, incumbent);
    if (pick == 0 || pick > items.count) return trivial();
    tolerance_.noise = noise(pick, lambda * room_);
    core_.clear();
    core_.middle = weight[pick - 1];
    fixed_.clear();
    double heaviest = forced.value + lambda * room_;
    for (int j = 0; j < pick; ++j) heaviest += weight[j];
    const double least = core_.middle - (heaviest - tolerance_.beat(best));
    for (int j = 0; j < items.count && (j < pick || weight[j] > least); ++j)
      core_.add(weight[j] - core_.middle, items.cost[j], items.value[j], j);
    core_.pick = pick;
    core_.lambda = lambda;
    core_.base_value = forced.value;
    core_.room = room_;
    core_.slack = slack_;
    core_.offset = forced.value + lambda * room_ + pick * core_.middle;
    if (depth_first(kShortSearch)) return found_;
    const std::vector<int> kept = chosen;
    const bool found = found_;
    if (solve(items, pick, budget, forced, best, lambda)) return true;
    if (found) chosen = kept;
    return found_ = found;
  }

 private:
  void start(const Items& items, int pick, double budget, const Forced& forced,
             double incumbent) {
    items_ = items;
    pick_ = pick;
    budget_ = budget;
    forced_ = forced;
    room_ = budget - forced.cost();
    slack_ = 0x1p-50 * (pick + 8) * std::min(budget, DBL_MAX / 16);
    best = incumbent;
    bound = kInfinity;
    complete = true;
    found_ = false;
    chosen.clear();
    random_ = 0x9E3779B97F4A7C15u;
    tolerance_ = tolerance_of(pick);
  }

  Tolerance tolerance_of(int pick) const {
    const bool integers = scale.integers && (pick + 2) * scale.largest < kMostInteger;
    return {integers ? gap : std::max(gap, 1e-12), integers ? 1.0 : 0.0, 0};
  }

  void conclude() {
    if (complete) bound = std::min(bound, best + tolerance_.relative * std::fabs(best));
    bound = std::max(bound, best);
  }

  bool trivial() {
    bound = -kInfinity;
    if (pick_ > items_.count) return false;
    if (fits_exactly({})) {
      bound = forced_.value;
      if (forced_.value > best) {
        best = forced_.value;
        found_ = true;
      }
    }
    return found_;
  }

  double noise(int pick, double money) const {
    return 0x1p-52 * (pick + 64) * ((pick + 2) * scale.largest + money);
  }

  // The exact budget test of `ids` (with what is fixed and forced).
  bool fits_exactly(const std::vector<int>& ids) {
    sum_.clear();
    for (const int i : ids) sum_.push_back(items_.cost[i]);
    for (int k = 0; k < forced_.count; ++k) sum_.push_back(forced_.costs[k]);
    std::sort(sum_.begin(), sum_.end());
    return std::accumulate(sum_.begin(), sum_.end(), 0.0) <= budget_;
  }

  bool fits(const std::vector<int>& ids, double cost) {
    if (cost <= room_ - slack_) return true;
    return cost <= room_ + slack_ && fits_exactly(ids);
  }

  // Takes a set if it is better and within the budget.
  void consider(const std::vector<int>& ids, double cost, double value) {
    if (!(value > best) || !fits(ids, cost)) return;
    best = value;
    chosen = ids;
    found_ = true;
  }

  // Positions in the core, as the searches report them.
  bool accept(const std::vector<int>& positions, bool sure) {
    set_ = fixed_;
    for (const int j : positions) set_.push_back(core_.id[static_cast<std::size_t>(j)]);
    if (!sure && !fits_exactly(set_)) return false;
    chosen = set_;
    return found_ = true;
  }

  // Decides all items that no better set can exchange; the others become the core, which is
  // `sorted` by falling weight unless only the table shall see it.
  void reduce(bool sorted = true) {
    const double lambda = lagrange_.lambda;
    Lagrange::top(items_, pick_, 1, lambda, side_);
    mark(side_.chosen);
    weight_.resize(static_cast<std::size_t>(items_.count));
    double next = -kInfinity;
    for (int i = 0; i < items_.count; ++i) {
      weight_[at(i)] = items_.value[i] - lambda * items_.cost[i];
      if (!marked_[at(i)]) next = std::max(next, weight_[at(i)]);
    }
    double last = kInfinity;
    for (const int i : side_.chosen) last = std::min(last, weight_[at(i)]);
    const double gap = bound - tolerance_.beat(best);
    core_.clear();
    fixed_.clear();
    order_.clear();
    core_.base_value = forced_.value;
    core_.room = room_;
    for (int i = 0; i < items_.count; ++i) {
      if (marked_[at(i)] && weight_[at(i)] - next >= gap) {
        fixed_.push_back(i);
        core_.base_value += items_.value[i];
        core_.room -= items_.cost[i];
      } else if (marked_[at(i)] || last - weight_[at(i)] < gap) {
        order_.push_back(i);
      }
    }
    if (sorted)
      std::sort(order_.begin(), order_.end(), [this](int a, int b) {
        const double x = weight_[at(a)], y = weight_[at(b)];
        return x > y || (x == y && a < b);
      });
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    core_.lambda = lambda;
    core_.middle = 0.5 * (last + next);
    core_.slack = slack_;
    for (const int i : order_)
      core_.add(weight_[at(i)] - core_.middle, items_.cost[i], items_.value[i], i);
    core_.offset = core_.base_value + lambda * core_.room + core_.pick * core_.middle;
  }

  void search() {
    if (limits.table) {  // a small one is done before the others have begun
      reduce(false);
      const std::int64_t small = table_work();
      if (small >= 0 && small <= kSmallTable * static_cast<std::int64_t>(core_.size()) &&
          small <= left())
        return run_table();
    }
    reduce();
    const std::int64_t whole = table_work();
    const std::int64_t share = whole >= 0 ? whole / 32 + 40 : left();
    const bool few = sets() < (whole >= 0 ? static_cast<double>(whole) / 2 : kFewSets);
    if (depth_first(few ? left() : std::min({kShortSearch, share, left()}))) return;
    if (few) {
      complete = false;
      return;
    }
    const std::int64_t first = std::min(kFirstStates, share);
    if (lists(std::min(first, left()))) return;
    if (share > first) {
      if (found_) climb(std::min({kClimb, share / 4, left()}));
      if (!open()) return;
      reduce();
      if (sets() < kManySets && sets() < static_cast<double>(share)) {
        complete = depth_first(left());
        return;
      }
      if (lists(std::min({share - first, left(), kMostStates}))) return;
      if (whole < 0) {
        climb(std::min(kLastClimb, left()));
        if (!open()) return;
      }
    }
    if (whole >= 0 && table_work() <= left())
      run_table();
    else
      complete = false;
  }

  // How many sets the core has: the search has hardly more nodes.
  double sets() const {
    double count = 1;
    for (int k = 1; k <= core_.pick && count < kManySets; ++k)
      count *= static_cast<double>(static_cast<int>(core_.size()) - core_.pick + k) / k;
    return count;
  }

  std::int64_t left() const { return std::max<std::int64_t>(0, limits.work - work); }

  bool depth_first(std::int64_t limit) {
    const bool finished =
        depth_.run(core_, tolerance_, best, limit,
                   [this](const std::vector<int>& set, double, bool sure) {
                     return accept(set, sure);
                   });
    work += depth_.nodes;
    return finished;
  }

  bool lists(std::int64_t limit) {
    const auto take = [this](const std::vector<int>& set, double, bool sure) {
      return accept(set, sure);
    };
    bool finished = lists_.run<false>(core_, tolerance_, best, limit, limits.memory, take);
    work += lists_.states;
    if (finished && lists_.blurred) {
      finished = lists_.run<true>(core_, tolerance_, best, std::min(limit * 4, left()),
                                  limits.memory, take);
      work += lists_.states;
    }
    return finished;
  }

  // --- local search

  void mark(const std::vector<int>& set) {
    marked_.assign(static_cast<std::size_t>(items_.count), 0);
    for (const int i : set) marked_[at(i)] = 1;
  }

  // The set that local search stands on, what is left outside, and its sums.
  void stand_on(const std::vector<int>& set) {
    if (&set != &in_) in_ = set;
    mark(in_);
    out_.clear();
    for (int i = 0; i < items_.count; ++i)
      if (!marked_[at(i)]) out_.push_back(i);
    in_cost_ = 0;
    in_value_ = forced_.value;
    for (const int i : in_) in_cost_ += items_.cost[i], in_value_ += items_.value[i];
  }

  void exchange(int from, int to) {
    const int gone = in_[at(from)], come = out_[at(to)];
    in_cost_ += items_.cost[come] - items_.cost[gone];
    in_value_ += items_.value[come] - items_.value[gone];
    std::swap(in_[at(from)], out_[at(to)]);
  }

  // The best exchange of one item for another, again and again.
  void one_swaps() {
    for (int round = 0; round < kSwaps; ++round) {
      double gain = 0;
      int from = -1, to = -1;
      for (std::size_t a = 0; a < in_.size(); ++a) {
        const double most = room_ - in_cost_ + items_.cost[in_[a]] + slack_;
        const double value = items_.value[in_[a]];
        for (std::size_t b = 0; b < out_.size(); ++b)
          if (items_.value[out_[b]] - value > gain && items_.cost[out_[b]] <= most) {
            gain = items_.value[out_[b]] - value;
            from = static_cast<int>(a), to = static_cast<int>(b);
          }
      }
      if (from < 0) break;
      exchange(from, to);
    }
    consider(in_, in_cost_, in_value_);
  }

  // The best exchange of two for two: pairs of single exchanges, sorted by cost, of which only
  // the last few that still fit are looked at. Too many of them are thinned out.
  bool pair_swap() {
    const std::size_t thin = in_.size() * out_.size() / kMostPairs + 1;
    swaps_.clear();
    for (std::size_t a = 0; a < in_.size(); ++a)
      for (std::size_t b = a % thin; b < out_.size(); b += thin)
        swaps_.push_back({items_.cost[out_[b]] - items_.cost[in_[a]],
                          items_.value[out_[b]] - items_.value[in_[a]], static_cast<int>(a),
                          static_cast<int>(b)});
    work += 2 * static_cast<std::int64_t>(swaps_.size()) + 1;
    std::sort(swaps_.begin(), swaps_.end(), [](const Swap& x, const Swap& y) {
      return x.cost < y.cost ||
             (x.cost == y.cost && (x.from < y.from || (x.from == y.from && x.to < y.to)));
    });
    const double spare = room_ - in_cost_ + slack_;
    double gain = 0;
    const Swap *one = nullptr, *two = nullptr;
    std::size_t last = swaps_.size();
    for (const Swap& x : swaps_) {
      while (last > 0 && x.cost + swaps_[last - 1].cost > spare) --last;
      for (std::size_t q = last; q > 0 && q + kLook > last; --q) {
        const Swap& y = swaps_[q - 1];
        if (x.value + y.value > gain && x.from != y.from && x.to != y.to) {
          gain = x.value + y.value;
          one = &x, two = &y;
        }
      }
    }
    if (!one) return false;
    exchange(one->from, one->to);
    exchange(two->from, two->to);
    consider(in_, in_cost_, in_value_);
    return true;
  }

  bool open() const { return bound > tolerance_.beat(best); }

  // From the best set, and then from sets a few random exchanges away from it (always the same
  // ones): for values that follow costs closely, where any good sum will do.
  void climb(std::int64_t limit) {
    const auto draw = [this](std::size_t below) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      return static_cast<int>((random_ >> 33) % below);
    };
    const std::int64_t until = work + limit;
    stand_on(chosen);
    while (work < until) {
      for (int round = 0; round < kPairRounds && open(); ++round) {
        one_swaps();
        if (!open() || !pair_swap()) break;
      }
      if (!open()) return;
      stand_on(chosen);
      for (int k = 0; k < kKicks; ++k) {
        const int from = draw(in_.size()), to = draw(out_.size());
        if (in_cost_ + items_.cost[out_[at(to)]] - items_.cost[in_[at(from)]] <= room_ - slack_)
          exchange(from, to);
      }
    }
  }

  // --- the table over the core

  // Work of the table, or -1 where it does not apply: costs that are no integers, or too much
  // memory. Every set has the same number of items, so that the least cost can be taken off all
  // of them, and then their common divisor.
  std::int64_t table_work() {
    if (!limits.table) return -1;
    const int size = static_cast<int>(core_.size());
    double least = kInfinity, total = 0;
    for (const double c : core_.cost) {
      if (c != std::floor(c) || !(c < kMostInteger)) return -1;
      least = std::min(least, c);
    }
    for (const int i : fixed_)
      if (items_.cost[i] != std::floor(items_.cost[i])) return -1;
    for (const double c : forced_.costs)
      if (c != std::floor(c)) return -1;
    if (!(core_.room < kMostInteger)) return -1;
    costs_.clear();
    divisor_ = 0;
    for (const double c : core_.cost) {
      costs_.push_back(static_cast<std::int64_t>(c - least));
      divisor_ = std::gcd(divisor_, costs_.back());
      total += c - least;
    }
    if (divisor_ > 1)
      for (std::int64_t& c : costs_) c /= divisor_;
    divisor_ = std::max<std::int64_t>(divisor_, 1);
    const double spare = std::floor(core_.room + slack_) - core_.pick * least;
    if (!(total < kMostInteger) || spare < 0) return -1;
    // slack_ could only round the room up to an integer that the budget does not reach if the
    // numbers were near 2^53
    if (slack_ >= 0.5) return -1;
    width_ = std::floor(std::min(spare, total) / static_cast<double>(divisor_)) + 1;
    if (KnapsackTable::bytes(size, core_.pick, width_) > limits.memory) return -1;
    return static_cast<std::int64_t>(KnapsackTable::cells(size, core_.pick, width_) /
                                     KnapsackTable::kCellsPerUnit);
  }

  void run_table() {
    work += table_work();
    const std::size_t pick = static_cast<std::size_t>(core_.pick);
    const std::size_t width = static_cast<std::size_t>(width_);
    table.run(costs_.data(), core_.value.data(), core_.size(), pick, width, false);
    const double value = core_.base_value + table.best(pick, width - 1);
    if (!(value > best)) return;
    positions_.clear();
    table.trace(pick, width - 1, positions_);
    if (accept(positions_, false)) best = value;
  }

  static constexpr std::int64_t kSmallTable = 64;  // work for each item of the core
  static constexpr std::int64_t kShortSearch = 300, kFirstStates = 20000, kClimb = 200000;
  static constexpr std::int64_t kMostStates = 10000000, kLastClimb = 20000000;
  static constexpr double kFewSets = 20000, kManySets = 4e6;
  static constexpr int kSwaps = 200, kPairRounds = 20, kKicks = 4;
  static constexpr std::size_t kMostPairs = 20000, kLook = 4;
  static constexpr double kMostInteger = 0x1p52;

  struct Swap {
    double cost, value;
    int from, to;  // places in in_ and out_
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  Items items_{nullptr, nullptr, 0};
  int pick_ = 0;
  double budget_ = 0, room_ = 0, slack_ = 0;
  Forced forced_;
  Tolerance tolerance_;
  bool found_ = false;

  Lagrange lagrange_;
  Side side_;
  Core core_;
  CoreSearch depth_;
  CoreLists lists_;
  std::vector<int> fixed_, order_, set_, positions_;
  std::vector<int> in_, out_;
  double in_cost_ = 0, in_value_ = 0;
  std::uint64_t random_ = 0;
  std::vector<char> marked_;
  std::vector<double> weight_, sum_;
  std::vector<Swap> swaps_;
  std::vector<std::int64_t> costs_;
  std::int64_t divisor_ = 1;
  double width_ = 0;
};

}  // namespace slotkern
