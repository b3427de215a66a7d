// Where the blocks of 64 rows of a pool that changes stand in the order of time.
//
// Blocks have seats, 64 a page, and pages stand in a list: a block that comes or goes moves those
// behind it in its page, however many there are. Positions count in the order of time as if all
// pages were full. What else is told of blocks stands by seat too (slots/screen.hpp), and moves
// with them: `Moves` has resize(seats), move(from, to, count) and clear(seat).
//
// O(log m + 64) to find, add or take a block; a page splits after 5 were added at the soonest,
// O(m / 4096).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

class Blocks {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  // No block has a seat: all rows stand in the order of time.
  bool empty() const { return pages_.empty(); }
  void clear() { *this = {}; }
  void reserve(std::size_t blocks) {
    const std::size_t pages = pages_for(blocks);
    pages_.reserve(pages), page_firsts_.reserve(pages), ranks_.reserve(pages);
    counts_.reserve(pages), at_.reserve(64 * pages), firsts_.reserve(64 * pages);
    seats_.reserve(blocks);
  }

  // Blocks 0.. to `count`, at least one, in this order. They have no firsts yet.
  void lay_out(std::size_t count) {
    const std::size_t pages = pages_for(count);
    pages_.resize(pages), ranks_.resize(pages), counts_.resize(pages), spare_.clear();
    page_firsts_.assign(pages, -kInfinity);
    at_.assign(64 * pages, kEmpty), firsts_.assign(64 * pages, -kInfinity);
    seats_.resize(count);
    for (std::size_t page = 0, block = 0; page < pages; ++page) {
      pages_[page] = ranks_[page] = static_cast<std::uint32_t>(page);
      const std::size_t first = block, end = (page + 1) * count / pages;
      for (; block < end; ++block) {
        seats_[block] = static_cast<std::uint32_t>(64 * page + block - first);
        at_[seats_[block]] = static_cast<std::uint32_t>(block);
      }
      counts_[page] = static_cast<std::uint8_t>(end - first);
    }
  }

  std::size_t seats() const { return at_.size(); }
  std::size_t seat_at(std::size_t position) const {
    return std::size_t{64} * pages_[position / 64] + position % 64;
  }
  std::size_t position_of(std::size_t seat) const {
    return std::size_t{64} * ranks_[seat / 64] + seat % 64;
  }
  std::size_t block(std::size_t seat) const { return at_[seat]; }
  std::size_t seat_of(std::size_t block) const { return seats_[block]; }
  std::size_t first_seat() const { return seat_at(0); }
  std::size_t last_seat() const {
    return std::size_t{64} * pages_.back() + counts_[pages_.back()] - 1;
  }
  // kNone: there is none.
  std::size_t next(std::size_t seat) const {
    if (seat % 64 + 1 < counts_[seat / 64]) return seat + 1;
    const std::size_t rank = ranks_[seat / 64] + std::size_t{1};
    return rank < pages_.size() ? std::size_t{64} * pages_[rank] : kNone;
  }
  std::size_t previous(std::size_t seat) const {
    if (seat % 64 != 0) return seat - 1;
    const std::size_t rank = ranks_[seat / 64];
    if (rank == 0) return kNone;
    const std::size_t page = pages_[rank - 1];
    return 64 * page + counts_[page] - 1;
  }
  // Calls visit(seat) for all blocks in the order of time.
  template <class Visit>
  void each(Visit visit) const {
    for (const std::size_t page : pages_)
      for (std::size_t j = 0; j < counts_[page]; ++j) visit(64 * page + j);
  }

  // When the first slot of a block starts.
  double first(std::size_t seat) const { return firsts_[seat]; }
  void set_first(std::size_t seat, double start) {
    firsts_[seat] = start;
    if (seat % 64 == 0) page_firsts_[ranks_[seat / 64]] = start;
  }
  // Seat of the last block that begins at t or before, else of the first.
  std::size_t last_by(double t) const {
    const std::size_t page = pages_[last_of(page_firsts_.data(), pages_.size(), t)];
    return 64 * page + last_of(firsts_.data() + 64 * page, counts_[page], t);
  }
  // The same without those that begin at t, but later than what is looked for: later(seat).
  template <class Later>
  std::size_t last_by(double t, Later later) const {
    const auto last = [&](const double* firsts, std::size_t count, auto seat) {
      std::size_t at = 0;
      for (; count > 1; count -= count / 2) {
        const std::size_t k = at + count / 2;
        if (firsts[k] < t || (firsts[k] == t && !later(seat(k)))) at = k;
      }
      return at;
    };
    const std::size_t page = pages_[last(page_firsts_.data(), pages_.size(), [this](std::size_t k) {
      return std::size_t{64} * pages_[k];
    })];
    return 64 * page + last(firsts_.data() + 64 * page, counts_[page],
                            [page](std::size_t k) { return 64 * page + k; });
  }

  // A block, perhaps a new one, gets the seat behind this one, which may change. Its new seat.
  template <class Moves>
  std::size_t add(std::size_t seat, std::size_t block, const Moves& moves) {
    if (counts_[seat / 64] == 64) seat = halve(seat, moves);
    const std::size_t page = seat / 64, fresh = seat + 1;
    if (seats_.size() <= block) seats_.resize(block + 1);
    move(fresh, fresh + 1, 64 * page + counts_[page]++ - fresh, moves);
    at_[fresh] = static_cast<std::uint32_t>(block);
    seats_[block] = static_cast<std::uint32_t>(fresh);
    return fresh;
  }

  // One that is not the only one leaves. Seats before it stay.
  template <class Moves>
  void take(std::size_t seat, const Moves& moves) {
    const std::size_t page = seat / 64, rank = ranks_[page];
    close(seat, 1, moves);
    if (counts_[page] == 0) return drop(rank);
    if (rank + 1 < pages_.size() && counts_[page] + counts_[pages_[rank + 1]] <= kJoined) {
      const std::size_t next = pages_[rank + 1], count = counts_[next];
      carry(64 * next, 64 * page + counts_[page], count, moves);
      counts_[page] = static_cast<std::uint8_t>(counts_[page] + count);
      drop(rank + 1);
    }
  }

 private:
  static constexpr std::size_t kFill = 60, kJoined = 48;  // of a page laid out, or of two joined
  static constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();

  // The last of so many that is at most t, else the first. Halved without a branch to guess.
  static std::size_t last_of(const double* firsts, std::size_t count, double t) {
    std::size_t at = 0;
    for (; count > 1; count -= count / 2) at += (firsts[at + count / 2] <= t) * (count / 2);
    return at;
  }

  static std::size_t pages_for(std::size_t blocks) { return (blocks + kFill - 1) / kFill; }

  template <class Moves>
  void move(std::size_t from, std::size_t to, std::size_t count, const Moves& moves) {
    move_items(at_, from, to, count), move_items(firsts_, from, to, count);
    for (std::size_t seat = to; seat < to + count; ++seat)
      seats_[at_[seat]] = static_cast<std::uint32_t>(seat);
    moves.move(from, to, count);
  }
  template <class T>
  static void move_items(std::vector<T>& items, std::size_t from, std::size_t to,
                         std::size_t count) {
    std::memmove(items.data() + to, items.data() + from, count * sizeof(T));
  }

  // So many blocks from this seat on are no more, those behind them in the page close up.
  template <class Moves>
  void close(std::size_t seat, std::size_t count, const Moves& moves) {
    const std::size_t page = seat / 64, end = 64 * page + counts_[page];
    move(seat + count, seat, end - seat - count, moves);
    for (std::size_t gap = end - count; gap < end; ++gap) at_[gap] = kEmpty, moves.clear(gap);
    counts_[page] = static_cast<std::uint8_t>(counts_[page] - count);
    if (counts_[page] > 0) set_first(64 * page, firsts_[64 * page]);
  }

  // Blocks of one page go to another.
  template <class Moves>
  void carry(std::size_t from, std::size_t to, std::size_t count, const Moves& moves) {
    move(from, to, count, moves);
    close(from, count, moves);
  }

  // The second half of a full page becomes a page behind it. Where the block of the seat is now.
  template <class Moves>
  std::size_t halve(std::size_t seat, const Moves& moves) {
    if (spare_.empty()) {
      moves.resize(at_.size() + 64);
      at_.resize(at_.size() + 64, kEmpty), firsts_.resize(at_.size(), -kInfinity);
      counts_.push_back(0), ranks_.push_back(0);
      spare_.push_back(static_cast<std::uint32_t>(counts_.size() - 1));
    }
    const std::size_t page = seat / 64, rank = ranks_[page] + std::size_t{1}, fresh = spare_.back();
    const auto behind = static_cast<std::ptrdiff_t>(rank);
    pages_.insert(pages_.begin() + behind, static_cast<std::uint32_t>(fresh));
    page_firsts_.insert(page_firsts_.begin() + behind, -kInfinity);
    spare_.pop_back();
    number_from(rank);
    constexpr std::size_t half = 32;
    counts_[fresh] = half;
    carry(64 * page + half, 64 * fresh, half, moves);
    set_first(64 * fresh, firsts_[64 * fresh]);
    return seat % 64 < half ? seat : 64 * fresh + seat % 64 - half;
  }

  // The page at this place in the list, which is empty, leaves it.
  void drop(std::size_t rank) {
    spare_.push_back(pages_[rank]);
    pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(rank));
    page_firsts_.erase(page_firsts_.begin() + static_cast<std::ptrdiff_t>(rank));
    number_from(rank);
  }
  void number_from(std::size_t rank) {
    for (; rank < pages_.size(); ++rank) ranks_[pages_[rank]] = static_cast<std::uint32_t>(rank);
  }

  std::vector<std::uint32_t> pages_;    // [rank in the order of time]: which page
  std::vector<double> page_firsts_;     // [rank]: of its first block
  std::vector<std::uint32_t> ranks_;    // [page]
  std::vector<std::uint8_t> counts_;    // [page]: of its blocks
  std::vector<std::uint32_t> at_;       // [seat]: which block
  std::vector<double> firsts_;          // [seat]
  std::vector<std::uint32_t> seats_;    // [block]
  std::vector<std::uint32_t> spare_;    // pages that are empty
};

}  // namespace slotkern
