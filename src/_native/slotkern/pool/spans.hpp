// What is free and what is booked in a pool that changes: the truth, by node.
//
// Free time is a sorted list of spans for each node, each with the row of the origin array it is
// a part of: what is given back merges only with spans of one origin, so that slots that touch
// (perhaps at other prices) stay apart and everything comes back bit for bit. Beside it stands
// what is booked, so that nothing can be given back twice. `Rows` hears of every change of free
// time (pool/serving.hpp).
//
// Closed time of a node, as while it is out of order, is not free whether or not it is booked. A
// closed part that nothing books is held: it stands in neither list, and is free again when the
// node is opened. What is released in closed time is held too.
//
// The clock moves lazily: free time before now() stays in the lists until a change meets it or
// drop_past() is called, and no reader may take it for free.
//
// A part costs O(log m + spans of its node) to book or release.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "slotkern/base/room.hpp"
#include "slotkern/pool/bookings.hpp"
#include "slotkern/slots/prepared.hpp"
#include "slotkern/window/window.hpp"

namespace slotkern {

// All that a pool is, beside its origin array; spans of each node ascending.
struct PoolState {
  double now = -kInfinity;
  std::vector<std::int32_t> free_nodes, booked_nodes, gone;
  std::vector<Span> free, booked;
  std::size_t known = 0;  // free spans from here on are new
  std::vector<std::int32_t> held_nodes, closed_nodes;
  std::vector<Span> held;    // closed and not booked
  std::vector<Span> closed;  // disjoint; their row means nothing
};

// Nodes are named by their place in PreparedSlots::nodes.
class PoolSpans {
 public:
  // Of these nodes nothing is free yet. Lists that were there keep their memory.
  void open(const std::vector<Node>& nodes) {
    now_ = -kInfinity;
    free_.resize(nodes.size());
    for (std::vector<Span>& spans : free_) spans.clear();
    bookings_.open(nodes.size());
    gone_.assign(nodes.size(), 0);
    closed_.clear();
    name(nodes);
  }

  // In the order of time.
  void add(std::size_t place, const Span& span) { free_[place].push_back(span); }

  void restore(const PoolState& state) {
    now_ = state.now;
    for (const std::int32_t node : state.gone) gone_[known_place(node)] = 1;
    bookings_.expect(state.booked.size(), now_);
    for (std::size_t i = 0; i < state.booked.size(); ++i)
      bookings_.add(known_place(state.booked_nodes[i]), state.booked[i]);
    add_free(state);
    const auto sooner = [](const Span& a, const Span& b) { return a.start < b.start; };
    for (std::vector<Span>& spans : free_)
      if (!std::is_sorted(spans.begin(), spans.end(), sooner))
        std::sort(spans.begin(), spans.end(), sooner);
    for (std::size_t i = 0; i < state.closed.size(); ++i)
      closed_[known_place(state.closed_nodes[i])].times.push_back(state.closed[i]);
    for (std::size_t i = 0; i < state.held.size(); ++i)
      closed_[known_place(state.held_nodes[i])].held.push_back(state.held[i]);
    NoRows none;
    for (auto& [k, closed] : closed_) {
      std::sort(closed.times.begin(), closed.times.end(), sooner);
      join_overlapping(closed.times);
      std::sort(closed.held.begin(), closed.held.end(), sooner);
      hold_free(k, closed, none, [](std::size_t, double, double) {});
    }
  }

  // Nodes by id.
  PoolState state() const {
    PoolState out;
    out.now = now_;
    const std::vector<Bookings::Booking> fresh = bookings_.sorted_fresh();
    for (const auto& [id, place] : ids_) {
      const auto k = static_cast<std::size_t>(place);
      if (gone_[k]) out.gone.push_back(id);
      add_to_come(free_[k], out.free);
      out.free_nodes.resize(out.free.size(), id);
      if (const auto closed = closed_.find(k); closed != closed_.end()) {
        add_to_come(closed->second.held, out.held);
        out.held_nodes.resize(out.held.size(), id);
        for (const Span& time : closed->second.times)
          if (time.end > now_) out.closed.push_back(time);
        out.closed_nodes.resize(out.closed.size(), id);
      }
      bookings_.list(k, fresh, now_, out.booked);
      out.booked_nodes.resize(out.booked.size(), id);
    }
    return out;
  }

  // What is free of it at or after `begin` and has begun by `end`: spans cut by the clock alone.
  PoolState free_between(double begin, double end) const {
    PoolState out;
    for (const auto& [id, place] : ids_) {
      const auto& spans = free_[static_cast<std::size_t>(place)];
      auto span = std::lower_bound(spans.begin(), spans.end(), begin,
                                   [](const Span& s, double t) { return s.end < t; });
      for (; span != spans.end() && span->start <= end; ++span)
        if (span->end > now_)
          out.free.push_back({std::max(span->start, now_), span->end, span->row});
      out.free_nodes.resize(out.free.size(), id);
    }
    return out;
  }

  // -1: there is no such node.
  std::int32_t place_of(std::int32_t node) const {
    if (!places_.empty())
      return static_cast<std::size_t>(node) < places_.size()
                 ? places_[static_cast<std::size_t>(node)]
                 : -1;
    const auto it = std::lower_bound(ids_.begin(), ids_.end(), std::pair{node, std::int32_t{0}});
    return it != ids_.end() && it->first == node ? it->second : -1;
  }
  std::size_t known_place(std::int32_t node) const {
    return static_cast<std::size_t>(place_of(node));
  }

  const SpanLists& free() const { return free_; }
  const Bookings& bookings() const { return bookings_; }
  const std::vector<std::uint8_t>& gone() const { return gone_; }
  double now() const { return now_; }

  // Looks up the parts (ascending by node) for cut(), or says which of them is not free.
  template <class Rows>
  Status find_free(double start, const Part* parts, std::size_t n, const Rows& rows,
                   std::size_t& bad) {
    found_.clear();
    if (rows.far_apart()) expect(start, parts, n, rows);
    for (bad = 0; bad < n; ++bad) {
      const Part& part = parts[bad];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (bad && parts[bad - 1].node >= part.node)) return Status::not_free;
      const std::vector<Span>& spans = free_[static_cast<std::size_t>(k)];
      const std::size_t i = last_at(spans, start);
      const double finish = start + part.length;
      if (i == spans.size() || !(finish <= spans[i].end) || !(finish > start) ||
          !(start >= now_))
        return Status::not_free;
      found_.push_back({static_cast<std::size_t>(k), i});
    }
    return Status::ok;
  }

  // Takes what find_free() has looked up, and books it unless it is taken for good: all of it or,
  // without memory, nothing.
  template <class Rows>
  void cut(double start, const Part* parts, bool for_good, Rows& rows) {
    for (const auto& [k, i] : found_)
      if (free_[k][i].start < start) {  // it may leave two spans
        room_for(1, free_[k]);
        rows.expect(k, free_[k][i]);
      }
    if (!for_good) bookings_.expect(found_.size(), now_);
    for (std::size_t j = 0; j < found_.size(); ++j)
      cut(found_[j], start, start + parts[j].length, parts[j].at, for_good, rows);
    rows.settle();
  }

  // Looks up the parts for give_back() as far as they are not past, or says which of them is not
  // booked. Parts of removed nodes are gone with them.
  Status find_booked(double start, const Part* parts, std::size_t n, std::size_t& bad) {
    found_.clear();
    bookings_.sort(now_);
    for (bad = 0; bad < n; ++bad) {
      const Part& part = parts[bad];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (bad && parts[bad - 1].node >= part.node)) return Status::not_booked;
      const double finish = start + part.length;
      if (gone_[static_cast<std::size_t>(k)]) continue;
      const Span* const span = bookings_.find(static_cast<std::size_t>(k), start);
      const bool booked = span && finish <= span->end && span->end == cut_finish(finish, span->end);
      if (finish <= now_ && !(booked && span->end > now_)) continue;  // past, or given back
      if (!booked) return Status::not_booked;
      found_.push_back({static_cast<std::size_t>(k), 0});
    }
    return Status::ok;
  }

  // Frees what find_booked() has looked up, all of it or nothing; `grown(place, freed, span)` for
  // each span that is larger now.
  template <class Rows, class Grown>
  void give_back(double start, Rows& rows, Grown grown) {
    for (const SpanAt& place : found_) {
      const auto closed = closed_.find(place.node);
      const std::size_t pieces = closed == closed_.end() ? 0 : closed->second.times.size();
      room_for(1 + pieces, free_[place.node]);
      if (pieces) room_for(pieces, closed->second.held);
    }
    for (const SpanAt& place : found_) {
      const Span span = bookings_.take(place.node, start);
      free_open(place.node, {std::max(span.start, now_), span.end, span.row}, rows, grown);
    }
    rows.settle();
  }

  // Makes `times`, ascending and disjoint, the closed time of a node: all of it or, without
  // memory, nothing. Calls taken(place, start, end) for each piece that is no longer free, and
  // `grown` as give_back() does for each that is free again.
  template <class Rows, class Taken, class Grown>
  void close(std::size_t k, std::vector<Span> times, Rows& rows, Taken taken, Grown grown) {
    Closed next;
    const auto before = closed_.find(k);
    const std::vector<Span> held =
        before == closed_.end() ? std::vector<Span>{} : before->second.held;
    const std::size_t pieces = times.size() + held.size() + 1;
    next.held.reserve(free_[k].size() + 2 * pieces);
    next.times = std::move(times);
    room_for(2 * pieces, free_[k]);
    Closed& closed = closed_[k];
    std::swap(closed, next);  // nothing below takes memory but the rows
    hold_free(k, closed, rows, taken);
    for (const Span& span : held)
      if (span.end > now_)
        free_open(k, {std::max(span.start, now_), span.end, span.row}, rows, grown);
    rows.settle();
    if (closed.times.empty()) closed_.erase(k);
  }
  // Spans by start that overlap or touch become one.
  static void join_overlapping(std::vector<Span>& times) {
    std::size_t count = 0;
    for (const Span& time : times)
      if (count > 0 && time.start <= times[count - 1].end)
        times[count - 1].end = std::max(times[count - 1].end, time.end);
      else
        times[count++] = {time.start, time.end, 0};
    times.resize(count);
  }
  // Calls visit(place, span) for what is held.
  template <class Visit>
  void each_held(Visit visit) const {
    for (const auto& [k, closed] : closed_)
      for (const Span& span : closed.held) visit(k, span);
  }

  // Between lend() and take_back() searches for a start before `start` see the booked parts as
  // free. Such a window has a part on a node of them only where free time comes right before
  // the part, and then the slot there goes on to the end of what give_back() would join: so
  // ends are moved, no rows. Parts before which nothing is free by `latest` are left alone.
  template <class Rows>
  void lend(double start, double latest, const Part* parts, std::size_t n, Rows& rows) {
    lent_.clear();
    bookings_.sort(now_);
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t k = known_place(parts[j].node);
      const std::vector<Span>& spans = free_[k];
      const std::size_t before = last_at(spans, start);
      if (before == spans.size() || spans[before].end != start || spans[before].start > latest)
        continue;
      const Span& booked = *bookings_.find(k, start);
      if (spans[before].row != booked.row) continue;
      const bool joined = before + 1 < spans.size() && spans[before + 1].start == booked.end &&
                          spans[before + 1].row == booked.row;
      const double end = joined ? spans[before + 1].end : booked.end;
      lent_.push_back({k, before, end});
      rows.set_end(k, spans[before], end);
    }
    rows.settle();
  }
  template <class Rows>
  void take_back(Rows& rows) {
    for (const Lent& lent : lent_) {
      const Span& span = free_[lent.node][lent.span];
      rows.set_end(lent.node, {span.start, lent.end, span.row}, span.end);
    }
    rows.settle();
  }

  // The clock never goes back.
  void pass(double now) { now_ = std::max(now, now_); }

  std::size_t past() const {
    std::size_t count = 0;
    for (const std::vector<Span>& spans : free_) count += past_of(spans);
    return count;
  }

  // The free spans that end before now leave.
  template <class Rows>
  void drop_ended(Rows& rows) {
    for (std::size_t k = 0; k < free_.size(); ++k) drop_ended(k, rows);
    rows.settle();
    const auto past = [this](const Span& span) { return span.end <= now_; };
    for (auto of = closed_.begin(); of != closed_.end();) {
      std::erase_if(of->second.held, past), std::erase_if(of->second.times, past);
      of = of->second.times.empty() ? closed_.erase(of) : std::next(of);
    }
  }

  // The same, and spans that began before now begin at now.
  template <class Rows>
  void drop_past(Rows& rows) {
    for (std::size_t k = 0; k < free_.size(); ++k) {
      std::vector<Span>& spans = free_[k];
      drop_ended(k, rows);
      if (spans.empty() || !(spans.front().start < now_)) continue;
      const Span whole = spans.front();
      spans.front().start = now_;
      rows.set_start(k, whole, now_);
    }
    rows.settle();
  }

  // The node and all its time, booked or free, leave.
  template <class Rows>
  void remove(std::size_t k, Rows& rows) {
    for (const Span& span : free_[k]) rows.erase(k, span);
    rows.settle();
    free_[k].clear();
    closed_.erase(k);
    bookings_.remove(k);
    gone_[k] = 1;
  }

 private:
  struct SpanAt {
    std::size_t node, span;  // indices
  };

  struct Lent {
    std::size_t node, span;
    double end;
  };

  // Of a node with closed time: when, and what would be free in it; each ascending and disjoint.
  struct Closed {
    std::vector<Span> times, held;
  };

  // A listener for lists that no rows follow.
  struct NoRows {
    void erase(std::size_t, const Span&) {}
    void cut(std::size_t, const Span&, double, double, std::size_t, bool) {}
    void settle() {}
  };

  // Adds the spans to `out` without what is past.
  void add_to_come(const std::vector<Span>& spans, std::vector<Span>& out) const {
    for (std::size_t i = past_of(spans); i < spans.size(); ++i)
      out.push_back({std::max(spans[i].start, now_), spans[i].end, spans[i].row});
  }

  template <class Rows>
  void drop_ended(std::size_t k, Rows& rows) {
    std::vector<Span>& spans = free_[k];
    const std::size_t past = past_of(spans);
    for (std::size_t i = 0; i < past; ++i) rows.erase(k, spans[i]);
    spans.erase(spans.begin(), at(spans, past));
  }

  // What is free of the node's closed time is held. The lists have room.
  template <class Rows, class Taken>
  void hold_free(std::size_t k, Closed& closed, Rows& rows, Taken taken) {
    std::vector<Span>& spans = free_[k];
    for (const Span& time : closed.times) {
      const double from = std::max(time.start, now_);
      if (!(from < time.end)) continue;
      const auto ended = [](const Span& span, double t) { return span.end <= t; };
      for (;;) {
        const auto first = std::lower_bound(spans.begin(), spans.end(), from, ended);
        if (first == spans.end() || !(first->start < time.end)) break;
        const double start = std::max(first->start, from), end = std::min(first->end, time.end);
        hold(closed.held, {start, end, first->row});
        take_out({k, static_cast<std::size_t>(first - spans.begin())}, start, end, 0, rows);
        rows.settle();
        taken(k, start, end);
      }
    }
  }

  // A span more is held, joined with those of its row that it touches.
  static void hold(std::vector<Span>& held, Span span) {
    auto next = std::lower_bound(held.begin(), held.end(), span.start,
                                 [](const Span& other, double t) { return other.start < t; });
    if (next != held.begin()) {
      const auto before = std::prev(next);
      if (before->end == span.start && before->row == span.row) {
        span.start = before->start;
        next = held.erase(before);
      }
    }
    if (next != held.end() && next->start == span.end && next->row == span.row) {
      span.end = next->end;
      next = held.erase(next);
    }
    held.insert(next, span);
  }

  // Frees a span of a node except its closed time, which becomes held. The lists have capacity.
  template <class Rows, class Grown>
  void free_open(std::size_t k, Span span, Rows& rows, Grown grown) {
    const auto free = [&](const Span& piece) { grown(k, piece, give_back(k, piece, rows)); };
    const auto found = closed_.find(k);
    if (found == closed_.end()) return free(span);
    Closed& closed = found->second;
    for (const Span& time : closed.times) {
      if (time.end <= span.start) continue;
      if (!(time.start < span.end)) break;
      if (span.start < time.start) {
        free({span.start, time.start, span.row});
        rows.settle();
        span.start = time.start;
      }
      const double end = std::min(span.end, time.end);
      hold(closed.held, {span.start, end, span.row});
      span.start = end;
    }
    if (span.start < span.end) {
      free(span);
      rows.settle();
    }
  }

  // What is free of the nodes, and their rows, are on their way from memory while others are
  // looked up.
  template <class Rows>
  void expect(double start, const Part* parts, std::size_t n, const Rows& rows) const {
    const auto each = [=, this](auto visit) {
      for (const Part* part = parts; part != parts + n; ++part)
        if (const std::int32_t k = place_of(part->node); k >= 0)
          visit(*part, static_cast<std::size_t>(k));
    };
    each([&](const Part& part, std::size_t k) {
      fetch(&free_[k]);
      rows.expect(k, start + part.length, part.at);
    });
    each([this](const Part&, std::size_t k) { fetch(free_[k].data()); });
  }

  // Most often all of a node stand together.
  void add_free(const PoolState& state) {
    const std::vector<std::int32_t>& nodes = state.free_nodes;
    for (std::size_t i = 0, next = 0; i < nodes.size(); i = next) {
      while (next < nodes.size() && nodes[next] == nodes[i]) ++next;
      std::vector<Span>& list = free_[known_place(nodes[i])];
      list.insert(list.end(), state.free.data() + i, state.free.data() + next);
    }
  }

  // Which id has which place.
  void name(const std::vector<Node>& nodes) {
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

  std::size_t past_of(const std::vector<Span>& spans) const {
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [this](const Span& s) { return s.end <= now_; });
    return static_cast<std::size_t>(first - spans.begin());
  }

  // Cuts [start, finish) out of a free span, which stands in row `at_row` perhaps.
  template <class Rows>
  void cut(const SpanAt& place, double start, double finish, std::size_t at_row, bool for_good,
           Rows& rows) {
    const auto [k, i] = place;
    const Span span = free_[k][i];
    finish = cut_finish(finish, span.end);
    if (!for_good) bookings_.add(k, {start, finish, span.row});
    take_out(place, start, finish, at_row, rows);
  }

  // What the span has before [start, finish) stays unless it is past.
  template <class Rows>
  void take_out(const SpanAt& place, double start, double finish, std::size_t at_row, Rows& rows) {
    const auto [k, i] = place;
    std::vector<Span>& spans = free_[k];
    const Span span = spans[i];
    const bool before = span.start < start && start > now_;
    rows.cut(k, span, start, finish, at_row, before);
    const Span rest{finish, span.end, span.row};
    if (before) {
      spans[i].end = start;
      if (finish < span.end) spans.insert(at(spans, i + 1), rest);
    } else if (finish < span.end) {
      spans[i] = rest;
    } else {
      spans.erase(at(spans, i));
    }
  }

  // The free span that it has become a part of.
  template <class Rows>
  Span give_back(std::size_t k, Span span, Rows& rows) {
    std::vector<Span>& spans = free_[k];
    const std::size_t before = last_at(spans, span.start);
    const std::size_t i = before == spans.size() ? 0 : before + 1;
    const bool left = i > 0 && spans[i - 1].end == span.start && spans[i - 1].row == span.row;
    const bool right = i < spans.size() && spans[i].start == span.end && spans[i].row == span.row;
    if (right) span.end = spans[i].end;
    if (left) {
      span.start = spans[i - 1].start;
      rows.set_end(k, spans[i - 1], span.end);
      spans[i - 1].end = span.end;
      if (right) {
        rows.erase(k, spans[i]);
        spans.erase(at(spans, i));
      }
    } else if (right) {
      rows.set_start(k, spans[i], span.start);
      spans[i] = span;
    } else {
      spans.insert(at(spans, i), span);
      rows.insert(k, span);
    }
    return span;
  }

  double now_ = -kInfinity;
  std::vector<std::pair<std::int32_t, std::int32_t>> ids_;  // (node id, place), ascending
  std::vector<std::int32_t> places_;                        // by id; empty where ids have gaps
  SpanLists free_;                                          // by start
  Bookings bookings_;
  std::vector<std::uint8_t> gone_;                          // by place: removed
  std::map<std::size_t, Closed> closed_;                    // by place, of those that have any
  std::vector<SpanAt> found_;                               // of the parts looked up last
  std::vector<Lent> lent_;
};

}  // namespace slotkern
