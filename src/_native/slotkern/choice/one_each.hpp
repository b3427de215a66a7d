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
// Why exact: an answer's value and weight are sums in the order of the classes. The core adds in
// another order, so a set within the rounding of the limit (`slack`) is tested by the sum that
// counts. Where that refuses a set which may have dominated others, the program runs again
// through all classes in their own order: there its sums are the ones that count, and adding is
// monotone in floating point, so that dominance loses nothing.
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

#include "slotkern/slots/view.hpp"

namespace slotkern {

// Rows first[k] to first[k + 1] are class k.
struct Classes {
  const double* value;
  const double* weight;
  const std::int64_t* first;
  std::size_t count;
};

class OneEach {
 public:
  static constexpr double kMemory = 256 * 1048576.0;

  std::vector<std::int64_t> rows;  // one a class; empty when no choice meets the limit
  double value = 0, weight = 0;
  double bound = 0;  // no choice is better
  double least = 0;  // the least limit that would do
  bool feasible = false, proven = true;

  Fault run(const Classes& classes, double limit, bool maximize, double gap, std::int64_t work) {
    classes_ = &classes;
    limit_ = limit, sign_ = maximize ? -1 : 1, gap_ = gap, work_ = work;
    rows.clear();
    feasible = false, proven = true;
    value = weight = bound = std::numeric_limits<double>::quiet_NaN();
    if (const Fault fault = check(); fault.status != Status::ok) return fault;
    if (!(least <= limit)) return {};
    feasible = true;
    gather();
    if (!scale()) return {Status::sum_overflows, 0, 0};
    if (!settled()) search();
    return close();
  }

 private:
  struct Item {
    double weight, value;  // the value scaled by a power of two, so that less is better
    std::int64_t row;
  };
  struct Increment {  // a step along the hull of a class
    double slope, weight, value;
    std::uint32_t group, item;  // that it leads to
  };
  struct State {
    double weight, value;
  };
  struct Step {
    std::uint32_t before, item;  // of the state in the list before
  };
  struct Candidate {
    State state;
    Step step;
  };

  static constexpr double kSteep = 1e12;  // hull steps beyond are rounding: always taken
  static constexpr double kRounding = 1e-12;
  static constexpr std::size_t kCrowd = 1 << 13;  // states beyond which lists are joined

  // --- the rows

  double weight_of(std::int64_t row) const { return classes_->weight[row]; }

  Fault check() {
    const auto count = static_cast<std::size_t>(classes_->first[classes_->count]);
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::isfinite(classes_->value[i])) return {Status::value_not_finite, i, 0};
      if (!std::isfinite(classes_->weight[i])) return {Status::cost_not_valid, i, 0};
    }
    lightest_.resize(classes_->count);
    least = 0;
    for (std::size_t k = 0; k < classes_->count; ++k) {
      const double* const begin = classes_->weight + classes_->first[k];
      lightest_[k] = *std::min_element(begin, classes_->weight + classes_->first[k + 1]);
      least += lightest_[k];
    }
    return std::isfinite(least) ? Fault{} : Fault{Status::sum_overflows, 0, 0};
  }

  // items_: rows by class that fit beside the lightest others and are not dominated, by rising
  // weight and falling value. Of equal rows the first.
  void gather() {
    double size = std::fabs(limit_);
    for (const double w : lightest_) size += std::fabs(w);
    const double n = static_cast<double>(classes_->count);
    const double spare = (limit_ - least) + (n + 4) * 0x1p-50 * size;
    items_.clear();
    firsts_.assign(1, 0);
    for (std::size_t k = 0; k < classes_->count; ++k) {
      const std::size_t begin = items_.size();
      for (std::int64_t row = classes_->first[k]; row < classes_->first[k + 1]; ++row)
        if (!(weight_of(row) - lightest_[k] > spare))
          items_.push_back({weight_of(row), sign_ * classes_->value[row], row});
      const auto first = items_.begin() + static_cast<std::ptrdiff_t>(begin);
      std::sort(first, items_.end(), [](const Item& a, const Item& b) {
        if (a.weight != b.weight) return a.weight < b.weight;
        return a.value != b.value ? a.value < b.value : a.row < b.row;
      });
      std::size_t end = begin;
      for (std::size_t i = begin; i < items_.size(); ++i)
        if (end == begin || items_[i].value < items_[end - 1].value) items_[end++] = items_[i];
      items_.resize(end);
      firsts_.push_back(end);
    }
  }

  // The largest sizes count as about 1, exactly, so that no product or quotient leaves the
  // doubles. Weights keep their bits: tiny ones may decide beside large ones that cancel. False
  // where sums of what is left could overflow.
  bool scale() {
    const double n = static_cast<double>(classes_->count);
    double most[2] = {0, 0}, sum[2] = {0, 0};
    bool whole[2] = {true, true};
    for (std::size_t k = 0; k < classes_->count; ++k) {
      double own[2] = {0, 0};
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        const double x[2] = {items_[i].weight, items_[i].value};
        for (int j = 0; j < 2; ++j) {
          own[j] = std::max(own[j], std::fabs(x[j]));
          whole[j] = whole[j] && x[j] == std::floor(x[j]);
        }
      }
      for (int j = 0; j < 2; ++j) most[j] = std::max(most[j], own[j]), sum[j] += own[j];
    }
    if (!((n + 64) * std::max(most[0], most[1]) < 1e300)) return false;
    double unit[2];
    for (int j = 0; j < 2; ++j) {
      int exponent = 0;
      std::frexp(most[j], &exponent);
      unit[j] = std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
    }
    for (Item& item : items_) item.value *= unit[1];
    // |limit| beyond every sum decides nothing more than the largest sum does.
    most_ = std::clamp(limit_, -2 * sum[0] - 1, 2 * sum[0] + 1);
    const double rounding = (n + 2) * 0x1p-52;
    slack_ = whole[0] && sum[0] < 0x1p51 ? 0 : 2 * rounding * sum[0];
    step_ = whole[1] && sum[1] < 0x1p51 ? unit[1] : 0;
    noise_ = step_ > 0 ? 0 : rounding * (sum[1] * unit[1]);
    weight_unit_ = unit[0], value_unit_ = unit[1];
    return true;
  }

  // --- sums that count

  double sum_weights(const std::vector<std::uint32_t>& chosen) const {
    double sum = 0;
    for (const std::uint32_t i : chosen) sum += weight_of(items_[i].row);
    return sum;
  }
  bool fits(const std::vector<std::uint32_t>& chosen) const {
    return sum_weights(chosen) <= limit_;
  }
  double sum_values(const std::vector<std::uint32_t>& chosen) const {
    double sum = 0;
    for (const std::uint32_t i : chosen) sum += items_[i].value;
    return sum;
  }

  // The best row of every class, if that fits.
  bool settled() {
    best_.clear();
    for (std::size_t k = 0; k < classes_->count; ++k)
      best_.push_back(static_cast<std::uint32_t>(firsts_[k + 1] - 1));
    ub_ = lb_ = sum_values(best_);
    return fits(best_);
  }

  Fault close() {
    rows.clear();
    value = weight = 0;
    for (const std::uint32_t i : best_) {
      rows.push_back(items_[i].row);
      value += classes_->value[items_[i].row];
      weight += weight_of(items_[i].row);
    }
    if (!(weight <= limit_)) return {Status::internal, 0, 0};
    const double lost = gap_ > kRounding ? gap_ * std::fabs(value) : 0;
    double below = sign_ * value - lost;  // proven: within the gap
    if (!proven) below = std::min(below, rest_ / value_unit_);
    below = std::max(below, (lb_ - noise_) / value_unit_);
    bound = sign_ * std::min(below, sign_ * value);
    return {};
  }

  // What a set must stay under to be worth a look.
  void set_upper(double ub) {
    ub_ = ub;
    const double worth = std::max(std::max(gap_, kRounding) * std::fabs(ub), step_ * (1 - 1e-9));
    cut_ = ub - std::max(worth - noise_, 0.0);
  }

  // --- the search

  void search() {
    relax();
    first_answer();
    order_core();
    double blurred = kInfinity;
    rest_ = kInfinity;
    proven = lb_ >= cut_ || solve(order_, blurred);
    if (proven && blurred < cut_) {
      order_.resize(classes_->count);
      for (std::size_t k = 0; k < classes_->count; ++k) order_[k] = static_cast<std::uint32_t>(k);
      blurred = kInfinity;
      proven = solve(order_, blurred);
    }
  }

  // The lower hulls, and along them the linear relaxation: base_, lambda_, lb_.
  void relax() {
    increments_.clear();
    base_.clear();
    double w = 0, f = 0;
    for (std::size_t k = 0; k < classes_->count; ++k) {
      hull_.clear();
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        while (hull_.size() >= 2) {
          const Item &a = items_[hull_[hull_.size() - 2]], &b = items_[hull_.back()], &x = items_[i];
          if ((b.value - a.value) * (x.weight - a.weight) <
              (x.value - a.value) * (b.weight - a.weight))
            break;
          hull_.pop_back();
        }
        hull_.push_back(static_cast<std::uint32_t>(i));
      }
      for (std::size_t i = 1; i < hull_.size(); ++i) {
        const Item &a = items_[hull_[i - 1]], &b = items_[hull_[i]];
        const double dw = b.weight - a.weight, df = a.value - b.value;
        double slope = df / (dw * weight_unit_);  // rounding must not disorder a hull
        if (i > 1) slope = std::min(slope, increments_.back().slope);
        increments_.push_back({slope, dw, df, static_cast<std::uint32_t>(k), hull_[i]});
      }
      base_.push_back(hull_.front());
      w += items_[hull_.front()].weight, f += items_[hull_.front()].value;
    }
    std::sort(increments_.begin(), increments_.end(), [](const Increment& a, const Increment& b) {
      if (a.slope != b.slope) return a.slope > b.slope;
      return a.group != b.group ? a.group < b.group : a.item < b.item;
    });
    lambda_ = 0;
    broken_ = 0;
    for (const Increment& x : increments_) {
      if (w + x.weight > most_ && x.slope <= kSteep) {
        lambda_ = x.slope;
        broken_ = x.group;
        break;
      }
      w += x.weight, f -= x.value;
      base_[x.group] = x.item;
    }
    w = f = 0;
    for (const std::uint32_t i : base_) w += items_[i].weight, f += items_[i].value;
    // Valid for any lambda >= 0 and any base: the losses below 0 count too.
    lb_ = f - lambda_ * ((most_ + slack_ - w) * weight_unit_);
    losses_.resize(items_.size());
    for (std::size_t k = 0; k < classes_->count; ++k) {
      const Item& base = items_[base_[k]];
      double under = 0;
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        const double dw = lambda_ * ((items_[i].weight - base.weight) * weight_unit_);
        const double df = items_[i].value - base.value;
        const double loss = df + dw - 4 * 0x1p-52 * (std::fabs(df) + std::fabs(dw));
        losses_[i] = i == base_[k] ? 0 : loss;
        under = std::min(under, losses_[i]);
      }
      if (under < 0) {
        lb_ += under;
        for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) losses_[i] -= under;
      }
    }
  }

  // The base and single improvements that fit; where it does not fit, the lightest rows.
  void first_answer() {
    best_ = base_;
    if (!fits(best_))
      for (std::size_t k = 0; k < classes_->count; ++k)
        best_[k] = static_cast<std::uint32_t>(firsts_[k]);
    double room = most_ - slack_;
    for (const std::uint32_t i : best_) room -= items_[i].weight;
    for (int round = 0; round < 4; ++round) {
      double gain = 0;
      std::size_t at = 0;
      std::uint32_t to = 0;
      for (std::size_t k = 0; k < classes_->count; ++k) {
        const Item& now = items_[best_[k]];
        const auto begin = items_.begin() + best_[k];
        const auto end = items_.begin() + static_cast<std::ptrdiff_t>(firsts_[k + 1]);
        const auto over = std::upper_bound(begin, end, now.weight + room,
                                           [](double w, const Item& x) { return w < x.weight; });
        if (over == begin) continue;
        if (const double better = now.value - (over - 1)->value; better > gain) {
          gain = better, at = k;
          to = static_cast<std::uint32_t>(over - 1 - items_.begin());
        }
      }
      if (gain == 0) break;
      const std::uint32_t from = best_[at];
      best_[at] = to;
      if (!fits(best_)) {
        best_[at] = from;
        break;
      }
      room -= items_[to].weight - items_[from].weight;
    }
    set_upper(sum_values(best_));
  }

  bool worth(std::size_t item) const { return lb_ - noise_ + losses_[item] < cut_; }

  // The classes with more than their base left, those nearest to a change first; of equal ones
  // those on either side of where the relaxation broke off, some to raise and some to lower.
  void order_core() {
    order_.clear();
    nearest_.assign(classes_->count, kInfinity);
    for (std::size_t k = 0; k < classes_->count; ++k) {
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i)
        if (i != base_[k] && worth(i)) nearest_[k] = std::min(nearest_[k], losses_[i]);
      if (nearest_[k] < kInfinity) order_.push_back(static_cast<std::uint32_t>(k));
    }
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (nearest_[a] != nearest_[b]) return nearest_[a] < nearest_[b];
      const auto far = [this](std::uint32_t k) { return k < broken_ ? broken_ - k : k - broken_; };
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
      const Item& base = items_[base_[k]];
      rest_weight_[q] = rest_weight_[q + 1] + base.weight;
      rest_value_[q] = rest_value_[q + 1] + base.value;
      gain_[q] = gain_[q + 1], loss_[q] = loss_[q + 1];
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        if (i == base_[k] || !worth(i)) continue;
        const double slope = (base.value - items_[i].value) /
                             ((items_[i].weight - base.weight) * weight_unit_);
        if (items_[i].weight > base.weight)
          gain_[q] = std::max(gain_[q], slope * (1 + 4 * 0x1p-52));
        else
          loss_[q] = std::min(loss_[q], std::min(slope, 1e300) * (1 - 4 * 0x1p-52));
      }
    }
  }

  // No completion of the state is better; `room` with the slack.
  double bound_of(const State& state, std::size_t q, double& room, double& total) const {
    room = most_ + slack_ - (state.weight + rest_weight_[q]);
    total = state.value + rest_value_[q];
    if (room >= 0) return total - gain_[q] * (room * weight_unit_);
    return loss_[q] == kInfinity ? kInfinity : total - loss_[q] * (room * weight_unit_);
  }

  // The choice behind a step into list q.
  void follow(const std::vector<std::uint32_t>& order, std::size_t q, Step step) {
    traced_ = base_;
    for (;; step = steps_[starts_[q] + step.before]) {
      traced_[order[q]] = step.item;
      if (q-- == 0) return;
    }
  }

  // True if nothing better is left; else rest_ bounds what was not looked at. `blurred`: the
  // best value of a set that the sum that counts refused.
  bool solve(const std::vector<std::uint32_t>& order, double& blurred) {
    look_ahead(order);
    State start{0, 0};
    for (std::size_t k = 0; k < classes_->count; ++k)
      start.weight += items_[base_[k]].weight, start.value += items_[base_[k]].value;
    if (order.size() == classes_->count)
      start = {0, 0};
    else
      start.weight -= rest_weight_[0], start.value -= rest_value_[0];
    states_.assign(1, start);
    steps_.clear(), starts_.clear();
    std::size_t crowd = kCrowd;
    expect_long();
    for (std::size_t q = 0; q < order.size(); ++q) {
      const std::size_t k = order[q];
      made_.clear();
      runs_.assign(1, 0);
      bool improved = false, stopped = false;
      Step champion{};
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        if (i != base_[k] && !worth(i)) continue;
        stopped = q > 0 && (work_ <= 0 || held() > kMemory);
        if (stopped) break;
        const Item& item = items_[i];
        poll();
        for (std::size_t y = 0; y < states_.size(); ++y) {
          const State state{states_[y].weight + item.weight, states_[y].value + item.value};
          double room, total;
          const double below = bound_of(state, q + 1, room, total);
          const Step step{static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)};
          if (room >= 0 && total < cut_) {
            if (room >= 2 * slack_) {
              improved = true;
              champion = step;
              set_upper(total);
            } else {
              work_ -= static_cast<std::int64_t>(classes_->count);
              follow(order, q, step);
              if (fits(traced_)) {
                improved = false;
                best_ = traced_;
                set_upper(total);
              } else {
                blurred = std::min(blurred, total);
              }
            }
          }
          if (!(below >= cut_)) made_.push_back({state, step});
        }
        work_ -= static_cast<std::int64_t>(states_.size());
        if (made_.size() > runs_.back()) runs_.push_back(made_.size());
      }
      if (improved) {
        follow(order, q, champion);
        best_ = traced_;
      }
      if (stopped) {
        join(order, q);
        if (lb_ >= cut_) break;
        rest_ = cut_;
        double room, total;
        for (const State& state : states_) rest_ = std::min(rest_, bound_of(state, q, room, total));
        return false;
      }
      merge();
      starts_.push_back(steps_.size());
      states_.clear();
      for (const Candidate& candidate : made_) {
        states_.push_back(candidate.state);
        steps_.push_back(candidate.step);
      }
      if (states_.empty()) break;
      if (q + 1 < order.size() && states_.size() > crowd) {
        crowd = 8 * states_.size();
        join(order, q + 1);
        if (lb_ >= cut_) break;
      }
    }
    return true;
  }

  // Meets the states in front of place q with a list of what the next classes can change: of
  // two lists by rising weight and falling value the best pairs that fit are found in one pass.
  // Sums of many rows come so close to the limit that this alone often proves the answer.
  void join(const std::vector<std::uint32_t>& order, std::size_t q) {
    tail_.assign(1, {0, 0});
    tail_steps_.clear(), tail_starts_.clear();
    const std::size_t most = std::max(16 * kCrowd, 2 * states_.size());
    std::size_t last = q;
    for (; last < order.size(); ++last) {
      const std::size_t k = order[last];
      if (tail_.size() * (firsts_[k + 1] - firsts_[k]) > most) break;
      const Item& base = items_[base_[k]];
      made_.clear();
      runs_.assign(1, 0);
      for (std::size_t i = firsts_[k]; i < firsts_[k + 1]; ++i) {
        if (i != base_[k] && !worth(i)) continue;
        const double dw = items_[i].weight - base.weight, df = items_[i].value - base.value;
        for (std::size_t y = 0; y < tail_.size(); ++y)
          made_.push_back({{tail_[y].weight + dw, tail_[y].value + df},
                           {static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(i)}});
        runs_.push_back(made_.size());
      }
      merge();
      tail_starts_.push_back(tail_steps_.size());
      tail_.clear();
      for (const Candidate& candidate : made_) {
        tail_.push_back(candidate.state);
        tail_steps_.push_back(candidate.step);
      }
    }
    work_ -= static_cast<std::int64_t>(states_.size() + tail_.size());
    std::size_t b = tail_.size(), best_front = 0, best_tail = 0;
    double best = cut_;
    for (std::size_t a = 0; a < states_.size() && b > 0; ++a) {
      const double room = most_ - 2 * slack_ - (states_[a].weight + rest_weight_[q]);
      while (b > 0 && tail_[b - 1].weight > room) --b;
      if (b == 0) break;
      const double total = states_[a].value + rest_value_[q] + tail_[b - 1].value;
      if (total < best) best = total, best_front = a, best_tail = b - 1;
    }
    if (!(best < cut_)) return;
    follow(order, q - 1, steps_[starts_[q - 1] + best_front]);
    while (last-- > q) {
      const Step step = tail_steps_[tail_starts_[last - q] + best_tail];
      traced_[order[last]] = step.item;
      best_tail = step.before;
    }
    if (!fits(traced_)) return;
    best_ = traced_;
    set_upper(best);
  }

  // Bytes of the lists, also while they are merged.
  double held() const {
    return 8.0 * static_cast<double>(steps_.size()) + 16.0 * static_cast<double>(states_.size()) +
           2.0 * sizeof(Candidate) * static_cast<double>(made_.size());
  }

  // The runs of made_, each by rising weight, to one list that nothing in it dominates.
  void merge() {
    const auto lighter = [](const Candidate& a, const Candidate& b) {
      return a.state.weight != b.state.weight ? a.state.weight < b.state.weight
                                              : a.state.value <= b.state.value;
    };
    if (runs_.size() == 2) prune_run();
    while (runs_.size() > 2) {
      merged_.clear();
      std::size_t kept = 0;
      for (std::size_t r = 0; r + 1 < runs_.size(); r += 2) {
        std::size_t x = runs_[r], y = runs_[r + 1];
        const std::size_t x_end = y, y_end = r + 2 < runs_.size() ? runs_[r + 2] : y;
        double level = kInfinity;
        while (x < x_end || y < y_end) {
          const bool left = y == y_end || (x < x_end && lighter(made_[x], made_[y]));
          const Candidate& next = made_[left ? x++ : y++];
          if (!(next.state.value < level)) continue;
          level = next.state.value;
          merged_.push_back(next);
        }
        runs_[++kept] = merged_.size();
      }
      runs_.resize(kept + 1);
      made_.swap(merged_);
    }
  }

  void prune_run() {
    std::size_t end = 0;
    for (const Candidate& next : made_) {
      if (end > 0 && !(next.state.value < made_[end - 1].state.value)) continue;
      if (end > 0 && next.state.weight == made_[end - 1].state.weight) --end;
      made_[end++] = next;
    }
    made_.resize(end);
  }

  const Classes* classes_ = nullptr;
  double limit_ = 0, sign_ = 1, gap_ = 0;
  std::int64_t work_ = 0;  // left
  double most_ = 0;  // the limit
  double slack_ = 0, noise_ = 0, step_ = 0, weight_unit_ = 1, value_unit_ = 1;
  std::uint32_t broken_ = 0;  // the class whose step did not fit
  double lambda_ = 0, lb_ = 0, ub_ = 0, cut_ = 0, rest_ = 0;
  std::vector<double> lightest_, losses_, nearest_;
  std::vector<Item> items_;
  std::vector<std::size_t> firsts_;
  std::vector<std::uint32_t> hull_, base_, best_, traced_, order_;
  std::vector<Increment> increments_;
  std::vector<double> rest_weight_, rest_value_, gain_, loss_;  // by place in the order
  std::vector<State> states_, tail_;
  std::vector<Candidate> made_, merged_;
  std::vector<std::size_t> runs_, starts_, tail_starts_;
  std::vector<Step> steps_, tail_steps_;
};

}  // namespace slotkern
