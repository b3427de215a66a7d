// The nodes of prepared slots, and their order by price per unit of work (rate).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/base/sort_by_key.hpp"
#include "slotkern/slots/request.hpp"

namespace slotkern {

struct Node {
  std::int32_t id;
  double performance;
  double min_price;  // lowest price of its slots
};

// Nodes for which PreparedSlots stores one lowest price.
inline constexpr std::size_t kNodesPerBlock = 64;

// Rank of each node by (rate, id). If every node has a single price, this is the cost order of
// parts for every request.
struct NodeRateOrder {
  std::vector<std::uint32_t> of;  // [place of the node]: rank
  bool rates_separated = true;  // different rates differ by more than rounding

  static NodeRateOrder by_rate(const std::vector<Node>& nodes) {
    struct RateKey {
      std::uint64_t key;
      std::int32_t id;
      std::uint32_t place;
      auto operator<=>(const RateKey&) const = default;
    };
    std::vector<RateKey> ranked;
    ranked.reserve(nodes.size());
    for (const Node& node : nodes)
      ranked.push_back({static_cast<std::uint64_t>(node.id), node.id,
                        static_cast<std::uint32_t>(ranked.size())});
    sort_by_key(ranked);
    const auto rate_of = [&nodes](const RateKey& node) {
      return nodes[node.place].min_price / nodes[node.place].performance;
    };
    for (RateKey& node : ranked) node.key = key_of(rate_of(node));
    sort_by_key(ranked);

    NodeRateOrder ranks;
    ranks.of.resize(nodes.size());
    double before = 0;
    for (std::size_t rank = 0; rank < ranked.size(); ++rank) {
      ranks.of[ranked[rank].place] = static_cast<std::uint32_t>(rank);
      const double rate = rate_of(ranked[rank]);
      if (rate == before) continue;
      ranks.rates_separated &= usual(rate) && rate > before * (1 + 0x1p-48);
      before = rate;
    }
    return ranks;
  }

  // True if parts of this volume have equal costs only if their rates are equal.
  bool order_determines_cost(double volume) const { return rates_separated && usual(volume); }

 private:
  static bool usual(double x) { return 1e-100 < x && x < 1e100; }
};

}  // namespace slotkern
