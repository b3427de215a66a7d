// Filters slots that can be in no window under sum limits, by Lagrangian weights.
//
// The linear relaxation over all slots of a search, as if they were live at once, gives one
// multiplier per limit. Under them a window with a slot costs at least the weight of this slot plus
// the n - 1 smallest weights of other nodes, minus a constant (offset). If even the relaxation is
// infeasible, its ray proves for which slots, or that for all, the limits cannot be met. Cost:
// O(slots * limits) per simplex pivot once, then O(1) per slot.
//
// The multipliers of one group of a square search bound the other groups too, because any
// multipliers are valid. Those of sums over times are scaled by the groups' spans, so that a slot
// has the same weight in all groups and the n smallest node weights carry over from group to group:
// O(slots * limits + N log n) for all groups.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "slotkern/window/constrained_live_set.hpp"

namespace slotkern {

class LagrangianFilter {
 public:
  explicit LagrangianFilter(ConstrainedScratch& work) : w_(work) {}

  // Collects into `all` the slots that a window of the shape may use. Returns false if a user's
  // function failed.
  template <class Shape>
  bool build(const PreparedSlots& prepared, const Query& query, const Shape& shape,
             ConstrainedLiveSet<Shape>& live) {
    ConstrainedParts& all = w_.all;
    ConstrainedPart part;
    std::size_t count = 0;
    all.limits = query.limits->all.size();
    all.resize(prepared.slots.size());
    prepared.each_row([&](std::size_t row) {
      const Slot& slot = prepared.slots[row];
      if (live.failed == row || !live.is_live(slot, row, query.start_in(slot))) return;
      poll();
      if (live.measure(row, part, -shape.key(slot))) all.put(count++, part);
    });
    all.resize(count);
    if (live.failed != Proof::kNone) return false;
    solve_relaxation(prepared, *query.limits, static_cast<std::size_t>(query.n));
    built_ = true;
    return true;
  }

  // The same for slots that the caller has collected in `all` and for given multipliers: one for
  // each limit, then one for a limit on the sum of keys, unless that is infinite. Sums of negated
  // values take the place of sums of keys.
  void build_from_multipliers(const PreparedSlots& prepared, const Query& query,
                              const Amounts& lambda, double max_key_sum) {
    MultidimItems items;
    Amounts amounts{};
    list_items(*query.limits, items, amounts);
    if (max_key_sum < kMaxMagnitude) {
      const auto k = static_cast<std::size_t>(items.limits++);
      items.weight[k] = w_.all.key.data(), amounts[k] = max_key_sum;
    }
    w_.multipliers.lambda = lambda;
    includes_keys_ = true;
    compute_bounds(prepared, items, static_cast<std::size_t>(query.n), amounts);
    built_ = true;
  }

  bool built() const { return built_; }
  void discard() { built_ = false; }

  // Returns true if no window with this slot (or no window at all) has a sum of keys up to `most`.
  bool prunes(std::size_t row, double most) const {
    return prunes_weight(w_.weight_by_row[row], most);
  }
  bool prunes_weight(double weight, double most) const {
    return prunes_sum(weight + min_others_ - offset_, most);
  }
  bool prunes_all(double most) const { return prunes_sum(min_sum_, most); }

  // Returns true if a sum of weights minus offset() proves that the sum of keys exceeds `most`.
  bool prunes_sum(double sum, double most) const {
    return sum > (includes_keys_ ? most : 0) + rounding_;
  }
  double offset() const { return offset_; }

  // Returns a lower bound on the sum of keys (not of values) of sets whose weights sum to at least
  // `sum` + offset().
  double min_key_sum(double sum) const {
    return includes_keys_ ? std::max(0.0, sum - rounding_) : 0;
  }

  // Returns a limit for prunes_weight() that lets `count` slots pass.
  double limit_for_count(std::size_t count) {
    if (!includes_keys_ || w_.weight.size() <= count) return kInfinity;
    std::vector<double>& weights = w_.least_of;
    weights = w_.weight;
    const auto last = weights.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::nth_element(weights.begin(), last, weights.end());
    return *last + min_others_ - offset_;
  }

  // Raises the lower bounds on the totals of groups (by falling performance), using the multipliers
  // of the group that the filter was built for. Returns false if there are none.
  bool raise_group_bounds(const PreparedSlots& prepared, const Query& query, double span,
             std::vector<Workspace::GroupBound>& groups) {
    const SumConstraints& limits = *query.limits;
    const Amounts& lambda = w_.multipliers.lambda;
    if (!includes_keys_ || min_sum_ == kInfinity) return false;
    for (std::size_t k = 0; k < limits.all.size(); ++k)
      if (lambda[k] > 0 && limits.all[k].function) return false;
    const std::size_t n = static_cast<std::size_t>(query.n);
    std::vector<double>& least = w_.least_of;
    least.assign(prepared.nodes.size(), kInfinity);
    double size = 0;
    prepared.each_row([&](std::size_t row) {
      const Slot& slot = prepared.slots[row];
      const std::size_t origin = prepared.origin(row);
      if (origin >= limits.rows || !query.admits(slot, row)) return;
      double weight = slot.price;
      size = std::max(size, weight);
      for (std::size_t k = 0; k < limits.all.size(); ++k) {
        const SumConstraint& limit = limits.all[k];
        if (!(lambda[k] > 0)) continue;
        const double part = (limit.at_least ? -lambda[k] : lambda[k]) * limit.weight[origin] *
                            (limit.by_length ? span : 1);
        size = std::max(size, std::fabs(part));
        weight += part;
      }
      double& of_node = least[static_cast<std::size_t>(slot.place)];
      of_node = std::min(of_node, weight);
    });
    // A max-heap of the n smallest node weights so far.
    std::vector<double>& n_smallest = w_.terms;
    n_smallest.clear();
    std::size_t place = 0;
    for (Workspace::GroupBound& group : groups) {
      double anchor = kInfinity, charged = 0, sum = 0, most = size;
      for (const std::size_t end = prepared.groups[group.group].end; place < end; ++place) {
        anchor = std::min(anchor, least[place]);
        if (n_smallest.size() == n) {
          if (!(least[place] < n_smallest.front())) continue;
          std::pop_heap(n_smallest.begin(), n_smallest.end());
          n_smallest.back() = least[place];
        } else {
          n_smallest.push_back(least[place]);
        }
        std::push_heap(n_smallest.begin(), n_smallest.end());
      }
      if (n_smallest.size() < n) continue;
      for (std::size_t k = 0; k < limits.all.size(); ++k) {
        const SumConstraint& limit = limits.all[k];
        double amount = lambda[k] * limit.upper_amount();
        if (limit.by_length) amount *= span / group.span;
        most = std::max(most, std::fabs(amount));
        charged += amount;
      }
      if (!(most < kMaxMagnitude)) continue;
      for (const double weight : n_smallest) sum += weight;
      sum += std::max(anchor, n_smallest.front()) - n_smallest.front() - charged -
             rounding_margin(n, most);
      group.total = std::max(group.total, group.span * sum * (1 - kMargin));
    }
    return true;
  }

 private:
  // The collected slots as items, and the upper limits of their sums.
  void list_items(const SumConstraints& limits, MultidimItems& items, Amounts& amounts) {
    items.count = static_cast<int>(w_.all.size());
    items.limits = static_cast<int>(limits.all.size());
    items.value = w_.all.value.data();
    for (std::size_t k = 0; k < limits.all.size(); ++k) {
      items.weight[k] = w_.all.use[k].data();
      amounts[k] = limits.all[k].upper_amount();
    }
  }

  void solve_relaxation(const PreparedSlots& prepared, const SumConstraints& limits,
                        std::size_t n) {
    MultidimItems items;
    Amounts amounts{};
    list_items(limits, items, amounts);
    if (w_.all.size() >= n)
      includes_keys_ = w_.multipliers.solve(items, static_cast<int>(n), amounts);
    compute_bounds(prepared, items, n, amounts);
  }

  // Computes the weights of the slots, and the bounds on their sums.
  void compute_bounds(const PreparedSlots& prepared, const MultidimItems& items, std::size_t n,
                      const Amounts& amounts) {
    const std::size_t count = w_.all.size();
    w_.weight_by_row.assign(prepared.slots.size(), kInfinity);
    w_.weight.assign(count, kInfinity);
    min_sum_ = kInfinity;
    if (count < n) return;
    double size = compute_weights(
        items, includes_keys_ ? w_.multipliers.lambda : w_.multipliers.ray, amounts);
    if (!(size < kMaxMagnitude)) {  // weights overflow: use keys alone, a valid bound
      includes_keys_ = true;
      w_.multipliers.lambda = {};
      size = compute_weights(items, {}, amounts);
    }
    std::vector<double>& least = w_.least_of;
    least.assign(prepared.nodes.size(), kInfinity);
    for (std::size_t j = 0; j < count; ++j) {
      double& of_node = least[static_cast<std::size_t>(prepared.slots[w_.all.row[j]].place)];
      of_node = std::min(of_node, w_.weight[j]);
    }
    const auto middle = least.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(least.begin(), middle, least.end());
    min_others_ = 0;
    for (auto it = least.begin(); it != middle; ++it) min_others_ += *it;
    min_sum_ = min_others_ + *middle - offset_;
    rounding_ = rounding_margin(n, size);
  }

  // Computes the weights under these multipliers; returns the largest magnitude among their terms.
  double compute_weights(const MultidimItems& items, const Amounts& lambda,
                         const Amounts& amounts) {
    double size = 0;
    offset_ = 0;
    const auto limits = static_cast<std::size_t>(items.limits);
    for (std::size_t k = 0; k < limits; ++k) {
      offset_ += lambda[k] * amounts[k];
      size = std::max(size, std::fabs(lambda[k] * amounts[k]));
    }
    for (std::size_t j = 0; j < w_.all.size(); ++j) {
      double weight = includes_keys_ ? -items.value[j] : 0;
      size = std::max(size, std::fabs(weight));
      for (std::size_t k = 0; k < limits; ++k) {
        const double part = lambda[k] * items.weight[k][j];
        weight += part;
        size = std::max(size, std::fabs(part));
      }
      w_.weight[j] = w_.weight_by_row[w_.all.row[j]] = weight;
    }
    return size;
  }

  // Bounds the rounding error of sums of n weights.
  static double rounding_margin(std::size_t n, double size) {
    return 0x1p-48 * (static_cast<double>(n) + 16) * (static_cast<double>(n) + 4) * size;
  }

  static constexpr double kMaxMagnitude = 1e300;

  ConstrainedScratch& w_;
  bool built_ = false, includes_keys_ = true;
  double offset_ = 0, min_others_ = 0, min_sum_ = 0, rounding_ = 0;
};

}  // namespace slotkern
