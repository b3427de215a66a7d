// The nodes of a time cell by rising rate. Only the lowest rates are listed at first.
//
// A search reads the list from the lowest rate on and stops after few nodes. A prefix holds the
// nodes up to its last one in the order (rate, rank): at first the 64 lowest, then 8 times as many,
// and in the fourth prefix all. Each is built when a search reads beyond the prefix before it, also
// by concurrent searches; replace() is not for concurrent use.
// Invariant: a prefix holds every node of the cell that is not after its last one, with its rate
// and capacity, so a shorter prefix is the head of a longer one.
// Cost: O(nodes read) for each(), O(log + nodes after the entry) for replace().
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct RatedNode {
  static constexpr float kNoSlot = -1;

  double rate;
  std::uint32_t rank;
  float capacity;  // upper bound on length * performance of a part that starts in the cell

  bool operator<(const RatedNode& other) const {
    return rate != other.rate ? rate < other.rate : rank < other.rank;
  }
};

class NodeList {
 public:
  struct Prefix {
    std::vector<RatedNode> nodes;  // ascending
    bool is_complete = true;
    RatedNode last{};  // where the prefix ends, if it is not complete
  };

  // Calls visit(node) by rising rate until it returns false. list(most) returns the prefix of the
  // `most` lowest nodes.
  template <class List, class Visit>
  void each(List list, Visit visit) const {
    std::size_t at = 0;
    for (std::size_t k = 0;; ++k) {
      const Prefix& prefix = prefixes_[k].get([&] { return list(max_size(k)); });
      for (; at < prefix.nodes.size(); ++at)
        if (!visit(prefix.nodes[at])) return;
      if (prefix.is_complete) return;
    }
  }

  // Replaces the entry of a node; one without a slot is in no prefix.
  void replace(const RatedNode& old, const RatedNode& entry) {
    for (std::size_t k = 0; k < kPrefixes; ++k) {
      Prefix* const prefix = prefixes_[k].get_if_ready();
      if (!prefix) continue;
      std::vector<RatedNode>& nodes = prefix->nodes;
      const auto holds = [prefix](const RatedNode& node) {
        return node.capacity != RatedNode::kNoSlot &&
               (prefix->is_complete || !(prefix->last < node));
      };
      const auto place_of = [&nodes](const RatedNode& node) {
        return std::lower_bound(nodes.begin(), nodes.end(), node);
      };
      const bool had = holds(old), has = holds(entry);
      if (had && has && old.rate == entry.rate) {
        place_of(old)->capacity = entry.capacity;
        continue;
      }
      if (had) nodes.erase(place_of(old));
      if (has) nodes.insert(place_of(entry), entry);
      // A prefix that has lost half of its nodes is built again when it is next read.
      if (!prefix->is_complete && nodes.size() < max_size(k) / 2) prefixes_[k].drop();
    }
  }

 private:
  static constexpr std::size_t kPrefixes = 4;
  static std::size_t max_size(std::size_t k) {
    return k + 1 < kPrefixes ? std::size_t{64} << (3 * k) : ~std::size_t{0};
  }
  std::array<Lazy<Prefix>, kPrefixes> prefixes_;
};

}  // namespace slotkern
