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
//     coordinated. So starts of slots, middles (s + e - T) / 2, latest starts e - T, the
//     earliest start and deadline - T hold the best of all starts.
// A group's set without a slot of its performance P_k has its true length in a faster group. It
// does no harm where longer is no better; else (`anchored`) sets must hold such a slot. With
// `group_span` they need not, as long as one is live (the papers' procedure): T is the group's.
// Lite (section 4): the n cheapest of each step that the group's time T_k can pay for, valued
// as the window that they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include "live.hpp"
#include "values.hpp"

namespace slotkern {

template <class Shape, class Source>
class ValuedSearch {
 public:
  Effort effort;
  Fault fault;           // a slot that the user's function cannot value
  bool proven = true;
  double best = -kInfinity, bound = -kInfinity;  // totals, larger is better
  double start = 0;
  double span = 0;  // of the group that the best window was found in

  ValuedSearch(const Pool& pool, const Query& query, const Source& source,
               const ValuedOptions& options, ValuedWorkspace& work)
      : pool_(pool), query_(query), source_(source), options_(options), w_(work),
        knapsack_(work.knapsack), n_(static_cast<int>(query.n)) {
    knapsack_.gap = options.gap;
    knapsack_.scale = {};
    knapsack_.scale.integers = std::is_same_v<Source, ColumnSource>;
    knapsack_.limits = options.limits;
    knapsack_.limits.table = false;  // the small knapsacks of a step never need it
    knapsack_.work = 0;
    each_row(pool, [&](std::size_t row) {
      const Slot& s = pool.slots[row];
      dearest_ = std::max(dearest_, kSquare ? s.price : query.volume * s.rate);
    });
  }

  // The rows of the best window are in work.chosen. False if there is none, or at a fault.
  bool run() {
    if (!plan()) return false;
    std::sort(w_.plans.begin(), w_.plans.end(), [](const Plan& a, const Plan& b) {
      return a.bound > b.bound || (a.bound == b.bound && a.group < b.group);
    });
    for (const Plan& plan : w_.plans) {
      const double money = plan.lambda * plan.budget;
      // A Lite window shorter than its group's time may be worth more than the group's bound.
      const bool sure = !options_.lite || !kSquare || !Source::by_length || options_.group_span;
      if (sure && !(plan.bound > knapsack_.beat(n_, best, money))) break;
      if (out_of_work()) {
        give_up(plan.bound);
        break;
      }
      ++effort.groups;
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
      bound = std::max(bound, best);
      if (best > -kInfinity && std::isfinite(best))
        bound = std::max(bound, best + std::max(options_.gap, 1e-12) * std::fabs(best));
    }
    return !w_.chosen.empty();
  }

  // The best total of each step by itself, in work.steps.
  bool record() {
    if (!plan()) return false;
    w_.steps.clear();
    recording_ = true;
    for (const Plan& plan : w_.plans) {
      sweep_steps(shape_of(plan), plan);
      if (fault.status != Status::ok) return false;
    }
    return true;
  }

 private:
  using Plan = ValuedWorkspace::Plan;

  static constexpr bool kSquare = std::is_same_v<Shape, Square>;
  static constexpr bool kAnchored = kSquare && Source::anchored;

  Shape shape_of(const Plan& plan) const {
    if constexpr (kSquare)
      return Square{plan.span, pool_.groups[plan.group].performance};
    else
      return Ragged{query_.volume};
  }

  // Not before there is a window at all, for None means that nothing fits.
  bool out_of_work() const { return best > -kInfinity && knapsack_.work >= options_.limits.work; }

  void give_up(double open) {
    proven = false;
    bound = std::max(bound, open);
  }

  bool fail(std::size_t row) {
    fault = {Status::criterion_failed, pool_.origin(row), 0};
    return false;
  }

  bool possible(const Shape& shape, const Slot& s, std::size_t row) const {
    return live(query_, shape, s, query_.step(s)) && query_.admits(s, row) &&
           s.performance >= shape.performance();
  }

  // The largest double b with total(b) <= budget, but no more than any n keys cost.
  double key_budget(const Shape& shape) const {
    const double cap = (n_ + 1) * dearest_ + 1;
    if constexpr (kSquare) {
      double b = std::min(query_.budget / shape.span, cap);
      while (b > 0 && shape.span * b > query_.budget) b = std::nextafter(b, 0.0);
      while (b < cap && shape.span * std::nextafter(b, kInfinity) <= query_.budget)
        b = std::nextafter(b, kInfinity);
      return b;
    } else {
      return std::min(query_.budget, cap);
    }
  }

  // --- groups and their bounds

  bool plan() {
    w_.plans.clear();
    w_.memo.clear();
    if constexpr (kSquare) {
      detail::bound_groups(pool_, query_, w_.base);
      for (const auto& b : w_.base.bounds)
        if (!(b.total > query_.budget) || options_.lite || options_.group_span)
          w_.plans.push_back({b.span, 0, kInfinity, 0, b.others, b.group, kNone});
    } else {
      w_.plans.push_back({0, 0, kInfinity, 0, pool_.rates_of(n_ - 1u), pool_.groups.size() - 1,
                          kNone});
    }
    double lambda = 0;
    std::size_t kept = 0, from = 0;
    const std::size_t every = std::max<std::size_t>(16, w_.plans.size() / 16);
    int counted = 0;  // nodes that heaviest_ has seen
    for (std::size_t k = 0; k < w_.plans.size(); ++k) {
      Plan plan = w_.plans[k];
      const Shape shape = shape_of(plan);
      if (Source::by_length || k == 0) {
        if (!value_nodes(shape, plan)) return false;
        from = 0;
      }
      list_nodes(from, pool_.groups[plan.group].end);
      from = pool_.groups[plan.group].end;
      const int nodes = static_cast<int>(w_.node_value.size());
      if (nodes < n_) continue;
      plan.budget = key_budget(shape);
      if (!std::is_same_v<Source, MovingFunctionSource>) {
        const Items items{w_.node_key.data(), w_.node_value.data(), nodes};
        // Any multiplier gives a bound; that of a group before is good enough to sort the
        // groups. Under it the heaviest n grow by the nodes that a slower group adds.
        if (kept % every == 0) {
          if (!solve_dual(items, plan, lambda)) continue;
          lambda = plan.lambda;
          heaviest_.clear();
          counted = 0;
        } else if (Source::by_length) {
          heaviest_.clear();
          counted = 0;
        }
        add_heaviest(items, lambda, counted);
        counted = nodes;
        if (kept % every != 0) {
          plan.lambda = lambda;
          plan.bound = lambda * plan.budget;
          for (const double weight : heaviest_) plan.bound += weight;
        }
      }
      w_.plans[kept++] = plan;
    }
    w_.plans.resize(kept);
    return true;
  }

  // Keeps the n largest weights, falling, of the items from `first` on and those before.
  void add_heaviest(const Items& items, double lambda, int first) {
    const std::size_t n = static_cast<std::size_t>(n_);
    for (int i = first; i < items.count; ++i) {
      const double weight = items.value[i] - lambda * items.cost[i];
      if (heaviest_.size() == n && !(weight > heaviest_.back())) continue;
      if (heaviest_.size() == n) heaviest_.pop_back();
      heaviest_.insert(std::upper_bound(heaviest_.begin(), heaviest_.end(), weight,
                                        std::greater<>()),
                       weight);
    }
  }

  bool solve_dual(const Items& items, Plan& plan, double lambda) {
    if (!dual_.solve(items, n_, plan.budget, lambda, -kInfinity,
                     [&](const Side& side) { return side.cost <= plan.budget * (1 + kMargin); }))
      return false;
    plan.bound = dual_.bound + 1e-12 * std::fabs(dual_.bound);
    plan.lambda = dual_.closed ? 0 : dual_.lambda;
    return true;
  }

  // Columns of the usable nodes among from..end, after those before (from = 0: after none).
  void list_nodes(std::size_t from, std::size_t end) {
    if (from == 0) w_.node_value.clear(), w_.node_key.clear();
    for (std::size_t k = from; k < end; ++k) {
      if (w_.best_of[k] == -kInfinity) continue;
      const Node& node = pool_.nodes[k];
      w_.node_value.push_back(w_.best_of[k]);
      w_.node_key.push_back(kSquare ? node.min_price
                                    : query_.volume * (node.min_price / node.performance) *
                                          (1 - kMargin));
    }
  }

  // The best value of every node's slots; -inf where it has none to offer.
  bool value_nodes(const Shape& shape, Plan& plan) {
    const bool known = plan.memo != kNone;
    std::size_t place = known ? plan.memo : w_.memo.size();
    if (Source::dear && 8.0 * static_cast<double>(place) < options_.limits.memory)
      plan.memo = place;
    w_.best_of.assign(pool_.nodes.size(), -kInfinity);
    const auto visit = [&](std::size_t row) {
      const Slot& s = pool_.slots[row];
      double z = 0;
      if (known) {
        z = w_.memo[place++];
      } else {
        if (!source_.most(s, row, shape.length(s), z)) return fail(row);
        if (plan.memo != kNone) w_.memo.push_back(z);
      }
      if (std::isfinite(z)) note(z);
      double& most = w_.best_of[static_cast<std::size_t>(s.place)];
      most = std::max(most, z);
      return true;
    };
    if (Source::by_length) {  // only slots that this group may use
      each_possible(shape, plan.others, visit);
    } else {
      each_row(pool_, [&](std::size_t row) {
        if (query_.admits(pool_.slots[row], row)) visit(row);
      });
    }
    return fault.status == Status::ok;
  }

  // Calls visit(row) for the slots that a window of this shape may use, until it says false.
  template <class Visit>
  void each_possible(const Shape& shape, double others, Visit visit) {
    Sieve sieve = first_sieve(query_, shape);
    // Slots too dear for any window still make a step of Lite, and a group's time possible.
    if (!options_.lite && !options_.group_span)
      sieve.key = key_ceiling(shape.screened(std::min(query_.budget, kMostMoney)), others);
    Shape::screen(pool_).each(pool_.order, sieve, pool_.last_position(), [&](std::size_t row) {
      return !possible(shape, pool_.slots[row], row) || visit(row);
    });
  }

  void note(double z) {
    ValueScale& scale = knapsack_.scale;
    scale.largest = std::max(scale.largest, std::fabs(z));
    if (!Source::by_length) scale.integers &= z == std::floor(z);
  }

  // --- the sweep where values stay

  void sweep_newest(const Shape& shape, const Plan& from) {
    Plan plan = from;
    double heaviest = 0;  // the n - 1 heaviest nodes
    if (!tighten(plan, heaviest, shape)) return;
    const double lambda = plan.lambda, money = lambda * plan.budget;
    double beat = knapsack_.beat(n_, best, money);
    w_.clear();
    double soonest = kInfinity;  // no live slot expires before
    std::size_t place = plan.memo;
    each_possible(shape, plan.others, [&](std::size_t row) {
      const Slot& s = pool_.slots[row];
      const double t = query_.step(s), length = shape.length(s);
      double z = 0;
      if (plan.memo != kNone)
        z = w_.memo[place++];
      else if (!source_.value(s, row, t, length, z))
        return fail(row);
      const double key = shape.key(s), weight = z - lambda * key;
      if (!(weight + heaviest + money > beat)) return true;
      ++effort.steps;
      if (t > soonest) soonest = w_.purge(t, [&](std::size_t row) {
        return live(query_, shape, pool_.slots[row], t);
      });
      const int others = n_ - 1, count = static_cast<int>(w_.row.size());
      if (count >= others) {
        double top = weight + money;
        for (int k = 0; k < others; ++k) top += w_.weight[at(k)];
        if (top > beat) {
          solve_newest(shape, plan, row, key, z, t);
          beat = knapsack_.beat(n_, best, money);
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
    if (Source::by_length && !value_nodes(shape, plan)) return false;
    list_nodes(0, pool_.groups[plan.group].end);
    const Items items{w_.node_key.data(), w_.node_value.data(),
                      static_cast<int>(w_.node_value.size())};
    if (!solve_dual(items, plan, plan.lambda)) return false;
    if (!(plan.bound > knapsack_.beat(n_, best, plan.lambda * plan.budget))) return false;
    heaviest = 0;
    if (n_ > 1) {
      Lagrange::top(items, n_ - 1, 1, plan.lambda, w_.side);
      heaviest = w_.side.weight + 1e-12 * std::fabs(w_.side.weight);
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
    const Slot& s = pool_.slots[row];
    return !kSquare || query_.volume / s.performance == shape.length(s);
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
    constexpr bool bounded = !std::is_same_v<Source, MovingFunctionSource>;
    const bool sieved = bounded && !options_.lite && !recording_;
    const bool keep_anchors = options_.group_span;  // they allow the group's time to others
    Plan plan = from;
    double heaviest = 0;
    if (sieved && !tighten(plan, heaviest, shape)) return;
    const double money = plan.lambda * plan.budget;
    const double beat = knapsack_.beat(n_, best, money);
    w_.candidates.clear();
    each_possible(shape, plan.others, [&](std::size_t row) {
      const Slot& s = pool_.slots[row];
      double z = 0;
      if (!sieved || (keep_anchors && is_anchor(shape, row)) ||
          (source_.most(s, row, shape.length(s), z) &&
                      z - plan.lambda * shape.key(s) + heaviest + money > beat))
        w_.candidates.push_back(row);
      return true;
    });
    if (static_cast<int>(w_.candidates.size()) < n_) return;
    fill_times(shape);
    w_.clear();
    double soonest = kInfinity, lambda = plan.lambda;
    std::size_t next = 0, record = 0;
    for (const double t : w_.times) {
      if (t > soonest) soonest = w_.purge(t, [&](std::size_t row) {
        return live(query_, shape, pool_.slots[row], t);
      });
      incumbent_ = recording_ ? recorded(record, t) : best;
      for (; next < w_.candidates.size() && query_.step(pool_.slots[w_.candidates[next]]) <= t;
           ++next) {
        const std::size_t row = w_.candidates[next];
        const Slot& s = pool_.slots[row];
        const double until = latest(s, shape.length(s));
        w_.append(shape.key(s), until, row, is_anchor(shape, row));
        soonest = std::min(soonest, until);
        if (options_.lite) cheapest_step(shape, plan, t);  // after each slot, as in the papers
      }
      if (!options_.lite)
        solve_step(shape, plan, t, lambda);
      else if (options_.any_start)
        cheapest_step(shape, plan, t);
      if (fault.status != Status::ok) return;
      if (recording_) w_.steps[record].value = incumbent_;
      if (!recording_ && out_of_work()) return give_up(plan.bound);
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
      const Slot& s = pool_.slots[w_.row[j]];
      if (!source_.value(s, w_.row[j], t, shape.length(s), w_.value[j])) return fail(w_.row[j]);
      note(w_.value[j]);
    }
    return true;
  }

  void solve_step(const Shape& shape, const Plan& plan, double t, double& lambda) {
    // A set without a slot of the group's performance is looked at in its own group.
    const auto anchors = std::count(w_.anchor.begin(), w_.anchor.end(), char{1});
    if (anchors == 0 || static_cast<int>(w_.row.size()) < n_) return;
    ++effort.steps;
    if (!value_live(shape, t)) return;
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const double money = lambda * plan.budget;
    Lagrange::top(items, n_, 1, lambda, w_.side);
    double top = w_.side.weight;
    bool anchored = false;
    for (const int j : w_.side.chosen) anchored |= w_.anchor[at(j)] != 0;
    if (!anchored && !options_.group_span) {  // the heaviest one takes the place of the last
      double heaviest = -kInfinity;
      for (std::size_t j = 0; j < w_.row.size(); ++j)
        if (w_.anchor[j]) heaviest = std::max(heaviest, w_.value[j] - lambda * w_.key[j]);
      top += heaviest - w_.side.last;
    }
    if (!(top + money > knapsack_.beat(n_, incumbent_, money))) return;
    if (anchors > kFewAnchors || options_.group_span) {
      ++effort.subsets;
      const bool found = knapsack_.solve(items, n_, plan.budget, {}, incumbent_, lambda);
      if (knapsack_.lambda() > 0) lambda = knapsack_.lambda();
      if (!found || !kAnchored || options_.group_span || any_anchor()) {
        if (!knapsack_.complete) give_up(knapsack_.bound);
        if (found) take(shape, t, kNone);
        return;
      }
    }
    with_anchors(shape, plan, t, [&](int anchor) {
      return Forced{1, {w_.key[at(anchor)], 0}, w_.value[at(anchor)]};
    }, n_ - 1, kNone);
    if (knapsack_.lambda() > 0) lambda = knapsack_.lambda();
  }

  void cheapest_step(const Shape& group, const Plan& plan, double t) {
    if (static_cast<int>(w_.row.size()) < n_) return;
    if (std::count(w_.anchor.begin(), w_.anchor.end(), char{1}) == 0) return;
    ++effort.steps;
    w_.order.resize(w_.row.size());
    for (std::size_t j = 0; j < w_.order.size(); ++j) w_.order[j] = static_cast<int>(j);
    std::partial_sort(w_.order.begin(), w_.order.begin() + n_, w_.order.end(), [&](int a, int b) {
      const double x = w_.key[at(a)], y = w_.key[at(b)];
      return x < y || (x == y && pool_.slots[w_.row[at(a)]].node < pool_.slots[w_.row[at(b)]].node);
    });
    w_.order.resize(at(n_));
    double sum = 0, total = 0, slowest = kInfinity;
    for (const int j : w_.order) {
      sum += w_.key[at(j)];
      slowest = std::min(slowest, pool_.slots[w_.row[at(j)]].performance);
    }
    if (!(sum <= plan.budget)) return;
    Shape shape = group;
    if constexpr (kSquare)
      if (!options_.group_span) shape = Square{query_.volume / slowest, slowest};
    for (const int j : w_.order) {
      const std::size_t row = w_.row[at(j)];
      double z = 0;
      if (!source_.value(pool_.slots[row], row, t, shape.length(pool_.slots[row]), z)) {
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
    w_.times.clear();
    each_row(pool_, [&](std::size_t row) {
      const Slot& s = pool_.slots[row];
      if (!query_.admits(s, row)) return;
      const double first = query_.step(s), length = shape.length(s);
      w_.times.push_back(first);
      if (!options_.any_start || !possible(shape, s, row)) return;
      const double middle = 0.5 * (s.start + s.end - length);
      if (middle > first && live(query_, shape, s, middle)) w_.times.push_back(middle);
      double last = query_.limit(s) - length;
      for (int k = 0; k < 4 && !live(query_, shape, s, last); ++k)  // t + d is rounded
        last = std::nextafter(last, -kInfinity);
      if (last > first && live(query_, shape, s, last)) w_.times.push_back(last);
    });
    std::sort(w_.times.begin(), w_.times.end());
    w_.times.erase(std::unique(w_.times.begin(), w_.times.end()), w_.times.end());
  }

  // --- live slots

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }

  // Up to this time the slot is live for sure; the test itself is on a rounded sum.
  double latest(const Slot& s, double length) const {
    const double limit = query_.limit(s);
    return std::isinf(limit) ? limit : limit - length - 4 * 0x1p-52 * (std::fabs(limit) + length);
  }

  static constexpr double kMostMoney = 1e300;
  static constexpr std::ptrdiff_t kFewAnchors = 2;  // forced in at once
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const Pool& pool_;
  const Query& query_;
  const Source& source_;
  const ValuedOptions& options_;
  ValuedWorkspace& w_;
  Knapsack& knapsack_;
  Lagrange dual_;
  int n_;
  std::vector<double> heaviest_;  // weights, while planning
  double dearest_ = 0;  // largest key
  double incumbent_ = -kInfinity;
  bool recording_ = false, timed_ = false;
};

}  // namespace slotkern
