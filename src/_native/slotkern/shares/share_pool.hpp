// A pool of hosts whose resources are shared: jobs take amounts of them, not whole nodes.
//
// The state is the rows (shares/rows.hpp) and their sources: free spans with their amounts,
// bookings, reservations and closed time. Searches read the rows (shares/earliest.hpp), or a pool of
// spans for one demand that is derived from them (shares/views.hpp). All changes pass through this
// class, which keeps the bounds of the searches and the journal of the views true.
//
// Invariant: row amounts = free amounts - bookings - reservations, and a host is available in its
// free spans except for closed time. So after everything is given back, the rows are those of a new
// pool, bit for bit, but for time before now().
//
// Not for concurrent use. Cost of a part booked or released: that of a change of rows, and
// O(bookings of the host + classes of bounds).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "slotkern/shares/bookings.hpp"
#include "slotkern/shares/trees.hpp"
#include "slotkern/shares/views.hpp"

namespace slotkern {

// A span of time of a host, by its index.
struct HostSpan {
  std::size_t host;
  double start, end;
};

// Which structure answers a search.
enum class ShareMethod : int { automatic, rows, views };

class SharePool {
 public:
  // The sources of the rows, for files and copies. `*_amounts`: resources() for each span.
  struct ShareState {
    double now = -kInfinity;
    std::vector<HostSpan> free, booked, reserved, closed;
    std::vector<Amount> free_amounts, booked_amounts, reserved_amounts;
  };

  // Starts over. Node ids ascend; all free time is in [begin, end).
  void open(std::vector<std::int32_t> ids, std::vector<double> performance, std::size_t resources,
            double begin, double end) {
    hosts_ = {};
    hosts_.begin = begin, hosts_.end = end;
    std::vector<double>& kinds = hosts_.performances;
    kinds = performance;
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    for (const double p : performance)
      hosts_.kind.push_back(static_cast<std::uint32_t>(
          std::lower_bound(kinds.begin(), kinds.end(), p) - kinds.begin()));
    hosts_.ids = std::move(ids), hosts_.performance = std::move(performance);
    rows_.open(hosts_.ids.size(), resources);
    earliest_.open(rows_), trees_.open(rows_);
    views_.clear();
    demands_.reset(resources);
    bookings_.reset(hosts_.ids.size());
    free_.assign(hosts_.ids.size(), {}), reserved_.assign(hosts_.ids.size(), {});
    closed_.clear();
    now_ = -kInfinity;
    changes_ = 0;
  }

  const ShareHosts& hosts() const { return hosts_; }
  const ShareRows& rows() const { return rows_; }
  const ShareViews& views() const { return views_; }
  IndexOptions& view_options() { return views_.options; }
  std::size_t resources() const { return rows_.resources(); }
  double now() const { return now_; }
  std::size_t version() const { return version_; }
  std::size_t bytes() const { return rows_.bytes() + bookings_.bytes(); }

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
  // Adds free time with the amounts that are free in it. Returns not_free, without a change, if it
  // overlaps free time of the host, or for an amount below 0 or above the largest.
  Status add_free(const HostSpan& span, const Amount* amounts) {
    if (!is_addable(span, amounts)) return Status::not_free;
    std::vector<Reserved>& list = free_[span.host];
    const auto next = std::upper_bound(list.begin(), list.end(), Reserved{span.start, 0, 0});
    if (span.start < hosts_.begin || span.end > hosts_.end) {
      hosts_.begin = std::min(hosts_.begin, span.start);
      hosts_.end = std::max(hosts_.end, span.end);
      views_.clear();
    }
    list.insert(next, {span.start, span.end, demands_.find_or_add(amounts)});
    rows_.add(span.host, span.start, span.end, amounts, 1);
    rows_.set_available(span.host, span.start, span.end, true);
    on_more(span.host, span.start, span.end);
    return Status::ok;
  }

  // As find() of a pool. Returns request_not_valid if the method cannot answer the request.
  Status find(const ShareRequest& given, int criterion, ShareMethod method, Workspace& work,
              Found& found) {
    if (!given.query->is_valid() || criterion < 0 || criterion >= kBuiltins || !is_demand(given))
      return Status::request_not_valid;
    if (hosts_.ids.empty()) return Status::none;
    ShareRequest request = given;
    detail::find_price_range(given.prices, hosts_.ids.size(), request.least_price,
                             request.most_price);
    const bool uses_rows = method != ShareMethod::views &&
                           EarliestShares::can_search(hosts_, request, criterion);
    if (uses_rows) return earliest_.find(rows_, hosts_, now_, request, work, found);
    if (method == ShareMethod::rows) return Status::request_not_valid;
    return find_in_view(request, criterion, work, found);
  }

  // Adds the groups of a tree, whose hosts are each in one innermost group. Returns its index.
  std::size_t add_tree(HostTree tree) { return trees_.add(std::move(tree)); }
  // Finds the earliest window of groups of a tree, by a criterion that orders windows by start.
  // Returns request_not_valid for invalid demands, and for hosts of unlike performance.
  Status find_tree(const TreeRequest& request, Workspace& work, Found& found) {
    if (!request.query->is_valid() || request.tree >= trees_.size() || request.stack < 1 ||
        (request.stack > 1 && request.demand.stride != 0) || !hosts_.has_one_performance() ||
        !detail::is_query_of_hosts(*request.query))
      return Status::request_not_valid;
    return trees_.find(rows_, hosts_, now_, request, work, found);
  }

  // Books parts, ascending by node; several may be on one node. Returns not_free, without a change,
  // and the part that is not free in `failed_part`.
  Status book(double start, const Part* parts, std::size_t n, PartAmounts demand,
              std::size_t& failed_part) {
    Status status = Status::ok;
    std::size_t first = failed_part = 0;  // parts before `first` are booked
    while (first < n && status == Status::ok) {
      status = guarded([&] { return book_group(start, parts, n, demand, failed_part); });
      if (status == Status::ok) first = failed_part;
    }
    if (status == Status::ok) return status;
    for (std::size_t i = first; i-- > 0;) {
      const std::size_t host = host_of(parts[i].node);
      const auto* booked = bookings_.find(host, start, start + parts[i].length,
                                          demands_.find(demand.of(host)), 0);
      give_back(host, bookings_.extract(host, booked));
    }
    return status;
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
  // Releases booked parts, except for time that is past.
  Status release(double start, const Part* parts, std::size_t n, const Amount* demand,
                 std::size_t& failed_part) {
    const Status status = locate_booked(start, parts, n, demand, failed_part);
    if (status != Status::ok) return status;
    const std::uint32_t code = demands_.find(demand);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t host = host_of(parts[i].node);
      const double finish = start + parts[i].length;
      if (finish <= now_) continue;
      rows_.reserve(host);
      give_back(host, bookings_.extract(host, bookings_.find(host, start, finish, code, 0)));
    }
    return Status::ok;
  }

  // Takes amounts from the host, free or not: they may fall below 0, and the host then holds no
  // demand. Returns not_free, without a change, if a sum would be out of range.
  Status reserve(const HostSpan& span, const Amount* amounts) {
    if (!(span.start < span.end)) return Status::not_free;
    const ShareRows::HostGroup& group = rows_.group_of(span.host);
    for (std::size_t row = group.row_at(span.start);
         row < group.size() && group.begins[row] < span.end; ++row)
      for (std::size_t d = 0; d < resources(); ++d)
        if (rows_.free_amount(span.host, row, d) - amounts[d] < -ShareRows::kMaxAmount / 2)
          return Status::not_free;
    std::vector<Reserved>& list = reserved_[span.host];
    reserve_extra(1, list);
    const std::uint32_t code = demands_.find_or_add(amounts);
    rows_.add(span.host, span.start, span.end, amounts, -1);
    list.push_back({span.start, span.end, code});
    on_less(span.host, span.start, span.end);
    return Status::ok;
  }
  // Ends a reservation with these arguments. Returns not_booked if there is none.
  Status unreserve(const HostSpan& span, const Amount* amounts) {
    std::vector<Reserved>& list = reserved_[span.host];
    const std::uint32_t code = demands_.find(amounts);
    const auto found = std::find_if(list.begin(), list.end(), [&](const Reserved& each) {
      return each.start == span.start && each.end == span.end && each.demand == code;
    });
    if (found == list.end()) return Status::not_booked;
    const Reserved reserved = *found;
    rows_.reserve(span.host);
    list.erase(found);
    give_back(span.host, reserved);
    return Status::ok;
  }

  // Closes the host in [start, end): it holds nothing there, booked or not.
  void disable(const HostSpan& span) {
    std::vector<Span>& closed = closed_[span.host];
    std::vector<Span> fresh{{span.start, span.end, 0}};  // the part that is not closed yet
    for (const Span& old : closed) {
      std::vector<Span> rest;
      for (const Span& piece : fresh) {
        if (piece.start < old.start) rest.push_back({piece.start, std::min(piece.end, old.start), 0});
        if (old.end < piece.end) rest.push_back({std::max(piece.start, old.end), piece.end, 0});
      }
      fresh.swap(rest);
    }
    for (const Span& piece : fresh) {
      rows_.set_available(span.host, piece.start, piece.end, false);
      on_less(span.host, piece.start, piece.end);
    }
    closed.insert(closed.end(), fresh.begin(), fresh.end());
    std::sort(closed.begin(), closed.end(),
              [](const Span& a, const Span& b) { return a.start < b.start; });
    merge_overlapping(closed);
  }
  // Opens all closed time of the host.
  void enable(std::size_t host) {
    const auto found = closed_.find(host);
    if (found == closed_.end()) return;
    for (const Span& piece : found->second) {
      const double start = std::max(piece.start, now_);
      rows_.set_available(host, start, piece.end, true);
      on_more(host, start, piece.end);
    }
    closed_.erase(found);
  }

  // Moves the clock forward; an earlier time is ignored. Amortized O(1) for each change.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    if (!(now > now_)) return Status::ok;
    now_ = now, ++version_;
    if (changes_ <= hosts_.ids.size()) return Status::ok;
    rows_.drop_before(now_);
    changes_ = 0;
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
  // Applies a state to a pool just opened. Returns not_free, and the index of the free span in
  // `failed`, if free spans overlap.
  Status load(const ShareState& state, std::size_t& failed) {
    const std::size_t r = resources();
    for (failed = 0; failed < state.free.size(); ++failed, poll())
      if (const Status status = add_free(state.free[failed], &state.free_amounts[failed * r]);
          status != Status::ok)
        return status;
    for (std::size_t i = 0; i < state.reserved.size(); ++i)
      if (const Status status = reserve(state.reserved[i], &state.reserved_amounts[i * r]);
          status != Status::ok)
        return status;
    for (std::size_t i = 0; i < state.booked.size(); ++i) {
      // Not checked: what was booked before more was reserved is not free.
      const HostSpan& span = state.booked[i];
      taken_.assign(1, {span.host, 1});
      take(span.start, span.end, PartAmounts(&state.booked_amounts[i * r]));
    }
    for (const HostSpan& span : state.closed) disable(span);
    return advance(state.now);
  }

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

 private:
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

  bool is_demand(const ShareRequest& request) const {
    bool any = false;
    for (std::size_t d = 0; d < resources(); ++d) {
      if (request.demand[d] < 0 || request.demand[d] > ShareRows::kMaxAmount) return false;
      any |= request.demand[d] > 0;
    }
    return any && request.stack > 0;
  }

  Status find_in_view(const ShareRequest& request, int criterion, Workspace& work, Found& found) {
    // Limits and groups refer to hosts, and so to nodes only if each host is one.
    if (request.stack > 1 && (request.query->limits || request.query->groups))
      return Status::request_not_valid;
    ShareView& view = views_.find_or_create(rows_, hosts_, now_, request);
    Query query = *request.query;
    const auto stack = static_cast<std::size_t>(request.stack);
    if (stack > 1 && query.mask) {
      mask_.clear();
      for (std::size_t h = 0; h < hosts_.ids.size(); ++h)
        mask_.insert(mask_.end(), stack, request.query->mask[h]);
      query.mask = mask_.data();
    }
    query.masked = hosts_.ids.size() * stack;
    const Status status = view.pool.find(query, criterion, request.shape, work, found);
    if (status != Status::ok || stack == 1) return status;
    for (Part& part : work.parts) {
      part.row /= stack;
      part.node = hosts_.ids[part.row];
    }
    return status;
  }

  // Equal parts on one host.
  struct HostParts {
    std::size_t host;
    Amount times;
    std::uint32_t demand = DemandDictionary::kNone;  // code
  };
  // Books the parts from `at` on that are on hosts of one group and have one length. `at` becomes
  // their end, or else the part that is not free; then none of them is booked.
  Status book_group(double start, const Part* parts, std::size_t n, PartAmounts demand,
                    std::size_t& at) {
    const double length = parts[at].length, finish = start + length;
    const std::size_t first = host_of(parts[at].node);
    if (first == kNone || !(start >= now_) || !(finish > start)) return Status::not_free;
    taken_.clear();
    std::size_t i = at;
    while (i < n && parts[i].length == length) {
      const std::size_t host = host_of(parts[i].node);
      if (host / ShareRows::kLanes != first / ShareRows::kLanes ||
          (!taken_.empty() && host <= taken_.back().host))
        break;
      Amount times = 0;
      const std::size_t begin = i;
      while (i < n && parts[i].node == parts[begin].node && parts[i].length == length) ++i, ++times;
      if (!rows_.holds(host, start, finish, demand.of(host), times))
        return at = begin, Status::not_free;
      taken_.push_back({host, times});
    }
    take(start, rows_.snapped(first, finish), demand);
    at = i;
    return Status::ok;
  }
  // Subtracts bookings of `taken_`, which are on one group of hosts, from the rows. Strong exception
  // guarantee.
  void take(double start, double end, PartAmounts demand) {
    for (HostParts& each : taken_) {
      bookings_.reserve(each.host, now_, static_cast<std::size_t>(each.times));
      each.demand = demands_.find_or_add(demand.of(each.host));
    }
    rows_.add_each(taken_[0].host, start, end, [&](auto visit) {
      for (const HostParts& each : taken_) visit(each.host, demand.of(each.host), -each.times);
    });
    for (const HostParts& each : taken_) {
      bookings_.add(each.host, {start, end, each.demand}, static_cast<std::size_t>(each.times));
      on_less(each.host, start, end);
    }
  }
  // Adds to the rows what a booking or a reservation had taken, from now() on.
  void give_back(std::size_t host, const Reserved& taken) {
    const double start = std::max(taken.start, now_);
    rows_.add(host, start, taken.end, demands_.amounts(taken.demand), 1);
    on_more(host, start, taken.end);
  }

  void on_less(std::size_t host, double begin, double end) {
    ++version_, ++changes_;
    views_.record(host, begin, end);
  }
  void on_more(std::size_t host, double begin, double end) {
    ++version_, ++changes_;
    earliest_.lower(host, begin, end);
    trees_.lower(begin);
    views_.record(host, begin, end);
  }

  ShareHosts hosts_;
  ShareRows rows_;
  EarliestShares earliest_;
  EarliestTrees trees_;
  ShareViews views_;
  DemandDictionary demands_;
  ShareBookings bookings_;
  std::vector<std::vector<Reserved>> free_, reserved_;  // [host]; free spans by start
  std::map<std::size_t, std::vector<Span>> closed_;     // by host
  double now_ = -kInfinity;
  std::size_t version_ = 0;
  std::size_t changes_ = 0;  // since rows before now() were dropped
  std::vector<HostParts> taken_;    // scratch
  std::vector<std::uint8_t> mask_;  // scratch: [node of a view]
};

}  // namespace slotkern
