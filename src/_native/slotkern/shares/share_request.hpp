// Requests for parts of shared hosts, and the constant properties of these hosts. shares/earliest.hpp
// and shares/views.hpp find the windows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/shares/rows.hpp"
#include "slotkern/slots/request.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

namespace detail {

// Finds the least and the largest of some prices. A leaf function, for the clones: lanes that are
// independent of each other become vectors.
SLOTKERN_NARROW_CLONES static inline void find_price_range(const double* prices, std::size_t size,
                                                           double& least, double& most) {
  double low[8], high[8];
  for (std::size_t k = 0; k < 8; ++k) low[k] = high[k] = prices[0];
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8)
    for (std::size_t k = 0; k < 8; ++k) {
      const double x = prices[i + k];
      low[k] = low[k] < x ? low[k] : x;
      high[k] = high[k] > x ? high[k] : x;
    }
  for (; i < size; ++i) low[0] = std::min(low[0], prices[i]), high[0] = std::max(high[0], prices[i]);
  least = *std::min_element(low, low + 8), most = *std::max_element(high, high + 8);
}

}  // namespace detail

// A search for parts of one demand.
struct ShareRequest {
  const Query* query;  // its mask is indexed by host
  const Amount* demand;  // [resource]
  Amount stack = 1;
  const double* prices = nullptr;  // [host]: price of one part per time unit
  double least_price = 0, most_price = 0;  // of `prices`, once has_price_range
  ShapeKind shape = ShapeKind::square;
  bool has_price_range = false;

  // Sets the range of the prices; requests that share them can copy it. O(hosts).
  void set_price_range(std::size_t hosts) {
    has_price_range = true;
    if (hosts > 0) detail::find_price_range(prices, hosts, least_price, most_price);
  }
};

// The constant properties of the hosts.
struct ShareHosts {
  std::vector<std::int32_t> ids;  // ascending
  std::vector<double> performance;
  std::vector<double> performances;  // the different ones
  std::vector<std::uint32_t> kind;   // [host]: index in `performances`
  double begin = 0, end = 0;         // of all time that is ever free

  bool has_one_performance() const { return performances.size() <= 1; }
};

}  // namespace slotkern
