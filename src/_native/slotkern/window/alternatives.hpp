// All disjoint alternatives of one request in one sweep: CSA with AMP (ragged; Toporkov et
// al. 2013, section 3.1) and MultipleBest with FirstFit (square; 2018, section 3.1).
//
// The papers search from the start again after every window that they cut. One sweep gives
// the same windows, because cutting only takes time away: a step that found nothing finds
// nothing later, the left remnant of a slot ends when its window starts and serves no other
// one, and the right remnant comes as a new slot later on. So after a success the window's
// parts leave, their right remnants queue up as coming slots, and the sweep goes on.
//
// Square: all slots of equal t are collected, then offered group by group, fastest first.
// A group that found nothing at t finds nothing after a cut, so no group is looked at twice.
//
// Ragged O((m + k n) log m) expected for k alternatives of n parts, square that times the
// groups that can fit the budget. Memory: 56 bytes for each slot and part taken, kept for the
// next search of the thread, and at most 32 bytes for each slot of each group that is live at once,
// in all those of kMostLive; no more than kMostParts parts are given, for a long slot holds any
// number of short ones.
//
// Among random keys and times every branch on them is guessed wrong half of the time, which is
// most of what a search costs: window/coming.hpp and window/front.hpp are made to have few, and
// window/ranked.hpp, which finds the same windows where they are of few parts, fewer still.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "slotkern/window/coming.hpp"
#include "slotkern/window/find.hpp"
#include "slotkern/window/front.hpp"
#include "slotkern/window/ranked.hpp"

namespace slotkern {

// The most live slots that all groups together have room for: 256 MB.
inline constexpr std::size_t kMostLive = std::size_t{1} << 24;

namespace detail {

// What is left of a slot.
struct Piece {
  double end;   // of the slot; minus infinity once it is taken: it lives no more
  double key;   // the same for all groups
  double own;   // ragged: how long the part runs
  std::size_t row;
};

// Scratch of one thread; it only grows.
struct AlternativesScratch {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> step;  // pieces that start at this t
  Calendar coming;

  AlternativesScratch& cleared() {
    pieces.clear(), step.clear();
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
        pieces_(work_.pieces),
        step_(work_.step),
        coming_(work_.coming) {}

  // A group to search, fastest first. `least_others` as in sweep(). False when there are too many.
  bool add_group(const Shape& shape, double least_others) {
    poll();
    const float ceiling = key_ceiling(shape.screened(query_.budget), least_others);
    if (groups_.empty()) {
      thresholds_ = first_thresholds(prepared_, query_, shape);
      thresholds_.key = ceiling;
      shortest_ = shape.shortest(prepared_);
    }
    thresholds_.key = std::max(thresholds_.key, ceiling);
    thresholds_.performance =
        std::min(thresholds_.performance, first_thresholds(prepared_, query_, shape).performance);
    groups_.push_back({shape, ceiling, Front(n_, kFewLive)});
    live_ += groups_.back().top.room();
    return live_ <= kMostLive;
  }

  Status run() {
    if (groups_.empty() || limit_ == 0) return Status::ok;
    if (live_ > kMostLive) return Status::too_many_live;
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max() &&
                         query_.latest == kInfinity;
    coming_.reset(std::max(prepared_.first_start(), query_.earliest),
                  std::min(prepared_.latest_end, query_.deadline));
    Shape::screen(prepared_).each(
        prepared_.order, thresholds_, prepared_.last_position(), [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!query_.admits(s, row)) return true;
          if (endless && std::isinf(s.end)) {
            status_ = Status::endless;
            return going_ = false;
          }
          const Shape& shape = groups_.front().shape;
          pieces_.push_back({s.end, shape.key(s), shape.length(s), row});
          const auto piece = static_cast<std::uint32_t>(pieces_.size() - 1);
          return take_until({s.start, s.node, piece}, false);
        });
    if (going_) take_until({kInfinity, 0, 0}, true);
    return status_;
  }

 private:
  struct Group {
    Shape shape;
    float ceiling;  // of the screen keys of its parts
    Front top;
  };

  // live(), without a division.
  bool lives(const Shape& shape, const Piece& piece, double t) const {
    return t + length(shape, piece) <= std::min(piece.end, query_.deadline);
  }
  static double length(const Shape& shape, const Piece& piece) {
    if constexpr (Shape::own_lengths)
      return piece.own;
    else
      return shape.span;
  }

  // Takes in all remnants that come before `slot`, then the slot. `last`: there is none, take all.
  bool take_until(Coming slot, bool last) {
    for (;;) {
      const Coming* first = coming_.first(slot.start);
      const bool remnant = first && *first < slot, none = !remnant && last;
      if (none && step_.empty()) return true;
      const Coming next = remnant ? *first : slot;
      const double t = std::max(next.start, query_.earliest);
      if constexpr (!Shape::own_lengths)
        if (t != t_ && !step_.empty()) {
          if (!search_step()) return false;
          continue;  // the step may have queued what comes before
        }
      t_ = t;
      poll();
      if (t + shortest_ > query_.deadline || t > query_.latest) return going_ = false;
      if (remnant) coming_.drop_first();
      if constexpr (Shape::own_lengths) {
        if (!offer(groups_.front(), next.node, next.piece)) return going_ = false;
      } else {
        step_.push_back(next.piece);
      }
      if (!remnant) return true;
    }
  }

  // Offers the pieces of this t to each group, and takes every window that fits.
  bool search_step() {
    for (Group& group : groups_)
      for (const std::uint32_t id : step_) {
        const Slot& slot = prepared_.slots[pieces_[id].row];
        if (slot.performance < group.shape.performance() ||
            pieces_[id].key > static_cast<double>(group.ceiling))
          continue;
        if (!offer(group, slot.node, id)) return going_ = false;
      }
    step_.clear();
    return true;
  }

  bool offer(Group& group, std::int32_t node, std::uint32_t id) {
    const Shape& shape = group.shape;
    Front& top = group.top;
    const Piece& piece = pieces_[id];
    if (!lives(shape, piece, t_)) return true;
    const auto usable = [&](std::uint32_t other) { return lives(shape, pieces_[other], t_); };
    if (top.crowded()) [[unlikely]] {
      live_ -= top.room();
      top.make_room(usable);
      live_ += top.room();
      if (live_ > kMostLive) {
        status_ = Status::too_many_live;
        return false;
      }
    }
    if (!top.offer({piece.key, node, id})) return true;
    while (top.full() && !(shape.total(top.lower()) > query_.budget)) {
      if (top.purge(usable)) continue;
      const double cost = shape.total(top.sum());
      if (!(cost <= query_.budget)) break;
      if (!take(group, cost)) return false;
      top.drop_front(usable);
    }
    return true;
  }

  // Moves the n cheapest of a group into the result and queues their right remnants.
  bool take(Group& group, double cost) {
    if (out_.found.size() == kLong) enable_interrupts();
    if (out_.parts.size() + n_ > kMostParts) {
      status_ = Status::too_many;
      work_ = {};  // nobody needs so much again
      return false;
    }
    const Shape& shape = group.shape;
    const Front& top = group.top;
    Found found;
    found.start = found.value = t_;
    for (std::size_t i = 0; i < n_; ++i) {
      const double length = this->length(shape, pieces_[top[i].piece]);
      found.runtime = std::max(found.runtime, length);
      found.processor_time += length;
    }
    found.cost = cost;
    if constexpr (!Shape::own_lengths)
      found.processor_time = static_cast<double>(n_) * found.runtime;
    Part* const parts = out_.add_row(found, n_);
    for (std::size_t i = 0; i < n_; ++i) {
      const Front::Member& member = top[i];
      const Piece piece = pieces_[member.piece];
      const double length = this->length(shape, piece),
                   finish = snap_finish(t_ + length, piece.end);
      parts[n_ <= kFewSorted ? top.rank(i) : i] = {
          prepared_.origin(piece.row), member.node, length, shape.total(member.key),
          static_cast<std::uint32_t>(piece.row)};
      if (!(finish > t_)) {
        status_ = Status::volume_too_small;
        out_.drop_last();
        return false;
      }
      const bool more = (finish < piece.end) & lives(groups_.front().shape, piece, finish);
      std::uint32_t rest = member.piece;
      if constexpr (!Shape::own_lengths) {  // other groups hold the one that is taken
        pieces_[rest].end = -kInfinity;
        rest = static_cast<std::uint32_t>(pieces_.size());
        if (more) pieces_.push_back(piece);
      }
      if (more) coming_.add({finish, member.node, rest});
    }
    if (n_ > kFewSorted)
      std::sort(parts, parts + n_, [](const Part& a, const Part& b) { return a.node < b.node; });
    return out_.size() < limit_;
  }

  static constexpr std::size_t kLong = 64;  // windows that take a while
  static constexpr std::size_t kFewLive = 64;  // a group's first room beside the n cheapest

  const PreparedSlots& prepared_;
  const Query& query_;
  const std::size_t n_, limit_;
  WindowTable& out_;
  Status status_ = Status::ok;
  bool going_ = true;
  double t_ = -kInfinity, shortest_ = 0;
  Thresholds thresholds_;
  std::vector<Group> groups_;
  std::size_t live_ = 0;  // the room of all groups
  AlternativesScratch& work_;
  std::vector<Piece>& pieces_;
  std::vector<std::uint32_t>& step_;
  Calendar& coming_;
};

}  // namespace detail

// At most `limit` windows, in the order in which repeated search by "first" and cutting finds
// them. Limits on sums are for repeated search: they want other sets than the cheapest. `out` keeps
// its memory, for to be given it anew may cost as much as the search.
inline Status find_alternatives(const PreparedSlots& prepared, const Query& asked, ShapeKind shape,
                                std::size_t limit, WindowTable& out) noexcept {
  return guarded([&] {
    out.clear();
    Query query = prepared.normalized_for_search(asked);
    query.budget = asked.max_cost();
    const Status status = prepared.check(query, true);
    if (status != Status::ok) return status;
    if (query.limits) return Status::request_not_valid;
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
      return query.has_overhead() ? run(Charged(query)) : run(Ragged(query));
    }
    Workspace& work = workspace();
    detail::bound_groups(prepared, query, work);
    detail::AlternativesSweep<Square> sweep(prepared, query, limit, out);
    for (const Workspace::Bound& bound : work.bounds)
      if (!(bound.total > query.budget) &&
          !sweep.add_group(Square{bound.span, prepared.groups[bound.group].performance},
                           bound.least_others))
        break;
    return sweep.run();
  });
}

}  // namespace slotkern
