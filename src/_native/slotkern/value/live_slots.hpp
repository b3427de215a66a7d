// Data of a search by value: its options, its statistics, the live slots of a step, and scratch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "slotkern/choice/knapsack.hpp"
#include "slotkern/window/best.hpp"

namespace slotkern {

// Columns of the live slots. insert() and merge() keep them by falling weight, for values that are
// constant in time. append() keeps the order of arrival, without weight and value, but with the
// slot's times and the part's length.
struct LiveSlots {
  std::vector<double> weight, key, value, latest, begin, end, length;
  std::vector<std::size_t> row;
  std::vector<char> anchor;  // 1: the slot has the group's own performance

  void clear() {
    weight.clear(), key.clear(), value.clear(), latest.clear();
    begin.clear(), end.clear(), length.clear(), row.clear(), anchor.clear();
  }

  void append(double k, double until, double from, double to, double d, std::size_t at,
              bool anchored) {
    key.push_back(k), latest.push_back(until);
    begin.push_back(from), end.push_back(to), length.push_back(d), row.push_back(at);
    anchor.push_back(static_cast<char>(anchored));
  }

  void insert(double w, double k, double z, double until, std::size_t at, bool anchored) {
    std::size_t j = row.size();
    while (j > 0 && weight[j - 1] < w) --j;
    const auto put = [j](auto& column, auto x) {
      column.insert(column.begin() + static_cast<std::ptrdiff_t>(j), x);
    };
    put(weight, w), put(key, k), put(value, z), put(latest, until), put(row, at);
    put(anchor, static_cast<char>(anchored));
  }

  // A slot to be inserted.
  struct NewLiveSlot {
    double weight, key, value, latest;
    std::size_t row;
    bool anchor;
  };

  // Inserts many slots, given by falling weight, in one pass.
  void merge(const NewLiveSlot* from, std::size_t count) {
    std::size_t old = row.size(), fresh = count, to = old + fresh;
    const auto grow = [to](auto&... columns) { (columns.resize(to), ...); };
    grow(weight, key, value, latest, row, anchor);
    while (fresh > 0) {
      if (old > 0 && weight[old - 1] < from[fresh - 1].weight) {
        --old, --to;
        weight[to] = weight[old], key[to] = key[old], value[to] = value[old];
        latest[to] = latest[old], row[to] = row[old], anchor[to] = anchor[old];
      } else {
        const NewLiveSlot& one = from[--fresh];
        --to;
        weight[to] = one.weight, key[to] = one.key, value[to] = one.value;
        latest[to] = one.latest, row[to] = one.row, anchor[to] = static_cast<char>(one.anchor);
      }
    }
  }

  // Drops the slots that expired before t and are not `live(row)`. Returns the time of the next
  // expiry.
  template <class Live>
  double drop_expired(double t, Live live) {
    double next_expiry = kInfinity;
    std::size_t kept = 0;
    const bool weighed = !weight.empty();
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (t > latest[j] && !live(row[j])) continue;
      if (weighed)
        weight[kept] = weight[j], value[kept] = value[j];
      else
        begin[kept] = begin[j], end[kept] = end[j], length[kept] = length[j];
      key[kept] = key[j], latest[kept] = latest[j], row[kept] = row[j], anchor[kept] = anchor[j];
      next_expiry = std::min(next_expiry, latest[kept++]);
    }
    if (weighed)
      weight.resize(kept), value.resize(kept);
    else
      begin.resize(kept), end.resize(kept), length.resize(kept);
    key.resize(kept), latest.resize(kept), row.resize(kept), anchor.resize(kept);
    return next_expiry;
  }
};

struct ValueOptions {
  bool lite = false, any_start = false;
  bool group_span = false;  // square windows may take as long as a slower live slot would need
  double gap = 0;
  WorkLimits limits;
};

// Statistics: groups swept, steps examined, knapsacks solved, units of work.
struct Effort {
  std::int64_t groups = 0, steps = 0, subsets = 0, work = 0;
};

// The best total at one start, for plots.
struct StepValue {
  double start, value;
};

struct ValueWorkspace : LiveSlots {
  std::vector<NewLiveSlot> new_slots;  // slots of one start
  std::vector<NewLiveSlot> new_slots_scratch;  // for sorting them
  std::vector<double> new_weights;  // the largest first
  Workspace base;
  Knapsack knapsack;
  std::vector<StepValue> steps;  // filled by record()
  // One entry for each usable node, fastest first: its best value and its least key.
  std::vector<double> node_value, node_key;
  std::vector<double> best_value_of_node;  // indexed by place of the node
  struct Plan {
    double span, budget, bound, lambda, least_others;
    std::size_t group;
    // begin of its slots' values in the memo; -1: none
    std::size_t memo = static_cast<std::size_t>(-1);
  };
  // Memoized values of a user's function: all sweeps of a group visit the same slots in the same
  // order.
  std::vector<double> memo;
  std::vector<Plan> plans;
  std::vector<double> subset_key, subset_value;  // columns without the excluded anchors
  std::vector<int> subset, order;
  std::vector<std::size_t> chosen;
  std::vector<double> times;
  std::vector<double> column;  // values of a function that ignores the length
  std::vector<std::size_t> candidates;
  ItemSet heaviest;

  void sort_plans_by_bound() {
    std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
      return a.bound > b.bound || (a.bound == b.bound && a.group < b.group);
    });
  }

  // Lists in `order` the n cheapest live slots, in order of key and node.
  void list_cheapest(const PreparedSlots& prepared, std::size_t n) {
    order.resize(row.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<int>(j);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
                      [&](int a, int b) {
                        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
                        return key[i] < key[j] ||
                               (key[i] == key[j] && prepared.slots[row[i]].node <
                                                        prepared.slots[row[j]].node);
                      });
    order.resize(n);
  }

  // Sorts base.chosen by cost, with the tie-break.
  void sort_chosen_by_cost(const PreparedSlots& prepared) {
    std::sort(base.chosen.begin(), base.chosen.end(), [&](const Entry& a, const Entry& b) {
      return is_cheaper(prepared, a, b);
    });
  }
};

}  // namespace slotkern
