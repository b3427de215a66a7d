// The bookings of shared hosts, by host: who gives a part back must have booked it.
//
// A booking is a host, its time and a demand, stored by its code in a dictionary. Equal bookings of
// one host are different bookings. Cost: O(log b + b moved) for a host with b bookings; past ones
// are dropped when the list of their host would grow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/shares/rows.hpp"

namespace slotkern {

// Codes for different vectors of amounts, in the order of their first use.
class DemandDictionary {
 public:
  void reset(std::size_t resources) {
    resources_ = resources;
    amounts_.clear();
    table_.assign(64, kNone);
  }
  std::size_t size() const { return amounts_.size() / resources_; }
  const Amount* amounts(std::uint32_t code) const { return amounts_.data() + code * resources_; }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Returns the code, or kNone.
  std::uint32_t find(const Amount* amounts) const { return table_[place_of(amounts)]; }
  std::uint32_t find_or_add(const Amount* amounts) {
    if (const std::uint32_t code = find(amounts); code != kNone) return code;
    if (2 * size() + 2 > table_.size()) {
      std::vector<std::uint32_t> larger(2 * table_.size(), kNone);
      table_.swap(larger);
      for (std::uint32_t code = 0; code < size(); ++code)
        table_[place_of(this->amounts(code))] = code;
    }
    const auto code = static_cast<std::uint32_t>(size());
    amounts_.insert(amounts_.end(), amounts, amounts + resources_);
    table_[place_of(amounts)] = code;
    return code;
  }

 private:
  std::size_t place_of(const Amount* amounts) const {
    std::uint64_t hash = 0;
    for (std::size_t d = 0; d < resources_; ++d) {
      hash = (hash ^ static_cast<std::uint64_t>(amounts[d])) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    std::size_t at = hash & (table_.size() - 1);
    while (table_[at] != kNone &&
           !std::equal(amounts, amounts + resources_, this->amounts(table_[at])))
      at = (at + 1) & (table_.size() - 1);
    return at;
  }

  std::size_t resources_ = 1;
  std::vector<Amount> amounts_;       // [code * resources_ + d]
  std::vector<std::uint32_t> table_;  // open addressing
};

class ShareBookings {
 public:
  struct ShareBooking {
    double start, end;
    std::uint32_t demand;  // code
    bool operator<(const ShareBooking& other) const { return start < other.start; }
  };

  void reset(std::size_t hosts) { lists_.assign(hosts, {}); }

  // Reserves memory for more bookings of the host.
  void reserve(std::size_t host, double now, std::size_t more) {
    std::vector<ShareBooking>& list = lists_[host];
    if (list.size() + more <= list.capacity()) return;
    std::erase_if(list, [now](const ShareBooking& booking) { return booking.end <= now; });
    reserve_extra(more, list);
  }
  // Adds `times` equal bookings.
  void add(std::size_t host, const ShareBooking& booking, std::size_t times) {
    std::vector<ShareBooking>& list = lists_[host];
    list.insert(std::upper_bound(list.begin(), list.end(), booking), times, booking);
  }
  // Returns the booking number `skip` among those of this start and demand with a finish that was
  // snapped to their end, or null.
  const ShareBooking* find(std::size_t host, double start, double finish, std::uint32_t demand,
                      std::size_t skip) const {
    const std::vector<ShareBooking>& list = lists_[host];
    for (auto at = std::lower_bound(list.begin(), list.end(), ShareBooking{start, 0, 0});
         at != list.end() && at->start == start; ++at)
      if (at->demand == demand && finish <= at->end && at->end == snap_finish(finish, at->end) &&
          skip-- == 0)
        return &*at;
    return nullptr;
  }
  // Removes a booking that find() has returned.
  ShareBooking extract(std::size_t host, const ShareBooking* found) {
    std::vector<ShareBooking>& list = lists_[host];
    const ShareBooking booking = *found;
    list.erase(list.begin() + (found - list.data()));
    return booking;
  }

  const std::vector<ShareBooking>& of(std::size_t host) const { return lists_[host]; }
  std::size_t bytes() const {
    std::size_t bytes = lists_.capacity() * sizeof lists_[0];
    for (const auto& list : lists_) bytes += list.capacity() * sizeof(ShareBooking);
    return bytes;
  }

 private:
  std::vector<std::vector<ShareBooking>> lists_;  // [host], by start
};

}  // namespace slotkern
