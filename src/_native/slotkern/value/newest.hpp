// The sweep of a group if values are constant in time: only a set that contains a slot of the
// current start is new.
//
// The bound of such a set: the weights of the new slot and of the n - 1 heaviest others. A slot
// that cannot beat the incumbent even with the heaviest others of the whole group is never
// inserted. Among slots with equal start, those whose bounds do not beat the incumbent are
// inserted first. If few others remain, each is forced into a knapsack of the live slots; if many
// remain, all are inserted and one knapsack chooses from all live slots. O(live) a start, plus the
// knapsacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "slotkern/base/merge_sort.hpp"
#include "slotkern/value/incumbent.hpp"

namespace slotkern {

template <class Shape, class Source>
class NewestSweep {
  using State = ValueIncumbent<Shape, Source>;
  using Plan = typename State::Plan;
  using NewLiveSlot = LiveSlots::NewLiveSlot;

 public:
  explicit NewestSweep(State& state)
      : state_(state), prepared_(state.prepared), query_(state.query), source_(state.source),
        options_(state.options), w_(state.work), knapsack_(state.knapsack), n_(state.n) {}

  // Sweeps the group's slots in order of start and updates the incumbent.
  void run(const Shape& shape, const Plan& from) {
    if (state_.listed_rows)
      sweep<true>(shape, from);
    else
      sweep<false>(shape, from);
  }

 private:
  static constexpr std::size_t kNone = State::kNone;
  static constexpr std::int64_t kLong = State::kLong;
  static constexpr std::size_t kMaxOneByOne = 3;  // up to this many are forced in one by one
  static std::size_t at(int j) { return State::at(j); }

  template <bool kListed>
  void sweep(const Shape& shape, const Plan& from) {
    Plan plan = from;
    double heaviest = 0;  // weights of the n - 1 heaviest nodes
    if (!state_.tighten_bound(plan, heaviest, shape)) return;
    const double lambda = plan.lambda, budget_charge = lambda * plan.budget;
    double cutoff = state_.cutoff(state_.best, lambda);
    w_.clear();
    next_expiry_ = kInfinity;
    w_.new_slots.clear();
    double now = -kInfinity;  // start of the slots in w_.new_slots
    std::size_t place = plan.memo;
    state_.template for_each_usable<kListed>(shape, plan.least_others, [&](std::size_t row) {
      const Slot& s = prepared_.slots[row];
      const double t = query_.start_in(s), length = shape.length(s);
      double z = 0;
      if (plan.memo != kNone)
        z = w_.memo[place++];
      else if (!source_.value(s, row, t, length, z))
        return state_.fail(row);
      const double key = shape.key(s), weight = z - lambda * key;
      if (t != now) {
        if (!w_.new_slots.empty() && !add_slots(shape, plan, now, cutoff)) return false;
        now = t;
      }
      if (key > plan.budget || !(weight + heaviest + budget_charge > cutoff)) return true;
      if (++state_.effort.steps == kLong) enable_interrupts();
      poll();
      w_.new_slots.push_back({weight, key, z, state_.latest_start(s, length), row,
                            state_.is_anchor(shape, row)});
      return true;
    });
    if (!w_.new_slots.empty() && state_.fault.status == Status::ok && !state_.is_out_of_work())
      add_slots(shape, plan, now, cutoff);
  }

  // Inserts the slots of start t into the live slots, and searches the sets that contain any of
  // them. `cutoff` is what a bound must exceed. Returns false if the work limit is reached.
  bool add_slots(const Shape& shape, const Plan& plan, double t, double& cutoff) {
    if (t > next_expiry_) next_expiry_ = w_.drop_expired(t, [&](std::size_t row) {
      return is_live(query_, shape, prepared_.slots[row], t);
    });
    std::vector<NewLiveSlot>& added = w_.new_slots;
    for (const NewLiveSlot& one : added) next_expiry_ = std::min(next_expiry_, one.latest);
    std::size_t num_hopeful = added.size();
    if (num_hopeful > kMaxOneByOne) num_hopeful = partition_by_bound(plan, cutoff);
    bool within_limit = true;
    if (num_hopeful > kMaxOneByOne) {
      insert_sorted(0, num_hopeful);
      solve_all(shape, plan, t);
      within_limit = update_cutoff(plan, cutoff);
    } else {
      for (std::size_t i = 0; i < num_hopeful && within_limit; ++i) {
        const NewLiveSlot one = added[i];
        if (bound_with(one.weight, plan) > cutoff) {
          solve_newest(shape, plan, one.row, one.key, one.value, t);
          within_limit = update_cutoff(plan, cutoff);
        }
        w_.insert(one.weight, one.key, one.value, one.latest, one.row, one.anchor);
      }
    }
    added.clear();
    return within_limit;
  }

  // Updates the cutoff after a knapsack. Returns false if the work limit is reached.
  bool update_cutoff(const Plan& plan, double& cutoff) {
    cutoff = state_.cutoff(state_.best, plan.lambda);
    if (!state_.is_out_of_work()) return true;
    state_.mark_unproven(plan.bound);
    return false;
  }

  // Bound of the sets of one slot and live others; -inf if there are too few.
  double bound_with(double weight, const Plan& plan) const {
    if (static_cast<int>(w_.row.size()) < n_ - 1) return -kInfinity;
    double top = weight + plan.lambda * plan.budget;
    for (int k = 0; k < n_ - 1; ++k) top += w_.weight[at(k)];
    return top;
  }

  // Inserts those of w_.new_slots whose sets, with the heaviest others of the live and new slots,
  // cannot beat the incumbent. The rest stays in front; returns its size.
  std::size_t partition_by_bound(const Plan& plan, double cutoff) {
    std::vector<NewLiveSlot>& added = w_.new_slots;
    const std::size_t n = at(n_), all = added.size() + w_.row.size();
    // weight sum of the n heaviest; weight of the n-th
    double sum = plan.lambda * plan.budget, last = 0;
    if (all >= n) {
      std::vector<double>& heaviest = w_.new_weights;
      heaviest.clear();
      for (const NewLiveSlot& one : added) heaviest.push_back(one.weight);
      const std::size_t some = std::min(n, heaviest.size());
      std::partial_sort(heaviest.begin(), heaviest.begin() + static_cast<std::ptrdiff_t>(some),
                        heaviest.end(), std::greater<>());
      for (std::size_t k = 0, a = 0, b = 0; k < n; ++k) {
        const bool old = b == some || (a < w_.row.size() && w_.weight[a] >= heaviest[b]);
        last = old ? w_.weight[a++] : heaviest[b++];
        sum += last;
      }
    }
    const auto can_win = [&](const NewLiveSlot& one) {
      return all >= n && sum - last + std::max(last, one.weight) > cutoff;
    };
    std::vector<NewLiveSlot>& others = w_.new_slots_scratch;
    others.clear();
    std::size_t hopeful = 0;
    for (const NewLiveSlot& one : added) {
      if (can_win(one))
        added[hopeful++] = one;
      else
        others.push_back(one);
    }
    std::copy(others.begin(), others.end(), added.begin() + static_cast<std::ptrdiff_t>(hopeful));
    insert_sorted(hopeful, added.size());
    return hopeful;
  }

  // Merges the slots [first, last) of w_.new_slots into the live slots, by falling weight; slots of
  // equal weight keep their order.
  void insert_sorted(std::size_t first, std::size_t last) {
    const std::size_t count = last - first;
    NewLiveSlot* from = w_.new_slots.data() + first;
    if (w_.new_slots_scratch.size() < count) w_.new_slots_scratch.resize(count);
    merge_sort(from, count, w_.new_slots_scratch.data(),
               [](const NewLiveSlot& a, const NewLiveSlot& b) { return a.weight > b.weight; });
    w_.merge(from, count);
  }

  // Finds the best set of all live slots.
  void solve_all(const Shape& shape, const Plan& plan, double t) {
    if (static_cast<int>(w_.row.size()) < n_) return;
    ++state_.effort.subsets;
    const double before = state_.best;
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    knapsack_.limits.allow_table = true;  // as large as the knapsack of choose()
    const bool found = before > -kInfinity
                           ? knapsack_.improve(items, w_.weight.data(), n_, plan.budget,
                                               plan.lambda, {}, before)
                           : knapsack_.solve(items, n_, plan.budget, {}, before, plan.lambda);
    knapsack_.limits.allow_table = false;
    if (!found || !state_.needs_anchor() || state_.holds_anchor()) {
      if (!knapsack_.complete) state_.mark_unproven(knapsack_.bound);
      if (found) state_.accept_set(shape, t, kNone);
      return;
    }
    state_.incumbent = before;
    // The best set has no anchor: force each anchor in, one after the other.
    state_.solve_with_each_anchor(shape, plan, t, [&](int anchor) {
      return ForcedItems{1, {w_.key[at(anchor)], 0}, w_.value[at(anchor)]};
    }, n_ - 1, kNone);
  }

  void solve_newest(const Shape& shape, const Plan& plan, std::size_t row, double key, double z,
                    double t) {
    ++state_.effort.subsets;
    const double before = state_.best;
    const ForcedItems forced{1, {key, 0}, z};
    const Items items{w_.key.data(), w_.value.data(), static_cast<int>(w_.row.size())};
    const bool found = knapsack_.improve(items, w_.weight.data(), n_ - 1, plan.budget,
                                         plan.lambda, forced, before);
    if (!found) {
      if (!knapsack_.complete) state_.mark_unproven(knapsack_.bound);
      return;
    }
    if (!state_.needs_anchor() || state_.is_anchor(shape, row) || state_.holds_anchor()) {
      if (!knapsack_.complete) state_.mark_unproven(knapsack_.bound);
      state_.accept_set(shape, t, row);
      return;
    }
    state_.incumbent = before;
    // The best set has no anchor: force each anchor in, one after the other.
    state_.solve_with_each_anchor(shape, plan, t, [&](int anchor) {
      return ForcedItems{2, {key, w_.key[at(anchor)]}, z + w_.value[at(anchor)]};
    }, n_ - 2, row);
  }

  State& state_;
  const PreparedSlots& prepared_;
  const Query& query_;
  const Source& source_;
  const ValueOptions& options_;
  ValueWorkspace& w_;
  Knapsack& knapsack_;
  const int n_;
  double next_expiry_ = kInfinity;  // no live slot expires before
};

}  // namespace slotkern
