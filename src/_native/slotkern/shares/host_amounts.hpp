// The state of a pool of shared hosts, and what can be read of it without a search.
//
// The state is the rows (shares/rows.hpp) and their sources: free spans with their amounts,
// bookings, reservations and closed time. Invariant: row amounts = free amounts - bookings -
// reservations, and a host is available in its free spans except for closed time. SharePool
// (shares/share_pool.hpp) makes all changes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "slotkern/base/status.hpp"
#include "slotkern/pool/booking_index.hpp"
#include "slotkern/shares/bookings.hpp"
#include "slotkern/shares/rows.hpp"
#include "slotkern/shares/share_request.hpp"

namespace slotkern {

// A span of time of a host, by its index.
struct HostSpan {
  std::size_t host;
  double start, end;
};

class HostAmounts {
 public:
  // The sources of the rows, for files and copies. `*_amounts`: resources() for each span.
  struct ShareState {
    double now = -kInfinity;
    std::vector<HostSpan> free, booked, reserved, closed;
    std::vector<Amount> free_amounts, booked_amounts, reserved_amounts;
  };

  const ShareHosts& hosts() const { return hosts_; }
  const ShareRows& rows() const { return rows_; }
  std::size_t resources() const { return rows_.resources(); }
  double now() const { return now_; }

  static constexpr std::size_t kNone = ~std::size_t{0};
  // Returns the index of the host with this node id, or kNone.
  std::size_t host_of(std::int32_t node) const {
    const auto& ids = hosts_.ids;
    if (const auto at = static_cast<std::size_t>(node); at < ids.size() && ids[at] == node)
      return at;
    const auto found = std::lower_bound(ids.begin(), ids.end(), node);
    return found != ids.end() && *found == node ? static_cast<std::size_t>(found - ids.begin())
                                                : kNone;
  }

  // Returns ok if add_free() of all these spans would succeed; else `failed` is the first that would
  // not.
  Status can_add_free(const std::vector<HostSpan>& spans, const std::vector<Amount>& amounts,
                      std::size_t& failed) const {
    std::vector<std::size_t> order(spans.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(spans[a].host, spans[a].start) < std::pair(spans[b].host, spans[b].start);
    });
    failed = spans.size();
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::size_t i = order[k];
      if (!is_addable(spans[i], amounts.data() + i * resources())) failed = std::min(failed, i);
      if (k > 0 && spans[order[k - 1]].host == spans[i].host &&
          spans[order[k - 1]].end > spans[i].start)
        failed = std::min(failed, std::max(order[k - 1], i));
    }
    return failed == spans.size() ? Status::ok : Status::not_free;
  }
  // Returns ok if release() would succeed; else `failed_part` is the part that is not booked.
  Status locate_booked(double start, const Part* parts, std::size_t n, const Amount* demand,
                       std::size_t& failed_part) const {
    const std::uint32_t code = demands_.find(demand);
    std::size_t skip = 0;
    for (failed_part = 0; failed_part < n; ++failed_part) {
      const Part& part = parts[failed_part];
      const std::size_t host = host_of(part.node);
      if (host == kNone) return Status::not_booked;
      const bool is_repeated = failed_part > 0 && parts[failed_part - 1].node == part.node;
      skip = is_repeated ? skip + 1 : 0;
      const double finish = start + part.length;
      if (finish <= now_) continue;
      if (code == DemandDictionary::kNone || !bookings_.find(host, start, finish, code, skip))
        return Status::not_booked;
    }
    return Status::ok;
  }

  // Calls visit(host, start, end) for the maximal spans in which a host holds the demand, from
  // now() on, ascending by host, then start.
  template <class Visit>
  void each_span(const Amount* demand, Visit visit) const {
    for (std::size_t h = 0; h < hosts_.ids.size(); ++h)
      rows_.each_span(h, std::max(hosts_.begin, now_), hosts_.end, demand, 1,
                      [&](double start, double end) { visit(h, start, end); });
  }

  // Calls visit(begin, end, row) for the rows of the host in [from, to); adjacent rows in which the
  // host is equal are joined.
  template <class Visit>
  void each_row(std::size_t host, double from, double to, Visit visit) const {
    if (!(from < to)) return;
    const ShareRows::HostGroup& group = rows_.group_of(host);
    const auto is_equal = [&](std::size_t a, std::size_t b) {
      for (std::size_t d = 0; d < resources(); ++d)
        if (rows_.amount(host, a, d) != rows_.amount(host, b, d)) return false;
      return true;
    };
    for (std::size_t row = group.row_at(from); row < group.size() && group.begins[row] < to;) {
      std::size_t next = row + 1;
      while (next < group.size() && group.begins[next] < to && is_equal(row, next)) ++next;
      visit(std::max(group.begins[row], from),
            next < group.size() ? std::min(group.begins[next], to) : to, row);
      row = next;
    }
  }

  // Adds to booked[d] and free[d] the amounts of all hosts times time in [from, to), from now() on;
  // free amounts below 0 and of hosts that are not available count as 0.
  void integrals(double from, double to, double* booked, double* free) const {
    from = std::max({from, now_, hosts_.begin}), to = std::min(to, hosts_.end);
    for (std::size_t h = 0; h < hosts_.ids.size(); ++h) {
      for (const auto& booking : bookings_.of(h)) {
        const double time = std::min(booking.end, to) - std::max(booking.start, from);
        for (std::size_t d = 0; time > 0 && d < resources(); ++d)
          booked[d] += time * demands_.amounts(booking.demand)[d];
      }
      each_row(h, from, to, [&](double begin, double end, std::size_t row) {
        for (std::size_t d = 0; rows_.is_available(h, row) && d < resources(); ++d)
          free[d] += (end - begin) * std::max(0, rows_.amount(h, row, d));
      });
    }
  }

  // Returns the sources of the rows, without bookings, reservations and closed time that are past.
  ShareState state() const {
    ShareState out;
    out.now = now_;
    const auto add = [&](std::size_t h, const auto& list, std::vector<HostSpan>& spans,
                         std::vector<Amount>& amounts, double after) {
      for (const auto& each : list) {
        if (each.end <= after) continue;
        spans.push_back({h, each.start, each.end});
        const Amount* const from = demands_.amounts(each.demand);
        amounts.insert(amounts.end(), from, from + resources());
      }
    };
    for (std::size_t h = 0; h < hosts_.ids.size(); ++h) {
      add(h, free_[h], out.free, out.free_amounts, -kInfinity);
      add(h, bookings_.of(h), out.booked, out.booked_amounts, now_);
      add(h, reserved_[h], out.reserved, out.reserved_amounts, now_);
    }
    for (const auto& [host, spans] : closed_)
      for (const Span& span : spans)
        if (span.end > now_) out.closed.push_back({host, span.start, span.end});
    return out;
  }

 protected:
  using Reserved = ShareBookings::ShareBooking;

  bool is_addable(const HostSpan& span, const Amount* amounts) const {
    const std::vector<Reserved>& list = free_[span.host];
    const auto next = std::upper_bound(list.begin(), list.end(), Reserved{span.start, 0, 0});
    if (next != list.end() && next->start < span.end) return false;
    if (next != list.begin() && std::prev(next)->end > span.start) return false;
    return std::all_of(amounts, amounts + resources(), [](Amount amount) {
      return 0 <= amount && amount <= ShareRows::kMaxAmount;
    });
  }

  ShareHosts hosts_;
  ShareRows rows_;
  DemandDictionary demands_;
  ShareBookings bookings_;
  std::vector<std::vector<Reserved>> free_, reserved_;  // [host]; free spans by start
  std::map<std::size_t, std::vector<Span>> closed_;     // by host
  double now_ = -kInfinity;
};

}  // namespace slotkern
