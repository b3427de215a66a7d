// The free spans of a pool that can serve what is asked for, as rows for the searches
// (pool/slot_tree.hpp).
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

#include "slotkern/pool/slot_tree.hpp"
#include "slotkern/pool/availability.hpp"

namespace slotkern {

class UsableSlotIndex {
 public:
  // Whose slots become the rows; prices by row of the origin array. Searches will be for parts
  // of at least the volume `least`.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, double threshold) {
    prepared_ = &prepared;
    prices_ = prices;
    tree_ = {};
    was_invalidated_ = false;
    set_threshold(threshold * (1 - kMargin));
  }

  // The same rows, of another PreparedSlots that has been copied.
  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    tree_.attach(prepared);
  }

  // All slots of the pool as it was prepared are free.
  void build_all() {
    std::vector<SlotWithOrigin> slots;  // in the order of time already
    slots.reserve(prepared_->slots.size());
    for (std::size_t i = 0; i < prepared_->slots.size(); ++i, poll())
      if (is_usable(prepared_->slots[i])) slots.push_back({prepared_->slots[i], i});
    build(slots);
  }

  void build(const SpanLists& free) {
    if (prepared_->order.empty()) return build_from_prepared(free);
    std::vector<SlotWithOrigin> slots;
    for (std::size_t k = 0; k < free.size(); ++k) {
      poll();
      for (const Span& span : free[k])
        if (is_usable(k, span)) slots.push_back({slot_of(k, span), span.origin_row});
    }
    std::sort(slots.begin(), slots.end(), starts_before);
    build(slots);
  }

  // Before a search for parts of this volume.
  void ensure_threshold(double volume, const SpanLists& free) {
    min_requested_ = std::min(min_requested_, volume);
    if (!(volume * (1 - kMargin) >= threshold_)) rebuild(volume / 4, free);
  }

  // When the rows have doubled, those too short for half of what was asked since the last time are
  // left out.
  void compact_if_needed(const SpanLists& free) {
    if (is_invalid() || tree_.size() <= 2 * rows_at_rebuild_ + 1024) return;
    try {
      rebuild(min_requested_ / 2, free);
    } catch (const std::bad_alloc&) {  // some other time
    }
  }

  // Whether rows have been laid out anew, or are to be, because memory ran out.
  bool was_invalidated() const { return was_invalidated_; }

  // How many rows have begun by then, at most a few times as many, to compare with itself: O(log m).
  std::size_t count_started(double now) const { return is_invalid() ? 0 : tree_.count_started(now); }

  // Whether so many can leave one by one faster than by trim_before_now().
  bool can_update_incrementally(std::size_t leaving) const { return tree_.can_update_incrementally(leaving); }

  // In one pass, for the rows lie by time: those that are cut to now come before all others.
  void trim_before(double now) {
    if (is_invalid()) return;
    const Undisturbed no_interrupts;
    invalidate_on_bad_alloc([&] {
      std::vector<SlotWithOrigin> slots = usable_rows(now);
      const auto subtract = std::partition_point(slots.begin(), slots.end(), [now](const SlotWithOrigin& row) {
        return row.first.start <= now;
      });
      std::sort(slots.begin(), subtract, starts_before);
      build(slots);
    });
  }

  // Whether what belongs to one part is likely to stand nowhere near what belongs to another.
  bool should_prefetch() const { return !is_invalid() && tree_.should_prefetch(); }
  // A slot of the node, perhaps in row `at`, will start at `start`: see SlotTree::expect().
  void prefetch_row(std::size_t k, double start, std::size_t at) const {
    if (threshold_ > 0) fetch(&prepared_->nodes[k]);
    tree_.prefetch_row(at, start);
  }
  // A part of a span of the node will come as a row of its own.
  void prefetch_row(std::size_t k, const Span& span) const {
    fetch(&prepared_->nodes[k]), fetch(&prices_[span.origin_row]);
  }

  // A free span of the node at place k has come, left, or changed. `at`: perhaps its row.
  void insert(std::size_t k, const Span& span) {
    if (is_usable(k, span)) invalidate_on_bad_alloc([&] { tree_.insert(slot_of(k, span), span.origin_row); });
  }
  void erase(std::size_t k, const Span& span, std::size_t at = 0) {
    if (is_usable(k, span)) invalidate_on_bad_alloc([&] { tree_.erase(span.start, k, at); });
  }
  void set_end(std::size_t k, const Span& span, double end, std::size_t at = 0) {
    const Span wanted{span.start, end, span.origin_row};
    if (!is_usable(k, span)) return insert(k, wanted);
    if (!is_usable(k, wanted)) return erase(k, span, at);
    invalidate_on_bad_alloc([&] { tree_.set_end(span.start, k, end, at); });
  }
  void set_start(std::size_t k, const Span& span, double start, std::size_t at = 0) {
    const Span wanted{start, span.end, span.origin_row};
    if (!is_usable(k, span)) return insert(k, wanted);
    if (!is_usable(k, wanted)) return erase(k, span, at);
    invalidate_on_bad_alloc([&] { tree_.set_start(span.start, k, start, at); });
  }
  // It has left but for what is behind `finish` and, if `keeps`, what was before `start`.
  void subtract(std::size_t k, const Span& span, double start, double finish, std::size_t at,
           bool keeps_before) {
    const Span before{span.start, start, span.origin_row}, behind{finish, span.end, span.origin_row};
    const bool was_usable = is_usable(k, span), stays = keeps_before && is_usable(k, before),
               comes = finish < span.end && is_usable(k, behind);
    if (stays) set_end(k, span, start, at);
    else if (was_usable && comes) return set_start(k, span, finish, at);
    else if (was_usable) erase(k, span, at);
    if (comes) insert(k, behind);
  }
  // All changes by now show.
  void apply_pending() {
    if (!is_invalid()) invalidate_on_bad_alloc([&] { tree_.apply_pending(); });
  }

  const std::vector<double>& prices() const { return prices_; }

  Slot slot_of(std::size_t k, const Span& span) const {
    const Node& node = prepared_->nodes[k];
    const double price = prices_[span.origin_row];
    return {span.start, span.end, node.performance, price, price / node.performance, node.id,
            static_cast<std::int32_t>(k)};
  }

 private:
  // The same of a pool just built, whose slots stand in the order of time: so do what is free from
  // their starts on, and only what begins later is sorted.
  void build_from_prepared(const SpanLists& free) {
    const LargeVector<Slot>& initial = prepared_->slots;
    std::vector<SlotWithOrigin> slots, later;
    slots.reserve(initial.size());
    std::vector<std::size_t> next(free.size(), 0);  // of the spans of a node
    for (std::size_t i = 0; i < initial.size(); ++i, poll()) {
      if (i + 2 * kAhead < initial.size())
        fetch(&free[static_cast<std::size_t>(initial[i + 2 * kAhead].place)]);
      if (i + kAhead < initial.size())
        fetch(free[static_cast<std::size_t>(initial[i + kAhead].place)].data());
      const auto k = static_cast<std::size_t>(initial[i].place);
      for (; next[k] < free[k].size() && free[k][next[k]].start < initial[i].end; ++next[k]) {
        const Span& span = free[k][next[k]];
        Slot part = initial[i];
        part.start = span.start, part.end = span.end;
        if (!is_usable(part)) continue;
        (part.start == initial[i].start ? slots : later).push_back({part, span.origin_row});
      }
    }
    std::sort(later.begin(), later.end(), starts_before);
    const auto middle = static_cast<std::ptrdiff_t>(slots.size());
    slots.insert(slots.end(), later.begin(), later.end());
    std::inplace_merge(slots.begin(), slots.begin() + middle, slots.end(), starts_before);
    build(slots);
  }

  static constexpr std::size_t kAhead = 8;  // slots from here on their spans are fetched

  static bool starts_before(const SlotWithOrigin& a, const SlotWithOrigin& b) {
    poll();
    return SlotTree::before(a.first, b.first);
  }

  bool is_usable(std::size_t k, const Span& span) const {
    return threshold_ == 0 || is_usable(slot_of(k, span));
  }
  bool is_usable(const Slot& slot) const { return is_usable(slot, threshold_); }
  static bool is_usable(const Slot& slot, double threshold) {
    return PreparedSlots::room(slot) * slot.performance >= threshold;
  }

  void set_threshold(double threshold) {
    threshold_ = std::isinf(threshold) ? 0 : threshold;
    min_requested_ = kInfinity;
  }

  // Nothing is at least NaN: no span has a row to change.
  bool is_invalid() const { return std::isnan(threshold_); }
  template <class Change>
  void invalidate_on_bad_alloc(Change change) noexcept {
    try {
      change();
    } catch (const std::bad_alloc&) {
      threshold_ = std::numeric_limits<double>::quiet_NaN();
      was_invalidated_ = true;
    }
  }

  void rebuild(double threshold, const SpanLists& free) {
    const Undisturbed no_interrupts;
    const double before = threshold_, min_requested = min_requested_;
    set_threshold(threshold);
    try {
      if (std::isnan(before))
        build(free);
      else
        build(threshold_ >= before ? usable_rows(-kInfinity) : rows_for_lower_threshold(before, free));
    } catch (...) {  // the rows are as they were
      threshold_ = before, min_requested_ = min_requested;
      throw;
    }
  }

  // The rows that serve, in their order, of what is not past.
  std::vector<SlotWithOrigin> usable_rows(double now) const {
    std::vector<SlotWithOrigin> slots;
    slots.reserve(tree_.size());
    prepared_->each_row([&](std::size_t row) {
      Slot slot = prepared_->slots[row];
      slot.start = std::max(slot.start, now);
      if (slot.end > now && is_usable(slot)) slots.push_back({slot, prepared_->origins[row]});
    });
    return slots;
  }

  // All rows there are, in their order, and those that did not serve before.
  std::vector<SlotWithOrigin> rows_for_lower_threshold(double before, const SpanLists& free) const {
    std::vector<SlotWithOrigin> slots = usable_rows(-kInfinity);
    const auto old_size = static_cast<std::ptrdiff_t>(slots.size());
    for (std::size_t k = 0; k < free.size(); ++k) {
      poll();
      for (const Span& span : free[k]) {
        const Slot slot = slot_of(k, span);
        if (is_usable(slot) && !is_usable(slot, before)) slots.push_back({slot, span.origin_row});
      }
    }
    std::sort(slots.begin() + old_size, slots.end(), starts_before);
    std::inplace_merge(slots.begin(), slots.begin() + old_size, slots.end(), starts_before);
    return slots;
  }

  void build(const std::vector<SlotWithOrigin>& slots) {
    tree_.build(*prepared_, slots);
    rows_at_rebuild_ = slots.size();
  }

  PreparedSlots* prepared_ = nullptr;
  std::vector<double> prices_;            // by row of the origin array
  double threshold_ = 0, min_requested_ = kInfinity;  // least work a row serves; asked for since then
  bool was_invalidated_ = false;
  SlotTree tree_;
  std::size_t rows_at_rebuild_ = 0;                  // how many, when they were laid out
};

}  // namespace slotkern
