// Strided view of the user's slot records, and their validation.
//
// check_slots() tests every rule of the slot format in one pass, per-node rules through a table
// from node id to the state of the node: O(m) expected. All later code relies on it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/status.hpp"

namespace slotkern {

inline constexpr std::size_t kLongRunningSlots = std::size_t{1} << 20;  // takes ms to read
inline constexpr std::size_t kSlotsPerPoll = std::size_t{1} << 12;  // per poll()

// Five native fields in records of any size, aligned or not, with positive or negative stride: a
// numpy structured array.
struct SlotView {
  const char* base = nullptr;
  std::ptrdiff_t stride = 0;
  std::ptrdiff_t node = 0, start = 0, end = 0, performance = 0, price = 0;  // offsets in bytes
  std::size_t size = 0;

  template <class T>
  T load(std::size_t row, std::ptrdiff_t offset) const {
    T value;
    std::memcpy(&value, base + static_cast<std::ptrdiff_t>(row) * stride + offset, sizeof value);
    return value;
  }
};

// Maps node ids to consecutive numbers. Dense ids are used as numbers directly; otherwise an
// open-addressing hash table numbers ids in the order of appearance.
class NodeIndex {
 public:
  void reset(std::int32_t largest, std::size_t slots) {
    const auto ids = static_cast<std::size_t>(largest) + 1;
    dense_ = ids <= 2 * slots + 1024;
    size_ = dense_ ? ids : 0;
    cells_.clear();
    if (!dense_) cells_.resize(std::bit_ceil(2 * slots + 64));
  }

  std::size_t size() const { return size_; }
  bool dense() const { return dense_; }  // number(id) == id

  // Returns the number of a node, less than size() afterwards; assigns the next number to a new id.
  std::size_t number(std::int32_t id) {
    auto at = static_cast<std::size_t>(id);
    if (dense_) return at;
    const std::size_t mask = cells_.size() - 1;
    at = (static_cast<std::uint64_t>(at) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (cells_[at].id != -1 && cells_[at].id != id) at = (at + 1) & mask;
    if (cells_[at].id == -1) cells_[at] = {id, static_cast<std::int32_t>(size_++)};
    return static_cast<std::size_t>(cells_[at].number);
  }

 private:
  struct Cell {
    std::int32_t id = -1, number = 0;
  };
  bool dense_ = true;
  std::size_t size_ = 0;
  std::vector<Cell> cells_;
};

struct CheckScratch {
  struct NodeSummary {
    double end = -kInfinity;  // end of the node's previous slot
    double performance = 0;  // 0: no slot yet
    double min_price = kInfinity;
    std::int32_t id = -1;
  };
  NodeIndex index;
  std::vector<NodeSummary> node_summaries;  // [number of the node]
  std::vector<std::int32_t> places;  // [number]: index in PreparedSlots::nodes
  std::size_t new_prices = 0;  // slots whose price is not their node's lowest so far
};

// The five fields of one row.
struct Record {
  std::int32_t node;
  double start, end, performance, price;

  static Record load(const SlotView& view, std::size_t row) {
    return {view.load<std::int32_t>(row, view.node), view.load<double>(row, view.start),
            view.load<double>(row, view.end), view.load<double>(row, view.performance),
            view.load<double>(row, view.price)};
  }
  bool is_valid() const {  // branch-free: every comparison with NaN is false
    constexpr double most = std::numeric_limits<double>::max();
    return (node >= 0) & (std::fabs(start) <= most) & (end > start) & (performance > 0) &
           (performance <= most) & (price >= 0) & (price <= most);
  }
  // The first violated rule of an invalid row, in field order.
  Status fault() const {
    if (node < 0) return Status::node_negative;
    if (!std::isfinite(start)) return Status::start_not_finite;
    if (std::isnan(end)) return Status::end_is_nan;
    if (!(end > start)) return Status::end_not_after_start;
    if (!(performance > 0 && std::isfinite(performance))) return Status::performance_not_positive;
    return Status::price_not_valid;
  }
};

// Returns the first row that violates a rule, tested in this order: its fields, the sort order, the
// rules about one node. On success the scratch holds the state of every node.
inline Fault check_slots(const SlotView& view, CheckScratch& scratch) {
  if (view.size > kLongRunningSlots) enable_interrupts();
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < view.size; ++i)
    largest = std::max(largest, view.load<std::int32_t>(i, view.node));
  scratch.index.reset(largest, view.size);
  scratch.node_summaries.assign(scratch.index.size(), {});
  const auto find_clash = [&view](Status status, std::size_t row) {
    const auto id = view.load<std::int32_t>(row, view.node);
    std::size_t other = row - 1;
    while (view.load<std::int32_t>(other, view.node) != id) --other;
    return Fault{status, row, other};
  };
  const auto scan = [&](auto summary_of) -> Fault {
    double previous_start = -kInfinity;
    std::int32_t previous_node = -1;
    std::size_t new_prices = 0;
    for (std::size_t i = 0; i < view.size;) {
      poll();
      for (const std::size_t end = std::min(view.size, i + kSlotsPerPoll); i < end; ++i) {
        const Record r = Record::load(view, i);
        if (!r.is_valid()) return {r.fault(), i, i};
        if (r.start <= previous_start && (r.start < previous_start || r.node < previous_node))
          return {Status::not_sorted, i, i - 1};
        previous_start = r.start;
        previous_node = r.node;
        CheckScratch::NodeSummary& seen = summary_of(r.node);
        if (r.performance != seen.performance && seen.performance != 0)
          return find_clash(Status::performance_differs, i);
        if (r.start < seen.end) return find_clash(Status::overlap, i);
        new_prices += r.price != seen.min_price;
        seen = {r.end, r.performance, std::min(seen.min_price, r.price), r.node};
      }
    }
    scratch.new_prices = new_prices;
    return {};
  };
  if (scratch.index.dense())
    return scan(
        [seen = scratch.node_summaries.data()](std::int32_t id) -> CheckScratch::NodeSummary& {
          return seen[id];
        });
  return scan([&](std::int32_t id) -> CheckScratch::NodeSummary& {
    const std::size_t number = scratch.index.number(id);
    if (number == scratch.node_summaries.size()) scratch.node_summaries.emplace_back();
    return scratch.node_summaries[number];
  });
}

}  // namespace slotkern
