// A pool that changes: book, release, advance, remove.
//
// The truth is a sorted list of free spans for each node, each with the row of the origin
// array it is a part of: a release merges only spans of one origin, so that slots that touch
// (perhaps at other prices) stay apart and everything comes back bit for bit. Beside it stand
// what is booked, so that nothing can be given back twice, and the slots in the order of time
// for the searches (pool/rows.hpp).
//
// A part costs O(log m + 64 + spans of its node) to book or release.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "slotkern/pool/hints.hpp"
#include "slotkern/pool/rows.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

// A stretch of one node's time; `row` of the origin array.
struct Span {
  double start, end;
  std::size_t row;
};

// All that a pool is, beside its origin array; spans of each node ascending.
struct PoolState {
  double now = -kInfinity;
  std::vector<std::int32_t> free_nodes, booked_nodes, gone;
  std::vector<Span> free, booked;
  std::size_t known = 0;  // free spans from here on are new
};

class SlotPool {
 public:
  // Takes over a pool just built from all slots of the origin array, whose prices these are.
  // All of it is free, or `state` tells what is. Searches will be for parts of at least the
  // volume `least`: what holds less need not stand in the rows.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, const PoolState* state,
            double least = 0) {
    if (prepared.slots.size() > kManySlots) expect_long();
    ++version_;
    prepared_ = &prepared;
    prices_ = prices;
    for (std::vector<std::vector<Span>>* all : {&free_, &booked_}) {
      all->resize(prepared.nodes.size());
      for (std::vector<Span>& spans : *all) spans.clear();
    }
    gone_.assign(prepared.nodes.size(), 0);
    now_ = -kInfinity;
    order_ = {};
    for (Hints& hints : hints_) hints.clear();
    ids_.clear();
    for (std::size_t k = 0; k < prepared.nodes.size(); ++k)
      ids_.push_back({prepared.nodes[k].id, static_cast<std::int32_t>(k)});
    std::sort(ids_.begin(), ids_.end(), [](const auto& a, const auto& b) {
      poll();
      return a < b;
    });
    if (!state) {
      set_least(least * (1 - kMargin));
      std::vector<RowSlot> slots;  // in the order of time already
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Span span{prepared.slots[i].start, prepared.slots[i].end, i};
        const std::size_t k = place(prepared.slots[i]);
        free_[k].push_back(span);
        if (serves(k, span)) slots.push_back({prepared.slots[i], i});
      }
      lay_out(slots);
    } else {
      now_ = state->now;
      for (const std::int32_t node : state->gone)
        gone_[static_cast<std::size_t>(place_of(node))] = 1;
      for (std::size_t i = 0; i < state->booked.size(); ++i)
        booked_[static_cast<std::size_t>(place_of(state->booked_nodes[i]))].push_back(
            state->booked[i]);
      for (std::size_t i = 0; i < state->free.size(); ++i) {
        const auto k = static_cast<std::size_t>(place_of(state->free_nodes[i]));
        free_[k].push_back(state->free[i]);
        if (i < state->known) continue;
        const Slot slot = slot_of(k, state->free[i]);
        for (Hints& hints : hints_) hints.lower(slot);
      }
      for (std::vector<Span>& spans : free_)
        std::sort(spans.begin(), spans.end(),
                  [](const Span& a, const Span& b) { return a.start < b.start; });
      rebuild_rows(least * (1 - kMargin));
    }
  }

  // A copy of another pool, whose slots have been copied to `prepared`.
  void copy(const SlotPool& other, PreparedSlots& prepared) {
    *this = other;
    prepared_ = &prepared;
    order_.attach(prepared);
  }

  // What is free, booked and removed, nodes by id.
  PoolState state() const {
    PoolState out;
    out.now = now_;
    for (const auto& [id, place] : ids_) {
      const auto k = static_cast<std::size_t>(place);
      if (gone_[k]) out.gone.push_back(id);
      out.free.insert(out.free.end(), free_[k].begin(), free_[k].end());
      out.free_nodes.resize(out.free.size(), id);
      for (const Span& span : booked_[k])
        if (span.end > now_) out.booked.push_back(span);
      out.booked_nodes.resize(out.booked.size(), id);
    }
    return out;
  }

  // Call before a search for parts of this volume: the rows hold no slots too short for what
  // is usually asked (see tidy()), and serve ragged searches only until a square one comes.
  void make_rows_for(double volume, bool square = true) {
    if (square) order_.keep_prices();
    asked_ = std::min(asked_, volume);
    if (!(volume * (1 - kMargin) < least_)) return;
    const Undisturbed whole;
    rebuild_rows(volume / 4);
  }

  // Books the parts (ascending by node), or changes nothing and says which part is not free.
  Status book(double start, const Part* parts, std::size_t n, std::size_t& bad) {
    places_.clear();
    for (bad = 0; bad < n; ++bad) {
      const Part& part = parts[bad];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (bad && parts[bad - 1].node >= part.node)) return Status::not_free;
      const std::vector<Span>& spans = free_[static_cast<std::size_t>(k)];
      const std::size_t i = last_at(spans, start);
      const double finish = start + part.length;
      if (i == spans.size() || !(finish <= spans[i].end) || !(finish > start))
        return Status::not_free;
      places_.push_back({static_cast<std::size_t>(k), i});
    }
    ++version_;
    for (std::size_t j = 0; j < n; ++j)
      cut(places_[j].node, places_[j].span, start, start + parts[j].length);
    tidy();
    return Status::ok;
  }

  // Gives the parts back as far as they are not past, or changes nothing and says which part
  // is not booked. Parts of removed nodes are gone with them.
  Status release(double start, const Part* parts, std::size_t n, std::size_t& bad) {
    places_.clear();
    for (bad = 0; bad < n; ++bad) {
      const Part& part = parts[bad];
      const std::int32_t k = place_of(part.node);
      if (k < 0 || (bad && parts[bad - 1].node >= part.node)) return Status::not_booked;
      const double finish = start + part.length;
      if (gone_[static_cast<std::size_t>(k)] || finish <= now_) continue;
      const std::vector<Span>& spans = booked_[static_cast<std::size_t>(k)];
      const std::size_t i = last_at(spans, start);
      if (i == spans.size() || spans[i].start != start || !(finish <= spans[i].end) ||
          spans[i].end != cut_finish(finish, spans[i].end))
        return Status::not_booked;
      places_.push_back({static_cast<std::size_t>(k), i});
    }
    ++version_;
    for (const SpanAt& place : places_) {
      std::vector<Span>& spans = booked_[place.node];
      const Span span = spans[place.span];
      spans.erase(at(spans, place.span));
      give_back(place.node, {std::max(span.start, now_), span.end, span.row});
    }
    return Status::ok;
  }

  // Between lend() and take_back() searches for a start before `start` see the booked parts as
  // free. Such a window has a part on a node of them only where free time comes right before
  // the part, and then the slot there goes on to the end of what give_back() would join: so
  // ends are moved, no rows. Parts before which nothing is free by `latest` are left alone.
  void lend(double start, double latest, const Part* parts, std::size_t n) {
    lent_.clear();
    for (std::size_t j = 0; j < n; ++j) {
      const auto k = static_cast<std::size_t>(place_of(parts[j].node));
      const std::vector<Span>& spans = free_[k];
      const std::size_t before = last_at(spans, start);
      if (before == spans.size() || spans[before].end != start || spans[before].start > latest)
        continue;
      const Span& booked = booked_[k][last_at(booked_[k], start)];
      if (spans[before].row != booked.row) continue;
      const bool joined = before + 1 < spans.size() && spans[before + 1].start == booked.end &&
                          spans[before + 1].row == booked.row;
      const double end = joined ? spans[before + 1].end : booked.end;
      set_end(k, spans[before], end);
      lent_.push_back({k, before, end});
    }
  }
  void take_back() {
    for (const Lent& lent : lent_) {
      const Span& span = free_[lent.node][lent.span];
      set_end(lent.node, {span.start, lent.end, span.row}, span.end);
    }
  }

  // The time before `now` leaves. The clock never goes back.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    ++version_;
    now_ = now = std::max(now, now_);
    std::size_t leaving = 0;
    for (const std::vector<Span>& spans : free_) leaving += past_of(spans);
    const bool few = order_.moves_cheaply(leaving);
    for (std::size_t k = 0; k < free_.size(); ++k) {
      std::vector<Span>& spans = free_[k];
      const std::size_t past = past_of(spans);
      for (std::size_t i = 0; few && i < past; ++i) erase(k, spans[i]);
      spans.erase(spans.begin(), at(spans, past));
      if (spans.empty() || !(spans.front().start < now)) continue;
      const Span whole = spans.front();
      spans.front().start = now;
      if (few) replace(k, whole, spans.front());
    }
    few ? tidy() : drop_past_rows();
    return Status::ok;
  }

  // The same, but what is past keeps its rows, where searches pass it by: O(1).
  void pass(double now) {
    ++version_;
    now_ = std::max(now, now_);
  }

  // The node and all its time, booked or free, leave.
  bool remove(std::int32_t node) {
    const std::int32_t found = place_of(node);
    if (found < 0 || gone_[static_cast<std::size_t>(found)]) return false;
    const auto k = static_cast<std::size_t>(found);
    ++version_;
    for (const Span& span : free_[k]) erase(k, span);
    free_[k].clear();
    booked_[k].clear();
    gone_[k] = 1;
    return true;
  }

  // As search(), but starts from what is remembered, and remembers. `least`: no window has a
  // lower value, as what an earlier search for the same found where only bookings followed.
  Status find(const Query& asked, int criterion, ShapeKind shape, Workspace& work, Found& found,
              double least = -kInfinity) {
    Query from;
    if (const Status status = ask(asked, criterion, shape, from); status != Status::ok)
      return status;
    Hints& hints = hints_[table_of(from, shape)];
    const double floor = from.earliest, known = hints.bound(from);
    if (known == kInfinity) return Status::none;
    from.earliest = std::max(floor, known);
    const Status status = search_checked(*prepared_, from, criterion, shape, work, found, least);
    const double earliest = floor <= prepared_->first_start() ? -kInfinity : floor;
    if (status == Status::none)
      hints.learn(from, fastest(), earliest, kInfinity);
    else if (status == Status::ok && finds_earliest(criterion) && found.start > known)
      hints.learn(from, fastest(), earliest, found.start);
    return status;
  }

  // The same where no window starts before `first`, for a start by `latest`; nothing is remembered.
  Status find_between(double first, double latest, const Query& asked, int criterion,
                      ShapeKind shape, Workspace& work, Found& found) {
    Query from;
    if (const Status status = ask(asked, criterion, shape, from); status != Status::ok)
      return status;
    from.earliest = std::max(from.earliest, first);
    from.latest = std::min(from.latest, latest);
    return search_checked(*prepared_, from, criterion, shape, work, found);
  }

  // No window for the query starts before this.
  double known(const Query& asked, ShapeKind shape) const {
    Query from = prepared_->by_performance(asked);
    from.earliest = std::max(from.earliest, now_);
    return std::max(from.earliest, hints_[table_of(from, shape)].bound(from));
  }

  // The free spans of a node, ascending, by its place; -1: there is no such node.
  const std::vector<Span>& free_at(std::size_t place) const { return free_[place]; }
  std::int32_t place_of(std::int32_t node) const {
    const auto it = std::lower_bound(ids_.begin(), ids_.end(), std::pair{node, std::int32_t{0}});
    return it != ids_.end() && it->first == node ? it->second : -1;
  }

  double now() const { return now_; }
  std::size_t version() const { return version_; }  // another after every change
  const std::vector<std::uint8_t>& gone() const { return gone_; }

 private:
  static bool finds_earliest(int criterion) {
    return with_criterion(criterion, [](auto c) { return decltype(c)::earliest; });
  }

  double fastest() const {
    return prepared_->nodes.empty() ? 1 : prepared_->nodes.front().performance;
  }

  static std::size_t table_of(const Query& query, ShapeKind shape) {
    return 2 * query.charged() + static_cast<std::size_t>(shape);
  }

  struct SpanAt {
    std::size_t node, span;  // indices
  };
  struct Lent {
    std::size_t node, span;
    double end;
  };

  // What is searched for on the rows as they are.
  Status ask(const Query& asked, int criterion, ShapeKind shape, Query& from) {
    if (!asked.sane() || criterion < 0 || criterion >= kBuiltins)
      return Status::request_not_valid;
    make_rows_for(asked.volume, shape == ShapeKind::square);
    from = prepared_->by_performance(asked);
    from.earliest = std::max(from.earliest, now_);
    from.origins = prepared_->origins.data();
    return prepared_->check(from);
  }

  static std::size_t place(const Slot& slot) { return static_cast<std::size_t>(slot.place); }
  static std::vector<Span>::iterator at(std::vector<Span>& spans, std::size_t i) {
    return spans.begin() + static_cast<std::ptrdiff_t>(i);
  }

  // The last span that starts at t or before; size() if there is none.
  static std::size_t last_at(const std::vector<Span>& spans, double t) {
    const auto after = std::upper_bound(spans.begin(), spans.end(), t,
                                        [](double x, const Span& s) { return x < s.start; });
    return after == spans.begin() ? spans.size()
                                  : static_cast<std::size_t>(after - spans.begin()) - 1;
  }

  std::size_t past_of(const std::vector<Span>& spans) const {
    const auto first = std::partition_point(spans.begin(), spans.end(),
                                            [this](const Span& s) { return s.end <= now_; });
    return static_cast<std::size_t>(first - spans.begin());
  }

  // Cuts [start, finish) out of the i-th free span of a node.
  void cut(std::size_t k, std::size_t i, double start, double finish) {
    std::vector<Span>& spans = free_[k];
    const Span span = spans[i];
    finish = cut_finish(finish, span.end);
    std::vector<Span>& booked = booked_[k];
    std::size_t past = 0;
    while (past < booked.size() && booked[past].end <= now_) ++past;
    booked.erase(booked.begin(), at(booked, past));
    const std::size_t after = last_at(booked, start);
    booked.insert(at(booked, after == booked.size() ? 0 : after + 1), {start, finish, span.row});

    const Span rest{finish, span.end, span.row};
    if (span.start < start) {
      spans[i].end = start;
      set_end(k, span, start);
      if (finish < span.end) {
        spans.insert(at(spans, i + 1), rest);
        insert(k, rest);
      }
      return;
    }
    if (finish < span.end) {
      spans[i] = rest;
      replace(k, span, rest);
    } else {
      spans.erase(at(spans, i));
      erase(k, span);
    }
  }

  void give_back(std::size_t k, Span span) {
    std::vector<Span>& spans = free_[k];
    const std::size_t before = last_at(spans, span.start);
    const std::size_t i = before == spans.size() ? 0 : before + 1;
    const bool left = i > 0 && spans[i - 1].end == span.start && spans[i - 1].row == span.row;
    const bool right = i < spans.size() && spans[i].start == span.end && spans[i].row == span.row;
    if (right) span.end = spans[i].end;
    if (left) {
      span.start = spans[i - 1].start;
      set_end(k, spans[i - 1], span.end);
      spans[i - 1].end = span.end;
      if (right) {
        erase(k, spans[i]);
        spans.erase(at(spans, i));
      }
    } else if (right) {
      replace(k, spans[i], span);
      spans[i] = span;
    } else {
      spans.insert(at(spans, i), span);
      insert(k, span);
    }
    const Slot grown = slot_of(k, span);
    for (Hints& hints : hints_) hints.lower(grown);
  }

  Slot slot_of(std::size_t k, const Span& span) const {
    const Node& node = prepared_->nodes[k];
    const double price = prices_[span.row];
    return {span.start, span.end, node.performance, price, price / node.performance, node.id,
            static_cast<std::int32_t>(k)};
  }

  // --- the rows in the order of time

  // Slots that hold less work than this serve no request, and are left out of the rows.
  bool serves(std::size_t k, const Span& span) const {
    return least_ == 0 || serves(slot_of(k, span));
  }
  bool serves(const Slot& slot) const {
    return PreparedSlots::room(slot) * slot.performance >= least_;
  }

  // A booked pool fills with remnants that nobody can use. When the rows have doubled, those
  // too short for anything that was asked since the last time are left out.
  void tidy() {
    if (order_.size() <= 2 * laid_ + 1024) return;
    const Undisturbed whole;
    rebuild_rows(asked_ * (1 - kMargin));
  }

  void rebuild_rows(double least) {
    set_least(least);
    std::vector<RowSlot> slots;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      poll();
      for (const Span& span : free_[k])
        if (serves(k, span)) slots.push_back({slot_of(k, span), span.row});
    }
    std::sort(slots.begin(), slots.end(), in_order);
    lay_out(slots);
  }

  // In one pass, for the rows lie by time: those that are cut to now come before all others.
  void drop_past_rows() {
    const Undisturbed whole;
    std::vector<RowSlot> slots;
    std::ptrdiff_t cut = 0;
    prepared_->each_row([&](std::size_t row) {
      Slot slot = prepared_->slots[row];
      if (slot.end <= now_) return;
      slot.start = std::max(slot.start, now_);
      if (!serves(slot)) return;
      cut += slot.start == now_;
      slots.push_back({slot, prepared_->origins[row]});
    });
    std::sort(slots.begin(), slots.begin() + cut, in_order);
    lay_out(slots);
  }

  void set_least(double least) {
    least_ = std::isinf(least) ? 0 : least;
    asked_ = kInfinity;
  }

  using RowSlot = std::pair<Slot, std::size_t>;  // and its row of origin

  static bool in_order(const RowSlot& a, const RowSlot& b) {
    poll();
    return PoolRows::before(a.first, b.first);
  }

  void lay_out(const std::vector<RowSlot>& slots) {
    order_.lay_out(*prepared_, slots, order_.keeps_prices());
    laid_ = slots.size();
  }

  void insert(std::size_t k, const Span& span) {
    if (serves(k, span)) order_.insert(slot_of(k, span), span.row);
  }

  void erase(std::size_t k, const Span& span) {
    if (serves(k, span)) order_.erase(span.start, prepared_->nodes[k].id);
  }

  void set_end(std::size_t k, const Span& span, double end) {
    const Span wanted{span.start, end, span.row};
    if (!serves(k, span)) return insert(k, wanted);
    if (!serves(k, wanted)) return erase(k, span);
    order_.set_end(span.start, prepared_->nodes[k].id, end);
  }

  void replace(std::size_t k, const Span& span, const Span& wanted) {
    if (!serves(k, span)) return insert(k, wanted);
    if (!serves(k, wanted)) return erase(k, span);
    order_.replace(span.start, slot_of(k, wanted), wanted.row);
  }

  PreparedSlots* prepared_ = nullptr;
  double now_ = -kInfinity;
  std::size_t version_ = 0;
  std::vector<double> prices_;                          // by row of the origin array
  std::vector<std::pair<std::int32_t, std::int32_t>> ids_;  // (node id, place), ascending
  std::vector<std::vector<Span>> free_, booked_;        // by place of the node, by start
  std::vector<std::uint8_t> gone_;                      // by place: removed
  std::vector<SpanAt> places_;                           // scratch: of the parts
  std::vector<Lent> lent_;
  double least_ = 0, asked_ = kInfinity;                // least work a row serves; asked for
  PoolRows order_;                                      // slots that serve, by time
  std::size_t laid_ = 0;                                // how many, when they were laid out
  std::array<Hints, 4> hints_;                          // by table_of()
};

}  // namespace slotkern
