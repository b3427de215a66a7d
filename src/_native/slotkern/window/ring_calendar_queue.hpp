// Arrivals of slots and remnants, and a calendar queue of pending remnants on a ring of buckets.
//
// A remnant starts at most one longest part length ahead of the current time, so a ring that covers
// twice that length holds all of them, at any time. A bucket is sorted when the clock reaches it:
// each entry's position is counted by comparing ticks within the bucket, without unpredictable
// branches. Cost: O(k^2) for up to kMaxCounted of the k nodes with a remnant in a bucket, O(k log
// k) if there are more. A node has at most one remnant in the queue.
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

// Maps times to integers with the same order, which compare faster, and back.
inline std::int64_t to_ordered_bits(double time) {
  const auto bits = std::bit_cast<std::int64_t>(time + 0.0);
  return bits ^ (bits >> 63 & std::numeric_limits<std::int64_t>::max());
}
inline double from_ordered_bits(std::int64_t start_bits) {
  return std::bit_cast<double>(start_bits ^
                               (start_bits >> 63 & std::numeric_limits<std::int64_t>::max()));
}

// An arrival, in the order of slots: start, then node id. `node` holds the node's position by id in
// its upper 16 bits and its rank by rate in the lower 16, so that one comparison orders nodes.
struct Arrival {
  std::int64_t start_bits;
  std::uint32_t node;
  std::uint32_t row;  // unused for remnants

  static constexpr std::uint32_t kMaxNodes = 1 << 16;
  std::size_t rank() const { return rank_of(node); }
  static std::size_t rank_of(std::uint32_t node) { return node % kMaxNodes; }
  bool operator<(const Arrival& other) const {
    return (start_bits < other.start_bits) |
           ((start_bits == other.start_bits) & (node < other.node));
  }
};

// The nodes ordered by rate, then id, of the PreparedSlots of one build; cached for many searches.
struct RankedNodes {
  struct OrderedNode {
    double performance, price, rate;
    std::int32_t id;
    std::uint32_t node;  // Arrival::node, by rank
  };

  BuildId build;
  double mean = 0;  // mean performance of the nodes
  bool has_fixed_prices = false;  // no slot with a different price was found
  std::vector<OrderedNode> ranked;
  std::vector<std::uint32_t> node;  // Arrival::node, by place

  void rank_nodes(const PreparedSlots& prepared) {
    if (build == prepared.identity && build != BuildId{}) return;
    build = {};
    const std::vector<Node>& nodes = prepared.nodes;
    const auto count = static_cast<std::uint32_t>(nodes.size());
    std::vector<std::uint32_t> places(count);
    for (std::uint32_t i = 0; i < count; ++i) places[i] = i;
    std::sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
      return nodes[a].id < nodes[b].id;
    });
    node.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) node[places[i]] = i * Arrival::kMaxNodes;
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
    has_fixed_prices = true;
    build = prepared.identity;
  }
};

// The state of a node: run time and cost of a part on it, and the end and row of its current slot.
struct NodeState {
  double length, key, end;
  double tagged;  // the key with the rank in its last bits: ordered by rank, also if keys tie
  std::uint32_t row;
  std::int32_t id;
};

// The arrival of a slot, with its end.
struct SlotArrival : Arrival {
  double end;
};

class RingCalendarQueue {
  static constexpr std::size_t kMaxCounted = 64;
  static constexpr double kPerBucket = 44, kMinBuckets = 15, kMaxBuckets = 1023;
  // resolution of a bucket; ticks times kMaxCounted must fit 31 bits
  static constexpr int kTickBits = 25;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

 public:
  // Prepares for starts from `first` on, of magnitude about `size`: at most one entry per node, at
  // most `longest` ahead of the last arrival, up to rounding. `mean` is the run time at mean
  // performance. If all nodes run one part each, about kPerBucket parts end in one bucket: more are
  // no longer sorted by counting, and smaller buckets are started too often.
  void reset(double first, double longest, double mean, double size, std::size_t nodes) {
    first_ = first;
    // The last two terms keep ticks representable even for tiny buckets.
    bucket_width_ =
        std::max({std::clamp(kPerBucket * mean / static_cast<double>(nodes),
                             2 * longest / kMaxBuckets, 2 * longest / kMinBuckets),
                  size * 0x1p-30, 0x1p-990});
    num_buckets_ = std::bit_ceil(static_cast<std::size_t>(2 * longest / bucket_width_) + 1);
    ticks_per_time_ = (1 << kTickBits) / bucket_width_;
    newest_in_.assign(num_buckets_ + 1, kNone);
    if (queued_.size() < nodes) queued_.resize(nodes), bucket_entries_.resize(nodes + 1);
    num_queued_ = 0;
    current_ = 0;
    finish_bucket(0);
  }

  // Adds an entry if `condition`; otherwise it is written to a dummy bucket (branch-free).
  SLOTKERN_INLINE void add(double start, std::uint32_t node, bool condition) {
    const auto tick = static_cast<std::int64_t>((start - first_) * ticks_per_time_);
    const std::int64_t bucket = tick >> kTickBits;
    if (condition & (bucket <= current_)) [[unlikely]]
      return insert({to_ordered_bits(start), node, 0});
    std::uint32_t& last = newest_in_[condition
                                         ? static_cast<std::size_t>(bucket) & (num_buckets_ - 1)
                                         : num_buckets_];
    queued_[Arrival::rank_of(node)] =
        {to_ordered_bits(start), static_cast<std::uint32_t>(tick) % (1u << kTickBits), last};
    last = node;
    num_queued_ += condition;
  }

  // Returns the next entry of the current bucket. After the last one follows a sentinel, which is
  // earlier than the entries of all later buckets.
  const Arrival* next() const { return next_; }
  void drop_until(const Arrival* next) { next_ = next; }
  const Arrival* end() const { return end_; }
  bool empty() const { return num_queued_ == 0 && next_ == end_; }

  // Advances to the next bucket when the current one is exhausted; if the queue is empty, to that
  // of `t`.
  void advance_bucket(double t) {
    if (num_queued_ == 0) {
      const double bucket = std::min((t - first_) * ticks_per_time_ / (1 << kTickBits), 0x1p60);
      current_ = std::max(current_ + 1, static_cast<std::int64_t>(bucket));
      return finish_bucket(0);
    }
    ++current_;
    std::uint32_t& last = newest_in_[static_cast<std::size_t>(current_) & (num_buckets_ - 1)];
    std::array<std::uint32_t, kMaxCounted> bucket_nodes;
    std::array<std::int32_t, kMaxCounted> order, place;
    std::size_t count = 0;
    std::uint32_t node = last;
    for (; node != kNone && count < kMaxCounted; ++count) {
      const QueuedArrival& each = queued_[Arrival::rank_of(node)];
      // Entries of one window are listed newest first; of equal starts the one added earlier
      // precedes.
      order[count] = static_cast<std::int32_t>(each.tick * kMaxCounted + (kMaxCounted - 1 - count));
      bucket_nodes[count] = node, node = each.next;
    }
    count_places(order, count, place);
    for (std::size_t k = 0; k < count; ++k)
      bucket_entries_[static_cast<std::size_t>(place[k])] = {
          queued_[Arrival::rank_of(bucket_nodes[k])].start_bits, bucket_nodes[k], 0};
    bool sorted = node == kNone;
    for (; node != kNone; node = queued_[Arrival::rank_of(node)].next)
      bucket_entries_[count++] = {queued_[Arrival::rank_of(node)].start_bits, node, 0};
    for (std::size_t k = 1; k < count; ++k) sorted &= bucket_entries_[k - 1] < bucket_entries_[k];
    if (!sorted) [[unlikely]]
      std::sort(bucket_entries_.data(), bucket_entries_.data() + count);
    last = kNone;
    num_queued_ -= count;
    finish_bucket(count);
  }

 private:
  struct QueuedArrival {
    std::int64_t start_bits;
    std::uint32_t tick;  // position within its bucket
    std::uint32_t next;  // next node in the same bucket, or kNone
  };

  // Computes for each entry how many entries are smaller.
  static void count_places(const std::array<std::int32_t, kMaxCounted>& order, std::size_t count,
                           std::array<std::int32_t, kMaxCounted>& place) {
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

  // Inserts into the current bucket: happens if parts are much shorter than the longest.
  SLOTKERN_NOINLINE void insert(const Arrival& arrival) {
    Arrival* next = bucket_entries_.data() + (next_ - bucket_entries_.data());
    if (next == bucket_entries_.data()) {  // otherwise a consumed entry has left a gap
      std::move_backward(next, end_ + 1, end_ + 2);
      ++next, ++end_;
    }
    Arrival* const at = std::upper_bound(next, end_, arrival);
    std::move(next, at, next - 1);
    at[-1] = arrival;
    next_ = next - 1;
  }

  // Appends the sentinel to the `count` entries of the current bucket. Its time is the middle of
  // the bucket, half a bucket before the next one, so that rounding cannot make it later than an
  // entry of the next bucket. It may be earlier than entries of its own bucket, which are read
  // before it.
  void finish_bucket(std::size_t count) {
    const double bucket_end = first_ + (static_cast<double>(current_) + 0.5) * bucket_width_;
    bucket_entries_[count] = {to_ordered_bits(bucket_end), kNone, 0};
    next_ = bucket_entries_.data(), end_ = bucket_entries_.data() + count;
  }

  std::size_t num_buckets_ = 0, num_queued_ = 0;
  double first_ = 0, bucket_width_ = 0, ticks_per_time_ = 0;
  std::int64_t current_ = 0;
  // last node added, by bucket; then that of the dummy bucket
  std::vector<std::uint32_t> newest_in_;
  std::vector<QueuedArrival> queued_;  // by rank
  std::vector<Arrival> bucket_entries_;
  const Arrival* next_ = nullptr;
  Arrival* end_ = nullptr;
};

}  // namespace slotkern::detail
