// The sweep of a group if values change with time, or for Lite at all starts: every step is
// examined and bounded by itself.
//
// A step is the start of any slot that the request admits, even if that slot is too short for a
// part. With `any_start`, steps are also the times at which the total of a fixed set, piecewise
// linear in its start, may be best. It is concave for dependable and convex for coordinated, so
// starts of slots, middles s + (e - s - T) / 2, latest starts e - T, the earliest and latest start,
// and deadline - T include an optimal start. O(live) a step for its bound, plus the knapsacks of
// the steps that can win. Lite (section 4) at all starts, or recorded, evaluates the n cheapest
// slots of each step, as in value/cheapest_steps.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/value/incumbent.hpp"
#include "slotkern/value/starts.hpp"

namespace slotkern {

template <class Shape, class Source>
class StepSweep {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;

 public:
  explicit StepSweep(State& state)
      : state_(state), prepared_(state.prepared), query_(state.query), source_(state.source),
        options_(state.options), w_(state.work), knapsack_(state.knapsack), n_(state.n) {}

  // Sweeps the group's steps in order of time and updates the incumbent.
  void run(const Shape& shape, const Plan& from) {
    Plan plan = from;
    if (!(state_.listed_rows ? collect_candidates<true>(shape, plan)
                             : collect_candidates<false>(shape, plan)))
      return;
    fill_times(shape);
    w_.clear();
    double next_expiry = kInfinity, anchored = -kInfinity, lambda = plan.lambda;
    const auto drop_expired = [&](double t) {
      if (t > next_expiry) next_expiry = w_.drop_expired(t, [&](std::size_t row) {
        return is_live(query_, shape, prepared_.slots[row], t);
      });
    };
    std::size_t next = 0, record_index = 0;
    const bool is_listed = state_.listed_rows != nullptr;  // few slots: most steps have no window
    for (auto step = w_.times.begin(); step != w_.times.end(); ++step) {
      if (is_listed && (w_.row.empty() || *step > anchored)) {  // no window before the next slot
        if (next == w_.candidates.size()) return;
        step = std::lower_bound(step, w_.times.end(),
                                query_.start_in(prepared_.slots[w_.candidates[next]]));
        if (step == w_.times.end()) return;
      }
      const double t = *step;
      poll();
      if (options_.lite) drop_expired(t);
      const std::size_t before = next;
      state_.incumbent = state_.recording ? recorded_value(record_index, t) : state_.best;
      for (; next < w_.candidates.size(); ++next) {
        const std::size_t row = w_.candidates[next];
        if (query_.start_in(prepared_.slots[row]) > t) break;
        const Slot& s = prepared_.slots[row];
        const double length = shape.length(s), until = state_.latest_start(s, length);
        const bool anchor = state_.is_anchor(shape, row);
        w_.append(shape.key(s), until, s.start, s.end, length, row, anchor);
        next_expiry = std::min(next_expiry, until);
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
      if (state_.fault.status != Status::ok) return;
      if (state_.recording) {
        w_.steps[record_index].value = state_.incumbent;
        if (!state_.proven) return;
      } else if (state_.is_out_of_work()) {
        return state_.mark_unproven(plan.bound);
      }
    }
  }

 private:
  static constexpr std::size_t kNone = State::kNone;
  static constexpr std::int64_t kLong = State::kLong;
  static constexpr bool kSquare = State::kSquare;
  static constexpr std::ptrdiff_t kFewAnchors = 2;  // up to this many are forced in at once
  static std::size_t at(int j) { return State::at(j); }

  // Collects in work.candidates the slots that a window of this group may contain. Returns true if
  // there are at least n.
  template <bool kListed>
  bool collect_candidates(const Shape& shape, Plan& plan) {
    // A slot that cannot win even with the heaviest others of the group is dropped. Lite keeps all,
    // because it selects the cheapest; record mode keeps all, because every step counts.
    const bool is_filtered = source_.bounded && !options_.lite && !state_.recording;
    // anchors permit the group's length to other slots
    const bool keep_anchors = options_.group_span;
    double heaviest = 0;
    if (is_filtered && !state_.tighten_bound(plan, heaviest, shape)) return false;
    const double budget_charge = plan.lambda * plan.budget;
    const double cutoff = state_.cutoff(state_.best, plan.lambda);
    w_.candidates.clear();
    state_.template for_each_usable<kListed>(shape, plan.least_others, [&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      const double key = shape.key(s);
      if (!options_.lite && !keep_anchors && key > plan.budget) return true;
      double z = 0;
      if (!is_filtered || (keep_anchors && state_.is_anchor(shape, row)) ||
          (source_.upper_bound(s, row, shape.length(s), z) &&
           z - plan.lambda * key + heaviest + budget_charge > cutoff))
        w_.candidates.push_back(row);
      return true;
    });
    return static_cast<int>(w_.candidates.size()) >= n_;
  }

  // Returns the value recorded for t in work.steps, sorted by time; inserts an entry if there is
  // none. `index` only moves forward within a group.
  double recorded_value(std::size_t& index, double t) {
    while (index < w_.steps.size() && w_.steps[index].start < t) ++index;
    if (index == w_.steps.size() || w_.steps[index].start != t)
      w_.steps.insert(w_.steps.begin() + static_cast<std::ptrdiff_t>(index), {t, -kInfinity});
    return w_.steps[index].value;
  }

  // Evaluates all live slots at time t. Returns false at a fault.
  bool value_live(const Shape& shape, double t) {
    w_.value.resize(w_.row.size());
    for (std::size_t j = 0; j < w_.row.size(); ++j) {
      const Slot& s = prepared_.slots[w_.row[j]];
      if (!source_.value(s, w_.row[j], t, shape.length(s), w_.value[j]))
        return state_.fail(w_.row[j]);
      state_.record_value(w_.value[j]);
    }
    return true;
  }

  // Cheap bound without selection. For any threshold h, the n largest weights sum to at most n h +
  // the sum of max(0, w - h); with h near the n-th weight, as in the last step, this is nearly
  // tight. One of the slots is an anchor: min(h, its weight) replaces one h. Returns true if the
  // bound cannot beat the incumbent.
  bool cannot_win(const Shape& shape, double t, double lambda, double budget_charge) const {
    if constexpr (requires { Source::between(0.0, 0.0); }) {
      if (!(state_.incumbent > -kInfinity)) return false;
      constexpr std::size_t kLanes = 4;
      const std::size_t count = w_.row.size();
      const double *begin = w_.begin.data(), *end = w_.end.data(),
                   *key = w_.key.data();
      [[maybe_unused]] const double* length = w_.length.data();
      const double h = threshold_;
      const auto weigh = [&](std::size_t j) {  // the same expression as the source's, bit for bit
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
      const double size =
          above + n_ * std::fabs(h) + std::fabs(anchored) + lambda * state_.max_key_sum;
      const double noise = 0x1p-50 * static_cast<double>(count) * size;
      // false for NaN: the step might win
      return top + noise + budget_charge <= state_.cutoff(state_.incumbent, lambda);
    }
    return false;
  }

  // Searches the sets of one step. `lambda`: multiplier of an earlier step; updated.
  void solve_step(const Shape& shape, const Plan& plan, double t, double& lambda) {
    // A set without a slot of the group's performance belongs to another group.
    const auto anchors = std::count(w_.anchor.begin(), w_.anchor.end(), char{1});
    if (anchors == 0 || static_cast<int>(w_.row.size()) < n_) return;
    if (++state_.effort.steps == kLong) enable_interrupts();
    if (cannot_win(shape, t, lambda, lambda * plan.budget)) return;
    if (!value_live(shape, t)) return;
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const double budget_charge = lambda * plan.budget;
    LagrangianBound::select_heaviest(items, n_, 1, lambda, w_.heaviest);
    threshold_ = w_.heaviest.min_weight;
    double top = w_.heaviest.weight;
    bool anchored = false;
    for (const int j : w_.heaviest.chosen) anchored |= w_.anchor[at(j)] != 0;
    if (!anchored && !options_.group_span) {  // the heaviest anchor replaces the last slot
      double heaviest = -kInfinity;
      for (std::size_t j = 0; j < w_.row.size(); ++j)
        if (w_.anchor[j]) heaviest = std::max(heaviest, w_.value[j] - lambda * w_.key[j]);
      top += heaviest - w_.heaviest.min_weight;
    }
    if (!(top + budget_charge > state_.cutoff(state_.incumbent, lambda))) return;
    if (anchors > kFewAnchors || options_.group_span) {
      ++state_.effort.subsets;
      const bool found = knapsack_.solve(items, n_, plan.budget, {}, state_.incumbent, lambda);
      adopt_multiplier(lambda);
      if (!found || !state_.needs_anchor() || options_.group_span || state_.holds_anchor()) {
        if (!knapsack_.complete) state_.mark_unproven(knapsack_.bound);
        if (found) state_.accept_set(shape, t, kNone);
        return;
      }
    }
    state_.solve_with_each_anchor(shape, plan, t, [&](int anchor) {
      return ForcedItems{1, {w_.key[at(anchor)], 0}, w_.value[at(anchor)]};
    }, n_ - 1, kNone);
    adopt_multiplier(lambda);
  }

  // Starts the next step with this step's multiplier, unless a bound would overflow: the costs of
  // steps may differ in scale.
  void adopt_multiplier(double& lambda) const {
    const double own = knapsack_.lambda();
    if (own > 0 && own * state_.max_key_sum < LagrangianBound::kMaxWeight) lambda = own;
  }

  // Lite: evaluates the n cheapest live slots at time t.
  void cheapest_step(const Shape& group, const Plan& plan, double t) {
    if (static_cast<int>(w_.row.size()) < n_) return;
    if (std::count(w_.anchor.begin(), w_.anchor.end(), char{1}) == 0) return;
    if (++state_.effort.steps == kLong) enable_interrupts();
    w_.list_cheapest(prepared_, at(n_));
    double total = 0, slowest = kInfinity;
    for (const int j : w_.order) {
      slowest = std::min(slowest, prepared_.slots[w_.row[at(j)]].performance);
    }
    const double sum =
        exact_sum(w_.order.size(), [this](std::size_t i) { return w_.key[at(w_.order[i])]; });
    if (!(sum <= plan.budget)) return;
    Shape shape = group;
    if constexpr (kSquare)
      if (!options_.group_span) shape = Square{query_.length(slowest), slowest};
    for (const int j : w_.order) {
      const std::size_t row = w_.row[at(j)];
      double z = 0;
      if (!source_.value(prepared_.slots[row], row, t, shape.length(prepared_.slots[row]), z)) {
        state_.fail(row);
        return;
      }
      total += z;
    }
    if (!(total > state_.incumbent)) return;
    knapsack_.best = total;
    knapsack_.chosen = w_.order;
    state_.accept_set(group, t, kNone);
  }

  // Lists all candidate starts, ascending.
  void fill_times(const Shape& shape) {
    if (!options_.any_start && has_times_) return;  // the same for all groups
    has_times_ = true;
    list_starts(prepared_, query_, shape, options_.any_start, w_.times);
  }

  State& state_;
  const PreparedSlots& prepared_;
  const Query& query_;
  const Source& source_;
  const ValueOptions& options_;
  ValueWorkspace& w_;
  Knapsack& knapsack_;
  const int n_;

  double threshold_ = 0;  // n-th largest weight of the last step that was evaluated
  bool has_times_ = false;
};

// Computes the best total of each step.
template <class Shape, class Source>
class StepRecorder {
  using State = ValueIncumbent<Shape, Source>;

 public:
  StepRecorder(const PreparedSlots& prepared, const Query& query, const Source& source,
               const ValueOptions& options, ValueWorkspace& work)
      : state_(prepared, query, source, options, work) {}

  const ValueOutcome& result() const { return state_; }

  // Fills work.steps; stops after the first step that is not proven. Returns false at a fault.
  bool run() {
    state_.list_groups();
    if (!state_.bound_plans()) return false;
    state_.work.steps.clear();
    state_.recording = true;
    for (const auto& plan : state_.work.plans) {
      steps_.run(state_.shape_of(plan), plan);
      if (state_.fault.status != Status::ok) return false;
      if (!state_.proven) break;
    }
    return true;
  }

 private:
  State state_;
  StepSweep<Shape, Source> steps_{state_};
};

}  // namespace slotkern
