// What is booked in a pool that changes, by node, so that nothing can be given back twice.
//
// Most of what is booked nobody asks for again: it is written down as it comes, O(1), and sorted
// into lists of spans by node, O(spans of its node) each, when something is to be given back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "slotkern/base/room.hpp"

namespace slotkern {

// A stretch of one node's time; `row` of the origin array.
struct Span {
  double start, end;
  std::size_t origin_row;
};
using SpanLists = LargeVector<std::vector<Span>>;  // by place of the node

// The last span that starts at t or before; size() if there is none. Halved without a branch:
// in lists as short as these a wrong guess costs more than all steps.
inline std::size_t last_starting_by(const std::vector<Span>& spans, double t) {
  if (spans.empty() || !(spans.front().start <= t)) return spans.size();
  std::size_t at = 0;
  for (std::size_t size = spans.size(); size > 1; size -= size / 2)
    at += (spans[at + size / 2].start <= t) * (size / 2);
  return at;
}

class BookingIndex {
 public:
  // Of the node at this place in PreparedSlots::nodes.
  struct Booking {
    std::size_t place;
    Span span;
  };

  // Of so many nodes nothing is booked. Lists that were there keep their memory.
  void reset(std::size_t nodes) {
    lists_.resize(nodes);
    for (std::vector<Span>& spans : lists_) spans.clear();
    pending_.clear();
  }

  // Room for so many more. When it has doubled, what was past by `now` leaves.
  void reserve(std::size_t more, double now) {
    if (pending_.capacity() - pending_.size() >= more) return;
    std::erase_if(pending_, [now](const Booking& booking) { return booking.span.end <= now; });
    room_for(more + pending_.size(), pending_);
  }
  void add(std::size_t place, const Span& span) { pending_.push_back({place, span}); }

  // Before something is looked up: what is fresh is sorted into the lists, which lose what was
  // past by `now`. Without memory it stays fresh, and is found there.
  void flush(double now) noexcept {
    try {
      for (; !pending_.empty(); pending_.pop_back()) {
        const auto& [place, span] = pending_.back();
        if (span.end <= now) continue;
        std::vector<Span>& list = lists_[place];
        std::erase_if(list, [now](const Span& other) { return other.end <= now; });
        const std::size_t before = last_starting_by(list, span.start);
        const std::size_t at = before == list.size() ? 0 : before + 1;
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), span);
      }
    } catch (const std::bad_alloc&) {
    }
  }

  // What is booked of the node from `start` on; null: nothing.
  const Span* find(std::size_t place, double start) const {
    const std::vector<Span>& list = lists_[place];
    const std::size_t at = last_starting_by(list, start);
    if (at < list.size() && list[at].start == start) return &list[at];
    const auto pending = std::find_if(pending_.begin(), pending_.end(), [=](const Booking& booking) {
      return booking.place == place && booking.span.start == start;
    });
    return pending == pending_.end() ? nullptr : &pending->span;
  }

  // The same leaves.
  Span extract(std::size_t place, double start) {
    const Span span = *find(place, start);
    std::vector<Span>& list = lists_[place];
    const auto same = [start](const Span& other) { return other.start == start; };
    if (std::erase_if(list, same) == 0)
      std::erase_if(pending_, [&](const Booking& booking) {
        return booking.place == place && same(booking.span);
      });
    return span;
  }

  // The node leaves.
  void remove_node(std::size_t place) {
    std::erase_if(pending_, [place](const Booking& booking) { return booking.place == place; });
    lists_[place].clear();
  }

  // What is in no list yet, by place, then start.
  std::vector<Booking> sorted_pending() const {
    std::vector<Booking> sorted = pending_;
    std::sort(sorted.begin(), sorted.end(), [](const Booking& a, const Booking& b) {
      return a.place != b.place ? a.place < b.place : a.span.start < b.span.start;
    });
    return sorted;
  }
  // Adds what is booked of the node and not past by `now`, ascending; `fresh`: sorted_fresh().
  void append_unexpired(std::size_t place, const std::vector<Booking>& pending, double now,
            std::vector<Span>& out) const {
    const auto first = static_cast<std::ptrdiff_t>(out.size());
    for (const Span& span : lists_[place])
      if (span.end > now) out.push_back(span);
    const auto before = [](const Booking& booking, std::size_t k) { return booking.place < k; };
    auto next = std::lower_bound(pending.begin(), pending.end(), place, before);
    for (; next != pending.end() && next->place == place; ++next)
      if (next->span.end > now) out.push_back(next->span);
    std::sort(out.begin() + first, out.end(),
              [](const Span& a, const Span& b) { return a.start < b.start; });
  }

  // Calls visit(place, span) for all of them, in any order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t place = 0; place < lists_.size(); ++place)
      for (const Span& span : lists_[place]) visit(place, span);
    for (const Booking& booking : pending_) visit(booking.place, booking.span);
  }

 private:
  SpanLists lists_;             // by start
  std::vector<Booking> pending_;  // in no list yet
};

}  // namespace slotkern
