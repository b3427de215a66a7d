// The multiple-choice knapsack: exactly one row of every class, so that
//
//   the sum of values is minimal   while   sum of weights <= limit   (Toporkov et al. 2014, eq. 1)
//
// for any finite real values and weights; eqs. 6 to 9 are this problem with particular columns.
//
// Method: infeasible rows (too heavy with the lightest rows of the other classes) and rows that
// their class dominates are removed. Greedy steps along the lower convex hulls of the classes, by
// falling slope, solve the linear relaxation (choice/relaxation.hpp). It gives the multiplier
// lambda, a base row for each class (the row reached by the steps), and the lower bound. The loss
// of a row is the increase of value + lambda * weight against the base row. A row is fixed out if
// bound + loss reaches the cutoff; classes with other rows left than the base form the core. A
// dynamic program processes the core, the class with the smallest loss first, over Pareto lists of
// (weight, value). It prunes by the largest gain per unit of weight, or the smallest loss if weight
// must be removed, among the later classes. It is the recursion of eqs. 2 to 4 with a real limit
// instead of a grid.
//
// Exactness: an answer's value is the sum in the order of the classes, its weight the exact sum,
// rounded once. The core is summed in another order, so a set within `slack` of the limit is
// checked by the exact sum. A rejected set may have dominated sets that fit, so the program then
// runs again through all classes in their own order. If a set is rejected there, too, the answer is
// not proven. This needs a sum within its rounding error above the limit: sums of integers are
// exact, and other sums come so close only if the weights are chosen for it (base/exact_sum.hpp).
//
// Cost: O(m log m) for the relaxation. The program is exponential in the worst case, so `work`
// limits the number of states that it creates. Memory: 72 bytes a row, and at most kMemory for the
// lists. If either limit is reached, the answer is the incumbent, and `bound` is also a bound for
// the choices that were not searched.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/pareto_list.hpp"
#include "slotkern/choice/relaxation.hpp"

namespace slotkern {

class MultipleChoiceKnapsack {
 public:
  static constexpr double kMemory = 256 * 1048576.0;

  std::vector<std::int64_t> rows;  // one row for each class; empty if no choice meets the limit
  double value = 0, weight = 0;
  double bound = 0;  // no choice is better
  double least = 0;  // smallest feasible limit
  bool feasible = false, proven = true;

  // Solves the problem; the public members hold the result. `gap` is relative; `work` is the limit
  // on the number of states.
  Fault run(const Classes& classes, double limit, bool maximize, double gap, std::int64_t work) {
    problem_.classes = &classes;
    problem_.limit = relaxed_max(limit), problem_.sign = maximize ? -1 : 1;
    gap_ = gap, work_left_ = work;
    rows.clear();
    feasible = false, proven = true;
    value = weight = bound = std::numeric_limits<double>::quiet_NaN();
    const Fault fault = problem_.check();
    least = problem_.least;
    if (fault.status != Status::ok) return fault;
    if (!(least <= problem_.limit)) return {};
    feasible = true;
    problem_.collect_undominated();
    if (!problem_.scale()) return {Status::sum_overflows, 0, 0};
    if (!best_rows_fit()) search();
    return finish();
  }

 private:
  using Item = ClassItems::Item;
  using ParetoState = ParetoList::ParetoState;
  using ParetoStep = ParetoList::ParetoStep;
  struct Completion {
    bool any = false;
    ParetoStep step{};
  };
  using ParetoCandidate = ParetoList::ParetoCandidate;

  static constexpr double kRounding = 1e-12;
  // lists with more states are joined with the tail
  static constexpr std::size_t kJoinStates = 1 << 13;

  // Selects the best row of every class. Returns true if that choice fits the limit.
  bool best_rows_fit() {
    best_.clear();
    for (std::size_t k = 0; k < problem_.count(); ++k)
      best_.push_back(static_cast<std::uint32_t>(problem_.firsts[k + 1] - 1));
    incumbent_value_ = relaxation_.lower_bound = problem_.sum_values(best_);
    return problem_.fits(best_);
  }

  // Computes the sums and the bound of the incumbent, best_.
  Fault finish() {
    rows.clear();
    value = 0;
    for (const std::uint32_t i : best_) {
      rows.push_back(problem_.items[i].row);
      value += problem_.classes->value[problem_.items[i].row];
    }
    weight = problem_.sum_weights(best_);
    if (!(weight <= problem_.limit)) return {Status::internal, 0, 0};
    // Proven: no choice is better by more than this; see set_incumbent().
    const double allowed_gap =
        (problem_.value_step > 0 ? gap_ : std::max(gap_, kRounding)) * std::fabs(value);
    double value_bound = problem_.sign * value - allowed_gap;
    if (!proven) value_bound = std::min(value_bound, open_bound_ / problem_.value_unit);
    value_bound = std::max(
        value_bound, (relaxation_.lower_bound - problem_.bound_noise) / problem_.value_unit);
    bound = problem_.sign * std::min(value_bound, problem_.sign * value);
    return {};
  }

  // Sets the incumbent's value and the cutoff: a bound >= cutoff_ is pruned. Integer sums differ by
  // at least value_step, so a choice whose bound is above incumbent - value_step cannot improve.
  // That difference is exact; the cutoff is the next double above it. Adding a fraction of a step
  // instead could be lost to rounding in large sums.
  void set_incumbent(double incumbent_value) {
    incumbent_value_ = incumbent_value;
    if (problem_.value_step > 0) {
      cutoff_ = std::nextafter(
          incumbent_value - std::max(gap_ * std::fabs(incumbent_value), problem_.value_step),
          kInfinity);
      return;
    }
    const double required = std::max(gap_, kRounding) * std::fabs(incumbent_value);
    cutoff_ = incumbent_value - std::max(required - problem_.bound_noise, 0.0);
  }

  // True if the relaxation alone proves the incumbent. For real values set_incumbent() has already
  // added bound_noise to cutoff_.
  bool proven_by_relaxation() const {
    return relaxation_.lower_bound - (problem_.value_step > 0 ? problem_.bound_noise : 0) >=
        cutoff_;
  }

  // --- branch and bound by lists

  // Relaxation, first incumbent, core, dynamic program; repeats the latter after a rounding
  // conflict.
  void search() {
    relaxation_.solve_relaxation(problem_);
    find_incumbent();
    order_core();
    double best_refused = kInfinity;
    open_bound_ = kInfinity;
    proven = proven_by_relaxation() || solve(order_, best_refused);
    if (proven && best_refused < cutoff_) {
      order_.resize(problem_.count());
      for (std::size_t k = 0; k < problem_.count(); ++k) order_[k] = static_cast<std::uint32_t>(k);
      best_refused = kInfinity;
      proven = solve(order_, best_refused);
      if (proven && best_refused < cutoff_) proven = false, open_bound_ = best_refused;
    }
  }

  // First incumbent: the base rows, or the lightest rows if those do not fit, and single
  // improvements that fit.
  void find_incumbent() {
    best_ = relaxation_.base;
    if (!problem_.fits(best_))
      for (std::size_t k = 0; k < problem_.count(); ++k)
        best_[k] = static_cast<std::uint32_t>(problem_.firsts[k]);
    double weight_left = problem_.capacity - problem_.slack;
    for (const std::uint32_t i : best_) weight_left -= problem_.items[i].weight;
    for (int round = 0; round < 4; ++round) {
      double gain = 0;
      std::size_t at = 0;
      std::uint32_t to = 0;
      for (std::size_t k = 0; k < problem_.count(); ++k) {
        const Item& now = problem_.items[best_[k]];
        const auto begin = problem_.items.begin() + best_[k];
        const auto end =
            problem_.items.begin() + static_cast<std::ptrdiff_t>(problem_.firsts[k + 1]);
        const auto over = std::upper_bound(begin, end, now.weight + weight_left,
                                           [](double w, const Item& x) { return w < x.weight; });
        if (over == begin) continue;
        if (const double better = now.value - (over - 1)->value; better > gain) {
          gain = better, at = k;
          to = static_cast<std::uint32_t>(over - 1 - problem_.items.begin());
        }
      }
      if (gain == 0) break;
      const std::uint32_t from = best_[at];
      best_[at] = to;
      if (!problem_.fits(best_)) {
        best_[at] = from;
        break;
      }
      weight_left -= problem_.items[to].weight - problem_.items[from].weight;
    }
    set_incumbent(problem_.sum_values(best_));
  }

  // True if a choice with this item may beat the incumbent.
  bool can_improve(std::size_t item) const {
    return relaxation_.lower_bound - problem_.bound_noise + relaxation_.losses[item] < cutoff_;
  }

  // Selects the core: the classes with more rows left than their base, by rising smallest loss.
  // Ties go to the classes nearest to the break class of the relaxation, because some of them gain
  // and some lose.
  void order_core() {
    order_.clear();
    nearest_.assign(problem_.count(), kInfinity);
    for (std::size_t k = 0; k < problem_.count(); ++k) {
      for (std::size_t i = problem_.firsts[k]; i < problem_.firsts[k + 1]; ++i)
        if (i != relaxation_.base[k] && can_improve(i))
          nearest_[k] = std::min(nearest_[k], relaxation_.losses[i]);
      if (nearest_[k] < kInfinity) order_.push_back(static_cast<std::uint32_t>(k));
    }
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (nearest_[a] != nearest_[b]) return nearest_[a] < nearest_[b];
      const auto distance = [break_class = relaxation_.break_class](std::uint32_t k) {
        return k < break_class ? break_class - k : k - break_class;
      };
      return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
    });
  }

  // For the classes from each position of the order on: sums of the base rows, the largest gain of
  // value for a unit of weight, and the smallest loss for removing one.
  void compute_suffix_bounds(const std::vector<std::uint32_t>& order) {
    const std::size_t size = order.size();
    suffix_weight_.assign(size + 1, 0), suffix_value_.assign(size + 1, 0);
    suffix_gain_.assign(size + 1, 0), suffix_loss_.assign(size + 1, kInfinity);
    for (std::size_t q = size; q-- > 0;) {
      const std::size_t k = order[q];
      const Item& base = problem_.items[relaxation_.base[k]];
      suffix_weight_[q] = suffix_weight_[q + 1] + base.weight;
      suffix_value_[q] = suffix_value_[q + 1] + base.value;
      suffix_gain_[q] = suffix_gain_[q + 1], suffix_loss_[q] = suffix_loss_[q + 1];
      for (std::size_t i = problem_.firsts[k]; i < problem_.firsts[k + 1]; ++i) {
        if (i == relaxation_.base[k] || !can_improve(i)) continue;
        const double slope = (base.value - problem_.items[i].value) /
                             ((problem_.items[i].weight - base.weight) * problem_.weight_unit);
        if (problem_.items[i].weight > base.weight)
          suffix_gain_[q] = std::max(suffix_gain_[q], slope * (1 + 4 * 0x1p-52));
        else
          suffix_loss_[q] = std::min(suffix_loss_[q], std::min(slope, 1e300) * (1 - 4 * 0x1p-52));
      }
    }
  }

  // Lower bound on the value of all completions of a state. Also returns in `weight_left` the part
  // of the limit, plus slack, that base rows leave, and in `total` the value with base rows.
  double bound_of(const ParetoState& state, std::size_t q, double& weight_left,
                  double& total) const {
    weight_left = problem_.capacity + problem_.slack - (state.weight + suffix_weight_[q]);
    total = state.value + suffix_value_[q];
    if (weight_left >= 0) return total - suffix_gain_[q] * (weight_left * problem_.weight_unit);
    return suffix_loss_[q] == kInfinity
               ? kInfinity
               : total - suffix_loss_[q] * (weight_left * problem_.weight_unit);
  }

  // Reconstructs in traced_ the choice behind a step into list q.
  void trace_back(const std::vector<std::uint32_t>& order, std::size_t q, ParetoStep step) {
    traced_ = relaxation_.base;
    for (;; step = front_.steps[front_.starts[q] + step.before]) {
      traced_[order[q]] = step.item;
      if (q-- == 0) return;
    }
  }

  // Extends all states by item i of the q-th class. A completion by base rows that improves the
  // incumbent is stored as `completion`, to be traced back later, or is traced back at once if only
  // the exact sum decides if it fits.
  void extend(const std::vector<std::uint32_t>& order, std::size_t q, std::size_t i,
              Completion& completion, double& best_refused) {
    const Item& item = problem_.items[i];
    poll();
    const std::vector<ParetoState>& states = front_.states;
    for (std::size_t y = 0; y < states.size(); ++y) {
      const ParetoState state{states[y].weight + item.weight, states[y].value + item.value};
      double weight_left, total;
      const double lower_bound = bound_of(state, q + 1, weight_left, total);
      const ParetoStep step{static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)};
      if (weight_left >= 0 && total < cutoff_) {
        if (weight_left >= 2 * problem_.slack) {
          completion = {true, step};
          set_incumbent(total);
        } else {
          work_left_ -= static_cast<std::int64_t>(problem_.count());
          trace_back(order, q, step);
          if (problem_.fits(traced_)) {
            completion.any = false;
            best_ = traced_;
            set_incumbent(total);
          } else {
            best_refused = std::min(best_refused, total);
          }
        }
      }
      if (!(lower_bound >= cutoff_)) lists_.candidates.push_back({state, step});
    }
    work_left_ -= static_cast<std::int64_t>(states.size());
    if (lists_.candidates.size() > lists_.runs.back())
      lists_.runs.push_back(lists_.candidates.size());
  }

  // Runs the dynamic program. Returns true if nothing better is left; else open_bound_ bounds what
  // was not searched. `best_refused`: the best value of a set that the exact sum rejected.
  bool solve(const std::vector<std::uint32_t>& order, double& best_refused) {
    compute_suffix_bounds(order);
    ParetoState start{0, 0};
    for (const std::uint32_t i : relaxation_.base)
      start.weight += problem_.items[i].weight, start.value += problem_.items[i].value;
    if (order.size() == problem_.count())
      start = {0, 0};
    else
      start.weight -= suffix_weight_[0], start.value -= suffix_value_[0];
    front_.start(start);
    std::size_t join_threshold = kJoinStates;
    enable_interrupts();
    for (std::size_t q = 0; q < order.size(); ++q) {
      const std::size_t k = order[q];
      lists_.clear();
      Completion completion;
      bool stopped = false;
      for (std::size_t i = problem_.firsts[k]; i < problem_.firsts[k + 1]; ++i) {
        if (i != relaxation_.base[k] && !can_improve(i)) continue;
        stopped = q > 0 && (work_left_ <= 0 || bytes_used() > kMemory);
        if (stopped) break;
        extend(order, q, i, completion, best_refused);
      }
      if (completion.any) {
        trace_back(order, q, completion.step);
        best_ = traced_;
      }
      if (stopped) {
        join_tail(order, q);
        if (proven_by_relaxation()) break;
        open_bound_ = cutoff_;
        double weight_left, total;
        for (const ParetoState& state : front_.states)
          open_bound_ = std::min(open_bound_, bound_of(state, q, weight_left, total));
        return false;
      }
      lists_.merge();
      front_.append(lists_);
      if (front_.states.empty()) break;
      if (q + 1 < order.size() && front_.states.size() > join_threshold) {
        join_threshold = 8 * front_.states.size();
        join_tail(order, q + 1);
        if (proven_by_relaxation()) break;
      }
    }
    return true;
  }

  // Meet in the middle: combines the states before position q with a Pareto list of the changes
  // that the next classes allow. One pass over both lists, sorted by weight, finds the best pair
  // that fits. Sums of many rows come so close to the limit that this alone often proves the
  // optimum.
  void join_tail(const std::vector<std::uint32_t>& order, std::size_t q) {
    // The tail starts from the sums of the base rows, so each of its states has the sums of a
    // choice of rows, not of the differences to the base.
    tail_.start({suffix_weight_[q], suffix_value_[q]});
    const std::vector<ParetoState>&states = front_.states, &tail = tail_.states;
    const std::size_t max_states = std::max(16 * kJoinStates, 2 * states.size());
    std::size_t last = q;
    for (; last < order.size(); ++last) {
      const std::size_t k = order[last];
      if (tail.size() * (problem_.firsts[k + 1] - problem_.firsts[k]) > max_states) break;
      const Item& base = problem_.items[relaxation_.base[k]];
      lists_.clear();
      for (std::size_t i = problem_.firsts[k]; i < problem_.firsts[k + 1]; ++i) {
        if (i != relaxation_.base[k] && !can_improve(i)) continue;
        const double dw = problem_.items[i].weight - base.weight;
        const double df = problem_.items[i].value - base.value;
        for (std::size_t y = 0; y < tail.size(); ++y)
          lists_.candidates.push_back({{tail[y].weight + dw, tail[y].value + df},
                           {static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)}});
        lists_.runs.push_back(lists_.candidates.size());
      }
      lists_.merge();
      tail_.append(lists_);
    }
    work_left_ -= static_cast<std::int64_t>(states.size() + tail.size());
    std::size_t b = tail.size(), best_front = 0, best_tail = 0;
    double best = cutoff_;
    for (std::size_t a = 0; a < states.size() && b > 0; ++a) {
      const double weight_left = problem_.capacity - 2 * problem_.slack - states[a].weight;
      while (b > 0 && tail[b - 1].weight > weight_left) --b;
      if (b == 0) break;
      const double total = states[a].value + tail[b - 1].value;
      if (total < best) best = total, best_front = a, best_tail = b - 1;
    }
    if (!(best < cutoff_)) return;
    trace_back(order, q - 1, front_.steps[front_.starts[q - 1] + best_front]);
    while (last-- > q) {
      const ParetoStep step = tail_.steps[tail_.starts[last - q] + best_tail];
      traced_[order[last]] = step.item;
      best_tail = step.before;
    }
    best_ = traced_;  // it fits: `weight_left` has twice the slack subtracted
    set_incumbent(best);
  }

  // Bytes of the lists, including those while they are merged.
  double bytes_used() const {
    return 8.0 * static_cast<double>(front_.steps.size()) +
           16.0 * static_cast<double>(front_.states.size()) +
           2.0 * sizeof(ParetoCandidate) * static_cast<double>(lists_.candidates.size());
  }

  ClassItems problem_;
  Relaxation relaxation_;
  ParetoList lists_;
  double gap_ = 0;
  std::int64_t work_left_ = 0;  // units of work left
  double incumbent_value_ = 0, cutoff_ = 0, open_bound_ = 0;
  std::vector<double> nearest_;
  std::vector<std::uint32_t> best_, traced_, order_;
  // by position in the order
  std::vector<double> suffix_weight_, suffix_value_, suffix_gain_, suffix_loss_;
  ParetoStages front_, tail_;  // of the classes in order; of the next classes (join_tail())
};

inline MultipleChoiceKnapsack& multiple_choice_scratch() {
  static thread_local MultipleChoiceKnapsack scratch;
  return scratch;
}

// The answer stays in the calling thread's scratch object until its next call.
inline Fault choose_one_each(const Classes& classes, double limit, bool maximize, double gap,
                             std::int64_t work, MultipleChoiceKnapsack*& answer) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    answer = &multiple_choice_scratch();
    fault = answer->run(classes, limit, maximize, gap, work);
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

}  // namespace slotkern
