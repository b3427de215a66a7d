// The tariffs of prepared slots: the tariff of each node, and the ticks of the slots' clock.
//
// Immutable, and shared by prepared slots, their copies and their pools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/tariff/tariff.hpp"
#include "slotkern/tariff/ticks.hpp"

namespace slotkern {

class NodeTariffs {
 public:
  // tariff_of[place]: the tariff of each node of PreparedSlots::nodes, -1 for none.
  Status set(std::vector<Tariff> tariffs, std::span<const std::int32_t> tariff_of, Ticks ticks) {
    const auto none = static_cast<std::int32_t>(tariffs.size());
    for (const std::int32_t tariff : tariff_of)
      if (tariff < -1 || tariff >= none) return Status::request_not_valid;
    all_ = std::move(tariffs);
    all_.emplace_back();  // the tariff of nodes that have none: the factor 1
    of_.clear();
    for (const std::int32_t tariff : tariff_of)
      of_.push_back(static_cast<std::size_t>(tariff < 0 ? none : tariff));
    ticks_ = ticks;
    return Status::ok;
  }

  const std::vector<Tariff>& all() const { return all_; }
  std::size_t index_at(std::size_t place) const { return of_[place]; }
  const Tariff& at(std::size_t place) const { return all_[of_[place]]; }
  const Ticks& ticks() const { return ticks_; }

  // Cost of a part on a slot of this price.
  double cost(std::size_t place, double price, double start, double length) const {
    return price * at(place).integral(start, length);
  }

 private:
  std::vector<Tariff> all_;
  std::vector<std::size_t> of_;  // [place]: index in all_
  Ticks ticks_;
};

}  // namespace slotkern
