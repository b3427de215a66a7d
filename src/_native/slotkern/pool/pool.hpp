// A pool that changes: book, release, advance, remove, and search in between.
//
// What is free and booked is told in pool/availability.hpp, the slots in the order of time for the
// searches in pool/usable_slots.hpp, and what no search need look for again in pool/start_bounds.hpp.
//
// A part costs O(log m + 64 + spans of its node) to book or release, and where costs are known
// what pool/cost_bounds.hpp says.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "slotkern/pool/start_bounds.hpp"
#include "slotkern/pool/adaptive_cost_search.hpp"
#include "slotkern/pool/usable_slots.hpp"
#include "slotkern/pool/availability.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

class SlotPool {
 public:
  // Takes over a pool just built from all slots of the origin array, whose prices these are.
  // All of it is free, or `state` tells what is: of the pool that this was, with more free spans,
  // so that what is remembered stays true where these serve nobody. Searches will be for parts of
  // at least the volume `least`: what holds less need not stand in the rows.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, const PoolState* state,
            double least = 0) {
    if (prepared.slots.size() > kManySlots) expect_long();
    ++version_;
    changes_since_trim_ = started_at_trim_ = 0, is_trimmed_ = true;
    prepared_ = &prepared;
    costs_.reset();
    spans_.reset(prepared.nodes);
    rows_.open(prepared, prices, least);
    if (!state) {
      for (StartBoundCache& start_bounds : start_bounds_) start_bounds.clear();
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Slot& slot = prepared.slots[i];
        spans_.append_free(static_cast<std::size_t>(slot.place), {slot.start, slot.end, i});
      }
      return rows_.build_all();
    }
    spans_.load(*state);
    for (std::size_t i = state->first_new_span; i < state->free.size(); ++i)
      lower_start_bounds(spans_.place_of_existing(state->free_nodes[i]), state->free[i]);
    rows_.build(spans_.free());
  }

  // A copy of another pool, whose slots have been copied to `prepared`. Without memory it is no
  // pool until it is copied or opened again.
  void copy(const SlotPool& other, PreparedSlots& prepared) {
    *this = other;
    attach(prepared);
  }

  // The same pool with more slots, `fresh`: all of it or, where something fails, nothing.
  void extend(PreparedSlots& fresh, const std::vector<double>& prices, const PoolState& state) {
    SlotPool next;
    next.version_ = version_;
    next.start_bounds_ = start_bounds_;
    next.open(fresh, prices, &state);
    std::swap(*prepared_, fresh);
    next.attach(*prepared_);
    *this = std::move(next);
  }

  // What is free, booked and removed, nodes by id.
  PoolState state() const { return spans_.state(); }
  PoolState free_between(double begin, double end) const {
    return spans_.free_between(begin, end);
  }

  // Call before a search for parts of this volume: the rows hold no slots too short for what
  // is usually asked.
  void ensure_rows_for(double volume) { rows_.ensure_threshold(volume, spans_.free()); }

 private:
  // What follows when time of a node is free again, or when more time comes to be free.
  auto on_freed() {
    return [this](std::size_t k, const Span& freed, const Span& grown) {
      lower_start_bounds(k, grown);
      if (costs_.is_built()) costs_.on_released(k, spans_.free()[k], freed, grown);
    };
  }

 public:
  // Books the parts (ascending by node), or changes nothing and says which part is not free.
  // `for_good`: they will never be given back.
  Status book(double start, const Part* parts, std::size_t n, std::size_t& failed_part,
              bool is_final = false) {
    const Status status = spans_.locate_free(start, parts, n, rows_, failed_part);
    if (status != Status::ok) return status;
    spans_.book(start, parts, is_final, rows_);
    ++version_;
    changes_since_trim_ += n;
    if (costs_.is_built())
      for (const Part* part = parts; part != parts + n; ++part) {
        const std::size_t k = spans_.place_of_existing(part->node);
        costs_.on_booked(k, spans_.free()[k], start, start + part->length);
      }
    rows_.compact_if_needed(spans_.free());
    return Status::ok;
  }

  // Whether release() would give them back, or which part is not booked.
  Status locate_booked(double start, const Part* parts, std::size_t n, std::size_t& failed_part) {
    return spans_.locate_booked(start, parts, n, failed_part);
  }

  // Gives the parts back as far as they are not past, or changes nothing and says which part
  // is not booked. Parts of removed nodes are gone with them.
  Status release(double start, const Part* parts, std::size_t n, std::size_t& failed_part) {
    const Status status = spans_.locate_booked(start, parts, n, failed_part);
    if (status != Status::ok) return status;
    spans_.release(start, rows_, on_freed());
    ++version_;
    changes_since_trim_ += n;
    return Status::ok;
  }

  // Sets the closed time of nodes: `of[i]` is the node of `times[i]`, both sorted by node id, then
  // by start; times may overlap, and a node without any is open. Closed time is not free, whatever
  // is released in it. On bad_alloc each node has all of its new closed time or its old one.
  void close(const std::vector<std::int32_t>& nodes, const std::vector<std::int32_t>& span_nodes,
             const std::vector<Span>& times) {
    ++version_;
    std::size_t next = 0;
    for (const std::int32_t node : nodes) {
      std::vector<Span> joined;
      for (; next < span_nodes.size() && span_nodes[next] <= node; ++next) {
        if (span_nodes[next] < node) continue;
        joined.push_back(times[next]);
      }
      AvailabilityTimeline::merge_overlapping(joined);
      const std::int32_t place = place_of(node);
      if (place < 0 || removed()[static_cast<std::size_t>(place)]) continue;
      changes_since_trim_ += joined.size() + 1;
      spans_.close(static_cast<std::size_t>(place), std::move(joined), rows_,
                   [&](std::size_t k, double start, double end) {
                     if (costs_.is_built()) costs_.on_booked(k, spans_.free()[k], start, end);
                   },
                   on_freed());
    }
    rows_.compact_if_needed(spans_.free());
  }

  // Between these two, searches for a start by `latest`, which is before `start`, see the booked
  // parts as free: in the rows alone, which must not be laid out meanwhile.
  void assume_free(double start, double latest, const Part* parts, std::size_t n) {
    spans_.assume_free(start, latest, parts, n, rows_);
    if (rows_.was_invalidated()) throw std::bad_alloc{};
  }
  void end_assume_free() { spans_.end_assume_free(rows_); }

  // Removes the time before `now` from the free time; the clock never goes back. Amortized
  // O(1 + spans that have ended): spans and rows that have ended are removed together, once they and
  // the changes since the last removal outnumber the nodes, because removal visits every node.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    set_clock(now);
    const std::size_t started = rows_.count_started(spans_.now());
    const std::size_t come = started - std::min(started, started_at_trim_);
    if (come + changes_since_trim_ > prepared_->nodes.size() + started_at_trim_ + 256) erase_expired();
    return Status::ok;
  }

  // The clock moves, and what is past keeps its rows, where searches pass it by: O(1).
  void set_clock(double now) {
    ++version_;
    if (now > spans_.now()) is_trimmed_ = false;
    spans_.set_clock(now);
  }

  // All rows begin at now or later, and so do all free spans: O(nodes + rows before now).
  void trim_before_now() {
    if (is_trimmed_) return;
    if (rows_.can_update_incrementally(spans_.count_expired())) {
      spans_.trim_before_now(rows_);
      rows_.compact_if_needed(spans_.free());
    } else {
      NullObserver none;
      spans_.trim_before_now(none);
      rows_.trim_before(spans_.now());
    }
    spans_.erase_expired(rows_);  // of closed time: no free span has ended
    is_trimmed_ = true;
    record_trim();
  }

  // The node and all its time, booked or free, leave.
  bool remove(std::int32_t node) {
    const std::int32_t found = place_of(node);
    if (found < 0 || removed()[static_cast<std::size_t>(found)]) return false;
    ++version_;
    spans_.remove_node(static_cast<std::size_t>(found), rows_);
    if (costs_.is_built()) costs_.on_node_removed(static_cast<std::size_t>(found));
    return true;
  }

  // As search(), but starts from what is remembered, and remembers. `least`: no window has a
  // lower value, as what an earlier search for the same found where only bookings followed.
  Status find(const Query& asked, int criterion, ShapeKind shape, Workspace& work, Found& found,
              double least = -kInfinity) {
    Query from;
    if (const Status status = normalize(asked, criterion, from); status != Status::ok)
      return status;
    // The papers' first step, and the work on sums that limits bound, depend on the order of rows.
    if (criterion_name(criterion) == First::name || asked.limits) {
      trim_before_now();
      ensure_rows_for(asked.volume);  // rebuilds rows that trim_before_now() lost for want of memory, or throws
    }
    StartBoundCache& start_bounds = start_bounds_[cache_index(from, shape)];
    const double requested_earliest = from.earliest, cached_start = start_bounds.bound(from);
    if (cached_start == kInfinity) return Status::none;
    from.earliest = std::max(requested_earliest, cached_start);
    if (finds_shortest(criterion) && shape == ShapeKind::ragged && from.hints() &&
        prepared_->slots.size() > kFewRows) {
      from.earliest = requested_earliest;
      return find_min_runtime(from, work, found);
    }
    const Status status = search(from, criterion, shape, work, found, least);
    const bool from_the_first = requested_earliest <= std::max(prepared_->first_start(), now());
    const double earliest = from_the_first ? -kInfinity : requested_earliest;
    if (status == Status::none)
      start_bounds.record(from, fastest(), earliest, kInfinity);
    else if (status == Status::ok && prepared_->slots.size() > kFewRows &&
             finds_earliest(criterion) && found.start > cached_start)
      start_bounds.record(from, fastest(), earliest, found.start);
    return status;
  }

  // The same where no window starts before `first`, for a start by `latest`; nothing is remembered.
  Status find_in_range(double first, double latest, const Query& asked, int criterion,
                      ShapeKind shape, Workspace& work, Found& found) {
    Query from;
    if (const Status status = normalize(asked, criterion, from); status != Status::ok)
      return status;
    from.earliest = std::max(from.earliest, first);
    from.latest = std::min(from.latest, latest);
    return search_checked(*prepared_, from, criterion, shape, work, found);
  }

  // No window for the query starts before this.
  double earliest_possible_start(const Query& asked, ShapeKind shape) const {
    Query from = prepared_->as_searched(asked);
    from.earliest = std::max(from.earliest, now());
    return std::max(from.earliest, start_bounds_[cache_index(from, shape)].bound(from));
  }

  // The free spans of a node, ascending, by its place; -1: there is no such node.
  const std::vector<Span>& free_at(std::size_t place) const { return spans_.free()[place]; }
  std::int32_t place_of(std::int32_t node) const { return spans_.place_of(node); }

  double now() const { return spans_.now(); }
  std::size_t version() const { return version_; }  // another after every change
  const std::vector<std::uint8_t>& removed() const { return spans_.removed(); }

 private:
  // A listener for changes that rows do not follow: they are laid out anew.
  struct NullObserver {
    void erase(std::size_t, const Span&) {}
    void set_start(std::size_t, const Span&, double) {}
    void apply_pending() {}
  };

  void erase_expired() {
    if (!rows_.can_update_incrementally(spans_.count_expired())) return trim_before_now();
    spans_.erase_expired(rows_);
    rows_.compact_if_needed(spans_.free());
    record_trim();
  }
  void record_trim() {
    started_at_trim_ = rows_.count_started(spans_.now());
    changes_since_trim_ = 0;
  }

  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    rows_.attach(prepared);
  }

  double fastest() const {
    return prepared_->nodes.empty() ? 1 : prepared_->nodes.front().performance;
  }

  static std::size_t cache_index(const Query& query, ShapeKind shape) {
    return 2 * query.charged() + static_cast<std::size_t>(shape);
  }

  // The span has come to be free, or has grown.
  void lower_start_bounds(std::size_t k, const Span& span) {
    Slot slot = rows_.slot_of(k, span);
    slot.start = std::max(slot.start, now());
    for (StartBoundCache& start_bounds : start_bounds_) start_bounds.lower_for_freed(slot);
  }

  // What is searched for on the rows as they are.
  Status normalize(const Query& asked, int criterion, Query& from) {
    if (!asked.sane() || criterion < 0 || criterion >= kBuiltins)
      return Status::request_not_valid;
    ensure_rows_for(asked.volume);
    from = prepared_->as_searched(asked);
    from.earliest = std::max(from.earliest, now());
    return prepared_->check(from);
  }

  // The shortest ragged window is the earliest one of those nodes that are as fast as any n free
  // together: find() remembers of which there is none. What the last answer was is asked first,
  // then groups ever farther from it, and by halves between those known.
  Status find_min_runtime(const Query& query, Workspace& work, Found& found) {
    static const int start = criterion_index(Start::name);
    const auto groups = prepared_->groups.begin();
    // Those that may be the slowest of the window.
    auto end = std::partition_point(groups, prepared_->groups.end(), [&](const Group& group) {
      return group.performance >= query.min_performance;
    });
    auto first = std::partition_point(groups, end, [&](const Group& group) {
      return group.end < static_cast<std::size_t>(query.n);
    });
    const auto length = [&](const Group& group) { return query.length(group.performance); };
    bool any = false, none = false;
    for (std::ptrdiff_t step = 0, at = last_group_; first != end; step = 2 * step + 1) {
      auto group = groups + std::clamp(at, first - groups, end - groups - 1);
      while (end - group > 1 && length(group[1]) == length(group[0])) ++group;
      Query fast = query;
      fast.min_performance = group->performance;
      Found other;
      const Status status = find(fast, start, ShapeKind::ragged, work, other);
      if (status == Status::ok) {
        any = true;
        std::swap(work.parts, work.trial_parts);
        found = other;
        found.value = found.runtime;
        end = std::partition_point(first, group, [&](const Group& faster) {
          return length(faster) < found.runtime;
        });
        last_group_ = end - groups;
      } else if (status == Status::none) {
        none = true;
        first = group + 1;
      } else {
        return status;
      }
      at = any && none ? first - groups + (end - first) / 2
           : any       ? end - groups - 1 - step
                       : first - groups + step;
    }
    if (any) std::swap(work.parts, work.trial_parts);
    return any ? Status::ok : Status::none;
  }

  // search_checked(); the cheapest ragged window, where that pays, by what is known of costs.
  Status search(const Query& query, int criterion, ShapeKind shape, Workspace& work, Found& found,
                double least) {
    if (!can_use_cost_cache(*prepared_, query, criterion, shape))
      return search_checked(*prepared_, query, criterion, shape, work, found, least);
    return search_cheapest(*prepared_, query, costs_, least, work, found,
                           [this] { return FreeTimeView{rows_.prices(), spans_}; });
  }

  PreparedSlots* prepared_ = nullptr;
  std::size_t version_ = 0;
  std::size_t changes_since_trim_ = 0, started_at_trim_ = 0;  // since, and rows begun at, the last drop of what ended
  bool is_trimmed_ = true;               // no row begins before now
  std::ptrdiff_t last_group_ = 0;  // of the last shortest window: the group of its slowest nodes
  CostBoundCache costs_;
  AvailabilityTimeline spans_;
  UsableSlotIndex rows_;
  std::array<StartBoundCache, 4> start_bounds_;  // by table_of()
};

}  // namespace slotkern
