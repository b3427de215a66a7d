// A pool that changes: book, release, advance, remove.
//
// The truth is a sorted list of free spans for each node, each with the row of the origin
// array it is a part of: a release merges only spans of one origin, so that slots that touch
// (perhaps at other prices) stay apart and everything comes back bit for bit. Beside it stand
// what is booked, so that nothing can be given back twice, and the slots in the order of time
// for the searches: the rows of PreparedSlots itself, in blocks of at most 64 with gaps at their
// ends, so that a change moves a few rows and refreshes one block of each screen, and every search
// and criterion runs on a changed pool as it does on a fresh one.
//
// A part costs O(log m + 64 + spans of its node) to book or release; every 32nd insertion
// splits a block, O(m / 64).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "slotkern/pool/hints.hpp"
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
    free_.assign(prepared.nodes.size(), {});
    booked_.assign(prepared.nodes.size(), {});
    gone_.assign(prepared.nodes.size(), 0);
    now_ = -kInfinity;
    for (Hints& hints : hints_) hints.clear();
    ids_.clear();
    for (std::size_t k = 0; k < prepared.nodes.size(); ++k)
      ids_.push_back({prepared.nodes[k].id, static_cast<std::int32_t>(k)});
    std::sort(ids_.begin(), ids_.end(), [](const auto& a, const auto& b) {
      poll();
      return a < b;
    });
    if (!state) {
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll())
        free_[place(prepared.slots[i])].push_back(
            {prepared.slots[i].start, prepared.slots[i].end, i});
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
    }
    rebuild_rows(least * (1 - kMargin));
  }

  // A copy of another pool, whose slots have been copied to `prepared`.
  void copy(const SlotPool& other, PreparedSlots& prepared) {
    *this = other;
    prepared_ = &prepared;
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
  // is usually asked (see tidy()).
  void make_rows_for(double volume) {
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

  // The time before `now` leaves. The clock never goes back.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    ++version_;
    now_ = now = std::max(now, now_);
    for (std::size_t k = 0; k < free_.size(); ++k) {
      std::vector<Span>& spans = free_[k];
      std::size_t past = 0;
      for (; past < spans.size() && spans[past].end <= now; ++past) erase(k, spans[past]);
      spans.erase(spans.begin(), at(spans, past));
      if (spans.empty() || !(spans.front().start < now)) continue;
      erase(k, spans.front());
      spans.front().start = now;
      insert(k, spans.front());
    }
    tidy();
    return Status::ok;
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

  // As search(), but starts from what is remembered, and remembers. A mask is by origin row.
  Status find(const Query& query, int criterion, ShapeKind shape, Workspace& work, Found& found) {
    if (!query.sane() || criterion < 0 || criterion >= kBuiltins)
      return Status::request_not_valid;
    make_rows_for(query.volume);
    Hints& hints = hints_[static_cast<std::size_t>(shape)];
    Query from = query;
    from.earliest = std::max(query.earliest, now_);
    from.origins = prepared_->origins.data();
    if (const Status status = prepared_->check(from); status != Status::ok) return status;
    const double floor = from.earliest, known = hints.bound(from);
    if (known == kInfinity) return Status::none;
    from.earliest = std::max(floor, known);
    const Status status = search_checked(*prepared_, from, criterion, shape, work, found);
    const double earliest = floor <= prepared_->first_start() ? -kInfinity : floor;
    if (status == Status::none)
      hints.learn(query, earliest, kInfinity);
    else if (status == Status::ok && finds_earliest(criterion) && found.start > known)
      hints.learn(query, earliest, found.start);
    return status;
  }

  // No window for the query starts before this.
  double known(const Query& query, ShapeKind shape) const {
    Query from = query;
    from.earliest = std::max(query.earliest, now_);
    return std::max(from.earliest, hints_[static_cast<std::size_t>(shape)].bound(from));
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
  static constexpr std::size_t kBlock = 64, kFill = 48;

  static bool finds_earliest(int criterion) {
    return with_criterion(criterion, [](auto c) { return decltype(c)::earliest; });
  }

  struct SpanAt {
    std::size_t node, span;  // indices
  };

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
    erase(k, span);
    if (finish < span.end) {
      spans[i] = rest;
      insert(k, rest);
    } else {
      spans.erase(at(spans, i));
    }
  }

  void give_back(std::size_t k, Span span) {
    std::vector<Span>& spans = free_[k];
    const std::size_t before = last_at(spans, span.start);
    const std::size_t i = before == spans.size() ? 0 : before + 1;
    const bool left = i > 0 && spans[i - 1].end == span.start && spans[i - 1].row == span.row;
    const bool right = i < spans.size() && spans[i].start == span.end && spans[i].row == span.row;
    if (right) {
      span.end = spans[i].end;
      erase(k, spans[i]);
      spans.erase(at(spans, i));
    }
    if (left) {
      span.start = spans[i - 1].start;
      set_end(k, spans[i - 1], span.end);
      spans[i - 1].end = span.end;
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
    return least_ == 0 ||
           PreparedSlots::room(slot_of(k, span)) * prepared_->nodes[k].performance >= least_;
  }

  // A booked pool fills with remnants that nobody can use. When the rows have doubled, those
  // too short for anything that was asked since the last time are left out.
  void tidy() {
    if (rows_ <= 2 * laid_ + 1024) return;
    const Undisturbed whole;
    rebuild_rows(asked_ * (1 - kMargin));
  }

  void rebuild_rows(double least) {
    least_ = std::isinf(least) ? 0 : least;
    asked_ = kInfinity;
    PreparedSlots& prepared = *prepared_;
    std::vector<std::pair<Slot, std::size_t>> slots;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      poll();
      for (const Span& span : free_[k])
        if (serves(k, span)) slots.push_back({slot_of(k, span), span.row});
    }
    std::sort(slots.begin(), slots.end(), [](const auto& a, const auto& b) {
      poll();
      return a.first.start < b.first.start ||
             (a.first.start == b.first.start && a.first.node < b.first.node);
    });
    rows_ = laid_ = slots.size();
    const std::size_t blocks = std::max<std::size_t>(1, (slots.size() + kFill - 1) / kFill);
    prepared.slots.assign(blocks * kBlock, Slot{});
    prepared.origins.assign(blocks * kBlock, 0);
    prepared.counts.assign(blocks, 0);
    prepared.by_rate.reset(blocks * kBlock);
    prepared.by_price.reset(blocks * kBlock);
    prepared.firsts.assign(blocks, -kInfinity);
    prepared.order.clear();
    for (std::size_t b = 0; b < blocks; ++b)
      prepared.order.push_back(static_cast<std::uint32_t>(b));
    for (std::size_t i = 0; i < slots.size(); ++i) {
      poll();
      put(i / kFill * kBlock + i % kFill, slots[i].first, slots[i].second);
      ++prepared.counts[i / kFill];
    }
    for (std::size_t b = 0; b < blocks; ++b) fold(b);
    spare_.clear();
  }

  struct RowAt {
    std::size_t block, offset;  // position of the block, place in it
  };

  // Where (start, node) stands, or would.
  RowAt spot(double start, std::int32_t node) const {
    const PreparedSlots& prepared = *prepared_;
    std::size_t block = prepared.block_at(start);
    while (block > 0 && prepared.firsts[block] == start &&
           prepared.slots[prepared.order[block] * kBlock].node > node)
      --block;
    const auto first = prepared.slots.begin() +
                       static_cast<std::ptrdiff_t>(prepared.order[block] * kBlock);
    const auto it = std::lower_bound(first, first + prepared.counts[prepared.order[block]],
                                     std::pair{start, node},
                                     [](const Slot& s, const std::pair<double, std::int32_t>& x) {
                                       return s.start < x.first ||
                                              (s.start == x.first && s.node < x.second);
                                     });
    return {block, static_cast<std::size_t>(it - first)};
  }

  std::size_t row_of(const RowAt& spot) const {
    return prepared_->order[spot.block] * kBlock + spot.offset;
  }

  void put(std::size_t row, const Slot& slot, std::size_t origin) {
    PreparedSlots& prepared = *prepared_;
    prepared.slots[row] = slot;
    prepared.origins[row] = origin;
    const double room = PreparedSlots::room(slot);
    prepared.by_rate.set(row, slot.rate, room * slot.performance, slot.performance, slot.end);
    prepared.by_price.set(row, slot.price, room, slot.performance, slot.end);
  }

  // What the screens say of a block: after any change, after one more row, and whether it
  // changes when a row leaves or shrinks, which is rare.
  void fold(std::size_t block) {
    PreparedSlots& prepared = *prepared_;
    const std::size_t rows = prepared.order[block] * kBlock;
    mark_first(block);
    prepared.by_rate.fold(block, rows);
    prepared.by_price.fold(block, rows);
  }
  void widen(std::size_t block, std::size_t row) {
    mark_first(block);
    prepared_->by_rate.widen(block, row);
    prepared_->by_price.widen(block, row);
  }
  bool bounds(std::size_t block, std::size_t row) const {
    return prepared_->by_rate.bounds(block, row) || prepared_->by_price.bounds(block, row);
  }
  void mark_first(std::size_t block) {
    const std::uint32_t rows = prepared_->order[block];
    prepared_->firsts[block] =
        prepared_->counts[rows] ? prepared_->slots[rows * kBlock].start : -kInfinity;
  }

  void move_rows(std::size_t from, std::size_t to, std::size_t count) {
    PreparedSlots& prepared = *prepared_;
    std::memmove(&prepared.slots[to], &prepared.slots[from], count * sizeof(Slot));
    std::memmove(&prepared.origins[to], &prepared.origins[from], count * sizeof(std::size_t));
    prepared.by_rate.move(from, to, count);
    prepared.by_price.move(from, to, count);
  }

  void insert(std::size_t k, const Span& span) {
    if (!serves(k, span)) return;
    ++rows_;
    PreparedSlots& prepared = *prepared_;
    const Slot slot = slot_of(k, span);
    RowAt here = spot(slot.start, slot.node);
    if (prepared.counts[prepared.order[here.block]] == kBlock) {
      split(here.block);
      if (here.offset > kBlock / 2) here = {here.block + 1, here.offset - kBlock / 2};
    }
    const std::size_t row = row_of(here);
    std::uint8_t& count = prepared.counts[prepared.order[here.block]];
    move_rows(row, row + 1, count - here.offset);
    put(row, slot, span.row);
    ++count;
    widen(here.block, row);
  }

  void erase(std::size_t k, const Span& span) {
    if (!serves(k, span)) return;
    --rows_;
    const RowAt here = spot(span.start, prepared_->nodes[k].id);
    close_gap(here.block, here.offset);
  }

  void set_end(std::size_t k, const Span& span, double end) {
    const Span wanted{span.start, end, span.row};
    if (!serves(k, span)) return insert(k, wanted);
    if (!serves(k, wanted)) return erase(k, span);
    const RowAt here = spot(span.start, prepared_->nodes[k].id);
    const std::size_t row = row_of(here);
    const bool shrinks = end < span.end && bounds(here.block, row);
    Slot slot = prepared_->slots[row];
    slot.end = end;
    put(row, slot, prepared_->origins[row]);
    shrinks ? fold(here.block) : widen(here.block, row);
  }

  // Takes a row out of a block, and the block when nothing is left or its neighbour can take
  // the rest.
  void close_gap(std::size_t block, std::size_t offset) {
    PreparedSlots& prepared = *prepared_;
    const std::size_t rows = prepared.order[block] * kBlock;
    const bool narrower = bounds(block, rows + offset);
    std::uint8_t& count = prepared.counts[prepared.order[block]];
    --count;
    move_rows(rows + offset + 1, rows + offset, count - offset);
    clear(rows + count, 1);
    if (block + 1 < prepared.order.size() &&
        count + prepared.counts[prepared.order[block + 1]] <= kFill) {
      const std::size_t next = prepared.order[block + 1];
      for (std::size_t j = 0; j < prepared.counts[next]; ++j)
        put(rows + count + j, prepared.slots[next * kBlock + j],
            prepared.origins[next * kBlock + j]);
      count = static_cast<std::uint8_t>(count + prepared.counts[next]);
      clear(next * kBlock, prepared.counts[next]);
      prepared.counts[next] = 0;
      drop_block(block + 1);
    } else if (count == 0 && prepared.order.size() > 1) {
      drop_block(block);
      return;
    } else if (!narrower) {
      return mark_first(block);
    }
    fold(block);
  }

  void clear(std::size_t row, std::size_t count) {
    for (std::size_t j = row; j < row + count; ++j) {
      prepared_->by_rate.clear(j);
      prepared_->by_price.clear(j);
    }
  }

  void split(std::size_t block) {
    PreparedSlots& prepared = *prepared_;
    if (spare_.empty()) {
      spare_.push_back(static_cast<std::uint32_t>(prepared.counts.size()));
      prepared.slots.resize(prepared.slots.size() + kBlock);
      prepared.origins.resize(prepared.origins.size() + kBlock);
      prepared.counts.push_back(0);
      prepared.by_rate.add_rows();
      prepared.by_price.add_rows();
    }
    const std::uint32_t fresh = spare_.back(), old = prepared.order[block];
    spare_.pop_back();
    const auto next = static_cast<std::ptrdiff_t>(block) + 1;
    prepared.order.insert(prepared.order.begin() + next, fresh);
    prepared.firsts.insert(prepared.firsts.begin() + next, 0);
    prepared.by_rate.insert_block(block + 1);
    prepared.by_price.insert_block(block + 1);
    constexpr std::size_t half = kBlock / 2;
    for (std::size_t j = 0; j < half; ++j)
      put(fresh * kBlock + j, prepared.slots[old * kBlock + half + j],
          prepared.origins[old * kBlock + half + j]);
    clear(old * kBlock + half, half);
    prepared.counts[old] = prepared.counts[fresh] = half;
    fold(block);
    fold(block + 1);
  }

  void drop_block(std::size_t block) {
    PreparedSlots& prepared = *prepared_;
    spare_.push_back(prepared.order[block]);
    prepared.order.erase(prepared.order.begin() + static_cast<std::ptrdiff_t>(block));
    prepared.firsts.erase(prepared.firsts.begin() + static_cast<std::ptrdiff_t>(block));
    prepared.by_rate.erase_block(block);
    prepared.by_price.erase_block(block);
  }

  PreparedSlots* prepared_ = nullptr;
  double now_ = -kInfinity;
  std::size_t version_ = 0;
  std::vector<double> prices_;                          // by row of the origin array
  std::vector<std::pair<std::int32_t, std::int32_t>> ids_;  // (node id, place), ascending
  std::vector<std::vector<Span>> free_, booked_;        // by place of the node, by start
  std::vector<std::uint8_t> gone_;                      // by place: removed
  std::vector<SpanAt> places_;                           // scratch: of the parts
  std::vector<std::uint32_t> spare_;                    // blocks of rows that are empty
  double least_ = 0, asked_ = kInfinity;                // least work a row serves; asked for
  std::size_t rows_ = 0, laid_ = 0;                     // slots in rows, now and when laid out
  std::array<Hints, 2> hints_;                          // by shape
};

}  // namespace slotkern
