// Slots and what is left of them as they come, and a ring of days for those that have not come yet.
//
// What is left of a part comes no later than the longest part runs, so that a ring of days that is
// twice as long has room for all of it, whatever the times are. A day is put in order when it
// begins: places are counted by ticks of it, which guesses no branch, and looked over: O(k^2) for k
// of the nodes that have something left in it, O(k log k) where they are many. A node has at most
// one.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/slots/prepared.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace slotkern::detail {

// Times as numbers that are compared sooner, in the same order, and back.
inline std::int64_t moment_of(double time) {
  const auto bits = std::bit_cast<std::int64_t>(time + 0.0);
  return bits ^ (bits >> 63 & std::numeric_limits<std::int64_t>::max());
}
inline double time_of(std::int64_t moment) {
  return std::bit_cast<double>(moment ^
                               (moment >> 63 & std::numeric_limits<std::int64_t>::max()));
}

// In the order of slots: start, then node. A node is said by its number by id, then by another that
// tells what stands where: 16 bits each, so that one comparison does.
struct Arrival {
  std::int64_t moment;
  std::uint32_t node;
  std::uint32_t row;  // of a slot

  static constexpr std::uint32_t kMostNodes = 1 << 16;
  std::size_t rank() const { return rank_of(node); }
  static std::size_t rank_of(std::uint32_t node) { return node % kMostNodes; }
  bool operator<(const Arrival& other) const {
    return (moment < other.moment) | ((moment == other.moment) & (node < other.node));
  }
};

// The nodes by rate, then id: of PreparedSlots of one identity, for many searches.
struct NodeRanks {
  struct Ranked {
    double performance, price, rate;
    std::int32_t id;
    std::uint32_t node;  // as arrivals say it, by rank
  };

  BuildId of;
  double mean = 0;                  // performance
  bool steady = false;              // no slot with another price has been met
  std::vector<Ranked> ranked;
  std::vector<std::uint32_t> node;  // by place

  void rank_nodes(const PreparedSlots& prepared) {
    if (of == prepared.identity && of != BuildId{}) return;
    of = {};
    const std::vector<Node>& nodes = prepared.nodes;
    const auto count = static_cast<std::uint32_t>(nodes.size());
    std::vector<std::uint32_t> places(count);
    for (std::uint32_t i = 0; i < count; ++i) places[i] = i;
    std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      return nodes[a].id < nodes[b].id;
    });
    node.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) node[places[i]] = i * Arrival::kMostNodes;
    std::stable_sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      return nodes[a].min_price / nodes[a].performance < nodes[b].min_price / nodes[b].performance;
    });
    ranked.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      const Node& each = nodes[places[i]];
      ranked.push_back({each.performance, each.min_price, each.min_price / each.performance,
                        each.id, node[places[i]] += i});
    }
    mean = 0;
    for (const Node& each : nodes) mean += each.performance / count;
    steady = true;
    of = prepared.identity;
  }
};

// How long a part runs on a node and what it costs; the end of the node's last slot and its row.
struct Offer {
  double length, key, end;
  double tagged;  // the key, in its last bits the rank: keys in the order of ranks, ties too
  std::uint32_t row;
  std::int32_t id;
};

// A slot as it comes.
struct SlotArrival : Arrival {
  double end;
};

class ArrivalRing {
  static constexpr std::size_t kFew = 64;
  static constexpr double kADay = 44, kFewestDays = 15, kMostDays = 1023;
  static constexpr int kTickBits = 25;  // of a day: times kFew, no more than 31
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 public:
  // For starts from `first` on: at most one of each node, added no more than `longest` ahead of
  // what came last, but for rounding: their size is about `size`. Where all nodes run, one part
  // each that takes `mean` in the harmonic mean, kADay end in a day: more are no longer put in
  // order without a guess, and days of fewer are begun too often.
  void reset(double first, double longest, double mean, double size, std::size_t nodes) {
    first_ = first;
    day_ = std::max({std::clamp(kADay * mean / static_cast<double>(nodes), 2 * longest / kMostDays,
                                2 * longest / kFewestDays),
                     size * 0x1p-30, 0x1p-990});  // so that ticks are counted, however short
    days_ = std::bit_ceil(static_cast<std::size_t>(2 * longest / day_) + 1);
    ticks_a_time_ = (1 << kTickBits) / day_;
    last_of_.assign(days_ + 1, kNone);
    if (waits_.size() < nodes) waits_.resize(nodes), page_.resize(nodes + 1);
    waiting_ = 0;
    today_ = 0;
    close(0);
  }

  // Adds one if `really`; where not, it is on no day, for that is guessed wrong too often.
  SLOTKERN_INLINE void add(double start, std::uint32_t node, bool really) {
    const auto tick = static_cast<std::int64_t>((start - first_) * ticks_a_time_);
    const std::int64_t day = tick >> kTickBits;
    if (really & (day <= today_)) [[unlikely]]
      return insert({moment_of(start), node, 0});
    std::uint32_t& last =
        last_of_[really ? static_cast<std::size_t>(day) & (days_ - 1) : days_];
    waits_[Arrival::rank_of(node)] =
        {moment_of(start), static_cast<std::uint32_t>(tick) % (1u << kTickBits), last};
    last = node;
    waiting_ += really;
  }

  // The next of today; behind the last one stands a time before all of other days.
  const Arrival* next() const { return next_; }
  void drop_until(const Arrival* next) { next_ = next; }
  const Arrival* end() const { return end_; }
  bool empty() const { return waiting_ == 0 && next_ == end_; }

  // On to the next day when this one is over; where nothing waits, to that of `t`.
  void turn(double t) {
    if (waiting_ == 0) {
      const double day = std::min((t - first_) * ticks_a_time_ / (1 << kTickBits), 0x1p60);
      today_ = std::max(today_ + 1, static_cast<std::int64_t>(day));
      return close(0);
    }
    ++today_;
    std::uint32_t& last = last_of_[static_cast<std::size_t>(today_) & (days_ - 1)];
    std::array<std::uint32_t, kFew> which;
    std::array<std::int32_t, kFew> order, place;
    std::size_t count = 0;
    std::uint32_t node = last;
    for (; node != kNone && count < kFew; ++count) {
      const Waiting& each = waits_[Arrival::rank_of(node)];
      // Those of one window stand last first: of equal starts the later one comes before.
      order[count] = static_cast<std::int32_t>(each.tick * kFew + (kFew - 1 - count));
      which[count] = node, node = each.before;
    }
    count_places(order, count, place);
    for (std::size_t k = 0; k < count; ++k)
      page_[static_cast<std::size_t>(place[k])] = {waits_[Arrival::rank_of(which[k])].moment,
                                                   which[k], 0};
    bool sorted = node == kNone;
    for (; node != kNone; node = waits_[Arrival::rank_of(node)].before)
      page_[count++] = {waits_[Arrival::rank_of(node)].moment, node, 0};
    for (std::size_t k = 1; k < count; ++k) sorted &= page_[k - 1] < page_[k];
    if (!sorted) [[unlikely]]
      std::sort(page_.data(), page_.data() + count);
    last = kNone;
    waiting_ -= count;
    close(count);
  }

 private:
  struct Waiting {
    std::int64_t moment;
    std::uint32_t tick;    // of its day
    std::uint32_t before;  // node of the same day
  };

  // How many are less than each.
  static void count_places(const std::array<std::int32_t, kFew>& order, std::size_t count,
                           std::array<std::int32_t, kFew>& place) {
    for (std::size_t first = 0; first < count; first += 8) {
#if defined(__SSE2__)
      const auto* them = reinterpret_cast<const __m128i*>(order.data() + first);
      auto* to = reinterpret_cast<__m128i*>(place.data() + first);
      const __m128i a = _mm_loadu_si128(them), b = _mm_loadu_si128(them + 1);
      __m128i less_a = _mm_setzero_si128(), less_b = less_a;
      for (std::size_t k = 0; k < count; ++k) {
        const __m128i each = _mm_set1_epi32(order[k]);
        less_a = _mm_sub_epi32(less_a, _mm_cmplt_epi32(each, a));
        less_b = _mm_sub_epi32(less_b, _mm_cmplt_epi32(each, b));
      }
      _mm_storeu_si128(to, less_a), _mm_storeu_si128(to + 1, less_b);
#else
      for (std::size_t j = first; j < first + 8; ++j) {
        place[j] = 0;
        for (std::size_t k = 0; k < count; ++k) place[j] += order[k] < order[j];
      }
#endif
    }
  }

  // One of today: where parts are much shorter than the longest.
  SLOTKERN_NOINLINE void insert(const Arrival& arrival) {
    Arrival* next = page_.data() + (next_ - page_.data());
    if (next == page_.data()) {  // else one has left its place
      std::move_backward(next, end_ + 1, end_ + 2);
      ++next, ++end_;
    }
    Arrival* const at = std::upper_bound(next, end_, arrival);
    std::move(next, at, next - 1);
    at[-1] = arrival;
    next_ = next - 1;
  }

  // Today has so many, and ends half a day early, which is before tomorrow however it is rounded.
  void close(std::size_t count) {
    const double over = first_ + (static_cast<double>(today_) + 0.5) * day_;
    page_[count] = {moment_of(over), kNone, 0};
    next_ = page_.data(), end_ = page_.data() + count;
  }

  std::size_t days_ = 0, waiting_ = 0;
  double first_ = 0, day_ = 0, ticks_a_time_ = 0;
  std::int64_t today_ = 0;
  std::vector<std::uint32_t> last_of_;  // node by day, and of none
  std::vector<Waiting> waits_;          // by rank
  std::vector<Arrival> page_;
  const Arrival* next_ = nullptr;
  Arrival* end_ = nullptr;
};

}  // namespace slotkern::detail
