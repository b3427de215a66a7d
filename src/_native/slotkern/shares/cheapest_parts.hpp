// Chooses the n cheapest of the parts that fit on hosts at one start, and builds their window.
//
// Input: the hosts that can take parts, and how many each. Output: the parts by the tie rule of all
// searches (key, then host), with the totals of detail::build_window(). Cost: O(hosts + n log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/shares/share_request.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

// Equal parts on a host: `key` as in all searches (window/shapes.hpp).
struct LiveHost {
  double key;
  std::uint32_t host;
  Amount count;
  bool operator<(const LiveHost& other) const {
    return key != other.key ? key < other.key : host < other.host;
  }
};

class CheapestParts {
 public:
  // `lengths`: of a part on each kind of host. `is_uniform`: hosts are equal in price and
  // performance, and given in ascending order.
  CheapestParts(const ShareHosts& hosts, const ShareRequest& request,
                const std::vector<double>& lengths, double longest, bool is_uniform)
      : hosts_(hosts), request_(request), query_(*request.query), lengths_(lengths),
        longest_(longest), is_uniform_(is_uniform) {}

  // Keeps the n cheapest parts, or all, in the order of the tie rule.
  void keep(std::vector<LiveHost>& all) const {
    const auto n = static_cast<std::size_t>(query_.n);
    if (all.size() > 2 * n) {
      std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
      all.resize(n);
    }
    std::sort(all.begin(), all.end());
  }
  // The key of a part, as in window/shapes.hpp.
  double key_of(std::size_t host) const {
    const Slot slot = slot_of(host);
    if (request_.shape == ShapeKind::square) return Square{longest_, 0}.key(slot);
    return query_.has_overhead() ? RaggedWithOverhead(query_).key(slot) : Ragged(query_).key(slot);
  }
  bool moves_clock(double t, const std::vector<LiveHost>& all) const {
    for (const LiveHost& each : all)
      if (!clock_moves(t, length_of(each.host))) return false;
    return true;
  }

  // Writes the first n parts of the candidates: totals as in detail::build_window().
  void fill(double t, const std::vector<LiveHost>& all, std::vector<Part>& parts,
            Found& found) const {
    const bool is_square = request_.shape == ShapeKind::square;
    const auto total = [&](double key) { return is_square ? longest_ * key : key; };
    parts.clear();
    double time = 0, runtime = 0;
    for (const LiveHost& each : all)
      for (Amount k = 0; k < each.count && parts.size() < static_cast<std::size_t>(query_.n); ++k) {
        const double length = length_of(each.host);
        time += length, runtime = std::max(runtime, length);
        parts.push_back({each.host, hosts_.ids[each.host], length, each.key});
      }
    found.start = found.value = t;
    found.runtime = runtime, found.processor_time = time;
    found.cost = total(exact_sum(parts.size(), [&](std::size_t i) { return parts[i].cost; }));
    for (Part& part : parts) part.cost = total(part.cost);
    if (!is_uniform_)
      std::sort(parts.begin(), parts.end(),
                [](const Part& a, const Part& b) { return a.row < b.row; });
  }

 private:
  double length_of(std::size_t host) const { return lengths_[hosts_.kind[host]]; }
  Slot slot_of(std::size_t host) const {
    const double performance = hosts_.performance[host], price = request_.prices[host];
    return {0, 0, performance, price, price / performance, hosts_.ids[host], 0};
  }

  const ShareHosts& hosts_;
  const ShareRequest& request_;
  const Query& query_;
  const std::vector<double>& lengths_;  // [kind of host]
  const double longest_;
  const bool is_uniform_;
};

}  // namespace slotkern
