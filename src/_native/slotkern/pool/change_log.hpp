// The nodes whose free time has changed, for followers that keep a copy of it.
//
// Off until the first follower comes. Each entry is a node and the version of the pool after the
// change. A follower that has read up to `version` gets the nodes of later entries; if entries that
// it needs were dropped, or if the change concerned all nodes, it must read the whole pool.
//
// Cost: O(1) amortized to record, O(entries) to read. At most 2 * nodes + 64 entries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slotkern {

class ChangeLog {
 public:
  bool is_on() const { return is_on_; }

  // Begins at this version: followers of earlier ones must read the whole pool.
  void restart(std::size_t version, std::size_t nodes) {
    skip_to(version);  // stays valid if there is no memory
    entries_.reserve(2 * nodes + 64);
    is_on_ = true;
  }

  // As restart(), with the memory that there is. Allocates nothing.
  void skip_to(std::size_t version) noexcept {
    entries_.clear();
    first_ = version;
  }

  // Records that the free time of the node has changed. Allocates nothing.
  void record(std::size_t version, std::int32_t node) noexcept {
    if (!is_on_) return;
    if (entries_.capacity() == 0) return skip_to(version);  // a copy without memory
    if (entries_.size() == entries_.capacity()) {
      const auto half = entries_.begin() + static_cast<std::ptrdiff_t>(entries_.size() / 2);
      first_ = half->version;
      const auto rest = std::find_if(half, entries_.end(),
                                     [&](const ChangedNode& e) { return e.version > first_; });
      entries_.erase(entries_.begin(), rest);
    }
    if (entries_.size() < entries_.capacity())
      entries_.push_back({version, node});
    else
      skip_to(version);
  }

  // Writes the nodes that have changed after `version`, ascending. Returns false if the log does
  // not reach back so far.
  bool nodes_since(std::size_t version, std::vector<std::int32_t>& nodes) const {
    nodes.clear();
    if (!is_on_ || version < first_) return false;
    const auto from = std::partition_point(entries_.begin(), entries_.end(),
                                           [&](const ChangedNode& e) { return e.version <= version; });
    for (auto entry = from; entry != entries_.end(); ++entry) nodes.push_back(entry->node);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return true;
  }

 private:
  struct ChangedNode {
    std::size_t version;
    std::int32_t node;
  };

  std::vector<ChangedNode> entries_;  // by version
  std::size_t first_ = 0;       // entries later than this version are complete
  bool is_on_ = false;
};

}  // namespace slotkern
