// The free spans of a pool that can serve what is asked for, as rows for the searches
// (pool/rows.hpp).
//
// A booked pool fills with remnants that nobody can use: spans that hold less work than anything
// asked for lately stand in no row. Which these are changes with what is asked, and then all
// rows are laid out anew.
//
// A change of free time is never undone because its row cannot be: where memory runs out, the
// rows are lost, and laid out anew by the next that needs them.
//
// A change costs O(log m + 64); O(m log m) to lay out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "slotkern/pool/rows.hpp"
#include "slotkern/pool/spans.hpp"

namespace slotkern {

class ServingRows {
 public:
  // Whose slots become the rows; prices by row of the origin array. Searches will be for parts
  // of at least the volume `least`.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, double least) {
    prepared_ = &prepared;
    prices_ = prices;
    rows_ = {};
    were_lost_ = false;
    set_least(least * (1 - kMargin));
  }

  // The same rows, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    rows_.attach(prepared);
  }

  // All slots of the pool as it was prepared are free.
  void lay_out_all() {
    std::vector<RowSlot> slots;  // in the order of time already
    slots.reserve(prepared_->slots.size());
    for (std::size_t i = 0; i < prepared_->slots.size(); ++i, poll())
      if (serves(prepared_->slots[i])) slots.push_back({prepared_->slots[i], i});
    lay_out(slots);
  }

  void lay_out(const SpanLists& free) {
    if (prepared_->order.empty()) return lay_out_parts(free);
    std::vector<RowSlot> slots;
    for (std::size_t k = 0; k < free.size(); ++k) {
      poll();
      for (const Span& span : free[k])
        if (serves(k, span)) slots.push_back({slot_of(k, span), span.row});
    }
    std::sort(slots.begin(), slots.end(), in_order);
    lay_out(slots);
  }

  // Before a search for parts of this volume.
  void make_for(double volume, const SpanLists& free) {
    asked_ = std::min(asked_, volume);
    if (!(volume * (1 - kMargin) >= least_)) lay_out_anew(volume / 4, free);
  }

  // When the rows have doubled, those too short for half of what was asked since the last time are
  // left out.
  void tidy(const SpanLists& free) {
    if (lost() || rows_.size() <= 2 * laid_ + 1024) return;
    try {
      lay_out_anew(asked_ / 2, free);
    } catch (const std::bad_alloc&) {  // some other time
    }
  }

  // Whether rows have been laid out anew, or are to be, because memory ran out.
  bool were_lost() const { return were_lost_; }

  // How many rows have begun by then, at most a few times as many, to compare with itself: O(log m).
  std::size_t begun(double now) const { return lost() ? 0 : rows_.begun(now); }

  // Whether so many can leave one by one faster than by drop_past().
  bool moves_cheaply(std::size_t leaving) const { return rows_.moves_cheaply(leaving); }

  // In one pass, for the rows lie by time: those that are cut to now come before all others.
  void drop_past(double now) {
    if (lost()) return;
    const Undisturbed whole;
    or_lose([&] {
      std::vector<RowSlot> slots = serving_rows(now);
      const auto cut = std::partition_point(slots.begin(), slots.end(), [now](const RowSlot& row) {
        return row.first.start <= now;
      });
      std::sort(slots.begin(), cut, in_order);
      lay_out(slots);
    });
  }

  // Whether what belongs to one part is likely to stand nowhere near what belongs to another.
  bool far_apart() const { return !lost() && rows_.far_apart(); }
  // A slot of the node, perhaps in row `at`, will start at `start`: see PoolRows::expect().
  void expect(std::size_t k, double start, std::size_t at) const {
    if (least_ > 0) fetch(&prepared_->nodes[k]);
    rows_.expect(at, start);
  }
  // A part of a span of the node will come as a row of its own.
  void expect(std::size_t k, const Span& span) const {
    fetch(&prepared_->nodes[k]), fetch(&prices_[span.row]);
  }

  // A free span of the node at place k has come, left, or changed. `at`: perhaps its row.
  void insert(std::size_t k, const Span& span) {
    if (serves(k, span)) or_lose([&] { rows_.insert(slot_of(k, span), span.row); });
  }
  void erase(std::size_t k, const Span& span, std::size_t at = 0) {
    if (serves(k, span)) or_lose([&] { rows_.erase(span.start, k, at); });
  }
  void set_end(std::size_t k, const Span& span, double end, std::size_t at = 0) {
    const Span wanted{span.start, end, span.row};
    if (!serves(k, span)) return insert(k, wanted);
    if (!serves(k, wanted)) return erase(k, span, at);
    or_lose([&] { rows_.set_end(span.start, k, end, at); });
  }
  void set_start(std::size_t k, const Span& span, double start, std::size_t at = 0) {
    const Span wanted{start, span.end, span.row};
    if (!serves(k, span)) return insert(k, wanted);
    if (!serves(k, wanted)) return erase(k, span, at);
    or_lose([&] { rows_.set_start(span.start, k, start, at); });
  }
  // It has left but for what is behind `finish` and, if `keeps`, what was before `start`.
  void cut(std::size_t k, const Span& span, double start, double finish, std::size_t at,
           bool keeps) {
    const Span before{span.start, start, span.row}, behind{finish, span.end, span.row};
    const bool stood = serves(k, span), stays = keeps && serves(k, before),
               comes = finish < span.end && serves(k, behind);
    if (stays) set_end(k, span, start, at);
    else if (stood && comes) return set_start(k, span, finish, at);
    else if (stood) erase(k, span, at);
    if (comes) insert(k, behind);
  }
  // All changes by now show.
  void settle() {
    if (!lost()) or_lose([&] { rows_.settle(); });
  }

  const std::vector<double>& prices() const { return prices_; }

  Slot slot_of(std::size_t k, const Span& span) const {
    const Node& node = prepared_->nodes[k];
    const double price = prices_[span.row];
    return {span.start, span.end, node.performance, price, price / node.performance, node.id,
            static_cast<std::int32_t>(k)};
  }

 private:
  // The same of a pool just built, whose slots stand in the order of time: so do what is free from
  // their starts on, and only what begins later is sorted.
  void lay_out_parts(const SpanLists& free) {
    const LargeVector<Slot>& whole = prepared_->slots;
    std::vector<RowSlot> slots, later;
    slots.reserve(whole.size());
    std::vector<std::size_t> next(free.size(), 0);  // of the spans of a node
    for (std::size_t i = 0; i < whole.size(); ++i, poll()) {
      if (i + 2 * kAhead < whole.size())
        fetch(&free[static_cast<std::size_t>(whole[i + 2 * kAhead].place)]);
      if (i + kAhead < whole.size())
        fetch(free[static_cast<std::size_t>(whole[i + kAhead].place)].data());
      const auto k = static_cast<std::size_t>(whole[i].place);
      for (; next[k] < free[k].size() && free[k][next[k]].start < whole[i].end; ++next[k]) {
        const Span& span = free[k][next[k]];
        Slot part = whole[i];
        part.start = span.start, part.end = span.end;
        if (!serves(part)) continue;
        (part.start == whole[i].start ? slots : later).push_back({part, span.row});
      }
    }
    std::sort(later.begin(), later.end(), in_order);
    const auto middle = static_cast<std::ptrdiff_t>(slots.size());
    slots.insert(slots.end(), later.begin(), later.end());
    std::inplace_merge(slots.begin(), slots.begin() + middle, slots.end(), in_order);
    lay_out(slots);
  }

  static constexpr std::size_t kAhead = 8;  // slots from here on their spans are fetched

  static bool in_order(const RowSlot& a, const RowSlot& b) {
    poll();
    return PoolRows::before(a.first, b.first);
  }

  bool serves(std::size_t k, const Span& span) const {
    return least_ == 0 || serves(slot_of(k, span));
  }
  bool serves(const Slot& slot) const { return serves(slot, least_); }
  static bool serves(const Slot& slot, double least) {
    return PreparedSlots::room(slot) * slot.performance >= least;
  }

  void set_least(double least) {
    least_ = std::isinf(least) ? 0 : least;
    asked_ = kInfinity;
  }

  // Nothing is at least NaN: no span has a row to change.
  bool lost() const { return std::isnan(least_); }
  template <class Change>
  void or_lose(Change change) noexcept {
    try {
      change();
    } catch (const std::bad_alloc&) {
      least_ = std::numeric_limits<double>::quiet_NaN();
      were_lost_ = true;
    }
  }

  void lay_out_anew(double least, const SpanLists& free) {
    const Undisturbed whole;
    const double before = least_, asked = asked_;
    set_least(least);
    try {
      if (std::isnan(before))
        lay_out(free);
      else
        lay_out(least_ >= before ? serving_rows(-kInfinity) : rows_with_more(before, free));
    } catch (...) {  // the rows are as they were
      least_ = before, asked_ = asked;
      throw;
    }
  }

  // The rows that serve, in their order, of what is not past.
  std::vector<RowSlot> serving_rows(double now) const {
    std::vector<RowSlot> slots;
    slots.reserve(rows_.size());
    prepared_->each_row([&](std::size_t row) {
      Slot slot = prepared_->slots[row];
      slot.start = std::max(slot.start, now);
      if (slot.end > now && serves(slot)) slots.push_back({slot, prepared_->origins[row]});
    });
    return slots;
  }

  // All rows there are, in their order, and those that did not serve before.
  std::vector<RowSlot> rows_with_more(double before, const SpanLists& free) const {
    std::vector<RowSlot> slots = serving_rows(-kInfinity);
    const auto stood = static_cast<std::ptrdiff_t>(slots.size());
    for (std::size_t k = 0; k < free.size(); ++k) {
      poll();
      for (const Span& span : free[k]) {
        const Slot slot = slot_of(k, span);
        if (serves(slot) && !serves(slot, before)) slots.push_back({slot, span.row});
      }
    }
    std::sort(slots.begin() + stood, slots.end(), in_order);
    std::inplace_merge(slots.begin(), slots.begin() + stood, slots.end(), in_order);
    return slots;
  }

  void lay_out(const std::vector<RowSlot>& slots) {
    rows_.lay_out(*prepared_, slots);
    laid_ = slots.size();
  }

  PreparedSlots* prepared_ = nullptr;
  std::vector<double> prices_;            // by row of the origin array
  double least_ = 0, asked_ = kInfinity;  // least work a row serves; asked for since then
  bool were_lost_ = false;
  PoolRows rows_;
  std::size_t laid_ = 0;                  // how many, when they were laid out
};

}  // namespace slotkern
