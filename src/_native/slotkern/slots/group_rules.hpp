// Group rules: limits on how the nodes of a window spread over the groups of a level.
//
// A level divides the nodes into groups, such as racks or sites. A rule bounds the number of groups
// that a window touches (max_groups, min_groups), or the number of parts in its fullest group
// (max_parts). compile() turns the rules into a plan for choices (window/group_choice.hpp):
//
// - Rules that allow one group only divide the nodes into *divisions*: all nodes of a window lie in
//   one division, the intersection of one group of each such level. A choice solves each division.
// - The groups of the other levels are split by division. The levels must then be nested, each
//   group of one within a group of the next, so that they form a tree.
//
// Input: the group of each node place of the prepared slots, from 0 on. Cost: O(nodes) per pair of
// levels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace slotkern {

enum class GroupRuleKind : int { max_groups = 0, min_groups = 1, max_parts = 2 };

struct GroupRule {
  GroupRuleKind kind = GroupRuleKind::max_groups;
  const std::int32_t* group = nullptr;  // [node place]; read by compile() only
  std::int64_t bound = 1;  // >= 1
};

// A level of the tree with the bounds of all its rules.
struct GroupLevel {
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  std::vector<std::int32_t> group;  // [node place]
  std::vector<std::int32_t> parent;  // [group]: its group in the next coarser level
  std::int64_t max_parts = kAny, max_groups = kAny, min_groups = 1;

  std::size_t groups() const { return parent.size(); }
  bool counts_groups() const { return max_groups < kAny || min_groups > 1; }
};

class GroupRules {
 public:
  static constexpr std::size_t kNested = ~std::size_t{0};

  std::uint64_t id = 0;  // of the last compile() in this process
  std::vector<std::int32_t> division;  // [node place]; empty: all nodes are one division
  std::size_t divisions = 1;
  std::vector<GroupLevel> levels;  // of the tree, finest first
  // A greedy choice is exact (window/group_choice.hpp): no level bounds max_groups, and no level
  // coarser than one with min_groups bounds max_parts.
  bool is_matroid = true;
  // The rules are max_groups of one group only.
  bool is_within() const { return levels.empty(); }

  // Builds the plan. Returns kNested, or the index of the first rule whose level crosses that of an
  // earlier rule, which is then `crossed`.
  std::size_t compile(const std::vector<GroupRule>& rules, std::size_t nodes,
                      std::size_t& crossed) {
    static std::atomic<std::uint64_t> compiled{0};
    id = ++compiled;
    division.clear(), levels.clear();
    divisions = 1;
    for (const GroupRule& rule : rules)
      if (rule.kind == GroupRuleKind::max_groups && rule.bound <= 1)
        divisions = refine(division, rule.group, nodes);
    std::vector<std::pair<GroupLevel, std::size_t>> found;  // with the index of a rule
    for (std::size_t k = 0; k < rules.size(); ++k) {
      const GroupRule& rule = rules[k];
      if (rule.kind == GroupRuleKind::max_groups && rule.bound <= 1) continue;
      GroupLevel level;
      level.group = division;
      level.parent.resize(refine(level.group, rule.group, nodes));
      std::size_t same = 0;
      while (same < found.size() && found[same].first.group != level.group) ++same;
      if (same == found.size()) found.emplace_back(std::move(level), k);
      GroupLevel& bounded = found[same].first;
      if (rule.kind == GroupRuleKind::max_groups)
        bounded.max_groups = std::min(bounded.max_groups, rule.bound);
      else if (rule.kind == GroupRuleKind::min_groups)
        bounded.min_groups = std::max(bounded.min_groups, rule.bound);
      else
        bounded.max_parts = std::min(bounded.max_parts, rule.bound);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.first.groups() > b.first.groups();
    });
    std::size_t crossing = kNested;
    for (std::size_t i = 0; i + 1 < found.size(); ++i)
      if (!nest(found[i].first, found[i + 1].first.group) && crossing == kNested) {
        crossing = std::max(found[i].second, found[i + 1].second);
        crossed = std::min(found[i].second, found[i + 1].second);
      }
    bool distinct = false;
    is_matroid = true;
    for (auto& [level, index] : found) {
      if (level.max_groups < GroupLevel::kAny || (distinct && level.max_parts < GroupLevel::kAny))
        is_matroid = false;
      distinct = distinct || level.min_groups > 1;
      levels.push_back(std::move(level));
    }
    return crossing;
  }

  std::size_t division_of(std::int32_t place) const {
    if (division.empty()) return 0;
    return static_cast<std::size_t>(division[static_cast<std::size_t>(place)]);
  }

 private:
  // Replaces the partition `group` by its intersection with another. Groups are numbered by their
  // first node, so equal partitions have equal numbers. Returns the number of groups.
  static std::size_t refine(std::vector<std::int32_t>& group, const std::int32_t* other,
                            std::size_t nodes) {
    struct SharedGroup {
      std::uint64_t key;
      std::uint32_t place;
      auto operator<=>(const SharedGroup&) const = default;
    };
    std::vector<SharedGroup> pairs(nodes);
    for (std::size_t i = 0; i < nodes; ++i)
      pairs[i] = {(group.empty() ? 0 : std::uint64_t(std::uint32_t(group[i])) << 32) |
                      std::uint32_t(other[i]),
                  static_cast<std::uint32_t>(i)};
    std::sort(pairs.begin(), pairs.end());
    // The first node of each node's group, then its number.
    std::vector<std::uint32_t> first(nodes);
    for (std::size_t i = 0; i < nodes; ++i)
      first[pairs[i].place] = i > 0 && pairs[i].key == pairs[i - 1].key ? first[pairs[i - 1].place]
                                                                        : pairs[i].place;
    group.resize(nodes);
    std::int32_t count = 0;
    for (std::size_t i = 0; i < nodes; ++i) group[i] = first[i] == i ? count++ : group[first[i]];
    return static_cast<std::size_t>(count);
  }

  // Sets the parents of a level in a coarser one. Returns false if some group has two.
  static bool nest(GroupLevel& level, const std::vector<std::int32_t>& coarser) {
    std::fill(level.parent.begin(), level.parent.end(), -1);
    bool nested = true;
    for (std::size_t i = 0; i < coarser.size(); ++i) {
      std::int32_t& parent = level.parent[static_cast<std::size_t>(level.group[i])];
      nested = nested && (parent < 0 || parent == coarser[i]);
      parent = coarser[i];
    }
    return nested;
  }
};

}  // namespace slotkern
