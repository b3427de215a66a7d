// Interface of prices that change while a part runs. search_validated() of window/search.hpp calls
// it for prepared slots with such prices.
//
// tariff/prepared_tariffs.hpp implements it; the interface lets window/ search under tariffs
// without including tariff/, which is built on it. PreparedSlots::tariffs is null without tariffs,
// and a search then pays for one test of that pointer.
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

  // The tariff of each node.
  virtual const NodeTariffs& tariffs() const noexcept = 0;

  // Returns the same prices for prepared slots of the same nodes with other times, without what
  // find() has computed for the slots before.
  virtual std::shared_ptr<const ChangingPrices> for_other_slots() const = 0;
};

}  // namespace slotkern
