// The live slots of one step of a search under sum limits, with the queries on them: is there a set
// of n that satisfies all limits, which is the cheapest, which has the highest value.
//
// The budget is one more limit, on the sum of keys. A square window of a group must hold a slot of
// the group's own performance (an anchor), because its parts run as long as its slowest: this is a
// limit too, so that each window belongs to one group, at its true length. Bounds and multipliers
// come from the knapsack (choice/multidim_knapsack.hpp); an exact test on exact sums, rounded once,
// decides whether a set satisfies its limits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/choice/constrained_cheapest.hpp"
#include "slotkern/choice/multidim_knapsack.hpp"
#include "slotkern/window/sweep.hpp"

namespace slotkern {

// After its work limit a search only computes bounds for undecided steps; after this share of
// additional work it stops.
inline constexpr double kWorkTolerance = 0.25;
inline constexpr std::int64_t kMinWork = 1 << 16;

// A part in a slot; all limits are written as upper limits.
struct ConstrainedPart {
  std::size_t row = 0;
  double key = 0, live_until = 0, length = 0, value = 0, anchor = 0;
  std::array<double, kMaxSumConstraints> use{};
};

// Many parts, stored by columns.
struct ConstrainedParts {
  std::size_t limits = 0;
  std::vector<std::size_t> row;
  std::vector<double> key, live_until, length, value;
  std::vector<double> anchor;  // -1 for an anchor, else 0
  std::array<std::vector<double>, kMaxSumConstraints> use;

  std::size_t size() const { return row.size(); }

  void clear(std::size_t count) {
    limits = count;
    each([](auto& column) { column.clear(); });
  }
  void resize(std::size_t size) {
    each([&](auto& column) { column.resize(size); });
  }
  void move(std::size_t from, std::size_t to) {
    each([&](auto& column) { column[to] = column[from]; });
  }
  void arrange(const std::vector<int>& order) {
    each([&](auto& column) {
      const auto before = column;
      for (std::size_t j = 0; j < order.size(); ++j)
        column[j] = before[static_cast<std::size_t>(order[j])];
    });
  }
  void push(const ConstrainedPart& part) {
    row.push_back(part.row), key.push_back(part.key), live_until.push_back(part.live_until);
    length.push_back(part.length), value.push_back(part.value), anchor.push_back(part.anchor);
    for (std::size_t k = 0; k < limits; ++k) use[k].push_back(part.use[k]);
  }
  void put(std::size_t j, const ConstrainedPart& part) {
    row[j] = part.row, key[j] = part.key, live_until[j] = part.live_until;
    length[j] = part.length, value[j] = part.value, anchor[j] = part.anchor;
    for (std::size_t k = 0; k < limits; ++k) use[k][j] = part.use[k];
  }
  void push(const ConstrainedParts& other, std::size_t j) {
    row.push_back(other.row[j]), key.push_back(other.key[j]);
    live_until.push_back(other.live_until[j]);
    length.push_back(other.length[j]), value.push_back(other.value[j]);
    anchor.push_back(other.anchor[j]);
    for (std::size_t k = 0; k < limits; ++k) use[k].push_back(other.use[k][j]);
  }

 private:
  template <class Visit>
  void each(Visit visit) {
    visit(row), visit(key), visit(live_until), visit(length), visit(value), visit(anchor);
    for (std::size_t k = 0; k < limits; ++k) visit(use[k]);
  }
};

// Scratch memory of one thread; it only grows.
struct ConstrainedScratch {
  MultidimKnapsack knapsack;
  ConstrainedCheapest cheapest;
  ExactSum sum;
  ConstrainedParts live, all;  // of a step; of a search
  std::vector<int> order, set;
  std::vector<double> terms;
  std::vector<Entry> chosen;
  // Weights of the filter, by row and by index in `all`.
  DualSimplex multipliers;
  std::vector<double> weight_by_row, weight, least_of;
  // Scratch of ConstrainedCheapestSweep.
  struct SweepStep {
    double bound, last;  // lower bound on the sum of keys; the largest weight of its other slots
    std::size_t index;  // in `all`
    bool alone;  // false for a step merged from several of one start
  };
  struct Tie {
    double start, sum;  // lower bound on the sum of keys of any set at `start`
  };
  struct Other {
    double weight;
    std::size_t index;
  };
  std::vector<std::size_t> candidates;
  std::vector<SweepStep> steps;
  std::vector<Tie> ties;
  std::vector<Other> others;
};

inline ConstrainedScratch& constrained_scratch() {
  static thread_local ConstrainedScratch scratch;
  return scratch;
}

namespace detail {

// Up to this number of new slots of one start are forced in one by one, so that no set is visited
// twice; further ones share one knapsack.
inline constexpr int kOneByOne = 4;

// Returns true if a search has exceeded its work limit by the tolerated share and must stop.
inline bool exceeds_work_limit(const Query& query, const ConstrainedScratch& work) {
  return static_cast<double>(work.knapsack.work) >
         static_cast<double>(query.max_work) * (1 + kWorkTolerance) + kMinWork;
}

}  // namespace detail

static_assert(kMaxSumConstraints + 2 == kMaxSumLimits);

template <class Shape>
class ConstrainedLiveSet {
 public:
  static constexpr bool kSquare = !Shape::per_part_length;

  std::size_t failed = kNone;  // row at which a user's function failed, or kNone

  ConstrainedLiveSet(const PreparedSlots& prepared, const Query& query, const Shape& shape,
             ConstrainedScratch& work)
      : prepared_(prepared), query_(query), shape_(shape), limits_(*query.limits), w_(work),
        n_(static_cast<int>(query.n)),
        money_(query.max_cost()) {
    clear();
  }

  std::size_t size() const { return w_.live.size(); }
  std::size_t row(int j) const { return w_.live.row[at(j)]; }

  void clear() {
    w_.live.clear(limits_.all.size());
    earliest_expiry_ = kInfinity;
  }

  bool is_live(const Slot& s, std::size_t row, double t) const {
    return slotkern::is_live(query_, shape_, s, t) && query_.admits(s, row) &&
           s.performance >= shape_.min_performance();
  }

  // Computes the part in a slot, of value z. Returns false if no window can hold it.
  bool measure(std::size_t row, ConstrainedPart& part, double z = 0) {
    const Slot& s = prepared_.slots[row];
    const std::size_t origin = prepared_.origin(row);
    const double length = shape_.length(s), end = query_.limit(s);
    part.row = row, part.key = shape_.key(s), part.length = length, part.value = z;
    if (origin >= limits_.rows || !(shape_.total(part.key) <= money_)) return false;
    for (std::size_t k = 0; k < limits_.all.size(); ++k) {
      double& use = part.use[k];
      if (!limits_.all[k].use(origin, length, use)) {
        failed = row;
        return false;
      }
      if (!(std::fabs(use) <= kMaxUse)) return false;
      if (limits_.all[k].at_least) use = -use;
    }
    part.live_until =
        std::isinf(end) ? end : end - length - 4 * 0x1p-52 * (std::fabs(end) + length);
    part.anchor = !kSquare || query_.length(s.performance) == length ? -1 : 0;
    return true;
  }

  // Adds a slot; returns false if no window can hold it.
  bool add(std::size_t row, double z = 0) {
    ConstrainedPart part;
    if (!measure(row, part, z)) return false;
    w_.live.push(part);
    earliest_expiry_ = std::min(earliest_expiry_, part.live_until);
    return true;
  }

  // Adds slot j of `all`, with the value z.
  void add_collected(std::size_t j, double z) {
    w_.live.push(w_.all, j);
    w_.live.value.back() = z;
    earliest_expiry_ = std::min(earliest_expiry_, w_.all.live_until[j]);
  }

  // Returns true if column j, once live, is still live at t.
  bool is_still_live(const ConstrainedParts& columns, std::size_t j, double t) const {
    return !(t > columns.live_until[j]) ||
           slotkern::is_live(query_, shape_, prepared_.slots[columns.row[j]], t);
  }

  // Drops the slots that have expired by t.
  void expire(double t) {
    if (t > earliest_expiry_) keep_if([&](int j) { return is_still_live(w_.live, at(j), t); });
  }

  template <class Keep>
  void keep_if(Keep keep) {
    std::size_t kept = 0;
    earliest_expiry_ = kInfinity;
    for (std::size_t j = 0; j < size(); ++j) {
      if (!keep(static_cast<int>(j))) continue;
      if (kept != j) w_.live.move(j, kept);
      earliest_expiry_ = std::min(earliest_expiry_, w_.live.live_until[kept++]);
    }
    w_.live.resize(kept);
  }

  // Finds n slots that maximize the sum of z, above `incumbent`, within relative `gap`, and stores
  // them in `chosen`; forces in the newest slot if `forced`; `integral` if the z may be integers;
  // the total cost is at most `most` up to rounding. The knapsack stops when its work over all
  // calls reaches `work`. Returns false if no such set exists, or if none was found and
  // knapsack.complete is false.
  bool solve(const std::vector<double>& z, bool integral, bool forced, double most,
             double incumbent, double gap, std::int64_t work) {
    const int count = static_cast<int>(size()), newest = forced ? count - 1 : -1;
    w_.knapsack.complete = true;
    if (count < n_) return false;
    if (++solved_ == kLongRunning) enable_interrupts();
    MultidimItems items;
    Amounts amounts{}, taken{};
    items.value = z.data();
    items.count = forced ? newest : count;
    const auto limit = [&](const std::vector<double>& use, double amount) {
      const std::size_t k = at(items.limits++);
      items.weight[k] = use.data();
      amounts[k] = amount;
      if (forced) taken[k] = use[at(newest)];
    };
    for (std::size_t k = 0; k < limits_.all.size(); ++k)
      limit(w_.live.use[k], limits_.all[k].upper_amount());
    if (max_key_sum(most) < 1e300) limit(w_.live.key, max_key_sum(most));
    const bool anchored = forced && w_.live.anchor[at(newest)] < 0;
    if (kSquare && !anchored && some_are_no_anchor()) limit(w_.live.anchor, -1);
    MultidimKnapsack& knapsack = w_.knapsack;
    knapsack.gap = gap;
    knapsack.scale = ValueScale::from_values(z.data(), count);
    knapsack.scale.all_integer = knapsack.scale.all_integer && integral;
    knapsack.limits.work = work;
    const bool any = knapsack.solve(
        items, forced ? n_ - 1 : n_, amounts, taken, forced ? z[at(newest)] : 0, incumbent,
        [&](const std::vector<int>& ids) { return fits(ids, newest); });
    if (!any) return false;
    chosen = knapsack.chosen;
    if (forced) chosen.push_back(newest);
    return true;
  }

  // As solve(), for a sum of keys below `incumbent`; see min_sum().
  bool solve_cheap(bool forced, double most, double incumbent, double gap, std::int64_t work) {
    // Huge keys are scaled down so that no sum overflows.
    const std::vector<double>& keys = w_.live.key;
    const double largest = keys.empty() ? 0 : *std::max_element(keys.begin(), keys.end());
    unit_ = largest > kMaxUse ? kHuge : 1;
    for (std::size_t j = 0; j < size(); ++j) w_.live.value[j] = -w_.live.key[j] / unit_;
    return solve(w_.live.value, false, forced, most, -incumbent / unit_, gap, work);
  }

  // Returns a lower bound on the sum of keys of the sets that solve_cheap() did not find.
  double min_sum() const { return -w_.knapsack.bound * unit_; }

  // Finds the cheapest set under the tie rule, below `most`, or up to it if `inclusive`. Returns
  // false if there is none, or if `work` units did not suffice (see `finished`). Sorts the slots by
  // cost.
  bool select_cheapest(double most, bool inclusive, std::int64_t work) {
    order_by_cost();
    MultidimItems items;
    Amounts amounts{}, lambda = w_.knapsack.multipliers();
    items.value = w_.live.key.data();
    items.count = static_cast<int>(size());
    for (std::size_t k = 0; k < limits_.all.size(); ++k) {
      items.weight[k] = w_.live.use[k].data();
      amounts[k] = limits_.all[k].upper_amount();
    }
    items.limits = static_cast<int>(limits_.all.size());
    if (kSquare && some_are_no_anchor()) {
      const std::size_t k = at(items.limits++);
      items.weight[k] = w_.live.anchor.data();
      amounts[k] = -1, lambda[k] = 0;
    }
    finished = w_.cheapest.run(
        items, n_, amounts, lambda, most, inclusive, max_key_sum(most), work,
        [&](double sum) { return shape_.total(sum); },
        [&](const std::vector<int>& ids) { return fits(ids, -1); });
    w_.knapsack.work += w_.cheapest.work;
    chosen = w_.cheapest.chosen;
    return !chosen.empty();
  }

  // Returns the total cost of `chosen`.
  double total() const { return total_of(chosen); }

  // Returns the entries of `chosen`, in cost order.
  const std::vector<Entry>& entries() const {
    w_.chosen.clear();
    for (const int j : chosen) w_.chosen.push_back({w_.live.key[at(j)], w_.live.row[at(j)]});
    std::sort(w_.chosen.begin(), w_.chosen.end(), [&](const Entry& a, const Entry& b) {
      return is_cheaper(prepared_, a, b);
    });
    return w_.chosen;
  }

  double longest() const {
    double length = 0;
    for (const int j : chosen) length = std::max(length, w_.live.length[at(j)]);
    return length;
  }

  // Returns an upper bound on the sum of keys of sets with a total up to `most`.
  double max_key_sum(double most) const { return shape_.max_key_sum(most); }

  std::vector<int> chosen;
  bool finished = true;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }

  bool some_are_no_anchor() const {
    return std::find(w_.live.anchor.begin(), w_.live.anchor.end(), 0.0) != w_.live.anchor.end();
  }

  double total_of(const std::vector<int>& ids) const {
    return shape_.total(
        exact_sum(ids.size(), [&](std::size_t i) { return w_.live.key[at(ids[i])]; }));
  }

  bool fits(const std::vector<int>& ids, int newest) const {
    w_.set = ids;
    if (newest >= 0) w_.set.push_back(newest);
    const auto anchored = [&](int j) { return w_.live.anchor[at(j)] < 0; };
    if (std::none_of(w_.set.begin(), w_.set.end(), anchored)) return false;
    if (!(total_of(w_.set) <= money_)) return false;
    for (std::size_t k = 0; k < limits_.all.size(); ++k) {
      const SumConstraint& limit = limits_.all[k];
      w_.sum.clear();
      for (const int j : w_.set) w_.sum.add(w_.live.use[k][at(j)]);
      if (!limit.is_met_by(limit.at_least ? -w_.sum.value() : w_.sum.value())) return false;
    }
    return true;
  }

  void order_by_cost() {
    w_.order.resize(size());
    for (std::size_t j = 0; j < size(); ++j) w_.order[j] = static_cast<int>(j);
    std::sort(w_.order.begin(), w_.order.end(), [&](int a, int b) {
      return is_cheaper(prepared_, {w_.live.key[at(a)], w_.live.row[at(a)]},
                     {w_.live.key[at(b)], w_.live.row[at(b)]});
    });
    w_.live.arrange(w_.order);
  }

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  const SumConstraints& limits_;
  ConstrainedScratch& w_;
  const int n_;
  const double money_;
  double earliest_expiry_ = kInfinity, unit_ = 1;
  int solved_ = 0;
  static constexpr int kLongRunning = 64;  // knapsacks after which interrupts are enabled
  static constexpr double kHuge = 0x1p64;  // a power of 2: scaling is exact
};

}  // namespace slotkern
