// The scheduling loop on shared hosts: finds and books a window for each job of a queue, in order.
// And the functions of a SharePool that return a Status and never throw, for bindings.
//
// Input: jobs for parts or for groups of a tree, what each uses of the capacities of the pool, and a
// criterion. Output: for each job a row of a window table, whose parts are on hosts, and a Reason.
// Equal to find() and book() of the pool for one job after the other.
//
// Cost of a job: one search (shares/share_pool.hpp) and one change of rows for each part. A job
// without a window costs up to two more searches and, if only few hosts hold its parts, O(rows).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/pool/first_within.hpp"
#include "slotkern/shares/share_pool.hpp"

namespace slotkern {

// Functions of a SharePool that never throw. `failed_part`: index of the part that
// was refused.

// Calls change(i) for each span until one is refused.
template <class Change>
Status change_spans(const std::vector<HostSpan>& spans, std::size_t& failed,
                    Change change) noexcept {
  return guarded([&] {
    for (failed = 0; failed < spans.size(); ++failed)
      if (const Status status = change(failed); status != Status::ok) return status;
    return Status::ok;
  });
}

inline Answer find_shares(SharePool& pool, const ShareRequest& request, int criterion,
                          ShareMethod method) noexcept {
  return run_search(*request.query, [&](Workspace& work, Found& found) {
    return pool.find(request, criterion, method, work, found);
  });
}

inline Status open_shares(SharePool& pool, const std::vector<std::int32_t>& ids,
                          const std::vector<double>& performance, std::size_t resources,
                          double begin, double end, const SharePool::ShareState& state,
                          std::size_t& failed) noexcept {
  failed = 0;
  return guarded([&] {
    pool.open(ids, performance, resources, begin, end);
    return pool.load(state, failed);
  });
}

inline Status state_of(const SharePool& pool, SharePool::ShareState& state) noexcept {
  return guarded([&] { return state = pool.state(), Status::ok; });
}

// The number of parts, which may depend on the groups, is written to `parts`.
inline Answer find_tree(SharePool& pool, const TreeRequest& request, std::size_t& parts) noexcept {
  return run_search(*request.query, [&](Workspace& work, Found& found) {
    const Status status = pool.find_tree(request, work, found);
    parts = work.parts.size();
    return status;
  });
}
inline Status add_tree(SharePool& pool, const HostTree& tree, std::size_t& index) noexcept {
  return guarded([&] { return index = pool.add_tree(tree), Status::ok; });
}

inline Status book_shares(SharePool& pool, double start, const Part* parts, std::size_t n,
                          PartAmounts demand, std::size_t& failed_part) noexcept {
  return guarded([&] { return pool.book(start, parts, n, demand, failed_part); });
}

inline Status release_shares(SharePool& pool, double start, const Part* parts, std::size_t n,
                             const Amount* demand, std::size_t& failed_part) noexcept {
  return guarded([&] { return pool.release(start, parts, n, demand, failed_part); });
}

// Adds all spans, or none if `failed` is refused. `amounts`: resources() for each span.
inline Status add_shares(SharePool& pool, const std::vector<HostSpan>& spans,
                         const std::vector<Amount>& amounts, std::size_t& failed) noexcept {
  const Status status = guarded([&] { return pool.can_add_free(spans, amounts, failed); });
  if (status != Status::ok) return status;
  return change_spans(spans, failed, [&](std::size_t i) {
    return pool.add_free(spans[i], amounts.data() + i * pool.resources());
  });
}

// The next functions change the spans one by one; `failed` is the span that was refused, and all
// changes before it are made. `amounts`: resources() for each span.

inline Status reserve_shares(SharePool& pool, const std::vector<HostSpan>& spans,
                             const std::vector<Amount>& amounts, std::size_t& failed) noexcept {
  return change_spans(spans, failed, [&](std::size_t i) {
    return pool.reserve(spans[i], amounts.data() + i * pool.resources());
  });
}
inline Status unreserve_shares(SharePool& pool, const std::vector<HostSpan>& spans,
                               const std::vector<Amount>& amounts, std::size_t& failed) noexcept {
  return change_spans(spans, failed, [&](std::size_t i) {
    return pool.unreserve(spans[i], amounts.data() + i * pool.resources());
  });
}
inline Status disable_hosts(SharePool& pool, const std::vector<HostSpan>& spans) noexcept {
  std::size_t failed = 0;
  return change_spans(spans, failed,
                      [&](std::size_t i) { return pool.disable(spans[i]), Status::ok; });
}
inline Status enable_hosts(SharePool& pool, const std::vector<HostSpan>& spans) noexcept {
  std::size_t failed = 0;
  return change_spans(spans, failed,
                      [&](std::size_t i) { return pool.enable(spans[i].host), Status::ok; });
}
inline Status advance_shares(SharePool& pool, double now) noexcept {
  return guarded([&] { return pool.advance(now); });
}

// Appends the maximal spans in which a host holds the demand.
inline Status spans_of_demand(const SharePool& pool, const Amount* demand,
                              std::vector<HostSpan>& spans) noexcept {
  return guarded([&] {
    pool.each_span(demand, [&](std::size_t host, double start, double end) {
      spans.push_back({host, start, end});
    });
    return Status::ok;
  });
}
// Appends the rows of a host from now() on: times, amounts without what marks it as unavailable,
// and whether it is available.
inline Status rows_of_host(const SharePool& pool, std::size_t host, std::vector<HostSpan>& spans,
                           std::vector<Amount>& amounts,
                           std::vector<std::uint8_t>& available) noexcept {
  return guarded([&] {
    pool.each_row(host, std::max(pool.hosts().begin, pool.now()), pool.hosts().end,
                  [&](double start, double end, std::size_t row) {
                    spans.push_back({host, start, end});
                    for (std::size_t d = 0; d < pool.resources(); ++d)
                      amounts.push_back(pool.rows().free_amount(host, row, d));
                    available.push_back(pool.rows().is_available(host, row));
                  });
    return Status::ok;
  });
}

namespace detail {

// Returns how many parts, up to n, the hosts that are fast enough hold at some time from now on,
// each host at its own time.
inline std::int64_t count_places(const SharePool& pool, const ShareRequest& job,
                                 const Query& query) {
  const ShareHosts& hosts = pool.hosts();
  const double from = std::max(hosts.begin, pool.now());
  std::int64_t places = 0;
  for (std::size_t h = 0; h < hosts.ids.size() && places < query.n; ++h) {
    if (hosts.performance[h] < query.min_performance) continue;
    for (Amount parts = 1; parts <= job.stack; ++parts) {
      bool holds = false;
      pool.rows().each_span(h, from, hosts.end, job.demand, parts,
                            [&](double, double) { holds = true; });
      if (!holds) break;
      ++places;
    }
  }
  return places;
}

}  // namespace detail

// A job of a queue: parts on any hosts, or groups of a tree.
struct ShareJob {
  const Query* query;
  ShareRequest parts;  // its query is not read
  TreeRequest tree;    // the same
  bool is_tree = false;
};

// The uses of the capacities of the pool by jobs of a queue. Empty: no job has any.
struct QueueUses {
  std::size_t first_job = 0;  // index of the job of uses[0]
  std::vector<std::vector<CapacityUse>> uses;
  double now = -kInfinity;  // of the capacities

  // Returns null if no capacity counts the job.
  const std::vector<CapacityUse>* of(std::size_t job) const {
    const bool is_counted = job < first_job + uses.size() && !uses[job - first_job].empty();
    return is_counted ? &uses[job - first_job] : nullptr;
  }
};

// Schedules the jobs from number reasons.size() on, at most `most` of them. Appends one row and one
// Reason for each. After an interruption or an error, both hold what was booked. Returns none if the
// next job has uses, but no window: the caller adds the reason. Uses require the criterion start or
// finish.
inline Status schedule_shares(SharePool& pool, const std::vector<ShareJob>& jobs, int criterion,
                              std::size_t most, const QueueUses& counted, WindowTable& out,
                              std::vector<std::uint8_t>& reasons) noexcept {
  return guarded([&] {
    Workspace& work = workspace();
    const std::size_t last = std::min(jobs.size(), reasons.size() + most);
    const bool by_finish = criterion_name(criterion) == Finish::name;
    reasons.reserve(jobs.size());
    while (reasons.size() < last) {
      poll();
      const ShareJob& job = jobs[reasons.size()];
      const std::vector<CapacityUse>* const uses = counted.of(reasons.size());
      const auto find = [&](const Query& query, int by, Found& found) {
        if (!job.is_tree) {
          ShareRequest asked = job.parts;
          asked.query = &query;
          return pool.find(asked, by, ShareMethod::automatic, work, found);
        }
        TreeRequest asked = job.tree;
        asked.query = &query, asked.uses = uses;
        const Status status = pool.find_tree(asked, work, found);
        if (status == Status::ok && by_finish) found.value = found.start + found.runtime;
        return status;
      };
      double finish = 0;
      bool is_unexplained = false;
      const Status status = detail::schedule_next(
          *job.query, work, out, reasons,
          [&](Found& found) {
            if (!uses) return find(*job.query, criterion, found);
            const double length = job.query->length(pool.hosts().performances.back());
            const Status answer =
                job.is_tree ? find(*job.query, criterion, found)
                            : find_first_within(*uses, *job.query, counted.now, length, by_finish,
                                                found, [&](const Query& query, Found& each) {
                                                  return find(query, criterion, each);
                                                });
            finish = found.start + found.runtime;
            return answer;
          },
          [&](double start) {
            const PartAmounts demand = job.is_tree ? job.tree.demand : job.parts.demand;
            std::size_t failed_part = 0;
            if (uses) add_uses(*uses, start, finish, counted.now, -1);
            const Status booked =
                pool.book(start, work.parts.data(), work.parts.size(), demand, failed_part);
            if (uses && booked != Status::ok) add_uses(*uses, start, finish, counted.now, 1);
            return booked;
          },
          [&](Status failure) {
            is_unexplained = uses != nullptr;
            if (is_unexplained) return Reason::cap;  // replaced by the caller
            if (job.is_tree)
              return failure == Status::volume_too_small ? Reason::volume : Reason::groups;
            const std::int64_t places = detail::count_places(pool, job.parts, *job.query);
            return detail::rejection_reason(failure, places, *job.query, [&](const Query& freer) {
              Found found;
              return find(freer, criterion_index(Start::name), found);  // the cheapest to search
            });
          });
      if (status != Status::ok) return status;
      if (!is_unexplained) continue;
      out.drop_last();
      reasons.pop_back();
      return Status::none;
    }
    return Status::ok;
  });
}

}  // namespace slotkern
