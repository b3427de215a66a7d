// The booked spans of a changing pool, by node. A release looks its parts up here, so that no time
// can be released twice.
//
// Most bookings are never released. A new booking is therefore appended to an unsorted buffer,
// O(1), and merged into the sorted list of its node before the next release: O(b log b) for b
// buffered bookings, plus the spans of their nodes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "slotkern/base/memory.hpp"

namespace slotkern {

// A half-open interval [start, end) of one node's time. `origin_row`: the row of the pool's origin
// array that it is a part of.
struct Span {
  double start, end;
  std::size_t origin_row;
};
using SpanLists = LargeVector<std::vector<Span>>;  // [node index]

// Returns the index of the last span that starts at or before t, or spans.size() if there is none.
// Branch-free bisection: in lists this short one misprediction costs more than all steps.
inline std::size_t last_starting_by(const std::vector<Span>& spans, double t) {
  if (spans.empty() || !(spans.front().start <= t)) return spans.size();
  std::size_t at = 0;
  for (std::size_t size = spans.size(); size > 1; size -= size / 2)
    at += (spans[at + size / 2].start <= t) * (size / 2);
  return at;
}

class BookingIndex {
 public:
  // `place`: index of the node in PreparedSlots::nodes.
  struct Booking {
    std::size_t place;
    Span span;
  };

  // Removes all bookings. Existing lists keep their memory.
  void reset(std::size_t nodes) {
    lists_.resize(nodes);
    for (std::vector<Span>& spans : lists_) spans.clear();
    pending_.clear();
  }

  // Reserves memory for `more` calls of add(). When the buffer would grow, bookings that end by
  // `now` are dropped first.
  void reserve(std::size_t more, double now) {
    if (pending_.capacity() - pending_.size() >= more) return;
    std::erase_if(pending_, [now](const Booking& booking) { return booking.span.end <= now; });
    reserve_extra(more + pending_.size(), pending_);
  }
  void add(std::size_t place, const Span& span) { pending_.push_back({place, span}); }

  // Moves the buffered bookings into the lists of their nodes and drops those that end by `now`. On
  // bad_alloc the rest stays in the buffer; find() and extract() search both.
  void flush(double now) noexcept {
    std::sort(pending_.begin(), pending_.end(), is_before);
    try {
      while (!pending_.empty()) {
        const std::size_t place = pending_.back().place;
        const auto first = std::partition_point(
            pending_.begin(), pending_.end(), [=](const Booking& b) { return b.place < place; });
        std::vector<Span>& list = lists_[place];
        std::erase_if(list, [now](const Span& span) { return span.end <= now; });
        reserve_extra(static_cast<std::size_t>(pending_.end() - first), list);
        const auto middle = static_cast<std::ptrdiff_t>(list.size());
        for (auto booking = first; booking != pending_.end(); ++booking)
          if (booking->span.end > now) list.push_back(booking->span);
        std::inplace_merge(list.begin(), list.begin() + middle, list.end(), starts_before);
        pending_.erase(first, pending_.end());
      }
    } catch (const std::bad_alloc&) {
    }
  }

  // Returns the booking of the node that starts exactly at `start`, or nullptr.
  const Span* find(std::size_t place, double start) const {
    const std::vector<Span>& list = lists_[place];
    const std::size_t at = last_starting_by(list, start);
    if (at < list.size() && list[at].start == start) return &list[at];
    const auto pending =
        std::find_if(pending_.begin(), pending_.end(), [=](const Booking& booking) {
          return booking.place == place && booking.span.start == start;
        });
    return pending == pending_.end() ? nullptr : &pending->span;
  }

  // Removes and returns the booking of the node that starts at `start`, which must exist. O(log b +
  // later bookings of the node), or O(pending bookings) if it is among them.
  Span extract(std::size_t place, double start) {
    const Span* const found = find(place, start);
    const Span span = *found;
    std::vector<Span>& list = lists_[place];
    const std::size_t at = last_starting_by(list, start);
    if (at < list.size() && found == &list[at])
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    else
      std::erase_if(pending_, [&](const Booking& booking) {
        return booking.place == place && booking.span.start == start;
      });
    return span;
  }

  // Removes all bookings of the node.
  void remove_node(std::size_t place) {
    std::erase_if(pending_, [place](const Booking& booking) { return booking.place == place; });
    lists_[place].clear();
  }

  // Returns a copy of the buffer, sorted by node index, then start.
  std::vector<Booking> sorted_pending() const {
    std::vector<Booking> sorted = pending_;
    std::sort(sorted.begin(), sorted.end(), is_before);
    return sorted;
  }
  // Appends the bookings of the node that end after `now`, by start; `pending`: sorted_pending().
  void append_unexpired(std::size_t place, const std::vector<Booking>& pending, double now,
                        std::vector<Span>& out) const {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    for (const Span& span : lists_[place])
      if (span.end > now) out.push_back(span);
    const auto before = [](const Booking& booking, std::size_t k) { return booking.place < k; };
    auto next = std::lower_bound(pending.begin(), pending.end(), place, before);
    for (; next != pending.end() && next->place == place; ++next)
      if (next->span.end > now) out.push_back(next->span);
    std::sort(out.begin() + first, out.end(), starts_before);
  }

  // Calls visit(place, span) for each booking, in no particular order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t place = 0; place < lists_.size(); ++place)
      for (const Span& span : lists_[place]) visit(place, span);
    for (const Booking& booking : pending_) visit(booking.place, booking.span);
  }

 private:
  static bool starts_before(const Span& a, const Span& b) { return a.start < b.start; }
  static bool is_before(const Booking& a, const Booking& b) {
    return a.place != b.place ? a.place < b.place : starts_before(a.span, b.span);
  }

  SpanLists lists_;               // sorted by start
  std::vector<Booking> pending_;  // buffer: not yet in lists_
};

}  // namespace slotkern
