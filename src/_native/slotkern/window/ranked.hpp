// Alternatives of few parts on few nodes whose prices stay: the ragged sweep of
// window/alternatives.hpp with hardly a branch that is guessed wrong.
//
// Where all slots of a node have its one price, the order of costs is one of nodes, and what a node
// has free is one bit in that order: the n cheapest are the first n bits of nodes that live. The
// first n - 1 stand in an array by themselves; what comes is put in its place there by arithmetic,
// and a window is found where it costs no more, beside them, than the budget leaves. Members expire
// without a word: an expired one is no dearer than its replacement, so that no window is missed,
// and only one that would win is looked at again.
// A step finds at most one window: the n cheapest of what was there before have been too dear, and
// what is left of them is no cheaper.
//
// O(n) for each slot and remnant; for each window O(n + N / 64) of N nodes, and a sort of n. A
// search begins with O(N): it is for those who want many windows. Memory: 60 bytes a node, 32 a
// remnant and 200 kB of scratch a thread.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/window/arrivals.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

// The most parts that one search gives: 350 MB of them and of scratch.
inline constexpr std::size_t kMostParts = 4'000'000;

namespace detail {

// The nodes by rate, then id: of PreparedSlots of one identity, for many searches.
struct NodeRanks {
  Identity of;
  bool steady = false;              // no slot with another price has been met
  std::vector<std::uint32_t> rank;  // by place
  std::vector<double> performance, price;  // by rank, as the next
  std::vector<std::int32_t> id;

  void rank_nodes(const PreparedSlots& prepared) {
    if (of == prepared.identity && of != Identity{}) return;
    const std::vector<Node>& nodes = prepared.nodes;
    std::vector<std::uint32_t> places(nodes.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint32_t>(i);
    std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      const double x = nodes[a].min_price / nodes[a].performance,
                   y = nodes[b].min_price / nodes[b].performance;
      return x != y ? x < y : nodes[a].id < nodes[b].id;
    });
    of = {};
    rank.resize(nodes.size());
    performance.clear(), price.clear(), id.clear();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Node& node = nodes[places[i]];
      rank[places[i]] = static_cast<std::uint32_t>(i);
      performance.push_back(node.performance), price.push_back(node.min_price);
      id.push_back(node.id);
    }
    steady = true;
    of = prepared.identity;
  }
};

// Scratch of one thread; it only grows.
struct RankedScratch {
  NodeRanks ranks;
  // By rank: how long a part runs and what it costs; the end of the node's slot and its row. Behind
  // the nodes 64 that live for ever and cost too much.
  std::vector<double> length, key, end;
  std::vector<std::uint32_t> row;
  std::vector<std::uint64_t> free;  // a bit a rank
  std::vector<Arrival> slots;
  ArrivalRing remnants;
  std::vector<Found> found;  // not in the result yet, as the next
  std::vector<Part> parts;
};

template <class Shape, std::size_t n>
class RankedSweep {
 public:
  RankedSweep(const PreparedSlots& prepared, const Query& query, const Shape& shape,
              std::size_t limit, WindowTable& out, RankedScratch& work)
      : prepared_(prepared),
        query_(query),
        shape_(shape),
        limit_(limit),
        out_(out),
        work_(work),
        remnants_(work.remnants) {}

  // False: prices or numbers are not of the kind that this is for, and nothing has been found.
  bool run(double least_others, Status& status) {
    if (!set_up()) return false;
    Thresholds thresholds = first_thresholds(prepared_, query_, shape_);
    thresholds.key = key_ceiling(shape_.screened(query_.budget), least_others);
    const double shortest = shape_.shortest(prepared_);
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max() &&
                         query_.latest == kInfinity;
    const std::uint32_t* const ranks = work_.ranks.rank.data();
    std::size_t count = 0;
    bool steady = true, going = true;
    Shape::screen(prepared_).each(
        prepared_.order, thresholds, prepared_.last_position(), [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!query_.admits(s, row)) return true;
          if (endless && std::isinf(s.end)) {
            going = steady && sweep(count);
            if (going) status_ = Status::endless;
            return going = false;
          }
          const double t = query_.start_in(s), end = query_.limit(s);
          if (t + shortest > query_.deadline) return false;
          const std::uint32_t rank = ranks[static_cast<std::size_t>(s.place)];
          steady &= key_[rank] == shape_.key(s);
          slots_[count] = {s.start, end, s.node, rank, static_cast<std::uint32_t>(row), 0};
          count += (t + length_[rank] <= end) & (key_[rank] < kInfinity);
          if (count < kChunk) return true;
          going = steady && sweep(std::exchange(count, 0));
          return going;
        });
    if (!steady) {
      work_.ranks.steady = false;
      return false;
    }
    if (going && sweep(count)) finish();
    hand_over();
    status = status_;
    return true;
  }

 private:
  using Ranks = std::array<std::int64_t, n>;

  bool set_up() {
    NodeRanks& ranks = work_.ranks;
    ranks.rank_nodes(prepared_);
    if (!ranks.steady) return false;
    const std::size_t size = prepared_.nodes.size(), words = (size + 63) / 64;
    const std::size_t room = (words + 1) * 64;
    if (work_.row.size() < room) {
      work_.length.resize(room), work_.key.resize(room), work_.end.resize(room);
      work_.row.resize(room);
    }
    length_ = work_.length.data(), key_ = work_.key.data(), end_ = work_.end.data();
    row_ = work_.row.data(), id_ = ranks.id.data();
    const double *const performance = ranks.performance.data(), *const price = ranks.price.data();
    for (std::size_t i = 0; i < size; ++i) {
      length_[i] = shape_.length_on(performance[i]);
      key_[i] = shape_.key({0, 0, performance[i], price[i], price[i] / performance[i], 0, 0});
    }
    // Sums must not overflow, and rates an ulp apart may give equal costs: nodes tell then.
    bool fits = shape_.length_on(prepared_.nodes.back().performance) < kMuch;
    for (std::size_t i = 1; i < size; ++i)
      fits &= (key_[i - 1] < key_[i]) | ((key_[i - 1] <= key_[i]) & (id_[i - 1] < id_[i]));
    for (std::size_t i = 0; i < size; ++i) fits &= (key_[i] < kMuch) | (key_[i] == kInfinity);
    if (!fits) return false;
    for (std::size_t i = words * 64; i < room; ++i)
      length_[i] = 0, key_[i] = end_[i] = kInfinity;
    work_.free.assign(words + 1, 0);
    work_.free[words] = ~std::uint64_t{0};
    free_ = work_.free.data();
    front_.fill(static_cast<std::int64_t>(words * 64));
    sum_ = n > 1 ? kInfinity : 0;
    most_ = std::min(query_.budget * (1 + kMargin) + kUnderflow,
                     std::numeric_limits<double>::max());
    if (work_.slots.size() < kChunk) work_.slots.resize(kChunk);
    if (work_.parts.size() < kSome) work_.found.resize(kSome), work_.parts.resize(kSome);
    slots_ = work_.slots.data();
    const double first = std::max(prepared_.first_start(), query_.earliest);
    remnants_.reset(first, shape_.length_on(prepared_.nodes.back().performance),
                    std::max({prepared_.latest_end, prepared_.latest_start, std::fabs(first)}),
                    size);
    return true;
  }

  // So many more slots, and the remnants that come before them.
  bool sweep(std::size_t count) {
    poll();
    const Arrival* slot = slots_;
    const Arrival* const end = slot + count;
    while (slot != end) {
      const Arrival& first = remnants_.next();
      const bool remnant = first < *slot;
      if (remnant & remnants_.day_is_over()) [[unlikely]] {
        remnants_.turn(slot->start);
        continue;
      }
      // Which of the two it is would be guessed wrong half of the time.
      const auto a = reinterpret_cast<std::uintptr_t>(slot),
                 b = reinterpret_cast<std::uintptr_t>(&first);
      const auto next = a ^ ((a ^ b) & (std::uintptr_t{0} - remnant));
      remnants_.drop(remnant), slot += !remnant;
      if (!come(*reinterpret_cast<const Arrival*>(next))) return false;
    }
    return true;
  }

  // The remnants behind all slots.
  void finish() {
    while (!remnants_.empty())
      if (remnants_.day_is_over()) {
        remnants_.turn(kInfinity);
      } else {
        const Arrival next = remnants_.next();
        remnants_.drop(true);
        if (!come(next)) return;
      }
  }

  // Returns the less and leaves the other, without a branch.
  static std::int64_t lower(std::int64_t a, std::int64_t& b) {
    const std::int64_t step = (b - a) & ((b - a) >> 63);
    b -= step;
    return a + step;
  }

  bool lives(std::size_t rank, double t) const { return t + length_[rank] <= end_[rank]; }

  SLOTKERN_INLINE bool come(const Arrival& arrival) {
    const std::uint32_t rank = arrival.rank;
    end_[rank] = arrival.end, row_[rank] = arrival.row;
    const std::uint64_t bit = std::uint64_t{1} << rank % 64, before = free_[rank / 64];
    free_[rank / 64] = before | bit;
    // Whether a slot of the node is among the cheapest that has expired: it must not count twice.
    const bool twice = n > 1 && ((before & bit) != 0) & (rank <= front_[n - 1 - (n > 1)]);
    if ((sum_ + key_[rank] <= most_) | twice) [[unlikely]]
      return look(std::max(arrival.start, query_.earliest), rank, twice);
    std::int64_t other = rank;
    double sum = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const std::int64_t low = lower(front_[i], other);
      front_[i] = low;
      sum += key_[low];
    }
    sum_ = sum;
    return true;
  }

  // Whether the n cheapest fit: those of the array and the one that has come, or, where one of them
  // has expired, the first that live.
  SLOTKERN_APART bool look(double t, std::int64_t rank, bool twice) {
    poll();
    Ranks chosen;
    bool all = !twice;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      all &= lives(static_cast<std::size_t>(front_[i]), t);
      chosen[i] = lower(front_[i], rank);
    }
    chosen[n - 1] = rank;
    if (!all) [[unlikely]]
      first_free<n>(t, chosen);
    Found found;
    for (const std::int64_t each : chosen) found.cost += key_[each];
    if (found.cost <= query_.budget && !take(t, found, chosen)) return false;
    first_free<n - 1>(t, front_);
    sum_ = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) sum_ += key_[front_[i]];
    return true;
  }

  // The first ranks that live.
  template <std::size_t count>
  void first_free(double t, Ranks& ranks) {
    std::size_t word = 0;
    std::uint64_t rest = free_[0];
    for (std::size_t i = 0; i < count;) {
      while (!rest) rest = free_[++word];
      const std::size_t rank = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      ranks[i] = static_cast<std::int64_t>(rank);
      if (lives(rank, t)) [[likely]]
        ++i;
      else
        free_[word] ^= rest & (0 - rest);
      rest &= rest - 1;
    }
  }

  // Moves the chosen into the result and queues their right remnants.
  SLOTKERN_INLINE bool take(double t, Found& found, const Ranks& chosen) {
    if (parts_ + n > room_) {
      hand_over();
      if (n > room_) {
        status_ = Status::too_many;
        work_ = {};  // nobody needs so much again
        return false;
      }
    }
    if (taken_ == kLong) expect_long();
    found.start = found.value = t;
    std::array<std::int64_t, n> ordered;  // by node, then rank
    for (std::size_t i = 0; i < n; ++i) {
      const double length = length_[chosen[i]];
      found.runtime = std::max(found.runtime, length);
      found.processor_time += length;
      ordered[i] = std::int64_t{id_[chosen[i]]} << 32 | chosen[i];
    }
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t k = 0; k < i; ++k) ordered[k] = lower(ordered[k], ordered[i]);
    Part* part = work_.parts.data() + parts_;
    remnants_.expect(n);
    for (const std::int64_t each : ordered) {
      const auto rank = static_cast<std::uint32_t>(each);
      const double length = length_[rank], end = end_[rank];
      const double whole = end < query_.deadline ? end : prepared_.slots[row_[rank]].end;
      const double finish = cut_finish(t + length, whole);
      if (!(finish > t)) [[unlikely]] {
        status_ = Status::volume_too_small;
        return false;
      }
      const std::uint32_t row = row_[rank];
      *part++ = {prepared_.origin(row), id_[rank], length, key_[rank], row};
      free_[rank / 64] ^= std::uint64_t{1} << rank % 64;
      remnants_.add(finish, end, id_[rank], rank, row,
                    (finish < whole) & (finish + length <= end) & (finish <= query_.latest));
    }
    work_.found[windows_++] = found;
    parts_ += n;
    return ++taken_ < limit_;
  }

  // What has been found, into the result.
  void hand_over() {
    if (windows_ == 0) return;
    const auto windows = work_.found.begin();
    const auto parts = work_.parts.begin();
    room_for(windows_, out_.found, out_.firsts);
    room_for(parts_, out_.parts);
    out_.found.insert(out_.found.end(), windows, windows + static_cast<std::ptrdiff_t>(windows_));
    out_.parts.insert(out_.parts.end(), parts, parts + static_cast<std::ptrdiff_t>(parts_));
    for (; windows_ > 0; --windows_) out_.firsts.push_back(out_.firsts.back() + n);
    parts_ = 0;
    room_ = std::min(kSome, kMostParts - out_.parts.size());
  }

  static constexpr std::size_t kChunk = 256;  // slots
  static constexpr std::size_t kSome = 4096;  // parts
  static constexpr std::size_t kLong = 64;    // windows that take a while
  static constexpr double kMuch = 1e290;

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  const std::size_t limit_;
  WindowTable& out_;
  RankedScratch& work_;
  ArrivalRing& remnants_;
  Status status_ = Status::ok;
  double *length_ = nullptr, *key_ = nullptr, *end_ = nullptr;
  std::uint32_t* row_ = nullptr;
  const std::int32_t* id_ = nullptr;
  std::uint64_t* free_ = nullptr;
  Arrival* slots_ = nullptr;
  Ranks front_;      // the n - 1 cheapest, in order
  double sum_ = 0;   // of them
  double most_ = 0;  // of n, with a margin
  std::size_t windows_ = 0, parts_ = 0, room_ = kSome, taken_ = 0;
};

// Where this sweep is the quicker one: the array is O(n) for each slot, the bits are O(N / 64) for
// each window, and before the first of them all nodes are looked at.
inline bool ranks_pay(std::size_t n, std::size_t nodes, std::size_t limit) {
  return n <= 12 && nodes <= 1024 && limit >= 64;
}

// False: it is not for this search. Otherwise the result is what it has found.
template <class Shape>
bool find_ranked(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                 std::size_t limit, WindowTable& out, Status& status) {
  const auto n = static_cast<std::size_t>(query.n);
  if (!ranks_pay(n, prepared.nodes.size(), limit)) return false;
  static thread_local RankedScratch work;
  const auto run = [&]<std::size_t parts>() {
    return RankedSweep<Shape, parts>(prepared, query, shape, limit, out, work)
        .run(prepared.rates_of(parts - 1), status);
  };
  bool found = false;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((n == k + 1 && (found = run.template operator()<k + 1>())) || ...);
  }(std::make_index_sequence<12>{});
  if (!found) out = {};
  return found;
}

}  // namespace detail

}  // namespace slotkern
