// The nodes of prepared slots, and their order by what a unit of work costs.
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
  double min_price;  // over its slots
};

// Where a node has one price in all its slots, its rank by (rate, id) says for every request how
// dear its parts are beside those of others.
struct NodeRateOrder {
  std::vector<std::uint32_t> of;  // [place]
  bool rates_separated = true;              // rates that differ, differ by more than rounding

  static NodeRateOrder by_rate(const std::vector<Node>& nodes) {
    struct Ranked {
      std::uint64_t key;
      std::int32_t id;
      std::uint32_t place;
      auto operator<=>(const Ranked&) const = default;
    };
    std::vector<Ranked> ranked;
    ranked.reserve(nodes.size());
    for (const Node& node : nodes)
      ranked.push_back({static_cast<std::uint64_t>(node.id), node.id,
                        static_cast<std::uint32_t>(ranked.size())});
    sort_by_key(ranked);
    const auto rate_of = [&nodes](const Ranked& node) {
      return nodes[node.place].min_price / nodes[node.place].performance;
    };
    for (Ranked& node : ranked) node.key = key_of(rate_of(node));
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

  // Whether the costs of parts of this volume are equal for equal rates alone.
  bool order_determines_cost(double volume) const { return rates_separated && usual(volume); }

 private:
  static bool usual(double x) { return 1e-100 < x && x < 1e100; }
};

}  // namespace slotkern
