// A table whose entries are named by tickets, each once and for ever: a ticket of an entry that
// is no longer there finds nothing, also when its place has been taken by another.
//
// O(1) each, no allocation once the table has had its size; entries keep what they have
// allocated. Exact for 2^32 uses of one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slotkern::community {

struct Ticket {
  std::uint32_t slot = 0xffffffffu;
  std::uint32_t serial = 0;
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

template <class Entry>
class Tickets {
 public:
  // Serials of a table that comes after another one must not be those of the earlier.
  explicit Tickets(std::uint32_t first_serial) : first_serial_(first_serial) {}

  // What the entry of an earlier ticket has left is still in it.
  Ticket open() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.push_back({Entry(), first_serial_, false});
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    places_[slot].used = true;
    return {slot, ++places_[slot].serial};
  }

  // Of an entry that is there.
  Ticket ticket(std::uint32_t slot) const { return {slot, places_[slot].serial}; }

  Entry& operator[](Ticket ticket) { return places_[ticket.slot].entry; }

  Entry* find(Ticket ticket) {
    if (ticket.slot >= places_.size()) return nullptr;
    Place& place = places_[ticket.slot];
    return place.used && place.serial == ticket.serial ? &place.entry : nullptr;
  }

  void close(Ticket ticket) {
    places_[ticket.slot].used = false;
    free_.push_back(ticket.slot);
  }

  std::size_t used() const { return places_.size() - free_.size(); }

 private:
  struct Place {
    Entry entry;
    std::uint32_t serial;
    bool used;
  };

  std::uint32_t first_serial_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace slotkern::community
