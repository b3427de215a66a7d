// Alternatives of few parts on few nodes whose prices stay: the ragged sweep of
// window/alternatives.hpp with hardly a branch that is guessed wrong.
//
// Where all slots of a node have its one price, the order of costs is one of nodes, and what a node
// has free is one bit in that order: the n cheapest are the first n bits of nodes that live. The
// keys of the first n - 1 stand in an array by themselves, in their last bits the ranks; what comes
// is put in its place there by arithmetic, and a window is found where it costs no more, beside
// them, than the budget leaves: the bits are far fewer than the margin. Members expire
// without a word: an expired one is no dearer than its replacement, so that no window is missed,
// and only one that would win is looked at again.
// A step finds at most one window: the n cheapest of what was there before have been too dear, and
// what is left of them is no cheaper.
//
// O(n) for each slot and remnant; for each window O(n + N / 64) of N nodes, and a sort of n. A
// search begins with O(N): it is for those who want many windows. Memory: 110 bytes a node, with
// what is left of its slot, and 310 kB of scratch a thread.
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

// Scratch of one thread; it only grows.
struct RankedScratch {
  NodeRanks ranks;
  std::vector<Offer> offers;  // by rank, then 64 that last for ever and cost too much, and one more
  std::vector<std::uint64_t> free;  // a bit a rank
  std::vector<SlotArrival> slots;
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
    const std::uint32_t* const nodes = work_.ranks.node.data();
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
          const std::uint32_t node = nodes[static_cast<std::size_t>(s.place)];
          const Offer& offer = offers_[Arrival::rank_of(node)];
          steady &= offer.key == shape_.key(s);
          slots_[count] = {{moment_of(s.start), node, static_cast<std::uint32_t>(row)}, end};
          count += (t + offer.length <= end) & (offer.key < kInfinity);
          if (count < kChunk) return true;
          going = steady && sweep(std::exchange(count, 0));
          return going;
        });
    if (!steady) {
      work_.ranks.steady = false;
      return false;
    }
    if (going && sweep(count)) {
      slots_[0].moment = kNever;
      sweep(1);
    }
    hand_over();
    status = status_;
    return true;
  }

 private:
  using Front = std::array<double, n - 1>;

  bool set_up() {
    NodeRanks& ranks = work_.ranks;
    ranks.rank_nodes(prepared_);
    if (!ranks.steady) return false;
    const std::size_t size = prepared_.nodes.size();
    const std::size_t words = (size + 63) / 64;
    none_ = (words + 1) * 64;
    if (work_.offers.size() <= none_) work_.offers.resize(none_ + 1);
    offers_ = work_.offers.data();
    // Sums must not overflow, and rates an ulp apart may give equal costs: nodes tell then.
    bool fits = shape_.length_on(prepared_.nodes.back().performance) < kMuch;
    double before = -kInfinity;
    std::int32_t id = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const NodeRanks::Ranked& each = ranks.ranked[i];
      const double key =
          shape_.key({0, 0, each.performance, each.price, each.rate, 0, 0});
      offers_[i].length = shape_.length_on(each.performance);
      offers_[i].key = key;
      offers_[i].tagged = tagged(key, i);
      offers_[i].id = each.id;
      fits &= (before < key) | ((before <= key) & (id < each.id));
      fits &= (key < kMuch) | (key == kInfinity);
      before = key, id = each.id;
    }
    const double first = std::max(prepared_.first_start(), query_.earliest);
    const double times =
        std::max({prepared_.latest_end, prepared_.latest_start, std::fabs(first)});
    if (!fits || !(times < kMuch)) return false;
    std::fill(offers_ + words * 64, offers_ + none_,
              Offer{0, kInfinity, kInfinity, kInfinity, 0, 0});
    work_.free.assign(words + 1, 0);
    work_.free[words] = ~std::uint64_t{0};
    free_ = work_.free.data();
    front_.fill(kInfinity);
    sum_ = n > 1 ? kInfinity : 0;
    most_ = std::min(query_.budget * (1 + kMargin) + kUnderflow,
                     std::numeric_limits<double>::max());
    if (work_.slots.size() < kChunk) work_.slots.resize(kChunk);
    if (work_.parts.size() < kSome) work_.found.resize(kSome), work_.parts.resize(kSome);
    slots_ = work_.slots.data();
    remnants_.reset(first, shape_.length_on(prepared_.nodes.back().performance),
                    shape_.length_on(ranks.mean), times, size);
    return true;
  }

  // So many more slots, and the remnants that come before them.
  bool sweep(std::size_t count) {
    poll();
    const SlotArrival* slot = slots_;
    const SlotArrival* const end = slot + count;
    const Arrival* next = remnants_.next();
    Front front = front_;
    double sum = sum_;
    while (slot != end) {
      const bool remnant = *next < *slot;
      if (remnant & (next == remnants_.end())) [[unlikely]] {
        remnants_.drop_until(next);
        if (slot->moment == kNever && remnants_.empty()) break;
        remnants_.turn(time_of(slot->moment));
        next = remnants_.next();
        continue;
      }
      // Which of the two it is would be guessed wrong half of the time.
      const std::size_t others = std::size_t{0} - remnant, of_slot = slot->rank(),
                        rank = of_slot ^ ((of_slot ^ next->rank()) & others);
      Offer& begun = offers_[of_slot ^ ((of_slot ^ none_) & others)];
      begun.end = slot->end, begun.row = slot->row;
      const std::int64_t moment = std::min(next->moment, slot->moment);
      next += remnant, slot += !remnant;
      free_[rank / 64] |= std::uint64_t{1} << rank % 64;
      double key = offers_[rank].tagged;
      if (sum + key <= most_) [[unlikely]] {
        remnants_.drop_until(next);
        front_ = front;
        if (!look(std::max(time_of(moment), query_.earliest), key)) return false;
        next = remnants_.next();
        front = front_, sum = sum_;
        continue;
      }
      sum = join(front, key);
    }
    remnants_.drop_until(next);
    front_ = front, sum_ = sum;
    return true;
  }

  // Puts a key in its place and leaves the dearest: the sum of the others.
  static SLOTKERN_INLINE double join(Front& front, double& key) {
    double sum = 0;
    for (double& each : front) {
      const double less = std::min(each, key);
      key = std::max(each, key);
      sum += each = less;
    }
    return sum;
  }

  static double tagged(double key, std::size_t rank) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(key) & ~kRanks) | rank);
  }
  static std::size_t rank_in(double tagged) {
    return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(tagged) & kRanks);
  }

  bool lives(std::size_t rank, double t) const {
    return t + offers_[rank].length <= offers_[rank].end;
  }

  // Whether the n cheapest that live fit.
  SLOTKERN_NOINLINE bool look(double t, double key) {
    poll();
    std::array<std::size_t, n> chosen;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      chosen[i] = rank_in(std::min(front_[i], key));
      key = std::max(front_[i], key);
    }
    chosen[n - 1] = rank_in(key);
    bool all = lives(chosen[0], t);
    for (std::size_t i = 1; i < n; ++i) {
      all &= lives(chosen[i], t);
      all &= chosen[i] != chosen[i - 1];
    }
    if (!all) [[unlikely]]
      first_free(t, 0, ~std::uint64_t{0}, chosen);
    Found found;
    found.cost = exact_sum(n, [&](std::size_t i) { return offers_[chosen[i]].key; });
    if (found.cost <= query_.budget) {
      if (!take(t, found, chosen)) return false;
      const std::size_t last = chosen[n - 1];
      std::array<std::size_t, n - 1> rest;
      first_free(t, last / 64, ~std::uint64_t{0} << last % 64, rest);
      begin_with(rest.data());
    } else {
      begin_with(chosen.data());
    }
    return true;
  }

  void begin_with(const std::size_t* ranks) {
    sum_ = 0;
    for (double& each : front_) sum_ += each = offers_[*ranks++].tagged;
  }

  // The first ranks that live.
  template <std::size_t count>
  void first_free(double t, std::size_t word, std::uint64_t rest,
                  std::array<std::size_t, count>& ranks) {
    rest &= free_[word];
    for (std::size_t i = 0; i < count;) {
      while (!rest) rest = free_[++word];
      const std::size_t rank = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      ranks[i] = rank;
      if (lives(rank, t)) [[likely]]
        ++i;
      else
        free_[word] ^= rest & (0 - rest);
      rest &= rest - 1;
    }
  }

  // Returns the less and leaves the other, without a branch.
  static std::int64_t lower(std::int64_t a, std::int64_t& b) {
    const std::int64_t step = (b - a) & ((b - a) >> 63);
    b -= step;
    return a + step;
  }

  // Moves the chosen into the result and queues their right remnants.
  SLOTKERN_INLINE bool take(double t, Found& found, const std::array<std::size_t, n>& chosen) {
    if (parts_ + n > room_) {
      hand_over();
      if (n > room_) {
        status_ = Status::too_many;
        work_ = {};  // nobody needs so much again
        return false;
      }
    }
    if (taken_ == kLong) enable_interrupts();
    found.start = found.value = t;
    std::array<std::int64_t, n> nodes;
    for (std::size_t i = 0; i < n; ++i) {
      const double length = offers_[chosen[i]].length;
      found.runtime = std::max(found.runtime, length);
      found.processor_time += length;
      nodes[i] = work_.ranks.ranked[chosen[i]].node;
    }
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t k = 0; k < i; ++k) nodes[k] = lower(nodes[k], nodes[i]);
    Part* part = work_.parts.data() + parts_;
    for (const std::int64_t each : nodes) {
      const auto node = static_cast<std::uint32_t>(each);
      const std::size_t rank = Arrival::rank_of(node);
      const Offer& offer = offers_[rank];
      const double length = offer.length, end = offer.end;
      const double whole = end < query_.deadline ? end : prepared_.slots[offer.row].end;
      const double finish = snap_finish(t + length, whole);
      if (!(finish > t)) [[unlikely]] {
        status_ = Status::volume_too_small;
        return false;
      }
      *part++ = {prepared_.origin(offer.row), offer.id, length, offer.key, offer.row};
      free_[rank / 64] ^= std::uint64_t{1} << rank % 64;
      remnants_.add(finish, node,
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
    reserve_extra(windows_, out_.found, out_.ends);
    reserve_extra(parts_, out_.parts);
    out_.found.insert(out_.found.end(), windows, windows + static_cast<std::ptrdiff_t>(windows_));
    out_.parts.insert(out_.parts.end(), parts, parts + static_cast<std::ptrdiff_t>(parts_));
    for (; windows_ > 0; --windows_) out_.ends.push_back(out_.first(out_.size() - windows_) + n);
    parts_ = 0;
    room_ = std::min(kSome, kMostParts - out_.parts.size());
  }

  static constexpr std::size_t kChunk = 256;  // slots
  static constexpr std::size_t kSome = 4096;  // parts
  static constexpr std::size_t kLong = 64;    // windows that take a while
  static constexpr double kMuch = 1e290;
  static constexpr std::uint64_t kRanks = 1023;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  const PreparedSlots& prepared_;
  const Query& query_;
  const Shape& shape_;
  const std::size_t limit_;
  WindowTable& out_;
  RankedScratch& work_;
  ArrivalRing& remnants_;
  Status status_ = Status::ok;
  Offer* offers_ = nullptr;
  std::uint64_t* free_ = nullptr;
  SlotArrival* slots_ = nullptr;
  std::size_t none_ = 0;  // the offer behind all
  Front front_;  // tagged keys of the n - 1 cheapest, in order
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
        .run(prepared.min_rate_sum(parts - 1), status);
  };
  bool found = false;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((n == k + 1 && (found = run.template operator()<k + 1>())) || ...);
  }(std::make_index_sequence<12>{});
  if (!found) out.clear();
  return found;
}

}  // namespace detail

}  // namespace slotkern
