// The discovery service of a community: whom a node may ask (it_neighbors in the paper).
//
// Everybody, a number of random ones drawn anew each time, or the neighbours in a graph; always
// only nodes that are there. O(what is returned).
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "slotkern/community/queue.hpp"
#include "slotkern/community/random.hpp"

namespace slotkern::community {

struct Neighbours {
  std::uint32_t drawn = 0;  // 0: everybody, or the graph where there is one
  std::vector<std::uint64_t> first;  // of a graph: nodes + 1 entries,
  std::vector<NodeId> to;            // and the neighbours of each node
};

class Discovery {
 public:
  Discovery(const Neighbours& neighbours, const std::vector<std::uint8_t>& present,
            std::uint64_t seed)
      : neighbours_(neighbours), present_(present), random_(seed, 0xffffffffu) {
    for (NodeId node = 0; node < present_.size(); ++node)
      if (present_[node]) there_.push_back(node);
  }

  // Valid until the next call. Everybody in ascending order.
  std::span<const NodeId> of(NodeId node) {
    found_.clear();
    if (!neighbours_.first.empty()) {
      for (auto i = neighbours_.first[node]; i < neighbours_.first[node + 1]; ++i)
        if (present_[neighbours_.to[i]]) found_.push_back(neighbours_.to[i]);
    } else if (neighbours_.drawn > 0 && neighbours_.drawn + present_[node] < there_.size()) {
      // The first places of a shuffle: any permutation serves as the last one.
      for (std::uint32_t i = 0; found_.size() < neighbours_.drawn; ++i) {
        const auto size = static_cast<std::uint32_t>(there_.size());
        std::swap(there_[i], there_[i + random_.below(size - i)]);
        if (there_[i] != node) found_.push_back(there_[i]);
      }
    } else {
      for (const NodeId other : there_)
        if (other != node) found_.push_back(other);
    }
    return found_;
  }

  void change(NodeId node, bool joins) {
    present_[node] = joins;
    if (joins)
      there_.push_back(node);
    else
      there_.erase(std::find(there_.begin(), there_.end(), node));
    std::sort(there_.begin(), there_.end());
  }

 private:
  Neighbours neighbours_;
  std::vector<std::uint8_t> present_;
  std::vector<NodeId> there_, found_;
  Random random_;
};

}  // namespace slotkern::community
