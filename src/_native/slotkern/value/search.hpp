// The best window by any additive criterion: n slots of the largest total value within the
// budget, at every step of the sweep (2018, sections 3.2 and 3.3).
//
// Budgets are in units of the key (square: prices, budget / T; ragged: money), so that only the
// budget changes from group to group. Exact, because
//   - a group's Lagrange bound over its nodes (best value, least price) holds for all its steps;
//     groups are swept by falling bound until that is no better than the incumbent;
//   - when values do not move with time, only a set that holds the newest slot is new at a step.
//     Its bound: the weights of that slot and of the n - 1 heaviest others. The knapsack is
//     solved only where this beats the incumbent; a slot that cannot beat it with the heaviest
//     others of the whole group is never kept;
//   - when they move (placement), every step is bounded anew and solved if it can win. A fixed
//     set's total is piecewise linear in its start: concave for dependable, convex for
//     coordinated. So starts of slots, middles s + (e - s - T) / 2, latest starts e - T, the
//     earliest and the latest start and deadline - T hold the best of all starts.
// A group's set without a slot of its performance P_k has its true length in a faster group. It
// does no harm where longer is no better; else (`anchored`) sets must hold such a slot. With
// `group_span` they need not, as long as one is live (the papers' procedure): T is the group's.
// A step of a search where values move is the start of any slot that the request admits, even if
// that slot is too short for a part.
// Lite (section 4): the n cheapest of each step that the group's time T_k can pay for, valued
// as the window that they are. Its steps are the paper's: a slot that fits the group joins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "slotkern/value/groups.hpp"
#include "slotkern/value/starts.hpp"

namespace slotkern {

template <class Shape, class Source>
class ValueSearch : private ValueGroups<Shape, Source> {
  using Groups = ValueGroups<Shape, Source>;

 public:
  using Groups::fault;
  Effort effort;
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals, larger is better
  double start = 0;
  double span = 0;  // of the group that the best window was found in

  ValueSearch(const PreparedSlots& prepared, const Query& query, const Source& source,
               const ValueOptions& options, ValueWorkspace& work)
      : Groups(prepared, query, source, options, work) {}

  // The rows of the best window are in work.chosen. False if there is none, or at a fault.
  bool run() {
    if (!plan()) return false;
    std::sort(w_.plans.begin(), w_.plans.end(), [](const Plan& a, const Plan& b) {
      return a.bound > b.bound || (a.bound == b.bound && a.group < b.group);
    });
    for (const Plan& plan : w_.plans) {
      // A Lite window shorter than its group's time may be worth more than the group's bound.
      const bool sure = !options_.lite || !kSquare || !Source::by_length || options_.group_span;
      if (sure && !(plan.bound > beat(best, plan.lambda))) continue;
      if (out_of_work()) {
        give_up(plan.bound);
        break;
      }
      if (++effort.groups == kLong) expect_long();
      poll();
      const Shape shape = shape_of(plan);
      if (Source::moving || options_.lite)
        sweep_steps(shape, plan);
      else
        sweep_newest(shape, plan);
      if (fault.status != Status::ok) return false;
    }
    effort.work = knapsack_.work;
    if (options_.lite) {
      proven = false;
      bound = kInfinity;
    } else {
      if (std::isfinite(best))
        bound = std::max(bound, best + std::max(std::max(options_.gap, 1e-12) * std::fabs(best),
                                                knapsack_.rounding(n_, best)));
    }
    return !w_.chosen.empty();
  }

  // The best total of each step by itself, in work.steps; up to the first that is not proven.
  bool record() {
    if (!plan()) return false;
    w_.steps.clear();
    recording_ = true;
    for (const Plan& plan : w_.plans) {
      sweep_steps(shape_of(plan), plan);
      if (fault.status != Status::ok) return false;
      if (!proven) break;
    }
    return true;
  }

 private:
  using typename Groups::Plan;
  using Groups::kNone, Groups::kSquare;
  using Groups::prepared_, Groups::query_, Groups::source_, Groups::options_, Groups::w_,
      Groups::knapsack_, Groups::n_;
  using Groups::beat, Groups::each_possible, Groups::fail, Groups::list_nodes, Groups::note,
      Groups::plan, Groups::possible, Groups::reach_, Groups::shape_of, Groups::solve_dual,
      Groups::value_nodes;

  static constexpr bool kAnchored = kSquare && Source::anchored;

  // Not before there is a window at all, for None means that nothing fits.
  bool out_of_work() const { return best > -kInfinity && knapsack_.work >= options_.limits.work; }

  void give_up(double open) {
    proven = false;
    bound = std::max(bound, open);
  }

  // --- the sweep where values stay

  void sweep_newest(const Shape& shape, const Plan& from) {
    Plan plan = from;
    double heaviest = 0;  // the n - 1 heaviest nodes
    if (!tighten(plan, heaviest, shape)) return;
    const double lambda = plan.lambda, money = lambda * plan.budget;
    double least = beat(best, lambda);
    w_.clear();
    double soonest = kInfinity;  // no live slot expires before
    std::size_t place = plan.memo;
    each_possible(shape, plan.least_others, [&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      const double t = query_.start_in(s), length = shape.length(s);
      double z = 0;
      if (plan.memo != kNone)
        z = w_.memo[place++];
      else if (!source_.value(s, row, t, length, z))
        return fail(row);
      const double key = shape.key(s), weight = z - lambda * key;
      if (key > plan.budget || !(weight + heaviest + money > least)) return true;
      if (++effort.steps == kLong) expect_long();
      poll();
      if (t > soonest) soonest = w_.purge(t, [&](std::size_t row) {
        return live(query_, shape, prepared_.slots[row], t);
      });
      const int others = n_ - 1, count = static_cast<int>(w_.row.size());
      if (count >= others) {
        double top = weight + money;
        for (int k = 0; k < others; ++k) top += w_.weight[at(k)];
        if (top > least) {
          solve_newest(shape, plan, row, key, z, t);
          least = beat(best, lambda);
          if (out_of_work()) {
            give_up(plan.bound);
            return false;
          }
        }
      }
      const double until = latest(s, length);
      w_.insert(weight, key, z, until, row, is_anchor(shape, row));
      soonest = std::min(soonest, until);
      return true;
    });
  }

  // The group's own multiplier, and the weights of its n - 1 heaviest nodes under it.
  bool tighten(Plan& plan, double& heaviest, const Shape& shape) {
    // Ragged windows have one group, whose nodes plan() has valued.
    if (kSquare && Source::by_length && !value_nodes(shape, plan)) return false;
    list_nodes(0, prepared_.groups[plan.group].end);
    const Items items{w_.node_key.data(), w_.node_value.data(),
                      static_cast<int>(w_.node_value.size())};
    if (!solve_dual(items, plan, plan.lambda)) return false;
    if (!(plan.bound > beat(best, plan.lambda))) return false;
    heaviest = 0;
    if (n_ > 1) {
      Lagrange::top(items, n_ - 1, 1, plan.lambda, w_.side);
      heaviest = w_.side.weight;
    }
    return true;
  }

  void solve_newest(const Shape& shape, const Plan& plan, std::size_t row, double key, double z,
                    double t) {
    ++effort.subsets;
    const double before = best;
    const Forced forced{1, {key, 0}, z};
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const bool found = knapsack_.improve(items, w_.weight.data(), n_ - 1, plan.budget,
                                         plan.lambda, forced, before);
    if (!found) {
      if (!knapsack_.complete) give_up(knapsack_.bound);
      return;
    }
    if (!kAnchored || is_anchor(shape, row) || any_anchor()) {
      if (!knapsack_.complete) give_up(knapsack_.bound);
      take(shape, t, row);
      return;
    }
    incumbent_ = before;
    // Not one of them has this group's length: force its slots in, one after the other.
    with_anchors(shape, plan, t, [&](int anchor) {
      return Forced{2, {key, w_.key[at(anchor)]}, z + w_.value[at(anchor)]};
    }, n_ - 2, row);
  }

  bool is_anchor(const Shape& shape, std::size_t row) const {
    const Slot& s = prepared_.slots[row];
    return !kSquare || query_.length(s.performance) == shape.length(s);
  }

  bool any_anchor() const {
    for (const int j : knapsack_.chosen)
      if (w_.anchor[at(j)]) return true;
    return false;
  }

  // Solves with every anchor among the live slots forced in, the ones before it left out.
  template <class Force>
  void with_anchors(const Shape& shape, const Plan& plan, double t, Force force, int pick,
                    std::size_t newest) {
    const int count = static_cast<int>(w_.row.size());
    w_.order.clear();  // the items left
    for (int j = 0; j < count; ++j) w_.order.push_back(j);
    for (int anchor = 0; anchor < count && pick >= 0; ++anchor) {
      poll();
      if (!w_.anchor[at(anchor)]) continue;
      std::erase(w_.order, anchor);
      w_.some_key.clear(), w_.some_value.clear(), w_.some = w_.order;
      for (const int j : w_.some) {
        w_.some_key.push_back(w_.key[at(j)]);
        w_.some_value.push_back(w_.value[at(j)]);
      }
      const Items items{w_.some_key.data(), w_.some_value.data(),
                        static_cast<int>(w_.some.size())};
      ++effort.subsets;
      const bool found = knapsack_.solve(items, pick, plan.budget, force(anchor), incumbent_,
                                         plan.lambda);
      if (!knapsack_.complete) give_up(knapsack_.bound);
      if (!found) continue;
      for (int& j : knapsack_.chosen) j = w_.some[at(j)];
      knapsack_.chosen.push_back(anchor);
      take(shape, t, newest);
    }
  }

  // knapsack_.chosen are live slots; `newest` comes on top unless it is kNone.
  void take(const Shape& shape, double t, std::size_t newest) {
    incumbent_ = knapsack_.best;
    if (recording_) return;
    best = knapsack_.best;
    start = t;
    if constexpr (kSquare) span = shape.span;
    w_.chosen.clear();
    for (const int j : knapsack_.chosen) w_.chosen.push_back(w_.row[at(j)]);
    if (newest != kNone) w_.chosen.push_back(newest);
  }

  // --- the sweep where values move, or only the cheapest count

  void sweep_steps(const Shape& shape, const Plan& from) {
    // A slot that cannot win even with the heaviest others of the group is never kept. Lite
    // keeps all, for the cheapest are its choice; so does a record, for every step counts.
    const bool sieved = Source::bounded && !options_.lite && !recording_;
    const bool keep_anchors = options_.group_span;  // they allow the group's time to others
    Plan plan = from;
    double heaviest = 0;
    if (sieved && !tighten(plan, heaviest, shape)) return;
    const double money = plan.lambda * plan.budget;
    const double least = beat(best, plan.lambda);
    w_.candidates.clear();
    each_possible(shape, plan.least_others, [&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      const double key = shape.key(s);
      if (!options_.lite && !keep_anchors && key > plan.budget) return true;
      double z = 0;
      if (!sieved || (keep_anchors && is_anchor(shape, row)) ||
          (source_.upper_bound(s, row, shape.length(s), z) &&
           z - plan.lambda * key + heaviest + money > least))
        w_.candidates.push_back(row);
      return true;
    });
    if (static_cast<int>(w_.candidates.size()) < n_) return;
    fill_times(shape);
    w_.clear();
    double soonest = kInfinity, anchored = -kInfinity, lambda = plan.lambda;
    const auto drop_expired = [&](double t) {
      if (t > soonest) soonest = w_.purge(t, [&](std::size_t row) {
        return live(query_, shape, prepared_.slots[row], t);
      });
    };
    std::size_t next = 0, record = 0;
    for (const double t : w_.times) {
      poll();
      if (options_.lite) drop_expired(t);
      const std::size_t before = next;
      incumbent_ = recording_ ? recorded(record, t) : best;
      for (; next < w_.candidates.size() && query_.start_in(prepared_.slots[w_.candidates[next]]) <= t;
           ++next) {
        const std::size_t row = w_.candidates[next];
        const Slot& s = prepared_.slots[row];
        const double length = shape.length(s), until = latest(s, length);
        const bool anchor = is_anchor(shape, row);
        w_.append(shape.key(s), until, s.start, s.end, length, row, anchor);
        soonest = std::min(soonest, until);
        if (anchor) anchored = std::max(anchored, query_.limit(s));
        if (options_.lite) cheapest_step(shape, plan, t);  // after each slot, as in the papers
      }
      if (!options_.lite) {
        if (t > anchored) continue;  // no slot of the group's performance is live
        drop_expired(t);
        solve_step(shape, plan, t, lambda);
      } else if (options_.any_start && next == before) {  // no slot of the group joins here
        cheapest_step(shape, plan, t);
      }
      if (fault.status != Status::ok) return;
      if (recording_) {
        w_.steps[record].value = incumbent_;
        if (!proven) return;
      } else if (out_of_work()) {
        return give_up(plan.bound);
      }
    }
  }

  // The entry of t in steps, which lie by time; `at` only moves forward within a group.
  double recorded(std::size_t& place, double t) {
    while (place < w_.steps.size() && w_.steps[place].start < t) ++place;
    if (place == w_.steps.size() || w_.steps[place].start != t)
      w_.steps.insert(w_.steps.begin() + static_cast<std::ptrdiff_t>(place), {t, -kInfinity});
    return w_.steps[place].value;
  }

  bool value_live(const Shape& shape, double t) {
    w_.value.resize(w_.row.size());
    for (std::size_t j = 0; j < w_.row.size(); ++j) {
      const Slot& s = prepared_.slots[w_.row[j]];
      if (!source_.value(s, w_.row[j], t, shape.length(s), w_.value[j])) return fail(w_.row[j]);
      note(w_.value[j]);
    }
    return true;
  }

  // Whether a bound without any choice tells already: for every threshold h, the n largest
  // weights sum to at most n h + the sum of max(0, w - h); for the last step's n-th they hardly
  // sum to less. One of them is an anchor's: min(h, w) takes the place of one h.
  bool cannot_win(const Shape& shape, double t, double lambda, double money) const {
    if constexpr (requires { Source::between(0.0, 0.0); }) {
      if (!(incumbent_ > -kInfinity)) return false;
      constexpr std::size_t kLanes = 4;
      const std::size_t count = w_.row.size();
      const double *begin = w_.begin.data(), *end = w_.end.data(),
                   *key = w_.key.data();
      [[maybe_unused]] const double* length = w_.length.data();
      const double h = threshold_;
      const auto weigh = [&](std::size_t j) {  // the source's own expression, bit for bit
        double d = 0;
        if constexpr (kSquare)
          d = shape.span;
        else
          d = length[j];
        return Source::between(t - begin[j], end[j] - t - d) - lambda * key[j];
      };
      double over[kLanes] = {};
      std::size_t j = 0;
      for (; j + kLanes <= count; j += kLanes)
        for (std::size_t k = 0; k < kLanes; ++k) over[k] += std::max(0.0, weigh(j + k) - h);
      for (; j < count; ++j) over[0] += std::max(0.0, weigh(j) - h);
      const double above = (over[0] + over[1]) + (over[2] + over[3]);
      double anchored = h;
      if (kSquare && !options_.group_span) {
        double heaviest = -kInfinity;
        for (j = 0; j < count; ++j)
          if (w_.anchor[j]) heaviest = std::max(heaviest, weigh(j));
        anchored = std::min(h, heaviest);
      }
      const double top = above + (n_ - 1) * h + anchored;
      const double noise = 0x1p-50 * static_cast<double>(count) *
                           (above + n_ * std::fabs(h) + std::fabs(anchored) + lambda * reach_);
      return top + noise + money <= beat(incumbent_, lambda);  // NaN: it might
    }
    return false;
  }

  void solve_step(const Shape& shape, const Plan& plan, double t, double& lambda) {
    // A set without a slot of the group's performance is looked at in its own group.
    const auto anchors = std::count(w_.anchor.begin(), w_.anchor.end(), char{1});
    if (anchors == 0 || static_cast<int>(w_.row.size()) < n_) return;
    if (++effort.steps == kLong) expect_long();
    if (cannot_win(shape, t, lambda, lambda * plan.budget)) return;
    if (!value_live(shape, t)) return;
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const double money = lambda * plan.budget;
    Lagrange::top(items, n_, 1, lambda, w_.side);
    threshold_ = w_.side.last;
    double top = w_.side.weight;
    bool anchored = false;
    for (const int j : w_.side.chosen) anchored |= w_.anchor[at(j)] != 0;
    if (!anchored && !options_.group_span) {  // the heaviest one takes the place of the last
      double heaviest = -kInfinity;
      for (std::size_t j = 0; j < w_.row.size(); ++j)
        if (w_.anchor[j]) heaviest = std::max(heaviest, w_.value[j] - lambda * w_.key[j]);
      top += heaviest - w_.side.last;
    }
    if (!(top + money > beat(incumbent_, lambda))) return;
    if (anchors > kFewAnchors || options_.group_span) {
      ++effort.subsets;
      const bool found = knapsack_.solve(items, n_, plan.budget, {}, incumbent_, lambda);
      adopt_multiplier(lambda);
      if (!found || !kAnchored || options_.group_span || any_anchor()) {
        if (!knapsack_.complete) give_up(knapsack_.bound);
        if (found) take(shape, t, kNone);
        return;
      }
    }
    with_anchors(shape, plan, t, [&](int anchor) {
      return Forced{1, {w_.key[at(anchor)], 0}, w_.value[at(anchor)]};
    }, n_ - 1, kNone);
    adopt_multiplier(lambda);
  }

  // The next step's first multiplier is this one's, unless it lets a bound overflow: the scale of
  // the costs of one step need not be that of the others.
  void adopt_multiplier(double& lambda) const {
    const double own = knapsack_.lambda();
    if (own > 0 && own * reach_ < Lagrange::kMostWeight) lambda = own;
  }

  void cheapest_step(const Shape& group, const Plan& plan, double t) {
    if (static_cast<int>(w_.row.size()) < n_) return;
    if (std::count(w_.anchor.begin(), w_.anchor.end(), char{1}) == 0) return;
    if (++effort.steps == kLong) expect_long();
    w_.order.resize(w_.row.size());
    for (std::size_t j = 0; j < w_.order.size(); ++j) w_.order[j] = static_cast<int>(j);
    std::partial_sort(w_.order.begin(), w_.order.begin() + n_, w_.order.end(), [&](int a, int b) {
      const double x = w_.key[at(a)], y = w_.key[at(b)];
      return x < y ||
             (x == y && prepared_.slots[w_.row[at(a)]].node < prepared_.slots[w_.row[at(b)]].node);
    });
    w_.order.resize(at(n_));
    double sum = 0, total = 0, slowest = kInfinity;
    for (const int j : w_.order) {
      sum += w_.key[at(j)];
      slowest = std::min(slowest, prepared_.slots[w_.row[at(j)]].performance);
    }
    if (!(sum <= plan.budget)) return;
    Shape shape = group;
    if constexpr (kSquare)
      if (!options_.group_span) shape = Square{query_.length(slowest), slowest};
    for (const int j : w_.order) {
      const std::size_t row = w_.row[at(j)];
      double z = 0;
      if (!source_.value(prepared_.slots[row], row, t, shape.length(prepared_.slots[row]), z)) {
        fail(row);
        return;
      }
      total += z;
    }
    if (!(total > incumbent_)) return;
    knapsack_.best = total;
    knapsack_.chosen = w_.order;
    take(group, t, kNone);
  }

  // All starts that are looked at, ascending.
  void fill_times(const Shape& shape) {
    if (!options_.any_start && timed_) return;  // the same for all groups
    timed_ = true;
    list_starts(prepared_, query_, shape, options_.any_start, w_.times);
  }

  // --- live slots

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }

  // Up to this time the slot is live for sure; the test itself is on a rounded sum.
  double latest(const Slot& s, double length) const {
    const double limit = query_.limit(s);
    return std::isinf(limit) ? limit : limit - length - 4 * 0x1p-52 * (std::fabs(limit) + length);
  }

  static constexpr std::ptrdiff_t kFewAnchors = 2;  // forced in at once
  static constexpr std::int64_t kLong = 256;        // steps or groups that take a while

  double incumbent_ = -kInfinity;
  double threshold_ = 0;  // the n-th largest weight of the last step that was looked into
  bool recording_ = false, timed_ = false;
};

}  // namespace slotkern
