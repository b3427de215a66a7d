// Finds alternatives of few parts on few nodes with fixed prices: the ragged sweep of
// window/alternatives.hpp, nearly branch-free.
//
// If all slots of a node have one price, costs are ordered as nodes are, and a node's free slot is
// one bit in that order: the n cheapest are the first n set bits of live nodes. The keys of the
// first n - 1 are kept in a small sorted array, with the ranks in their last bits (far below the
// margin); a new key is inserted by min and max. A window is possible only if the new key costs no
// more than the budget minus their costs. Members expire without notice: an expired one costs no
// more than its replacement, so no window is missed, and only a sum that would win is checked
// again. One step finds at most one window: before it, the n cheapest were too expensive, and their
// remnants are no cheaper.
//
// Cost: O(N) at the beginning for N nodes, so it suits searches for many windows; O(n) per slot and
// remnant; O(n + N / 64) and a sort of n per window. Memory: 110 bytes per node and 310 kB of
// scratch per thread. Without it, the alternatives take 1.4 to 3.1 times as long to find (100 and
// 1,000 nodes, 1 to 12 parts).
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

#include "slotkern/window/find.hpp"
#include "slotkern/window/ring_calendar_queue.hpp"

namespace slotkern {

// The most parts that one search returns: 350 MB, with scratch.
inline constexpr std::size_t kMaxParts = 4'000'000;

namespace detail {

// Scratch memory of one thread; it only grows.
struct RankedSweepScratch {
  RankedNodes ranks;
  // by rank, then 64 nodes that are always free at infinite cost, then a dummy
  std::vector<NodeState> nodes;
  std::vector<std::uint64_t> free;  // bit per rank
  std::vector<SlotArrival> slots;
  RingCalendarQueue remnants;
  std::vector<Found> found;  // buffered results, as `parts`
  std::vector<Part> parts;
};

// The part of the sweep that is compiled once for all numbers of parts.
class RankedSweepState {
 public:
  RankedSweepState(const PreparedSlots& prepared, const Query& query, std::size_t limit,
                   WindowTable& out, RankedSweepScratch& work)
      : prepared_(prepared), query_(query), work_(work), remnants_(work.remnants), limit_(limit),
        out_(out) {}

  // Returns false, without results, if prices or magnitudes do not suit this algorithm.
  template <class Shape>
  bool run(const Shape& shape, Status& status) {
    if (!initialize(shape)) return false;
    const auto n = static_cast<std::size_t>(query_.n);
    Thresholds thresholds = initial_thresholds(prepared_, query_, shape);
    thresholds.key =
        max_index_key(shape.to_index_units(query_.budget), prepared_.min_rate_sum(n - 1));
    const double shortest = shape.shortest(prepared_);
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max() &&
                         query_.latest == kInfinity;
    const std::uint32_t* const nodes = work_.ranks.node.data();
    std::size_t count = 0;
    bool prices_fixed = true, going = true;
    Shape::zone_map(prepared_).each(
        prepared_.order, thresholds, prepared_.last_position(), [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!query_.admits(s, row)) return true;
          if (endless && std::isinf(s.end)) {
            going = prices_fixed && sweep(count);
            if (going) status_ = Status::endless;
            return going = false;
          }
          const double t = query_.start_in(s), end = query_.limit(s);
          if (t + shortest > query_.deadline) return false;
          const std::uint32_t node = nodes[static_cast<std::size_t>(s.place)];
          const NodeState& offer = nodes_[Arrival::rank_of(node)];
          prices_fixed &= offer.key == shape.key(s);
          slots_[count] = {{to_ordered_bits(s.start), node, static_cast<std::uint32_t>(row)}, end};
          count += (t + offer.length <= end) & (offer.key < kInfinity);
          if (count < kChunk) return true;
          going = prices_fixed && sweep(std::exchange(count, 0));
          return going;
        });
    if (!prices_fixed) {
      work_.ranks.has_fixed_prices = false;
      return false;
    }
    if (going && sweep(count)) {
      slots_[0].start_bits = kNever;
      sweep(1);
    }
    flush_results();
    status = status_;
    return true;
  }

 protected:
  ~RankedSweepState() = default;

  // Processes `count` more slots, and the remnants that arrive before them. Returns false at the
  // end of the search.
  virtual bool sweep(std::size_t count) = 0;

  // Moves the buffered results to the table.
  void flush_results() {
    if (windows_ == 0) return;
    const auto n = static_cast<std::size_t>(query_.n);
    const auto windows = work_.found.begin();
    const auto parts = work_.parts.begin();
    reserve_extra(windows_, out_.found, out_.ends);
    reserve_extra(parts_, out_.parts);
    out_.found.insert(out_.found.end(), windows, windows + static_cast<std::ptrdiff_t>(windows_));
    out_.parts.insert(out_.parts.end(), parts, parts + static_cast<std::ptrdiff_t>(parts_));
    for (; windows_ > 0; --windows_) out_.ends.push_back(out_.first(out_.size() - windows_) + n);
    parts_ = 0;
    part_capacity_ = std::min(kBatchParts, kMaxParts - out_.parts.size());
  }

  // Returns false if prices or magnitudes do not suit this algorithm.
  template <class Shape>
  bool initialize(const Shape& shape) {
    RankedNodes& ranks = work_.ranks;
    ranks.rank_nodes(prepared_);
    if (!ranks.has_fixed_prices) return false;
    const std::size_t size = prepared_.nodes.size();
    const std::size_t words = (size + 63) / 64;
    dummy_rank_ = (words + 1) * 64;
    if (work_.nodes.size() <= dummy_rank_) work_.nodes.resize(dummy_rank_ + 1);
    nodes_ = work_.nodes.data();
    // Sums must not overflow. Rates an ulp apart may give equal costs: then ids must be in order.
    bool fits = shape.length_on(prepared_.nodes.back().performance) < kMaxMagnitude;
    double before = -kInfinity;
    std::int32_t id = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const RankedNodes::OrderedNode& each = ranks.ranked[i];
      const double key =
          shape.key({0, 0, each.performance, each.price, each.rate, 0, 0});
      nodes_[i].length = shape.length_on(each.performance);
      nodes_[i].key = key;
      nodes_[i].tagged = tagged(key, i);
      nodes_[i].id = each.id;
      fits &= (before < key) | ((before <= key) & (id < each.id));
      fits &= (key < kMaxMagnitude) | (key == kInfinity);
      before = key, id = each.id;
    }
    const double first = std::max(prepared_.first_start(), query_.earliest);
    const double times =
        std::max({prepared_.latest_end, prepared_.latest_start, std::fabs(first)});
    if (!fits || !(times < kMaxMagnitude)) return false;
    std::fill(nodes_ + words * 64, nodes_ + dummy_rank_,
              NodeState{0, kInfinity, kInfinity, kInfinity, 0, 0});
    work_.free.assign(words + 1, 0);
    work_.free[words] = ~std::uint64_t{0};
    free_ = work_.free.data();
    max_total_ = std::min(query_.budget * (1 + kMargin) + kUnderflow,
                     std::numeric_limits<double>::max());
    if (work_.slots.size() < kChunk) work_.slots.resize(kChunk);
    if (work_.parts.size() < kBatchParts)
      work_.found.resize(kBatchParts), work_.parts.resize(kBatchParts);
    slots_ = work_.slots.data();
    remnants_.reset(first, shape.length_on(prepared_.nodes.back().performance),
                    shape.length_on(ranks.mean), times, size);
    return true;
  }

  static double tagged(double key, std::size_t rank) {
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(key) & ~kRanks) | rank);
  }

  static constexpr std::size_t kChunk = 256;  // slots
  static constexpr std::size_t kBatchParts = 4096;  // parts
  static constexpr double kMaxMagnitude = 1e290;
  static constexpr std::uint64_t kRanks = 1023;

  static constexpr std::size_t kLongRunning = 64;  // windows after which interrupts are enabled
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  const PreparedSlots& prepared_;
  const Query& query_;
  RankedSweepScratch& work_;
  RingCalendarQueue& remnants_;
  NodeState* nodes_ = nullptr;
  std::uint64_t* free_ = nullptr;
  SlotArrival* slots_ = nullptr;
  std::size_t dummy_rank_ = 0;  // the dummy node after all others
  double max_total_ = 0;  // budget with a margin, for the sum of n tagged keys
  const std::size_t limit_;
  WindowTable& out_;
  Status status_ = Status::ok;
  std::size_t windows_ = 0, parts_ = 0, part_capacity_ = kBatchParts, emitted_ = 0;
};

template <std::size_t n>
class RankedSweep final : public RankedSweepState {
 public:
  RankedSweep(const PreparedSlots& prepared, const Query& query, std::size_t limit,
              WindowTable& out, RankedSweepScratch& work)
      : RankedSweepState(prepared, query, limit, out, work) {
    cheapest_keys_.fill(kInfinity);
  }

 private:
  using CheapestKeys = std::array<double, n - 1>;

  bool sweep(std::size_t count) override {
    poll();
    const SlotArrival* slot = slots_;
    const SlotArrival* const end = slot + count;
    const Arrival* next = remnants_.next();
    CheapestKeys front = cheapest_keys_;
    double sum = sum_;
    while (slot != end) {
      const bool remnant = *next < *slot;
      if (remnant & (next == remnants_.end())) [[unlikely]] {
        remnants_.drop_until(next);
        if (slot->start_bits == kNever && remnants_.empty()) break;
        remnants_.advance_bucket(from_ordered_bits(slot->start_bits));
        next = remnants_.next();
        continue;
      }
      // Branch-free: the outcome is unpredictable.
      const std::size_t others = std::size_t{0} - remnant, of_slot = slot->rank(),
                        rank = of_slot ^ ((of_slot ^ next->rank()) & others);
      NodeState& begun = nodes_[of_slot ^ ((of_slot ^ dummy_rank_) & others)];
      begun.end = slot->end, begun.row = slot->row;
      const std::int64_t start_bits = std::min(next->start_bits, slot->start_bits);
      next += remnant, slot += !remnant;
      free_[rank / 64] |= std::uint64_t{1} << rank % 64;
      double key = nodes_[rank].tagged;
      if (sum + key <= max_total_) [[unlikely]] {
        remnants_.drop_until(next);
        cheapest_keys_ = front;
        if (!try_window(std::max(from_ordered_bits(start_bits), query_.earliest), key))
          return false;
        next = remnants_.next();
        front = cheapest_keys_, sum = sum_;
        continue;
      }
      sum = insert_key(front, key);
    }
    remnants_.drop_until(next);
    cheapest_keys_ = front, sum_ = sum;
    return true;
  }

  // Inserts a key into the sorted array, leaves the largest in `key`, and returns the sum of the
  // array.
  static SLOTKERN_INLINE double insert_key(CheapestKeys& front, double& key) {
    double sum = 0;
    for (double& each : front) {
      const double less = std::min(each, key);
      key = std::max(each, key);
      sum += each = less;
    }
    return sum;
  }

  static std::size_t rank_in(double tagged) {
    return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(tagged) & kRanks);
  }

  bool is_live(std::size_t rank, double t) const {
    return t + nodes_[rank].length <= nodes_[rank].end;
  }

  // Emits a window if the n cheapest live nodes fit the budget.
  SLOTKERN_NOINLINE bool try_window(double t, double key) {
    poll();
    std::array<std::size_t, n> chosen;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      chosen[i] = rank_in(std::min(cheapest_keys_[i], key));
      key = std::max(cheapest_keys_[i], key);
    }
    chosen[n - 1] = rank_in(key);
    bool all = is_live(chosen[0], t);
    for (std::size_t i = 1; i < n; ++i) {
      all &= is_live(chosen[i], t);
      all &= chosen[i] != chosen[i - 1];
    }
    if (!all) [[unlikely]]
      first_live_ranks(t, 0, ~std::uint64_t{0}, chosen);
    Found found;
    found.cost = exact_sum(n, [&](std::size_t i) { return nodes_[chosen[i]].key; });
    if (found.cost <= query_.budget) {
      if (!emit_window(t, found, chosen)) return false;
      const std::size_t last = chosen[n - 1];
      std::array<std::size_t, n - 1> rest;
      first_live_ranks(t, last / 64, ~std::uint64_t{0} << last % 64, rest);
      set_cheapest_keys(rest.data());
    } else {
      set_cheapest_keys(chosen.data());
    }
    return true;
  }

  void set_cheapest_keys(const std::size_t* ranks) {
    sum_ = 0;
    for (double& each : cheapest_keys_) sum_ += each = nodes_[*ranks++].tagged;
  }

  // Finds the first live ranks.
  template <std::size_t count>
  void first_live_ranks(double t, std::size_t word, std::uint64_t rest,
                  std::array<std::size_t, count>& ranks) {
    rest &= free_[word];
    for (std::size_t i = 0; i < count;) {
      while (!rest) rest = free_[++word];
      const std::size_t rank = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      ranks[i] = rank;
      if (is_live(rank, t)) [[likely]]
        ++i;
      else
        free_[word] ^= rest & (0 - rest);
      rest &= rest - 1;
    }
  }

  // Returns the smaller and leaves the larger, branch-free.
  static std::int64_t sort_pair(std::int64_t a, std::int64_t& b) {
    const std::int64_t step = (b - a) & ((b - a) >> 63);
    b -= step;
    return a + step;
  }

  // Appends the chosen parts to the results and queues their right remnants.
  SLOTKERN_INLINE bool emit_window(double t, Found& found,
                                   const std::array<std::size_t, n>& chosen) {
    if (parts_ + n > part_capacity_) {
      flush_results();
      if (n > part_capacity_) {
        status_ = Status::too_many;
        work_ = {};  // scratch of this size is rarely needed again
        return false;
      }
    }
    if (emitted_ == kLongRunning) enable_interrupts();
    found.start = found.value = t;
    std::array<std::int64_t, n> nodes;
    for (std::size_t i = 0; i < n; ++i) {
      const double length = nodes_[chosen[i]].length;
      found.runtime = std::max(found.runtime, length);
      found.processor_time += length;
      nodes[i] = work_.ranks.ranked[chosen[i]].node;
    }
    for (std::size_t i = 1; i < n; ++i)
      for (std::size_t k = 0; k < i; ++k) nodes[k] = sort_pair(nodes[k], nodes[i]);
    Part* part = work_.parts.data() + parts_;
    for (const std::int64_t each : nodes) {
      const auto node = static_cast<std::uint32_t>(each);
      const std::size_t rank = Arrival::rank_of(node);
      const NodeState& offer = nodes_[rank];
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
    return ++emitted_ < limit_;
  }

  CheapestKeys cheapest_keys_;  // the n - 1 cheapest, tagged, sorted
  double sum_ = n > 1 ? kInfinity : 0;  // of cheapest_keys_
};

// The most parts for which the sweep is compiled.
inline constexpr std::size_t kMaxRankedParts = 12;

// Returns true if this sweep is faster: the array costs O(n) per slot, the bitset O(N / 64) per
// window, and setup O(N).
inline bool is_ranked_faster(const PreparedSlots& prepared, std::size_t n, std::size_t limit) {
  return n <= prepared.options.max_ranked_parts && prepared.nodes.size() <= 1024 && limit >= 64;
}

// Returns false if this sweep does not apply; otherwise `out` and `status` hold the result.
template <class Shape>
bool find_ranked(const PreparedSlots& prepared, const Query& query, const Shape& shape,
                 std::size_t limit, WindowTable& out, Status& status) {
  const auto n = static_cast<std::size_t>(query.n);
  if (!is_ranked_faster(prepared, n, limit)) return false;
  static thread_local RankedSweepScratch work;
  const auto run = [&]<std::size_t parts>() {
    return RankedSweep<parts>(prepared, query, limit, out, work).run(shape, status);
  };
  bool found = false;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((n == k + 1 && (found = run.template operator()<k + 1>())) || ...);
  }(std::make_index_sequence<kMaxRankedParts>{});
  if (!found) out.clear();
  return found;
}

}  // namespace detail

}  // namespace slotkern
