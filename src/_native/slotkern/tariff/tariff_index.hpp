// The slots of prepared slots by node, the nodes by rate under their tariffs, and the longest part
// that can start on each node in each time cell.
//
// The rate of a node is its lowest price * the mean factor of its tariff / performance; the rate in
// a cell is that of the slots that overlap the cell. A class is a pair of tariff and performance:
// the cost of a part for each unit of price depends on its class and start alone. `room` is an upper
// bound, rounded up to float, so that a search may skip a node in a cell only if no part fits.
// update_node() brings the index up to date when slots of a node change.
// The nodes of a cell by rate are listed when a search first needs them: where prices of a node
// differ, its least price of all slots is a weak bound, and searches of 1,000 nodes took 10 to 100
// times as long with it.
// Memory: 4 bytes for each node and cell, 32 for each slot, 16 for each node with room in a listed
// cell.
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

#include "slotkern/base/lazy.hpp"
#include "slotkern/slots/prepared.hpp"
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

  struct RatedNode {
    double rate;
    std::uint32_t rank;
    bool operator<(const RatedNode& other) const {
      return rate != other.rate ? rate < other.rate : rank < other.rank;
    }
  };

  // Builds the index of all prepared slots; `tariffs` must outlive it. The number of cells affects
  // speed only; 0: chosen by the numbers of slots and breakpoints.
  void build(const PreparedSlots& prepared, const NodeTariffs& tariffs, std::size_t cells = 0) {
    std::vector<std::vector<NodeSlot>> slots(prepared.nodes.size());
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
    ++version_;
    make_cells(cells);
    tables_ = std::make_unique<PriceTables[]>(tariffs.all().size());
    make_classes(prepared);
    rank_nodes(prepared);
    room_.assign(cells_.size() * nodes(), kNoRoom);
    group_room_.assign(cells_.groups() * nodes(), kNoRoom);
    by_rate_in_ = std::make_unique<Lazy<std::vector<RatedNode>>[]>(cells_.size());
    for (std::size_t place = 0; place < nodes(); ++place) {
      poll();
      fill_room(place, 0, cells_.size() - 1);
    }
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
    const std::size_t first_cell = cells_.cell_at(first), last_cell = cells_.cell_at(last);
    old_prices_.assign(last_cell - first_cell + 1, kInfinity);
    each_cell(old, first_cell, last_cell, [&](std::size_t cell, const NodeSlot& s) {
      old_prices_[cell - first_cell] = std::min(old_prices_[cell - first_cell], s.price);
    });
    old.assign(slots.begin(), slots.end());
    const bool grows = fill_room(place, first_cell, last_cell);
    const bool is_cheaper = lower_rates(place, first_cell, last_cell);
    // Sums of rates with more room than there is are lower bounds still; now and then they are
    // computed again.
    if (grows || is_cheaper || ++shrinks_ % kShrinksPerVersion == 0) ++version_;
    return true;
  }

  // Changes when rooms grow or rates in cells fall.
  std::uint64_t version() const { return version_; }
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

  // All nodes by rate, and nodes with a slot in the cell by their rates there. When slots were
  // taken away since, a node may be left, or its rate may be too low.
  std::span<const RatedNode> by_rate() const { return by_rate_; }
  std::span<const RatedNode> by_rate(std::size_t cell) const {
    return by_rate_in_[cell].get([&] { return list_by_rate(cell); });
  }
  // By rank, the place in by_rate().
  std::size_t class_at(std::size_t rank) const { return class_at_[rank]; }
  std::int32_t node_at(std::size_t rank) const { return node_at_[rank]; }
  std::span<const NodeSlot> slots_at(std::size_t rank) const { return slots_[place_at_[rank]]; }
  // Sum of the k lowest rates.
  double min_rate_sum(std::size_t k) const { return rate_sums_[k]; }
  // [rank]: upper bound on the length of a part that starts in the cell, or group of cells.
  const float* room(std::size_t cell) const { return room_.data() + cell * nodes(); }
  const float* group_room(std::size_t group) const { return group_room_.data() + group * nodes(); }

 private:
  static constexpr float kNoRoom = -1;
  static constexpr std::size_t kMaxCells = 512;
  static constexpr std::uint64_t kShrinksPerVersion = 256;  // updates that only take time away

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
                          static_cast<std::uint32_t>(place)});
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

  std::vector<RatedNode> list_by_rate(std::size_t cell) const {
    std::vector<RatedNode> nodes_in;
    const float* const rooms = room(cell);
    for (std::size_t rank = 0; rank < nodes(); ++rank) {
      if (rooms[rank] == kNoRoom) continue;
      double price = kInfinity;
      each_cell(slots_[place_at_[rank]], cell, cell,
                [&](std::size_t, const NodeSlot& s) { price = std::min(price, s.price); });
      nodes_in.push_back({rate_of(place_at_[rank], price), static_cast<std::uint32_t>(rank)});
    }
    std::sort(nodes_in.begin(), nodes_in.end());
    return nodes_in;
  }

  // Brings listed cells up to date where the lowest price of a node is less than old_prices_;
  // returns true if there are any such cells.
  bool lower_rates(std::size_t place, std::size_t first_cell, std::size_t last_cell) {
    prices_.assign(last_cell - first_cell + 1, kInfinity);
    each_cell(slots_[place], first_cell, last_cell, [&](std::size_t cell, const NodeSlot& s) {
      prices_[cell - first_cell] = std::min(prices_[cell - first_cell], s.price);
    });
    bool any = false;
    for (std::size_t k = 0; k < prices_.size(); ++k) {
      if (!(prices_[k] < old_prices_[k])) continue;
      any = true;
      std::vector<RatedNode>* const listed = by_rate_in_[first_cell + k].get_if_ready();
      if (!listed) continue;
      const RatedNode node{rate_of(place, prices_[k]), rank_[place]};
      const auto old = std::find_if(listed->begin(), listed->end(), [&node](const RatedNode& other) {
        return other.rank == node.rank;
      });
      if (old != listed->end() && !(node.rate < old->rate)) continue;
      if (old != listed->end()) listed->erase(old);
      listed->insert(std::upper_bound(listed->begin(), listed->end(), node), node);
    }
    return any;
  }

  // Calls visit(cell, slot) for these cells and each slot that overlaps the cell, in time order.
  template <class Visit>
  void each_cell(const std::vector<NodeSlot>& slots, std::size_t first_cell, std::size_t last_cell,
                 Visit visit) const {
    const double begin = cells_.begin(first_cell);
    auto next = std::partition_point(slots.begin(), slots.end(),
                                     [begin](const NodeSlot& s) { return s.end <= begin; });
    if (first_cell == 0) next = slots.begin();
    for (; next != slots.end(); ++next) {
      std::size_t cell = std::max(cells_.cell_at(next->start), first_cell);
      if (cell > last_cell) break;
      for (; cell <= last_cell && (cell == 0 || cells_.begin(cell) < next->end); ++cell)
        visit(cell, *next);
    }
  }

  // Computes the rooms of a node in these cells; returns true if one grows.
  bool fill_room(std::size_t place, std::size_t first_cell, std::size_t last_cell) {
    const std::size_t rank = rank_[place];
    bool grows = false;
    std::vector<float>& rooms = rooms_;
    rooms.assign(last_cell - first_cell + 1, kNoRoom);
    each_cell(slots_[place], first_cell, last_cell, [&](std::size_t cell, const NodeSlot& s) {
      const double end = s.end + 4 * 0x1p-52 * std::fabs(s.end);
      float& room = rooms[cell - first_cell];
      room = std::max(room, round_up(end - std::max(s.start, cells_.begin(cell))));
    });
    for (std::size_t cell = first_cell; cell <= last_cell; ++cell) {
      float& room = room_[cell * nodes() + rank];
      grows |= rooms[cell - first_cell] > room;
      room = rooms[cell - first_cell];
    }
    constexpr std::size_t size = TimeCells::kPerGroup;
    for (std::size_t group = first_cell / size; group <= last_cell / size; ++group) {
      float most = kNoRoom;
      for (std::size_t cell = group * size; cell < std::min(group * size + size, cells_.size());
           ++cell)
        most = std::max(most, room_[cell * nodes() + rank]);
      group_room_[group * nodes() + rank] = most;
    }
    return grows;
  }

  std::uint64_t version_ = 0, shrinks_ = 0;
  std::size_t slots_count_ = 0, slots_at_build_ = 0;
  const NodeTariffs* tariffs_ = nullptr;
  TimeCells cells_;
  std::unique_ptr<PriceTables[]> tables_;  // [tariff]
  std::vector<Class> classes_;
  std::vector<std::vector<NodeSlot>> slots_;  // [place], in time order
  std::vector<std::uint32_t> class_of_, rank_;  // [place]
  std::vector<std::uint32_t> place_at_, class_at_;  // [rank]
  std::vector<std::int32_t> node_at_;  // [rank]
  std::vector<RatedNode> by_rate_;
  std::vector<double> rate_sums_;
  std::unique_ptr<Lazy<std::vector<RatedNode>>[]> by_rate_in_;  // [cell]
  std::vector<float> room_, group_room_;  // [cell][rank]; [group][rank]
  std::vector<float> rooms_;  // scratch of fill_room()
  std::vector<double> prices_, old_prices_;  // scratch of update_node()
};

}  // namespace slotkern
