// A pool of hosts whose resources are shared: jobs take amounts of them, not whole nodes.
//
// The state is the rows and their sources (shares/host_amounts.hpp). Searches read the rows
// (shares/earliest.hpp), or a pool of spans for one demand that is derived from them
// (shares/views.hpp). All changes pass through this class, which keeps bounds and journal true.
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
#include <utility>
#include <vector>

#include "slotkern/shares/host_amounts.hpp"
#include "slotkern/shares/trees.hpp"
#include "slotkern/shares/views.hpp"

namespace slotkern {

// Which structure answers a search.
enum class ShareMethod : int { automatic, rows, views };

class SharePool : public HostAmounts {
 public:
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

  const ShareViews& views() const { return views_; }
  IndexOptions& view_options() { return views_.options; }
  std::size_t version() const { return version_; }
  std::size_t bytes() const { return rows_.bytes() + bookings_.bytes(); }

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
    if (!request.has_price_range) request.set_price_range(hosts_.ids.size());
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

 private:
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

  EarliestShares earliest_;
  EarliestTrees trees_;
  ShareViews views_;
  std::size_t version_ = 0;
  std::size_t changes_ = 0;  // since rows before now() were dropped
  std::vector<HostParts> taken_;    // scratch
  std::vector<std::uint8_t> mask_;  // scratch: [node of a view]
};

}  // namespace slotkern
