// The dynamic program over the core of a knapsack with one limit (choice/core.hpp).
//
// It keeps states (items in excess, cost, value). It starts from the n heaviest items and decides
// about one more item a round, from the middle outwards (the core order of Pisinger's minknap).
// Among states with equal item counts, the cheaper and more valuable one dominates. Each exchanged
// item loses |w - w_middle|; a state is pruned if its losses, and those that its balance still
// requires, reach the gap between bound and incumbent.
//
// It adds costs in other orders than the exact test. A set that costs at most `slack` more than the
// capacity is therefore checked by that test. If the test rejects a set that had dominated another
// one by less than the slack, the optimum may be lost: the dynamic program then reports
// has_rounding_conflict and is repeated with a dominance rule that keeps this distance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "slotkern/choice/core.hpp"

namespace slotkern {

class CoreDynamicProgram {
 public:
  std::int64_t states = 0;
  bool has_rounding_conflict = false;

  // Returns true if the search finished within `limit` states (all rounds together) and about
  // `memory` bytes. With Strict, a state dominates only states that cost more by over `slack`.
  template <bool Strict, class Accept>
  bool run(const Core& core, const Tolerance& tolerance, double& best, std::int64_t limit,
           double memory, Accept accept) {
    states = 0;
    has_rounding_conflict = false;
    trace_.assign(1, ExchangeStep{0, -1});
    Rounds<Strict, Accept> rounds{*this, core, tolerance, best, accept};
    if (rounds.evaluate_heaviest()) return true;
    while (rounds.has_items_left()) {
      if (!rounds.decide_next_item(limit)) return false;
      std::swap(now_, next_);
      if (now_.states.empty()) return true;
      states += static_cast<std::int64_t>(now_.states.size() + now_.ends.size() / 4 +
                                          kStatesPerRound);
      const double bytes = 100.0 * static_cast<double>(now_.states.size()) +
                           16.0 * static_cast<double>(trace_.size());
      if (bytes >= memory || trace_.size() >= kMaxSteps) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kMaxSteps = std::size_t{1} << 30;
  static constexpr std::size_t kStatesPerRound = 3;  // fixed cost of a round, in states

  struct BalanceState {
    double cost, value;
    std::int32_t step;
  };
  struct ExchangeStep {  // the item that was exchanged, and the step of the predecessor state
    std::int32_t before, item;
  };

  // The states of all balances (items added minus items removed), each list by rising cost.
  struct StateLists {
    std::vector<BalanceState> states;
    std::vector<std::size_t> ends;
    int low = 0;

    int high() const { return low + static_cast<int>(ends.size()) - 1; }
    void restart(int lowest) { states.clear(), ends.clear(), low = lowest; }
    void close() { ends.push_back(states.size()); }
    std::pair<std::size_t, std::size_t> list(int balance) const {
      if (balance < low || balance > high()) return {0, 0};
      const std::size_t k = static_cast<std::size_t>(balance - low);
      return {k == 0 ? 0 : ends[k - 1], ends[k]};
    }
  };

  static std::size_t at(int j) { return static_cast<std::size_t>(j); }

  // One run of the dynamic program; each round decides about one item, for all balances.
  template <bool Strict, class Accept>
  struct Rounds {
    CoreDynamicProgram& search;
    const Core& core;
    const Tolerance& tolerance;
    double& best;
    Accept& accept;
    int n = core.pick, size = static_cast<int>(core.size());
    int in = n - 1, out = n;  // next item to remove, next item to add
    double heaviest = 0;  // bound of the n heaviest items
    double margin = 0;  // largest loss that a state may have

    struct Move {
      int item;
      bool removes;
      double cost, value;  // cost and value that the move adds
    };

    double loss_in() const { return in >= 0 ? core.weight[at(in)] : kInfinity; }
    double loss_out() const { return out < size ? -core.weight[at(out)] : kInfinity; }
    bool has_items_left() const { return in >= 0 || out < size; }

    // Evaluates the n heaviest items as a set. Returns true if nothing is left to decide.
    bool evaluate_heaviest() {
      BalanceState start{0, core.base_value, 0};
      heaviest = core.offset;
      for (int j = 0; j < n; ++j) {
        start.cost += core.use[0][at(j)];
        start.value += core.value[at(j)];
        heaviest += core.weight[at(j)];
      }
      margin = heaviest - tolerance.cutoff(best);
      offer(start, -1);
      if (n == 0 || n == size || !(margin > 0)) return true;
      search.now_.restart(0);
      search.now_.states.push_back(start);
      search.now_.close();
      return false;
    }

    // Reports a state with n items as a set; `item` is the last exchange, which trace_ lacks.
    void offer(const BalanceState& state, int item) {
      if (!(state.value > best) || !(state.cost <= core.capacity[0] + core.slack[0])) return;
      search.trace_back(state.step, item, n);
      if (accept(search.chosen_)) {
        best = state.value;
        margin = heaviest - tolerance.cutoff(best);
      } else {
        search.has_rounding_conflict = true;
      }
    }

    // Decides about the item whose exchange loses least. Returns false beyond `limit` states.
    bool decide_next_item(std::int64_t limit) {
      const bool removes = loss_in() <= loss_out();
      const int item = removes ? in-- : out++, sign = removes ? -1 : 1;
      const Move move{item, removes, sign * core.use[0][at(item)], sign * core.value[at(item)]};
      const double next_in = loss_in(), next_out = loss_out();
      StateLists &now = search.now_, &next = search.next_;
      next.restart(now.low - removes);
      for (int balance = next.low; balance <= now.high() + !removes; ++balance) {
        poll();
        const double need = balance == 0  ? next_in + next_out
                            : balance > 0 ? balance * next_in
                                          : -balance * next_out;
        // heaviest - weight of the state + need < margin, written in terms of the state's sums
        merge(move, balance, heaviest - core.offset + core.base_value +
                                 (n + balance) * core.middle + need);
        next.close();
        if (search.states + static_cast<std::int64_t>(next.states.size()) > limit) {
          search.states = limit;
          return false;
        }
      }
      return true;
    }

    // Merges the states of a balance without the move and with it by rising cost; prunes dominated
    // states and states whose bound does not exceed most - margin.
    void merge(const Move& move, int balance, double heaviest_bound) {
      const StateLists& now = search.now_;
      StateLists& next = search.next_;
      auto [x, x_end] = now.list(balance);
      auto [y, y_end] = now.list(balance + (move.removes ? 1 : -1));
      std::size_t lag = next.states.size();
      double best_value = -kInfinity;  // largest value at no higher cost
      while (x < x_end || y < y_end) {
        const bool moved =
            x >= x_end || (y < y_end && now.states[y].cost + move.cost < now.states[x].cost);
        BalanceState state = now.states[moved ? y++ : x++];
        if (moved) state.cost += move.cost, state.value += move.value;
        if (Strict)
          for (; lag < next.states.size() &&
                 next.states[lag].cost + core.slack[0] < state.cost; ++lag)
            best_value = std::max(best_value, next.states[lag].value);
        if (state.value <= best_value) continue;
        if (moved && balance == 0) offer(state, move.item);
        if (!(state.value - core.lambda[0] * state.cost > heaviest_bound - margin)) continue;
        if (!Strict) best_value = state.value;
        if (moved) {
          search.trace_.push_back({state.step, move.item});
          state.step = static_cast<std::int32_t>(search.trace_.size() - 1);
        }
        next.states.push_back(state);
      }
    }
  };

  // Reconstructs in chosen_ the set behind a step, after one more exchange of `item` (-1: none).
  void trace_back(std::int32_t step, int item, int n) {
    chosen_.resize(at(n));
    std::iota(chosen_.begin(), chosen_.end(), 0);
    const auto exchange = [&](int j) {
      if (j >= n)
        chosen_.push_back(j);
      else
        chosen_[at(j)] = -1;
    };
    if (item >= 0) exchange(item);
    for (; step > 0; step = trace_[at(step)].before) exchange(trace_[at(step)].item);
    std::erase(chosen_, -1);
  }

  StateLists now_, next_;
  std::vector<ExchangeStep> trace_;
  std::vector<int> chosen_;
};

}  // namespace slotkern
