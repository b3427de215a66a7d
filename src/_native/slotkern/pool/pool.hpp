// A pool that changes: book, release, advance, remove, and search in between.
//
// What is free and booked is told in pool/spans.hpp, the slots in the order of time for the
// searches in pool/serving.hpp, and what no search need look for again in pool/hints.hpp.
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

#include "slotkern/pool/hints.hpp"
#include "slotkern/pool/known_costs.hpp"
#include "slotkern/pool/serving.hpp"
#include "slotkern/pool/spans.hpp"
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
    changes_ = begun_ = 0, cut_to_now_ = true;
    prepared_ = &prepared;
    costs_.forget();
    spans_.open(prepared.nodes);
    rows_.open(prepared, prices, least);
    if (!state) {
      for (Hints& hints : hints_) hints.clear();
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Slot& slot = prepared.slots[i];
        spans_.add(static_cast<std::size_t>(slot.place), {slot.start, slot.end, i});
      }
      return rows_.lay_out_all();
    }
    spans_.restore(*state);
    for (std::size_t i = state->known; i < state->free.size(); ++i)
      lower_hints(spans_.known_place(state->free_nodes[i]), state->free[i]);
    rows_.lay_out(spans_.free());
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
    next.hints_ = hints_;
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
  void make_rows_for(double volume) { rows_.make_for(volume, spans_.free()); }

 private:
  // What follows when time of a node is free again, or when more time comes to be free.
  auto on_freed() {
    return [this](std::size_t k, const Span& freed, const Span& grown) {
      lower_hints(k, grown);
      if (costs_.known()) costs_.gave(k, spans_.free()[k], freed, grown);
    };
  }

 public:
  // Books the parts (ascending by node), or changes nothing and says which part is not free.
  // `for_good`: they will never be given back.
  Status book(double start, const Part* parts, std::size_t n, std::size_t& bad,
              bool for_good = false) {
    const Status status = spans_.find_free(start, parts, n, rows_, bad);
    if (status != Status::ok) return status;
    spans_.cut(start, parts, for_good, rows_);
    ++version_;
    changes_ += n;
    if (costs_.known())
      for (const Part* part = parts; part != parts + n; ++part) {
        const std::size_t k = spans_.known_place(part->node);
        costs_.took(k, spans_.free()[k], start, start + part->length);
      }
    rows_.tidy(spans_.free());
    return Status::ok;
  }

  // Whether release() would give them back, or which part is not booked.
  Status find_booked(double start, const Part* parts, std::size_t n, std::size_t& bad) {
    return spans_.find_booked(start, parts, n, bad);
  }

  // Gives the parts back as far as they are not past, or changes nothing and says which part
  // is not booked. Parts of removed nodes are gone with them.
  Status release(double start, const Part* parts, std::size_t n, std::size_t& bad) {
    const Status status = spans_.find_booked(start, parts, n, bad);
    if (status != Status::ok) return status;
    spans_.give_back(start, rows_, on_freed());
    ++version_;
    changes_ += n;
    return Status::ok;
  }

  // Sets the closed time of nodes: `of[i]` is the node of `times[i]`, both sorted by node id, then
  // by start; times may overlap, and a node without any is open. Closed time is not free, whatever
  // is released in it. On bad_alloc each node has all of its new closed time or its old one.
  void close(const std::vector<std::int32_t>& nodes, const std::vector<std::int32_t>& of,
             const std::vector<Span>& times) {
    ++version_;
    std::size_t next = 0;
    for (const std::int32_t node : nodes) {
      std::vector<Span> joined;
      for (; next < of.size() && of[next] <= node; ++next) {
        if (of[next] < node) continue;
        joined.push_back(times[next]);
      }
      PoolSpans::join_overlapping(joined);
      const std::int32_t place = place_of(node);
      if (place < 0 || gone()[static_cast<std::size_t>(place)]) continue;
      changes_ += joined.size() + 1;
      spans_.close(static_cast<std::size_t>(place), std::move(joined), rows_,
                   [&](std::size_t k, double start, double end) {
                     if (costs_.known()) costs_.took(k, spans_.free()[k], start, end);
                   },
                   on_freed());
    }
    rows_.tidy(spans_.free());
  }

  // Between these two, searches for a start by `latest`, which is before `start`, see the booked
  // parts as free: in the rows alone, which must not be laid out meanwhile.
  void lend(double start, double latest, const Part* parts, std::size_t n) {
    spans_.lend(start, latest, parts, n, rows_);
    if (rows_.were_lost()) throw std::bad_alloc{};
  }
  void take_back() { spans_.take_back(rows_); }

  // Removes the time before `now` from the free time; the clock never goes back. Amortized
  // O(1 + spans that have ended): spans and rows that have ended are removed together, once they and
  // the changes since the last removal outnumber the nodes, because removal visits every node.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    pass(now);
    const std::size_t begun = rows_.begun(spans_.now());
    const std::size_t come = begun - std::min(begun, begun_);
    if (come + changes_ > prepared_->nodes.size() + begun_ + 256) drop_ended();
    return Status::ok;
  }

  // The clock moves, and what is past keeps its rows, where searches pass it by: O(1).
  void pass(double now) {
    ++version_;
    if (now > spans_.now()) cut_to_now_ = false;
    spans_.pass(now);
  }

  // All rows begin at now or later, and so do all free spans: O(nodes + rows before now).
  void drop_past() {
    if (cut_to_now_) return;
    if (rows_.moves_cheaply(spans_.past())) {
      spans_.drop_past(rows_);
      rows_.tidy(spans_.free());
    } else {
      NoRows none;
      spans_.drop_past(none);
      rows_.drop_past(spans_.now());
    }
    spans_.drop_ended(rows_);  // of closed time: no free span has ended
    cut_to_now_ = true;
    count_begun();
  }

  // The node and all its time, booked or free, leave.
  bool remove(std::int32_t node) {
    const std::int32_t found = place_of(node);
    if (found < 0 || gone()[static_cast<std::size_t>(found)]) return false;
    ++version_;
    spans_.remove(static_cast<std::size_t>(found), rows_);
    if (costs_.known()) costs_.lost(static_cast<std::size_t>(found));
    return true;
  }

  // As search(), but starts from what is remembered, and remembers. `least`: no window has a
  // lower value, as what an earlier search for the same found where only bookings followed.
  Status find(const Query& asked, int criterion, ShapeKind shape, Workspace& work, Found& found,
              double least = -kInfinity) {
    Query from;
    if (const Status status = ask(asked, criterion, from); status != Status::ok)
      return status;
    // The papers' first step, and the work on sums that limits bound, depend on the order of rows.
    if (criterion_name(criterion) == First::name || asked.limits) {
      drop_past();
      make_rows_for(asked.volume);  // rebuilds rows that drop_past() lost for want of memory, or throws
    }
    Hints& hints = hints_[table_of(from, shape)];
    const double floor = from.earliest, known = hints.bound(from);
    if (known == kInfinity) return Status::none;
    from.earliest = std::max(floor, known);
    if (finds_shortest(criterion) && shape == ShapeKind::ragged && from.hints() &&
        prepared_->slots.size() > kFewRows) {
      from.earliest = floor;
      return find_shortest(from, work, found);
    }
    const Status status = search(from, criterion, shape, work, found, least);
    const bool from_the_first = floor <= std::max(prepared_->first_start(), now());
    const double earliest = from_the_first ? -kInfinity : floor;
    if (status == Status::none)
      hints.learn(from, fastest(), earliest, kInfinity);
    else if (status == Status::ok && prepared_->slots.size() > kFewRows &&
             finds_earliest(criterion) && found.start > known)
      hints.learn(from, fastest(), earliest, found.start);
    return status;
  }

  // The same where no window starts before `first`, for a start by `latest`; nothing is remembered.
  Status find_between(double first, double latest, const Query& asked, int criterion,
                      ShapeKind shape, Workspace& work, Found& found) {
    Query from;
    if (const Status status = ask(asked, criterion, from); status != Status::ok)
      return status;
    from.earliest = std::max(from.earliest, first);
    from.latest = std::min(from.latest, latest);
    return search_checked(*prepared_, from, criterion, shape, work, found);
  }

  // No window for the query starts before this.
  double known(const Query& asked, ShapeKind shape) const {
    Query from = prepared_->as_searched(asked);
    from.earliest = std::max(from.earliest, now());
    return std::max(from.earliest, hints_[table_of(from, shape)].bound(from));
  }

  // The free spans of a node, ascending, by its place; -1: there is no such node.
  const std::vector<Span>& free_at(std::size_t place) const { return spans_.free()[place]; }
  std::int32_t place_of(std::int32_t node) const { return spans_.place_of(node); }

  double now() const { return spans_.now(); }
  std::size_t version() const { return version_; }  // another after every change
  const std::vector<std::uint8_t>& gone() const { return spans_.gone(); }

 private:
  // A listener for changes that rows do not follow: they are laid out anew.
  struct NoRows {
    void erase(std::size_t, const Span&) {}
    void set_start(std::size_t, const Span&, double) {}
    void settle() {}
  };

  void drop_ended() {
    if (!rows_.moves_cheaply(spans_.past())) return drop_past();
    spans_.drop_ended(rows_);
    rows_.tidy(spans_.free());
    count_begun();
  }
  void count_begun() {
    begun_ = rows_.begun(spans_.now());
    changes_ = 0;
  }

  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    rows_.attach(prepared);
  }

  double fastest() const {
    return prepared_->nodes.empty() ? 1 : prepared_->nodes.front().performance;
  }

  static std::size_t table_of(const Query& query, ShapeKind shape) {
    return 2 * query.charged() + static_cast<std::size_t>(shape);
  }

  // The span has come to be free, or has grown.
  void lower_hints(std::size_t k, const Span& span) {
    Slot slot = rows_.slot_of(k, span);
    slot.start = std::max(slot.start, now());
    for (Hints& hints : hints_) hints.lower(slot);
  }

  // What is searched for on the rows as they are.
  Status ask(const Query& asked, int criterion, Query& from) {
    if (!asked.sane() || criterion < 0 || criterion >= kBuiltins)
      return Status::request_not_valid;
    make_rows_for(asked.volume);
    from = prepared_->as_searched(asked);
    from.earliest = std::max(from.earliest, now());
    return prepared_->check(from);
  }

  // The shortest ragged window is the earliest one of those nodes that are as fast as any n free
  // together: find() remembers of which there is none. What the last answer was is asked first,
  // then groups ever farther from it, and by halves between those known.
  Status find_shortest(const Query& query, Workspace& work, Found& found) {
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
    for (std::ptrdiff_t step = 0, at = slowest_; first != end; step = 2 * step + 1) {
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
        slowest_ = end - groups;
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
    if (!costs_may_tell(*prepared_, query, criterion, shape))
      return search_checked(*prepared_, query, criterion, shape, work, found, least);
    return search_cheapest(*prepared_, query, costs_, least, work, found,
                           [this] { return FreeTime{rows_.prices(), spans_}; });
  }

  PreparedSlots* prepared_ = nullptr;
  std::size_t version_ = 0;
  std::size_t changes_ = 0, begun_ = 0;  // since, and rows begun at, the last drop of what ended
  bool cut_to_now_ = true;               // no row begins before now
  std::ptrdiff_t slowest_ = 0;  // of the last shortest window: the group of its slowest nodes
  CostBounds costs_;
  PoolSpans spans_;
  ServingRows rows_;
  std::array<Hints, 4> hints_;  // by table_of()
};

}  // namespace slotkern
