// The free and the booked time of a changing pool, by node. All other structures of a pool are
// derived from this one.
//
// Each node has a sorted list of disjoint free spans. A span carries the row of the origin array
// that it is a part of, and released time merges only with spans of the same row: slots that touch
// (perhaps at other prices) stay separate, and book() followed by release() restores the lists bit
// for bit. Booked spans are stored apart from them (pool/booking_index.hpp), so that no time can be
// released twice. `Observer` is notified of every change of free time (pool/usable_slots.hpp).
//
// Closed time of a node (for example while it is out of order) is never free, booked or not. Closed
// time that is not booked is withheld: it is in neither list and becomes free when the node is
// opened. A part released within closed time is withheld too.
//
// The clock is lazy: free time before now() stays in the lists until a change touches it or
// trim_before_now() is called. Readers must clip spans to now().
//
// Cost: O(log m + spans of the node) for each part booked or released.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "slotkern/base/memory.hpp"
#include "slotkern/pool/booking_index.hpp"
#include "slotkern/pool/closed_time.hpp"
#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// Snapshot of a pool without its origin array. Node ids parallel to their spans, which ascend
// within each node.
struct PoolState {
  double now = -kInfinity;
  std::vector<std::int32_t> free_nodes, booked_nodes, removed;
  std::vector<Span> free, booked;
  std::size_t first_new_span = 0;  // index in `free`: spans from here on are new
  std::vector<std::int32_t> withheld_nodes, closed_nodes;
  std::vector<Span> withheld;  // closed, not booked
  std::vector<Span> closed;    // disjoint; origin_row is not used
};

// Nodes are identified by their index in PreparedSlots::nodes (`place`, `k`).
class AvailabilityTimeline {
 public:
  // Ignores notifications, for changes after which the observer is rebuilt.
  struct NullObserver {
    void erase(std::size_t, const Span&) {}
    void set_start(std::size_t, const Span&, double) {}
    void subtract(std::size_t, const Span&, double, double, std::size_t, bool) {}
    void apply_pending() {}
  };

  // Starts over with these nodes and no free time. Existing lists keep their memory.
  void reset(const std::vector<Node>& nodes) {
    now_ = -kInfinity;
    free_.resize(nodes.size());
    for (std::vector<Span>& spans : free_) spans.clear();
    bookings_.reset(nodes.size());
    removed_.assign(nodes.size(), 0);
    closed_.clear();
    index_nodes(nodes);
  }

  // Appends a free span, which must start after those that the node has.
  void append_free(std::size_t place, const Span& span) { free_[place].push_back(span); }

  // Loads a snapshot. Call after reset().
  void load(const PoolState& state) {
    now_ = state.now;
    for (const std::int32_t node : state.removed) removed_[place_of_existing(node)] = 1;
    bookings_.reserve(state.booked.size(), now_);
    for (std::size_t i = 0; i < state.booked.size(); ++i)
      bookings_.add(place_of_existing(state.booked_nodes[i]), state.booked[i]);
    load_free(state);
    const auto by_start = [](const Span& a, const Span& b) { return a.start < b.start; };
    for (std::vector<Span>& spans : free_)
      if (!std::is_sorted(spans.begin(), spans.end(), by_start))
        std::sort(spans.begin(), spans.end(), by_start);
    for (std::size_t i = 0; i < state.closed.size(); ++i)
      closed_[place_of_existing(state.closed_nodes[i])].times.push_back(state.closed[i]);
    for (std::size_t i = 0; i < state.withheld.size(); ++i)
      closed_[place_of_existing(state.withheld_nodes[i])].withheld.push_back(state.withheld[i]);
    NullObserver none;
    for (auto& [k, closed] : closed_) {
      std::sort(closed.times.begin(), closed.times.end(), by_start);
      merge_overlapping(closed.times);
      std::sort(closed.withheld.begin(), closed.withheld.end(), by_start);
      withhold_free(k, closed, none, [](std::size_t, double, double) {});
    }
  }

  // Returns a snapshot, nodes by id, without time before now().
  PoolState state() const {
    PoolState out;
    out.now = now_;
    const std::vector<BookingIndex::Booking> pending = bookings_.sorted_pending();
    for (const auto& [id, place] : ids_) {
      const auto k = static_cast<std::size_t>(place);
      if (removed_[k]) out.removed.push_back(id);
      append_unexpired(free_[k], out.free);
      out.free_nodes.resize(out.free.size(), id);
      if (const auto closed = closed_.find(k); closed != closed_.end()) {
        append_unexpired(closed->second.withheld, out.withheld);
        out.withheld_nodes.resize(out.withheld.size(), id);
        for (const Span& time : closed->second.times)
          if (time.end > now_) out.closed.push_back(time);
        out.closed_nodes.resize(out.closed.size(), id);
      }
      bookings_.append_unexpired(k, pending, now_, out.booked);
      out.booked_nodes.resize(out.booked.size(), id);
    }
    return out;
  }

  // Returns the free spans that end at or after `begin` and start at or before `end`, whole but for
  // the time before now().
  PoolState free_between(double begin, double end) const {
    PoolState out;
    for (const auto& [id, place] : ids_) {
      const auto& spans = free_[static_cast<std::size_t>(place)];
      auto span = std::lower_bound(spans.begin(), spans.end(), begin,
                                   [](const Span& s, double t) { return s.end < t; });
      for (; span != spans.end() && span->start <= end; ++span)
        if (span->end > now_)
          out.free.push_back({std::max(span->start, now_), span->end, span->origin_row});
      out.free_nodes.resize(out.free.size(), id);
    }
    return out;
  }

  // Returns the free spans of these nodes from now() on.
  PoolState free_of(const std::vector<std::int32_t>& nodes) const {
    PoolState out;
    out.now = now_;
    for (const std::int32_t node : nodes) {
      append_unexpired(free_[place_of_existing(node)], out.free);
      out.free_nodes.resize(out.free.size(), node);
    }
    return out;
  }

  // Returns the index of the node, or -1 if there is no such node.
  std::int32_t place_of(std::int32_t node) const {
    if (!places_.empty())
      return static_cast<std::size_t>(node) < places_.size()
                 ? places_[static_cast<std::size_t>(node)]
                 : -1;
    const auto it = std::lower_bound(ids_.begin(), ids_.end(), std::pair{node, std::int32_t{0}});
    return it != ids_.end() && it->first == node ? it->second : -1;
  }
  std::size_t place_of_existing(std::int32_t node) const {
    return static_cast<std::size_t>(place_of(node));
  }

  const SpanLists& free() const { return free_; }
  const BookingIndex& bookings() const { return bookings_; }
  const std::vector<std::uint8_t>& removed() const { return removed_; }
  double now() const { return now_; }

  // Locates the parts (ascending by node) for book(). Returns not_free, and the index of the part
  // in `failed_part`, if one of them is not free.
  template <class Observer>
  Status locate_free(double start, const Part* parts, std::size_t n, const Observer& observer,
                     std::size_t& failed_part) {
    located_.clear();
    if (observer.should_prefetch()) prefetch_parts(start, parts, n, observer);
    for (failed_part = 0; failed_part < n; ++failed_part) {
      const Part& part = parts[failed_part];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (failed_part && parts[failed_part - 1].node >= part.node))
        return Status::not_free;
      const std::vector<Span>& spans = free_[static_cast<std::size_t>(k)];
      const std::size_t i = last_starting_by(spans, start);
      const double finish = start + part.length;
      if (i == spans.size() || !(finish <= spans[i].end) || !(finish > start) ||
          !(start >= now_))
        return Status::not_free;
      located_.push_back({static_cast<std::size_t>(k), i});
    }
    return Status::ok;
  }

  // Books the parts that locate_free() has located; if `is_final` they cannot be released. Strong
  // exception guarantee.
  template <class Observer>
  void book(double start, const Part* parts, bool is_final, Observer& observer) {
    for (const auto& [k, i] : located_)
      if (free_[k][i].start < start) {  // the cut may leave two spans
        reserve_extra(1, free_[k]);
        observer.prefetch_row(k, free_[k][i]);
      }
    if (!is_final) bookings_.reserve(located_.size(), now_);
    for (std::size_t j = 0; j < located_.size(); ++j)
      book(located_[j], start, start + parts[j].length, parts[j].at, is_final, observer);
    observer.apply_pending();
  }

  // Locates the parts for release(). Parts that are past and parts of removed nodes are skipped.
  // Returns not_booked, and the index of the part in `failed_part`, if another one is not booked.
  Status locate_booked(double start, const Part* parts, std::size_t n, std::size_t& failed_part) {
    located_.clear();
    bookings_.flush(now_);
    for (failed_part = 0; failed_part < n; ++failed_part) {
      const Part& part = parts[failed_part];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (failed_part && parts[failed_part - 1].node >= part.node))
        return Status::not_booked;
      const double finish = start + part.length;
      if (removed_[static_cast<std::size_t>(k)]) continue;
      const Span* const span = bookings_.find(static_cast<std::size_t>(k), start);
      const bool booked =
          span && finish <= span->end && span->end == snap_finish(finish, span->end);
      if (finish <= now_ && !(booked && span->end > now_)) continue;  // past, or released already
      if (!booked) return Status::not_booked;
      located_.push_back({static_cast<std::size_t>(k), 0});
    }
    return Status::ok;
  }

  // Frees the parts that locate_booked() has located, and calls on_grown(place, freed, span) with
  // the free span that each has become a part of. Strong exception guarantee.
  template <class Observer, class OnGrown>
  void release(double start, Observer& observer, OnGrown on_grown) {
    for (const SpanRef& place : located_) {
      const auto closed = closed_.find(place.node);
      const std::size_t pieces = closed == closed_.end() ? 0 : closed->second.times.size();
      reserve_extra(1 + pieces, free_[place.node]);
      if (pieces) reserve_extra(pieces, closed->second.withheld);
    }
    for (const SpanRef& place : located_) {
      const Span span = bookings_.extract(place.node, start);
      free_outside_closures(place.node, {std::max(span.start, now_), span.end, span.origin_row},
                            observer, on_grown);
    }
    observer.apply_pending();
  }

  // Replaces the closed time of a node by `times`, ascending and disjoint. Calls on_taken(place,
  // start, end) for each piece that ceases to be free, and on_grown as release() does for each
  // piece that becomes free. Strong exception guarantee.
  template <class Observer, class OnTaken, class OnGrown>
  void close(std::size_t k, std::vector<Span> times, Observer& observer, OnTaken on_taken,
             OnGrown on_grown) {
    ClosedTime next;
    const auto before = closed_.find(k);
    const std::vector<Span> withheld =
        before == closed_.end() ? std::vector<Span>{} : before->second.withheld;
    const std::size_t pieces = times.size() + withheld.size() + 1;
    next.withheld.reserve(free_[k].size() + 2 * pieces);
    next.times = std::move(times);
    reserve_extra(2 * pieces, free_[k]);
    ClosedTime& closed = closed_[k];
    std::swap(closed, next);  // from here on only observers allocate
    withhold_free(k, closed, observer, on_taken);
    for (const Span& span : withheld)
      if (span.end > now_)
        free_outside_closures(k, {std::max(span.start, now_), span.end, span.origin_row}, observer,
                              on_grown);
    observer.apply_pending();
    if (closed.times.empty()) closed_.erase(k);
  }
  // Calls visit(place, span) for each withheld span.
  template <class Visit>
  void for_each_withheld(Visit visit) const {
    for (const auto& [k, closed] : closed_)
      for (const Span& span : closed.withheld) visit(k, span);
  }

  // Speculative release: until end_assume_free(), searches for a start before `start` see the
  // booked parts as free. A window that starts before `start` can use this time only as the
  // continuation of a free span that ends at `start`; it then reaches as far as release() would
  // extend that span. So it suffices to move ends in the observer: no row is inserted, and the
  // lists here do not change. Parts without a free span before them that starts by `latest` are
  // skipped.
  template <class Observer>
  void assume_free(double start, double latest, const Part* parts, std::size_t n,
                   Observer& observer) {
    assumed_free_.clear();
    bookings_.flush(now_);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t k = place_of_existing(parts[j].node);
      const std::vector<Span>& spans = free_[k];
      const std::size_t before = last_starting_by(spans, start);
      if (before == spans.size() || spans[before].end != start || spans[before].start > latest)
        continue;
      const Span& booked = *bookings_.find(k, start);
      if (spans[before].origin_row != booked.origin_row) continue;
      const bool joined = before + 1 < spans.size() && spans[before + 1].start == booked.end &&
                          spans[before + 1].origin_row == booked.origin_row;
      const double end = joined ? spans[before + 1].end : booked.end;
      assumed_free_.push_back({k, before, end});
      observer.set_end(k, spans[before], end);
    }
    observer.apply_pending();
  }
  // Ends the speculative release: restores the ends in the observer.
  template <class Observer>
  void end_assume_free(Observer& observer) {
    for (const AssumedFree& assumed : assumed_free_) {
      const Span& span = free_[assumed.node][assumed.span];
      observer.set_end(assumed.node, {span.start, assumed.end, span.origin_row}, span.end);
    }
    assumed_free_.clear();
    observer.apply_pending();
  }
  // Calls visit(i, end) for each free span of node k that searches see longer, until `end`.
  template <class Visit>
  void for_each_assumed_free(std::size_t k, Visit visit) const {
    for (const AssumedFree& assumed : assumed_free_)
      if (assumed.node == k) visit(assumed.span, assumed.end);
  }

  // Replaces the free spans first..last - 1 of a node by `fresh`, ascending, for pools whose free
  // time is derived from other data. Nothing is booked or closed in such pools. The change is
  // visible after observer.apply_pending(), before which the node must not change again.
  template <class Observer>
  void replace(std::size_t k, std::size_t first, std::size_t last, const std::vector<Span>& fresh,
               Observer& observer) {
    std::vector<Span>& spans = free_[k];
    reserve_extra(fresh.size(), spans);
    for (std::size_t i = first, j = 0; i < last || j < fresh.size();) {
      if (j == fresh.size() || (i < last && spans[i].start < fresh[j].start)) {
        observer.erase(k, spans[i++]);
      } else if (i == last || fresh[j].start < spans[i].start) {
        observer.insert(k, fresh[j++]);
      } else {
        if (spans[i].end != fresh[j].end) observer.set_end(k, spans[i], fresh[j].end);
        ++i, ++j;
      }
    }
    const std::size_t both = std::min(last - first, fresh.size());
    const auto rest = std::copy_n(fresh.begin(), both, at(spans, first));
    if (both < fresh.size())
      spans.insert(rest, fresh.begin() + static_cast<std::ptrdiff_t>(both), fresh.end());
    else
      spans.erase(rest, at(spans, last));
  }

  // Moves the clock forward; an earlier time is ignored.
  void set_clock(double now) { now_ = std::max(now, now_); }

  // Returns the number of free spans that end by now().
  std::size_t count_expired() const {
    std::size_t count = 0;
    for (const std::vector<Span>& spans : free_) count += count_expired_prefix(spans);
    return count;
  }

  // Erases the free spans that end by now().
  template <class Observer>
  void erase_expired(Observer& observer) {
    for (std::size_t k = 0; k < free_.size(); ++k) erase_expired(k, observer);
    observer.apply_pending();
    const auto is_past = [this](const Span& span) { return span.end <= now_; };
    for (auto it = closed_.begin(); it != closed_.end();) {
      std::erase_if(it->second.withheld, is_past), std::erase_if(it->second.times, is_past);
      it = it->second.times.empty() ? closed_.erase(it) : std::next(it);
    }
  }

  // Erases the free spans that end by now() and trims those that start before it.
  template <class Observer>
  void trim_before_now(Observer& observer) {
    for (std::size_t k = 0; k < free_.size(); ++k) {
      std::vector<Span>& spans = free_[k];
      erase_expired(k, observer);
      if (spans.empty() || !(spans.front().start < now_)) continue;
      const Span whole = spans.front();
      spans.front().start = now_;
      observer.set_start(k, whole, now_);
    }
    observer.apply_pending();
  }

  // Removes the node with all its free, booked and closed time.
  template <class Observer>
  void remove_node(std::size_t k, Observer& observer) {
    for (const Span& span : free_[k]) observer.erase(k, span);
    observer.apply_pending();
    free_[k].clear();
    closed_.erase(k);
    bookings_.remove_node(k);
    removed_[k] = 1;
  }

 private:
  struct SpanRef {
    std::size_t node, span;  // node index, span index
  };

  struct AssumedFree {
    std::size_t node, span;
    double end;
  };

  // Appends the spans to `out` without time before now().
  void append_unexpired(const std::vector<Span>& spans, std::vector<Span>& out) const {
    for (std::size_t i = count_expired_prefix(spans); i < spans.size(); ++i)
      out.push_back({std::max(spans[i].start, now_), spans[i].end, spans[i].origin_row});
  }

  template <class Observer>
  void erase_expired(std::size_t k, Observer& observer) {
    std::vector<Span>& spans = free_[k];
    const std::size_t count_expired = count_expired_prefix(spans);
    for (std::size_t i = 0; i < count_expired; ++i) observer.erase(k, spans[i]);
    spans.erase(spans.begin(), at(spans, count_expired));
  }

  // Withholds the free time of the node that lies in its closed time. Allocates nothing: the caller
  // has reserved the capacity.
  template <class Observer, class OnTaken>
  void withhold_free(std::size_t k, ClosedTime& closed, Observer& observer, OnTaken on_taken) {
    std::vector<Span>& spans = free_[k];
    for (const Span& time : closed.times) {
      const double from = std::max(time.start, now_);
      if (!(from < time.end)) continue;
      const auto ended = [](const Span& span, double t) { return span.end <= t; };
      for (;;) {
        const auto first = std::lower_bound(spans.begin(), spans.end(), from, ended);
        if (first == spans.end() || !(first->start < time.end)) break;
        const double start = std::max(first->start, from), end = std::min(first->end, time.end);
        closed.withhold({start, end, first->origin_row});
        subtract({k, static_cast<std::size_t>(first - spans.begin())}, start, end, 0, observer);
        observer.apply_pending();
        on_taken(k, start, end);
      }
    }
  }

  // Frees a span of a node except for its closed time, which is withheld. Allocates nothing: the
  // caller has reserved the capacity.
  template <class Observer, class OnGrown>
  void free_outside_closures(std::size_t k, Span span, Observer& observer, OnGrown on_grown) {
    const auto free = [&](const Span& piece) { on_grown(k, piece, release(k, piece, observer)); };
    const auto found = closed_.find(k);
    if (found == closed_.end()) return free(span);
    ClosedTime& closed = found->second;
    for (const Span& time : closed.times) {
      if (time.end <= span.start) continue;
      if (!(time.start < span.end)) break;
      if (span.start < time.start) {
        free({span.start, time.start, span.origin_row});
        observer.apply_pending();
        span.start = time.start;
      }
      const double end = std::min(span.end, time.end);
      closed.withhold({span.start, end, span.origin_row});
      span.start = end;
    }
    if (span.start < span.end) {
      free(span);
      observer.apply_pending();
    }
  }

  // Prefetches the span lists of the nodes, and the rows of the parts in the observer.
  template <class Observer>
  void prefetch_parts(double start, const Part* parts, std::size_t n,
                      const Observer& observer) const {
    const auto each = [=, this](auto visit) {
      for (const Part* part = parts; part != parts + n; ++part)
        if (const std::int32_t k = place_of(part->node); k >= 0)
          visit(*part, static_cast<std::size_t>(k));
    };
    each([&](const Part& part, std::size_t k) {
      prefetch(&free_[k]);
      observer.prefetch_row(k, start + part.length, part.at);
    });
    each([this](const Part&, std::size_t k) { prefetch(free_[k].data()); });
  }

  // The spans of one node are usually contiguous and are then appended together.
  void load_free(const PoolState& state) {
    const std::vector<std::int32_t>& nodes = state.free_nodes;
    for (std::size_t i = 0, next = 0; i < nodes.size(); i = next) {
      while (next < nodes.size() && nodes[next] == nodes[i]) ++next;
      std::vector<Span>& list = free_[place_of_existing(nodes[i])];
      list.insert(list.end(), state.free.data() + i, state.free.data() + next);
    }
  }

  // Builds the map from node id to index: a table if ids are dense, else a sorted list.
  void index_nodes(const std::vector<Node>& nodes) {
    std::int32_t largest = 0;
    for (const Node& node : nodes) largest = std::max(largest, node.id);
    const auto ids = static_cast<std::size_t>(largest) + 1;
    ids_.clear(), places_.clear();
    for (std::size_t k = 0; k < nodes.size(); ++k)
      ids_.push_back({nodes[k].id, static_cast<std::int32_t>(k)});
    if (ids > 2 * nodes.size() + 64) {
      std::sort(ids_.begin(), ids_.end(), [](const auto& a, const auto& b) {
        poll();
        return a < b;
      });
      return;
    }
    places_.assign(ids, -1);
    for (const auto& [id, place] : ids_) places_[static_cast<std::size_t>(id)] = place;
    ids_.clear();
    for (std::size_t id = 0; id < ids; ++id)
      if (places_[id] >= 0) ids_.push_back({static_cast<std::int32_t>(id), places_[id]});
  }

  static std::vector<Span>::iterator at(std::vector<Span>& spans, std::size_t i) {
    return spans.begin() + static_cast<std::ptrdiff_t>(i);
  }

  std::size_t count_expired_prefix(const std::vector<Span>& spans) const {
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [this](const Span& s) { return s.end <= now_; });
    return static_cast<std::size_t>(first - spans.begin());
  }

  // Books [start, finish) of a free span; `at_row`: hint, the row that holds the span.
  template <class Observer>
  void book(const SpanRef& place, double start, double finish, std::size_t at_row, bool is_final,
            Observer& observer) {
    const auto [k, i] = place;
    const Span span = free_[k][i];
    finish = snap_finish(finish, span.end);
    if (!is_final) bookings_.add(k, {start, finish, span.origin_row});
    subtract(place, start, finish, at_row, observer);
  }

  // Subtracts [start, finish) from a free span. The rest before `start` is dropped if it is past.
  template <class Observer>
  void subtract(const SpanRef& place, double start, double finish, std::size_t at_row,
                Observer& observer) {
    const auto [k, i] = place;
    std::vector<Span>& spans = free_[k];
    const Span span = spans[i];
    const bool before = span.start < start && start > now_;
    observer.subtract(k, span, start, finish, at_row, before);
    const Span rest{finish, span.end, span.origin_row};
    if (before) {
      spans[i].end = start;
      if (finish < span.end) spans.insert(at(spans, i + 1), rest);
    } else if (finish < span.end) {
      spans[i] = rest;
    } else {
      spans.erase(at(spans, i));
    }
  }

  // Frees a span and returns the free span that contains it after merging.
  template <class Observer>
  Span release(std::size_t k, Span span, Observer& observer) {
    std::vector<Span>& spans = free_[k];
    const std::size_t before = last_starting_by(spans, span.start);
    const std::size_t i = before == spans.size() ? 0 : before + 1;
    const bool left =
        i > 0 && spans[i - 1].end == span.start && spans[i - 1].origin_row == span.origin_row;
    const bool right =
        i < spans.size() && spans[i].start == span.end && spans[i].origin_row == span.origin_row;
    if (right) span.end = spans[i].end;
    if (left) {
      span.start = spans[i - 1].start;
      observer.set_end(k, spans[i - 1], span.end);
      spans[i - 1].end = span.end;
      if (right) {
        observer.erase(k, spans[i]);
        spans.erase(at(spans, i));
      }
    } else if (right) {
      observer.set_start(k, spans[i], span.start);
      spans[i] = span;
    } else {
      spans.insert(at(spans, i), span);
      observer.insert(k, span);
    }
    return span;
  }

  double now_ = -kInfinity;
  std::vector<std::pair<std::int32_t, std::int32_t>> ids_;  // (node id, index), ascending
  std::vector<std::int32_t> places_;  // index by node id, -1: none; empty if ids are sparse
  SpanLists free_;  // sorted by start
  BookingIndex bookings_;
  std::vector<std::uint8_t> removed_;         // [place]
  std::map<std::size_t, ClosedTime> closed_;  // by place; only nodes with closed time
  std::vector<SpanRef> located_;              // by locate_free() or locate_booked()
  std::vector<AssumedFree> assumed_free_;
};

}  // namespace slotkern
