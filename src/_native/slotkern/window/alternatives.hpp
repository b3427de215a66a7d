// Finds all disjoint alternatives of one request in one sweep: CSA with AMP (ragged; Toporkov et
// al. 2013, section 3.1) and MultipleBest with FirstFit (square; 2018, section 3.1).
//
// The papers restart the search after every window that they cut. One sweep finds the same windows,
// because cutting only removes time: a step that found nothing finds nothing later, the left
// remnant of a slot ends when its window starts and serves no other window, and the right remnant
// is a new slot later on. After a success the window's parts are removed, their right remnants are
// queued, and the sweep continues.
//
// Square: all slots of equal t are collected, then offered to the groups, fastest first. A group
// that found nothing at t finds nothing after a cut, so no group is tried twice.
//
// Cost: ragged O((m + k n) log m) expected for k alternatives of n parts; square that times the
// number of groups that can fit the budget. Memory: 56 bytes per slot and emitted part, reused by
// the thread's next search, and at most 32 bytes per live slot of each group, at most kMaxLive in
// all. At most kMaxParts parts are returned, because a long slot holds any number of short parts.
//
// Branches on random keys and times are mispredicted half of the time, which would dominate the
// cost: window/calendar_queue.hpp and window/top_n_remnants.hpp avoid most of them, and
// window/ranked_alternatives.hpp, which finds the same windows of few parts, nearly all.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "slotkern/window/calendar_queue.hpp"
#include "slotkern/window/find.hpp"
#include "slotkern/window/ranked_alternatives.hpp"
#include "slotkern/window/top_n_remnants.hpp"

namespace slotkern {

// The most live slots in the lists of all groups together: 256 MB.
inline constexpr std::size_t kMaxLive = std::size_t{1} << 24;

namespace detail {

// The unused rest of a slot (at first the whole slot).
struct SlotRemnant {
  double end;  // of the slot; -inf once it is used, so that it is no longer live
  double key;  // the same for all groups
  double own_length;  // run time of the part, if ragged
  std::size_t row;
};

// Scratch memory of one thread; it only grows.
struct AlternativesScratch {
  std::vector<SlotRemnant> remnants;
  std::vector<std::uint32_t> step;  // remnants that start at the current t
  CalendarQueue pending;

  AlternativesScratch& cleared() {
    remnants.clear(), step.clear();
    return *this;
  }
};

inline AlternativesScratch& alternatives_scratch() {
  static thread_local AlternativesScratch scratch;
  return scratch.cleared();
}

template <class Shape>
class AlternativesSweep {
 public:
  AlternativesSweep(const PreparedSlots& prepared, const Query& query, std::size_t limit,
                    WindowTable& out)
      : prepared_(prepared),
        query_(query),
        n_(static_cast<std::size_t>(query.n)),
        limit_(limit),
        out_(out),
        work_(alternatives_scratch()),
        remnants_(work_.remnants),
        step_(work_.step),
        pending_(work_.pending) {}

  // Adds a group to search; the fastest must be added first. `least_others`: see Sweep. Returns
  // false if the lists exceed kMaxLive.
  bool add_group(const Shape& shape, double least_others) {
    poll();
    const float ceiling = max_index_key(shape.to_index_units(query_.budget), least_others);
    if (groups_.empty()) {
      thresholds_ = initial_thresholds(prepared_, query_, shape);
      thresholds_.key = ceiling;
      shortest_ = shape.shortest(prepared_);
    }
    thresholds_.key = std::max(thresholds_.key, ceiling);
    thresholds_.performance =
        std::min(thresholds_.performance, initial_thresholds(prepared_, query_, shape).performance);
    groups_.push_back({shape, ceiling, TopNRemnants(n_, kInitialOverflow)});
    allocated_ += groups_.back().top.allocated();
    return allocated_ <= kMaxLive;
  }

  Status run() {
    if (groups_.empty() || limit_ == 0) return Status::ok;
    if (allocated_ > kMaxLive) return Status::too_many_live;
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max() &&
                         query_.latest == kInfinity;
    pending_.reset(std::max(prepared_.first_start(), query_.earliest),
                  std::min(prepared_.latest_end, query_.deadline));
    Shape::zone_map(prepared_).each(
        prepared_.order, thresholds_, prepared_.last_position(), [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!query_.admits(s, row)) return true;
          if (endless && std::isinf(s.end)) {
            status_ = Status::endless;
            return running_ = false;
          }
          const Shape& shape = groups_.front().shape;
          remnants_.push_back({s.end, shape.key(s), shape.length(s), row});
          const auto remnant = static_cast<std::uint32_t>(remnants_.size() - 1);
          return process_until({s.start, s.node, remnant}, false);
        });
    if (running_) process_until({kInfinity, 0, 0}, true);
    return status_;
  }

 private:
  struct LiveGroup {
    Shape shape;
    float ceiling;  // of the index keys of its parts
    TopNRemnants top;
  };

  // Tests as is_live() does, without a division.
  bool is_live(const Shape& shape, const SlotRemnant& remnant, double t) const {
    return t + length(shape, remnant) <= std::min(remnant.end, query_.deadline);
  }
  static double length(const Shape& shape, const SlotRemnant& remnant) {
    if constexpr (Shape::per_part_length)
      return remnant.own_length;
    else
      return shape.span;
  }

  // Processes all remnants that arrive before `slot`, then the slot. If `last`, there is no slot
  // and all remnants are processed.
  bool process_until(PendingRemnant slot, bool last) {
    for (;;) {
      const PendingRemnant* first = pending_.first(slot.start);
      const bool is_remnant = first && *first < slot, none = !is_remnant && last;
      if (none && step_.empty()) return true;
      const PendingRemnant next = is_remnant ? *first : slot;
      const double t = std::max(next.start, query_.earliest);
      if constexpr (!Shape::per_part_length)
        if (t != t_ && !step_.empty()) {
          if (!offer_step()) return false;
          continue;  // the step may have queued earlier remnants
        }
      t_ = t;
      poll();
      if (t + shortest_ > query_.deadline || t > query_.latest) return running_ = false;
      if (is_remnant) pending_.drop_first();
      if constexpr (Shape::per_part_length) {
        if (!offer(groups_.front(), next.node, next.remnant_id)) return running_ = false;
      } else {
        step_.push_back(next.remnant_id);
      }
      if (!is_remnant) return true;
    }
  }

  // Offers the remnants of this t to each group, and emits every window that fits.
  bool offer_step() {
    for (LiveGroup& group : groups_)
      for (const std::uint32_t id : step_) {
        const Slot& slot = prepared_.slots[remnants_[id].row];
        if (slot.performance < group.shape.min_performance() ||
            remnants_[id].key > static_cast<double>(group.ceiling))
          continue;
        if (!offer(group, slot.node, id)) return running_ = false;
      }
    step_.clear();
    return true;
  }

  bool offer(LiveGroup& group, std::int32_t node, std::uint32_t id) {
    const Shape& shape = group.shape;
    TopNRemnants& top = group.top;
    const SlotRemnant& remnant = remnants_[id];
    if (!is_live(shape, remnant, t_)) return true;
    const auto usable = [&](std::uint32_t other) { return is_live(shape, remnants_[other], t_); };
    if (top.is_overflow_full()) [[unlikely]] {
      allocated_ -= top.allocated();
      top.compact_overflow(usable);
      allocated_ += top.allocated();
      if (allocated_ > kMaxLive) {
        status_ = Status::too_many_live;
        return false;
      }
    }
    if (!top.offer({remnant.key, node, id})) return true;
    while (top.full() && !(shape.total(top.lower()) > query_.budget)) {
      if (top.drop_expired(usable)) continue;
      const double cost = shape.total(top.sum());
      if (!(cost <= query_.budget)) break;
      if (!emit_window(group, cost)) return false;
      top.drop_cheapest(usable);
    }
    return true;
  }

  // Appends the n cheapest of a group to the results and queues their right remnants.
  bool emit_window(LiveGroup& group, double cost) {
    if (out_.found.size() == kLongRunning) enable_interrupts();
    if (out_.parts.size() + n_ > kMaxParts) {
      status_ = Status::too_many;
      work_ = {};  // scratch of this size is rarely needed again
      return false;
    }
    const Shape& shape = group.shape;
    const TopNRemnants& top = group.top;
    Found found;
    found.start = found.value = t_;
    for (std::size_t i = 0; i < n_; ++i) {
      const double length = this->length(shape, remnants_[top[i].remnant]);
      found.runtime = std::max(found.runtime, length);
      found.processor_time += length;
    }
    found.cost = cost;
    if constexpr (!Shape::per_part_length)
      found.processor_time = static_cast<double>(n_) * found.runtime;
    Part* const parts = out_.add_row(found, n_);
    for (std::size_t i = 0; i < n_; ++i) {
      const TopNRemnants::Member& member = top[i];
      const SlotRemnant remnant = remnants_[member.remnant];
      const double length = this->length(shape, remnant),
                   finish = snap_finish(t_ + length, remnant.end);
      parts[n_ <= kMaxInsertionSorted ? top.rank(i) : i] = {
          prepared_.origin(remnant.row), member.node, length, shape.total(member.key),
          static_cast<std::uint32_t>(remnant.row)};
      if (!(finish > t_)) {
        status_ = Status::volume_too_small;
        out_.drop_last();
        return false;
      }
      const bool more = (finish < remnant.end) & is_live(groups_.front().shape, remnant, finish);
      std::uint32_t rest = member.remnant;
      if constexpr (!Shape::per_part_length) {  // other groups still refer to the used remnant
        remnants_[rest].end = -kInfinity;
        rest = static_cast<std::uint32_t>(remnants_.size());
        if (more) remnants_.push_back(remnant);
      }
      if (more) pending_.add({finish, member.node, rest});
    }
    if (n_ > kMaxInsertionSorted)
      std::sort(parts, parts + n_, [](const Part& a, const Part& b) { return a.node < b.node; });
    return out_.size() < limit_;
  }

  static constexpr std::size_t kLongRunning = 64;  // windows after which interrupts are enabled
  static constexpr std::size_t kInitialOverflow = 64;  // initial overflow of a group's list

  const PreparedSlots& prepared_;
  const Query& query_;
  const std::size_t n_, limit_;
  WindowTable& out_;
  Status status_ = Status::ok;
  bool running_ = true;
  double t_ = -kInfinity, shortest_ = 0;
  Thresholds thresholds_;
  std::vector<LiveGroup> groups_;
  std::size_t allocated_ = 0;  // places in the lists of all groups
  AlternativesScratch& work_;
  std::vector<SlotRemnant>& remnants_;
  std::vector<std::uint32_t>& step_;
  CalendarQueue& pending_;
};

}  // namespace detail

// Finds at most `limit` windows, in the order in which repeated search by "first" and cutting finds
// them. Sum limits and group rules are rejected: they may need other sets than the cheapest, so only
// repeated search supports them. `out` keeps its memory, because a new allocation may cost as much as the
// search.
inline Status find_alternatives(const PreparedSlots& prepared, const Query& given, ShapeKind shape,
                                std::size_t limit, WindowTable& out) noexcept {
  return guarded([&] {
    out.clear();
    Query query = prepared.normalized_for_search(given);
    query.budget = given.max_cost();
    const Status status = prepared.check(query, true);
    if (status != Status::ok) return status;
    if (query.limits) return Status::request_not_valid;
    if (query.groups) return Status::groups_not_supported;
    if (query.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::ok;
    if (prepared.is_long_running(query, shape)) enable_interrupts();
    if (shape == ShapeKind::ragged) {
      const auto run = [&](const auto& parts) {
        Status status = Status::ok;
        if (detail::find_ranked(prepared, query, parts, limit, out, status)) return status;
        detail::AlternativesSweep<std::remove_cvref_t<decltype(parts)>> sweep(prepared, query,
                                                                              limit, out);
        sweep.add_group(parts, prepared.min_rate_sum(static_cast<std::size_t>(query.n) - 1));
        return sweep.run();
      };
      return query.has_overhead() ? run(RaggedWithOverhead(query)) : run(Ragged(query));
    }
    Workspace& work = workspace();
    detail::compute_group_bounds(prepared, query, work);
    detail::AlternativesSweep<Square> sweep(prepared, query, limit, out);
    for (const Workspace::GroupBound& bound : work.bounds)
      if (!(bound.total > query.budget) &&
          !sweep.add_group(Square{bound.span, prepared.groups[bound.group].performance},
                           bound.least_others))
        break;
    return sweep.run();
  });
}

}  // namespace slotkern
