// Prices that change while a part runs: what searches of prepared slots call if these have some.
//
// slotkern/tariff implements it. Prepared slots without tariffs have none, and their searches pay
// for one test of a null pointer.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "slotkern/base/status.hpp"
#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

class NodeTariffs;

class ChangingPrices {
 public:
  virtual ~ChangingPrices() = default;

  // Finds the best window as search() of window/search.hpp does, also by concurrent calls.
  virtual Status find(const PreparedSlots& prepared, const Query& query, int criterion,
                      ShapeKind shape, std::vector<Part>& parts, Found& found) const noexcept = 0;

  // Cost of a part on a slot of this price of the node at `place` of PreparedSlots::nodes.
  virtual double cost(std::size_t place, double price, double start,
                      double length) const noexcept = 0;

  virtual const NodeTariffs& tariffs() const noexcept = 0;

  // The same prices for prepared slots of the same nodes with other times.
  virtual std::shared_ptr<const ChangingPrices> for_other_slots() const = 0;
};

}  // namespace slotkern
