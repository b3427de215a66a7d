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
      if (present_[node]) present_nodes_.push_back(node);
  }

  // Valid until the next call. Everybody in ascending order.
  std::span<const NodeId> neighbours_of(NodeId node) {
    found_.clear();
    if (!neighbours_.first.empty()) {
      for (auto i = neighbours_.first[node]; i < neighbours_.first[node + 1]; ++i)
        if (present_[neighbours_.to[i]]) found_.push_back(neighbours_.to[i]);
    } else if (neighbours_.drawn > 0 && neighbours_.drawn + present_[node] < present_nodes_.size()) {
      // The first places of a shuffle: any permutation serves as the last one.
      for (std::uint32_t i = 0; found_.size() < neighbours_.drawn; ++i) {
        const auto size = static_cast<std::uint32_t>(present_nodes_.size());
        std::swap(present_nodes_[i], present_nodes_[i + random_.below(size - i)]);
        if (present_nodes_[i] != node) found_.push_back(present_nodes_[i]);
      }
    } else {
      for (const NodeId other : present_nodes_)
        if (other != node) found_.push_back(other);
    }
    return found_;
  }

  void set_present(NodeId node, bool joins) {
    present_[node] = joins;
    if (joins)
      present_nodes_.push_back(node);
    else
      present_nodes_.erase(std::find(present_nodes_.begin(), present_nodes_.end(), node));
    std::sort(present_nodes_.begin(), present_nodes_.end());
  }

 private:
  Neighbours neighbours_;
  std::vector<std::uint8_t> present_;
  std::vector<NodeId> present_nodes_, found_;
  Random random_;
};

}  // namespace slotkern::community
