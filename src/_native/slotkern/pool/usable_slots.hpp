// The index that searches of a changing pool read: the free spans that are usable, as rows of
// PreparedSlots in the order of time (pool/slot_tree.hpp).
//
// A pool in use fills with remnants that are too short for any request. A span has a row only if it
// holds at least `threshold_` work; the threshold follows the volumes requested, and a lower one
// rebuilds the rows. Invariant: every free span with enough work for the searches announced by
// ensure_threshold() has exactly one row.
//
// A change of free time never fails because of this index: if memory runs out, the index becomes
// invalid and is rebuilt by the next search.
//
// Cost: O(log m + 64) for a change, O(m log m) for a rebuild.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "slotkern/pool/availability.hpp"
#include "slotkern/pool/slot_tree.hpp"

namespace slotkern {

class UsableSlotIndex {
 public:
  // Starts over for the slots of `prepared`; `prices` by row of the origin array. Searches will be
  // for parts of at least the volume `threshold`.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, double threshold) {
    prepared_ = &prepared;
    prices_ = prices;
    tree_ = {};
    was_invalidated_ = false;
    set_threshold(threshold * (1 - kMargin));
  }

  // Continues on a copy of the PreparedSlots.
  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    tree_.attach(prepared);
  }

  // Builds the rows of a pool in which all prepared slots are free.
  void build_all() {
    std::vector<SlotWithOrigin> slots;  // sorted already
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

  // Ensures that a search for parts of this volume finds all usable spans. Rebuilds the rows if the
  // index is invalid or the threshold too high; the new threshold is a quarter of the volume.
  void ensure_threshold(double volume, const SpanLists& free) {
    min_requested_ = std::min(min_requested_, volume);
    if (!(volume * (1 - kMargin) >= threshold_)) rebuild(volume / 4, free);
  }

  // Once the number of rows has doubled, drops the rows too short for half of the smallest volume
  // requested since the last rebuild.
  void compact_if_needed(const SpanLists& free) {
    if (is_invalid() || tree_.size() <= 2 * rows_at_rebuild_ + 1024) return;
    try {
      rebuild(min_requested_ / 2, free);
    } catch (const std::bad_alloc&) {  // still correct, only larger
    }
  }

  // True if the rows have been rebuilt, or are to be, because memory ran out.
  bool was_invalidated() const { return was_invalidated_; }

  // Upper bound, by at most a small factor, on the rows that start by `now`. Comparable only with
  // itself. O(log m).
  std::size_t count_started(double now) const {
    return is_invalid() ? 0 : tree_.count_started(now);
  }

  // Heuristic: true if removing `leaving` rows one by one is cheaper than trim_before().
  bool can_update_incrementally(std::size_t leaving) const {
    return tree_.can_update_incrementally(leaving);
  }

  // Trims all rows to `now` in one pass: the rows that start by `now` are a prefix of the order of
  // time, and only these need sorting again.
  void trim_before(double now) {
    if (is_invalid()) return;
    const InterruptMask no_interrupts;
    invalidate_on_bad_alloc([&] {
      std::vector<SlotWithOrigin> slots = usable_rows(now);
      const auto started_end =
          std::partition_point(slots.begin(), slots.end(),
                               [now](const SlotWithOrigin& row) { return row.first.start <= now; });
      std::sort(slots.begin(), started_end, starts_before);
      build(slots);
    });
  }

  // Heuristic: true if the rows of different parts are unlikely to share cache lines.
  bool should_prefetch() const { return !is_invalid() && tree_.should_prefetch(); }
  // Prefetches for a slot of the node, perhaps in row `at`, that will start at `start`.
  void prefetch_row(std::size_t k, double start, std::size_t at) const {
    if (threshold_ > 0) prefetch(&prepared_->nodes[k]);
    tree_.prefetch_row(at, start);
  }
  // Prefetches for a part of the span that will become a row of its own.
  void prefetch_row(std::size_t k, const Span& span) const {
    prefetch(&prepared_->nodes[k]), prefetch(&prices_[span.origin_row]);
  }

  // Listeners of AvailabilityTimeline: a free span of node k was added, removed or changed. `at`:
  // hint, the row that holds it.
  void insert(std::size_t k, const Span& span) {
    if (is_usable(k, span))
      invalidate_on_bad_alloc([&] { tree_.insert(slot_of(k, span), span.origin_row); });
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
  // The time [start, finish) was subtracted; the rest after `finish` stays, and the rest before
  // `start` if `keeps_before`.
  void subtract(std::size_t k, const Span& span, double start, double finish, std::size_t at,
                bool keeps_before) {
    const Span before{span.start, start, span.origin_row},
        after{finish, span.end, span.origin_row};
    const bool was_usable = is_usable(k, span), stays = keeps_before && is_usable(k, before),
               comes = finish < span.end && is_usable(k, after);
    if (stays) set_end(k, span, start, at);
    else if (was_usable && comes) return set_start(k, span, finish, at);
    else if (was_usable) erase(k, span, at);
    if (comes) insert(k, after);
  }
  // Makes all changes so far visible to searches.
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
  // Builds the rows of a pool that was just prepared. Its slots are sorted, and so are the spans
  // that start with their slot; only spans that start later are sorted here.
  void build_from_prepared(const SpanLists& free) {
    const LargeVector<Slot>& initial = prepared_->slots;
    std::vector<SlotWithOrigin> slots, later;
    slots.reserve(initial.size());
    std::vector<std::size_t> next(free.size(), 0);  // [node]: first span not handled
    for (std::size_t i = 0; i < initial.size(); ++i, poll()) {
      if (i + 2 * kAhead < initial.size())
        prefetch(&free[static_cast<std::size_t>(initial[i + 2 * kAhead].place)]);
      if (i + kAhead < initial.size())
        prefetch(free[static_cast<std::size_t>(initial[i + kAhead].place)].data());
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

  static constexpr std::size_t kAhead = 8;  // prefetch distance in slots

  static bool starts_before(const SlotWithOrigin& a, const SlotWithOrigin& b) {
    poll();
    return SlotTree::before(a.first, b.first);
  }

  bool is_usable(std::size_t k, const Span& span) const {
    return threshold_ == 0 || is_usable(slot_of(k, span));
  }
  bool is_usable(const Slot& slot) const { return is_usable(slot, threshold_); }
  static bool is_usable(const Slot& slot, double threshold) {
    return PreparedSlots::capacity(slot) * slot.performance >= threshold;
  }

  void set_threshold(double threshold) {
    threshold_ = std::isinf(threshold) || !prepared_->options.omit_short_spans ? 0 : threshold;
    min_requested_ = kInfinity;
  }

  // An invalid index has the threshold NaN. No span is usable then, so that changes before the
  // rebuild are ignored.
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
    const InterruptMask no_interrupts;
    const double before = threshold_, min_requested = min_requested_;
    set_threshold(threshold);
    try {
      if (std::isnan(before))
        build(free);
      else
        build(threshold_ >= before ? usable_rows(-kInfinity)
                                   : rows_for_lower_threshold(before, free));
    } catch (...) {  // strong exception guarantee
      threshold_ = before, min_requested_ = min_requested;
      throw;
    }
  }

  // Returns the usable rows that end after `now`, in their order, trimmed to `now`.
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

  // Returns all rows, and the spans that become usable because the threshold fell from `before`.
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
  std::vector<double> prices_;  // [row of the origin array]
  // Least work of a span with a row, NaN if invalid; smallest volume requested since it was set.
  double threshold_ = 0, min_requested_ = kInfinity;
  bool was_invalidated_ = false;
  SlotTree tree_;
  std::size_t rows_at_rebuild_ = 0;  // number of rows
};

}  // namespace slotkern
