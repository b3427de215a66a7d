// The multiple-choice knapsack: exactly one row of every class, so that
//
//   sum of values is least   while   sum of weights <= limit       (Toporkov et al. 2014, eq. 1)
//
// for any finite real values and weights; eqs. 6 to 9 are this problem with its columns chosen.
//
// Rows that no answer can hold leave first: those too heavy beside the lightest rows of the
// other classes, and those that another row of their class dominates. The lower hulls of the
// classes, taken by falling slope, give the linear relaxation: its multiplier lambda, a base row
// for each class, and the bound. A row is dropped when bound + (its loss at lambda) reaches the
// incumbent; the classes with rows left are the core. A dynamic program goes through the core,
// the most undecided class first, over the list of (weight, value) that no other dominates,
// pruned by the steepest gain and the flattest loss among the classes to come. It is the
// recursion of eqs. 2 to 4 over a real limit instead of a grid.
//
// Why exact: an answer's value is the sum in the order of the classes, its weight the exact sum,
// rounded once. The core adds in another order, so a set within the rounding of the limit (`slack`)
// is tested by the sum that counts. If that refuses a set which may have dominated others, the
// program runs again through all classes in their own order. If it refuses one there, too, the
// answer is not proven: weights of whole numbers, and all that are not adversarial, never come so
// close to the limit without meeting it (base/exact_sum.hpp).
//
// Work is the number of states made: O(m log m) before, worst case exponential, hence `work`.
// Memory: 72 bytes a row, and for the lists at most kMemory: where they need more, or work ends,
// the answer is the best one found, and the bound that of what was left.
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

  std::vector<std::int64_t> rows;  // one a class; empty when no choice meets the limit
  double value = 0, weight = 0;
  double bound = 0;  // no choice is better
  double least = 0;  // the least limit that would do
  bool feasible = false, proven = true;

  Fault run(const Classes& classes, double limit, bool maximize, double gap, std::int64_t work) {
    given_.classes = &classes;
    given_.limit = most_met(limit), given_.sign = maximize ? -1 : 1;
    gap_ = gap, work_ = work;
    rows.clear();
    feasible = false, proven = true;
    value = weight = bound = std::numeric_limits<double>::quiet_NaN();
    const Fault fault = given_.check();
    least = given_.least;
    if (fault.status != Status::ok) return fault;
    if (!(least <= given_.limit)) return {};
    feasible = true;
    given_.gather();
    if (!given_.scale()) return {Status::sum_overflows, 0, 0};
    if (!settled()) search();
    return close();
  }

 private:
  using Item = ClassItems::Item;
  using State = ParetoList::State;
  using Step = ParetoList::Step;
  struct Champion {
    bool any = false;
    Step step{};
  };
  using Candidate = ParetoList::Candidate;

  static constexpr double kRounding = 1e-12;
  static constexpr std::size_t kCrowd = 1 << 13;  // states beyond which lists are joined

  // The best row of every class, if that fits.
  bool settled() {
    best_.clear();
    for (std::size_t k = 0; k < given_.count(); ++k)
      best_.push_back(static_cast<std::uint32_t>(given_.firsts[k + 1] - 1));
    ub_ = relaxed_.lb = given_.sum_values(best_);
    return given_.fits(best_);
  }

  Fault close() {
    rows.clear();
    value = 0;
    for (const std::uint32_t i : best_) {
      rows.push_back(given_.items[i].row);
      value += given_.classes->value[given_.items[i].row];
    }
    weight = given_.sum_weights(best_);
    if (!(weight <= given_.limit)) return {Status::internal, 0, 0};
    const double lost = given_.step > 0 || gap_ > kRounding ? gap_ * std::fabs(value) : 0;
    double below = given_.sign * value - lost;  // proven: within the gap
    if (!proven) below = std::min(below, rest_ / given_.value_unit);
    below = std::max(below, (relaxed_.lb - given_.noise) / given_.value_unit);
    bound = given_.sign * std::min(below, given_.sign * value);
    return {};
  }

  // A bound at or above `cut_` prunes. Whole sums differ by at least a step: one that must stay
  // above ub - step cannot improve on ub. That difference is exact and the comparison strict,
  // hence the next double: any fraction of a step vanishes beside sums above 2^53 times it.
  void set_upper(double ub) {
    ub_ = ub;
    if (given_.step > 0) {
      cut_ = std::nextafter(ub - std::max(gap_ * std::fabs(ub), given_.step), kInfinity);
      return;
    }
    const double worth = std::max(gap_, kRounding) * std::fabs(ub);
    cut_ = ub - std::max(worth - given_.noise, 0.0);
  }

  // Whether the relaxation alone proves the incumbent. For real values cut_ has the noise.
  bool proven_by_relaxation() const {
    return relaxed_.lb - (given_.step > 0 ? given_.noise : 0) >= cut_;
  }

  // --- the search

  void search() {
    relaxed_.relax(given_);
    first_answer();
    order_core();
    double blurred = kInfinity;
    rest_ = kInfinity;
    proven = proven_by_relaxation() || solve(order_, blurred);
    if (proven && blurred < cut_) {
      order_.resize(given_.count());
      for (std::size_t k = 0; k < given_.count(); ++k) order_[k] = static_cast<std::uint32_t>(k);
      blurred = kInfinity;
      proven = solve(order_, blurred);
      if (proven && blurred < cut_) proven = false, rest_ = blurred;
    }
  }

  // The base and single improvements that fit; where it does not fit, the lightest rows.
  void first_answer() {
    best_ = relaxed_.base;
    if (!given_.fits(best_))
      for (std::size_t k = 0; k < given_.count(); ++k)
        best_[k] = static_cast<std::uint32_t>(given_.firsts[k]);
    double room = given_.most - given_.slack;
    for (const std::uint32_t i : best_) room -= given_.items[i].weight;
    for (int round = 0; round < 4; ++round) {
      double gain = 0;
      std::size_t at = 0;
      std::uint32_t to = 0;
      for (std::size_t k = 0; k < given_.count(); ++k) {
        const Item& now = given_.items[best_[k]];
        const auto begin = given_.items.begin() + best_[k];
        const auto end = given_.items.begin() + static_cast<std::ptrdiff_t>(given_.firsts[k + 1]);
        const auto over = std::upper_bound(begin, end, now.weight + room,
                                           [](double w, const Item& x) { return w < x.weight; });
        if (over == begin) continue;
        if (const double better = now.value - (over - 1)->value; better > gain) {
          gain = better, at = k;
          to = static_cast<std::uint32_t>(over - 1 - given_.items.begin());
        }
      }
      if (gain == 0) break;
      const std::uint32_t from = best_[at];
      best_[at] = to;
      if (!given_.fits(best_)) {
        best_[at] = from;
        break;
      }
      room -= given_.items[to].weight - given_.items[from].weight;
    }
    set_upper(given_.sum_values(best_));
  }

  bool worth(std::size_t item) const {
    return relaxed_.lb - given_.noise + relaxed_.losses[item] < cut_;
  }

  // The classes with more than their base left, those nearest to a change first; of equal ones
  // those on either side of where the relaxation broke off, some to raise and some to lower.
  void order_core() {
    order_.clear();
    nearest_.assign(given_.count(), kInfinity);
    for (std::size_t k = 0; k < given_.count(); ++k) {
      for (std::size_t i = given_.firsts[k]; i < given_.firsts[k + 1]; ++i)
        if (i != relaxed_.base[k] && worth(i))
          nearest_[k] = std::min(nearest_[k], relaxed_.losses[i]);
      if (nearest_[k] < kInfinity) order_.push_back(static_cast<std::uint32_t>(k));
    }
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (nearest_[a] != nearest_[b]) return nearest_[a] < nearest_[b];
      const auto far = [broken = relaxed_.broken](std::uint32_t k) {
        return k < broken ? broken - k : k - broken;
      };
      return far(a) != far(b) ? far(a) < far(b) : a < b;
    });
  }

  // Of the classes from each place of the order on: the base, the most value that a unit of
  // weight gains and the least that it costs to be rid of one.
  void look_ahead(const std::vector<std::uint32_t>& order) {
    const std::size_t size = order.size();
    rest_weight_.assign(size + 1, 0), rest_value_.assign(size + 1, 0);
    gain_.assign(size + 1, 0), loss_.assign(size + 1, kInfinity);
    for (std::size_t q = size; q-- > 0;) {
      const std::size_t k = order[q];
      const Item& base = given_.items[relaxed_.base[k]];
      rest_weight_[q] = rest_weight_[q + 1] + base.weight;
      rest_value_[q] = rest_value_[q + 1] + base.value;
      gain_[q] = gain_[q + 1], loss_[q] = loss_[q + 1];
      for (std::size_t i = given_.firsts[k]; i < given_.firsts[k + 1]; ++i) {
        if (i == relaxed_.base[k] || !worth(i)) continue;
        const double slope = (base.value - given_.items[i].value) /
                             ((given_.items[i].weight - base.weight) * given_.weight_unit);
        if (given_.items[i].weight > base.weight)
          gain_[q] = std::max(gain_[q], slope * (1 + 4 * 0x1p-52));
        else
          loss_[q] = std::min(loss_[q], std::min(slope, 1e300) * (1 - 4 * 0x1p-52));
      }
    }
  }

  // No completion of the state is better; `room` with the slack.
  double bound_of(const State& state, std::size_t q, double& room, double& total) const {
    room = given_.most + given_.slack - (state.weight + rest_weight_[q]);
    total = state.value + rest_value_[q];
    if (room >= 0) return total - gain_[q] * (room * given_.weight_unit);
    return loss_[q] == kInfinity ? kInfinity : total - loss_[q] * (room * given_.weight_unit);
  }

  // The choice behind a step into list q.
  void follow(const std::vector<std::uint32_t>& order, std::size_t q, Step step) {
    traced_ = relaxed_.base;
    for (;; step = steps_[starts_[q] + step.before]) {
      traced_[order[q]] = step.item;
      if (q-- == 0) return;
    }
  }

  // All states with item i of the q-th class. The best answer that they complete is a step to be
  // followed, the champion, or followed already where only the sum that counts says whether it
  // fits.
  void extend(const std::vector<std::uint32_t>& order, std::size_t q, std::size_t i,
              Champion& champion, double& blurred) {
    const Item& item = given_.items[i];
    poll();
    for (std::size_t y = 0; y < states_.size(); ++y) {
      const State state{states_[y].weight + item.weight, states_[y].value + item.value};
      double room, total;
      const double below = bound_of(state, q + 1, room, total);
      const Step step{static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)};
      if (room >= 0 && total < cut_) {
        if (room >= 2 * given_.slack) {
          champion = {true, step};
          set_upper(total);
        } else {
          work_ -= static_cast<std::int64_t>(given_.count());
          follow(order, q, step);
          if (given_.fits(traced_)) {
            champion.any = false;
            best_ = traced_;
            set_upper(total);
          } else {
            blurred = std::min(blurred, total);
          }
        }
      }
      if (!(below >= cut_)) lists_.made.push_back({state, step});
    }
    work_ -= static_cast<std::int64_t>(states_.size());
    if (lists_.made.size() > lists_.runs.back()) lists_.runs.push_back(lists_.made.size());
  }

  // True if nothing better is left; else rest_ bounds what was not looked at. `blurred`: the
  // best value of a set that the sum that counts refused.
  bool solve(const std::vector<std::uint32_t>& order, double& blurred) {
    look_ahead(order);
    State start{0, 0};
    for (const std::uint32_t i : relaxed_.base)
      start.weight += given_.items[i].weight, start.value += given_.items[i].value;
    if (order.size() == given_.count())
      start = {0, 0};
    else
      start.weight -= rest_weight_[0], start.value -= rest_value_[0];
    states_.assign(1, start);
    steps_.clear(), starts_.clear();
    std::size_t crowd = kCrowd;
    expect_long();
    for (std::size_t q = 0; q < order.size(); ++q) {
      const std::size_t k = order[q];
      lists_.clear();
      Champion champion;
      bool stopped = false;
      for (std::size_t i = given_.firsts[k]; i < given_.firsts[k + 1]; ++i) {
        if (i != relaxed_.base[k] && !worth(i)) continue;
        stopped = q > 0 && (work_ <= 0 || held() > kMemory);
        if (stopped) break;
        extend(order, q, i, champion, blurred);
      }
      if (champion.any) {
        follow(order, q, champion.step);
        best_ = traced_;
      }
      if (stopped) {
        join(order, q);
        if (proven_by_relaxation()) break;
        rest_ = cut_;
        double room, total;
        for (const State& state : states_) rest_ = std::min(rest_, bound_of(state, q, room, total));
        return false;
      }
      lists_.merge();
      starts_.push_back(steps_.size());
      states_.clear();
      for (const Candidate& candidate : lists_.made) {
        states_.push_back(candidate.state);
        steps_.push_back(candidate.step);
      }
      if (states_.empty()) break;
      if (q + 1 < order.size() && states_.size() > crowd) {
        crowd = 8 * states_.size();
        join(order, q + 1);
        if (proven_by_relaxation()) break;
      }
    }
    return true;
  }

  // Meets the states in front of place q with a list of what the next classes can change: of
  // two lists by rising weight and falling value the best pairs that fit are found in one pass.
  // Sums of many rows come so close to the limit that this alone often proves the answer.
  void join(const std::vector<std::uint32_t>& order, std::size_t q) {
    // The tail starts from the bases: every sum here is one of chosen rows, none of differences.
    tail_.assign(1, {rest_weight_[q], rest_value_[q]});
    tail_steps_.clear(), tail_starts_.clear();
    const std::size_t most = std::max(16 * kCrowd, 2 * states_.size());
    std::size_t last = q;
    for (; last < order.size(); ++last) {
      const std::size_t k = order[last];
      if (tail_.size() * (given_.firsts[k + 1] - given_.firsts[k]) > most) break;
      const Item& base = given_.items[relaxed_.base[k]];
      lists_.clear();
      for (std::size_t i = given_.firsts[k]; i < given_.firsts[k + 1]; ++i) {
        if (i != relaxed_.base[k] && !worth(i)) continue;
        const double dw = given_.items[i].weight - base.weight;
        const double df = given_.items[i].value - base.value;
        for (std::size_t y = 0; y < tail_.size(); ++y)
          lists_.made.push_back({{tail_[y].weight + dw, tail_[y].value + df},
                           {static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)}});
        lists_.runs.push_back(lists_.made.size());
      }
      lists_.merge();
      tail_starts_.push_back(tail_steps_.size());
      tail_.clear();
      for (const Candidate& candidate : lists_.made) {
        tail_.push_back(candidate.state);
        tail_steps_.push_back(candidate.step);
      }
    }
    work_ -= static_cast<std::int64_t>(states_.size() + tail_.size());
    std::size_t b = tail_.size(), best_front = 0, best_tail = 0;
    double best = cut_;
    for (std::size_t a = 0; a < states_.size() && b > 0; ++a) {
      const double room = given_.most - 2 * given_.slack - states_[a].weight;
      while (b > 0 && tail_[b - 1].weight > room) --b;
      if (b == 0) break;
      const double total = states_[a].value + tail_[b - 1].value;
      if (total < best) best = total, best_front = a, best_tail = b - 1;
    }
    if (!(best < cut_)) return;
    follow(order, q - 1, steps_[starts_[q - 1] + best_front]);
    while (last-- > q) {
      const Step step = tail_steps_[tail_starts_[last - q] + best_tail];
      traced_[order[last]] = step.item;
      best_tail = step.before;
    }
    best_ = traced_;  // it fits: `room` has left twice the slack
    set_upper(best);
  }

  // Bytes of the lists, also while they are merged.
  double held() const {
    return 8.0 * static_cast<double>(steps_.size()) + 16.0 * static_cast<double>(states_.size()) +
           2.0 * sizeof(Candidate) * static_cast<double>(lists_.made.size());
  }

  ClassItems given_;
  Relaxation relaxed_;
  ParetoList lists_;
  double gap_ = 0;
  std::int64_t work_ = 0;  // left
  double ub_ = 0, cut_ = 0, rest_ = 0;
  std::vector<double> nearest_;
  std::vector<std::uint32_t> best_, traced_, order_;
  std::vector<double> rest_weight_, rest_value_, gain_, loss_;  // by place in the order
  std::vector<State> states_, tail_;
  std::vector<std::size_t> starts_, tail_starts_;
  std::vector<Step> steps_, tail_steps_;
};

}  // namespace slotkern
