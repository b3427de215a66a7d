// The slots of prepared slots by node, the nodes by rate under their tariffs, and the longest part
// that can start on each node in each time cell.
//
// The rate of a node is its lowest price * the mean factor of its tariff / performance. A class is
// a pair of tariff and performance: the cost of a part for each unit of price depends on its class
// and start alone. `room` is an upper bound, rounded up to float, so that a search may skip a node
// in a cell only if no part fits. update_node() brings the index up to date when slots of a node
// change. Memory: 4 bytes for each node and cell, 32 for each slot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/slots/prepared.hpp"
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
    std::size_t row;  // in PreparedSlots::slots
  };

  // Builds the index. tariff_of[place] is the tariff of each node of `prepared`, -1 for none.
  // The number of cells affects speed only; 0: chosen by the numbers of slots and breakpoints.
  Status build(const PreparedSlots& prepared, std::vector<Tariff> tariffs,
               std::span<const std::int32_t> tariff_of, std::size_t cells = 0) noexcept {
    return guarded([&] {
      return build_unguarded(prepared, std::move(tariffs), tariff_of, cells);
    });
  }

  // Replaces the slots of a node, in time order; they lie within the time span of the build.
  void update_node(std::size_t place, std::span<const NodeSlot> slots) {
    ++version_;
    slots_[place].assign(slots.begin(), slots.end());
    for (std::size_t cell = 0; cell < cells_.size(); ++cell)
      room_[cell * nodes() + rank_[place]] = kNoRoom;
    for (std::size_t group = 0; group < cells_.groups(); ++group)
      group_room_[group * nodes() + rank_[place]] = kNoRoom;
    fill_room(place);
  }

  // Changes with every update.
  std::uint64_t version() const { return version_; }
  std::size_t nodes() const { return slots_.size(); }
  const TimeCells& cells() const { return cells_; }
  const std::vector<Class>& classes() const { return classes_; }
  const Tariff& tariff_of(const Class& of) const { return tariffs_[of.tariff]; }
  const PriceTable& table(const Class& of, double length) const {
    return tables_[of.tariff].get(tariffs_[of.tariff], cells_, length);
  }

  // True if a search may take more than a few milliseconds.
  bool is_large() const { return classes_.size() * cells_.size() > std::size_t{1} << 16; }

  // By rank, ascending rate.
  double rate(std::size_t rank) const { return rates_[rank]; }
  std::size_t class_at(std::size_t rank) const { return class_at_[rank]; }
  std::span<const NodeSlot> slots_at(std::size_t rank) const { return slots_[place_at_[rank]]; }
  // Sum of the k lowest rates.
  double min_rate_sum(std::size_t k) const { return rate_sums_[k]; }
  // [rank]: upper bound on the length of a part that starts in the cell, or group of cells.
  const float* room(std::size_t cell) const { return room_.data() + cell * nodes(); }
  const float* group_room(std::size_t group) const { return group_room_.data() + group * nodes(); }

 private:
  static constexpr float kNoRoom = -1;
  static constexpr std::size_t kMaxCells = 512;

  Status build_unguarded(const PreparedSlots& prepared, std::vector<Tariff> tariffs,
                         std::span<const std::int32_t> tariff_of, std::size_t cells) {
    if (tariff_of.size() != prepared.nodes.size()) return Status::request_not_valid;
    const auto none = static_cast<std::int32_t>(tariffs.size());
    for (const std::int32_t tariff : tariff_of)
      if (tariff < -1 || tariff >= none) return Status::request_not_valid;
    tariffs_ = std::move(tariffs);
    tariffs_.emplace_back();  // the tariff of nodes that have none
    ++version_;
    slots_.assign(prepared.nodes.size(), {});
    prepared.each_row([&](std::size_t row) {
      const Slot& s = prepared.slots[row];
      slots_[static_cast<std::size_t>(s.place)].push_back({s.start, s.end, s.price, row});
    });
    make_cells(cells);
    tables_ = std::make_unique<PriceTables[]>(tariffs_.size());
    make_classes(prepared, tariff_of);
    rank_nodes(prepared);
    room_.assign(cells_.size() * nodes(), kNoRoom);
    group_room_.assign(cells_.groups() * nodes(), kNoRoom);
    for (std::size_t place = 0; place < nodes(); ++place) {
      poll();
      fill_room(place);
    }
    return Status::ok;
  }

  void make_cells(std::size_t count) {
    double first = kInfinity, last = -kInfinity;
    std::size_t slots = 0, breakpoints = 0;
    for (const auto& of_node : slots_)
      for (const NodeSlot& s : of_node) {
        ++slots;
        first = std::min(first, s.start);
        last = std::max(last, std::isfinite(s.end) ? s.end : s.start);
      }
    for (const Tariff& tariff : tariffs_) {
      breakpoints = std::max(breakpoints, tariff.breakpoints().size());
      if (breakpoints > 0 && !tariff.breakpoints().empty())
        last = std::max(last, tariff.breakpoints().back());
    }
    if (slots == 0) first = last = 0;
    if (count == 0)
      count = std::clamp<std::size_t>(std::max(slots / 32, breakpoints / 24), 1, kMaxCells);
    cells_ = TimeCells(first, last, count);
  }

  void make_classes(const PreparedSlots& prepared, std::span<const std::int32_t> tariff_of) {
    std::vector<std::pair<std::pair<std::size_t, double>, std::size_t>> keys;
    for (std::size_t place = 0; place < nodes(); ++place) {
      const std::size_t tariff = tariff_of[place] < 0 ? tariffs_.size() - 1
                                                      : static_cast<std::size_t>(tariff_of[place]);
      keys.push_back({{tariff, prepared.nodes[place].performance}, place});
    }
    std::sort(keys.begin(), keys.end());
    classes_.clear(), class_of_.resize(nodes());
    const double from = cells_.begin(0), to = cells_.begin(cells_.size());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (k == 0 || keys[k].first != keys[k - 1].first) {
        const auto [tariff, performance] = keys[k].first;
        const double mean = tariffs_[tariff].mean_factor(from, to);
        classes_.push_back({tariff, performance, mean > 0 && std::isfinite(mean) ? mean : 1});
      }
      class_of_[keys[k].second] = static_cast<std::uint32_t>(classes_.size() - 1);
    }
  }

  void rank_nodes(const PreparedSlots& prepared) {
    std::vector<std::pair<double, std::uint32_t>> ranked;
    for (std::size_t place = 0; place < nodes(); ++place) {
      const Class& of = classes_[class_of_[place]];
      const double rate = prepared.nodes[place].min_price * (of.mean_factor / of.performance);
      ranked.push_back({std::isnan(rate) ? 0 : rate, static_cast<std::uint32_t>(place)});
    }
    std::sort(ranked.begin(), ranked.end());
    rates_.clear(), place_at_.clear(), class_at_.clear();
    rate_sums_.assign(1, 0.0);
    rank_.resize(nodes());
    for (const auto& [rate, place] : ranked) {
      rank_[place] = static_cast<std::uint32_t>(rates_.size());
      rates_.push_back(rate);
      rate_sums_.push_back(rate_sums_.back() + rate);
      place_at_.push_back(place);
      class_at_.push_back(class_of_[place]);
    }
  }

  void fill_room(std::size_t place) {
    for (const NodeSlot& s : slots_[place]) {
      const double end = s.end + 4 * 0x1p-52 * std::fabs(s.end);
      for (std::size_t cell = cells_.cell_at(s.start); cell < cells_.size(); ++cell) {
        const double begin = cells_.begin(cell);
        if (cell > 0 && !(begin < s.end)) break;
        float& room = room_[cell * nodes() + rank_[place]];
        room = std::max(room, round_up(end - std::max(s.start, begin)));
        const std::size_t group = cell / TimeCells::kPerGroup;
        float& most = group_room_[group * nodes() + rank_[place]];
        most = std::max(most, room);
      }
    }
  }

  std::uint64_t version_ = 0;
  std::vector<Tariff> tariffs_;
  TimeCells cells_;
  std::unique_ptr<PriceTables[]> tables_;  // [tariff]
  std::vector<Class> classes_;
  std::vector<std::vector<NodeSlot>> slots_;  // [place], in time order
  std::vector<std::uint32_t> class_of_, rank_;  // [place]
  std::vector<std::uint32_t> place_at_, class_at_;  // [rank]
  std::vector<double> rates_, rate_sums_;
  std::vector<float> room_, group_room_;  // [cell][rank]; [group][rank]
};

}  // namespace slotkern
