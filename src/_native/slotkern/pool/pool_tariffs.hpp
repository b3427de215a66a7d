// Searches of a changing pool under tariffs: the index of its free time, brought up to date by each
// search for the nodes that changed since the last one. Booked time that is assumed to be free
// counts as free.
//
// Free time before now() may stay in the lists of the pool; a search starts no earlier than now(),
// so the index need not know. Not for concurrent use.
// Cost of a change: O(cells of the changed time + spans of the node) at the next search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "slotkern/pool/availability.hpp"
#include "slotkern/tariff/prepared_tariffs.hpp"

namespace slotkern {

class PoolTariffs {
 public:
  PoolTariffs() = default;
  // A copy builds an index of its own.
  PoolTariffs(const PoolTariffs& other) { open(other.prices_, other.is_marked_.size()); }
  PoolTariffs& operator=(const PoolTariffs& other) {
    if (this != &other) open(other.prices_, other.is_marked_.size());
    return *this;
  }
  PoolTariffs(PoolTariffs&&) = default;
  PoolTariffs& operator=(PoolTariffs&&) = default;

  // Starts over for the nodes of prepared slots; without prices that change, any() is false.
  void open(const std::shared_ptr<const ChangingPrices>& prices, std::size_t nodes) {
    search_.reset(), index_.reset();
    prices_ = prices;
    is_marked_.assign(prices ? nodes : 0, 0);
    marked_.clear();
    marked_.reserve(is_marked_.size());
  }
  bool any() const { return prices_ != nullptr; }

  // The free time of this node has changed.
  void mark(std::size_t place) noexcept {
    if (!index_ || is_marked_[place]) return;
    is_marked_[place] = 1;
    marked_.push_back(place);
  }

  // Finds the best window that starts at now() or later. A request with a maximum price is not
  // valid: the price of a slot alone, without its factor, limits nothing.
  Status find(const PreparedSlots& prepared, const std::vector<double>& prices,
              const AvailabilityTimeline& spans, const Query& query, int criterion,
              ShapeKind shape, std::vector<Part>& parts, Found& found) {
    if (query.max_price < kInfinity) return Status::request_not_valid;
    update(prepared, prices, spans);
    const Status status = search_->find(prepared, query, criterion, shape, found, spans.now());
    if (status == Status::ok) parts = search_->parts();
    return status;
  }
  // As find() by the start, for windows that start in [first, latest].
  Status find_in_range(const PreparedSlots& prepared, const std::vector<double>& prices,
                       const AvailabilityTimeline& spans, double first, double latest,
                       const Query& query, ShapeKind shape, std::vector<Part>& parts,
                       Found& found) {
    if (query.max_price < kInfinity) return Status::request_not_valid;
    update(prepared, prices, spans);
    const Status status =
        search_->find_in_range(prepared, query, first, latest, shape, found, spans.now());
    if (status == Status::ok) parts = search_->parts();
    return status;
  }

 private:
  using NodeSlots = std::vector<TariffIndex::NodeSlot>;

  static void read(const AvailabilityTimeline& spans, std::size_t place,
                   const std::vector<double>& prices, NodeSlots& slots) {
    slots.clear();
    for (const Span& span : spans.free()[place])
      slots.push_back({span.start, span.end, prices[span.origin_row], span.origin_row});
    spans.for_each_assumed_free(place, [&](std::size_t i, double end) { slots[i].end = end; });
  }

  void update(const PreparedSlots& prepared, const std::vector<double>& prices,
              const AvailabilityTimeline& spans) {
    if (index_ && index_->has_outgrown_cells()) index_.reset();
    for (; index_ && !marked_.empty(); marked_.pop_back()) {
      read(spans, marked_.back(), prices, slots_);
      bool is_current = false;
      try {
        is_current = index_->update_node(marked_.back(), slots_);
      } catch (...) {  // out of memory: the index may be half updated
        index_.reset();
        throw;
      }
      if (!is_current) {
        index_.reset();
        break;
      }
      is_marked_[marked_.back()] = 0;
    }
    if (!index_) build(prepared, prices, spans);
  }

  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const AvailabilityTimeline& spans) {
    search_.reset();
    std::vector<NodeSlots> slots(prepared.nodes.size());
    for (std::size_t place = 0; place < slots.size(); ++place)
      read(spans, place, prices, slots[place]);
    auto index = std::make_unique<TariffIndex>();
    index->build(prepared, prices_->tariffs(), std::move(slots));
    search_ = std::make_unique<TariffSearch>(*index);
    index_ = std::move(index);
    marked_.clear();
    std::fill(is_marked_.begin(), is_marked_.end(), std::uint8_t{0});
  }

  std::shared_ptr<const ChangingPrices> prices_;
  std::unique_ptr<TariffIndex> index_;  // null: to be built by the next search
  std::unique_ptr<TariffSearch> search_;
  std::vector<std::uint8_t> is_marked_;  // [place]
  std::vector<std::size_t> marked_;  // the places that differ from the index
  NodeSlots slots_;  // scratch
};

}  // namespace slotkern
