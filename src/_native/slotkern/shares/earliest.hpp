// Finds the earliest window on the rows of shared hosts (shares/rows.hpp), for any demand.
//
// Input: rows, the performance and id of each host, a query, the demand of a part, the price of a
// part by host, and `stack`, the most parts on one host. Output: the earliest start at which n parts
// fit, and of the sets that fit then the cheapest by the tie rule of all searches (key, then host):
// the same window as a search of the pool of maximal spans (shares/views.hpp) returns.
//
// A part of length T fits on a host at t if each row that meets [t, t + T) holds the demand; a host
// with stack > 1 takes the least quotient of amounts and demand. Scanning these rows yields for each
// host that does not fit the end of the last row that blocks it: it cannot fit before. So the number
// of parts that fit in a group can rise only at the least of these times, and the search goes from
// one such time (`until`) to the next. At each it evaluates the groups that may have gained; when
// the sum of the upper bounds reaches n, it evaluates the others whose bounds are older.
//
// Exact because a window can be moved earlier until one of its hosts stops to fit, so that only
// `earliest` and ends of blocking rows can be the earliest start; and because counts between these
// times only fall. Lengths may differ by host; all parts of a square window have one length, so that
// can_search() requires equal performance for it.
//
// Cost: O(groups) a search, and O(rows met * resources * kLanes) for each group evaluated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/shares/cheapest_parts.hpp"
#include "slotkern/shares/lanes.hpp"
#include "slotkern/shares/share_request.hpp"
#include "slotkern/shares/start_bounds.hpp"

namespace slotkern {

class EarliestShares {
 public:
  void open(const ShareRows& rows) {
    start_bounds_.reset(rows.resources());
    group_bounds_.reset(rows.resources(), rows.groups().size());
  }

  // True if rows can answer this request; else a view must. Rows visit all starts until n parts fit,
  // so a budget must hold for all sets of n parts or for none.
  static bool can_search(const ShareHosts& hosts, const ShareRequest& request, int criterion) {
    const bool alike = hosts.has_one_performance();
    return criterion_name(criterion) == Start::name && !request.query->limits &&
           detail::is_query_of_hosts(*request.query) &&
           !request.query->groups && (request.shape == ShapeKind::ragged || alike) &&
           (request.query->budget == kInfinity ||
            (alike && request.least_price == request.most_price));
  }

  // Finds the earliest window that starts at `now` or later. Its parts are in work.parts, ascending
  // by host; `row` is the index of the host. Requires can_search() and a valid query.
  Status find(const ShareRows& rows, const ShareHosts& hosts, double now,
              const ShareRequest& request, Workspace& work, Found& found) {
    Search search(*this, rows, hosts, request);
    return search.run(now, work, found);
  }

  // Keeps the bounds true after amounts of a host came back in [begin, end).
  void lower(std::size_t host, double begin, double end) {
    start_bounds_.lower(begin);
    group_bounds_.lower(host / detail::kLanes, begin, end);
  }

 private:
  static constexpr std::size_t kLanes = detail::kLanes;
  static constexpr std::size_t kGroupsPerBlock = 16;
  static constexpr double kUnknown = -kInfinity;  // of Scratch::until

  // Scratch memory, which only grows.
  struct Scratch {
    std::vector<double> lengths;           // [kind of host]
    std::vector<double> evaluated;         // [group]: time of its mask; NaN: none
    std::vector<std::uint32_t> allowed, masks;  // [group]: bit of each host
    std::vector<std::int64_t> counts;      // [group]: upper bound on its parts at the current time
    std::vector<double> until;            // [group]: time up to which `counts` holds
    std::vector<double> next;              // [block of groups]: least of `until`
    std::vector<ShareGroupBound> filtered;  // bounds of a request with filters
    std::vector<LiveHost> candidates;
  };

  class Search {
   public:
    Search(EarliestShares& owner, const ShareRows& rows, const ShareHosts& hosts,
           const ShareRequest& request)
        : owner_(owner), scratch_(owner.scratch_), rows_(rows), hosts_(hosts), request_(request),
          query_(*request.query), n_(request.query->n) {}

    Status run(double now, Workspace& work, Found& found) {
      if (hosts_.ids.empty()) return Status::none;
      read_lengths();
      read_filters();
      const ShareDemand demand{request_.demand, request_.stack, query_.volume, query_.setup,
                               query_.step, longest_};
      const double first = std::max(now, hosts_.begin);
      const double bound = owner_.start_bounds_.bound(demand, n_);
      double t = std::max({query_.earliest, first, bound});
      records_ = !filters_counts_ && query_.earliest <= std::max(first, bound);
      bounds_ = owner_.group_bounds_.find_or_create(demand);
      if (filters_counts_) {
        scratch_.filtered.assign(bounds_, bounds_ + rows_.groups().size());
        bounds_ = scratch_.filtered.data();
      }
      begin(t);
      for (;;) {
        if (t > query_.latest || t == kInfinity || !(t + shortest_ <= query_.deadline)) break;
        if ((sum_ >= n_ || has_unknown_) && has_parts(t)) {
          if (records_) owner_.start_bounds_.record(demand, n_, t);
          return choose(t, work, found);
        }
        poll();
        t = advance();
      }
      if (records_ && t == kInfinity) owner_.start_bounds_.record(demand, n_, kInfinity);
      return Status::none;
    }

   private:
    const ShareRows::HostGroup& group(std::size_t g) const { return rows_.groups()[g]; }
    double length_of(std::size_t host) const { return scratch_.lengths[hosts_.kind[host]]; }

    void read_lengths() {
      scratch_.lengths.resize(hosts_.performances.size());
      longest_ = shortest_ = query_.length(hosts_.performances[0]);
      for (std::size_t k = 0; k < scratch_.lengths.size(); ++k) {
        const double length = query_.length(hosts_.performances[k]);
        scratch_.lengths[k] = length;
        longest_ = std::max(longest_, length), shortest_ = std::min(shortest_, length);
      }
    }

    // Sets the hosts that may take part, if not all may.
    void read_filters() {
      is_uniform_ =
          request_.least_price == request_.most_price && hosts_.has_one_performance();
      filters_hosts_ = request_.most_price > query_.max_price || query_.mask;
      for (std::size_t k = 0; k < scratch_.lengths.size(); ++k)
        filters_hosts_ = filters_hosts_ || hosts_.performances[k] < query_.min_performance ||
                         scratch_.lengths[k] > query_.max_runtime;
      filters_counts_ = filters_hosts_ || query_.deadline < kMaxTime;
      if (!filters_hosts_) return;
      scratch_.allowed.assign(rows_.groups().size(), 0);
      for (std::size_t h = 0; h < hosts_.ids.size(); ++h) {
        const bool allowed = hosts_.performance[h] >= query_.min_performance &&
                             request_.prices[h] <= query_.max_price &&
                             length_of(h) <= query_.max_runtime && query_.passes(h);
        scratch_.allowed[h / kLanes] |= std::uint32_t{allowed} << h % kLanes;
      }
    }

    // Reads the bounds that hold at the first time.
    void begin(double t) {
      const std::size_t groups = rows_.groups().size();
      scratch_.evaluated.assign(groups, std::numeric_limits<double>::quiet_NaN());
      scratch_.masks.resize(groups), scratch_.counts.resize(groups);
      scratch_.until.resize(groups);
      scratch_.next.resize((groups + kGroupsPerBlock - 1) / kGroupsPerBlock);
      const std::int64_t most = static_cast<std::int64_t>(kLanes) * request_.stack;
      sum_ = 0, has_unknown_ = false;
      for (std::size_t g = 0; g < groups; ++g) {
        const ShareGroupBound& bound = bounds_[g];
        const bool is_known = bound.holds_at(t);
        scratch_.counts[g] = is_known ? bound.count : most;
        scratch_.until[g] = is_known ? bound.until : kUnknown;
        has_unknown_ |= !is_known;
        sum_ += scratch_.counts[g];
      }
      is_next_old_ = true;
    }
    // Computes the least `until` of a block of groups; most searches end before it is needed.
    void update_next(std::size_t block) {
      const std::size_t first = block * kGroupsPerBlock,
                        last = std::min(first + kGroupsPerBlock, scratch_.until.size());
      double least[4] = {kInfinity, kInfinity, kInfinity, kInfinity};  // independent minima
      for (std::size_t g = first; g < last; ++g)
        least[g % 4] = std::min(least[g % 4], scratch_.until[g]);
      scratch_.next[block] = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
    }

    // Goes to the next time at which a group may have gained parts, and evaluates those groups.
    double advance() {
      if (is_next_old_)
        for (std::size_t b = 0; b < scratch_.next.size(); ++b) update_next(b);
      is_next_old_ = false;
      double t = kInfinity;
      for (const double next : scratch_.next) t = std::min(t, next);
      if (t == kInfinity) return t;
      for (std::size_t b = 0; b < scratch_.next.size(); ++b) {
        if (scratch_.next[b] != t) continue;
        const std::size_t first = b * kGroupsPerBlock,
                          last = std::min(first + kGroupsPerBlock, scratch_.until.size());
        for (std::size_t g = first; g < last; ++g)
          if (scratch_.until[g] == t) evaluate(g, t);
        update_next(b);
      }
      return t;
    }

    // Evaluates old bounds until the sum is below n or all of them, for equal prices n of them, are
    // of this time. Returns true if n parts fit at t.
    bool has_parts(double t) {
      std::int64_t fit = 0;
      last_group_ = scratch_.counts.size();
      for (std::size_t g = 0; g < last_group_; ++g) {
        if (scratch_.counts[g] == 0) continue;
        if (scratch_.evaluated[g] != t) {
          if (sum_ < n_ && scratch_.until[g] != kUnknown) continue;
          evaluate(g, t);
          is_next_old_ = true;
        }
        fit += scratch_.counts[g];
        if (is_uniform_ && fit >= n_) {
          last_group_ = g + 1;
          return true;
        }
      }
      has_unknown_ = false;
      return sum_ >= n_;
    }

    // Counts the parts that fit in a group at t, and the next time at which they may be more.
    void evaluate(std::size_t g, double t) {
      const std::size_t row = group(g).row_at(t);
      Evaluation at{0, first_possible(g, row, t)};
      scratch_.masks[g] = 0;
      if (at.until == t) {
        at = request_.stack > 1 ? stacks_at(g, row, t) : hosts_at(g, row, t);
        if (at.count == 0 && at.until < kInfinity)
          at.until = first_possible(g, group(g).row_at(at.until), at.until);
      }
      sum_ += at.count - scratch_.counts[g];
      scratch_.counts[g] = at.count, scratch_.until[g] = at.until;
      scratch_.evaluated[g] = t;
      bounds_[g].set(t, at.until, at.count);
    }
    // Parts that fit in a group at a time, and the time up to which no more do.
    struct Evaluation {
      std::int32_t count;
      double until;
    };

    // Returns a time from t, which is in `row`, before which no host of the group can take a part:
    // each row that meets a part from there on may hold the demand, by its largest amounts.
    double first_possible(std::size_t g, std::size_t row, double t) const {
      const ShareRows::HostGroup& rows = group(g);
      for (; row < rows.size() && rows.begins[row] < t + shortest_; ++row)
        if (!rows_.may_hold(rows, row, request_.demand)) t = rows.end_of(row);
      return t;
    }

    // The rows that the parts in a group meet, if they start at t: from `first`, `count` of them for
    // the longest part. `limits`: count for each lane, null if all are equal.
    struct MetRows {
      std::size_t first, count;
      const std::int32_t* limits;
    };
    MetRows rows_met(std::size_t g, std::size_t first, double t, std::int32_t* limits) const {
      const ShareRows::HostGroup& rows = group(g);
      const auto count_until = [&](double end, std::size_t count) {
        while (first + count < rows.size() && rows.begins[first + count] < end) ++count;
        return count;
      };
      const std::size_t host = g * kLanes, hosts = std::min(kLanes, hosts_.ids.size() - host);
      if (hosts_.has_one_performance())
        return {first, count_until(t + longest_, 1), nullptr};
      double longest = 0;
      for (std::size_t l = 0; l < hosts; ++l) longest = std::max(longest, length_of(host + l));
      std::fill_n(limits, kLanes, 0);
      for (std::size_t l = 0; l < hosts; ++l) {
        // Rows are few, and lanes next to each other usually have one length.
        limits[l] = l > 0 && length_of(host + l) == length_of(host + l - 1)
                        ? limits[l - 1]
                        : static_cast<std::int32_t>(count_until(t + length_of(host + l), 1));
      }
      return {first, count_until(t + longest, 1), limits};
    }
    // Bit l: the host in lane l may take part, and is done by the deadline if it starts at t.
    std::uint32_t allowed_at(std::size_t g, double t) const {
      std::uint32_t allowed = filters_hosts_ ? scratch_.allowed[g] : ~std::uint32_t{0};
      const std::size_t host = g * kLanes, hosts = std::min(kLanes, hosts_.ids.size() - host);
      if (hosts < kLanes) allowed &= (std::uint32_t{1} << hosts) - 1;
      if (query_.deadline < kMaxTime)
        for (std::size_t l = 0; l < hosts; ++l)
          if (!(t + length_of(host + l) <= query_.deadline)) allowed &= ~(std::uint32_t{1} << l);
      return allowed;
    }

    Evaluation hosts_at(std::size_t g, std::size_t row, double t) {
      const ShareRows::HostGroup& rows = group(g);
      detail::RowScan scan;
      std::int32_t limits[kLanes];
      const MetRows met = rows_met(g, row, t, limits);
      detail::scan_rows(rows.cells.data(), rows.slots.data() + met.first, met.count,
                        rows_.resources(), request_.demand, met.limits, &scan);
      const std::uint32_t allowed = allowed_at(g, t);
      if (allowed != ~std::uint32_t{0}) {
        scan.first_end = std::numeric_limits<std::int32_t>::max();
        for (std::uint32_t rest = allowed & ~scan.fits; rest; rest &= rest - 1)
          scan.first_end = std::min(scan.first_end, scan.blocked[std::countr_zero(rest)]);
      }
      scratch_.masks[g] = scan.fits & allowed;
      const std::size_t after = met.first + static_cast<std::size_t>(scan.first_end);
      const double until = after < rows.size() ? rows.begins[after] : kInfinity;
      return {std::popcount(scratch_.masks[g]), until};
    }

    // As hosts_at(), for several parts a host. Their number can rise at each begin of a row.
    Evaluation stacks_at(std::size_t g, std::size_t row, double t) {
      std::int32_t count = 0;
      each_stack(g, row, t, [&](std::size_t host, Amount parts) {
        count += parts;
        scratch_.masks[g] |= std::uint32_t{1} << host % kLanes;
      });
      return {count, group(g).end_of(row)};
    }
    // Calls visit(host, number of parts that it can take at t) for the hosts that can take any.
    template <class Visit>
    void each_stack(std::size_t g, std::size_t first, double t, Visit visit) const {
      const ShareRows::HostGroup& rows = group(g);
      std::int32_t limits[kLanes];
      const MetRows met = rows_met(g, first, t, limits);
      for (std::uint32_t rest = allowed_at(g, t); rest; rest &= rest - 1) {
        const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
        const std::size_t count =
            met.limits ? static_cast<std::size_t>(met.limits[lane]) : met.count;
        Amount parts = request_.stack;
        for (std::size_t row = met.first; row < met.first + count && parts > 0; ++row)
          parts = std::min(parts, parts_in(rows_.cells(rows, row) + lane));
        if (parts > 0) visit(g * kLanes + lane, parts);
      }
    }
    Amount parts_in(const Amount* amounts) const {
      Amount parts = request_.stack;
      for (std::size_t d = 0; d < rows_.resources(); ++d) {
        const Amount x = amounts[d * kLanes];
        if (x < request_.demand[d] || x < 0) return 0;
        if (request_.demand[d] > 0) parts = std::min(parts, x / request_.demand[d]);
      }
      return parts;
    }

    // Builds the window of the n cheapest parts at t.
    Status choose(double t, Workspace& work, Found& found) {
      std::vector<LiveHost>& all = scratch_.candidates;
      all.clear();
      std::int64_t parts = 0;
      const CheapestParts cheapest(hosts_, request_, scratch_.lengths, longest_, is_uniform_);
      const auto add = [&](std::size_t host, Amount count) {
        all.push_back({cheapest.key_of(host), static_cast<std::uint32_t>(host), count});
        parts += count;
      };
      for (std::size_t g = 0; g < last_group_ && !(is_uniform_ && parts >= n_); ++g) {
        if (scratch_.counts[g] == 0) continue;
        if (request_.stack > 1)
          each_stack(g, group(g).row_at(t), t, add);
        else
          for (std::uint32_t rest = scratch_.masks[g]; rest; rest &= rest - 1)
            add(g * kLanes + static_cast<std::size_t>(std::countr_zero(rest)), 1);
      }
      if (!is_uniform_) cheapest.keep(all);
      if (!cheapest.moves_clock(t, all)) return Status::volume_too_small;
      cheapest.fill(t, all, work.parts, found);
      return found.cost <= query_.max_cost() ? Status::ok : Status::none;
    }
    EarliestShares& owner_;
    Scratch& scratch_;
    const ShareRows& rows_;
    const ShareHosts& hosts_;
    const ShareRequest& request_;
    const Query& query_;
    const std::int64_t n_;
    double longest_ = 0, shortest_ = 0;
    bool is_uniform_ = false;      // all hosts are equal in price and performance
    bool filters_hosts_ = false;   // some hosts may not take part
    bool filters_counts_ = false;  // counts are below those without the filters of the query
    bool records_ = false;         // the result is a bound for other requests
    ShareGroupBound* bounds_ = nullptr;  // [group]
    std::int64_t sum_ = 0;               // of Scratch::counts
    bool has_unknown_ = false;           // the count of some group is not known
    bool is_next_old_ = true;            // Scratch::next must be computed again
    std::size_t last_group_ = 0;         // from here on no group is needed
  };

  ShareStartBounds start_bounds_;
  ShareGroupBounds group_bounds_;
  Scratch scratch_;
};

}  // namespace slotkern
