// The stages of the cardinality-constrained knapsack, for one limit (choice/knapsack.hpp) and for
// several (choice/multidim_knapsack.hpp): choose exactly n items of largest total value.
//
// Stages; each runs only if the one before has not proven the optimum:
// 1. relax(): multipliers give an upper bound, or a proof that no set fits;
// 2. improve_incumbent(): local search for a first set;
// 3. search_turn(): searches of the core with growing work limits, until one finishes. The core are
//    the items that the bound could not fix; build_core() reduces the problem to it;
// 4. finalize_bound().
//
// Exactness. The exact test fits_exactly() decides about every set that becomes the incumbent;
// plain sums only exclude sets beyond their rounding error. A bound counts as exceeded only beyond
// its own rounding error (noise(), Tolerance). An item is fixed if exchanging it costs at least
// bound - cutoff. So no set better than the incumbent by more than the tolerance is lost, and
// `bound` at the end holds for every set in any order of summation.
//
// Work is counted, not timed, so that results are reproducible. A call that exceeds the work limit
// has complete = false; its bound is still valid.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "slotkern/choice/core.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

// `Solver` derives from this class and has: relax(), improve_incumbent() and search_turn(turn),
// which returns true if the search is over; fits_exactly(ids); begin_core(), value_in_core(i) and
// use_in_core(k, i); original_ids(), empty if items_ are the caller's. `Columns`: the items.
template <class Solver, class Columns>
class StagedKnapsack {
 public:
  double gap = 0;  // relative; values of 0 to 1e-12 count as 1e-12 unless sums are integers
  ValueScale scale;  // range of all values that the searches will see
  WorkLimits limits;

  // Results of the last call.
  double best = -kInfinity;
  double bound = kInfinity;
  bool complete = true;  // true if no set beats `best` by more than the tolerance
  std::vector<int> chosen;  // chosen items without the forced ones
  std::int64_t work = 0;  // units of work, cumulative over all calls

  // The cutoff that a bound of n items must exceed, if the multipliers' charge for any n items is
  // at most `charge`.
  double cutoff(int n, double incumbent, double charge) const {
    Tolerance tolerance = tolerance_of(n, incumbent);
    tolerance.noise = noise(n, charge);
    return tolerance.cutoff(incumbent);
  }

  // noise(): largest rounding error of a bound. rounding(): largest rounding error of the
  // difference of two sums of `pick` values, the larger of size `sum`.
  double noise(int pick, double charge) const {
    return 0x1p-50 * (pick + 64) * ((pick + 2) * scale.max_abs() + charge);
  }
  double rounding(int pick, double sum) const {
    if (has_integer_sums(pick)) return 0;
    return 0x1p-52 * (pick + 2) *
           (scale.has_mixed_signs() ? (pick + 2) * scale.max_abs() : std::fabs(sum));
  }

 protected:
  enum class RelaxationResult { infeasible, optimal, open };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // Starts a call with no set found yet; `base` is the value of the forced items.
  void begin(const Columns& items, int pick, double base, double incumbent) {
    items_ = items;
    pick_ = pick;
    base_ = base;
    best = incumbent;
    bound = kInfinity;
    complete = true;
    found_ = false;
    chosen.clear();
    tolerance_ = tolerance_of(pick, incumbent);
  }

  // Solves the problem of items_, and returns `chosen` in the caller's numbering. Returns true if a
  // set better than the incumbent was found.
  bool solve_reduced() {
    if (pick_ == 0 || pick_ >= items_.count)
      solve_trivial();
    else
      run_stages();
    const std::vector<int>& ids = solver().original_ids();
    if (!ids.empty())
      for (int& i : chosen) i = ids[at(i)];
    return found_;
  }

  // Handles problems with at most one set.
  bool solve_trivial() {
    bound = -kInfinity;
    if (pick_ > items_.count) return false;
    set_.clear();
    for (int i = 0; i < pick_; ++i) set_.push_back(i);
    if (!solver().fits_exactly(set_)) return false;
    const double value = value_of(set_);
    bound = value + rounding(pick_, value);
    return value > best && store(set_, value);
  }

  // An incumbent that is not an integer consists of other items.
  Tolerance tolerance_of(int pick, double incumbent) const {
    const bool exact = has_integer_sums(pick) &&
                       (incumbent == -kInfinity || incumbent == std::floor(incumbent));
    return {exact ? gap : std::max(gap, 1e-12), exact ? 1.0 : 0.0, 0};
  }

  // True if every sum of `pick` values is an integer and exact.
  bool has_integer_sums(int pick) const {
    return scale.all_integer && (pick + 2) * scale.max_abs() < kMaxExactSum;
  }

  bool is_open() const { return bound > tolerance_.cutoff(best); }

  double value_of(const std::vector<int>& ids) const {
    double value = base_;
    for (const int i : ids) value += items_.value[i];
    return value;
  }

  // Makes a set the incumbent if it is better and feasible.
  void offer(const std::vector<int>& ids) {
    const double value = value_of(ids);
    if (value > best && solver().fits_exactly(ids)) store(ids, value);
  }

  // Makes a set of the core the incumbent, except for its value, if it is feasible.
  bool accept(const std::vector<int>& positions) {
    set_ = fixed_;
    for (const int j : positions) set_.push_back(core_.id[at(j)]);
    return solver().fits_exactly(set_) && store(set_, best);
  }

  // Reduction: fixes the items that no better set can exchange, and makes the others the core.
  // `last` is the smallest weight of the n heaviest items, `next` the largest of the others;
  // for_each_item(visit) calls visit(item, is it one of the n heaviest, weight) for all items;
  // arrange(ids) may sort the items of the core.
  template <class ForEach, class Arrange>
  void build_core(double last, double next, ForEach for_each_item, Arrange arrange) {
    const double margin = bound - tolerance_.cutoff(best);
    core_.clear();
    fixed_.clear();
    set_.clear();
    solver().begin_core(0.5 * (last + next));
    for_each_item([&](int i, bool inside, double w) {
      if (inside && w - next >= margin) {
        fixed_.push_back(i);
        core_.base_value += solver().value_in_core(i);
        for (int k = 0; k < core_.limits; ++k)
          core_.capacity[at(k)] -= solver().use_in_core(k, i);
      } else if (inside || last - w < margin) {
        set_.push_back(i);
      }
    });
    arrange(set_);
    for (const int i : set_)
      core_.add_weighed(i, solver().value_in_core(i),
                        [&](int k) { return solver().use_in_core(k, i); });
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    core_.set_offset();
  }

  // Iterated local search: improves the incumbent, then sets a few random swaps away from it, from
  // a fixed seed. It helps if values follow uses closely, so that many sets are nearly optimal.
  // `start` makes the incumbent the current set, `improve(until)` swaps and offers.
  template <class Search, class Start, class Improve>
  void climb(std::int64_t limit, Search& search, Start start, Improve improve) {
    const std::int64_t until = work + limit;
    start();
    while (work < until && is_open()) {
      poll();
      improve(until);
      if (!is_open()) return;
      start();
      search.perturb();
    }
  }

  Columns items_{};
  int pick_ = 0;
  double base_ = 0;
  Tolerance tolerance_;
  bool found_ = false;  // `chosen` holds a set of this call
  Core core_;
  std::vector<int> fixed_, set_;

 private:
  Solver& solver() { return static_cast<Solver&>(*this); }

  void run_stages() {
    const RelaxationResult relaxation = solver().relax();
    if (relaxation == RelaxationResult::infeasible) {
      bound = -kInfinity;
      return;
    }
    if (relaxation == RelaxationResult::open) {
      if (is_open()) solver().improve_incumbent();
      for (int turn = 0; is_open(); ++turn)
        if (solver().search_turn(turn)) break;
    }
    finalize_bound();
  }

  bool store(const std::vector<int>& ids, double value) {
    best = value;
    chosen = ids;
    return found_ = true;
  }

  // Makes `bound` an upper bound on the value of every set, in any order of summation.
  void finalize_bound() {
    const double size = best > -kInfinity ? std::fabs(best) : 0;
    const double error = rounding(pick_, std::max(size, std::fabs(bound)));
    bound += tolerance_.noise + error;
    if (complete && best > -kInfinity)
      bound = std::min(bound, best + std::max(tolerance_.relative * std::fabs(best), error));
    bound = std::max(bound, best);
  }
};

}  // namespace slotkern
