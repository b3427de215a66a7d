// The discovery service of a community: the nodes that a node may contact (it_neighbors in the
// paper).
//
// These are all other nodes, a fresh random sample of them, or the neighbours in a graph; always
// only nodes that are present. Cost: O(number of returned nodes); O(nodes) for all.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "slotkern/community/queue.hpp"
#include "slotkern/community/random.hpp"

namespace slotkern::community {

// The kind of discovery, and the graph if there is one.
struct Neighbours {
  std::uint32_t drawn = 0;  // size of the random sample; 0: all nodes, or the graph if given
  std::vector<std::uint64_t> first;  // graph: offsets into `to`, nodes + 1 entries
  std::vector<NodeId> to;            // graph: the neighbours of all nodes, one node after another
};

// Answers discoveries and keeps the set of present nodes.
class Discovery {
 public:
  Discovery(const Neighbours& neighbours, const std::vector<std::uint8_t>& present,
            std::uint64_t seed)
      : neighbours_(neighbours), present_(present), random_(seed, 0xffffffffu) {
    for (NodeId node = 0; node < present_.size(); ++node)
      if (present_[node]) present_nodes_.push_back(node);
  }

  // Returns nodes to contact; valid until the next call. All nodes are in ascending order.
  std::span<const NodeId> neighbours_of(NodeId node) {
    found_.clear();
    if (!neighbours_.first.empty()) {
      for (auto i = neighbours_.first[node]; i < neighbours_.first[node + 1]; ++i)
        if (present_[neighbours_.to[i]]) found_.push_back(neighbours_.to[i]);
    } else if (neighbours_.drawn > 0 &&
               neighbours_.drawn + present_[node] < present_nodes_.size()) {
      // A partial Fisher-Yates shuffle; the permutation left by the last call is a valid start.
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

  // Adds or removes a node.
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
