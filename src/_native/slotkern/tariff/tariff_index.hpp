// The slots of prepared slots by node, and the nodes of a time cell, or group of cells, by rate.
//
// The rate of a node is its lowest price * the mean factor of its tariff / performance; the rate in
// a cell is that of the slots that overlap the cell. A class is a pair of tariff and performance:
// the cost of a part for each unit of price depends on its class and start alone.
// Searches read the nodes of a cell by rising rate and stop early, so a list of the lowest rates is
// built when a search first reads that far (tariff/node_list.hpp).
// update_node() brings the index up to date when slots of a node change.
// Invariant: the slots of a node cost at least the lowest price of the build. A list is then
// complete below its last rate once that rate is below the lowest rate of all further nodes.
// Memory: 32 bytes for each slot, 16 for each node of a list.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/slots/prepared.hpp"
#include "slotkern/tariff/node_list.hpp"
#include "slotkern/tariff/node_tariffs.hpp"
#include "slotkern/tariff/price_table.hpp"

namespace slotkern {

class TariffIndex {
 public:
  struct Class {
    std::size_t tariff;
    double performance, mean_factor;  // a mean of 0 counts as 1
  };
  struct NodeSlot {
    double start, end, price;
    std::size_t row;  // of the origin array
    bool operator==(const NodeSlot&) const = default;
  };

  // Counters of the changes of a cell or group, for caches of what is computed from its list.
  struct Changes {
    std::uint32_t all = 0;
    std::uint32_t growths = 0;  // capacities that grew and rates that fell
    bool operator==(const Changes&) const = default;
  };

  // Builds the index of all prepared slots; `tariffs` must outlive it. The number of cells affects
  // speed only; 0: chosen by the numbers of slots and breakpoints.
  void build(const PreparedSlots& prepared, const NodeTariffs& tariffs, std::size_t cells = 0) {
    std::vector<std::vector<NodeSlot>> slots(prepared.nodes.size());
    std::vector<std::uint32_t> counts(slots.size());
    prepared.each_row([&](std::size_t row) {
      ++counts[static_cast<std::size_t>(prepared.slots[row].place)];
    });
    for (std::size_t place = 0; place < slots.size(); ++place) slots[place].reserve(counts[place]);
    prepared.each_row([&](std::size_t row) {
      const Slot& s = prepared.slots[row];
      slots[static_cast<std::size_t>(s.place)].push_back(
          {s.start, s.end, s.price, prepared.origin(row)});
    });
    build(prepared, tariffs, std::move(slots), cells);
  }

  // Builds the index of the nodes of `prepared` with these slots, by place, in time order.
  void build(const PreparedSlots& prepared, const NodeTariffs& tariffs,
             std::vector<std::vector<NodeSlot>> slots, std::size_t cells = 0) {
    tariffs_ = &tariffs;
    slots_ = std::move(slots);
    make_cells(cells);
    tables_ = std::make_unique<PriceTables[]>(tariffs.all().size());
    make_classes(prepared);
    rank_nodes(prepared);
    cell_lists_ = std::make_unique<NodeList[]>(cells_.size());
    group_lists_ = std::make_unique<NodeList[]>(cells_.groups());
    changes_.assign(cells_.size(), {});
    group_changes_.assign(cells_.groups(), {});
  }

  // Replaces the slots of a node, in time order. Returns false, without a change, if one of them
  // starts before all slots of the build.
  bool update_node(std::size_t place, std::span<const NodeSlot> slots) {
    if (!slots.empty() && slots.front().start < cells_.begin(0)) return false;
    std::vector<NodeSlot>& old = slots_[place];
    const auto [from, since] = std::mismatch(old.begin(), old.end(), slots.begin(), slots.end());
    if (from == old.end() && since == slots.end()) return true;
    const auto backward = std::mismatch(
        old.rbegin(), std::make_reverse_iterator(from), slots.rbegin(),
        std::make_reverse_iterator(since));
    double first = kInfinity, last = -kInfinity;
    const auto cover = [&](const NodeSlot& s) {
      first = std::min(first, s.start), last = std::max(last, s.end);
    };
    std::for_each(from, backward.first.base(), cover);
    std::for_each(since, backward.second.base(), cover);
    slots_count_ = slots_count_ - old.size() + slots.size();
    constexpr std::size_t size = TimeCells::kPerGroup;
    const std::size_t first_cell = cells_.cell_at(first), last_cell = cells_.cell_at(last);
    for (const bool is_new : {false, true}) {
      std::vector<RatedNode>& entries = is_new ? new_entries_ : old_entries_;
      if (is_new) old.assign(slots.begin(), slots.end());
      entries.clear();
      for (std::size_t cell = first_cell; cell <= last_cell; ++cell)
        entries.push_back(entry_in(place, cell, cell));
      for (std::size_t group = first_cell / size; group <= last_cell / size; ++group)
        entries.push_back(entry_in_group(place, group));
    }
    std::size_t k = 0;
    for (std::size_t cell = first_cell; cell <= last_cell; ++cell, ++k)
      if (update(cell_lists_[cell], changes_[cell], old_entries_[k], new_entries_[k]))
        ++group_changes_[cell / size].growths;
    for (std::size_t group = first_cell / size; group <= last_cell / size; ++group, ++k)
      update(group_lists_[group], group_changes_[group], old_entries_[k], new_entries_[k]);
    return true;
  }

  const Ticks& ticks() const { return tariffs_->ticks(); }
  std::size_t nodes() const { return slots_.size(); }
  const TimeCells& cells() const { return cells_; }
  const std::vector<Class>& classes() const { return classes_; }
  const Tariff& tariff_of(const Class& of) const { return tariffs_->all()[of.tariff]; }
  const PriceTable& table(const Class& of, double length) const {
    return tables_[of.tariff].get(tariff_of(of), cells_, length);
  }

  // True if a new index would have smaller cells, because there are many more slots.
  bool has_outgrown_cells() const {
    return cells_.size() < kMaxCells && slots_count_ > 4 * slots_at_build_ + 128;
  }

  // True if a search may take more than a few milliseconds.
  bool is_large() const { return classes_.size() * cells_.size() > std::size_t{1} << 16; }

  // Calls visit(node) for the nodes with a slot in the cell, or group of cells, by rising rate
  // there, until it returns false.
  template <class Visit>
  void each_by_rate(std::size_t cell, Visit visit) const {
    cell_lists_[cell].each(
        [&](std::size_t most) { return list_nodes(most, cell, cell); }, visit);
  }
  template <class Visit>
  void each_by_rate_in_group(std::size_t group, Visit visit) const {
    group_lists_[group].each(
        [&](std::size_t most) {
          return list_nodes(most, group * TimeCells::kPerGroup, last_cell_of(group));
        },
        visit);
  }
  const Changes& changes(std::size_t cell) const { return changes_[cell]; }
  const Changes& group_changes(std::size_t group) const { return group_changes_[group]; }
  // By rank, the place in the order of all nodes by rate.
  std::size_t class_at(std::size_t rank) const { return class_at_[rank]; }
  std::int32_t node_at(std::size_t rank) const { return node_at_[rank]; }
  std::span<const NodeSlot> slots_at(std::size_t rank) const { return slots_[place_at_[rank]]; }
  // Sum of the k lowest rates.
  double min_rate_sum(std::size_t k) const { return rate_sums_[k]; }

 private:
  static constexpr std::size_t kMaxCells = 512;

  void make_cells(std::size_t count) {
    double first = kInfinity, last = -kInfinity;
    std::size_t slots = 0, breakpoints = 0;
    for (const auto& of_node : slots_)
      for (const NodeSlot& s : of_node) {
        ++slots;
        first = std::min(first, s.start);
        last = std::max(last, std::isfinite(s.end) ? s.end : s.start);
      }
    for (const Tariff& tariff : tariffs_->all()) {
      breakpoints = std::max(breakpoints, tariff.breakpoints().size());
      if (breakpoints > 0 && !tariff.breakpoints().empty())
        last = std::max(last, tariff.breakpoints().back());
    }
    slots_count_ = slots_at_build_ = slots;
    if (slots == 0) first = last = 0;
    if (count == 0)
      count = std::clamp<std::size_t>(std::max(slots / 8, breakpoints / 6), 1, kMaxCells);
    cells_ = TimeCells(first, last, count);
  }

  void make_classes(const PreparedSlots& prepared) {
    std::vector<std::pair<std::pair<std::size_t, double>, std::size_t>> keys;
    for (std::size_t place = 0; place < nodes(); ++place)
      keys.push_back({{tariffs_->index_at(place), prepared.nodes[place].performance}, place});
    std::sort(keys.begin(), keys.end());
    classes_.clear(), class_of_.resize(nodes());
    const double from = cells_.begin(0), to = cells_.begin(cells_.size());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (k == 0 || keys[k].first != keys[k - 1].first) {
        const auto [tariff, performance] = keys[k].first;
        const double mean = tariffs_->all()[tariff].mean_factor(from, to);
        const bool usable = mean > 0 && std::isfinite(mean) && std::isfinite(performance / mean);
        classes_.push_back({tariff, performance, usable ? mean : 1});
      }
      class_of_[keys[k].second] = static_cast<std::uint32_t>(classes_.size() - 1);
    }
  }

  void rank_nodes(const PreparedSlots& prepared) {
    by_rate_.clear();
    for (std::size_t place = 0; place < nodes(); ++place)
      by_rate_.push_back({rate_of(place, prepared.nodes[place].min_price),
                          static_cast<std::uint32_t>(place), 0});
    std::sort(by_rate_.begin(), by_rate_.end());
    place_at_.clear(), class_at_.clear(), node_at_.clear();
    rate_sums_.assign(1, 0.0);
    rank_.resize(nodes());
    for (RatedNode& node : by_rate_) {
      const std::uint32_t place = node.rank;
      node.rank = rank_[place] = static_cast<std::uint32_t>(place_at_.size());
      rate_sums_.push_back(rate_sums_.back() + node.rate);
      place_at_.push_back(place);
      node_at_.push_back(prepared.nodes[place].id);
      class_at_.push_back(class_of_[place]);
    }
  }

  double rate_of(std::size_t place, double price) const {
    const Class& of = classes_[class_of_[place]];
    const double rate = price * (of.mean_factor / of.performance);
    return std::isnan(rate) ? 0 : rate;
  }

  std::size_t last_cell_of(std::size_t group) const {
    return std::min((group + 1) * TimeCells::kPerGroup, cells_.size()) - 1;
  }

  // The rate and the capacity of a node in these cells, or kNoSlot.
  RatedNode entry_in(std::size_t place, std::size_t first_cell, std::size_t last_cell) const {
    const std::vector<NodeSlot>& slots = slots_[place];
    const double begin = cells_.begin(first_cell), end = cells_.end(last_cell);
    auto next = slots.begin();
    if (first_cell > 0)
      next = std::partition_point(next, slots.end(),
                                  [begin](const NodeSlot& s) { return s.end <= begin; });
    if (next == slots.end() || !(next->start < end))
      return {kInfinity, rank_[place], RatedNode::kNoSlot};
    double price = kInfinity, longest = 0;
    for (; next != slots.end() && next->start < end; ++next) {
      const double until = next->end + 4 * 0x1p-52 * std::fabs(next->end);
      longest = std::max(longest, until - std::max(next->start, begin));
      price = std::min(price, next->price);
    }
    const double capacity = longest * classes_[class_of_[place]].performance;
    return {rate_of(place, price), rank_[place], round_up(capacity)};
  }
  RatedNode entry_in_group(std::size_t place, std::size_t group) const {
    return entry_in(place, group * TimeCells::kPerGroup, last_cell_of(group));
  }

  NodeList::Prefix list_nodes(std::size_t most, std::size_t first_cell,
                              std::size_t last_cell) const {
    NodeList::Prefix prefix;
    std::vector<RatedNode>& lowest = prefix.nodes;  // a heap, the highest first
    for (const RatedNode& node : by_rate_) {
      const bool is_full = lowest.size() == most;
      if (is_full && lowest.front() < node) {
        prefix.is_complete = false;
        break;
      }
      const RatedNode entry = entry_in(place_at_[node.rank], first_cell, last_cell);
      if (entry.capacity == RatedNode::kNoSlot) continue;
      if (is_full) {
        prefix.is_complete = false;
        if (lowest.front() < entry) continue;
        std::pop_heap(lowest.begin(), lowest.end());
        lowest.back() = entry;
      } else {
        lowest.push_back(entry);
      }
      std::push_heap(lowest.begin(), lowest.end());
    }
    std::sort_heap(lowest.begin(), lowest.end());
    if (!prefix.is_complete) prefix.last = lowest.back();
    return prefix;
  }

  // Replaces the entry of a node in a list; returns true if its capacity grows or its rate
  // falls.
  static bool update(NodeList& list, Changes& changes, const RatedNode& old,
                     const RatedNode& entry) {
    if (old.rate == entry.rate && old.capacity == entry.capacity) return false;
    const bool grows = entry.capacity > old.capacity || entry.rate < old.rate;
    ++changes.all, changes.growths += grows;
    list.replace(old, entry);
    return grows;
  }

  std::size_t slots_count_ = 0, slots_at_build_ = 0;
  const NodeTariffs* tariffs_ = nullptr;
  TimeCells cells_;
  std::unique_ptr<PriceTables[]> tables_;  // [tariff]
  std::vector<Class> classes_;
  std::vector<std::vector<NodeSlot>> slots_;  // [place], in time order
  std::vector<std::uint32_t> class_of_, rank_;  // [place]
  std::vector<std::uint32_t> place_at_, class_at_;  // [rank]
  std::vector<std::int32_t> node_at_;  // [rank]
  std::vector<RatedNode> by_rate_;  // [rank], by the lowest price of the build
  std::vector<double> rate_sums_;
  std::unique_ptr<NodeList[]> cell_lists_, group_lists_;
  std::vector<Changes> changes_, group_changes_;  // [cell], [group]
  std::vector<RatedNode> old_entries_, new_entries_;  // scratch of update_node()
};

}  // namespace slotkern
