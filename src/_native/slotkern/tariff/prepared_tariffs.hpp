// Searches under tariffs of slots that do not change.
//
// The index is built by the first search. Searches cache bounds, so each runs in scratch memory of
// its own: up to 8 concurrent searches keep theirs, and further ones allocate new memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/base/lazy.hpp"
#include "slotkern/tariff/search.hpp"
#include "slotkern/window/changing_prices.hpp"

namespace slotkern {

class PreparedTariffs final : public ChangingPrices {
 public:
  explicit PreparedTariffs(std::shared_ptr<const NodeTariffs> tariffs)
      : tariffs_(std::move(tariffs)) {}

  Status find(const PreparedSlots& prepared, const Query& query, int criterion, ShapeKind shape,
              std::vector<Part>& parts, Found& found) const noexcept override {
    return guarded([&] {
      const TariffIndex& index = *index_.get([&] {
        auto made = std::make_unique<TariffIndex>();
        made->build(prepared, *tariffs_);
        return made;
      });
      const DeskLease lease(desks_, index);
      const Status status = lease.search().find(prepared, query, criterion, shape, found);
      if (status == Status::ok) parts = lease.search().parts();
      return status;
    });
  }

  double cost(std::size_t place, double price, double start,
              double length) const noexcept override {
    return tariffs_->cost(place, price, start, length);
  }
  const NodeTariffs& tariffs() const noexcept override { return *tariffs_; }
  std::shared_ptr<const ChangingPrices> for_other_slots() const override {
    return std::make_shared<const PreparedTariffs>(tariffs_);
  }

 private:
  static constexpr std::size_t kDesks = 8;
  struct Desk {
    std::atomic<bool> is_leased{false};
    std::unique_ptr<TariffSearch> search;
  };

  // The use of one scratch memory by one search.
  class DeskLease {
   public:
    DeskLease(Desk* desks, const TariffIndex& index) {
      for (std::size_t k = 0; k < kDesks && !desk_; ++k)
        if (!desks[k].is_leased.load(std::memory_order_relaxed) &&
            !desks[k].is_leased.exchange(true, std::memory_order_acquire))
          desk_ = &desks[k];
      try {
        std::unique_ptr<TariffSearch>& mine = desk_ ? desk_->search : own_;
        if (!mine) mine = std::make_unique<TariffSearch>(index);
        search_ = mine.get();
      } catch (...) {
        release();
        throw;
      }
    }
    ~DeskLease() { release(); }
    DeskLease(const DeskLease&) = delete;
    DeskLease& operator=(const DeskLease&) = delete;

    TariffSearch& search() const { return *search_; }

   private:
    void release() {
      if (desk_) desk_->is_leased.store(false, std::memory_order_release);
    }
    Desk* desk_ = nullptr;
    TariffSearch* search_ = nullptr;
    std::unique_ptr<TariffSearch> own_;
  };

  const std::shared_ptr<const NodeTariffs> tariffs_;
  mutable Lazy<std::unique_ptr<TariffIndex>> index_;
  mutable Desk desks_[kDesks];
};

inline Status add_tariff(std::vector<Tariff>& tariffs, const std::vector<double>& breakpoints,
                         const std::vector<double>& factors) noexcept {
  return guarded([&] {
    Tariff made;
    const Status status = made.set(breakpoints, factors);
    if (status == Status::ok) tariffs.push_back(std::move(made));
    return status;
  });
}

// Gives prepared slots these tariffs: tariff_of[place] is that of each node, -1 for none. If no
// node has one, nothing changes.
inline Status set_tariffs(PreparedSlots& prepared, const std::vector<Tariff>& tariffs,
                          const std::vector<std::int32_t>& tariff_of,
                          double ticks_per_unit) noexcept {
  return guarded([&] {
    if (tariff_of.size() != prepared.nodes.size()) return Status::request_not_valid;
    if (std::all_of(tariff_of.begin(), tariff_of.end(), [](std::int32_t k) { return k == -1; }))
      return Status::ok;
    const auto made = std::make_shared<NodeTariffs>();
    const Status status = made->set(tariffs, tariff_of, {ticks_per_unit});
    if (status == Status::ok) prepared.tariffs = std::make_shared<const PreparedTariffs>(made);
    return status;
  });
}

}  // namespace slotkern
