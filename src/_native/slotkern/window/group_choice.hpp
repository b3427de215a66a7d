// Chooses the cheapest n candidates that obey group rules, at one start (slots/group_rules.hpp).
//
// Input: candidates of one division on different nodes, by (key, node id); the plan of the rules.
// Output: the set of the least sum of keys; of equal sums the one with the lexicographically
// smallest node ids. Two methods:
//
// Greedy, in the order of the candidates, if the plan is a matroid. A set obeys max_parts on nested
// levels if it is independent in a laminar matroid. A set of n touches at least j groups if at most
// n - j of its nodes are not the first of their group. Both together are the sets that can be
// routed through a network with node capacities: each node enters its groups below the finest
// counted level (max_parts each), then leaves as a first of its group (one per group) or through a
// node of capacity n - j, and so on up the counted levels. Such sets are the independent sets of a
// gammoid, so that the greedy choice is exact, and by (key, node id) it also has the smallest ids.
//
// Otherwise a dynamic program over the tree of groups. The state of a group: the number of parts in
// it, and of touched groups of each counted level inside it; its cost: the least sum of keys.
// States of siblings are added (min-plus convolution). For one level with max_groups = k this is
// O(candidates * n * k). Sums are kept in two doubles, so that the order of additions does not
// decide; equal sums are decided by the node ids of the two sets, which is consistent, because the
// smallest node in only one of two sets of equal size decides, whatever is added to both. With one
// level, a group with x parts of the best set is among the k best groups for x parts: otherwise one
// of these is not in the set, and replacing the group by it makes the set better. All other groups
// are left out before, so that O(n * k) groups remain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/group_rules.hpp"

namespace slotkern {

struct GroupCandidate {
  double key, length, end;  // cost order; of the part; the latest end of the part
  std::size_t row;
  std::int32_t node, place;

  bool operator<(const GroupCandidate& other) const {
    return key != other.key ? key < other.key : node < other.node;
  }
};

// Scratch memory of one thread; it only grows.
class GroupChoice {
 public:
  // States of a group beyond which the dynamic program is refused.
  static constexpr std::size_t kMaxStates = std::size_t{1} << 14;

  std::vector<std::uint32_t> chosen;  // indices of the candidates, ascending

  // Returns true if choose() can answer for n parts.
  static bool supports(const GroupRules& rules, std::size_t n) {
    return rules.is_matroid || states_of(rules, n) <= kMaxStates;
  }

  // Writes the best n candidates to `chosen`. Returns false if no set obeys the rules. If not
  // `canonical`, any set of the least sum will do.
  bool choose(const GroupRules& rules, std::size_t n, const std::vector<GroupCandidate>& candidates,
              bool canonical) {
    chosen.clear();
    if (candidates.size() < n) return false;
    for (const GroupLevel& level : rules.levels)
      if (level.min_groups > static_cast<std::int64_t>(n)) return false;
    return rules.is_matroid ? choose_greedy(rules, n, candidates)
                            : choose_by_table(rules, n, candidates, canonical);
  }

 private:
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

  bool choose_greedy(const GroupRules& rules, std::size_t n,
                     const std::vector<GroupCandidate>& candidates) {
    const std::size_t depth = rules.levels.size();
    if (counts_.size() < depth) counts_.resize(depth);
    spare_.resize(depth);
    for (std::size_t l = 0; l < depth; ++l) {
      const GroupLevel& level = rules.levels[l];
      if (counts_[l].size() < level.groups()) counts_[l].resize(level.groups());
      // The number of nodes that need not be the first of their group.
      spare_[l] = static_cast<std::int64_t>(n) - level.min_groups;
    }
    for (std::size_t i = 0; i < candidates.size() && chosen.size() < n; ++i) {
      const std::size_t place = at(candidates[i].place);
      bool fits = true;
      for (std::size_t l = 0; fits && l < depth; ++l) {
        const GroupLevel& level = rules.levels[l];
        const std::int64_t count = counts_[l][at(level.group[place])];
        fits = count < level.max_parts && (count == 0 || spare_[l] > 0);
      }
      if (!fits) continue;
      chosen.push_back(static_cast<std::uint32_t>(i));
      for (std::size_t l = 0; l < depth; ++l)
        spare_[l] -= counts_[l][at(rules.levels[l].group[place])]++ > 0;
    }
    for (const std::uint32_t i : chosen)
      for (std::size_t l = 0; l < depth; ++l)
        counts_[l][at(rules.levels[l].group[at(candidates[i].place)])] = 0;
    return chosen.size() == n;
  }

  // A sum of keys in two doubles: exact as long as their 106 bits suffice.
  struct Sum {
    double high = kInfinity, low = 0;

    Sum operator+(const Sum& other) const {
      const double sum = high + other.high;
      if (std::isinf(sum)) return {sum, 0};
      const double part = sum - high;
      const double error = (high - (sum - part)) + (other.high - part) + (low + other.low);
      const double rounded = sum + error;
      return {rounded, error - (rounded - sum)};
    }
    bool operator<(const Sum& other) const {
      return high != other.high ? high < other.high : low < other.low;
    }
    bool operator==(const Sum&) const = default;
  };

  // A set of candidates: the union of two sets, or the `count` cheapest of a group from `first` on.
  struct Set {
    std::int32_t left, right;  // right < 0: leaf
  };
  struct GroupState {
    Sum sum;
    std::int32_t set = -1;
    std::int32_t least = 0;  // the smallest node id
  };
  // The states of a group or of siblings, by index (see index_of).
  struct GroupTable {
    std::vector<std::uint32_t> used;  // indices of states with a set, ascending
    std::vector<GroupState> states;

    void clear(std::size_t size) {
      if (states.size() < size) states.resize(size);
      for (const std::uint32_t s : used) states[s].set = -1;
      used.clear();
    }
  };

  // The number of parts and of touched groups of each counted level have one digit each in the
  // index of a state.
  static std::size_t states_of(const GroupRules& rules, std::size_t n) {
    double size = static_cast<double>(n) + 1;
    for (const GroupLevel& level : rules.levels)
      if (level.counts_groups()) size *= static_cast<double>(most_groups(level, n)) + 1;
    return size < 0x1p40 ? static_cast<std::size_t>(size) : kMaxStates + 1;
  }
  // Groups beyond this number are not counted, or not allowed.
  static std::size_t most_groups(const GroupLevel& level, std::size_t n) {
    const std::int64_t most =
        level.max_groups < GroupLevel::kAny ? level.max_groups : level.min_groups;
    return static_cast<std::size_t>(std::min<std::int64_t>(most, static_cast<std::int64_t>(n)));
  }

  bool choose_by_table(const GroupRules& rules, std::size_t n,
                       const std::vector<GroupCandidate>& candidates, bool canonical) {
    rules_ = &rules, candidates_ = &candidates, n_ = n, canonical_ = canonical;
    if (!may_fit()) return false;
    const std::size_t depth = rules.levels.size();
    size_ = states_of(rules, n);
    radix_.assign(depth, 0);
    std::size_t step = n + 1;
    for (std::size_t l = 0; l < depth; ++l)
      if (rules.levels[l].counts_groups())
        radix_[l] = step, step *= most_groups(rules.levels[l], n) + 1;
    if (tables_.size() < depth + 2) tables_.resize(depth + 2);
    for (std::size_t l = 0; l <= depth + 1; ++l) tables_[l].clear(size_);
    sets_.clear();
    if (depth == 1 && rules.levels[0].max_groups < static_cast<std::int64_t>(n))
      keep_best_groups();
    else
      sort_by_group();

    // open[l]: the table of the current group of level l; tables_[depth]: of all groups.
    for (std::size_t l = 0; l <= depth; ++l) set_empty(tables_[l]);
    for (std::size_t i = 0; i < order_.size();) {
      poll();
      const std::size_t place = place_of(order_[i]);
      std::size_t end = i + 1;
      while (end < order_.size() && group_of(0, place_of(order_[end])) == group_of(0, place)) ++end;
      fill_leaf(tables_[0], i, end);
      // Close each group that has no further candidates.
      std::size_t l = 0;
      do {
        close(tables_[l], l);
        merge(tables_[l], tables_[l + 1]);
        tables_[l].clear(size_);
        set_empty(tables_[l]);
        ++l;
      } while (l < depth &&
               (end == order_.size() || group_of(l, place_of(order_[end])) != group_of(l, place)));
      i = end;
    }
    const GroupState* best = nullptr;
    for (const std::uint32_t s : tables_[depth].used) {
      if (s % (n + 1) != n || !has_enough_groups(s)) continue;
      const GroupState& state = tables_[depth].states[s];
      if (!best || is_better(state, *best)) best = &state;
    }
    if (!best) return false;
    collect(best->set, chosen);
    std::sort(chosen.begin(), chosen.end());
    return true;
  }

  // A quick necessary test: the k fullest groups of each level hold n candidates.
  bool may_fit() {
    for (std::size_t l = 0; l < rules_->levels.size(); ++l) {
      const GroupLevel& level = rules_->levels[l];
      if (counts_.size() <= l) counts_.resize(l + 1);
      if (counts_[l].size() < level.groups()) counts_[l].resize(level.groups());
      spare_.clear();
      for (const GroupCandidate& c : *candidates_) ++counts_[l][at(level.group[at(c.place)])];
      for (const GroupCandidate& c : *candidates_) {
        std::int64_t& count = counts_[l][at(level.group[at(c.place)])];
        if (count > 0) spare_.push_back(std::min(count, level.max_parts));
        count = 0;
      }
      std::int64_t most = 0;
      const auto groups = std::min<std::int64_t>(level.max_groups,
                                                 static_cast<std::int64_t>(spare_.size()));
      const auto fullest = spare_.begin() + static_cast<std::ptrdiff_t>(groups);
      std::nth_element(spare_.begin(), fullest, spare_.end(), std::greater<>());
      most = std::accumulate(spare_.begin(), fullest, most);
      if (most < static_cast<std::int64_t>(n_)) return false;
    }
    return true;
  }

  std::size_t place_of(std::uint32_t i) const { return at((*candidates_)[i].place); }
  std::int32_t group_of(std::size_t level, std::size_t place) const {
    return rules_->levels[level].group[place];
  }

  // Sorts the candidates by group, coarsest level first; in a group they stay in cost order.
  void sort_by_group() {
    order_.resize(candidates_->size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      const std::size_t p = place_of(a), q = place_of(b);
      for (std::size_t l = rules_->levels.size(); l-- > 0;)
        if (group_of(l, p) != group_of(l, q)) return group_of(l, p) < group_of(l, q);
      return a < b;
    });
  }

  // As sort_by_group() for one level, but leaves out the groups that are in no best set.
  void keep_best_groups() {
    const GroupLevel& level = rules_->levels[0];
    std::vector<std::int64_t>& count = counts_[0];  // first the sizes, then the ends of groups
    for (const GroupCandidate& c : *candidates_) ++count[at(level.group[at(c.place)])];
    groups_.clear();
    std::size_t end = 0;
    for (const GroupCandidate& c : *candidates_) {
      std::int64_t& size = count[at(level.group[at(c.place)])];
      if (size <= 0) continue;
      groups_.push_back({end, static_cast<std::size_t>(size), 0, {0, 0}, 0, false});
      end += static_cast<std::size_t>(size);
      size = -static_cast<std::int64_t>(groups_.size());  // negative: number of the group
    }
    grouped_.resize(end);
    for (GroupRange& group : groups_) group.filled = group.begin;
    for (std::size_t i = 0; i < candidates_->size(); ++i) {
      const std::int64_t number = count[at(level.group[at((*candidates_)[i].place)])];
      grouped_[groups_[static_cast<std::size_t>(-number - 1)].filled++] =
          static_cast<std::uint32_t>(i);
    }
    for (const GroupCandidate& c : *candidates_) count[at(level.group[at(c.place)])] = 0;
    // For each number of parts x the best groups by (sum of the x cheapest, smallest node id).
    const auto most = static_cast<std::size_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(n_), level.max_parts));
    const auto few = static_cast<std::size_t>(level.max_groups);
    ranked_.resize(groups_.size());
    std::iota(ranked_.begin(), ranked_.end(), 0u);
    for (GroupRange& group : groups_) group.least = std::numeric_limits<std::int32_t>::max();
    for (std::size_t x = 0; x < most && !ranked_.empty(); ++x) {
      std::erase_if(ranked_, [&](std::uint32_t g) { return groups_[g].size <= x; });
      for (const std::uint32_t g : ranked_) {
        GroupRange& group = groups_[g];
        const GroupCandidate& next = (*candidates_)[grouped_[group.begin + x]];
        group.sum = group.sum + Sum{next.key, 0};
        group.least = std::min(group.least, next.node);
      }
      const std::size_t best = std::min(few, ranked_.size());
      std::nth_element(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(best),
                       ranked_.end(), [this](std::uint32_t a, std::uint32_t b) {
                         const GroupRange &p = groups_[a], &q = groups_[b];
                         return p.sum == q.sum ? p.least < q.least : p.sum < q.sum;
                       });
      for (std::size_t k = 0; k < best; ++k) groups_[ranked_[k]].kept = true;
    }
    order_.clear();
    for (const GroupRange& group : groups_)
      if (group.kept)
        order_.insert(order_.end(), grouped_.begin() + static_cast<std::ptrdiff_t>(group.begin),
                      grouped_.begin() + static_cast<std::ptrdiff_t>(group.begin + group.size));
  }

  void set_empty(GroupTable& table) {
    table.states[0] = {{0, 0}, add_set(0, -1), std::numeric_limits<std::int32_t>::max()};
    table.used.push_back(0);
  }

  // The n cheapest sets of a group of the finest level.
  void fill_leaf(GroupTable& table, std::size_t begin, std::size_t end) {
    const std::int64_t most = rules_->levels[0].max_parts;
    const auto limit = static_cast<std::int64_t>(std::min(end - begin, n_));
    GroupState state = table.states[0];
    for (std::int64_t x = 1; x <= std::min(limit, most); ++x) {
      const GroupCandidate& next =
          (*candidates_)[order_[begin + static_cast<std::size_t>(x) - 1]];
      state.sum = state.sum + Sum{next.key, 0};
      state.least = std::min(state.least, next.node);
      state.set = add_set(static_cast<std::int32_t>(begin), -1 - static_cast<std::int32_t>(x));
      table.states[static_cast<std::size_t>(x)] = state;
      table.used.push_back(static_cast<std::uint32_t>(x));
    }
  }

  // Applies the bounds of a level to the table of one of its groups, and counts the group.
  void close(GroupTable& table, std::size_t l) {
    const GroupLevel& level = rules_->levels[l];
    std::size_t kept = 0;
    for (std::size_t k = 0; k < table.used.size(); ++k) {
      std::uint32_t s = table.used[k];
      const std::size_t parts = s % (n_ + 1);
      const GroupState state = table.states[s];
      table.states[s].set = -1;
      if (static_cast<std::int64_t>(parts) > level.max_parts) continue;
      // The digit of this level is 0, and no later state of `used` has this new index.
      if (parts > 0) s += static_cast<std::uint32_t>(radix_[l]);
      moved_.push_back({s, state});
      ++kept;
    }
    table.used.clear();
    for (const Moved& moved : moved_) {
      table.states[moved.index] = moved.state;
      table.used.push_back(moved.index);
    }
    moved_.clear();
  }

  // Adds the states of `child` to those of `sum`.
  void merge(const GroupTable& child, GroupTable& sum) {
    GroupTable& out = tables_.back();
    out.clear(size_);
    for (const std::uint32_t a : sum.used)
      for (const std::uint32_t b : child.used) {
        std::uint32_t s;
        if (!add_index(a, b, s)) continue;
        const GroupState &x = sum.states[a], &y = child.states[b];
        GroupState state{x.sum + y.sum, -1, std::min(x.least, y.least)};
        GroupState& best = out.states[s];
        const Set set{x.set, y.set};
        if (best.set < 0) {
          out.used.push_back(s);
        } else if (!(state.sum < best.sum)) {
          if (!canonical_ || !(state.sum == best.sum) || !precedes(state.least, set, best))
            continue;
        }
        state.set = best.set;
        if (state.set < 0) state.set = add_set(set.left, set.right);
        sets_[at(state.set)] = set;
        best = state;
      }
    std::swap(out.states, sum.states);
    std::swap(out.used, sum.used);
  }

  // Adds two indices digit by digit. Returns false if a sum is not allowed.
  bool add_index(std::size_t a, std::size_t b, std::uint32_t& sum) const {
    const std::size_t parts = a % (n_ + 1) + b % (n_ + 1);
    if (parts > n_) return false;
    std::size_t s = parts;
    for (std::size_t l = 0; l < radix_.size(); ++l) {
      if (radix_[l] == 0) continue;
      const GroupLevel& level = rules_->levels[l];
      const std::size_t most = most_groups(level, n_), base = most + 1;
      std::size_t groups = a / radix_[l] % base + b / radix_[l] % base;
      if (groups > most) {
        if (level.max_groups < GroupLevel::kAny) return false;
        groups = most;
      }
      s += groups * radix_[l];
    }
    sum = static_cast<std::uint32_t>(s);
    return true;
  }

  bool has_enough_groups(std::size_t s) const {
    for (std::size_t l = 0; l < radix_.size(); ++l) {
      if (radix_[l] == 0) continue;
      const GroupLevel& level = rules_->levels[l];
      const auto groups = static_cast<std::int64_t>(s / radix_[l] % (most_groups(level, n_) + 1));
      if (groups < level.min_groups) return false;
    }
    return true;
  }

  bool is_better(const GroupState& a, const GroupState& b) {
    if (!(a.sum == b.sum)) return a.sum < b.sum;
    return canonical_ && precedes(a.least, sets_[at(a.set)], b);
  }

  // Compares the node ids of a set with those of a state of equal size.
  bool precedes(std::int32_t least, const Set& set, const GroupState& other) {
    if (least != other.least) return least < other.least;
    ids_.clear(), other_ids_.clear();
    collect_ids(set, ids_), collect_ids(sets_[at(other.set)], other_ids_);
    return ids_ < other_ids_;
  }
  void collect_ids(const Set& set, std::vector<std::int32_t>& ids) {
    members_.clear();
    collect(set, members_);
    for (const std::uint32_t i : members_) ids.push_back((*candidates_)[i].node);
    std::sort(ids.begin(), ids.end());
  }

  std::int32_t add_set(std::int32_t left, std::int32_t right) {
    sets_.push_back({left, right});
    return static_cast<std::int32_t>(sets_.size()) - 1;
  }
  // Appends the candidates of a set. Not recursive on the left, where unions nest.
  void collect(const Set& set, std::vector<std::uint32_t>& out) const {
    const Set* each = &set;
    for (; each->right >= 0; each = &sets_[at(each->left)]) collect(sets_[at(each->right)], out);
    for (std::int32_t k = 0; k < -1 - each->right; ++k)
      out.push_back(order_[at(each->left + k)]);
  }
  void collect(std::int32_t set, std::vector<std::uint32_t>& out) const {
    collect(sets_[at(set)], out);
  }

  struct Moved {
    std::uint32_t index;
    GroupState state;
  };
  // A group in grouped_, with the sum of its x cheapest and their smallest node id.
  struct GroupRange {
    std::size_t begin, size, filled;
    Sum sum;
    std::int32_t least;
    bool kept;
  };

  std::vector<std::vector<std::int64_t>> counts_;  // [level][group], 0 between calls
  std::vector<std::int64_t> spare_;  // [level]; also the counts of one level

  const GroupRules* rules_ = nullptr;
  const std::vector<GroupCandidate>* candidates_ = nullptr;
  std::size_t n_ = 0, size_ = 0;
  bool canonical_ = true;
  std::vector<std::size_t> radix_;  // [level]: unit of its digit, 0: none
  std::vector<std::uint32_t> order_;
  std::vector<GroupTable> tables_;
  std::vector<Moved> moved_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> members_;
  std::vector<std::int32_t> ids_, other_ids_;
  std::vector<GroupRange> groups_;
  std::vector<std::uint32_t> grouped_, ranked_;
};

}  // namespace slotkern
